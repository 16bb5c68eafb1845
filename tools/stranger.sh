#!/usr/bin/env bash
# Does what a stranger does: clones this commit into an empty temporary folder and runs README's two commands there. With
# the argument clean, the caches of Go are empty too. It prints how long each command took and how much disk it used, and
# leaves nothing behind.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD commit=$(git rev-parse HEAD)
dir=$(mktemp -d "${TMPDIR:-/tmp}/stint-stranger.XXXXXX")
clean() {
	chmod -R u+w "$dir" 2>/dev/null || true # Go's module cache is read-only
	rm -rf "$dir"
}
trap clean EXIT
trap 'exit 130' INT TERM
[ -z "$(git status --porcelain)" ] || echo "uncommitted changes are left out: this tests commit $commit"
git clone --quiet --no-local "$here" "$dir/stint"
git -C "$dir/stint" checkout --quiet --detach "$commit"
mkdir "$dir/tmp"
export TMPDIR=$dir/tmp
if [ "${1:-}" = clean ]; then
	mkdir "$dir/cache" "$dir/modules"
	export GOCACHE=$dir/cache GOMODCACHE=$dir/modules
fi
for command in "make run" "make test"; do
	TIMEFORMAT="$command: %lR on $(nproc) processors, which worked for %U s + %S s"
	time (cd "$dir/stint" && $command </dev/null)
	echo "$command: $(du -sm "$dir" | cut -f 1) MB of disk in all"
done
