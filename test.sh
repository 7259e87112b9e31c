#!/usr/bin/env bash
# Runs every test. Installs the Debian packages that some of them need where it can
# (as root, with apt-get); where it cannot, it names them, and those tests are left out.
set -euo pipefail
cd "$(dirname "$0")"

# Real proxies that the tests fetch through (dante asks libnss-wrapper for its logins) and a real
# server; curl and jq for the pipelines of README; a browser for the page of a run, with a font for
# its pictures; strace for calls that fail or take long; faketime for a clock that is set; python3
# for a server, readers of WARC files and the soak; shells and readers that check completions and
# the manual page.
packages=(squid tinyproxy microsocks dante-server libnss-wrapper haproxy privoxy stunnel4 nginx-light
  curl jq chromium fonts-dejavu-core strace faketime python3 python3-venv zsh fish groff mandoc)

missing=()
for package in "${packages[@]}"; do
  dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
done
if [ "${#missing[@]}" -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # The services must not start by themselves: the tests start their own. A policy that
  # this machine has already (as containers do) stays.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
  fi
  apt-get update -qq || echo "test.sh: the package lists could not be updated" >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    echo "test.sh: could not install ${missing[*]}; the tests that need them will be left out" >&2
elif [ "${#missing[@]}" -gt 0 ]; then
  echo "test.sh: the tests that need these are left out: ${missing[*]}" >&2
fi

# Readers of WARC files that others wrote. Without brotli: warcio fails with the version that
# FastWARC asks for, and neither needs it here.
tools=target/warc-tools
if [ ! -x "$tools/bin/warcio" ]; then
  { python3 -m venv "$tools" >/dev/null && "$tools/bin/pip" install --quiet --no-deps fastwarc==2.0.1 typing_extensions &&
    "$tools/bin/pip" install --quiet warcio==1.8.1; } >&2 || {
    rm -rf "$tools"
    echo "test.sh: could not install warcio and fastwarc; archives will not be read with them" >&2
  }
fi

# Most tests wait for peers rather than for the processor.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-6}"
cargo test --locked "$@"
[ "$#" -gt 0 ] || tests/cases.sh
