//! Any messages of a client: they are answered or refused, and what is parsed is printed as the same.

use heapline_sturgeon::{Outline, Session, Sexp};

/// Runs the target on an input.
pub fn run(bytes: &[u8]) {
    let mut session = Session::new(
        "fuzz",
        Box::new(|| {
            let mut outline = Outline::new("total");
            let site = outline.add(0, "a", "site ±");
            outline.add(site, "b", "caller");
            Ok(outline)
        }),
    );
    let mut answers = Vec::new();
    for line in bytes.split(|&byte| byte == b'\n') {
        if let Ok(sexp) = Sexp::parse(line) {
            assert_eq!(Sexp::parse(sexp.to_string().as_bytes()), Ok(sexp));
        }
        if !session.receive(line, &mut answers).unwrap_or(false) {
            break;
        }
    }
    for answer in answers {
        assert!(!answer.to_string().contains('\n'));
    }
}
