#!/usr/bin/env bash
# tests/aarch64/check.sh SOURCES BUILD: builds all that needs no card for aarch64, in BUILD/aarch64, as boards of that
# kind would, and has the tiny model decode under qemu what it decodes here. It takes some minutes and is for long runs
# only; status 77, with a reason, where it is left out.
set -euo pipefail
sources=$1
here=$2
folder=$here/aarch64

leave_out() {
  echo "left out: $*"
  exit 77
}
[ -n "${SOLITON_LONG_TESTS:-}" ] || leave_out "only in long runs (./dev test --long)"
command -v aarch64-linux-gnu-g++ > /dev/null || leave_out "there is no aarch64-linux-gnu-g++"
command -v apt-get > /dev/null || leave_out "there is no apt-get to fetch the libraries of arm64 with"
mkdir -p "$folder"
reason=$("$sources/tests/aarch64/sysroot.sh" "$folder/sysroot") || leave_out "${reason:-the libraries of arm64 cannot be unpacked}"

export SOLITON_SYSROOT=$folder/sysroot
{
  cmake -S "$sources" -B "$folder/build" -G Ninja --toolchain "$sources/tests/aarch64/toolchain.cmake" \
    -DCMAKE_BUILD_TYPE=Release -DSOLITON_UNITY=ON -DSOLITON_NVCC= -DBUILD_TESTING=OFF
  cmake --build "$folder/build"
} > "$folder/build.log" 2>&1 || { grep -E -A8 'error|FAILED' "$folder/build.log" || tail -40 "$folder/build.log"; exit 1; }
echo "built for aarch64"

command -v qemu-aarch64 > /dev/null || leave_out "there is no qemu-aarch64 to run it with"
decode() { # decode PROGRAM... : tokens and their probabilities
  "$@" -m "$sources/models/tiny-stories" -k "$kernels/tiny-stories-cpu.so" -p 'Once upon a time' -n 6 --jsonl \
    --temp 0 --logprobs 2> "$folder/decode.log" | grep '"token":' || { cat "$folder/decode.log"; exit 1; }
}
kernels=$here/kernels decode "$here/soliton-chat" > "$folder/expected.jsonl"
kernels=$folder/build/kernels decode qemu-aarch64 -L "$folder/sysroot" "$folder/build/soliton-chat" > "$folder/decoded.jsonl"
diff "$folder/expected.jsonl" "$folder/decoded.jsonl" && echo "decodes the same tokens with the same probabilities"
