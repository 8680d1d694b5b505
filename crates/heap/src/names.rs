//! Names of OCaml functions and modules, from the symbols of executables.

/// The name of a function: `Cache.add` for `camlCache__add_123` (up to OCaml 5.0) and `camlCache.add_123`.
///
/// ```
/// use heapline_heap::function_name;
///
/// assert_eq!(function_name("camlStdlib__Hashtbl__add_1093"), "Stdlib.Hashtbl.add");
/// assert_eq!(function_name("camlStdlib__Hashtbl.add_1093"), "Stdlib.Hashtbl.add");
/// assert_eq!(function_name("camlVec__$2b$2b_12"), "Vec.++");
/// assert_eq!(function_name("camlCache__fun_77"), "Cache.(fun)");
/// assert_eq!(function_name("Stdlib__List.init"), "Stdlib.List.init");
/// assert_eq!(function_name("caml_alloc_shr"), "caml_alloc_shr");
/// ```
#[must_use]
pub fn function_name(symbol: &str) -> String {
    let Some(name) = ocaml_symbol(symbol) else {
        // Debug information has no prefix and no number.
        return if symbol.starts_with(|c: char| c.is_ascii_uppercase()) {
            without_dune(symbol.replace("__", "."))
        } else {
            symbol.to_owned()
        };
    };
    // The number that makes a symbol unique.
    let name = match name.rsplit_once('_') {
        Some((name, number)) if is_number(number) && !name.is_empty() => name,
        _ => name,
    };
    let name = dotted(name);
    match name.rsplit_once('.') {
        Some((module, "fun" | "anon_fn")) => format!("{module}.(fun)"),
        _ => name,
    }
}

/// The name of a module: `Stdlib.Hashtbl` for `camlStdlib__Hashtbl`.
///
/// ```
/// assert_eq!(heapline_heap::module_name("camlStdlib__Hashtbl"), "Stdlib.Hashtbl");
/// assert_eq!(heapline_heap::module_name("camlCache__gc_roots"), "Cache");
/// ```
#[must_use]
pub fn module_name(symbol: &str) -> String {
    let Some(name) = ocaml_symbol(symbol) else {
        return symbol.to_owned();
    };
    let name = ["__gc_roots", ".gc_roots", "__data_begin", ".data_begin"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    dotted(name)
}

/// The rest of a symbol of OCaml code. The runtime's own functions begin with `caml_`.
fn ocaml_symbol(symbol: &str) -> Option<&str> {
    let name = symbol.strip_prefix("caml")?;
    name.starts_with(|c: char| c.is_ascii_uppercase())
        .then_some(name)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}

/// Decodes `$xx`, and separates the parts of a path by dots.
fn dotted(name: &str) -> String {
    let name = name.replace("__", ".");
    let mut out = String::with_capacity(name.len());
    let mut rest = name.as_str();
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 3);
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if byte.is_ascii_graphic() => {
                out.push(byte.into());
                rest = &rest[at + 3..];
            }
            _ => {
                out.push('$');
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    without_dune(out)
}

/// A name without the module that dune puts all modules of an executable into.
fn without_dune(name: String) -> String {
    match name.strip_prefix("Dune.exe.") {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_symbols_stay_readable() {
        for (symbol, expected) in [
            ("camlDune__exe__Main__go_5", "Main.go"),
            ("Dune__exe__Main.go", "Main.go"),
            ("camlA.f$", "A.f$"),
            ("camlA.f$é", "A.f$é"),
            ("camlA.f$00_1", "A.f$00"),
            ("caml", "caml"),
            ("", ""),
            ("main", "main"),
            ("camlCache__x_y_12", "Cache.x_y"),
        ] {
            assert_eq!(function_name(symbol), expected, "{symbol}");
        }
    }
}
