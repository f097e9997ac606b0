#!/usr/bin/env bash
# One model of each family at its real shape, with random weights: chat, greedy tokens against transformers in float32,
# --verify, also with a tensor of zeros in the kernel's weights, and the time to load.
# Of shapes of tests/models also 8 branches decoded together.
# Usage: tests/gpu/check_families.sh BIN_FOLDER OUTPUT_FOLDER [MODEL...]   MODEL: a name of models/ or tests/models/
# BIN_FOLDER holds decode-dump, soliton-chat, soliton-gen and kernels/; a kernel that is not there is made with nvcc.
# Needs python3 with torch, transformers and tokenizers.
set -u
bin=$1 out=$2
shift 2
models=${*:-llama-3.2-1b qwen2.5-1.5b qwen3-0.6b mistral-7b qwen3-8b phi-3-mini}
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=""
not_verified=9 # kNotVerified of models/error.h

check() { # check NAME COMMAND...: runs it, keeps its output
  local name=$1
  shift
  if "$@" > "$out/$name.log" 2>&1; then echo "ok      $name"; else echo "FAILED  $name"; failed+=" $name"; fi
  tail -n "${lines:-2}" "$out/$name.log" | sed 's/^/        /'
}

tokenizer_of() {
  case $1 in
    llama* | heads256* | phi*) echo llama ;;
    qwen*) echo qwen ;;
    mistral*) echo mistral3 ;;
  esac
}

make_kernel() { # make_kernel MODEL LIBRARY KV_BITS
  local model=$root/models/$1.yaml rows=1,8,64
  [ -f "$model" ] || model=$root/tests/models/$1.yaml
  # Heads of 256 in two f16 leave no room for 8 rows, nor for 64.
  case $1-$3 in heads256*-32) rows=1,16 ;; esac
  "$bin/soliton-gen" "$model" --gpu h200 --rows $rows --kv-bits "$3" -o "$scratch/source" &&
    nvcc -std=c++20 -O3 -gencode=arch=compute_90a,code=sm_90a -I "$root/templates" -shared \
      -Xcompiler -fPIC,-fvisibility=hidden "$scratch/source/kernel.cu" -o "$2"
}

# A large model takes long for each tensor: of those a matrix of the last layer, one that only moves where attention
# looks, and the last norm.
tensors_of() { # tensors_of MODEL FOLDER: names of tensors, one of each kind
  local layers last middle
  layers=$(python3 -c "import json, sys; print(json.load(open(sys.argv[1]))['num_hidden_layers'])" "$2/config.json") ||
    return
  last=model.layers.$((layers - 1)) middle=model.layers.$((layers / 2))
  echo "$last.mlp.down_proj.weight" model.norm.weight
  case $1 in phi*) ;; *) echo "$middle.self_attn.k_proj.weight" ;; esac
  case $1 in mistral-7b | qwen3-8b) return ;; esac
  case $1 in phi*)
    echo "$middle".self_attn.qkv_proj.weight "$last".mlp.gate_up_proj.weight
    return ;;
  esac
  echo "$middle".self_attn.{q,v,o}_proj.weight "$last".mlp.{gate,up}_proj.weight
  echo "$middle".{input,post_attention}_layernorm.weight model.embed_tokens.weight
  case $1 in
    qwen2.5*) echo "$middle".self_attn.{q,k,v}_proj.bias ;;
    qwen3*) echo "$middle".self_attn.{q,k}_norm.weight ;;
  esac
}

check_without() { # check_without MODEL FOLDER KERNEL: does --verify notice each tensor that the kernel has as zeros?
  local name=$1-without-a-tensor log=$out/$1-without.log count=0 found=0 tensor status
  : > "$log"
  for tensor in $(tensors_of "$1" "$2" 2>> "$log"); do
    echo "$tensor" >> "$log"
    timeout 100 "$bin/soliton-chat" "$2" -k "$3" --verify-without "$tensor" >> "$log" 2>&1
    status=$?
    echo "status $status" >> "$log"
    count=$((count + 1))
    [ $status -ne $not_verified ] || found=$((found + 1))
  done
  if [ $count -gt 0 ] && [ $found -eq $count ]; then
    echo "ok      $name: $found of $count found"
  else
    echo "FAILED  $name: $found of $count found"
    failed+=" $name"
  fi
}

kernel_of() { # kernel_of MODEL KV_BITS: the library's path; made if there is none
  local name=$1-sm90
  [ "$2" = 16 ] || name+=-kv$2
  local built=$bin/kernels/$name.so
  if [ ! -f "$built" ]; then
    built=$scratch/$name.so
    make_kernel "$1" "$built" "$2" > "$out/$name.log" 2>&1 || echo "no kernel: see $name.log" >&2
  fi
  echo "$built"
}

compare() { # compare MODEL FOLDER KERNEL [ROWS]: 128 greedy tokens and their logits against transformers in float32
  timeout 100 "$bin/decode-dump" -m "$2" -k "$3" --rows "${4:-1}" -n 128 -o "$scratch/decoded.json" --logits "$scratch/logits.f32" &&
    timeout 200 python3 "$root/tests/goldens/compare_transformers.py" "$2" "$scratch/decoded.json" --logits "$scratch/logits.f32" 2>&1
}

for model in $models; do
  folder=$scratch/$model
  kernel=$(kernel_of "$model" 16)
  exact=$(kernel_of "$model" 32)
  fused=
  case $model in phi*) fused=--fused ;; esac
  check "$model-folder" timeout 200 python3 "$root/tests/goldens/make_random_folder.py" "$model" "$folder" $fused
  (cd "$root/tests/tokenizer" && python3 -c "import json, sys, families
json.dump(families.FAMILIES[sys.argv[1]](), open(sys.argv[2], 'w'))" "$(tokenizer_of "$model")" "$folder/tokenizer.json") ||
    failed+=" $model-tokenizer"
  lines=8 check "$model-compare" compare "$model" "$folder" "$exact"
  compare "$model" "$folder" "$kernel" > "$out/$model-compare-f16.log"
  echo "        with f16 keys and values, not counted:"
  tail -n 5 "$out/$model-compare-f16.log" | sed 's/^/        /'
  [ -f "$root/models/$model.yaml" ] || lines=8 check "$model-8-rows" compare "$model" "$folder" "$kernel" 8
  lines=4 check "$model-chat" timeout 100 "$bin/soliton-chat" "$folder" -k "$kernel" -p "The quick brown fox" --raw -n 32 -c 2048
  check "$model-verify" timeout 100 "$bin/soliton-chat" "$folder" -k "$kernel" --verify
  check "$model-verify-kv32" timeout 100 "$bin/soliton-chat" "$folder" -k "$exact" --verify
  check_without "$model" "$folder" "$kernel"
  rm -rf "$folder"
done
[ -z "$failed" ] || { echo "failed:$failed"; exit 1; }
