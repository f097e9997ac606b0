#!/usr/bin/env bash
# Mixtures of experts on the card: a few layers of each model with random weights, whose greedy tokens must be those of
# transformers in float32, and the same in every launch, also with warps that are delayed at random; of one row, and of eight
# branches of one prompt, which is read eight tokens a step.
# Usage: tests/gpu/check_experts.sh BIN_FOLDER OUTPUT_FOLDER [MODEL:LAYERS[:FORMAT]...]
# MODEL: a name of models/ or tests/models/. FORMAT: of tests/quantization/make_models.py, in which the layers' weights are then stored.
# BIN_FOLDER holds decode-dump and soliton-gen. Needs nvcc, and python3 with torch and transformers.
set -u
bin=$1 out=$2
shift 2
models=${*:-qwen3-30b-a3b:4 mixtral-8x7b:2 qwen1.5-moe-a2.7b:4 glm-4.5-air:3 olmoe-1b-7b:4 gpt-oss-20b:4
  int4-pairs:1:gptq-v1-128}
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=""

check() { # check NAME COMMAND...: runs it, keeps its output
  local name=$1
  shift
  if "$@" > "$out/$name.log" 2>&1; then echo "ok      $name"; else echo "FAILED  $name"; failed+=" $name"; fi
  tail -n 3 "$out/$name.log" | sed 's/^/        /'
}

compile() { # compile LIBRARY FLAG...
  local library=$1
  shift
  nvcc -std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a -I "$root/templates" -shared \
    -Xcompiler -fPIC,-fvisibility=hidden "$@" "$scratch/source/kernel.cu" -o "$library"
}

for each in $models; do
  IFS=: read -r model layers format <<< "$each"
  folder=$scratch/model reference=$scratch/model
  check "$model-folder" python3 "$root/tests/goldens/make_random_folder.py" "$model" "$folder" --layers "$layers"
  if [ -n "$format" ]; then
    check "$model-$format" python3 "$root/tests/quantization/make_models.py" "$folder" "$scratch/stored" "$format"
    cp "$folder/config.json" "$folder/generation_config.json" "$scratch/stored/$format.meant"
    folder=$scratch/stored/$format reference=$scratch/stored/$format.meant
    model=$model-$format
  fi
  check "$model-plan" "$bin/soliton-gen" "$folder" --gpu h200 --rows 1,8 -o "$scratch/source"
  check "$model-kernel" compile "$scratch/kernel.so"
  check "$model-delayed-kernel" compile "$scratch/delayed.so" -DSOLITON_FUZZ
  check "$model-decode" "$bin/decode-dump" -m "$folder" -k "$scratch/kernel.so" -n 128 --launches 20 \
    -o "$scratch/decoded.json" --logits "$scratch/logits.f32"
  check "$model-delayed" "$bin/decode-dump" -m "$folder" -k "$scratch/delayed.so" -n 32 --launches 200 \
    -o "$scratch/delayed.json" --logits "$scratch/delayed.f32"
  check "$model-delayed-same" cmp -n "$(stat -c %s "$scratch/delayed.f32")" "$scratch/logits.f32" "$scratch/delayed.f32"
  check "$model-compare" python3 "$root/tests/goldens/compare_transformers.py" "$reference" "$scratch/decoded.json" \
    --logits "$scratch/logits.f32"
  check "$model-8-rows" "$bin/decode-dump" -m "$folder" -k "$scratch/kernel.so" --rows 8 -n 32 --launches 20 \
    -o "$scratch/decoded.json" --logits "$scratch/logits.f32"
  check "$model-8-rows-delayed" "$bin/decode-dump" -m "$folder" -k "$scratch/delayed.so" --rows 8 -n 8 \
    --launches 100 -o "$scratch/delayed.json" --logits "$scratch/delayed.f32"
  check "$model-8-rows-compare" python3 "$root/tests/goldens/compare_transformers.py" "$reference" \
    "$scratch/decoded.json" --logits "$scratch/logits.f32"
  rm -rf "$scratch/model" "$scratch/stored" "$scratch/source"
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
