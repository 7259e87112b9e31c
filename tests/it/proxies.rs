//! Real proxies of Debian as processes of the tests: each with its own config, port and
//! directory, killed when its value goes, also on a panic.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Longest that a proxy may take until it accepts.
const START: Duration = Duration::from_secs(30);

/// A proxy that accepts connections.
pub struct Proxy {
    pub address: SocketAddr,
    child: Child,
    dir: tempfile::TempDir,
}

impl Proxy {
    /// squid: http and CONNECT. It keeps nothing and refuses whoever has more than `most`
    /// sockets open.
    pub fn squid(most: u32) -> Option<Proxy> {
        start("squid", |dir, port, program| {
            let config = write(
                dir,
                "squid.conf",
                &format!(
                    "http_port 127.0.0.1:{port}\n\
                     acl crowd maxconn {most}\n\
                     http_access deny crowd\n\
                     http_access allow all\n\
                     cache deny all\n\
                     cache_mem 8 MB\n\
                     access_log none\n\
                     cache_log {dir}/cache.log\n\
                     pid_filename {dir}/squid.pid\n\
                     coredump_dir {dir}\n\
                     max_filedescriptors 1024\n\
                     shutdown_lifetime 0 seconds\n\
                     pinger_enable off\n",
                    dir = dir.display()
                ),
            );
            let mut command = Command::new(program);
            command.arg("-N").arg("-f").arg(config);
            command
        })
    }

    /// tinyproxy: http and CONNECT.
    pub fn tinyproxy() -> Option<Proxy> {
        start("tinyproxy", |dir, port, program| {
            let config = write(
                dir,
                "tinyproxy.conf",
                &format!(
                    "Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nMaxClients 50\n"
                ),
            );
            let mut command = Command::new(program);
            command.arg("-d").arg("-c").arg(config);
            command
        })
    }

    /// microsocks: SOCKS5, with a login if one is given.
    pub fn microsocks(login: Option<(&str, &str)>) -> Option<Proxy> {
        start("microsocks", |_, port, program| {
            let mut command = Command::new(program);
            command
                .args(["-i", "127.0.0.1", "-p"])
                .arg(port.to_string());
            if let Some((user, word)) = login {
                command.args(["-u", user, "-P", word]);
            }
            command
        })
    }

    /// dante: SOCKS5.
    pub fn dante() -> Option<Proxy> {
        start("danted", |dir, port, program| {
            let config = write(
                dir,
                "danted.conf",
                &format!(
                    "logoutput: stderr\n\
                     internal: 127.0.0.1 port = {port}\n\
                     external: 127.0.0.1\n\
                     clientmethod: none\n\
                     socksmethod: none\n\
                     client pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}\n\
                     socks pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}\n"
                ),
            );
            let mut command = Command::new(program);
            command.arg("-f").arg(config).arg("-p").arg(dir.join("pid"));
            command
        })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It leads a group of its own, so its children go with it.
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
        if std::thread::panicking() {
            let said = std::fs::read_to_string(self.dir.path().join("output"));
            eprintln!("the proxy said:\n{}", said.unwrap_or_default());
        }
    }
}

/// Starts `name`, or says that it is not there.
fn start(name: &str, command: impl FnOnce(&Path, u16, &Path) -> Command) -> Option<Proxy> {
    let Some(program) = find(name) else {
        eprintln!("{name} is not installed: this test is left out (test.sh installs it)");
        return None;
    };
    let dir = tempfile::tempdir().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    // A proxy that gives up root must still reach its own files.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let output = File::create(dir.path().join("output")).unwrap();
    let child = command(dir.path(), address.port(), &program)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(output.try_clone().unwrap())
        .stderr(output)
        .process_group(0)
        .spawn()
        .unwrap();
    let mut proxy = Proxy {
        address,
        child,
        dir,
    };
    proxy.wait_until_it_accepts(name);
    Some(proxy)
}

impl Proxy {
    fn wait_until_it_accepts(&mut self, name: &str) {
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{name} ended by itself: {ended:?}");
            assert!(start.elapsed() < START, "{name} does not accept");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin"])
        .map(|dir| Path::new(dir).join(name))
        .find(|program| program.is_file())
}

fn write(dir: &Path, name: &str, text: &str) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path
}
