#!/bin/sh
# Mutates the templates, compiles the kernels of the judge once with all mutants in them, and judges a sample: every wait,
# fence, arrival and parity, and of the other places one in SAMPLE (4). tests/mutation/run.sh [BUILD]: needs a build of
# test-kernels, also those of long runs, and libraries; JOBS (1) processes at a time. Some hours of one core; half an hour or so of 16.
set -e
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build}")
jobs=${JOBS:-1}
here=tests/mutation
out=$build/mutation
mkdir -p "$out"
python3 $here/mutate.py templates "$out"
cmake --build "$build" --target mutation-judge
# Two kernels that no test has: of more tokens than a warp draws from at once, and of more CTAs than it has lanes.
while read -r name model flags; do
  mkdir -p "$build/tests/kernels/$name"
  # shellcheck disable=SC2086
  "$build/soliton-gen" "$model" --gpu tests/gpus/many-cpus.yaml -o "$build/tests/kernels/$name" $flags
done << END
words-1 $here/words.yaml --ctas 1
micro-17-cards2 tests/models/micro.yaml --ctas 17 --cards 2
END
# The compiler has arrays that are left noticed.
"$build/mutation-judge" --kernels | xargs -P "$jobs" -I NAME nice -n 15 "${CXX:-c++}" -std=c++20 -O1 -w -fPIC -shared \
  -fsanitize=bounds-strict -fsanitize-undefined-trap-on-error \
  -fvisibility=hidden -fno-gnu-unique -include $here/mutant.h -I"$out" -I"$out/templates" -Itemplates \
  -I"$build/tests/kernels/NAME" -xc++ "$build/tests/kernels/NAME/kernel.cu" -o "$out/NAME.so" -xnone \
  "$build/templates/libsoliton_emulation.a" -lboost_context -lpthread
python3 $here/report.py --sample "${SAMPLE:-4}" "$out" > "$out/ids.txt"
SOLITON_MUTATED_KERNELS=$out nice -n 15 "$build/mutation-judge" "$(grep -c '"id"' "$out/mutants.json")" --jobs "$jobs" \
  --only "$(cat "$out/ids.txt")" > "$out/results.jsonl"
python3 $here/report.py "$out" "$out/results.jsonl" $here/equivalent.txt
