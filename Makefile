# What there is to do here: `make help`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help check setup setup-all setup-train train learn test test-all bench bench-envs bench-replay gpu-kit package doc site lint advisories notices

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install the CPU plugin of XLA (pip or uv)
	@scripts/setup

setup-all: ## Install LLVM 22 with MLIR, too, which programs are compared with (apt, as root)
	@scripts/setup all

setup-train: ## Build the optimised program with all features, and install the CPU plugin of XLA
	cargo run --release --locked -- plugins install cpu

# A debug build without gRPC and Prometheus is done in a fraction of the time, and trains as fast: XLA compiles the training.
FIRST := cargo run --locked --no-default-features --features cli,plots --

train: ## Train PPO on CartPole
	$(FIRST) plugins install cpu
	$(FIRST) train cartpole-ppo $(ARGS)

learn: setup-train ## Train every experiment over seeds, and write docs/learning.md
	cargo build --release --locked --package podracer --package podracer-learning
	target=$${CARGO_TARGET_DIR:-target}; exec $$target/release/learn --runs $$target/learning $(ARGS)

test: setup ## Run the tests (without LLVM, those that compare with MLIR are skipped)
	scripts/test

test-all: setup-all ## Run all tests, with what some of them need installed first (1 GB)
	scripts/test all

bench: setup-train ## Time training beside a JAX peer
	cargo bench --locked --bench ppo -- $(ARGS)

bench-envs: setup-train ## Time random-policy stepping beside a JAX peer
	cargo bench --locked --bench envs -- $(ARGS)

bench-replay: setup-train ## Time a replay beside flashbax, and DQN beside PureJaxRL
	cargo bench --locked --bench off_policy -- $(ARGS)

gpu-kit: setup ## Make the folder that checks and measures on a machine with a GPU (docs/gpu.md)
	scripts/gpu-kit

package: ## Make the crates' packages, and build each from its own
	cargo package --workspace --locked --exclude podracer-mlir --exclude podracer-dsl-tests --exclude podracer-tests --exclude podracer-test-support --exclude podracer-learning --exclude own_app

doc: setup ## Build the documentation
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace $$(scripts/mlir) --no-deps --locked

site: ## Build the site of docs/, with the documentation, into target/site
	@scripts/site

check: doc ## Check the formatting, clippy's lints, the links of the documentation, and each combination of features
	cargo fmt --all --check
	cargo clippy --workspace $$(scripts/mlir) --all-targets --locked -- -D warnings
	cargo check --package podracer --locked --no-default-features
	for features in cli cli,plots central prometheus,egraph; do \
	  cargo clippy --package podracer --locked --no-default-features --features "$$features" -- -D warnings || exit 1; done

lint: check ## The same, and the licences and versions of other crates
	"$$(scripts/tool cargo-deny 0.20.2)" check licenses bans sources

advisories: ## Ask for known weaknesses of other crates
	"$$(scripts/tool cargo-deny 0.20.2)" check advisories

notices: ## Write the licences of the crates in the program podracer, to hand out with it
	mkdir -p target
	"$$(scripts/tool cargo-about 0.9.3 cli)" generate --fail --manifest-path Cargo.toml about.hbs --output-file target/THIRD-PARTY-NOTICES.txt
