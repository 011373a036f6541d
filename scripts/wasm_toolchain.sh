#!/usr/bin/env bash
# A compiler for wasm32-unknown-unknown where rustup cannot add that target: Debian's rustc-web, unpacked
# (not installed) beside its own library source and its clippy, with the standard library built once.
#   usage:      scripts/wasm_toolchain.sh
#   afterwards: RUSTC=$DUELINE_TOOLS/bin/rustc-wasm cargo build --target wasm32-unknown-unknown
#               RUSTC=$DUELINE_TOOLS/clippy/rustc $DUELINE_TOOLS/bin/cargo-clippy-wasm clippy --target wasm32-unknown-unknown
# DUELINE_TOOLS says where (default: $HOME/.cache/dueline-tools). A step whose result stands is not repeated.
set -euo pipefail
tools=${DUELINE_TOOLS:-$HOME/.cache/dueline-tools}
usr=$tools/unpacked/usr
host_lib=$usr/lib/rustlib/x86_64-unknown-linux-gnu
wasm_lib=$usr/lib/rustlib/wasm32-unknown-unknown/lib

say() { echo "wasm_toolchain: $*"; }
die() { say "$*" >&2; exit 1; }

# The first dependency of package $1 whose name begins with $2: the versioned libraries are found, not guessed.
dependency() { apt-cache depends --no-recommends "$1" | awk -v want="^$2" '$1 == "Depends:" && $2 ~ want { print $2; exit }'; }

step_packages() {
  # Compiler and clippy share a library, so they are fetched together: never one of another version.
  [ -x "$usr/bin/rustc" ] && [ -x "$usr/bin/clippy-driver" ] && return
  command -v apt-get dpkg >/dev/null || die "needs Debian's apt-get and dpkg; or run: rustup target add wasm32-unknown-unknown"
  local work=$tools/unpacked.part packages=$tools/packages std llvm
  rm -rf "$work" "$packages" && mkdir -p "$work" "$packages"
  if ! apt-cache show rustc-web >/dev/null 2>&1; then say "reading the package lists" && apt-get update -qq; fi
  std=$(dependency libstd-rust-web-dev libstd-rust-web-)
  [ -n "$std" ] || die "the package rustc-web is not offered here; or run: rustup target add wasm32-unknown-unknown"
  llvm=$(dependency "$std" libllvm)
  say "fetching rustc-web, rust-web-clippy, rust-web-src, $std, $llvm"
  (cd "$packages" && apt-get download -qq rustc-web rust-web-clippy libstd-rust-web-dev rust-web-src "$std" "$llvm")
  for package in "$packages"/*.deb; do dpkg -x "$package" "$work"; done
  rm -rf "$tools/unpacked"
  mv "$work" "$tools/unpacked"    # whole or not at all: an interrupted run starts over
  rm -rf "$packages"
}

# Writes $tools/bin/$1, which runs the unpacked program $2 with the unpacked libraries.
wrapper() {
  printf '#!/bin/sh\nLD_LIBRARY_PATH="%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" exec "%s" "$@"\n' \
    "$usr/lib/x86_64-linux-gnu" "$usr/bin/$2" > "$tools/bin/$1"
  chmod +x "$tools/bin/$1"
}

step_compiler() {
  mkdir -p "$tools/bin" "$tools/clippy" "$host_lib/bin"
  wrapper rustc-wasm rustc
  wrapper cargo-clippy-wasm cargo-clippy
  # Cargo hands clippy the compiler to stand in for, and clippy knows it by the name rustc alone.
  ln -sf ../bin/rustc-wasm "$tools/clippy/rustc"
  ln -sf "$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld" "$host_lib/bin/rust-lld"
  "$tools/bin/rustc-wasm" --version
}

# RUSTC_BOOTSTRAP serves this one build of the standard library; no build of the project uses it.
step_standard_library() {
  ls "$wasm_lib"/libstd-*.rlib >/dev/null 2>&1 && return
  say "building the standard library for wasm32-unknown-unknown"
  # Cargo tells compilers apart by their version alone: what stands on an earlier library would be taken for fresh.
  rm -rf "$(dirname "$0")/../target/wasm-toolchain"
  local probe=$tools/probe
  rm -rf "$probe" && mkdir -p "$probe/src"
  printf '[package]\nname = "probe"\nversion = "0.0.0"\nedition = "2024"\n[lib]\ncrate-type = ["cdylib"]\n[profile.release]\npanic = "abort"\n[workspace]\n' > "$probe/Cargo.toml"
  echo '#[unsafe(no_mangle)] pub extern "C" fn probe() -> usize { vec![1].len() }' > "$probe/src/lib.rs"
  (cd "$probe" && RUSTFLAGS=-Cembed-bitcode=yes RUSTC=$tools/bin/rustc-wasm RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$probe/target \
    cargo build --quiet --release --target wasm32-unknown-unknown -Zbuild-std=std,panic_abort)
  mkdir -p "$wasm_lib.part"
  cp "$probe"/target/wasm32-unknown-unknown/release/deps/lib*.rlib "$wasm_lib.part"/
  rm -rf "$wasm_lib" && mv "$wasm_lib.part" "$wasm_lib"
  rm -rf "$probe"
}

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || die "made for Linux on x86_64; elsewhere: rustup target add wasm32-unknown-unknown"
mkdir -p "$tools"
step_packages
step_compiler
step_standard_library
say "ready: $tools/bin/rustc-wasm"
