//! Servers with TLS. Run it with: cargo test -p heapline-push --features tls
#![cfg(feature = "tls")]

use crate::common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use heapline_push::{Endpoint, Protocol, deliver};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The URL that the process of [`child`] sends to.
const URL: &str = "HEAPLINE_TEST_URL";

fn file(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tls");
    PathBuf::from(folder).join(name)
}

/// Starts a server for `localhost` that takes everything, and returns its port.
fn serve() -> u16 {
    let certificates = CertificateDer::pem_file_iter(file("server.pem")).unwrap();
    let certificates = certificates.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut reader = BufReader::new(StreamOwned::new(connection, stream));
            let mut length = 0;
            let mut line = String::new();
            // A client that does not trust the server says nothing.
            while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            if length > 0 {
                reader.read_exact(&mut vec![0; length]).unwrap();
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
                reader.get_mut().write_all(answer).unwrap();
            }
        }
    });
    port
}

/// Sends a profile in a process of its own, which trusts the certificates in a file. Returns what it says.
fn send(url: &str, trusted: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::child", "--nocapture"])
        .env(URL, url)
        .env("SSL_CERT_FILE", file(trusted))
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let line = said.lines().find(|line| line.contains("sent: "));
    line.unwrap_or_else(|| panic!("{said}")).to_owned()
}

/// Not a test, but the process of those below.
#[test]
#[allow(clippy::print_stdout, reason = "read by the tests below")]
fn child() {
    let Ok(url) = std::env::var(URL) else { return };
    let endpoint = Endpoint::new(Protocol::Otlp, &url).unwrap();
    let message = endpoint.encode(&common::heap_profile(), &common::identity());
    let sent = deliver(&endpoint, &message, |reason, _| {
        panic!("tried again: {reason}")
    });
    println!("sent: {sent:?}");
}

#[test]
fn a_server_with_a_trusted_certificate_gets_profiles() {
    let port = serve();
    let said = send(&format!("https://localhost:{port}"), "ca.pem");
    assert!(said.contains("Ok(Delivered"), "{said}");
    let said = send(&format!("https://127.0.0.1:{port}"), "ca.pem");
    assert!(said.contains("Ok(Delivered"), "{said}");
}

#[test]
fn other_servers_get_nothing_and_are_not_tried_again() {
    let url = format!("https://localhost:{}", serve());
    let said = send(&url, "other-ca.pem");
    assert!(
        said.contains("Permanent") && said.contains("UnknownIssuer"),
        "{said}"
    );
    let said = send(&url, "server.key");
    assert!(said.contains("no trusted certificates found"), "{said}");
}
