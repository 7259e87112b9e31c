#!/usr/bin/env bash
# Long lists in bounded memory: peak memory, the first request, and how busy the exits were.
#
#   bench/long_list.sh [FORM…]      forms: sorted shuffled giant million (default: all four)
#   N=1000000 TIME=30s EXITS=60 bench/long_list.sh sorted
#
# sorted, shuffled: N lines over N/100 hosts; giant: N lines of one host, then N/10 hosts with one
# each; million: N/10 hosts with ten each. The other side is `exitfetch lab`; a run ends after
# TIME, which bounds how much of the list it can fetch and not how much of it it can read.
# Busy: how much of the slots' time the requests that the lab's origin counted from the fifth second
# on take at their 100 ms each, so neither side's own work counts. Everything is written to tmpfs.
set -euo pipefail
cd "$(dirname "$0")/.."

n=${N:-1000000} time=${TIME:-20s} exits=${EXITS:-60} per_exit=3 rate=${RATE:-10}
read -r -a forms <<<"${*:-sorted shuffled giant million}"
program=${EXITFETCH:-target/release/exitfetch}
[ -x "$program" ] || cargo build --release --quiet
program=$(realpath "$program")
[ -x /usr/bin/time ] || { echo "long_list.sh: install time first" >&2; exit 1; }

work=$(mktemp -d --tmpdir=/dev/shm) lab=
cleanup() { [ -n "$lab" ] && kill "$lab" 2>/dev/null; rm -rf "$work"; }
trap cleanup EXIT
ulimit -n "$(ulimit -Hn)"

"$program" lab --exits "$exits" --capacity 0 --write "$work" >"$work/lab.log" &
lab=$!
for _ in $(seq 100); do grep -q ^origin "$work/lab.log" && break; sleep 0.05; done
stats=$(grep -o 'http://[^ ]*/stats' "$work/lab.log")

list() { # form
  awk -v n="$n" -v form="$1" 'BEGIN {
    path = "ok/10/some/path/that/takes/room/"
    if (form == "giant") {
      for (i = 0; i < n; i++) print "http://giant.test/" path i "?wait=100"
      for (i = 0; i < n / 10; i++) print "http://h" i ".test/" path "?wait=100"
    } else {
      each = form == "million" ? 10 : 100
      for (i = 0; i < n; i++) print "http://h" int(i / each) ".test/" path i "?wait=100"
    }
  }' | if [ "$1" = shuffled ]; then shuf --random-source=<(yes); else cat; fi
}

# Milliseconds from the start to the first request, and the share of slots in use.
watch() { # pid file
  /usr/bin/python3 - "$stats" "$((exits * per_exit))" <<'PY'
import json, sys, time, urllib.request
stats, slots = sys.argv[1], int(sys.argv[2])
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
get = lambda: json.load(opener.open(stats, timeout=5))
def requests(s): return s["origin"]["requests"]
start, before, first, since = time.time(), requests(get()), None, None
print("ready", flush=True)
sys.stdin = None
while True:
    try: s = get()
    except Exception: break
    now = time.time() - start
    if first is None and requests(s) > before:
        first = now
        print(f"first {first * 1000:.0f}", flush=True)
    if since is None and now > 5:
        since = now, requests(s)
    elif since is not None and now > since[0] + 1 and requests(s) > last:
        took = (requests(s) - since[1]) * 0.1
        print(f"busy {100 * took / slots / (now - since[0]):.1f}", flush=True)
    last = requests(s)
    time.sleep(0.1 if first is not None else 0.005)
PY
}

printf '%-9s %9s %11s %9s %7s %7s\n' form lines 'peak MiB' 'first ms' 'busy %' 'CPU s'
for form in "${forms[@]}"; do
  list "$form" >"$work/urls.txt"
  : >"$work/watch"
  watch >"$work/watch" &
  watcher=$!
  until grep -q ready "$work/watch"; do sleep 0.02; done
  /usr/bin/time -v -o "$work/time" "$program" run --exits "$work/exits.txt" --urls "$work/urls.txt" \
    --per-exit "$per_exit" --rate "$rate" --max-time "$time" --out "$work/out" --summary none --quiet || true
  kill "$watcher" 2>/dev/null || true
  wait "$watcher" 2>/dev/null || true
  awk -v form="$form" -v lines="$(wc -l <"$work/urls.txt")" '
    FNR == NR && $1 == "first" { first = $2 } FNR == NR && $1 == "busy" { busy = $2 }
    /Maximum resident/ { memory = $NF / 1024 } /User time|System time/ { cpu += $NF }
    END { printf "%-9s %9d %11.1f %9s %7s %7.1f\n", form, lines, memory, first, busy, cpu }' \
    "$work/watch" "$work/time"
  rm -rf "$work/out"
done
