#!/usr/bin/env bash
# Which unit of the card is full: hardware counters of every launch of soliton-bench, by Nsight Compute, as JSON.
# Usage: runtime/bench/profile.sh OUTPUT.json KERNEL [arguments of soliton-bench...]   from the root of the repository
# Launches are replayed a few times, at the clocks that the card chooses; their times say little, their shares a lot.
# Needs ncu and python3. Exit status: that of ncu, or 2 for unusable input.
set -euo pipefail
[ $# -ge 2 ] || { sed -n 2,5p "$0" >&2; exit 2; }
output=$1 kernel=$2
shift 2
[ -f "$kernel" ] || { echo "profile.sh: KERNEL: expected a kernel library, got $kernel" >&2; exit 2; }
command -v ncu > /dev/null || { echo "profile.sh: expected ncu (Nsight Compute), got none" >&2; exit 2; }

busy() { printf '%s.avg.pct_of_peak_sustained_elapsed,' "$@"; }
stalled() { printf 'smsp__average_warps_issue_stalled_%s_per_issue_active.ratio,' "$@"; }
metrics=$(busy dram__throughput lts__throughput l1tex__data_pipe_lsu_wavefronts_mem_shared sm__inst_issued \
  sm__inst_executed_pipe_alu sm__inst_executed_pipe_fma sm__inst_executed_pipe_lsu sm__pipe_tensor_cycles_active)
metrics+=$(stalled long_scoreboard short_scoreboard wait math_pipe_throttle mio_throttle no_instruction sleeping)
metrics+=dram__bytes_read.sum,lts__t_sectors_op_read.sum,sm__inst_executed.sum,sm__cycles_elapsed.avg

command="profile.sh $output $kernel $*"
csv=$(mktemp)
trap 'rm -f "$csv"' EXIT
ncu --csv --clock-control none --cache-control none -k regex:decode --metrics "$metrics" --log-file "$csv" \
  build/soliton-bench -k "$kernel" --random-weights "$@" >&2
python3 - "$csv" "$output" "$command" << 'PYTHON'
import csv, json, sys
lines = [line for line in open(sys.argv[1]) if not line.startswith("==")]
launches = {}
for row in csv.DictReader(lines):
    launch = launches.setdefault(row["ID"], {"kernel": row["Kernel Name"].split("(")[0], "metrics": {}})
    launch["metrics"][row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
json.dump({"command": sys.argv[3], "launches": list(launches.values())}, open(sys.argv[2], "w"), indent=2)
PYTHON
