#!/usr/bin/env bash
# Everything that needs a card, in one go: GPU tests, equality with transformers, identical launches, sanitizers.
# Usage: tests/gpu/check_card.sh BIN_FOLDER OUTPUT_FOLDER [parts...]   parts: tests tiny 1b 8b sanitizer (default: all)
# BIN_FOLDER holds decode-dump, gpu-tests and kernels/. Needs python3 with torch and transformers.
set -u
bin=$1 out=$2
shift 2
parts=${*:-tests tiny 1b 8b sanitizer}
root=$(cd "$(dirname "$0")/../.." && pwd)
compare="python3 $root/tests/goldens/compare_transformers.py"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=""

check() { # check NAME COMMAND...: runs it within 300 s, keeps its output
  local name=$1
  shift
  if timeout 300 "$@" > "$out/$name.log" 2>&1; then echo "ok      $name"; else echo "FAILED  $name"; failed+=" $name"; fi
  tail -n "${lines:-3}" "$out/$name.log" | sed 's/^/        /'
}

for part in $parts; do
  case $part in
    tests)
      check gpu-tests env SOLITON_KERNELS="$bin/kernels" SOLITON_SOURCE_DIR="$root" "$bin/gpu-tests" ;;
    tiny)
      check tiny-decode "$bin/decode-dump" -m "$root/models/tiny-stories" -k "$bin/kernels/tiny-stories-sm90.so" \
        -o "$scratch/tiny.json" --logits "$scratch/tiny.f32" --launches 20
      lines=12 check tiny-compare $compare "$root/models/tiny-stories" "$scratch/tiny.json" --logits "$scratch/tiny.f32" ;;
    1b)
      check 1b-folder python3 "$root/tests/goldens/make_random_folder.py" llama-3.2-1b "$scratch/1b"
      check 1b-decode "$bin/decode-dump" -m "$scratch/1b" -k "$bin/kernels/llama-3.2-1b-sm90.so" \
        -o "$scratch/1b.json" --logits "$scratch/1b.f32" --launches 20
      check 1b-delayed "$bin/decode-dump" -m "$scratch/1b" -k "$bin/kernels/fuzz/llama-3.2-1b-sm90.so" -n 32 \
        -o "$scratch/1b-delayed.json" --logits "$scratch/1b-delayed.f32" --launches 200
      check 1b-delayed-same cmp -n "$(stat -c %s "$scratch/1b-delayed.f32")" "$scratch/1b.f32" "$scratch/1b-delayed.f32"
      lines=12 check 1b-compare $compare "$scratch/1b" "$scratch/1b.json" --logits "$scratch/1b.f32"
      rm -rf "$scratch/1b" ;;
    8b)
      check 8b-folder python3 "$root/tests/goldens/make_random_folder.py" llama-3.1-8b "$scratch/8b"
      check 8b-decode "$bin/decode-dump" -m "$scratch/8b" -k "$bin/kernels/llama-3.1-8b-sm90.so" --prompt-tokens 4096 \
        -n 8 -o "$scratch/8b.json" --logits "$scratch/8b.f32" --positions 0,127,128,4095
      lines=16 check 8b-spread $compare "$scratch/8b" "$scratch/8b.json" --spread --positions 0,127,128,4095 \
        --logits "$scratch/8b.f32"
      rm -rf "$scratch/8b" ;;
    sanitizer)
      sanitize() {
        check "sanitizer-$1" compute-sanitizer --tool "$1" --error-exitcode 9 "$bin/decode-dump" \
          -m "$root/models/tiny-stories" -k "$bin/kernels/$2tiny-stories-sm90.so" -o "$scratch/s.json" -n 4 \
          --timeout-ms 200000
      }
      sanitize memcheck ""
      sanitize racecheck racecheck/ ;;
  esac
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
