#!/usr/bin/env bash
# A run among exits and sites that misbehave in every way, for long: does it stay as it was?
#
#   bench/soak.sh                                      half an hour
#   DURATION=2m EXITFETCH=path bench/soak.sh
#
# The other side is `exitfetch lab`: exits that flap, refuse, cut, hang and answer nonsense
# beside good ones; storms of 429, slow bodies, and 1 % of every misbehaviour of a site. The
# list has no end, `--max-time` ends the run. Each second memory and descriptors of the run are
# looked at. What must hold, or the exit status is 1:
#
#   - it ends with status 5, every entry that was read is counted, and few wait
#   - after a warm-up (a third of the time), resident memory stays within 10 % of its median, and
#     from the first third of the rest to the last it grows by no more than 5 % and the 15 bytes
#     for each entry by which a later run knows it
#   - descriptors do not become more, and are never more than the slots explain
#   - no exit ever had more requests or sockets at once than its cap, by its own count
#
# LINES of the list come each second; the default loads a machine little.
set -euo pipefail
cd "$(dirname "$0")/.."

duration=${DURATION:-30m} lines=${LINES:-40} per_exit=3
program=${EXITFETCH:-target/release/exitfetch}
[ -x "$program" ] || cargo build --release --quiet
program=$(realpath "$program")

work=$(mktemp -d) lab='' run=''
cleanup() {
  for id in $run $lab; do kill "$id" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT

exits=(good good good good
  flap:20:5:502 flap:30:4:reset flap:10:10:refuse swing:20000:5000:hang swing:15000:5000:503
  cut garbage mail 407 502 refuse hang-handshake connect:403 limit:2:429)
flags=()
for word in "${exits[@]}"; do flags+=(--behaviour "$word"); done
"$program" lab --exits "${#exits[@]}" --capacity 0 --delay 20ms "${flags[@]}" --write "$work" >"$work/lab.log" &
lab=$!
for _ in $(seq 200); do grep -q ^origin "$work/lab.log" && break; sleep 0.05; done
stats=$(grep -o 'http://[^ ]*/stats' "$work/lab.log")

# Of every hundred lines one is of each misbehaviour. Every two thousand begin with a storm: twenty of
# sites that take one a second. These, and those that ask for pauses, get no more than they get done:
# what waits would be memory that grows, and rightly.
list() {
  awk -v lines="$lines" 'BEGIN {
    n = split("status/500 status/503 status/404 status/401 retry-after/1 retry-after/3?status=503 " \
      "rate-limited/1 rate-limited/1?retry-after=1 busy/1 flaky/1 flaky/2?how=cut truncated/5000 " \
      "chunked-cut/5000 chunked-bad two-lengths reset-body/5000 half/5000 endless?ms=50 silent close " \
      "reset no-http early switching garbage-after stale/100 last/100 http10/1000 " \
      "drip?bytes=2000&ms=3000 drip-head?ms=1000 drip-head?ms=9000 head/70000 gzip/20000 gzip-lie " \
      "gzip-bomb/3000000 redirect/3 redirect-loop redirect-to not-modified no-content", bad, " ")
    for (i = 0; ; i++) {
      if (i % lines == 0) { fflush(); system("sleep 1") }
      at = i % 100
      if (i % 2000 < 20)
        print "http://storm-" at % 2 ".test/rate-limited/1/" i
      else if (at < n && !(bad[at + 1] ~ /^retry-after/ && i % 1000 >= 100)) {
        mark = index(bad[at + 1], "?") ? "&" : "?"
        print "http" (i % 3 ? "" : "s") "://bad-" at ".test/" bad[at + 1] mark "n=" i
      } else
        print "http" (i % 4 ? "" : "s") "://good-" i % 30 ".test/ok/" i % 4096 "/" i
    }
  }'
}

list 2>/dev/null | "$program" run --exits "$work/exits.txt" --urls - --out "$work/out" --cacert "$work/lab-ca.pem" \
  --per-exit "$per_exit" --compressed --max-body 1MB --connect-timeout 2s --first-byte-timeout 3s \
  --stall-timeout 2s --timeout 10s --max-pause 5s --origin-patience 20s --max-time "$duration" \
  --progress never --summary json >"$work/summary.json" 2>"$work/stderr" &
run=$!

status=0
/usr/bin/python3 - "$run" "$stats" "$per_exit" "${#exits[@]}" "$lines" "$duration" <<'PY' || status=$?
import json, os, re, statistics, sys, time, urllib.request
run, stats, per_exit, exits, lines, duration = sys.argv[1:]
per_exit, exits, lines = int(per_exit), int(exits), int(lines)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
units = {"s": 1, "m": 60, "h": 3600}
seconds = sum(float(n) * units[u] for n, u in re.findall(r"([\d.]+)([smh])", duration))
rss, fds, start = [], [], time.monotonic()
while True:
    try:
        text = open(f"/proc/{run}/status").read()
        found = re.search(r"VmRSS:\s+(\d+)", text)
        if not found:
            break  # it has ended and nobody has looked yet
        rss.append(int(found.group(1)))
        fds.append(len(os.listdir(f"/proc/{run}/fd")))
    except (FileNotFoundError, ProcessLookupError):
        break
    if time.monotonic() - start > seconds + 60:
        sys.exit("soak: the run does not end")
    time.sleep(1)
counted = json.load(opener.open(stats, timeout=20))
wrong = []
def hold(holds, text):
    if not holds:
        wrong.append(text)
# The last seconds are the end itself.
warm = rss[len(rss) // 3:-2]
windows = [statistics.median(warm[i:i + 10]) for i in range(0, len(warm) - 9, 10)]
hold(len(windows) >= 2, "the run was too short to judge")
middle = statistics.median(windows or [0])
least, most = min(windows or [0]), max(windows or [0])
print("resident memory in MiB, every", max(1, len(rss) // 10), "s:",
      " ".join(f"{kib / 1024:.1f}" for kib in rss[::max(1, len(rss) // 10)]))
print(f"{len(rss)} s; resident memory {middle / 1024:.1f} MiB, "
      f"{(least / middle - 1) * 100 if middle else 0:+.1f} to {(most / middle - 1) * 100 if middle else 0:+.1f} %")
hold(least >= 0.9 * middle and most <= 1.1 * middle, "resident memory is not flat")
third = max(1, len(warm) // 3)
first, last = statistics.mean(warm[:third] or [0]), statistics.mean(warm[-third:] or [0])
known = 15 * lines * 2 * third / 1024
print(f"from {first / 1024:.2f} to {last / 1024:.2f} MiB in {2 * third} s, {known / 1024:.2f} of it for ids")
hold(last <= 1.05 * first + known, "resident memory grows")
warm = fds[len(fds) // 3:-2]
first, last = statistics.mean(warm[:third] or [0]), statistics.mean(warm[-third:] or [0])
print(f"descriptors: {first:.1f} in the first third, {last:.1f} in the last, at most {max(fds)}")
hold(last <= 1.1 * first + 3, "descriptors become more")
# A socket and a file for each slot, and what a process has anyhow.
hold(max(fds) <= 2 * exits * per_exit + 40, f"{max(fds)} descriptors for {exits * per_exit} slots")
for exit in counted["exits"]:
    for what in ("in_flight", "sockets"):
        peak = exit[what]["peak"]
        hold(peak <= per_exit, f"{exit['name']} ({exit['behaviour']}): {peak} {what} at once, its cap is {per_exit}")
served = sum(exit["requests"] for exit in counted["exits"])
print(f"{served} requests came through {exits} exits, at most {max(e['in_flight']['peak'] for e in counted['exits'])} at once, "
      f"{max(e['sockets']['peak'] for e in counted['exits'])} sockets")
hold(served > seconds * 2, "hardly anything was fetched")
print("\n".join(f"soak: {text}" for text in wrong))
sys.exit(1 if wrong else 0)
PY

code=0
wait "$run" || code=$?
run=
if [ "$code" != 5 ]; then
  echo "soak: the run ended with status $code, not 5" >&2
  tail -5 "$work/stderr" >&2
  status=1
fi
if grep -qi panicked "$work/stderr"; then
  grep -i panicked "$work/stderr" >&2
  status=1
fi
records=$(wc -l <"$work/out/results.jsonl")
/usr/bin/python3 - "$work/summary.json" "$records" <<'PY' || status=1
import json, sys
summary, records = json.load(open(sys.argv[1])), int(sys.argv[2])
totals = summary.get("totals", summary)
ended = sum(totals[key] for key in ("ok", "failed", "refused"))
waiting = totals["not_reached"]
print(f"{records} records: {totals['ok']} ok, {totals['failed']} failed; {waiting} entries waited at the end")
if ended != records:
    sys.exit(f"soak: {ended} entries ended, {records} records")
if ended + waiting != totals["entries"]:
    sys.exit(f"soak: {totals['entries']} entries were read, {ended} ended and {waiting} waited")
if waiting > 1500:
    sys.exit("soak: what waits is not a few")
PY
[ "$status" = 0 ] && echo "soak: it holds" || echo "soak: it does not hold" >&2
exit "$status"
