//! How much memory a run took at its peak.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use crate::world::{Run, World};

/// Runs as [`World::run`] does; also answers the largest resident size that was seen, in KiB.
///
/// A shell names its own process before it becomes the program, so that the kernel's
/// high-water mark can be read while it runs.
pub fn watched(world: &World, args: &[&str]) -> (Run, u64) {
    let named = world.dir().join("pid");
    let _ = std::fs::remove_file(&named);
    let plain = world.command(args);
    let mut command = std::process::Command::new("sh");
    command
        .args([
            "-c",
            "echo $$ > pid.new && mv pid.new pid && exec \"$@\"",
            "sh",
        ])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(world.dir())
        .env_clear()
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let (done, ended) = channel::<()>();
    let watch = std::thread::spawn(move || {
        let mut peak = 0;
        while ended.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout) {
            if let Ok(pid) = std::fs::read_to_string(&named) {
                peak = peak.max(high_water(pid.trim()));
            }
        }
        peak
    });
    let run = world.finish(command);
    drop(done);
    (run, watch.join().unwrap())
}

fn high_water(pid: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_default()
}
