# Everything a person needs to build, try and check this project. `make` alone lists it.
# On a fresh Debian machine, as root, with Rust and Go: `make demo` and `make test` need nothing else.

.DEFAULT_GOAL := help
.PHONY: help demo test unit lint build image bench tools generate clean

help: ## List these targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

demo: ## Build, start two real clusters with liqo that peer and sign a contract; offload an application, stop its provider, see it back; leaves them up
	@tools/demo

test: ## Everything CI checks, with a table of what took how long
	@tools/test all

unit: ## Unit and property tests only
	@tools/test unit

lint: ## Formatting, clippy, licences and bans, documentation, generated files
	@tools/test lint

build: ## Static release binaries in target/release, the container image in target/image
	@tools/install packages
	@tools/install rust
	@tools/build

image: build ## The container image and the list of what is in it: target/image

bench: ## Measure and draw charts: target/bench
	@tools/bench

tools: ## Install what is missing: packages, Kubernetes programs, Helm, cargo tools
	@tools/install

generate: ## Write the generated files anew
	@tools/install packages
	@tools/install rust
	cargo xtask generate

clean: ## Remove what was built here, and sandboxes that tests left behind
	@if [ -x target/debug/liqoctl ] && [ "$$(id -u)" = 0 ]; then \
	  target/debug/liqoctl sandbox down --all --state-dir /var/lib/liqo-sandbox-tests; fi
	cargo clean
