#!/bin/sh
# A purge takes the state with it: the journal and the decision log. A removal leaves both.
set -e
case "$1" in
purge)
	rm -rf /var/lib/stint
	if getent passwd stint >/dev/null; then
		userdel stint
	fi
	if getent group stint >/dev/null; then
		groupdel stint
	fi
	;;
esac
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
