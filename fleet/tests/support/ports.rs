//! Ports of servers on this machine.

use std::net::{TcpListener, TcpStream};

/// A port that nobody uses now.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// Waits until a server listens on a port.
pub fn wait_for(port: u16) {
    heapline_testkit::wait(&format!("a server on port {port}"), || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
}
