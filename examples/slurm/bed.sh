#!/bin/bash
# A Slurm of its own on one machine, for tests: bed.sh FOLDER NODES, in a network namespace (unshare -n). It needs root and
# Debian's slurmctld, slurmd, slurm-client and slurm-wlm-basic-plugins. Loopback alone fails in getaddrinfo, so there is a
# pair of veth devices.
set -eu
D=$1 N=$2 H=$(hostname)
ip link set lo up
ip link show d0 >/dev/null 2>&1 || { ip link add d0 type veth peer name d1; ip addr add 10.99.0.1/24 dev d0; }
ip link set d0 up
ip link set d1 up
mkdir -p "$D/state" "$D/spool" "$D/log"
cat >"$D/slurm.conf" <<C
ClusterName=bed
SlurmctldHost=$H(10.99.0.1)
SlurmctldPort=26817
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
StateSaveLocation=$D/state
SlurmdSpoolDir=$D/spool/%n
SlurmdPidFile=$D/spool/%n.pid
SlurmctldPidFile=$D/slurmctld.pid
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdLogFile=$D/log/%n.log
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
KillWait=2
MinJobAge=10
SlurmdTimeout=120
NodeName=n[1-$N] NodeAddr=10.99.0.1 NodeHostname=$H Port=[26901-$((26900 + N))] CPUs=16 RealMemory=64000
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
C
export SLURM_CONF=$D/slurm.conf
slurmctld -D >"$D/log/slurmctld.out" 2>&1 &
echo $! >"$D/slurmctld.id"
echo $! >"$D/ids"
sleep 1
for i in $(seq "$N"); do
	slurmd -D -N "n$i" >"$D/log/n$i.out" 2>&1 &
	echo $! >>"$D/ids"
done
for _ in $(seq 100); do
	[ "$(sinfo -h -t idle -o %D 2>/dev/null | awk '{n += $1} END {print n + 0}')" = "$N" ] && exit 0
	sleep 0.2
done
echo "bed.sh: not all of $N nodes became idle: see $D/log" >&2
exit 1
