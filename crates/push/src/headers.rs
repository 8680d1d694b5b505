//! Additional headers of requests, mostly credentials.

use std::str::FromStr;

use hyper::HeaderMap;
use hyper::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue,
    TRANSFER_ENCODING,
};

/// Additional headers of all requests to a server. Their values are not printed, not even for debugging.
#[derive(Clone, Debug, Default)]
pub struct Headers(pub(crate) HeaderMap);

/// Error of headers that cannot be sent. It does not repeat them: they are secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidHeader {
    /// There is no separator.
    #[error("expected NAME: VALUE, such as 'Authorization: Bearer TOKEN'")]
    NoValue,
    /// In a list, there is no separator.
    #[error("expected NAME=VALUE,NAME=VALUE, with special characters percent-encoded")]
    NoListValue,
    /// The name is none.
    #[error("the name of the header has invalid characters")]
    Name,
    /// The value is none.
    #[error("the value of the header has invalid characters")]
    Value,
    /// The header belongs to the protocol.
    #[error("this header is set by heapline")]
    Reserved,
}

/// Headers that the protocols need.
const RESERVED: [HeaderName; 6] = [
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HOST,
    TRANSFER_ENCODING,
];

impl Headers {
    /// Parses a list as OpenTelemetry's environment variables have it: `name=value,name=value`, with
    /// special characters percent-encoded.
    pub fn parse_list(text: &str) -> Result<Self, InvalidHeader> {
        let mut headers = Self::default();
        for pair in text.split(',').filter(|pair| !pair.trim().is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(InvalidHeader::NoListValue)?;
            headers.insert(name, &percent_decoded(value.trim())?)?;
        }
        Ok(headers)
    }

    /// Adds headers; they replace those of the same name.
    pub fn extend(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            self.0.insert(name, value.clone());
        }
    }

    fn insert(&mut self, name: &str, value: &[u8]) -> Result<(), InvalidHeader> {
        let name = HeaderName::from_str(name.trim()).map_err(|_| InvalidHeader::Name)?;
        if RESERVED.contains(&name) {
            return Err(InvalidHeader::Reserved);
        }
        let mut value = HeaderValue::from_bytes(value).map_err(|_| InvalidHeader::Value)?;
        value.set_sensitive(true);
        self.0.insert(name, value);
        Ok(())
    }
}

impl FromStr for Headers {
    type Err = InvalidHeader;

    /// Parses one header: `Name: value`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, value) = text.split_once(':').ok_or(InvalidHeader::NoValue)?;
        let mut headers = Self::default();
        headers.insert(name, value.trim().as_bytes())?;
        Ok(headers)
    }
}

fn percent_decoded(text: &str) -> Result<Vec<u8>, InvalidHeader> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            let (high, low) = digit().zip(digit()).ok_or(InvalidHeader::NoListValue)?;
            u8::try_from(high * 16 + low).unwrap_or_default()
        } else {
            byte
        });
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed_as_curl_and_opentelemetry_write_them() {
        let one: Headers = "Authorization:  Bearer a:b ".parse().unwrap();
        assert_eq!(one.0["authorization"], "Bearer a:b");
        let list = "Authorization=Basic%20YTpi, x-scope-orgid = 7 ,";
        let mut list = Headers::parse_list(list).unwrap();
        assert_eq!(list.0["authorization"], "Basic YTpi");
        assert_eq!(list.0["x-scope-orgid"], "7");
        list.extend(&one);
        assert_eq!(list.0["authorization"], "Bearer a:b");
        assert_eq!(list.0.len(), 2);
    }

    #[test]
    fn secrets_are_neither_in_errors_nor_in_debug_output() {
        let headers: Headers = "Authorization: Bearer secret".parse().unwrap();
        assert!(!format!("{headers:?}").contains("secret"));
        for (text, expected) in [
            ("secret", InvalidHeader::NoValue),
            ("se cret: secret", InvalidHeader::Name),
            ("X: sec\nret", InvalidHeader::Value),
            ("Host: secret", InvalidHeader::Reserved),
        ] {
            let error = text.parse::<Headers>().unwrap_err();
            assert_eq!(error, expected);
            assert!(!error.to_string().contains("secret"));
        }
        for text in ["secret", "a=%2", "a=%zz"] {
            let error = Headers::parse_list(text).unwrap_err();
            assert_eq!(error, InvalidHeader::NoListValue);
        }
    }
}
