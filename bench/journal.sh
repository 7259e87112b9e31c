#!/usr/bin/env bash
# What it takes to go on after a run of many records: time until the run ends, and memory.
#
#   bench/journal.sh [RECORDS]                        10,000,000 by default: 6 GB below TMPDIR
#   ROUNDS=3 EXITFETCH=path bench/journal.sh 1000000
#
# The list has one entry, so what is timed is reading the journal (and one request to a
# loopback lab). The same run over an empty directory is shown beside it; the memory between the
# two, spread over the records, is what the program keeps of each. A tenth of the records are a
# second try of a job that failed before, the last line is torn. Run it twice to read a file
# that the system has in memory, or drop its caches in between.
set -euo pipefail
cd "$(dirname "$0")/.."

records=${1:-10000000}
program=${EXITFETCH:-target/release/exitfetch}
[ -x "$program" ] || cargo build --release --quiet
program=$(realpath "$program")
[ -x /usr/bin/time ] || { echo "journal.sh: install GNU time first" >&2; exit 1; }

work=$(mktemp -d)
lab=
cleanup() { [ -n "$lab" ] && kill "$lab" 2>/dev/null; rm -rf "$work"; }
trap cleanup EXIT

"$program" lab --exits 1 --write "$work" >"$work/lab.log" & lab=$!
for _ in $(seq 100); do grep -q ^origin "$work/lab.log" && break; sleep 0.05; done
grep -q ^origin "$work/lab.log" || { echo "journal.sh: the lab did not start" >&2; exit 1; }

write_journal() { # records, file
  awk -v n="$1" 'BEGIN {
    for (i = 1; i <= n; i++) {
      again = i % 10 == 0
      # The job of nine records before failed and is recorded again.
      job = again ? i - 9 : i
      id = sprintf("%08x%08x", (job * 40503) % 4294967296, job)
      printf "{\"id\":\"%s\",\"line\":%d,\"url\":\"https://www.site-%d.example/articles/2024/some-longer-title-%d.html\",", \
        id, job, job % 100000, job
      if (i % 10 == 1)
        printf "\"outcome\":\"failed\",\"status\":503,\"exit\":\"198.51.100.%d:8080\",\"tried\":[\"198.51.100.7:8080\"],\"attempts\":2,\"error\":{\"kind\":\"status\",\"blame\":\"origin\",\"detail\":\"503 Service Unavailable\"},", i % 250
      else
        printf "\"outcome\":\"ok\",\"status\":200,\"file\":\"bodies/%s/%s/%s.html\",\"bytes\":%d,\"wire_bytes\":%d,\"sha256\":\"%s%s%s%s\",\"content_type\":\"text/html; charset=utf-8\",\"exit\":\"198.51.100.%d:8080\",\"attempts\":1,", \
          substr(id, 1, 2), substr(id, 3, 2), id, 20000 + i % 9999, 20000 + i % 9999, id, id, id, id, i % 250
      printf "\"waits\":{\"budget_ms\":%d.25,\"exit_ms\":0.0},\"phases\":{\"dial_ms\":12.125,\"handshake_ms\":31.5,\"tls_ms\":40.75,\"first_byte_ms\":%d.5,\"body_ms\":7.375},\"at\":\"2026-01-01T00:%02d:%02d.%03dZ\"}\n", \
        i % 5000, i % 300, i / 60000 % 60, i / 1000 % 60, i % 1000
    }
    printf "{\"id\":\"torn\",\"line\":1,\"url\":"
  }' >"$2"
}

echo "http://one.test/bytes/1" >"$work/one.txt"
resume() { # directory: seconds, seconds of CPU, KiB
  /usr/bin/time -f '%e %U %S %M' -o "$work/time" "$program" run --exits "$work/exits.txt" --urls "$work/one.txt" \
    --out "$1" --min-free 0 --summary none --progress never -q >&2
  cat "$work/time"
}

mkdir "$work/full"
write_journal "$records" "$work/full/results.jsonl"
echo "$records records, $(stat -c %s "$work/full/results.jsonl") bytes; $(nproc) cores"
cp "$work/full/results.jsonl" /dev/null
for _ in $(seq "${ROUNDS:-3}"); do
  rm -rf "$work/empty"
  empty=$(resume "$work/empty")
  full=$(resume "$work/full")
  echo "$empty $full"
  # The next round finds a torn line again, and the one entry not done.
  truncate -s "$(($(stat -c %s "$work/full/results.jsonl") - 40))" "$work/full/results.jsonl"
done | awk -v n="$records" '
  BEGIN { printf "%8s %8s %8s %10s %10s %14s\n", "wall s", "user s", "sys s", "peak MiB", "empty MiB", "bytes/job" }
  # Nine of ten records are of a job of their own.
  { printf "%8.2f %8.2f %8.2f %10.1f %10.1f %14.1f\n", $5, $6, $7, $8 / 1024, $4 / 1024, ($8 - $4) * 1024 / (n * 0.9) }'
