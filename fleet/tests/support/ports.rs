//! Ports of servers on this machine.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// After this long, what is waited for will not come.
pub const TIMEOUT: Duration = Duration::from_mins(1);

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
    let started = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            started.elapsed() < TIMEOUT,
            "nothing listens on port {port}"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}
