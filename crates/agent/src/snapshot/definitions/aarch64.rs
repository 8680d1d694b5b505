//! Stores to fields of a module in code for arm64.

use super::{Code, Store};

/// Bytes of an instruction.
const INSTRUCTION: usize = 4;

/// Instructions after the address of a module was loaded in which it is used.
const NEAR: usize = 16;

/// A register by its number; the first argument of a function is in the first one.
type Register = u32;
const ARGUMENT: Register = 0;

/// The fields of the module that the code stores to.
pub(super) fn stores<L: Fn(usize) -> Option<usize>>(code: &Code<'_, L>) -> Vec<Store> {
    let instructions: Vec<u32> = code
        .bytes
        .chunks_exact(INSTRUCTION)
        .map(|bytes| bytes.try_into().map_or(0, u32::from_le_bytes))
        .collect();
    let address = |n: usize| code.start + INSTRUCTION * n;
    let mut found = Vec::new();
    for n in 0..instructions.len().saturating_sub(1) {
        let pair = [instructions[n], instructions[n + 1]];
        let loaded = address_loaded(pair, address(n), &code.load);
        let Some((register, _)) = loaded.filter(|(_, loaded)| *loaded == code.module) else {
            continue;
        };
        // The offset from the module of the function's argument.
        let mut argument = (register == ARGUMENT).then_some(0);
        let mut is_loaded = true;
        for (place, &instruction) in (0..).zip(&instructions).skip(n + 2).take(NEAR) {
            if let Some(target) = call(instruction, address(place)) {
                let offset = argument.take();
                if is_initialize(code, target) {
                    found.extend(offset.map(|offset| (offset, address(n))));
                    break;
                }
                // Functions that allocate keep all registers, and after others the compiler uses only their result.
                is_loaded &= register != ARGUMENT;
            }
            match offset_from(instruction, register).filter(|_| is_loaded) {
                Some(Use::Store(offset)) => found.push((offset, address(place))),
                Some(Use::Add(ARGUMENT, offset)) => argument = Some(offset),
                _ => {}
            }
            // Nearly all instructions have the register that they write to in these bits.
            is_loaded &= instruction & 31 != register || keeps_registers(instruction);
            if !is_loaded && argument.is_none() {
                break;
            }
        }
    }
    found.retain(|(offset, _)| offset.is_multiple_of(8) && offset / 8 < code.fields);
    for (offset, _) in &mut found {
        *offset /= 8;
    }
    found
}

/// Returns true for the function that stores to a field, and for stubs that jump to it.
fn is_initialize<L: Fn(usize) -> Option<usize>>(code: &Code<'_, L>, function: usize) -> bool {
    code.initialize.is_some_and(|initialize| {
        function == initialize || behind_stub(&code.load, function) == Some(initialize)
    })
}

/// The function that a stub jumps to, by which a module that was loaded later calls one of the program:
/// `adrp x16, page; ldr x17, [x16, offset]; add x16, x16, offset; br x17`, after `bti c` or not.
fn behind_stub(read: impl Fn(usize) -> Option<usize>, stub: usize) -> Option<usize> {
    const BTI_C: u32 = 0xd503_245f;
    // Words are read, which are aligned: an instruction is half of one.
    let instruction = |at: usize| {
        let halves = read(at & !7)? >> (8 * (at & 4));
        u32::try_from(halves & 0xffff_ffff).ok()
    };
    let start = match instruction(stub)? {
        BTI_C => stub + INSTRUCTION,
        _ => stub,
    };
    let (base, page) = page(instruction(start)?, start)?;
    let (_, from, offset) = load(instruction(start + INSTRUCTION)?)?;
    (from == base).then(|| read(page + offset))?
}

/// The address that two instructions load into a register: `adrp` of its page, then `add` of the rest, or `ldr` from
/// the table of addresses.
fn address_loaded(
    [first, second]: [u32; 2],
    at: usize,
    read: impl Fn(usize) -> Option<usize>,
) -> Option<(Register, usize)> {
    let (register, page) = page(first, at)?;
    if let Some((to, from, offset)) = load(second) {
        let address = read(page + offset)?;
        return (to == register && from == register).then_some((register, address));
    }
    match offset_from(second, register)? {
        Use::Add(to, offset) if to == register => Some((register, page + offset)),
        _ => None,
    }
}

/// `adrp`: a register, and the page whose address it gets.
fn page(instruction: u32, at: usize) -> Option<(Register, usize)> {
    if instruction & 0x9f00_0000 != 0x9000_0000 {
        return None;
    }
    let pages = instruction >> 5 & 0x7_ffff;
    let pages = pages << 2 | instruction >> 29 & 3;
    // 21 bits with a sign.
    let pages = (pages << 11).cast_signed() >> 11;
    let page = (at & !0xfff).wrapping_add_signed(pages as isize * 4096);
    Some((instruction & 31, page))
}

/// `ldr` of a word: the register that it is loaded into, the one with the address, and the offset from that.
fn load(instruction: u32) -> Option<(Register, Register, usize)> {
    (instruction & 0xffc0_0000 == 0xf940_0000).then(|| {
        let offset = 8 * (instruction >> 10 & 0xfff);
        (instruction & 31, instruction >> 5 & 31, offset as usize)
    })
}

/// The use of an address by an instruction.
enum Use {
    /// Stores a word at an offset from it.
    Store(usize),
    /// Adds an offset to it, into a register.
    Add(Register, usize),
}

/// The use of the address in a register by an instruction.
fn offset_from(instruction: u32, base: Register) -> Option<Use> {
    if instruction >> 5 & 31 != base {
        return None;
    }
    let offset = (instruction >> 10 & 0xfff) as usize;
    match instruction & 0xffc0_0000 {
        0xf900_0000 => Some(Use::Store(8 * offset)),
        0x9100_0000 => Some(Use::Add(instruction & 31, offset)),
        _ => None,
    }
}

/// Returns true for calls, and for stores of words, whose lower bits are a register that is read.
fn keeps_registers(instruction: u32) -> bool {
    // Stores with an offset that has no sign, that has one, and of two registers.
    call(instruction, 0).is_some()
        || instruction & 0xffc0_0000 == 0xf900_0000
        || instruction & 0xffe0_0c00 == 0xf800_0000
        || instruction & 0xffc0_0000 == 0xa900_0000
}

/// `bl`: the function that it calls.
fn call(instruction: u32, at: usize) -> Option<usize> {
    (instruction & 0xfc00_0000 == 0x9400_0000).then(|| {
        // 26 bits with a sign, which count instructions.
        let offset = (instruction << 6).cast_signed() >> 4;
        at.wrapping_add_signed(offset as isize)
    })
}

#[cfg(test)]
mod tests {
    use super::super::once;
    use super::*;

    const START: usize = 0x10_1000;
    const MODULE: usize = 0x20_3010;
    const INITIALIZE: usize = 0x10_4000;
    /// The entry for the module in the table of addresses.
    const ENTRY: usize = 0x20_5038;

    fn stores_with(instructions: &[u32], load: impl Fn(usize) -> Option<usize>) -> Vec<Store> {
        let bytes: Vec<u8> = instructions
            .iter()
            .flat_map(|instruction| instruction.to_le_bytes())
            .collect();
        let code = Code {
            bytes: &bytes,
            start: START,
            module: MODULE,
            fields: 3,
            initialize: Some(INITIALIZE),
            load,
        };
        once(stores(&code))
    }

    fn stores_of(instructions: &[u32]) -> Vec<Store> {
        stores_with(instructions, |at| (at == ENTRY).then_some(MODULE))
    }

    /// `adrp` of a page that is so far away, at an address in the first page of the code.
    fn adrp(register: u32, target: usize) -> u32 {
        let pages = i32::try_from(target >> 12).unwrap() - i32::try_from(START >> 12).unwrap();
        let pages = pages.cast_unsigned() & 0x1f_ffff;
        0x9000_0000 | (pages & 3) << 29 | pages >> 2 << 5 | register
    }

    fn ldr(to: u32, from: u32, offset: u32) -> u32 {
        0xf940_0000 | (offset / 8) << 10 | from << 5 | to
    }

    fn str(what: u32, base: u32, offset: u32) -> u32 {
        0xf900_0000 | (offset / 8) << 10 | base << 5 | what
    }

    fn add(to: u32, from: u32, offset: u32) -> u32 {
        0x9100_0000 | offset << 10 | from << 5 | to
    }

    fn bl(target: usize, place: usize) -> u32 {
        let offset = i32::try_from(target).unwrap() - i32::try_from(START + 4 * place).unwrap();
        0x9400_0000 | offset.cast_unsigned() >> 2 & 0x3ff_ffff
    }

    #[test]
    fn stores_to_fields_are_found() {
        // As OCaml 4 has it for position-independent code: by the table of addresses.
        let mut code = vec![
            adrp(1, ENTRY),
            ldr(1, 1, 0x38),
            str(0, 1, 0),
            // mov x2, x7
            0xaa07_03e2,
            str(2, 1, 16),
        ];
        assert_eq!(stores_of(&code), [(0, START + 8), (2, START + 16)]);
        // Twice.
        code.push(str(3, 1, 0));
        assert_eq!(stores_of(&code), [(2, START + 16)]);
        // Another base, and fields that the module does not have.
        assert_eq!(stores_of(&[code[0], code[1], str(0, 2, 0)]), []);
        assert_eq!(stores_of(&[code[0], code[1], str(0, 1, 24)]), []);
        // Another module.
        assert_eq!(stores_with(&code, |_| Some(MODULE + 8)), []);
        assert_eq!(stores_with(&code, |_| None), []);
    }

    #[test]
    fn modules_are_found_by_their_page() {
        let code = [adrp(3, MODULE), add(3, 3, 0x10), str(0, 3, 8)];
        assert_eq!(stores_of(&code), [(1, START + 8)]);
        assert_eq!(stores_of(&[code[0], add(3, 3, 0x18), code[2]]), []);
        assert_eq!(stores_of(&[code[0], add(4, 3, 0x10), code[2]]), []);
        // Before the code.
        assert_eq!(page(adrp(5, 0x1000), START), Some((5, 0x1000)));
    }

    #[test]
    fn registers_that_were_overwritten_are_not_the_module() {
        // ldr x1, [x1, #8]; str x0, [x1, #8]
        let code = [adrp(1, ENTRY), ldr(1, 1, 0x38), ldr(1, 1, 8), str(0, 1, 8)];
        assert_eq!(stores_of(&code), []);
        // A store of the module itself overwrites nothing, nor does a function that allocates.
        let code = [
            adrp(1, ENTRY),
            ldr(1, 1, 0x38),
            str(1, 2, 8),
            bl(START, 3),
            str(0, 1, 8),
        ];
        assert_eq!(stores_of(&code), [(1, START + 16)]);
        // The result of a function.
        let code = [adrp(0, ENTRY), ldr(0, 0, 0x38), bl(START, 2), str(1, 0, 8)];
        assert_eq!(stores_of(&code), []);
    }

    #[test]
    fn fields_that_a_function_stores_to_are_found() {
        // As OCaml 5 has it: the function is called on the system's stack.
        let code = [
            adrp(5, ENTRY),
            ldr(5, 5, 0x38),
            add(0, 5, 8),
            // mov x19, sp; ldr x16, [x28, #64]; mov sp, x16
            0x9100_03f3,
            ldr(16, 28, 64),
            0x9100_021f,
            bl(INITIALIZE, 6),
        ];
        assert_eq!(stores_of(&code), [(1, START)]);
        // The first field.
        let code = [adrp(0, ENTRY), ldr(0, 0, 0x38), bl(INITIALIZE, 2)];
        assert_eq!(stores_of(&code), [(0, START)]);
        // Another function.
        let other = [code[0], code[1], bl(INITIALIZE + 4, 2), bl(INITIALIZE, 3)];
        assert_eq!(stores_of(&other), []);
    }

    #[test]
    fn functions_are_found_behind_stubs() {
        const STUB: usize = START + 0x800;
        const TABLE: usize = 0x20_6020;
        let code = [adrp(0, ENTRY), ldr(0, 0, 0x38), bl(STUB, 2)];
        // adrp; ldr; add; br x17
        let plain = [
            adrp(16, TABLE),
            ldr(17, 16, 0x20),
            add(16, 16, 0x20),
            0xd61f_0220,
        ];
        let guarded = [0xd503_245f, plain[0], plain[1], plain[3]];
        for stub in [plain, guarded] {
            let load = |function: usize| {
                move |at: usize| match at {
                    ENTRY => Some(MODULE),
                    TABLE => Some(function),
                    STUB.. => {
                        let n = (at - STUB) / 4;
                        let [low, high] = [stub.get(n)?, stub.get(n + 1)?];
                        Some(*low as usize | (*high as usize) << 32)
                    }
                    _ => None,
                }
            };
            assert_eq!(stores_with(&code, load(INITIALIZE)), [(0, START)]);
            assert_eq!(stores_with(&code, load(INITIALIZE + 8)), []);
        }
    }
}
