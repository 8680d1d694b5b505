//! Checks that there is memory for a copy of a program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;

/// The part of its memory that a copy of a program must leave free.
const ROOM: f64 = 0.1;

/// Fails if the control group of a process has little memory left: the copy shares its memory with the
/// program, but needs what the program changes while the snapshot is written.
pub(super) fn check(pid: u32) -> anyhow::Result<()> {
    if let Some(used) = used_share(pid)
        && is_tight(used)
    {
        bail!(
            "process {pid} uses {:.0}% of the memory that its control group may have, which is too close \
             for a copy of it; use --in-place, which stops the program instead",
            100.0 * used
        );
    }
    Ok(())
}

fn is_tight(used: f64) -> bool {
    used > 1.0 - ROOM
}

/// The used part of the memory that the control group of a process may have; `None` if it is not limited.
pub(in crate::commands) fn used_share(pid: u32) -> Option<f64> {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let shares = directories(&groups).into_iter().filter_map(|group| {
        let number = |name: &str| {
            let text = fs::read_to_string(group.join(name)).ok()?;
            text.trim().parse::<u64>().ok()
        };
        let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
        let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
        (limit > 0).then(|| used as f64 / limit as f64)
    });
    shares.max_by(f64::total_cmp)
}

/// The directories of the control group that limits memory, and of those around it.
fn directories(groups: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                Path::new("/sys/fs/cgroup/memory")
            }
            _ => continue,
        };
        let group = root.join(path.trim_start_matches('/'));
        let around = group
            .ancestors()
            .take_while(|group| group.starts_with(root));
        found.extend(around.map(Path::to_owned));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_those_around_them_are_found() {
        let two = directories("0::/user.slice/a.service\n");
        let expected = ["user.slice/a.service", "user.slice", ""];
        assert_eq!(
            two,
            expected.map(|path| Path::new("/sys/fs/cgroup").join(path))
        );
        let one = directories("3:cpu,memory:/docker/x\n2:freezer:/y\n");
        let expected = ["docker/x", "docker", ""];
        assert_eq!(
            one,
            expected.map(|path| Path::new("/sys/fs/cgroup/memory").join(path))
        );
        assert!(directories("nonsense").is_empty());
    }

    #[test]
    fn a_tenth_must_be_free() {
        assert!(!is_tight(0.89));
        assert!(is_tight(0.91));
    }
}
