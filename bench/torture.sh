#!/usr/bin/env bash
# Every file, socket and thread call of a small run fails, once or from then on: does the run get
# over it, or say so?
#
#   bench/torture.sh                                       all of them (some 3,700, a quarter of an hour)
#   SAMPLE=300 SEED=7 EXITFETCH=path bench/torture.sh      some of them, of another build
#
# The test suite does the same with a small sample; `tests/it/torture.rs` says what must hold.
# The last line is the verdict.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v strace >/dev/null || { echo "torture.sh: install strace first" >&2; exit 1; }
[ -z "${EXITFETCH:-}" ] || { EXITFETCH=$(realpath "$EXITFETCH") && export EXITFETCH; }
if TORTURE_SAMPLE=${SAMPLE:-all} TORTURE_SEED=${SEED:-1} \
  cargo test --locked --quiet --test it torture:: -- --nocapture; then
  echo "torture.sh: it holds"
else
  echo "torture.sh: it does not hold" >&2
  exit 1
fi
