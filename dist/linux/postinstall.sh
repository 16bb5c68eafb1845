#!/bin/sh
# Makes the user of the service. Its state directory is made by the service manager.
set -e
if ! getent group stint >/dev/null; then
	groupadd --system stint
fi
if ! getent passwd stint >/dev/null; then
	useradd --system --gid stint --no-create-home --home-dir /var/lib/stint --shell /usr/sbin/nologin stint
fi
chgrp stint /etc/stint /etc/stint/serve.yaml
chmod 0750 /etc/stint
chmod 0640 /etc/stint/serve.yaml
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart stint.service
fi
