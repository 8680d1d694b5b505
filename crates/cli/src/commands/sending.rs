//! Options of all commands that send profiles to a server.

use std::env;

use anyhow::Context;
use heapline_push::{Endpoint, Headers, Identity, Label, Protocol};

/// Headers for all requests: `NAME=VALUE,NAME=VALUE`, percent-encoded.
const HEADERS: &str = "HEAPLINE_PUSH_HEADERS";

/// Those of OpenTelemetry, the more specific one last.
const OTLP_HEADERS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_PROFILES_HEADERS",
];

/// Removes the variables with headers from the environment of a program that is recorded: credentials are none of its
/// business. Those of OpenTelemetry may be meant for the program itself, unless they are what is sent to the servers.
#[cfg(recording)]
pub(super) fn hide_credentials<'a>(
    command: &mut std::process::Command,
    mut servers: impl Iterator<Item = &'a Endpoint>,
) {
    if env::var_os(HEADERS).is_none() && servers.any(|server| server.protocol == Protocol::Otlp) {
        for variable in OTLP_HEADERS {
            command.env_remove(variable);
        }
    }
    command.env_remove(HEADERS);
}

/// The identity of the program, and credentials.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Sending {
    /// Send an additional header with profiles, such as 'X-Scope-OrgID: 7'
    ///
    /// Other users of the machine can see command lines: give secrets in the environment variable
    /// `HEAPLINE_PUSH_HEADERS`, or for otlp `OTEL_EXPORTER_OTLP_HEADERS`, as NAME=VALUE,NAME=VALUE with
    /// special characters percent-encoded.
    // Parsed later: an error of the argument parser would print it.
    #[arg(long, help_heading = "Push", value_name = "HEADER")]
    header: Vec<String>,

    /// Add a label to the profiles, such as env=production
    #[arg(long, help_heading = "Push", value_name = "NAME=VALUE")]
    label: Vec<Label>,

    /// Name the service that the profiles are of [default: the name of the program]
    #[arg(long, help_heading = "Push", value_name = "NAME")]
    service: Option<String>,
}

impl Sending {
    #[cfg(recording)]
    pub(super) fn is_default(&self) -> bool {
        self.header.is_empty() && self.label.is_empty() && self.service.is_none()
    }

    pub(super) fn identity(&self) -> Identity {
        Identity {
            service: self.service.clone(),
            labels: self.label.clone(),
        }
    }

    /// The server with the headers of the user.
    pub(super) fn endpoint(&self, mut endpoint: Endpoint) -> anyhow::Result<Endpoint> {
        let otlp = match endpoint.protocol {
            Protocol::Otlp => &OTLP_HEADERS[..],
            Protocol::Pyroscope | Protocol::Parca => &[],
        };
        for variable in otlp.iter().chain([&HEADERS]) {
            if let Some(list) = env::var_os(variable) {
                let list = Headers::parse_list(&list.to_string_lossy());
                let list = list.with_context(|| format!("cannot use {variable}"))?;
                endpoint.headers.extend(&list);
            }
        }
        for header in &self.header {
            let header: Headers = header.parse().context("cannot use --header")?;
            endpoint.headers.extend(&header);
        }
        Ok(endpoint)
    }
}
