#!/bin/bash
# Builds the server and the readers of grammars with the address and undefined-behaviour sanitizers, and runs their tests:
# clients that no server should have find no leak and no use of what is gone. check_sanitized.sh SOURCES BUILD, of which
# BUILD is this build's folder. Takes many minutes, so only where SOLITON_LONG_TESTS is set; ends with 77, and says so,
# where it is not.
set -euo pipefail
sources=$1 build=$2/sanitized
if [ "${SOLITON_LONG_TESTS:-}" != 1 ]; then
  echo "skipped: only in long runs (./dev test --long)"
  exit 77
fi
cd "$sources"
# What is short elsewhere finds the same here.
unset SOLITON_LONG_TESTS
cmake --preset sanitize -B "$build" -D SOLITON_UNITY=ON > "$2/sanitized.log" 2>&1 || { tail -20 "$2/sanitized.log"; exit 1; }
cmake --build "$build" --target server-tests constrain-tests >> "$2/sanitized.log" 2>&1 || { tail -40 "$2/sanitized.log"; exit 1; }
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
"$build/constrain-tests"
"$build/server-tests" --gtest_filter='-ClientsTest.*:JsonClientsTest.*:ServeLoad.*:ServeMix.*'
