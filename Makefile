# Run "make help" for what there is.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS   += --no-builtin-rules --no-print-directory

BINARY  := bin/grayfail_exporter
TOOL     = go tool -modfile=tools/go.mod

# Stamped into --version and build_info. The date is the commit's: the same
# commit builds the same bytes.
VERSION  ?= $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null || echo 0.1.0-dev)
REVISION ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
BRANCH   ?= $(shell git rev-parse --abbrev-ref HEAD 2>/dev/null || echo unknown)
DATE     ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
STAMP    := github.com/prometheus/common/version
LDFLAGS   = -s -w -X $(STAMP).Version=$(VERSION) -X $(STAMP).Revision=$(REVISION) \
            -X $(STAMP).Branch=$(BRANCH) -X $(STAMP).BuildDate=$(DATE)

# demo: KEEP=1 leaves everything running, ENGINE=standin replaces llama.cpp.
KEEP   ?=
ENGINE ?=
export KEEP ENGINE

# fuzz-short: inputs of each target (20000x) or time (10s), one target after
# another; scripts/fuzz-short.sh says why inputs are counted.
FUZZTIME ?= 20000x
# bench: repetitions (benchstat wants several), packages, an older result to
# compare with.
COUNT    ?= 6
PKG      ?= ./...
BASE     ?=

.DEFAULT_GOAL := help
.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo "  PACKAGES=skip leaves Debian's packages alone (other systems: see scripts/packages.txt)."

.PHONY: demo
demo: packages build ## real llama.cpp with packet loss on one worker: watch the leg being named (KEEP=1 stays, ENGINE=standin)
	@go build -o bin/demo ./lab/cmd/demo && exec bin/demo

.PHONY: lab
RELAY ?=
lab: packages build ## the real llama.cpp over two workers, with the exporter, until Ctrl-C: a place for campaigns, RELAY=127.0.0.1:8099 for delays
	@exec go run ./lab/cmd/cluster $(if $(RELAY),--relay $(RELAY))

.PHONY: test
test: ## everything CI runs, with a time for each part
	@exec scripts/test.sh

.PHONY: build
build: ## the exporter, static, in bin/
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $(BINARY) ./cmd/grayfail_exporter

# What is handed out. The branch is left out of it: a checkout of a tag has none.
DIST ?= bin/dist
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null)
.PHONY: dist
dist: ## static binaries and .deb packages for amd64 and arm64 in bin/dist/ (DIST=); same commit, same bytes
	@SOURCE_DATE_EPOCH='$(SOURCE_DATE_EPOCH)' VERSION='$(VERSION)' LDFLAGS='$(LDFLAGS)' NFPM="$$($(TOOL) -n nfpm)" \
		packaging/dist.sh $(DIST) $(ARCHES)
dist deb: BRANCH := HEAD
ARCHES := amd64 arm64

.PHONY: deb
deb: ARCHES := $(shell go env GOARCH)
deb: dist ## the same for this machine's architecture only

.PHONY: lint
lint: ## golangci-lint with .golangci.yml (its first build takes two minutes)
	$(TOOL) golangci-lint run ./...

.PHONY: vulncheck
vulncheck: ## known vulnerabilities in what the product calls (asks vuln.go.dev, or GOVULNDB=)
	$(TOOL) govulncheck ./...

.PHONY: generate
generate: ## BPF objects (needs clang), dashboards and the PrometheusRule
	go generate ./...
	go -C dashboards/generate run . -out ..
	scripts/generate-prometheusrule.sh

.PHONY: generate-check
generate-check: ## regenerate, and fail if a committed file changes
	@exec scripts/generate-check.sh

.PHONY: fuzz-short
fuzz-short: ## every fuzz target for FUZZTIME each
	@exec scripts/fuzz-short.sh $(FUZZTIME)

# BENCH=report: docs/cost.md, measured anew beside node_exporter and the real
# llama.cpp (root; half an hour). ONLY=qdisc,scrape,...: those parts of it.
BENCH    ?=
ONLY     ?=
.PHONY: bench
ifeq ($(BENCH),report)
bench: packages build ## every benchmark COUNT times (6) into bin/bench.txt, by benchstat (PKG=./... BASE=old.txt); BENCH=report: docs/cost.md
	ONLY='$(ONLY)' COUNT='$(COUNT)' BENCHSTAT="$$($(TOOL) -n benchstat)" scripts/cost.sh $(BINARY)
else
bench:
	@mkdir -p bin
	go test -run '^$$' -bench . -benchmem -count $(COUNT) -p 1 $(PKG) | tee bin/bench.txt
	$(TOOL) benchstat $(BASE) bin/bench.txt
endif

# EVAL=full: many seeds and a year without faults, into bin/. EVAL=thresholds:
# what other thresholds would do. CHECK=1: fail if docs/evaluation.* change.
EVAL  ?=
CHECK ?=
.PHONY: eval
eval: build ## docs/evaluation.*: the detector on generated, known faults and on the recorded ones (EVAL=full|thresholds)
	go run ./scripts/eval -exporter $(BINARY) $(if $(CHECK),-check) \
		$(if $(filter full,$(EVAL)),-docs bin -seeds 40 -days 365) $(if $(filter thresholds,$(EVAL)),-thresholds)

.PHONY: eval-live
eval-live: packages build ## docs/evaluation-live.md: faults on the real llama.cpp, as the exporter saw them live (minutes)
	scripts/eval-live.sh $(BINARY)

.PHONY: screenshots
screenshots: packages build ## docs/screenshots/: the page at / as Chromium shows it, on a first run, healthy, lossy, fallen back, blind
	go run ./scripts/screenshots

.PHONY: packages
packages: # Debian's packages that are missing
ifneq ($(PACKAGES),skip)
	@scripts/install-packages.sh
endif

.PHONY: clean
clean: ## what the build and the lab leave in this folder
	rm -rf --one-file-system bin .lab
