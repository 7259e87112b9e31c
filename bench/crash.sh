#!/usr/bin/env bash
# Two hundred kills (SIGKILL) at moments from a seed: runs with small and large bodies, redirects
# and retries into files, WARC and gzipped WARC, refreshes, and a list that waits on disk. After
# them everything must be as if nobody had killed anything; `tests/it/crash.rs` says in which way.
#
#   bench/crash.sh
#   SEED=7 EXITFETCH=path bench/crash.sh      at other moments, of another build
#
# The last line is the verdict.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -z "${EXITFETCH:-}" ] || { EXITFETCH=$(realpath "$EXITFETCH") && export EXITFETCH; }
if CRASH_KILLS=20 CRASH_SEED=${SEED:-100} \
  cargo test --locked --quiet --test it crash:: -- --nocapture --test-threads 1; then
  echo "crash.sh: it holds"
else
  echo "crash.sh: it does not hold" >&2
  exit 1
fi
