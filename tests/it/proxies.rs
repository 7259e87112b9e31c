//! Real proxies of Debian, each with the configuration of a test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::services::{Place, Service, free_address};

/// A login with characters that mean something in an exit list and in configurations.
pub const LOGIN: (&str, &str) = ("us@er", "p:@ss");

/// squid: http and CONNECT. It keeps nothing and refuses whoever has more than `most` sockets
/// open.
pub fn squid(most: u32) -> Option<Service> {
    Service::start("squid", |place| squid_that(place, most, ""))
}

/// The same, but it says 429 to who has too many.
pub fn squid_that_says_so(most: u32) -> Option<Service> {
    let rule = "deny_info 429:ERR_ACCESS_DENIED crowd\n";
    Service::start("squid", |place| squid_that(place, most, rule))
}

/// The same, only for who knows [`LOGIN`].
pub fn squid_with_login(most: u32) -> Option<Service> {
    Service::start("squid", |place| {
        // The protocol of squid's helpers: a line with both for each question.
        let helper = place.write(
            "helper.sh",
            "while read -r login; do\n\
             case \"$login\" in 'us@er p:@ss') echo OK ;; *) echo ERR ;; esac\n\
             done\n",
        );
        let rules = format!(
            "auth_param basic program /bin/sh {}\n\
             auth_param basic children 1\n\
             acl known proxy_auth REQUIRED\n\
             http_access deny !known\n",
            helper.display()
        );
        squid_that(place, most, &rules)
    })
}

fn squid_that(place: &Place<'_>, most: u32, rules: &str) -> Command {
    let config = place.write(
        "squid.conf",
        &format!(
            "http_port 127.0.0.1:{port}\n\
             acl crowd maxconn {most}\n\
             http_access deny crowd\n\
             {rules}\
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
            port = place.port,
            dir = place.dir.display()
        ),
    );
    let mut command = Command::new(place.program);
    command.arg("-N").arg("-f").arg(config);
    command
}

/// tinyproxy: http and CONNECT.
pub fn tinyproxy() -> Option<Service> {
    Service::start("tinyproxy", |place| {
        let port = place.port;
        let config = place.write(
            "tinyproxy.conf",
            &format!("Port {port}\nListen 127.0.0.1\nAllow 127.0.0.1\nTimeout 60\nMaxClients 50\n"),
        );
        let mut command = Command::new(place.program);
        command.arg("-d").arg("-c").arg(config);
        command
    })
}

/// privoxy: http and CONNECT, with rules that change nothing.
pub fn privoxy() -> Option<Service> {
    Service::start("privoxy", |place| {
        let config = place.write(
            "config",
            &format!(
                "confdir /etc/privoxy\n\
                 logdir {dir}\n\
                 logfile log\n\
                 listen-address 127.0.0.1:{port}\n\
                 toggle 0\n\
                 keep-alive-timeout 60\n\
                 tolerate-pipelining 0\n\
                 connection-sharing 0\n\
                 socket-timeout 60\n",
                dir = place.dir.display(),
                port = place.port
            ),
        );
        let mut command = Command::new(place.program);
        command.arg("--no-daemon").arg(config);
        command
    })
}

/// microsocks: SOCKS5, with a login if one is given.
pub fn microsocks(login: Option<(&str, &str)>) -> Option<Service> {
    Service::start("microsocks", |place| {
        let mut command = Command::new(place.program);
        command.args(["-i", "127.0.0.1", "-p"]);
        command.arg(place.port.to_string());
        if let Some((user, word)) = login {
            command.args(["-u", user, "-P", word]);
        }
        command
    })
}

/// dante: SOCKS5.
pub fn dante() -> Option<Service> {
    Service::start("danted", |place| dante_that(place, "none"))
}

/// dante: SOCKS5, only for who knows [`LOGIN`]. It asks the system for logins; what answers
/// in its place is a library that reads two files of the test.
pub fn dante_with_login() -> Option<Service> {
    let Some(library) = nss_wrapper() else {
        eprintln!("libnss-wrapper is not installed: this test is left out (test.sh installs it)");
        return None;
    };
    Service::start("danted", |place| {
        let user = LOGIN.0;
        let users = place.write(
            "passwd",
            &format!("root:x:0:0::/:/bin/false\n{user}:x:1234:1234::/:/bin/false\n"),
        );
        let words = place.write("shadow", &format!("{user}:{LOGIN_HASH}:1::::::\n"));
        let mut command = dante_that(place, "username");
        command
            .env("LD_PRELOAD", &library)
            .env("NSS_WRAPPER_PASSWD", users)
            .env(
                "NSS_WRAPPER_GROUP",
                place.write("group", "root:x:0:\nusers:x:1234:\n"),
            )
            .env("NSS_WRAPPER_SHADOW", words);
        command
    })
}

/// The password of [`LOGIN`] as a file of passwords holds it.
const LOGIN_HASH: &str = "$6$saltsalt$dWBtdlA8LpCDm/2ywd55Z8Qeuwg7Dc24GkyRNAgJfLYg/AzAkqLlYdOD3VxNshSTnfEtL4CTq3JjWRsd7Y4TA1";

fn nss_wrapper() -> Option<PathBuf> {
    let triple = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    [&*triple, "/usr/lib64", "/usr/lib"]
        .map(|dir| Path::new(dir).join("libnss_wrapper.so"))
        .into_iter()
        .find(|library| library.is_file())
}

fn dante_that(place: &Place<'_>, method: &str) -> Command {
    let config = place.write(
        "danted.conf",
        &format!(
            "logoutput: stderr\n\
             internal: 127.0.0.1 port = {}\n\
             external: 127.0.0.1\n\
             user.privileged: root\n\
             user.unprivileged: root\n\
             clientmethod: none\n\
             socksmethod: {method}\n\
             client pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}\n\
             socks pass {{ from: 0.0.0.0/0 to: 0.0.0.0/0 }}\n",
            place.port
        ),
    );
    let mut command = Command::new(place.program);
    command.arg("-f").arg(config);
    command.arg("-p").arg(place.dir.join("pid"));
    command
}

/// haproxy before another proxy: bytes pass as they come. It notes each connection at its end.
pub fn haproxy(behind: Service) -> Option<Service> {
    let service = Service::start("haproxy", |place| {
        let config = place.write(
            "haproxy.cfg",
            &format!(
                "global\n  nbthread 1\n  log stdout format raw daemon\n\
                 defaults\n  mode tcp\n  log global\n  option tcplog\n  timeout connect 10s\n  \
                 timeout client 60s\n  timeout server 60s\n\
                 frontend front\n  bind 127.0.0.1:{}\n  default_backend back\n\
                 backend back\n  server proxy {}\n",
                place.port, behind.address
            ),
        );
        let mut command = Command::new(place.program);
        command.arg("-db").arg("-f").arg(config);
        command
    });
    Some(service?.in_front_of(behind))
}

/// Most connections that haproxy had left when one of them ended.
pub fn haproxy_peak(service: &Service) -> u32 {
    let log = service.read("output");
    // `… actconn/feconn/beconn/srv_conn/retries srv_queue/backend_queue` ends each line. The
    // first two count the one that ends as well.
    let counts = log
        .lines()
        .filter_map(|line| line.rsplit(' ').nth(1)?.split('/').nth(2));
    let peak = counts.filter_map(|count| count.parse().ok()).max();
    peak.unwrap_or_else(|| panic!("haproxy noted nothing:\n{log}"))
}

/// stunnel before another proxy, which so becomes one that is spoken to over TLS. The
/// certificate is for 127.0.0.1.
pub fn stunnel(behind: Service, identity: &Identity) -> Option<Service> {
    let service = Service::start("stunnel4", |place| {
        let pem = place.write(
            "identity.pem",
            &format!("{}{}", identity.key, identity.certificate),
        );
        let config = place.write(
            "stunnel.conf",
            &format!(
                "foreground = yes\npid =\nsyslog = no\ndebug = notice\n\
                 [proxy]\naccept = 127.0.0.1:{}\nconnect = {}\ncert = {}\n",
                place.port,
                behind.address,
                pem.display()
            ),
        );
        let mut command = Command::new(place.program);
        command.arg(config);
        command
    });
    Some(service?.in_front_of(behind))
}

/// A certificate for 127.0.0.1 that vouches for itself, as PEM.
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Identity {
    pub fn new() -> Identity {
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        Identity {
            certificate: own.cert.pem(),
            key: own.signing_key.serialize_pem(),
        }
    }
}

/// nginx: `www` of its directory over http and, at the second address, over https; gzip for
/// who asks for it; seven requests a connection, each noted.
pub fn nginx(identity: &Identity, files: &[(String, Vec<u8>)]) -> Option<(Service, SocketAddr)> {
    let secure = free_address();
    let service = Service::start("nginx", |place| {
        place.write("certificate.pem", &identity.certificate);
        place.write("key.pem", &identity.key);
        write_all(&place.dir.join("www"), files);
        let config = place.write(
            "nginx.conf",
            &format!(
                "daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log;\n\
                 events {{}}\n\
                 http {{\n\
                 log_format requests '$connection $connection_requests $status';\n\
                 access_log {dir}/access.log requests;\n\
                 client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2;\n\
                 fastcgi_temp_path {dir}/t3; uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;\n\
                 default_type text/plain; gzip on; gzip_types *; gzip_min_length 64;\n\
                 keepalive_requests 7;\n\
                 server {{\n\
                 listen 127.0.0.1:{port}; listen {secure} ssl; root {dir}/www;\n\
                 ssl_certificate {dir}/certificate.pem; ssl_certificate_key {dir}/key.pem;\n\
                 }}\n}}\n",
                dir = place.dir.display(),
                port = place.port,
            ),
        );
        let mut command = Command::new(place.program);
        command.arg("-c").arg(config);
        command.arg("-e").arg(place.dir.join("error.log"));
        command
    });
    Some((service?, secure))
}

/// Python's own server of files: HTTP/1.0, a connection a request.
pub fn python_server(files: &[(String, Vec<u8>)]) -> Option<Service> {
    Service::start("python3", |place| {
        write_all(&place.dir.join("www"), files);
        let mut command = Command::new(place.program);
        command.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]);
        command
            .arg(place.dir.join("www"))
            .arg(place.port.to_string());
        command
    })
}

fn write_all(dir: &Path, files: &[(String, Vec<u8>)]) {
    std::fs::create_dir(dir).unwrap();
    for (name, content) in files {
        std::fs::write(dir.join(name), content).unwrap();
    }
}
