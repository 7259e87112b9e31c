#!/usr/bin/env bash
# Makes README's pictures anew, from real runs on the loopback address: demo.svg is what
# `exitfetch demo` prints, report.png the page of a run against a lab. Needs chromium.
set -euo pipefail
cd "$(dirname "$0")"
exitfetch=$(realpath "${EXITFETCH:-../target/release/exitfetch}")
work=$(mktemp -d)
trap 'kill -INT "${lab:-}" 2>/dev/null || true; rm -rf "$work"' EXIT

# The terminal: a line of text for each line.
{ echo '$ exitfetch demo'; "$exitfetch" demo; } >"$work/demo.txt"
awk '
  { if (length > width) width = length; gsub(/&/, "\\&amp;"); gsub(/</, "\\&lt;"); gsub(/ /, "\\&#160;"); line[NR] = $0 }
  END {
    w = width * 7.85 + 40; h = NR * 18 + 32
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\">\n", w, h, w, h
    print "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16191d\"/>"
    print "<g fill=\"#d9dde2\" font-family=\"ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace\" font-size=\"13\">"
    for (n = 1; n <= NR; n++) printf "<text x=\"20\" y=\"%d\">%s</text>\n", n * 18 + 14, line[n]
    print "</g></svg>"
  }' "$work/demo.txt" >demo.svg

# The page: sites of different kinds through exits of two tiers, some of them bad.
cd "$work"
"$exitfetch" lab --exits 9 --capacity 4 --behaviour 407 --behaviour swing:6000:5000:502 \
  --write . >lab.txt &
lab=$!
until grep -q 'Ctrl-C' lab.txt; do sleep 0.1; done
sed -i '/^http/{s/$/ tier=static/;}; 0~3s/tier=static/tier=residential/' exits.txt
{
  for n in $(seq 700); do echo "http://shop-$((n % 6)).test/delay/$((150 + n * 37 % 500))/$n"; done
  for n in $(seq 240); do echo "http://img.test/bytes/$((n * 7919 % 200000))/$n?wait=$((80 + n % 5 * 30))"; done
  for n in $(seq 90); do echo "http://slow.test/drip/$n?bytes=4000&ms=$((900 + n * 31 % 1500))"; done
  for n in $(seq 9); do echo "http://shop-1.test/status/404/$n"; done
} | shuf --random-source=<(yes) >list.txt
"$exitfetch" run --exits exits.txt --urls list.txt --rate 9 --out monday --seed 1 --progress never \
  --summary none || true
"$exitfetch" report monday
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars \
  --disable-background-networking --disable-component-update --disable-sync \
  --user-data-dir="$work/profile" --blink-settings=preferredColorScheme=1 \
  --screenshot="$work/report.png" --window-size=1100,1720 "file://$work/monday/report.html"
cd - >/dev/null
cp "$work/report.png" report.png
