#!/bin/bash
# Builds the server, the library and the readers of grammars with sanitizers, and runs their tests: clients that no server
# should have find no leak, no use of what is gone and no race. check_sanitized.sh SOURCES BUILD PRESET, of which BUILD is
# this build's folder and PRESET `sanitize` (addresses, undefined behaviour) or `threads`. Takes many minutes, so only where
# SOLITON_LONG_TESTS is set; ends with 77, and says so, where it is not.
set -euo pipefail
sources=$1 preset=$3 build=$2/with-$3 log=$2/with-$3.log
if [ "${SOLITON_LONG_TESTS:-}" != 1 ]; then
  echo "skipped: only in long runs (./dev test --long)"
  exit 77
fi
cd "$sources"
# What is short elsewhere finds the same here.
unset SOLITON_LONG_TESTS
cmake --preset "$preset" -B "$build" -D SOLITON_UNITY=ON > "$log" 2>&1 || { tail -20 "$log"; exit 1; }
cmake --build "$build" --target server-tests constrain-tests library-tests >> "$log" 2>&1 || { tail -40 "$log"; exit 1; }
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1"
run=()
# The shadow memory of threads wants addresses that systems which spread theirs widely give to others.
"$build/constrain-tests" --gtest_list_tests > "$log.list" 2>&1 || run=(setarch "$(uname -m)" --addr-no-randomize)
"${run[@]}" "$build/constrain-tests"
"${run[@]}" "$build/library-tests"
left_out='ClientsTest.*:JsonClientsTest.*:ServeLoad.*:ServeMix.*:LargeBodies.*'  # which need Python, or measure times
# What threads have done is kept too, so that memory grows.
if [ "$preset" = threads ]; then left_out+=':AbusedProgram.HasAsMuchMemoryAfterwardsAsBefore'; fi
"${run[@]}" "$build/server-tests" --gtest_filter="-$left_out"
