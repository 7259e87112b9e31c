#!/usr/bin/env bash
# exitfetch beside curl -Z, wget2, aria2c and an asyncio + aiohttp pool, on one loopback lab.
#
#   bench/peers.sh [LOAD…]          loads: small https hosts large slots skew (default: small)
#   ROUNDS=3 PEERS="exitfetch curl" bench/peers.sh small
#
# All peers fetch the same list through the same exits, in turn, round after round, so that a
# noisy machine is noisy for all. Output goes to a fresh directory on tmpfs each time. Printed:
# the medians over the rounds, and each peer's CPU per job against curl's; `-` where a peer ended
# at once: it cannot do this load. `flat` is exitfetch with all bodies in one directory, as the
# peers store them; by default it spreads them over directories by id, and making those is part of
# its cost. `warc` is exitfetch with `--warc`: one segment instead of a file each, so its number of
# stored files says nothing. `floor` makes the same requests and files over bare sockets and does
# nothing else (examples/floor.rs, plain http). `requests` makes no files either. `asyncio` is the
# usual pool with as many workers as slots, `asyncio-all` the same with all jobs started at once.
# `skew` is about these two: unless PEERS names others it runs exitfetch and them.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=${ROUNDS:-3}
read -r -a loads <<<"${*:-small}"
usual="exitfetch flat warc curl wget2 aria2 asyncio" pools="exitfetch asyncio asyncio-all"

need() { # program, Debian package
  command -v "$1" >/dev/null && return
  [ "$(id -u)" = 0 ] && apt-get install -y -qq --no-install-recommends "$2" >/dev/null ||
    { echo "peers.sh: install $2 first" >&2; exit 1; }
}
need /usr/bin/time time; need curl curl; need aria2c aria2; need wget2 wget2; need /usr/bin/python3 python3
/usr/bin/python3 -c 'import aiohttp' 2>/dev/null || need no-such-program python3-aiohttp

program=${EXITFETCH:-target/release/exitfetch}
[ -x "$program" ] || cargo build --release --quiet
program=$(realpath "$program")
pool=$(realpath bench/pool.py)
floor=target/release/examples/floor
case " ${PEERS:-} " in *" floor "* | *" requests "*) [ -x "$floor" ] || cargo build --release --quiet --example floor ;; esac
floor=$(realpath -m "$floor")

work=$(mktemp -d --tmpdir=/dev/shm)
labs=()
cleanup() { [ "${#labs[@]}" = 0 ] || kill "${labs[@]}" 2>/dev/null; rm -rf "$work"; }
trap cleanup EXIT
ulimit -n "$(ulimit -Hn)"

stop_labs() {
  [ "${#labs[@]}" = 0 ] || { kill "${labs[@]}"; wait "${labs[@]}" 2>/dev/null || true; }
  labs=()
}

add_lab() { # directory, exits, then more words for `lab`
  mkdir -p "$1"
  rm -f "$1/exits.txt" "$1/urls.txt"
  "$program" lab --exits "$2" --capacity 0 "${@:3}" --write "$1" >"$1/lab.log" &
  labs+=($!)
  for _ in $(seq 100); do grep -q ^origin "$1/lab.log" && return; sleep 0.05; done
  echo "peers.sh: the lab did not start" >&2; exit 1
}

start_lab() { stop_labs; add_lab "$work" "$@"; }

# Half the exits add ten times as much to each request as the others. The list has both kinds in
# turn: a real one is in no order either.
start_skewed_labs() { # exits of each kind
  start_lab "$1" --delay 50ms
  add_lab "$work/slow" "$1" --delay 500ms
  mv "$work/exits.txt" "$work/fast.txt"
  # Each exit needs a name of its own.
  sed "s/name=lab/name=slow/" "$work/slow/exits.txt" | paste -d '\n' "$work/fast.txt" - >"$work/exits.txt"
}

# One list per load: urls.txt, and for the peers that want it a proxy for each URL in turn.
prepare() { # count, URL prefix; a % in it becomes the number of the job
  grep -v '^#' "$work/exits.txt" | awk '{print $1}' >"$work/proxies"
  awk -v n="$1" -v prefix="$2" 'BEGIN { for (i = 1; i <= n; i++) { url = prefix i; sub(/%/, i, url); print url } }' >"$work/urls.txt"
  # Without `next` the last proxy of the file would hold for all URLs.
  awk -v out="$work/out" -v ca="$work/lab-ca.pem" 'NR == FNR { proxy[NR - 1] = $1; n = NR; next }
    FNR > 1 { print "next" }
    { printf "url = \"%s\"\nproxy = \"%s\"\noutput = \"%s/%d\"\nsilent\ncacert = \"%s\"\n", $1, proxy[FNR % n], out, FNR, ca }' \
    "$work/proxies" "$work/urls.txt" >"$work/curl.conf"
  awk 'NR == FNR { proxy[NR - 1] = $1; n = NR; next }
    { printf "%s\n all-proxy=%s\n out=%d\n", $1, proxy[FNR % n], FNR }' \
    "$work/proxies" "$work/urls.txt" >"$work/aria2.list"
}

run_peer() { # peer, per exit, slots, then more words for exitfetch
  case $1 in
  flat) run_peer exitfetch "$2" "$3" --name-template '{id}{ext}' ;;
  warc) run_peer exitfetch "$2" "$3" --warc ;;
  exitfetch) "$program" run --exits "$work/exits.txt" --urls "$work/urls.txt" --per-exit "$2" --rate unlimited \
    --cacert "$work/lab-ca.pem" --out "$work/out" --min-free 0 --summary none --progress never "${@:4}" ;;
  curl) mkdir "$work/out" && curl -Z --parallel-max "$3" -K "$work/curl.conf" ;;
  wget2) mkdir "$work/out" && proxies=$(paste -sd, "$work/proxies") &&
    wget2 --quiet --max-threads="$3" --no-robots --hsts=off --ca-certificate="$work/lab-ca.pem" --tries=1 \
      --http-proxy="$proxies" --https-proxy="$proxies" -P "$work/out" -i "$work/urls.txt" ;;
  aria2) mkdir "$work/out" && aria2c --quiet -j "$3" -x 1 -s 1 --file-allocation=none --ca-certificate="$work/lab-ca.pem" \
    -d "$work/out" -i "$work/aria2.list" ;;
  asyncio) mkdir "$work/out" && /usr/bin/python3 "$pool" "$work/proxies" "$work/urls.txt" "$work/out" "$2" "$work/lab-ca.pem" ;;
  floor) "$floor" "$work/proxies" "$work/urls.txt" "$work/out" "$2" ;;
  requests) "$floor" "$work/proxies" "$work/urls.txt" - "$2" ;;
  asyncio-all) mkdir "$work/out" && /usr/bin/python3 "$pool" "$work/proxies" "$work/urls.txt" "$work/out" "$2" "$work/lab-ca.pem" \
    "$(wc -l <"$work/urls.txt")" ;;
  esac
}
export -f run_peer; export program pool floor work

measure() { # load, jobs, per exit, slots, peers if not the usual ones
  local peers=${PEERS:-${5:-$usual}}
  : >"$work/times"
  for round in $(seq "$rounds"); do
    for peer in $peers; do
      rm -rf "$work/out"
      status=0
      /usr/bin/time -f '%e %U %S %M' -o "$work/time" bash -c "run_peer $peer $3 $4" >/dev/null 2>&1 || status=$?
      mkdir -p "$work/out"
      stored=$(find "$work/out" -type f -not -name '*.jsonl' -not -name '*.csv' -not -name summary.json | wc -l)
      echo "$peer $(tail -n 1 "$work/time") $stored $status" >>"$work/times"
    done
  done
  echo
  echo "$1: $2 jobs, $rounds rounds, medians"
  python3 - "$work/times" "$2" <<'PY'
import statistics, sys
rows = {}
for line in open(sys.argv[1]):
    peer, wall, user, system, memory, stored, status = line.split()
    rows.setdefault(peer, []).append((float(wall), float(user) + float(system), int(memory), int(stored)))
jobs = int(sys.argv[2])
median = lambda peer, column: statistics.median(row[column] for row in rows[peer])
print(f"{'peer':11} {'wall s':>8} {'jobs/s':>8} {'CPU µs/job':>11} {'MiB':>6} {'stored':>7} {'CPU ratio to curl':>18}")
for peer in rows:
    cpu = median(peer, 1) / jobs * 1e6
    wall = median(peer, 0)
    ratio = f"{median(peer, 1) / median('curl', 1):.2f}" if "curl" in rows and wall else "-"
    pace = f"{jobs / wall:.0f}" if wall else "-"
    print(f"{peer:11} {wall:8.2f} {pace:>8} {cpu:11.1f} {median(peer, 2) / 1024:6.1f} {median(peer, 3):7.0f} {ratio:>18}")
PY
}

for load in "${loads[@]}"; do
  case $load in
  small) start_lab 60; prepare 20000 http://bench.test/bytes/1024/; measure "1 KiB x 20,000 over 60 exits x 3" 20000 3 180 ;;
  https) start_lab 60; prepare 20000 https://bench.test/bytes/1024/; measure "1 KiB x 20,000 over https, 60 exits x 3" 20000 3 180 ;;
  hosts) start_lab 60
    prepare 8000 http://bench.test/bytes/1024/; measure "8,000 of one host over 60 exits x 3" 8000 3 180
    prepare 8000 http://o%.test/bytes/1024/; measure "8,000 of 8,000 hosts over 60 exits x 3" 8000 3 180 ;;
  large) start_lab 4; prepare 20 http://bench.test/bytes/67108864/; measure "64 MiB x 20 over 4 exits x 3" 20 3 12 ;;
  slots) start_lab 600; prepare 12600 http://bench.test/delay/500/; measure "12,600 x 500 ms over 600 exits x 3" 12600 3 1800 ;;
  skew) start_skewed_labs 10; prepare 3300 http://bench.test/bytes/1024/; measure "3,300 over 20 exits x 3, half at 50 ms, half at 500 ms" 3300 3 60 "$pools" ;;
  *) echo "peers.sh: no load is called $load" >&2; exit 2 ;;
  esac
done
