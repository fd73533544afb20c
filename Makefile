# The two loops: `make test` is everything and what CI runs, `make test-fast` is the short
# loop. Both need only Rust and a C compiler; cargo brings the rest.

.PHONY: test test-fast lint build

build:
	cargo build --release

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

test: lint
	cargo test --workspace

# Without the long theory tables and the end-to-end runs of the command line.
test-fast:
	cargo test --workspace --lib
	cargo test -p xtask -p prism-replay -p prism-trace --tests
	cargo test -p prism-ssd --tests
