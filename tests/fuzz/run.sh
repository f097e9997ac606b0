#!/usr/bin/env bash
# Fuzzes each reader for SECONDS (60): tests/fuzz/run.sh [SECONDS] [TARGET...]. With clang++ by libFuzzer, else by our
# own driver; under the address and undefined-behaviour sanitizers both. What ends a target is kept in the build folder.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(safetensors hf-config model-yaml tokenizer chat-template)

preset=sanitize
command -v clang++ > /dev/null && preset=fuzz
folder=build/$preset
cmake --preset "$preset" > /dev/null
cmake --build "$folder" --target "${targets[@]/#/fuzz-}"
failed=0
for target in "${targets[@]}"; do
  IFS=';' read -ra seeds < "$folder/tests/fuzz/$target.seeds" || true
  echo "== $target, $seconds s"
  (cd "$folder" && "./fuzz-$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
    "${seeds[@]}" 2> "fuzz-$target.log") || { echo "$target failed: $folder/fuzz-$target.log" >&2; failed=1; }
  grep -E 'number_of_executed_units|inputs' "$folder/fuzz-$target.log" || true
done
exit $failed
