//! How the program ends: exit codes are made here and nowhere else.

use std::process::ExitCode;

use anyhow::anyhow;

use crate::engine::Ended;
use crate::report::Summary;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Ok = 0,
    Local = 1,
    Usage = 2,
    SomeFailed = 3,
    NoExit = 4,
    OutOfTime = 5,
    Interrupted = 130,
    ReaderGone = 141,
    Terminated = 143,
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> ExitCode {
        ExitCode::from(code as u8)
    }
}

/// An error with the exit code it means.
pub(super) struct Stopped {
    pub(super) code: Code,
    pub(super) error: anyhow::Error,
}

impl Stopped {
    /// The command line, the settings or a list cannot be used; or this machine failed over it,
    /// which the same command may get over.
    pub(super) fn usage(error: impl Into<anyhow::Error>) -> Stopped {
        let error = error.into();
        let code = match error.chain().any(is_of_machine) {
            true => Code::Local,
            false => Code::Usage,
        };
        Stopped { code, error }
    }

    /// This machine cannot do it.
    pub(super) fn local(error: impl Into<anyhow::Error>) -> Stopped {
        Stopped {
            code: Code::Local,
            error: error.into(),
        }
    }
}

/// The system had no room for a file, or its disk failed; no file was named wrongly.
fn is_of_machine(cause: &(dyn std::error::Error + 'static)) -> bool {
    use rustix::io::Errno;
    const MACHINE: [Errno; 5] = [
        Errno::IO,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOSPC,
    ];
    let own = cause.downcast_ref::<std::io::Error>();
    let code = own.and_then(std::io::Error::raw_os_error);
    code.is_some_and(|code| MACHINE.iter().any(|errno| errno.raw_os_error() == code))
        // No thread.
        || own.is_some_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// A signal came before anything was sent; `what` had not happened yet.
pub(super) fn ended_before(ended: &Ended, what: &str) -> Stopped {
    Stopped {
        code: code_of(ended),
        error: anyhow!("stopped before {what}; nothing was sent"),
    }
}

/// Signals alone do not end the program. What the journal holds is whole lines all the same.
pub(super) fn end_here(ended: Ended) {
    let code = code_of(&ended);
    // Standard error may be what blocks, so nothing is said.
    std::process::exit(code as i32);
}

/// The exit code of a run that came to its end.
pub(super) fn code(ended: &Ended, summary: &Summary) -> Code {
    let totals = &summary.totals;
    match code_of(ended) {
        Code::Ok if totals.failed + totals.refused > 0 => Code::SomeFailed,
        code => code,
    }
}

/// What an end means whatever became of the entries.
pub(super) fn code_of(ended: &Ended) -> Code {
    match ended {
        Ended::Complete => Code::Ok,
        Ended::Local(_) => Code::Local,
        Ended::NoExit => Code::NoExit,
        Ended::OutOfTime => Code::OutOfTime,
        Ended::Interrupted => Code::Interrupted,
        Ended::Terminated => Code::Terminated,
        Ended::ReaderGone => Code::ReaderGone,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_the_machine_cannot_read_is_no_mistake_of_the_user() {
        let code = |errno| {
            let error = std::io::Error::from_raw_os_error(errno);
            Stopped::usage(anyhow::Error::from(error).context("cannot open urls.txt")).code
        };
        assert_eq!(code(2), Code::Usage, "ENOENT");
        assert_eq!(code(13), Code::Usage, "EACCES");
        assert_eq!(code(5), Code::Local, "EIO");
        assert_eq!(code(24), Code::Local, "EMFILE");
    }
}
