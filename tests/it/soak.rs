//! Two minutes of `bench/soak.sh`, which says itself what must hold.

use std::path::Path;
use std::process::Command;

#[test]
fn memory_and_descriptors_stay_flat_and_caps_hold_among_peers_that_misbehave() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let script = root.join("bench/soak.sh");
    if !script.is_file() || !Path::new("/usr/bin/python3").is_file() {
        eprintln!("left out: bench/soak.sh or python3 is not there");
        return;
    }
    let output = Command::new("timeout")
        .args(["300", "bash"])
        .arg(script)
        .env("DURATION", "2m")
        .env("EXITFETCH", env!("CARGO_BIN_EXE_exitfetch"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    println!("{said}");
}
