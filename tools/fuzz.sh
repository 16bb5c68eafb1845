#!/usr/bin/env bash
# Runs every fuzz target in turn: tools/fuzz.sh TIME [PATTERN], TIME as go test -fuzztime takes it (60s, 1000000x). A
# target that makes fewer than 10,000 executions a minute fails: it would find nothing. PARALLEL says how many workers.
set -euo pipefail
cd "$(dirname "$0")/.."
time=$1 pattern=${2:-.} go=${GO:-go} failed=0
# targets that write files sync them: in memory the journal's is 500 times as fast
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
out=$(mktemp)
trap 'rm -f "$out"' EXIT
while read -r package target; do
	[[ $target =~ $pattern ]] || continue
	echo "== $package $target"
	status=0
	"$go" test -vet=off -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 1x -parallel "${PARALLEL:-2}" -timeout 0 \
		"$package" >"$out" 2>&1 </dev/null || status=$?
	grep -v '^fuzz: elapsed' "$out" || true
	# the last line with figures: fuzz: elapsed: 1m2s, execs: 123456 (2000/sec), new interesting: 7 (total: 60)
	line=$(grep '^fuzz: elapsed.*execs:' "$out" | tail -1 || true)
	echo "$line"
	if [ "$status" -ne 0 ]; then
		failed=1
		continue
	fi
	read -r seconds execs < <(sed -E 's/.*elapsed: (([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?, execs: ([0-9]+).*/0\2 0\4 0\6 \7/' <<<"$line" |
		awk '{ print $1 * 3600 + $2 * 60 + $3, $4 }')
	# the first seconds start the workers and play the corpus
	if [ "${seconds:-0}" -gt 3 ] && [ "$((execs * 60 / seconds))" -lt 10000 ]; then
		echo "$package $target: $((execs * 60 / seconds)) executions a minute: must be 10,000; make its input smaller"
		failed=1
	fi
	if [ -z "$line" ]; then
		echo "$package $target: go test printed no executions"
		failed=1
	fi
done < <(grep -roE '^func Fuzz[A-Za-z0-9]+' --include='*_test.go' . | sed -E 's|/[^/]*:func | |' | sort -u)
exit "$failed"
