//! The memory of the machine.

/// Bytes of memory that are used unless the user says otherwise: a quarter of what there is.
#[must_use]
pub fn default_memory() -> u64 {
    /// For machines that do not tell.
    const TYPICAL: u64 = 8 << 30;
    let all = [machine(), container()].into_iter().flatten().min();
    all.unwrap_or(TYPICAL) / 4
}

/// The memory of the machine.
fn machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The limit of the container, if there is one.
fn container() -> Option<u64> {
    let text = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_is_used() {
        let memory = default_memory();
        assert!(memory > 1 << 20);
        if let Some(machine) = machine() {
            assert!(memory <= machine / 4);
        }
    }
}
