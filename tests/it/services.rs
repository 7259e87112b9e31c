//! Servers of Debian as processes of the tests: each with a port and a directory of its own,
//! killed when its value goes, also on a panic.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longest that a server may take until it accepts.
const START: Duration = Duration::from_secs(30);

/// A server that accepts connections.
pub struct Service {
    pub address: SocketAddr,
    child: Child,
    dir: tempfile::TempDir,
    /// What it passes requests on to, if that is one of ours.
    behind: Option<Box<Service>>,
}

/// Where a server that is about to start may keep its files and listen.
pub struct Place<'a> {
    pub dir: &'a Path,
    pub port: u16,
    /// The program itself.
    pub program: &'a Path,
}

impl Place<'_> {
    /// Writes a file of the server.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // It leads a group of its own, so its children go with it.
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = std::fs::read_to_string(self.dir.path().join("output"));
            eprintln!("the server said:\n{}", said.unwrap_or_default());
        }
    }
}

impl Service {
    /// Starts `name`, or says that it is not there.
    pub fn start(name: &str, command: impl FnOnce(&Place<'_>) -> Command) -> Option<Service> {
        let Some(program) = find(name) else {
            eprintln!("{name} is not installed: this test is left out (test.sh installs it)");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let address = free_address();
        // A server that gives up root must still reach its own files.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(dir.path(), open).unwrap();
        let output = File::create(dir.path().join("output")).unwrap();
        let place = Place {
            dir: dir.path(),
            port: address.port(),
            program: &program,
        };
        let child = command(&place)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .process_group(0)
            .spawn()
            .unwrap();
        let mut service = Service {
            address,
            child,
            dir,
            behind: None,
        };
        service.wait_until_it_accepts(name);
        Some(service)
    }

    /// Keeps `behind` running for as long as this one.
    pub fn in_front_of(mut self, behind: Service) -> Service {
        self.behind = Some(Box::new(behind));
        self
    }

    /// A file of its directory; what it printed is in `output`.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join(name)).unwrap()
    }

    fn wait_until_it_accepts(&mut self, name: &str) {
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let ended = self.child.try_wait().unwrap();
            assert!(
                ended.is_none(),
                "{name} ended by itself: {ended:?}\n{}",
                self.read("output")
            );
            assert!(start.elapsed() < START, "{name} does not accept");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A port of the loopback address that nobody has. It is below those that the system gives
/// to whoever connects, so that none of the other tests' sockets takes it meanwhile.
pub fn free_address() -> SocketAddr {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id() * 64;
    loop {
        let port = 10_000 + (first + TAKEN.fetch_add(1, Ordering::Relaxed)) % 20_000;
        let free = TcpListener::bind(("127.0.0.1", u16::try_from(port).unwrap()));
        if let Ok(free) = free {
            return free.local_addr().unwrap();
        }
    }
}

/// Where a program is; those that only root starts, too.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin"])
        .map(|dir| Path::new(dir).join(name))
        .find(|program| program.is_file())
}
