//! A thread that is stopped, and what it is made to do.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::arch::{self, CODE, Registers, Waiting};
use crate::process::{Process, is_caught};
use crate::{Error, Result, failed};

/// The event of a stop by `PTRACE_INTERRUPT`.
const EVENT_STOP: i32 = 128;

/// The time that a called function may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// All signals but those that the processor causes: the kernel would reset what the program does on
/// them if they were blocked.
const BLOCKED: u64 = !(1 << (libc::SIGTRAP - 1)
    | 1 << (libc::SIGSEGV - 1)
    | 1 << (libc::SIGBUS - 1)
    | 1 << (libc::SIGILL - 1)
    | 1 << (libc::SIGFPE - 1)
    | 1 << (libc::SIGSYS - 1));

const SET_MASK: u64 = libc::SIG_SETMASK as u64;

/// Memory of our own in the process: the code, and then room for saved registers and a stack.
const CODE_SIZE: u64 = 4096;
const AREA_SIZE: u64 = 1 << 20;
/// The part of the area for saved registers, which take 11 KiB with AMX of x86-64.
const SAVED_SIZE: u64 = 1 << 16;

/// A thread that is stopped, and goes on as it was when this is dropped.
#[derive(Debug)]
pub(crate) struct Stopped<'p> {
    process: &'p Process,
    tid: Pid,
    /// As it was stopped.
    pub(crate) registers: Registers,
    /// The system call that it was waiting in just before it was stopped.
    waiting: Option<Waiting>,
    /// True as long as it is in a system call that the kernel restarts.
    restarts: bool,
    /// A signal that came at the wrong time.
    held_back: Option<Signal>,
}

/// Memory of our own in the process, and the means to use it.
#[derive(Debug)]
pub(crate) struct Area<'t, 'p> {
    thread: &'t mut Stopped<'p>,
    /// The address of an instruction of the program for system calls.
    syscall: u64,
    code: u64,
    start: u64,
    /// The signal mask as it was.
    mask: Option<u64>,
}

/// A signal came before anything was done, and was delivered: try again later.
#[derive(Debug)]
pub(crate) struct Disturbed;

impl<'p> Stopped<'p> {
    /// Stops a thread. `None` if it has ended, or is stopped by a signal.
    pub(crate) fn new(process: &'p Process, tid: i32) -> Result<Option<Self>> {
        let tid = Pid::from_raw(tid);
        match ptrace::seize(tid, Options::PTRACE_O_TRACESYSGOOD) {
            Err(nix::Error::ESRCH) => return Ok(None),
            result => result.map_err(failed("trace the program"))?,
        }
        let task = format!("/proc/{}/task/{tid}/syscall", process.pid());
        let waiting = fs::read_to_string(task).ok();
        let waiting = waiting.and_then(|text| Waiting::parse(&text));
        match stop(tid) {
            Ok(registers) => Ok(Some(Self {
                process,
                tid,
                registers,
                waiting,
                restarts: false,
                held_back: None,
            })),
            Err(error) => {
                let _ = ptrace::detach(tid, None);
                match error {
                    Error::Ended => Ok(None),
                    error => Err(error),
                }
            }
        }
    }

    /// Its number.
    pub(crate) fn tid(&self) -> i32 {
        self.tid.as_raw()
    }

    /// The system call that it was waiting in just before it was stopped.
    pub(crate) fn waiting(&self) -> Option<Waiting> {
        self.waiting
    }

    /// It is in a system call that the kernel restarts.
    pub(crate) fn restarts(&mut self) {
        self.restarts = true;
    }

    /// Makes the thread do a system call, at any moment. If a signal comes before, it is delivered, and
    /// the thread is stopped again, elsewhere.
    fn system_call(
        &mut self,
        instruction: u64,
        number: i64,
        arguments: [u64; 6],
    ) -> Result<std::result::Result<u64, Disturbed>> {
        let mut registers = self.registers;
        arch::prepare_system_call(&mut registers, instruction, number, arguments);
        ptrace::setregs(self.tid, registers).map_err(failed("set registers"))?;
        let mut stops = 0;
        // Entry and exit.
        while stops < 2 {
            ptrace::syscall(self.tid, None).map_err(failed("resume the program"))?;
            match wait(self.tid)? {
                WaitStatus::PtraceSyscall(_) => stops += 1,
                WaitStatus::Stopped(_, signal) => {
                    // It has not done the call yet: the signal finds it where it was.
                    if std::mem::take(&mut self.restarts) {
                        let is_caught = is_caught(self.process.pid(), signal as i32);
                        arch::set_interrupted(&mut self.registers, is_caught);
                    }
                    ptrace::setregs(self.tid, self.registers).map_err(failed("set registers"))?;
                    ptrace::cont(self.tid, signal).map_err(failed("deliver a signal"))?;
                    self.registers = stop(self.tid)?;
                    return Ok(Err(Disturbed));
                }
                // All threads are being stopped. It stops when we let it go.
                WaitStatus::PtraceEvent(..) => {}
                _ => return Err(Error::Ended),
            }
        }
        let registers = ptrace::getregs(self.tid).map_err(failed("read registers"))?;
        Ok(Ok(arch::system_call_result(&registers)))
    }

    /// Makes the thread do a system call that may be done wherever it is.
    fn any_system_call(
        &mut self,
        instruction: u64,
        number: i64,
        arguments: [u64; 6],
    ) -> Result<u64> {
        loop {
            if let Ok(result) = self.system_call(instruction, number, arguments)? {
                return Ok(result);
            }
        }
    }

    /// Prepares memory in the process, and holds back signals until that is dropped. `syscall` is the
    /// address of such an instruction.
    pub(crate) fn area(
        &mut self,
        syscall: u64,
    ) -> Result<std::result::Result<Area<'_, 'p>, Disturbed>> {
        let readable = map(AREA_SIZE, libc::PROT_READ | libc::PROT_WRITE);
        let start = match self.system_call(syscall, libc::SYS_mmap, readable)? {
            Ok(start) => checked("map memory in the program", start)?,
            Err(disturbed) => return Ok(Err(disturbed)),
        };
        let mut area = Area {
            thread: self,
            syscall,
            code: 0,
            start,
            mask: None,
        };
        if let Err(disturbed) = area.block_signals()? {
            return Ok(Err(disturbed));
        }
        let executable = map(CODE_SIZE, libc::PROT_READ | libc::PROT_EXEC);
        let code = area.system_call(libc::SYS_mmap, executable)?;
        area.code = checked("map code in the program", code)?;
        area.thread.process.write(area.code, CODE)?;
        Ok(Ok(area))
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        // A system call that was interrupted is restarted by the kernel only on its way out of a stop
        // by an interrupt.
        let set = || ptrace::setregs(self.tid, self.registers).map_err(failed("set registers"));
        let _ = set().and_then(|()| {
            ptrace::interrupt(self.tid).map_err(failed("stop the program"))?;
            ptrace::cont(self.tid, None).map_err(failed("resume the program"))?;
            wait_for_stop(self.tid)
        });
        let _ = ptrace::detach(self.tid, None);
        if let Some(signal) = self.held_back {
            let _ = kill(Pid::from_raw(self.process.pid()), signal);
        }
    }
}

impl Area<'_, '_> {
    /// Makes the thread do a system call.
    pub(crate) fn system_call(&mut self, number: i64, arguments: [u64; 6]) -> Result<u64> {
        self.thread.any_system_call(self.syscall, number, arguments)
    }

    fn block_signals(&mut self) -> Result<std::result::Result<(), Disturbed>> {
        let at = self.start;
        self.thread.process.write(at, &BLOCKED.to_le_bytes())?;
        let arguments = [SET_MASK, at, at + 8, 8, 0, 0];
        let blocked = self
            .thread
            .system_call(self.syscall, libc::SYS_rt_sigprocmask, arguments)?;
        let Ok(result) = blocked else {
            return Ok(Err(Disturbed));
        };
        checked("block signals in the program", result)?;
        let mask = self.thread.process.word(at + 8);
        self.mask = Some(mask.map_err(failed("read the program's memory"))?);
        Ok(Ok(()))
    }

    /// Puts bytes, and a zero byte, where functions can read them; returns the address. The next ones
    /// overwrite them.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> Result<u64> {
        // Between the saved registers and the stack, which grows towards it.
        let at = self.start + SAVED_SIZE;
        let bytes = [bytes, &[0]].concat();
        if bytes.len() as u64 > AREA_SIZE / 4 {
            let error = std::io::ErrorKind::ArgumentListTooLong.into();
            return Err(Error::System("pass arguments", error));
        }
        self.thread.process.write(at, &bytes)?;
        Ok(at)
    }

    /// Calls a function with two arguments.
    pub(crate) fn call(&mut self, function: u64, arguments: [u64; 2]) -> Result<u64> {
        let tid = self.thread.tid;
        // The processor wants zeros where it saves registers.
        self.thread.process.write(self.start, &[0; 1024])?;
        let mut registers = self.thread.registers;
        let stack = self.start + AREA_SIZE - 256;
        arch::prepare_call(
            &mut registers,
            self.code,
            self.start,
            stack,
            function,
            arguments,
        );
        ptrace::setregs(tid, registers).map_err(failed("set registers"))?;
        ptrace::cont(tid, None).map_err(failed("resume the program"))?;
        let start = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            let flags = WaitPidFlag::__WALL | WaitPidFlag::WNOHANG;
            match waitpid(tid, Some(flags)).map_err(failed("wait for the program"))? {
                WaitStatus::StillAlive if start.elapsed() > PATIENCE => {
                    stop(tid)?;
                    return Err(Error::Lost);
                }
                WaitStatus::StillAlive => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(1));
                }
                WaitStatus::Stopped(_, Signal::SIGTRAP) => {
                    let registers = ptrace::getregs(tid).map_err(failed("read registers"))?;
                    return arch::call_result(&registers, self.code).ok_or(Error::Lost);
                }
                // The only signal that cannot be blocked and does not end the program.
                WaitStatus::Stopped(_, Signal::SIGSTOP) => {
                    self.thread.held_back = Some(Signal::SIGSTOP);
                    ptrace::cont(tid, None).map_err(failed("resume the program"))?;
                }
                WaitStatus::Stopped(..) => return Err(Error::Lost),
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Err(Error::Ended),
                _ => ptrace::cont(tid, None).map_err(failed("resume the program"))?,
            }
        }
    }
}

impl Drop for Area<'_, '_> {
    fn drop(&mut self) {
        let unmap = |address, size| [address, size, 0, 0, 0, 0];
        if self.code != 0 {
            let _ = self.system_call(libc::SYS_munmap, unmap(self.code, CODE_SIZE));
        }
        let at = self.start;
        if let Some(mask) = self.mask
            && self.thread.process.write(at, &mask.to_le_bytes()).is_ok()
        {
            let arguments = [SET_MASK, at, 0, 8, 0, 0];
            let _ = self.system_call(libc::SYS_rt_sigprocmask, arguments);
        }
        let _ = self.system_call(libc::SYS_munmap, unmap(self.start, AREA_SIZE));
    }
}

fn map(size: u64, protection: i32) -> [u64; 6] {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    [
        0,
        size,
        u64::from(protection.cast_unsigned()),
        u64::from(flags.cast_unsigned()),
        u64::MAX,
        0,
    ]
}

/// The result of a system call, if it is no error.
pub(crate) fn checked(what: &'static str, result: u64) -> Result<u64> {
    let signed = result.cast_signed();
    if (-4095..0).contains(&signed) {
        let errno = i32::try_from(-signed).unwrap_or(0);
        return Err(Error::System(
            what,
            std::io::Error::from_raw_os_error(errno),
        ));
    }
    Ok(result)
}

/// Stops a traced thread that runs; returns its registers. An error if it has ended, or is stopped by a
/// signal, which is not ours to end.
fn stop(tid: Pid) -> Result<Registers> {
    ptrace::interrupt(tid).map_err(failed("stop the program"))?;
    wait_for_stop(tid)?;
    ptrace::getregs(tid).map_err(failed("read registers"))
}

/// Waits for the stop that was asked for, and delivers signals that come before it.
fn wait_for_stop(tid: Pid) -> Result<()> {
    loop {
        match wait(tid)? {
            WaitStatus::PtraceEvent(_, Signal::SIGTRAP, EVENT_STOP) => return Ok(()),
            WaitStatus::Stopped(_, signal) => {
                ptrace::cont(tid, signal).map_err(failed("deliver a signal"))?;
            }
            WaitStatus::PtraceSyscall(_) => {
                ptrace::cont(tid, None).map_err(failed("resume the program"))?;
            }
            _ => return Err(Error::Ended),
        }
    }
}

fn wait(tid: Pid) -> Result<WaitStatus> {
    loop {
        match waitpid(tid, Some(WaitPidFlag::__WALL)) {
            Err(nix::Error::EINTR) => {}
            result => return result.map_err(failed("wait for the program")),
        }
    }
}
