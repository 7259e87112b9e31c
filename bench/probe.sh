#!/usr/bin/env bash
# How often `exitfetch probe` finds what an exit of a lab carries.
#
#   bench/probe.sh [CAPACITY…]      default: 2 4 8
#   RUNS=20 DELAY=150ms bench/probe.sh 4
#
# Per capacity c: so many probes of a fresh lab's exit whose time per request grows in proportion
# to its load beyond c. Printed: how many found a per_exit within [c, 1.5c], and what the others
# found. Capacities are probed beside each other: a probe waits more than it works.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${RUNS:-20}
delay=${DELAY:-150ms}
program=$(realpath "${EXITFETCH:-target/debug/exitfetch}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

once() { # capacity, directory
  mkdir -p "$2"
  "$program" lab --exits 1 --capacity "$1" --delay "$delay" --write "$2" >"$2/lab.log" &
  local lab=$!
  for _ in $(seq 100); do grep -qs ^origin "$2/lab.log" && break; sleep 0.05; done
  "$program" probe --exits "$2/exits.txt" --target http://bench.test/bytes/100 --own-target --json \
    >"$2/found.json" || true
  kill "$lab" && wait "$lab" || true
  sed -n 's/^ *"per_exit": \([0-9]*\),$/\1/p' "$2/found.json"
}

capacity() { # capacity
  local found=() good=0 n per_exit
  for n in $(seq "$runs"); do
    per_exit=$(once "$1" "$work/$1-$n")
    found+=("${per_exit:-none}")
    if [ -n "$per_exit" ] && [ "$per_exit" -ge "$1" ] && [ $((2 * per_exit)) -le $((3 * $1)) ]; then
      good=$((good + 1))
    fi
  done
  echo "capacity $1: $good of $runs within [$1, $((3 * $1 / 2))]; found: ${found[*]}"
}

for c in "${@:-2 4 8}"; do for one in $c; do capacity "$one" & done; done
wait
