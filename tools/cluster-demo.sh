#!/usr/bin/env bash
# Three processes with one journal in a bucket of a store of their own: one is killed while it leads. `make cluster-demo` runs it.
# It needs out/s3/versitygw and bin/stint. With a terminal it goes on until Enter, so that a browser can look.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=out/cluster-demo
store=127.0.0.1:7470
rm -rf "$dir" && mkdir -p "$dir/root/alloc" "$dir/meta"
pids=()
end() { kill "${pids[@]}" 2>/dev/null || true; wait 2>/dev/null || true; }
trap end EXIT

export AWS_ACCESS_KEY_ID=demo AWS_SECRET_ACCESS_KEY=demosecret
ROOT_ACCESS_KEY=demo ROOT_SECRET_KEY=demosecret out/s3/versitygw --port $store --quiet posix --sidecar "$PWD/$dir/meta" "$PWD/$dir/root" >"$dir/store.log" 2>&1 &
pids+=($!)

at() { echo "http://127.0.0.1:747$1"; }
until_ready() { # N: waits for process N
	for _ in $(seq 600); do
		curl -sf "$(at "$1")/readyz" >/dev/null && return
		sleep 0.1
	done
	echo "process $1 is not ready: see $dir/$1.log and $dir/store.log" >&2
	exit 1
}
start() { # N: starts process N
	printf 'data: %s\nlisten: 127.0.0.1:747%s\nmanual: true\ncluster: {bucket: "s3://alloc/demo", name: demo, endpoint: "http://%s", region: us-east-1, process: stint-%s}\n' \
		"$PWD/$dir/$1" "$1" $store "$1" >"$dir/$1.yaml"
	bin/stint serve --config "$dir/$1.yaml" 2>>"$dir/$1.log" &
	pid[$1]=$!
	pids+=($!)
	disown
}
says() { # N: what process N says of itself
	curl -s -m 2 "$(at "$1")/readyz" | sed -n 's/.*"cycle":\([0-9]*\).*"leader":"\([^"]*\)","leads":\([a-z]*\).*/cycle \1, leads: \3, leader: \2/p'
}
digest() { # N CYCLE: the digest that process N has of a cycle
	curl -s "$(at "$1")/v1/cycles/$2/cycles?format=csv" | tail -1 | sed 's/.*,//' | cut -c1-16
}
cycle() { # N: has a cycle run, asking process N
	curl -s -m 2 -X POST "$(at "$1")/v1/cycles" | sed -n 's/.*"cycle":\([0-9]*\).*"units_held":\([0-9]*\).*/cycle \1: \2 units held/p'
}
show() {
	for n in 1 2 3; do
		printf 'stint-%s  %-15s  %s\n' $n "$(at $n | cut -c8-)" "$(says $n || true)"
	done
}

for _ in $(seq 100); do
	(exec 3<>/dev/tcp/127.0.0.1/7470) 2>/dev/null && break
	sleep 0.1
done
declare -a pid
for n in 1 2 3; do start $n; done
for n in 1 2 3; do until_ready $n; done
bin/stint gen grid --hosts 200 --consumers 30 --units 4000 --seed 1 --out "$dir/site" >/dev/null

leader=
while [ -z "$leader" ]; do
	for n in 1 2 3; do says $n | grep -q 'leads: true' && leader=$n; done
	sleep 0.1
done
other=$((leader % 3 + 1))
echo "Pushed to stint-$other, which passes it on:"
curl -s -T "$dir/site/plan.yaml" "$(at $other)/v1/plan" >/dev/null
curl -s -T "$dir/site/hosts.parquet" -H 'Content-Type: application/vnd.apache.parquet' "$(at $other)/v1/hosts" >/dev/null
curl -s -T "$dir/site/demand.parquet" -H 'Content-Type: application/vnd.apache.parquet' "$(at $other)/v1/demand/grid"
cycle $other
sleep 0.6
show
echo "Digest of cycle 1, as each process decided it:"
for n in 1 2 3; do echo "stint-$n  $(digest $n 1)"; done

echo "stint-$leader, which leads, is killed."
kill -9 "${pid[$leader]}"
begun=$(date +%s%N)
until answer=$(cycle $other) && [ -n "$answer" ]; do sleep 0.02; done
echo "$answer, $((($(date +%s%N) - begun) / 1000000)) ms later (a lease is 2 s)"
start "$leader"
until_ready "$leader"
sleep 0.6
show
if [ -t 0 ]; then
	echo "A console: $(at $other)/   Enter ends it all."
	read -r _
fi
for n in 1 2 3; do kill "${pid[$n]}"; done
for n in 1 2 3; do while kill -0 "${pid[$n]}" 2>/dev/null; do sleep 0.1; done; done
echo "All have ended. Their decision log, as it lies in the bucket:"
AWS_ENDPOINT_URL=http://$store AWS_REGION=us-east-1 bin/stint verify --log s3://alloc/demo | tail -1
