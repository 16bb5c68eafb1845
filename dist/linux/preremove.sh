#!/bin/sh
# Stops the service when the package goes; an upgrade restarts it once the new files are there.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now stint.service
	fi
	;;
esac
