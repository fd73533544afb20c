# The two loops: `make test` is everything and what CI runs, `make test-fast` is the short
# loop. Both need only Rust and a C compiler; cargo brings the rest. Tests that want more (DuckDB,
# root and loop devices, file systems) are skipped where that is missing, with a line that says so.

.PHONY: test test-fast lint build setup python install capi

PYTHON := $(or $(CARGO_TARGET_DIR),target)/python
DUCKDB := 2.0.0

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

# A python3 of its own with DuckDB, by which the figures of reports are recomputed.
python: $(PYTHON)/duckdb-$(DUCKDB)

$(PYTHON)/duckdb-$(DUCKDB):
	python3 -m venv $(PYTHON)
	$(PYTHON)/bin/python3 -m pip install --quiet --disable-pip-version-check \
	  --retries 1 --timeout 15 duckdb==$(DUCKDB)
	touch $@

test: lint
	@$(MAKE) --no-print-directory python \
	  || echo "SKIPPED: python3, its venv or the package index is missing; the figures of" \
	          "reports are recomputed only where a python3 with DuckDB is found" >&2
	cargo test --workspace

# Without the long theory tables and the end-to-end runs of the command line.
test-fast:
	cargo test --workspace --lib
	cargo test -p xtask -p prism-replay -p prism-trace --tests
	cargo test -p prism-ssd --tests

# The flash library for C: `make install PREFIX=/usr DESTDIR=/tmp/stage`. It is built first,
# unless CAPI_BUILT says where that was done.
PREFIX := /usr/local
LIBDIR := $(PREFIX)/lib
INCLUDEDIR := $(PREFIX)/include
DATADIR := $(PREFIX)/share
CAPI_VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
CAPI_MAJOR := $(firstword $(subst ., ,$(CAPI_VERSION)))

ifdef CAPI_BUILT
capi:
else
CAPI_BUILT := $(or $(CARGO_TARGET_DIR),target)/release
capi:
	cargo build --release -p prism-capi
endif

install: capi
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(INCLUDEDIR) \
	  $(DESTDIR)$(DATADIR)/man/man3 $(DESTDIR)$(DATADIR)/doc/prism
	install -m 755 $(CAPI_BUILT)/libprism_capi.so \
	  $(DESTDIR)$(LIBDIR)/libprism.so.$(CAPI_VERSION)
	ln -sf libprism.so.$(CAPI_VERSION) $(DESTDIR)$(LIBDIR)/libprism.so.$(CAPI_MAJOR)
	ln -sf libprism.so.$(CAPI_MAJOR) $(DESTDIR)$(LIBDIR)/libprism.so
	install -m 644 $(CAPI_BUILT)/libprism_capi.a $(DESTDIR)$(LIBDIR)/libprism.a
	install -m 644 crates/capi/include/prism.h $(DESTDIR)$(INCLUDEDIR)/prism.h
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
	  -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@VERSION@|$(CAPI_VERSION)|' \
	  crates/capi/prism.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/prism.pc
	install -m 644 crates/capi/prism.3 $(DESTDIR)$(DATADIR)/man/man3/prism.3
	install -m 644 docs/c-api.md $(DESTDIR)$(DATADIR)/doc/prism/c-api.md
