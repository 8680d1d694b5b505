//! Access control.
//!
//! A page of a stranger that is open in the user's browser can send requests to this server. It
//! cannot read the answers, unless its name is made to point here (DNS rebinding): then the name in
//! `Host` is the stranger's. So on loopback only names of this machine are answered.
//!
//! Other users of the machine can connect as well, and so can other machines if the server listens elsewhere: they need
//! the token, which only the printed address has. Processes of the same user can read the traces anyway, and need none.

use std::net::{IpAddr, Ipv4Addr};

use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, StatusCode, Uri};
use subtle::ConstantTimeEq;

use crate::error::ApiError;
use crate::peer::Peer;

/// Checks a request before anything else.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// The secret; `None` if all who can connect may ask.
    token: Option<String>,
    /// True if only this machine can connect.
    is_loopback: bool,
}

impl Guard {
    /// For a server on this address.
    pub(crate) fn new(ip: IpAddr) -> std::io::Result<Self> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
        let token = format!("{:032x}", u128::from_le_bytes(bytes));
        Ok(Self {
            token: Some(token),
            is_loopback: ip.is_loopback(),
        })
    }

    /// Answers all users of this machine, if no other machine can connect.
    pub(crate) fn without_token(self) -> Self {
        Self {
            token: self.token.filter(|_| !self.is_loopback),
            ..self
        }
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
        peer: &Peer,
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
        if self.is_loopback && !is_loopback(host) {
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
        // By another name it could be a page of a stranger in a browser of the same user.
        let is_allowed = given.as_bytes().ct_eq(token.as_bytes()).into()
            || (is_loopback(host) && peer.is_same_user());
        if is_allowed {
            return Ok(());
        }
        Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "missing or invalid token; open the complete URL that was printed",
        ))
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
        check_from(&Peer::stranger(), guard, pairs)
    }

    fn check_from(
        peer: &Peer,
        guard: &Guard,
        pairs: &[(&'static str, &str)],
    ) -> Result<(), StatusCode> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        guard
            .check(&Uri::from_static("/api/v1/info"), &headers, true, peer)
            .map_err(|error| error.status())
    }

    fn on(ip: &str) -> Guard {
        Guard::new(ip.parse().unwrap()).unwrap()
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        let guard = on("127.0.0.1").without_token();
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
        let guard = on("127.0.0.1").without_token();
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
    fn strangers_need_the_token() {
        for ip in ["127.0.0.1", "::1", "0.0.0.0", "192.0.2.1"] {
            let guard = on(ip);
            let token = format!("Bearer {}", guard.token().unwrap());
            assert_eq!(token.len(), "Bearer ".len() + 32);
            let ask = |authorization: &str| {
                let host = ("host", "localhost:1");
                check(&guard, &[host, ("authorization", authorization)])
            };
            let refused = Err(StatusCode::UNAUTHORIZED);
            assert_eq!(ask(&token), Ok(()));
            assert_eq!(ask(&token[..token.len() - 1]), refused);
            assert_eq!(ask(&token.replace("Bearer", "Basic")), refused);
            assert_eq!(ask("Bearer "), refused);
            assert_eq!(check(&guard, &[("host", "localhost:1")]), refused);
            assert_ne!(guard.token(), on(ip).token());
        }
    }

    #[test]
    fn the_same_user_needs_no_token_by_names_of_this_machine() {
        let peer = Peer::same_user();
        let ask = |guard: &Guard, host| check_from(&peer, guard, &[("host", host)]);
        assert_eq!(ask(&on("127.0.0.1"), "localhost:1"), Ok(()));
        assert_eq!(ask(&on("0.0.0.0"), "127.0.0.1:1"), Ok(()));
        let refused = Err(StatusCode::UNAUTHORIZED);
        assert_eq!(ask(&on("0.0.0.0"), "evil.example"), refused);
    }

    #[test]
    fn only_servers_on_loopback_can_be_without_token() {
        assert_eq!(on("127.0.0.1").without_token().token(), None);
        assert!(on("0.0.0.0").without_token().token().is_some());
    }
}
