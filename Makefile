# The two loops: `make test` is everything and what CI runs, `make test-fast` is the short
# loop. Both need only Rust and a C compiler; cargo brings the rest.

.PHONY: test test-fast lint build setup

build:
	cargo build --release

# Rust without rustfmt and clippy (rustup's minimal profile, Debian's own package).
setup:
	@{ cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 \
	  || rustup component add rustfmt clippy \
	  || { echo "install rustfmt and clippy (Debian: apt-get install rustfmt rust-clippy)" >&2; \
	       exit 2; }

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

test: lint
	cargo test --workspace

# Without the long theory tables and the end-to-end runs of the command line.
test-fast:
	cargo test --workspace --lib
	cargo test -p xtask -p prism-replay -p prism-trace --tests
	cargo test -p prism-ssd --tests
