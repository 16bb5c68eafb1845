#!/usr/bin/env bash
# Installs a package in a clean Debian root, starts the service, upgrades it beside a changed configuration, removes and
# purges it. Needs root, mmdebstrap and lintian (make test-package installs both). Usage: dist/test.sh OLD.deb NEW.deb
set -euo pipefail
old=$1 new=$2
root=$(mktemp -d)
service=
finish() {
	if [ -n "$service" ]; then kill "$service" 2>/dev/null || true; fi
	rm -rf --one-file-system "$root"
}
trap finish EXIT
step() { printf '== %s\n' "$*"; }
fail() {
	printf 'FAILED: %s\n' "$*" >&2
	exit 1
}
inside() { chroot "$root" "$@"; }

step "lintian"
lintian --fail-on error,warning "$new"
step "how much of the machine the unit may reach"
systemd-analyze security --offline=true --threshold=20 --no-pager dist/linux/stint.service | tail -1

step "a clean root"
mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$root"
# The older version's configuration has another line, so that the upgrade finds two changes: the package's and the user's.
dpkg-deb -R "$old" "$root/old"
echo "# of an earlier version" >>"$root/old/etc/stint/serve.yaml"
dpkg-deb -b "$root/old" "$root/old.deb" >/dev/null
cp "$new" "$root/new.deb"

step "install"
inside dpkg -i /old.deb
inside stint version
inside getent passwd stint
[ "$(stat -c %a "$root/etc/stint/serve.yaml")" = 640 ] || fail "others may read serve.yaml"

# The service manager makes the state directory; here there is none.
inside install -d -o stint -g stint -m 700 /var/lib/stint
address=127.0.0.1:17468
start() {
	chroot --userspec=stint:stint "$root" /usr/bin/stint serve --config /etc/stint/serve.yaml --listen $address 2>"$root/service.log" &
	service=$!
	for _ in $(seq 100); do
		if curl -fsS "http://$address/healthz" >/dev/null 2>&1; then return; fi
		sleep 0.1
	done
	cat "$root/service.log" >&2
	fail "the service does not answer"
}
stop() {
	kill -TERM "$service"
	wait "$service"
	service=
}
step "start, give it a policy, stop"
start
inside stint init --like slots --out /init >/dev/null
curl -fsS -X PUT --data-binary "@$root/init/plan.yaml" "http://$address/v1/plan" | head -c 200
echo
stop

step "upgrade beside a changed configuration"
echo "interval: 30s" >>"$root/etc/stint/serve.yaml"
inside dpkg --force-confold -i /new.deb
tail -1 "$root/etc/stint/serve.yaml" | grep -qx "interval: 30s" || fail "the upgrade changed serve.yaml"
[ -f "$root/etc/stint/serve.yaml.dpkg-dist" ] || fail "the new version's configuration is not beside the user's"
start
curl -fsS "http://$address/v1/plan" | cmp - "$root/init/plan.yaml" || fail "the policy did not outlive the upgrade"
stop

step "remove: configuration and state stay"
inside dpkg -r stint
[ -f "$root/etc/stint/serve.yaml" ] || fail "serve.yaml is gone"
[ -d "$root/var/lib/stint/journal" ] || fail "the journal is gone"
[ ! -e "$root/usr/bin/stint" ] || fail "the binary is still there"

step "purge: nothing stays"
inside dpkg -P stint
for path in /etc/stint /var/lib/stint; do
	[ ! -e "$root$path" ] || fail "$path is still there"
done
if inside getent passwd stint; then fail "the user is still there"; fi
echo "the package installs, runs, upgrades and goes"
