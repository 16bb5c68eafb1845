#!/usr/bin/env bash
# Builds a release of the tag at HEAD, in out/dist, with its section of the changelog as NOTES.md. It is refused where
# the tag, the tree and the changelog do not agree. Usage: dist/release.sh [--check]; make release calls it. --check
# prints the section and builds nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() {
	echo "dist/release.sh: $*" >&2
	exit 2
}
[ $# -le 1 ] && [ "${1:---check}" = --check ] || fail "usage: dist/release.sh [--check]"

tags=$(git tag --points-at HEAD --list 'v*')
[ -n "$tags" ] || fail "no tag v… at HEAD: git tag -a v0.1.0 -m 'stint 0.1.0'"
[ "$(wc -l <<<"$tags")" = 1 ] || fail "several tags at HEAD:" $tags
version=${tags#v}
[[ $version =~ ^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.]+)?$ ]] ||
	fail "tag $tags: must be v and a semantic version, such as v1.2.3 or v1.2.3-rc.1"
dirty=$(git status --porcelain --untracked-files=no)
[ -z "$dirty" ] || fail "files that are not as in the tag:"$'\n'"$dirty"

# From the heading "## [1.2.3] - 2026-01-05" to the next one, without blank lines at both ends.
heading="## [$version] - "
date=$(awk -v h="$heading" 'index($0, h) == 1 { print substr($0, length(h) + 1); exit }' CHANGELOG.md)
[[ $date =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] ||
	fail "CHANGELOG.md has no heading \"$heading"'YYYY-MM-DD"'
notes=$(awk -v h="$heading" 'index($0, h) == 1 { on = 1; next } on && /^## / { exit } on' CHANGELOG.md | sed '/./,$!d')
grep -q '^- ' <<<"$notes" || fail "CHANGELOG.md says nothing of $version"

if [ $# = 1 ]; then
	printf '%s\n' "$notes"
	exit 0
fi
dist/build.sh "$version"
printf '%s\n' "$notes" >out/dist/NOTES.md
(cd out/dist && sha256sum --quiet -c SHA256SUMS)
echo "stint $version is in out/dist"
