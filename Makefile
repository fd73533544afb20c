# `make test` is everything and what CI runs; `make test-fast` is the short loop; `make fuzz` looks
# for bugs with fresh seeds. They need Rust and a C compiler; cargo brings the rest. Tests that
# want more (DuckDB, root and loop devices, file systems) are skipped where that is missing, with
# a list at the end; on Debian `make deps`, as root, installs it.

.PHONY: python-environments python-package python-test python-develop python-bench gallery wheels test doc-test test-fast fuzz mutants pages cache-suite deps lint clippy build setup python install capi install-cli cli

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
	@$(MAKE) --no-print-directory clippy

clippy:
	cargo clippy --workspace --all-targets --profile test -- -D warnings
	cargo clippy --no-default-features --profile test -- -D warnings

# A python3 environment with DuckDB, which recomputes the figures of reports.
python: $(PYTHON)/duckdb-$(DUCKDB)

$(PYTHON)/duckdb-$(DUCKDB):
	python3 -m venv $(PYTHON)
	$(PYTHON)/bin/python3 -m pip install --quiet --no-compile --disable-pip-version-check \
	  --retries 1 --timeout 15 duckdb==$(DUCKDB)
	touch $@

# The environment in which the Python package is tested; `make python-test` tests it alone.
PYTHON_PACKAGE := $(or $(CARGO_TARGET_DIR),target)/python-package

python-package: $(PYTHON_PACKAGE)/made

$(PYTHON_PACKAGE)/made: python/requirements-test.txt
	python3 -m venv $(PYTHON_PACKAGE)
	$(PYTHON_PACKAGE)/bin/python3 -m pip install --quiet --no-compile --disable-pip-version-check \
	  --retries 1 --timeout 15 -r python/requirements-test.txt
	touch $@

python-test: python-package
	cargo test -p prism-python

# The package in the same environment, optimised, for the two commands below and for trying it out.
python-develop: python-package
	$(PYTHON_PACKAGE)/bin/python3 -m pip install --quiet --disable-pip-version-check .

# Renews the pictures of docs/gallery.md; some minutes.
gallery: python-develop
	$(PYTHON_PACKAGE)/bin/python3 python/tools/gallery.py

# What the package costs next to the command; docs/python.md has the table. Some 20 minutes.
python-bench: python-develop
	cargo build --release
	$(PYTHON_PACKAGE)/bin/python3 python/tools/bench.py $(ARGS)

# Wheels for Linux on x86-64 and aarch64 in the target folder. Zig is the C compiler and linker of
# both, so that they run with a C library of 2014 (manylinux2014) and no cross compiler is needed.
WHEELS := $(or $(CARGO_TARGET_DIR),target)/wheels
wheels:
	test -x $(WHEELS)/venv/bin/maturin || { python3 -m venv $(WHEELS)/venv && \
	  $(WHEELS)/venv/bin/python3 -m pip install --quiet --no-compile --disable-pip-version-check \
	    'maturin>=1.9,<2' ziglang; }
	rustup target add x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu
	for target in x86_64 aarch64; do \
	  PATH="$(abspath $(WHEELS))/venv/bin:$$PATH" maturin build --release --zig --out $(WHEELS) \
	    --compatibility manylinux2014 --target $$target-unknown-linux-gnu || exit; \
	done

# Ends a test program that hangs, and prints what its processes wait for.
RUNNER := --config 'target."cfg(all())".runner = ["$(CURDIR)/xtask/run-test.sh"]'

# The list of skipped tests: tests append to it.
export PRISM_SKIPPED := $(abspath $(or $(CARGO_TARGET_DIR),target)/skipped)

# The packages for Python are downloaded while the tests are compiled. Clippy and the examples in
# the documentation run while the tests do, which use one and a half of two cores; they start after
# 20 seconds, when cargo has freed the target folder, which both lock. What they find is printed
# after the tests. Programs in `examples` are not linked here: clippy checks them, and those with
# assertions are parts of tests.
CHECKS_LOG := $(dir $(PRISM_SKIPPED))checks.log
test: setup
	cargo fmt --all --check
	@mkdir -p $(dir $(PRISM_SKIPPED)) && rm -f $(PRISM_SKIPPED)
	@$(MAKE) --no-print-directory python-environments & packages=$$!; \
	  trap 'kill $$packages; exit 130' INT TERM; \
	  cargo test --workspace --tests --no-run || { kill $$packages; exit 2; }; wait $$packages
	@{ sleep 20; exec nice $(MAKE) --no-print-directory --keep-going clippy doc-test; } \
	  >$(CHECKS_LOG) 2>&1 & checks=$$!; \
	  trap 'kill $$checks; exit 130' INT TERM; \
	  cargo test $(RUNNER) --workspace --tests --no-fail-fast; status=$$?; \
	  wait $$checks || { cat $(CHECKS_LOG); status=2; \
	    echo "clippy or an example in the documentation has failed, see above"; }; \
	  $(SAY_SKIPPED); exit $$status

# The examples in the documentation.
doc-test:
	cargo test $(RUNNER) --workspace --doc --no-fail-fast

python-environments:
	@$(MAKE) --no-print-directory python || echo "SKIPPED: the figures of reports are not" \
	  "recomputed: no package index; install the Debian package python3-venv" >>$(PRISM_SKIPPED)
	@$(MAKE) --no-print-directory python-package || echo "SKIPPED: the Python package: no package" \
	  "index; install the Debian package python3-venv" >>$(PRISM_SKIPPED)

# Every crate, random tests with an eighth of their seeds, without tests that repeat published
# results, record real applications, need valgrind, a browser, block devices or full disks, wait for
# servers, damage every byte, or take a second and more while others of their kind stay. Of theory,
# `theory_fast` stays; of the Python package, the tests that take least.
SLOW := reproduce:: unwritten:: atc09:: linkedin:: sfs:: prism_ssd::graph prism_ssd::file \
  prism_ssd::slabs theory::write_amplification contract_micro:: levels:: benches:: simulate::tests \
  capture:: stack:: readme:: browser:: programs_run_under ffi_boundary::files \
  a_block_device full_disk:: nearly_full:: fs_umount:: a_mount_is_refused the_benchmark_ fs::a_ \
  options::with_ every_flipped_byte stay_within_their_memory on_flash:: the_folder_belongs \
  prometheus_reads clients_of_the_figures many_clients_find hostile:: cache_operate:: \
  cache_limits:: cache::s cache::random_kills open::tests what_cannot_be_a_state \
  contract::every_rule contract::two report:: report_bad_input:: report_hybrid:: report_samples::

test-fast:
	@mkdir -p $(dir $(PRISM_SKIPPED)) && rm -f $(PRISM_SKIPPED)
	PRISM_FEW=1 cargo test $(RUNNER) --workspace --tests --no-fail-fast -- $(SLOW:%=--skip %); \
	  status=$$?; $(SAY_SKIPPED); exit $$status

SAY_SKIPPED = if [ -s $(PRISM_SKIPPED) ]; then echo; echo "Not tested on this machine:"; \
  sort -u $(PRISM_SKIPPED); else echo; echo "Nothing was skipped."; fi

# Random tests with fresh seeds, in rounds, until the time is over. A failure ends the search and
# prints the command that repeats it.
SECONDS := 600
fuzz:
	cargo test --workspace --tests --no-run
	@end=$$(($$(date +%s) + $(SECONDS))); rounds=0; log=$(dir $(PRISM_SKIPPED))fuzz.log; \
	while [ $$(date +%s) -lt $$end ]; do \
	  round=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); echo "PRISM_FUZZ=$$round"; \
	  PRISM_FUZZ=$$round cargo test $(RUNNER) --workspace --tests -- random_ >$$log 2>&1 \
	    || { sed -n '/^failures:/,$$p' $$log; exit 1; }; \
	  rounds=$$((rounds + 1)); \
	done; echo "$$rounds rounds found nothing"

# Renews the tables of the pages that repeat published results, at full scale: some 20 minutes on two
# cores. The pages of the unwritten contract and of SFS need long traces, which are not shipped:
# make pages TRACES=DIR, with what packaging/uml/unwritten.sh and the command in docs/sfs.md have
# recorded.
PAGES := atc09 linkedin prism-ssd
TRACED := unwritten-contract sfs
pages:
	cargo build --release
	for id in $(PAGES); do \
	  cargo run --release --quiet -- reproduce $$id --page docs/$$id.md >/dev/null || exit; done
	[ -z "$(TRACES)" ] || for id in $(TRACED); do cargo run --release --quiet -- reproduce $$id \
	  --traces "$(TRACES)" --page docs/$$id.md >/dev/null || exit; done

# Mutation testing of the files in .cargo/mutants.toml: names mutants that no test detects. It takes
# hours and is not part of CI; `make mutants ARGS="--file PATH"` tests one file.
mutants:
	@cargo mutants --version >/dev/null 2>&1 || cargo install cargo-mutants --locked
	cargo mutants --workspace --output $(dir $(PRISM_SKIPPED)) $(ARGS)

# Memcached's own tests against `prism cache serve`. They come from Debian's source package, so this
# needs a network, apt-get and perl, and is not part of `make test`.
cache-suite:
	cargo build --profile test -p prism-cli
	sh crates/cacheserver/suite/run.sh $(or $(CARGO_TARGET_DIR),target)/debug/prism $(ARGS)

# Debian packages that tests use besides Rust and a C compiler. The name of RocksDB's library
# contains its version.
DEPS := g++ python3-venv pkg-config valgrind chromium e2fsprogs xfsprogs btrfs-progs libsqlite3-0 \
  libleveldb1d acl libmemcached-tools python3-pymemcache golang-go '^librocksdb[0-9.]+$$'
deps:
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(DEPS)

# The flash library for C: `make install PREFIX=/usr DESTDIR=/tmp/stage`. It is built first, unless
# CAPI_BUILT names the folder of an earlier build.
PREFIX := /usr/local
LIBDIR := $(PREFIX)/lib
INCLUDEDIR := $(PREFIX)/include
DATADIR := $(PREFIX)/share
CAPI_VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
CAPI_MAJOR := $(firstword $(subst ., ,$(CAPI_VERSION)))

ifdef CAPI_BUILT
capi:
else
CAPI_BUILT := $(or $(CARGO_TARGET_DIR),target)/dist
capi:
	cargo build --profile dist -p prism-capi
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

# The program with its manual pages, completions, the unit of the cache and the helpers of mount(8)
# and umount(8), with the same variables.
# It is built first, unless CLI_BUILT names the folder of an earlier build.
BINDIR := $(PREFIX)/bin
# They look for helpers in /sbin only, whatever the prefix.
HELPERDIR := /sbin
UNITDIR := $(PREFIX)/lib/systemd/system

ifdef CLI_BUILT
cli:
else
CLI_BUILT := $(or $(CARGO_TARGET_DIR),target)/dist
cli:
	cargo build --profile dist
endif

install-cli: cli
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(DATADIR)/man/man1 \
	  $(DESTDIR)$(DATADIR)/bash-completion/completions \
	  $(DESTDIR)$(DATADIR)/zsh/site-functions $(DESTDIR)$(DATADIR)/fish/vendor_completions.d \
	  $(DESTDIR)$(UNITDIR)
	install -m 755 $(CLI_BUILT)/prism $(DESTDIR)$(BINDIR)/prism
	$(CLI_BUILT)/prism man --output $(DESTDIR)$(DATADIR)/man/man1
	$(CLI_BUILT)/prism completions bash >$(DESTDIR)$(DATADIR)/bash-completion/completions/prism
	$(CLI_BUILT)/prism completions zsh >$(DESTDIR)$(DATADIR)/zsh/site-functions/_prism
	$(CLI_BUILT)/prism completions fish >$(DESTDIR)$(DATADIR)/fish/vendor_completions.d/prism.fish
	install -d $(DESTDIR)$(HELPERDIR)
	install -m 755 packaging/mount.prismfs $(DESTDIR)$(HELPERDIR)/mount.prismfs
	install -m 755 packaging/umount.fuse.prismfs $(DESTDIR)$(HELPERDIR)/umount.fuse.prismfs
	sed 's|/usr/local/bin|$(BINDIR)|' packaging/prism-cache.service \
	  >$(DESTDIR)$(UNITDIR)/prism-cache.service
