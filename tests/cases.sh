#!/usr/bin/env bash
# Which tests hold off which failures: CONTRIBUTING.md says what the ids mean.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "known failures, and the tests that hold them off:"
find src tests -name '*.rs' -print0 | sort -z | xargs -0 awk '
  FNR == 1 { ids = "" }
  /^ *\/\/\// {
    line = $0
    while (match(line, /[A-H][0-9][0-9]/)) {
      ids = ids " " substr(line, RSTART, 3)
      line = substr(line, RSTART + 3)
    }
  }
  /fn [a-z0-9_]+\(/ && ids != "" {
    name = $0; sub(/.*fn /, "", name); sub(/\(.*/, "", name)
    file = FILENAME; sub(/^tests\/it\//, "", file); sub(/\.rs$/, "", file)
    n = split(ids, each, " ")
    for (i = 1; i <= n; i++) print each[i], file "::" name
    ids = ""
  }' | sort -u | awk '
  $1 != id { print $1; id = $1 }
  { print "    " $2 }'
