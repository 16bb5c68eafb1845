#!/usr/bin/env bash
# Builds what a release has: static binaries, packages, an SBOM and checksums, in out/dist. Two runs on one commit make
# the same bytes. Usage: dist/build.sh VERSION [ARCH...]; make package calls it.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: dist/build.sh VERSION [ARCH...]}
shift
arches=("$@")
if [ $# = 0 ]; then arches=(amd64 arm64); fi
export LC_ALL=C TZ=UTC CGO_ENABLED=0
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
day=$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)
out=out/dist
rm -rf "$out"
mkdir -p "$out"
tools=(go tool -modfile=dist/go.mod)

# Man pages and completions are the same for all architectures; the machine's own binary writes them.
go build -trimpath -o "$out/stint-here" ./cmd/stint
"$out/stint-here" man --out "$out/text" --date "$day"
gzip -9n "$out"/text/man/*.1
gzip -9nc CHANGELOG.md >"$out/text/NEWS.gz"
printf 'stint (%s) stable; urgency=medium\n\n  * What is new stands in NEWS.gz.\n\n -- %s  %s\n' "$version" \
	"The stint authors <stintd@users.noreply.github.com>" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$out/text/changelog.gz"
"$out/stint-here" serve --example | sed 's|^data: .*|data: /var/lib/stint|' >"$out/text/serve.yaml"
rm "$out/stint-here"

for arch in "${arches[@]}"; do
	files=$out/linux-$arch
	cp -r "$out/text" "$files"
	GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=auto -ldflags="-s -w -buildid=" -o "$files/stint" ./cmd/stint
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner -cf - \
		-C "$files" stint man completion serve.yaml -C "$PWD" LICENSE README.md | gzip -9n >"$out/stint-$version-linux-$arch.tar.gz"
	for packager in deb rpm; do
		STINT_VERSION=$version STINT_ARCH=$arch STINT_FILES=$files \
			"${tools[@]}" nfpm package --config dist/nfpm.yaml --packager "$packager" --target "$out" >/dev/null
	done
	"${tools[@]}" cyclonedx-gomod bin -json -noserial -version "v$version" "$files/stint" 2>/dev/null |
		sed '/^    "timestamp":/d' >"$out/stint-$version-linux-$arch.cdx.json"
done
rm -rf "$out/text"
(cd "$out" && sha256sum -- *.tar.gz *.deb *.rpm *.json >SHA256SUMS)
ls -l "$out"
