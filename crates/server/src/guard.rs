//! Access control.
//!
//! A page of a stranger that is open in the user's browser can send requests to this server. It
//! cannot read the answers, unless its name is made to point here (DNS rebinding): then the name in
//! `Host` is the stranger's. So on loopback only names of this machine are answered. Elsewhere a
//! name tells nothing, and a secret is needed that only the printed address has.

use std::net::Ipv4Addr;

use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, StatusCode, Uri};
use subtle::ConstantTimeEq;

use crate::error::ApiError;

/// Checks a request before anything else.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// The secret; none on loopback.
    token: Option<String>,
}

impl Guard {
    /// For a server that only this machine can reach.
    pub(crate) fn loopback() -> Self {
        Self { token: None }
    }

    /// For a server that other machines can reach.
    pub(crate) fn with_token() -> std::io::Result<Self> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        let token = format!("{:032x}", u128::from_le_bytes(bytes));
        Ok(Self { token: Some(token) })
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Refuses what does not come from the page itself or from a program of the user.
    pub(crate) fn check(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        is_api: bool,
    ) -> Result<(), ApiError> {
        let host = one(headers, &HOST)?.ok_or_else(|| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                "no_host",
                "the request has no Host header",
            )
        })?;
        if uri.authority().is_some_and(|given| given.as_str() != host) {
            return Err(forbidden("the URL and the Host header differ"));
        }
        if self.token.is_none() && !is_loopback(host) {
            return Err(forbidden(
                "this server answers to addresses of this machine, such as 127.0.0.1, and localhost \
                 only; to reach it by another name, start it with --listen",
            ));
        }
        if let Some(origin) = one(headers, &ORIGIN)?
            && !is_same_origin(origin, host)
        {
            return Err(forbidden("cross-site requests are not allowed"));
        }
        if !is_api {
            // The page itself is no secret, and links to it may be anywhere.
            return Ok(());
        }
        if one(headers, &HeaderName::from_static("sec-fetch-site"))? == Some("cross-site") {
            return Err(forbidden("cross-site requests are not allowed"));
        }
        let Some(token) = &self.token else {
            return Ok(());
        };
        let given = one(headers, &AUTHORIZATION)?
            .and_then(|value| value.strip_prefix("Bearer "))
            .unwrap_or_default();
        if given.as_bytes().ct_eq(token.as_bytes()).into() {
            Ok(())
        } else {
            Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "missing or invalid token; open the complete URL that was printed",
            ))
        }
    }
}

/// The value of a header that must not be there twice.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let bad = || {
        ApiError::new(
            StatusCode::BAD_REQUEST,
            "bad_header",
            format!("invalid header {name}"),
        )
    };
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| bad()),
        _ => Err(bad()),
    }
}

fn forbidden(message: &str) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
}

/// Returns true if a host, with or without a port, is this machine. The port may be that of a
/// tunnel.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let is_address = || {
        name.parse()
            .is_ok_and(|address: Ipv4Addr| address.is_loopback())
    };
    name.eq_ignore_ascii_case("localhost") || name == "[::1]" || is_address()
}

fn is_same_origin(origin: &str, host: &str) -> bool {
    ["http://", "https://"]
        .iter()
        .any(|scheme| origin.strip_prefix(scheme) == Some(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, pairs: &[(&'static str, &str)]) -> Result<(), StatusCode> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        guard
            .check(&Uri::from_static("/api/v1/info"), &headers, true)
            .map_err(|error| error.status())
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let guard = Guard::loopback();
        for host in [
            "127.0.0.1:8080",
            "localhost",
            "LOCALHOST:1",
            "[::1]:8080",
            "[::1]",
            "127.0.0.2:8080",
            "127.255.255.254",
        ] {
            assert_eq!(check(&guard, &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1:80:80",
            "localhost:evil",
            "localhost:",
            "",
            "::1",
            "128.0.0.1",
            "0.0.0.0",
            "127.1",
            "127.0.0.1.",
        ] {
            let refused = Err(StatusCode::FORBIDDEN);
            assert_eq!(check(&guard, &[("host", host)]), refused, "{host}");
        }
        assert_eq!(check(&guard, &[]), Err(StatusCode::BAD_REQUEST));
        let twice = [("host", "localhost"), ("host", "localhost")];
        assert_eq!(check(&guard, &twice), Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn other_pages_are_refused() {
        let guard = Guard::loopback();
        let from = |origin| check(&guard, &[("host", "localhost:8080"), ("origin", origin)]);
        assert_eq!(from("http://localhost:8080"), Ok(()));
        for origin in [
            "http://localhost:8081",
            "http://127.0.0.1:8080",
            "https://evil.example",
            "null",
            "file://",
        ] {
            assert_eq!(from(origin), Err(StatusCode::FORBIDDEN), "{origin}");
        }
        let embedded = [("host", "localhost"), ("sec-fetch-site", "cross-site")];
        assert_eq!(check(&guard, &embedded), Err(StatusCode::FORBIDDEN));
    }

    #[test]
    fn elsewhere_the_token_is_needed() {
        let guard = Guard::with_token().unwrap();
        let token = format!("Bearer {}", guard.token().unwrap());
        assert_eq!(token.len(), "Bearer ".len() + 32);
        let ask = |authorization: &str| {
            check(
                &guard,
                &[("host", "box:1"), ("authorization", authorization)],
            )
        };
        assert_eq!(ask(&token), Ok(()));
        assert_eq!(
            ask(&token[..token.len() - 1]),
            Err(StatusCode::UNAUTHORIZED)
        );
        assert_eq!(
            ask(&token.replace("Bearer", "Basic")),
            Err(StatusCode::UNAUTHORIZED)
        );
        assert_eq!(ask("Bearer "), Err(StatusCode::UNAUTHORIZED));
        assert_eq!(
            check(&guard, &[("host", "box:1")]),
            Err(StatusCode::UNAUTHORIZED)
        );
        assert_ne!(guard.token(), Guard::with_token().unwrap().token());
    }
}
