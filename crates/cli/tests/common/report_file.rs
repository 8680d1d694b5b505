//! Reads report files.

use std::io::Read as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

/// The data of a report file.
pub(crate) fn embedded(page: &str) -> Value {
    let (_, data) = page
        .split_once("<script id=\"heapline-report\" type=\"application/json\">")
        .unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    serde_json::from_str(data).unwrap()
}

/// The answer of a report file to a question.
pub(crate) fn unpacked(data: &Value, question: &str) -> Value {
    let groups = data["groups"].as_array().unwrap();
    let (group, place) = groups
        .iter()
        .find_map(|group| {
            let mut questions = group["questions"].as_array()?.iter();
            Some((group, questions.position(|one| one == question)?))
        })
        .unwrap_or_else(|| panic!("{question}"));
    let packed = BASE64_STANDARD
        .decode(group["answers"].as_str().unwrap())
        .unwrap();
    let mut text = String::new();
    flate2::read::DeflateDecoder::new(&packed[..])
        .read_to_string(&mut text)
        .unwrap();
    let answers: Value = serde_json::from_str(&text).unwrap();
    answers[place].clone()
}
