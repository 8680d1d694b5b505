//! Stores to fields of a module in code for x86-64.

use super::{Code, Store};

/// Bytes after the address of a module was loaded in which it is used.
const NEAR: usize = 64;

/// Bytes of an instruction that loads it.
const LOAD: usize = 7;

/// Bytes after that in which a function is called with it.
const CALL: usize = 24;

/// The number of the register `rdi`, for the first argument.
const ARGUMENT: u8 = 7;

/// The fields of the module that the code stores to.
pub(super) fn stores<L: Fn(usize) -> Option<usize>>(code: &Code<'_, L>) -> Vec<Store> {
    code.stores()
}

impl<L: Fn(usize) -> Option<usize>> Code<'_, L> {
    fn stores(&self) -> Vec<Store> {
        let mut found = Vec::new();
        for at in 0..self.bytes.len() {
            let Some(register) = self.module_register(at) else {
                continue;
            };
            let mut next = at + LOAD;
            if register == ARGUMENT
                && let Some(field) = self.initialized(next)
                && field < self.fields
            {
                found.push((field, self.start + at));
                continue;
            }
            while next < self.bytes.len().min(at + NEAR) && self.module_register(next).is_none() {
                if let Some(field) = store(&self.bytes[next..], register)
                    && field < self.fields
                {
                    found.push((field, self.start + next));
                }
                next += 1;
            }
        }
        found
    }

    /// The register that an instruction loads the address of the module into: `lea` of it, or `mov` from the
    /// table of addresses.
    fn module_register(&self, at: usize) -> Option<u8> {
        let &[prefix, operation, mode, a, b, c, d] = self.bytes.get(at..at + LOAD)? else {
            return None;
        };
        let is_relative = mode & 0xc7 == 5;
        if prefix & 0xfb != 0x48 || !is_relative || !matches!(operation, 0x8d | 0x8b) {
            return None;
        }
        let offset = i32::from_le_bytes([a, b, c, d]);
        let next = self.start + at + LOAD;
        let target = next.wrapping_add_signed(offset as isize);
        let address = match operation {
            0x8d => target,
            // Not every `mov` is from that table, which is aligned.
            _ if target.is_multiple_of(8) => (self.load)(target)?,
            _ => return None,
        };
        (address == self.module).then_some(mode >> 3 & 7 | (prefix & 4) << 1)
    }

    /// The field whose address is passed to the function that stores to it.
    fn initialized(&self, at: usize) -> Option<usize> {
        let code = self.bytes.get(at..)?;
        // add rdi, 8 or 32 bits
        let (offset, len) = match code {
            [0x48, 0x83, 0xc7, offset, ..] if *offset < 0x80 => (usize::from(*offset), 4),
            [0x48, 0x81, 0xc7, a, b, c, d, ..] => {
                (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 7)
            }
            _ => (0, 0),
        };
        let is_call = |next: usize| match code.get(next..next + 5) {
            Some(&[0xe8, a, b, c, d]) => {
                let after = self.start + at + next + 5;
                let offset = i32::from_le_bytes([a, b, c, d]);
                let function = after.wrapping_add_signed(offset as isize);
                self.initialize.is_some_and(|initialize| {
                    function == initialize || self.behind_stub(function) == Some(initialize)
                })
            }
            _ => false,
        };
        let is_passed = (len..len + CALL).any(is_call);
        (is_passed && offset.is_multiple_of(8)).then_some(offset / 8)
    }

    /// The function that a stub jumps to, by which a module that was loaded later calls one of the program:
    /// `jmp [rip + offset]`, after `endbr64` or not.
    fn behind_stub(&self, stub: usize) -> Option<usize> {
        let bytes = |at: usize| (self.load)(at).map(usize::to_le_bytes);
        let jump = match bytes(stub)? {
            [0xf3, 0x0f, 0x1e, 0xfa, ..] => stub + 4,
            _ => stub,
        };
        let (offset, len) = match bytes(jump)? {
            [0xff, 0x25, a, b, c, d, ..] => ([a, b, c, d], 6),
            [0xf2, 0xff, 0x25, a, b, c, d, _] => ([a, b, c, d], 7),
            _ => return None,
        };
        let offset = i32::from_le_bytes(offset);
        (self.load)((jump + len).wrapping_add_signed(offset as isize))
    }
}

/// The field that an instruction stores to, if it stores a register at an offset from a register.
fn store(code: &[u8], base: u8) -> Option<usize> {
    let &[prefix, 0x89, mode, ..] = code else {
        return None;
    };
    let is_base = mode & 7 | (prefix & 1) << 3 == base && mode & 7 != 4;
    if prefix & 0xfa != 0x48 || !is_base {
        return None;
    }
    let offset = match (mode >> 6, &code[3..]) {
        (0, _) if mode & 7 != 5 => 0,
        (1, [offset, ..]) if *offset < 0x80 => usize::from(*offset),
        (2, [a, b, c, d, ..]) => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
        _ => return None,
    };
    (offset.is_multiple_of(8)).then_some(offset / 8)
}

#[cfg(test)]
mod tests {
    use super::super::once;
    use super::*;

    const START: usize = 0x1000;
    const MODULE: usize = 0x2000;
    const INITIALIZE: usize = 0x3000;

    /// `lea REGISTER, [rip + MODULE]`, at the end of the code.
    fn lea(code: &mut Vec<u8>, mode: u8) {
        code.extend([0x48, 0x8d, mode]);
        let offset =
            i32::try_from(MODULE).unwrap() - i32::try_from(START + code.len() + 4).unwrap();
        code.extend(offset.to_le_bytes());
    }

    fn stores(bytes: &[u8], load: impl Fn(usize) -> Option<usize>) -> Vec<(usize, usize)> {
        let code = Code {
            bytes,
            start: START,
            module: MODULE,
            fields: 3,
            initialize: Some(INITIALIZE),
            load,
        };
        once(super::stores(&code))
    }

    #[test]
    fn stores_to_fields_are_found() {
        let mut code = Vec::new();
        lea(&mut code, 0x1d);
        // mov [rbx], rax; mov [rbx + 16], rdi; ret
        code.extend([0x48, 0x89, 0x03, 0x48, 0x89, 0x7b, 0x10, 0xc3]);
        assert_eq!(stores(&code, |_| None), [(0, START + 7), (2, START + 10)]);
        // mov [rcx + 16], rdi
        code[12] = 0x79;
        assert_eq!(stores(&code, |_| None), [(0, START + 7)]);
        // Twice.
        code.extend([0x48, 0x89, 0x03]);
        assert_eq!(stores(&code, |_| None), []);
    }

    #[test]
    fn modules_are_found_by_the_table_of_addresses() {
        // mov rbx, [rip + 1]; mov [rbx + 8], rax
        let code = [0x48, 0x8b, 0x1d, 1, 0, 0, 0, 0x48, 0x89, 0x43, 8];
        let load = |at| (at == START + 8).then_some(MODULE);
        assert_eq!(stores(&code, load), [(1, START + 7)]);
        assert_eq!(stores(&code, |_| Some(MODULE + 8)), []);
    }

    #[test]
    fn fields_that_a_function_stores_to_are_found() {
        let mut code = Vec::new();
        lea(&mut code, 0x3d);
        // add rdi, 8; mov rsi, rax; call
        code.extend([0x48, 0x83, 0xc7, 8, 0x48, 0x89, 0xc6, 0xe8]);
        let offset = INITIALIZE - (START + code.len() + 4);
        code.extend(u32::try_from(offset).unwrap().to_le_bytes());
        assert_eq!(stores(&code, |_| None), [(1, START)]);
        let last = code.len() - 1;
        code[last] = 1;
        assert_eq!(stores(&code, |_| None), []);
    }

    #[test]
    fn functions_are_found_behind_stubs() {
        const STUB: usize = 0x1800;
        const TABLE: usize = 0x1900;
        let mut code = Vec::new();
        lea(&mut code, 0x3d);
        // mov rsi, rax; call
        code.extend([0x48, 0x89, 0xc6, 0xe8]);
        let offset = STUB - (START + code.len() + 4);
        code.extend(u32::try_from(offset).unwrap().to_le_bytes());
        // endbr64; jmp [rip + offset]
        let mut stub = [0; 16];
        stub[..6].copy_from_slice(&[0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25]);
        let offset = u32::try_from(TABLE - (STUB + 10)).unwrap();
        stub[6..10].copy_from_slice(&offset.to_le_bytes());
        let load = |function: usize| {
            move |at: usize| match at {
                TABLE => Some(function),
                STUB.. => {
                    let bytes = stub.get(at - STUB..at - STUB + 8)?;
                    Some(usize::from_le_bytes(bytes.try_into().ok()?))
                }
                _ => None,
            }
        };
        assert_eq!(stores(&code, load(INITIALIZE)), [(0, START)]);
        assert_eq!(stores(&code, load(INITIALIZE + 8)), []);
    }
}
