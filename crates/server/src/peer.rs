//! The user at the other end of a connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::OnceLock;

/// The other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    /// The addresses of both ends, if the connection still has them.
    ends: Option<Ends>,
    is_same_user: OnceLock<bool>,
}

/// The addresses of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    server: SocketAddr,
    client: SocketAddr,
}

/// True where the user of a client can be found out.
pub(crate) const IS_KNOWN: bool = cfg!(target_os = "linux");

/// The kernel's tables of connections.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The user that processes of other user namespaces have.
const UNMAPPED: u32 = 65_534;

impl Peer {
    pub(crate) fn new(stream: &tokio::net::TcpStream) -> Self {
        let ends = match (stream.local_addr(), stream.peer_addr()) {
            (Ok(server), Ok(client)) => Some(Ends {
                server: canonical(server),
                client: canonical(client),
            }),
            _ => None,
        };
        Self {
            ends,
            is_same_user: OnceLock::new(),
        }
    }

    /// A client that nothing is known of.
    #[cfg(test)]
    pub(crate) fn stranger() -> Self {
        Self {
            ends: None,
            is_same_user: OnceLock::from(false),
        }
    }

    #[cfg(test)]
    pub(crate) fn same_user() -> Self {
        Self {
            ends: None,
            is_same_user: OnceLock::from(true),
        }
    }

    /// Returns true if the client is a process of this machine, of the user that this process runs as. False where that
    /// is not known.
    pub(crate) fn is_same_user(&self) -> bool {
        *self.is_same_user.get_or_init(|| {
            let user = self.ends.and_then(user_of);
            user.is_some_and(|user| user != UNMAPPED && Some(user) == own_user())
        })
    }
}

/// The user who made the client's end of a connection, if that is on this machine.
fn user_of(ends: Ends) -> Option<u32> {
    TABLES.iter().find_map(|table| {
        let table = std::fs::read_to_string(table).ok()?;
        table.lines().find_map(|line| user_in(line, ends))
    })
}

/// The user in a line of a table, if the line is about the client's end of the connection.
///
/// A socket that its process has closed has no inode, and its user reads as root.
fn user_in(line: &str, ends: Ends) -> Option<u32> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let client = address(fields.next()?)?;
    let server = address(fields.next()?)?;
    if (Ends { server, client }) != ends {
        return None;
    }
    // State, queues, timer and retransmissions are between.
    let user = fields.nth(4)?.parse().ok()?;
    let inode = fields.nth(1)?;
    (inode != "0").then_some(user)
}

/// An address as the tables write it: words in the machine's byte order as hexadecimal numbers, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |n: usize| {
        let digits = address.get(8 * n..8 * (n + 1))?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    let ip = match address.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (n, part) in bytes.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(n)?);
            }
            IpAddr::from(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(canonical(SocketAddr::new(ip, port)))
}

/// The same address, without the form that IPv6 sockets have for IPv4 addresses, and without a scope.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(target_os = "linux")]
fn own_user() -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    std::fs::metadata("/proc/self").ok().map(|data| data.uid())
}

#[cfg(not(target_os = "linux"))]
fn own_user() -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(server: &str, client: &str) -> Ends {
        Ends {
            server: server.parse().unwrap(),
            client: client.parse().unwrap(),
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_line_of_the_client_has_the_user() {
        let line = "   1: 0100007F:D2F0 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 31337 1 0 20";
        let own = ends("127.0.0.1:8080", "127.0.0.1:54000");
        assert_eq!(user_in(line, own), Some(1000));
        // The server's own end has the same addresses the other way round.
        assert_eq!(
            user_in(line, ends("127.0.0.1:54000", "127.0.0.1:8080")),
            None
        );
        assert_eq!(
            user_in(line, ends("127.0.0.1:8080", "127.0.0.1:54001")),
            None
        );
        // Closed by its process.
        assert_eq!(user_in(&line.replace("31337", "0"), own), None);
        for end in 0..line.len() - "31337 1 0 20".len() {
            assert_eq!(user_in(&line[..end], own), None, "{end}");
        }
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";
        assert_eq!(user_in(head, own), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn addresses_of_both_families_are_read() {
        let read = |text| address(text).map(|address| address.to_string());
        assert_eq!(read("0100007F:1F90").as_deref(), Some("127.0.0.1:8080"));
        let local = "00000000000000000000000001000000:1F90";
        assert_eq!(read(local).as_deref(), Some("[::1]:8080"));
        let mapped = "0000000000000000FFFF00000100007F:1F90";
        assert_eq!(read(mapped).as_deref(), Some("127.0.0.1:8080"));
        for text in [
            "",
            ":",
            "0100007F",
            "0100007F:",
            "0100007:1F90",
            "é100007F:1",
            "+100007F:1F90:",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_connection_of_this_process_is_of_the_same_user() {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            for ip in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
                let Ok(listener) = tokio::net::TcpListener::bind(ip).await else {
                    // Without IPv6.
                    assert!(ip.contains("::"));
                    continue;
                };
                let port = listener.local_addr().unwrap().port();
                let host = if ip.contains("::1") {
                    "::1"
                } else {
                    "127.0.0.1"
                };
                let client = tokio::net::TcpStream::connect((host, port)).await.unwrap();
                let (stream, _) = listener.accept().await.unwrap();
                assert!(Peer::new(&stream).is_same_user(), "{ip}");
                // Closed: the user is no longer known.
                drop(client);
                assert!(!Peer::new(&stream).is_same_user(), "{ip}");
            }
        });
        assert!(!Peer::stranger().is_same_user());
    }
}
