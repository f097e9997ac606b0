#!/usr/bin/env bash
# Fuzzes each reader for SECONDS (60): tests/fuzz/run.sh [--build | --run] [SECONDS] [TARGET...]. With clang++ by
# libFuzzer, else by our own driver; under the address and undefined-behaviour sanitizers both. What ends a target is
# kept in the build folder. --build only builds, with one process; --run takes what has been built.
set -euo pipefail
cd "$(dirname "$0")/../.."
builds=true runs=true processes=$(nproc)
case ${1:-} in
  --build) runs=false processes=1; shift ;;
  --run) builds=false; shift ;;
esac
seconds=${1:-60}
[ $# -gt 0 ] && shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(safetensors hf-config model-yaml tokenizer chat-template)

has_libfuzzer() {
  command -v clang++ > /dev/null &&
    echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null 2> /dev/null
}

preset=sanitize
if has_libfuzzer; then preset=fuzz; else echo "no clang++ with libFuzzer: g++ and our own driver do it"; fi
folder=build/$preset
if $builds; then
  cmake --preset "$preset" -D SOLITON_FUZZ=ON > /dev/null
  cmake --build "$folder" --parallel "$processes" --target "${targets[@]/#/fuzz-}"
fi
$runs || exit 0
failed=0
for target in "${targets[@]}"; do
  IFS=';' read -ra seeds < "$folder/tests/fuzz/$target.seeds" || true
  echo "== $target, $seconds s, build folder $folder"
  (cd "$folder" && "./fuzz-$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$target-" "${seeds[@]}" &> "fuzz-$target.log") ||
    { echo "$target failed: $folder/fuzz-$target.log" >&2; tail -40 "$folder/fuzz-$target.log" >&2; failed=1; }
  grep -E '^stat::number_of_executed_units|^[0-9]+ inputs' "$folder/fuzz-$target.log" || true
done
exit $failed
