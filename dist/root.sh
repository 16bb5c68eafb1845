#!/usr/bin/env bash
# Makes a clean Debian root with a package in its folder /root, and with what apt-get would fetch for the commands of
# docs/operations.md, so that they need no network. A systemctl that reads units and starts what they say, as the user
# that they name, stands for the service manager, which a root has none of. Needs root and mmdebstrap. Usage:
# dist/root.sh PACKAGE.deb FOLDER
set -euo pipefail
package=$1 root=$2
mmdebstrap --quiet --variant=minbase --include=ca-certificates bookworm "$root"
cp "$package" "$root/root/"
cp /etc/resolv.conf "$root/etc/resolv.conf"
echo "127.0.0.1 localhost" >"$root/etc/hosts"
chroot "$root" apt-get update -qq
chroot "$root" apt-get install -y -qq --no-install-recommends --download-only openssl curl prometheus >/dev/null
install -m 755 /dev/stdin "$root/usr/local/bin/systemctl" <<'SHIM'
#!/bin/sh
# systemctl [enable --now|restart|reload] UNIT, as far as Type, User, ExecStart, EnvironmentFile and StateDirectory go.
set -eu
case "$1" in
enable) [ "$2" = --now ] && shift ;;
restart | reload) ;;
*) exit 0 ;; # what maintainer scripts ask
esac
verb=$1 name=$2
unit=$(ls /usr/lib/systemd/system/$name.service)
of() { sed -n "s/^$1=-\{0,1\}//p" "$unit" | tail -1; }
if [ "$verb" != --now ] && [ -f "/run/$name.pid" ]; then
	if [ "$verb" = reload ]; then
		kill -HUP "$(cat "/run/$name.pid")"
		exit
	fi
	kill "$(cat "/run/$name.pid")"
fi
user=$(of User) state=$(of StateDirectory) file=$(of EnvironmentFile)
if [ -n "$state" ]; then install -d -o "$user" -g "$user" -m 700 "/var/lib/$state"; fi
if [ -f "$file" ]; then . "$file"; fi
cd /
eval "setpriv --reuid=$user --regid=$user --init-groups $(of ExecStart) >/var/log/$name.log 2>&1 &"
echo $! >"/run/$name.pid"
SHIM
