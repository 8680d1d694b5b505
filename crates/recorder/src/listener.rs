//! The thread with which a program waits for `heapline attach`.
//!
//! It does nothing until somebody connects. The program does not notice it, but for the number of its
//! threads: the thread blocks all signals, and has a descriptor table of its own. So the program's
//! descriptors have the numbers that they have without it, programs that close all descriptors do not
//! close its socket, and forked processes do not inherit it.

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::IntoRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

use crate::contained;
use crate::control::{
    FileView, Invalid, MAX_REQUEST, Outcome, Peer, Reply, Request, State, names, peer,
};
use crate::file::HAS_OWN_DESCRIPTORS;

/// Answers a request. The listener adds the [files](Reply::files).
pub type Handler = fn(&Request) -> Reply;

/// The name of the thread.
pub const THREAD_NAME: &str = "heapline";

/// Bytes of the thread's stack.
const STACK: usize = 256 * 1024;

/// The time in which a client must send its request: others wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(2);

/// The pause after an error that may go on, such as a system without memory.
const PAUSE: Duration = Duration::from_millis(100);

/// Errors of that sort in a row after which the thread gives up.
const MAX_ERRORS: usize = 100;

/// The user that stands for those that a user namespace does not know.
const UNMAPPED: u32 = 65534;

/// Starts to listen. The socket is there when this returns.
///
/// # Errors
///
/// There can be no such thread, or it cannot have its own descriptors (Linux before 5.9 under a seccomp
/// filter); then nothing has changed.
pub fn listen(handler: Handler) -> io::Result<()> {
    let (sender, receiver) = sync_channel(1);
    let builder = thread::Builder::new()
        .name(THREAD_NAME.to_owned())
        .stack_size(STACK);
    let run = move || {
        let listener = separate_descriptors().and_then(|()| bind());
        match listener {
            Ok(listener) => {
                let _ = sender.send(Ok(()));
                drop(sender);
                contained((), || serve(&listener, handler));
            }
            Err(error) => {
                let _ = sender.send(Err(error));
            }
        }
    };
    with_signals_blocked(|| builder.spawn(run))?;
    receiver.recv().map_err(io::Error::other)??;
    end_with_main_thread();
    Ok(())
}

/// The address at which this process listens.
static ADDRESS: Mutex<Option<SocketAddr>> = Mutex::new(None);

/// True once the main thread has ended.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Ends the listener when the main thread ends, as with `pthread_exit`: a process ends with its last thread,
/// which this one must not be.
fn end_with_main_thread() {
    extern "C" fn end(_: *mut c_void) {
        IS_ENDING.store(true, Ordering::Release);
        // The listener waits for a connection.
        contained((), || {
            if let Ok(address) = ADDRESS.try_lock()
                && let Some(address) = &*address
            {
                drop(UnixStream::connect_addr(address));
            }
        });
    }
    let mut key = 0;
    // SAFETY: the function is called when this thread ends, not when the process does.
    unsafe {
        let is_main = libc::syscall(libc::SYS_gettid) == libc::c_long::from(libc::getpid());
        if is_main && libc::pthread_key_create(&raw mut key, Some(end)) == 0 {
            libc::pthread_setspecific(key, std::ptr::without_provenance(1));
        }
    }
}

/// Calls a function while this thread, and threads that it starts, block all signals but those that the C
/// library needs.
fn with_signals_blocked<R>(f: impl FnOnce() -> R) -> R {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut before = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both are sets of signals.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = f();
    // SAFETY: it is the mask from before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut()) };
    result
}

/// Gives this thread a descriptor table of its own, without those of the program.
fn separate_descriptors() -> io::Result<()> {
    const ALL: libc::c_uint = libc::c_uint::MAX;
    // SAFETY: other threads keep their descriptors, and this one has used none yet.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            0 as libc::c_uint,
            ALL,
            libc::CLOSE_RANGE_UNSHARE,
        )
    };
    if result != 0 {
        unshare_descriptors()?;
    }
    HAS_OWN_DESCRIPTORS.set(true);
    // Nothing that is written by mistake shall go to a client.
    for _ in 0..3 {
        if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
            let _ = null.into_raw_fd();
        }
    }
    Ok(())
}

/// The same for kernels before 5.9.
fn unshare_descriptors() -> io::Result<()> {
    // SAFETY: asks for a descriptor table of its own.
    if unsafe { libc::unshare(libc::CLONE_FILES) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let numbers: Vec<i32> = std::fs::read_dir("/proc/thread-self/fd")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for number in numbers {
        // SAFETY: nothing in this thread uses it.
        unsafe { libc::close(number) };
    }
    Ok(())
}

fn bind() -> io::Result<UnixListener> {
    let mut result = Err(io::Error::from(io::ErrorKind::AddrInUse));
    for name in names(std::process::id()) {
        let address = SocketAddr::from_abstract_name(name)?;
        result = UnixListener::bind_addr(&address);
        match &result {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            _ => {
                if let Ok(mut own) = ADDRESS.try_lock() {
                    *own = Some(address);
                }
                break;
            }
        }
    }
    result
}

/// Answers clients, one after the other.
fn serve(listener: &UnixListener, handler: Handler) {
    let mut errors = 0;
    while errors < MAX_ERRORS && !IS_ENDING.load(Ordering::Acquire) {
        match listener.accept() {
            Ok(_) if IS_ENDING.load(Ordering::Acquire) => {}
            Ok((stream, _)) => {
                errors = 0;
                // A client that goes away or is too slow is its own problem.
                let _ = answer(stream, handler);
            }
            Err(_) => {
                errors += 1;
                thread::sleep(PAUSE);
            }
        }
    }
}

fn answer(mut stream: UnixStream, handler: Handler) -> io::Result<()> {
    let reply = if may_control(peer(&stream)?) {
        match Request::parse(&read(&mut stream)?) {
            Ok(request) => contained(None, || Some(handler(&request)))
                .unwrap_or_else(|| refused("the library in the program failed".to_owned())),
            // The client sees from the reply which version this is.
            Err(Invalid::Version(_)) => refused("another version".to_owned()),
            Err(Invalid::Malformed) => return Ok(()),
        }
    } else {
        refused("only the user of the program and root may attach to it".to_owned())
    };
    let files = FileView::own();
    stream.set_nonblocking(true)?;
    stream.write_all(&Reply { files, ..reply }.to_bytes())
}

fn refused(message: String) -> Reply {
    Reply {
        outcome: Outcome::Failed,
        state: State::Idle,
        files: FileView::default(),
        message,
    }
}

/// Reads a request, of limited size and in limited time.
fn read(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let end = Instant::now() + PATIENCE;
    let mut bytes = vec![0; MAX_REQUEST + 1];
    let mut len = 0;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || len > MAX_REQUEST {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

/// Returns true if a process may tell this one what to do: root, or the user of this process if that has no
/// rights that the user does not have.
fn may_control(peer: Peer) -> bool {
    if peer.user == 0 {
        return true;
    }
    let (mut real, mut effective, mut saved) = (0, 0, 0);
    // SAFETY: it writes three numbers.
    unsafe { libc::getresuid(&raw mut real, &raw mut effective, &raw mut saved) };
    let is_unknown = peer.user == UNMAPPED && peer.pid == 0;
    [real, effective, saved] == [peer.user; 3] && !is_unknown && !has_capabilities()
}

/// Returns true if this thread has capabilities, or if that is not known.
fn has_capabilities() -> bool {
    /// `_LINUX_CAPABILITY_VERSION_3`
    const VERSION: u32 = 0x2008_0522;
    let header: [u32; 2] = [VERSION, 0];
    // Effective, permitted and inheritable ones; lower and upper half.
    let mut sets = [[0_u32; 3]; 2];
    // SAFETY: these are the header and the data of that version, for this thread.
    let result = unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) };
    result != 0
        || sets
            .iter()
            .any(|[effective, permitted, _]| effective | permitted != 0)
}
