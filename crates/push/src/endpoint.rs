//! Servers, and the protocols that they speak.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery};

use crate::headers::Headers;
use crate::heap_profile::HeapProfile;
use crate::identity::Identity;
use crate::message::Message;
use crate::{otlp, parca, pyroscope};

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// OpenTelemetry profiles over HTTP
    Otlp,
    /// Pyroscope's /ingest, with pprof profiles
    Pyroscope,
    /// Parca's `WriteRaw`, with pprof profiles
    Parca,
}

impl Protocol {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Otlp => "otlp",
            Self::Pyroscope => "pyroscope",
            Self::Parca => "parca",
        }
    }
}

/// A server that profiles are sent to.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its protocol.
    pub protocol: Protocol,
    /// Additional headers of all requests.
    pub headers: Headers,
    pub(crate) is_tls: bool,
    pub(crate) authority: Authority,
    /// The path that those of the protocol are appended to, without a slash at its end.
    path: String,
}

/// Error of a URL that profiles cannot be sent to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    /// There is no protocol before it.
    #[error(
        "expected PROTOCOL=URL with one of otlp, pyroscope and parca, such as otlp=http://localhost:4318"
    )]
    NoProtocol,
    /// It is no URL of a server.
    #[error("expected a URL, such as http://localhost:4318")]
    NotAUrl,
    /// It has a name or password.
    #[error(
        "a URL with credentials is visible to other users of the machine; give them in a header: \
             HEAPLINE_PUSH_HEADERS='Authorization=Basic%20...'"
    )]
    Credentials,
    /// It has a query.
    #[error("the URL cannot have a query; use --label for labels")]
    Query,
    /// This build has no TLS.
    #[error(
        "https needs a build with TLS: cargo install --path crates/cli --features tls; or send to http through a \
             local collector"
    )]
    NoTls,
}

impl Endpoint {
    /// A server at a URL.
    ///
    /// # Errors
    ///
    /// The URL is invalid, or has `https` without the feature `tls`.
    pub fn new(protocol: Protocol, url: &str) -> Result<Self, InvalidUrl> {
        let uri: Uri = url.trim().parse().map_err(|_| InvalidUrl::NotAUrl)?;
        let parts = uri.into_parts();
        let scheme = parts.scheme.ok_or(InvalidUrl::NotAUrl)?;
        let is_tls = match scheme.as_str() {
            "http" => false,
            "https" if cfg!(feature = "tls") => true,
            "https" => return Err(InvalidUrl::NoTls),
            _ => return Err(InvalidUrl::NotAUrl),
        };
        let authority = parts.authority.ok_or(InvalidUrl::NotAUrl)?;
        if authority.as_str().contains('@') {
            return Err(InvalidUrl::Credentials);
        }
        let path = parts.path_and_query;
        if path.as_ref().and_then(PathAndQuery::query).is_some() {
            return Err(InvalidUrl::Query);
        }
        let path = path.as_ref().map_or("", PathAndQuery::path);
        Ok(Self {
            protocol,
            headers: Headers::default(),
            is_tls,
            authority,
            path: path.trim_end_matches('/').to_owned(),
        })
    }

    /// The message with a profile, for this server.
    #[must_use]
    pub fn encode(&self, profile: &HeapProfile, identity: &Identity) -> Message {
        match self.protocol {
            Protocol::Otlp => otlp::message(profile, identity),
            Protocol::Pyroscope => pyroscope::message(profile, identity),
            Protocol::Parca => parca::message(profile, identity),
        }
    }

    /// The host, without the brackets of IPv6 addresses.
    pub(crate) fn host(&self) -> &str {
        let host = self.authority.host();
        host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(crate) fn port(&self) -> u16 {
        let default = if self.is_tls { 443 } else { 80 };
        self.authority.port_u16().unwrap_or(default)
    }

    /// The path of a request. URLs that already have the path of the protocol are taken as they are.
    pub(crate) fn target(&self, path: &str) -> String {
        let (path, query) = path
            .split_once('?')
            .map_or((path, None), |(p, q)| (p, Some(q)));
        let base = self.path.strip_suffix(path).unwrap_or(&self.path);
        match query {
            Some(query) => format!("{base}{path}?{query}"),
            None => format!("{base}{path}"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        let (authority, path) = (&self.authority, &self.path);
        write!(f, "{scheme}://{authority}{path}")
    }
}

impl FromStr for Endpoint {
    type Err = InvalidUrl;

    /// Parses `PROTOCOL=URL`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (protocol, url) = text.split_once('=').ok_or(InvalidUrl::NoProtocol)?;
        let protocol = Protocol::from_str(protocol, false).map_err(|_| InvalidUrl::NoProtocol)?;
        Self::new(protocol, url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_appended_once() {
        for (url, host, port, target) in [
            ("http://collector:4318", "collector", 4318, "/v1/x"),
            ("http://collector/", "collector", 80, "/v1/x"),
            ("http://[::1]:9/a/b/", "::1", 9, "/a/b/v1/x"),
            ("http://collector/otlp/v1/x", "collector", 80, "/otlp/v1/x"),
        ] {
            let endpoint: Endpoint = format!("otlp={url}").parse().unwrap();
            assert_eq!((endpoint.host(), endpoint.port()), (host, port), "{url}");
            assert_eq!(endpoint.target("/v1/x"), target, "{url}");
        }
        let endpoint = Endpoint::new(Protocol::Pyroscope, "http://p/ingest").unwrap();
        assert_eq!(endpoint.target("/ingest?name=a"), "/ingest?name=a");
        assert_eq!(endpoint.to_string(), "http://p/ingest");
    }

    #[test]
    fn urls_that_nothing_can_be_sent_to_are_refused() {
        for (text, expected) in [
            ("http://localhost", InvalidUrl::NoProtocol),
            ("zipkin=http://localhost", InvalidUrl::NoProtocol),
            ("otlp=localhost:4318", InvalidUrl::NotAUrl),
            ("otlp=", InvalidUrl::NotAUrl),
            ("otlp=/tmp", InvalidUrl::NotAUrl),
            ("otlp=ftp://localhost", InvalidUrl::NotAUrl),
            ("parca=http://me:secret@localhost", InvalidUrl::Credentials),
            ("pyroscope=http://localhost?name=a", InvalidUrl::Query),
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap_err(), expected, "{text}");
        }
        let secure = "otlp=https://localhost".parse::<Endpoint>();
        assert_eq!(secure.is_ok(), cfg!(feature = "tls"));
    }
}
