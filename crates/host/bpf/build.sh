#!/bin/sh
# Makes capture.bpf.o, which is checked in so that a build of Prism needs no BPF compiler.
# Needs clang, llvm-strip and libbpf's headers (Debian: clang llvm libbpf-dev linux-libc-dev).
set -eu
cd "$(dirname "$0")"
sum=$(sha256sum capture.bpf.c | cut -d' ' -f1)
clang -O2 -g -target bpf -D__TARGET_ARCH_x86 -Wall -Werror -Wno-missing-declarations \
  -DSOURCE_SUM="\"$sum\"" -I"/usr/include/$(uname -m)-linux-gnu" -fdebug-prefix-map="$PWD"=. \
  -c capture.bpf.c -o capture.bpf.o
# The loader reads only .BTF and .BTF.ext, so the debug sections are removed.
llvm-strip -g capture.bpf.o
