#!/usr/bin/env bash
# Fuzzes each reader for SECONDS (60): tests/fuzz/run.sh [--build | --test | --minimise] [SECONDS] [TARGET...]. All seeds
# and the kept corpus are run first. With clang++ by libFuzzer, else by our own driver; under the address and
# undefined-behaviour sanitizers both. What ends a target is kept in the build folder.
#   --build     only builds, with one process, and
#   --test      takes what has been built: as ctest calls it, for which both end with 77 unless SOLITON_LONG_TESTS is 1
#   --minimise  then writes corpus/TARGET.tar.gz anew: the fewest inputs that reach what all found so far reach
set -euo pipefail
cd "$(dirname "$0")/../.."
builds=true runs=true minimises=false processes=$(nproc) seconds=60
case ${1:-} in
  --build) runs=false processes=1; shift ;;
  --test) builds=false; shift ;;
  --minimise) minimises=true; shift ;;
esac
if ! $builds || ! $runs; then
  [ "${SOLITON_LONG_TESTS:-}" = 1 ] || { echo "skipped: only in long runs (./dev test --long)"; exit 77; }
fi
if [[ ${1:-} =~ ^[0-9]+$ ]]; then seconds=$1; shift; fi
targets=("$@")

# The newest clang++ with libFuzzer that knows what the templates and the server are written in: from 16 on.
find_libfuzzer() {
  local compiler
  for compiler in clang++ $(compgen -c clang++- | grep -E '^clang\+\+-[0-9]+$' | sort -ruV); do
    "$compiler" -std=c++20 -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null 2> /dev/null <<'END' || continue
#include <coroutine>
extern "C" int LLVMFuzzerTestOneInput(const char* data, unsigned long) {
  const char pair[2] = {*data, 0};
  const auto [a, b] = pair;
  return [&] { return static_cast<_Float16>(a + b) > 300; }();
}
END
    command -v "$compiler"
    return
  done
}

preset=sanitize compiler=$(find_libfuzzer)
arguments=()
if [ -n "$compiler" ]; then
  preset=fuzz arguments=(-D CMAKE_CXX_COMPILER="$compiler")
else
  echo "no clang++ with libFuzzer: g++ and our own driver do it"
fi
folder=build/$preset
if $builds; then
  # Where the compiler is another, CMake would forget all else that it was told.
  [ $preset = sanitize ] || grep -qs "^CMAKE_CXX_COMPILER:[A-Z]*=$compiler$" "$folder/CMakeCache.txt" ||
    rm -f "$folder/CMakeCache.txt"
  cmake --preset "$preset" -D SOLITON_FUZZ=ON "${arguments[@]}" \
    -D CMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" > /dev/null
  if [ ${#targets[@]} -eq 0 ]; then built=(fuzz-targets); else built=("${targets[@]/#/fuzz-}"); fi
  cmake --build "$folder" --parallel "$processes" --target "${built[@]}"
fi
$runs || exit 0
if [ ${#targets[@]} -eq 0 ]; then  # all, as CMake wrote them down
  for seeds in "$folder"/tests/fuzz/*.seeds; do targets+=("$(basename "$seeds" .seeds)"); done
fi

minimise() { # minimise TARGET SEEDS...: only libFuzzer can
  local target=$1 merged
  shift
  merged=$(mktemp -d)
  "$folder/fuzz-$target" -merge=1 -rss_limit_mb=4096 "$merged" "$@" &> "$folder/fuzz-$target-merge.log"
  find "$merged" -type f -size +16k -delete
  mkdir -p tests/fuzz/corpus
  tar --sort=name --owner=0 --group=0 --mtime=@0 -C "$merged" -c . | gzip -9n > "tests/fuzz/corpus/$target.tar.gz"
  echo "$target: $(find "$merged" -type f | wc -l) inputs, $(stat -c %s "tests/fuzz/corpus/$target.tar.gz") bytes"
  rm -rf "$merged"
}

failed=0
for target in "${targets[@]}"; do
  IFS=';' read -ra seeds < "$folder/tests/fuzz/$target.seeds" || true
  echo "== $target, $seconds s, build folder $folder"
  (cd "$folder" && "./fuzz-$target" -max_total_time="$seconds" -timeout=20 -max_len=1000000 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$target-" "${seeds[@]}" &> "fuzz-$target.log") ||
    { echo "$target failed: $folder/fuzz-$target.log" >&2; tail -40 "$folder/fuzz-$target.log" >&2; failed=1; }
  grep -E '^stat::number_of_executed_units|^[0-9]+ inputs' "$folder/fuzz-$target.log" || true
  if $minimises; then minimise "$target" "${seeds[@]}"; fi
done
exit $failed
