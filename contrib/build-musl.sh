#!/bin/sh
# A program that runs on any x86-64 Linux, whatever its C library: linked against musl,
# statically. Needs the target (`rustup target add x86_64-unknown-linux-musl`) and a C compiler
# for it (Debian: musl-tools), for the parts that are C: TLS, zstd, the allocator.
#
# Not against glibc: where /etc/nsswitch.conf names more than files and dns (myhostname, say) and the
# glibc there is another one, a static program of it may die at the first name it looks up.
#
# Built twice from one commit, the result is the same file: paths of this machine are mapped
# away, and nothing of the time goes in.
set -eu
cd "$(dirname "$0")/.."

target=x86_64-unknown-linux-musl
if ! command -v musl-gcc >/dev/null; then
  echo "build-musl.sh: there is no musl-gcc: apt-get install musl-tools" >&2
  exit 1
fi
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
  echo "build-musl.sh: Rust has no $target: rustup target add $target" >&2
  exit 1
fi

cargo_home=${CARGO_HOME:-$HOME/.cargo}
CC_x86_64_unknown_linux_musl=musl-gcc
RUSTFLAGS="--remap-path-prefix=$PWD=. --remap-path-prefix=$cargo_home=cargo"
export CC_x86_64_unknown_linux_musl RUSTFLAGS
cargo build --release --locked --target "$target"

program=target/$target/release/exitfetch
if ldd "$program" 2>/dev/null | grep -q '=>'; then
  echo "build-musl.sh: $program is not static" >&2
  exit 1
fi
"$program" --version
ls -l "$program"
