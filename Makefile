# stint: see README.md. Every target works on a clean clone with git, Go and make.

GO      ?= go
# without it arrow brings a JSON library that takes a tenth of a first build and is never called (D-178)
GOFLAGS ?= -tags=arrow_json_stdlib
export GOFLAGS
TOOLS   := $(GO) tool -modfile=tools/go.mod
DEMO    := out/demo
SOAK    ?= 100000
FILES   ?= 100000
LOGS    ?= 300
PROOF   ?= 10
CHANGES ?= 1000
FUZZ    ?= 60s
TARGET  ?=
KILLS   ?= 100
MUTANT  ?=
EXTERNAL ?= ../shared/external
DATA    ?= ../shared/data
SHARED  ?= ../shared
HISTORIES ?= 2000
VERSION ?= 0.1.0
PAGE    ?=
ROUNDS  ?= 12
FAILOVERS ?= 5
MINUTES ?= 60
PROMTOOL := $(or $(shell command -v promtool),out/promtool)

.PHONY: build readme run test test-clean test-pages test-shared test-console test-cluster cluster-demo pictures pictures-of check lint soak mutants fuzz bench bench-external bench-peers bound bound-exact results gate gate-write gate-proof package test-package generate clean openapi test-typescript test-alerts test-chart test-hour release golangci test-python test-kueue test-kube test-install test-slurm

build: ## bin/stint, one file that needs no library of the machine
	CGO_ENABLED=0 $(GO) build -buildvcs=auto -o bin/stint ./cmd/stint

readme: build ## run the commands that README, the tutorial and the recipes show, and put what they print there
	STINT_README=write $(GO) test -count=1 -run TestPages ./cmd/stint

openapi: ## the examples of the API's description, from a service that makes them
	echo '{}' >ingest/server/examples.json
	STINT_EXAMPLES=write $(GO) test -count=1 -run TestOpenAPIExamples ./ingest/server
	$(GO) test -count=1 -run 'OpenAPI' ./ingest/server

test-typescript: build ## lints the API's description (redocly), and compiles and runs a TypeScript client made of it; needs node, fetches packages
	clients/typescript/test.sh bin/stint out/typescript

test-python: build ## the Python client against a service; its Arrow with pyarrow where that is installed, else with a stand-in, which it says
	STINT=$(CURDIR)/bin/stint python3 -B -m unittest discover -v -s clients/python

test-kueue: ## the controller for Kueue, what needs no cluster (a module of its own; compiles for minutes the first time)
	cd examples/kueue && $(GO) vet ./... && $(GO) test -count=1 ./...

KUBE_BED ?= $(HOME)/.cache/stint-kube
test-kube: build ## the controller for Kueue against a Kubernetes API server and etcd, which it builds once into KUBE_BED (minutes)
	mkdir -p $(KUBE_BED)
	cd examples/kueue/bed && cmp -s go.sum $(KUBE_BED)/go.sum || { $(GO) build -ldflags='-s -w' -o $(KUBE_BED)/etcd ./etcd && \
		$(GO) build -ldflags='-s -w' -o $(KUBE_BED)/kube-apiserver ./apiserver && cp go.sum $(KUBE_BED)/go.sum; }
	cd examples/kueue && $(GO) vet -tags arrow_json_stdlib,kube ./... && STINT=$(CURDIR)/bin/stint STINT_KUBE_BED=$(KUBE_BED) \
		$(GO) test -tags arrow_json_stdlib,kube -count=1 -v ./...

run: build ## make a cluster, run three cycles on it, show what was decided
	rm -rf $(DEMO)
	bin/stint gen grid --hosts 2000 --consumers 300 --units 50000 --shapes 6 --seed 1 --out $(DEMO)
	bin/stint run --at 2026-01-05T08:00:00Z --plan $(DEMO)/plan.yaml --hosts $(DEMO)/hosts.parquet --demand $(DEMO)/demand.parquet --cycles 3 --out $(DEMO)/log

test: ## all but the long tests
	$(GO) test -timeout 30m -vet=off ./...
	GOMAXPROCS=1 $(GO) test -count=1 -vet=off -run 'TestDigest' ./core/cycle
	@test -n "$$STINT_S3" || echo "THE CLUSTER WAS NOT TESTED WITH A REAL STORE: make test-cluster builds one"
	@command -v chromium >/dev/null || test -n "$$STINT_CHROMIUM" || echo "THE CONSOLE WAS NOT TESTED: there is no Chromium (make test-console installs one)"

test-clean: ## README's two commands on a clone of HEAD with empty caches of Go, in a temporary folder; prints times and disk
	tools/stranger.sh clean

test-pages: ## every block of README and docs/, with the programs that they use, which it installs where they are missing (Debian)
	@command -v curl >/dev/null && command -v openssl >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends curl openssl; }
	$(GO) test -count=1 -vet=off -run TestPages -v ./cmd/stint

test-shared: ## what needs files that are no part of the project: cases (.ci/pending lists those that wait for a rule), public traces: make test-shared SHARED=DIR
	@test -d $(SHARED) || { echo "there is no folder $(SHARED): make test-shared SHARED=DIR"; exit 1; }
	export STINT_SHARED=$(abspath $(SHARED)) STINT_OPENB=$(abspath $(SHARED))/data/openb STINT_FGD=$(abspath $(SHARED))/external/fgd; \
		$(GO) test -count=1 -vet=off -run 'TestShared|TestPages/README' ./cmd/stint && \
		$(GO) test -count=1 -vet=off -run 'OpenB' ./core/cycle && $(GO) test -count=1 -vet=off -run TestFGDPublished ./bench/external

test-console: ## the console in a Chromium, which it installs where there is none
	@command -v chromium >/dev/null || test -n "$$STINT_CHROMIUM" || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }
	STINT_CONSOLE=must $(GO) test -count=1 -timeout 30m ./ingest/console/...

cluster-demo: build out/s3/versitygw ## three processes with a journal in a bucket; the one that leads is killed
	tools/cluster-demo.sh

out/s3/versitygw: tools/s3/go.mod
	cd tools/s3 && $(GO) build -o $(CURDIR)/out/s3/versitygw github.com/versity/versitygw/cmd/versitygw

test-cluster: out/s3/versitygw ## several processes with a real object store, which it builds: make test-cluster ROUNDS=200 FAILOVERS=100
	STINT_S3=$(CURDIR)/out/s3/versitygw STINT_TEST_CLUSTER=$(ROUNDS) STINT_TEST_FAILOVERS=$(FAILOVERS) STINT_TEST_ROUNDS=$(ROUNDS) \
		$(GO) test -count=1 -timeout 2h -v -run 'TestCluster|TestFailover|TestWrongProcess|TestUpgrade|TestLateJoiner|TestS3|TestRounds' ./ingest/bucket ./cmd/stint

test-alerts: ## alerts, dashboard and /metrics, by promtool, which it fetches where there is none (Debian)
	@command -v promtool >/dev/null || test -x $(PROMTOOL) || { mkdir -p out && cd out && apt-get update -qq && \
		apt-get download -qq prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/promtool && \
		rm prometheus_*.deb; }
	$(PROMTOOL) check rules dist/prometheus/alerts.yaml
	$(PROMTOOL) test rules dist/prometheus/alerts_test.yaml
	$(PROMTOOL) check rules dist/prometheus/act.yaml
	$(PROMTOOL) test rules dist/prometheus/act_test.yaml
	mkdir -p out/watching && STINT_WATCHING=$(CURDIR)/out/watching $(GO) test -count=1 -run TestKeepForPromtool ./ingest/server
	$(PROMTOOL) check rules out/watching/dashboard.yaml
	$(PROMTOOL) check metrics <out/watching/scrape.txt

pictures: ## the pictures of docs/console.md, from the demo
	STINT_CONSOLE=must STINT_PICTURES=$(CURDIR)/docs/pictures $(GO) test -count=1 -run TestPictures ./ingest/console/browser

pictures-of: ## pictures of all views of a log: make pictures-of LOG=out/openb/log@700 TO=out/pictures
	STINT_CONSOLE=must STINT_PICTURES_OF=$(abspath $(LOG)) STINT_PICTURES=$(abspath $(TO)) $(GO) test -count=1 -run TestPicturesOf ./ingest/console/browser

check: lint ## vet, staticcheck, import table, formatting; other platforms and readers, each of which compiles all anew
	$(GO) vet ./...
	$(GO) test -run TestImports .
	GOARCH=arm64 $(GO) build ./...
	$(GO) build -tags purego ./...
	$(GO) test -tags purego ./vecpack
	cd export/interop && $(GO) vet ./... && $(GO) test ./...
	$(GO) test -count=1 -tags purego -run 'TestDigest' ./core/cycle
	GOAMD64=v3 $(GO) test -count=1 -vet=off -run 'TestDigest' ./core/cycle
	$(GO) test -race -tags purego -short ./core/... ./ingest/...

lint:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -d $$(git ls-files '*.go'); exit 1; }
	$(TOOLS) staticcheck ./...

golangci: ## the linters of .golangci.yml; the first time it builds golangci-lint, which takes minutes
	cd tools/lint && $(GO) build -o $(CURDIR)/out/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	out/golangci-lint run

soak: ## the properties over many random cases, from seeds that it prints, and that those notice wrong engines; a case that fails is kept in out/failed: make soak SOAK=100000
	rm -rf out/failed && mkdir -p out/failed
	STINT_FAILED=$(CURDIR)/out/failed STINT_SOAK=$(SOAK) $(GO) test -count=1 -timeout 6h -run 'TestSoak|TestStreams|TestExclusive|TestOwners$$|TestTooSmall|TestMostUnits|TestLendOracle' -v ./core/cycle
	$(MAKE) mutants
	rm -rf out/scenarios && mkdir -p out/scenarios && STINT_SOAK=$(LOGS) STINT_FAILED=$(CURDIR)/out/failed STINT_SCENARIOS=$(CURDIR)/out/scenarios $(GO) test -count=1 -timeout 1h -run TestSoak -v ./core/cycle
	STINT_SCENARIOS=$(CURDIR)/out/scenarios $(GO) test -count=1 -timeout 3h -run 'TestLogs$$|TestSoakLogs|TestSoakOpenB|TestSoakReplay|TestReplayFromStates|TestLogsKept' -v ./cmd/stint
	STINT_SOAK=1 STINT_MUTATIONS=$(CHANGES) $(GO) test -count=1 -timeout 1h -run 'TestMutations|TestCompactStopped' -v ./export
	cd export/interop && STINT_SOAK=1 $(GO) test -count=1 -timeout 1h ./...
	cd export/duckdb && $(GO) test -count=1 -timeout 1h ./...
	STINT_TEST_HISTORIES=$(HISTORIES) STINT_SCENARIOS=$(CURDIR)/out/scenarios $(GO) test -count=1 -timeout 3h -run 'TestHistories$$' -v ./cmd/stint
	STINT_SOAK=$(FILES) $(GO) test -count=1 -timeout 6h -run TestHostileFiles -v ./cmd/stint
	STINT_TEST_KILLS=$(KILLS) $(GO) test -count=1 -timeout 1h -run TestCrash -v ./cmd/stint
	STINT_SOAK=1 $(GO) test -count=1 -timeout 1h -run TestLarge -v ./ingest/console/browser

mutants: ## wrong engines, patches of testdata/mutants: the tests must notice each: make mutants MUTANT='slot/recall:'
	STINT_MUTANTS=1 $(GO) test -count=1 -timeout 12h -run 'TestMutants$$$(if $(MUTANT),/$(MUTANT))' -v .

fuzz: ## every fuzz target in turn, each so long or so often: make fuzz FUZZ=10m, FUZZ=1000000x; TARGET=FuzzParse for some
	tools/fuzz.sh $(FUZZ) '$(TARGET)'

bench: build ## cold cycles and decode rates, medians of ten, with the machine they ran on
	$(GO) run ./bench
	$(GO) run ./bench/service
	$(GO) test -run '^$$' -bench Rate -benchtime 10x ./ingest/table

bench-external: build ## workloads that others published, from EXTERNAL (a folder that is not part of the project): PAGE=docs/results.md
	@test -d $(EXTERNAL) || { echo "no $(EXTERNAL): nothing to play (make bench-external EXTERNAL=DIR)"; exit 0; }; set -e; \
		play() { $(GO) run ./bench/external $(if $(PAGE),-page $(PAGE)) "$$@"; echo; }; \
		play kueue $(EXTERNAL)/kueue baseline; play kueue $(EXTERNAL)/kueue large-scale; \
		play -every 5m -part 4 -logged 600h philly $(EXTERNAL)/philly/philly.csv; \
		play -every 5m -gangs -logged 648h philly $(EXTERNAL)/philly/philly.csv; \
		play -every 15m -gangs -part 4 -logged 300h philly $(EXTERNAL)/philly/philly.csv; \
		play -logged 12h -predict 400 slurm $(EXTERNAL)/slurm; play -every 5m -logged 48h -predict 500 swf $(EXTERNAL)/swf/lublin_256.swf; \
		test -f $(DATA)/openb/openb_node_list_all_node.csv || { echo "no $(DATA)/openb: FGD's curves are left out (DATA=DIR)"; exit 0; }; \
		play fgd $(EXTERNAL)/fgd $(DATA)/openb/openb_node_list_all_node.csv

bench-peers: ## other schedulers on the same cluster in the same run (a module of its own): PAGE=docs/results.md
	cd bench/peers && $(GO) test -count=1 ./... && $(GO) run . $(if $(PAGE),-page $(CURDIR)/$(PAGE))

bound: build ## what is held of the most that any placement could hold: generated clusters, and openb where DATA has it, also 66 times
	@for p in "grid --hosts 5000 --units 50000" "hetero --hosts 5000 --units 50000" "gpu --hosts 5000 --units 100000" "lenders --hosts 5000 --units 50000 --consumers 500 --shapes 50"; do \
		echo "$$p"; bin/stint bench --profile $$p --cycles 1 --bound | sed -n '/^plan.*: held/,/^held where/p'; echo; done
	@test -f $(DATA)/openb/openb_node_list_all_node.csv || { echo "no $(DATA)/openb: the public trace is left out (make bound DATA=DIR)"; exit 0; }; \
	set -e; for n in 1 66; do o=out/bound/openb-$$n; mkdir -p $$o; \
		for f in node_list_all_node pod_list_default; do \
			awk -v n=$$n 'NR == 1 { print; next } { for (i = 0; i < n; i++) { row = $$0; sub(/^[^,]*/, "&-" i, row); print row } }' $(DATA)/openb/openb_$$f.csv >$$o/$$f.csv; done; \
		echo "openb x $$n"; bin/stint import openb --nodes $$o/node_list_all_node.csv --pods $$o/pod_list_default.csv --out $$o | sed 1q; \
		bin/stint bench --plan $$o/plan.yaml --hosts $$o/hosts.parquet --demand $$o/demand.parquet --cycles 1 --bound | sed -n '/^plan.*: held/,/^held where/p'; echo; done

bound-exact: ## the bound and what is held beside the optimum of an exact solver, which it installs (Debian): PAGE=docs/results.md
	@command -v glpsol >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends glpk-utils; }
	STINT_EXACT=must $(GO) test -count=1 ./bench/exact
	$(GO) run ./bench/exact $(if $(wildcard $(DATA)/openb),-openb $(DATA)/openb) $(if $(PAGE),-page $(PAGE))

results: build ## docs/results.md and its curves: time against hosts, consumers and units, on this machine
	$(GO) run ./bench/results

gate: ## whether anything became slower: small suites, as ratios to a kernel, against the committed ones
	@$(GO) run ./bench/gate

gate-write: ## measure those ratios anew, after a change that is meant to cost or save time
	$(GO) run ./bench/gate -write

gate-proof: ## that the gate tells of slowdowns of 30 % in grant, reclaim and ingest, ten times each, and of none in twenty runs without: PROOF=1 for one and two
	STINT_PROOF=$(PROOF) $(GO) test -count=1 -timeout 2h -tags proof -run TestPlanted -v ./bench/gate

package: ## binaries, packages, SBOM and checksums in out/dist: make package VERSION=0.1.0
	dist/build.sh $(VERSION)

test-package: ## the Debian package: lintian, and in a clean root install, start, upgrade, remove, purge (needs root; installs what it needs)
	@command -v lintian >/dev/null && command -v mmdebstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends lintian mmdebstrap curl; }
	dist/build.sh 0.0.1 amd64 && mv out/dist/stint_0.0.1_amd64.deb out/old.deb
	dist/build.sh $(VERSION) amd64
	dist/test.sh out/old.deb out/dist/stint_$(VERSION)_amd64.deb

test-install: ## the commands of docs/operations.md from a package to a service that is scraped, in a clean root (as test-package)
	@command -v mmdebstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends mmdebstrap; }
	dist/build.sh $(VERSION) amd64
	root=$$(mktemp -d) && trap "rm -rf --one-file-system $$root" EXIT && dist/root.sh out/dist/stint_$(VERSION)_amd64.deb $$root && \
		STINT_ROOT=$$root $(GO) test -count=1 -timeout 30m -run TestInstall -v ./cmd/stint

test-hour: build ## an hour of serve with a cycle a second and pushes; memory, files, disk, p99 of reads: make test-hour MINUTES=60
	$(GO) run ./bench/hour -stint bin/stint -minutes $(MINUTES)

test-chart: ## the chart, linted and rendered by Helm, which it builds the first time (minutes), and read by the service
	cd tools/helm && $(GO) build -o $(CURDIR)/out/helm helm.sh/helm/v3/cmd/helm
	@set -e; for v in one cluster; do out/helm lint --strict dist/chart --kube-version 1.31.0 -f dist/chart/ci/$$v.yaml; \
		out/helm template grid dist/chart --kube-version 1.31.0 -f dist/chart/ci/$$v.yaml >out/chart-$$v.yaml; echo "out/chart-$$v.yaml"; done
	$(GO) test -count=1 -run TestChart ./cmd/stint

release: ## binaries, packages, SBOM, checksums and notes of the tag at HEAD, refused where tag, tree and changelog do not agree
	dist/release.sh

generate: ## the assembly of vecpack, after a change of vecpack/_asm
	$(GO) generate ./...

clean:
	rm -rf bin out

test-slurm: build ## the hooks of Slurm in a Slurm of its own, which it installs (Debian, as root): make test-slurm MINUTES=20
	@command -v slurmctld >/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends slurmctld slurmd slurm-client slurm-wlm-basic-plugins; }
	$(GO) test -vet=off -c -o out/slurm.test ./examples/slurm
	cd examples/slurm && STINT_SLURM=$(CURDIR)/bin/stint STINT_MINUTES=$(MINUTES) unshare -n --pid --fork --kill-child --mount-proc \
		$(CURDIR)/out/slurm.test -test.count=1 -test.timeout 3h -test.v
