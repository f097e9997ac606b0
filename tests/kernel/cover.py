#!/usr/bin/env python3
"""Which cases of kernels short runs need: cover.py BUILD [FOLDER], of a build in which test kernels have been generated.

Each kernel of tests is compiled for coverage, in FOLDER (BUILD/cover), which takes some minutes; nothing is run. What a kernel
has: the lines of templates that its plan instantiates, the formats of weights that they are instantiated for, and the values
of its plan and its model's facts, where numbers that only make it longer count as small or large. Suites that compare as
much are a group. Printed are

  spare    a case of short runs, all of which other short cases of its groups have: kLongCases of kernel_cases.h may name it,
           one at a time
  missing  what only cases of long runs have in a group, and how much of it
"""

import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
SOURCE = TESTS.parent
TREES = ["Tree", "TreeLong", "TreeShapes", "TreeOfAnyShape", "TreeDraft", "TreeBits"]
ATTENTION = r"(rows/(attention|query|merge|append|items|heads|partial|finisher|choice)|layout/tree|ops/(attention|kv_|split))"
SAMPLING = r"(ops/(sampl|choice|kept|exchange|missing|final)|one_row/choose|rows/choice|layout/sampling)"
SIZES = set("hidden ffn num_layers vocabulary max_context num_heads num_kv_heads norm_epsilon rope_theta rope_factor "
            "rope_original_context num_experts".split())
NAMED = set("head_dim kv_bits weight_bits weight_group lm_head_bits activation weight_zeros rope_dims".split())


def compile_for_coverage(build, folder, name):
    """What gcov says of the kernel's instances; kept in `folder`."""
    place = folder / name
    report = place / "k.gcov.json.gz"
    if report.exists():
        return report
    place.mkdir(parents=True, exist_ok=True)
    source = build / "tests" / "kernels" / name
    subprocess.run(["g++", "-std=c++20", "-O0", "-w", "-fPIC", "--coverage", f"-I{SOURCE}", f"-I{SOURCE}/templates",
                    f"-I{source}", "-xc++", "-c", source / "kernel.cu", "-o", "k.o"], cwd=place, check=True)
    subprocess.run(["gcov", "--json-format", "k.o"], cwd=place, check=True, stdout=subprocess.DEVNULL)
    (place / "k.o").unlink()
    return report


def of_instances(report):
    found = set()
    for file in json.load(gzip.open(report))["files"]:
        if "/templates/" not in file["file"]:
            continue
        name = file["file"].split("/templates/")[1]
        found |= {("line", name, line["line_number"]) for line in file["lines"]}
        for function in file["functions"]:
            found |= {("format", name, each) for each in re.findall(r"WeightFormat\{[^{}]*\}", function["demangled_name"])}
    return found


def of_facts(plan):
    found = set()
    text = re.search(r"\.facts =\s*\{(.*?)\n    \},", plan, re.S)[1]
    facts = dict(re.findall(r"\.(\w+) = ([^,\n]+),", text))
    for name, value in facts.items():
        if name.startswith("layer_") or name == "experts_per_token":
            value = "some"
        elif name not in NAMED and re.fullmatch(r"-?[\d.e-]+", value):
            value = float(value) != 0
        if name not in SIZES:
            found.add(("fact", name, value))
    found.add(("heads of a KV head", int(facts["num_heads"]) // int(facts["num_kv_heads"])))
    found |= {("weights", each) for each in re.findall(r"\.format = (\{[^}]*\})", plan)}
    found |= {("order", each) for each in re.findall(r"RowOrder::(\w+)", plan)}
    found.add(("cards", min(int(re.search(r"\.num_cards = (\d+)", plan)[1]), 3)))
    found.add(("kinds of layers", min(len(set(re.findall(r"\{\.kind = (\d+)", plan))), 3)))
    return found


def of_plan(plan):
    found = set()
    tiles = [int(each) for each in re.findall(r"\.num_tiles = (\d+)", plan)]
    for text in re.split(r"constexpr KernelPlan ", plan)[1:]:
        if not re.match(r"\w+Numbers", text):
            continue
        text = text.split("\n};")[0]
        rows = int(re.search(r"\.rows = (\d+)", text)[1])
        kind = "one row" if rows == 1 else "rows"
        number = {name: value for name, value in re.findall(r"\.(\w+) = ([^,\n{]+),", text)}
        found.add(("rows a step", min(rows, 512)))
        for name in ("sync", "copies", "consumer_warps", "producer_warps", "shares_registers", "warp_dims"):
            if name in number:
                found.add((kind, name, number[name]))
        ctas = int(number.get("num_ctas", 1))
        slots, window = int(number.get("ring_slots", 0)), int(number.get("window", 0))
        query_tiles = int(number.get("max_query_tiles", 1))
        found |= {(kind, "buffers", min(int(number.get("input_buffers", 1)), 3)), (kind, "few slots", slots <= 4),
                  (kind, "query tiles", min(query_tiles, 8), query_tiles & (query_tiles - 1) == 0),
                  (kind, "window", window == 1, window < slots), (kind, "one CTA", ctas == 1), (kind, "many CTAs", ctas > 16),
                  (kind, "split", number.get("min_pages_per_split") == "1", number.get("max_splits") == "1")}
        found |= {(kind, "tiles", each < ctas, each % ctas == 0) for each in tiles}
        found |= {(kind, "region", name, size != "0") for name, size in re.findall(r'\{"(\w+)", \d+, (\d+)\}', text)}
        found |= {(kind, "barrier", name, min(int(slots), 2)) for name, slots in re.findall(r'\{"(\w+)", (\d+), \d+, \w+\}', text)}
        found |= {(kind, "slices", int(each)) for each in re.findall(r"column_slices = (\d+)", plan)}
    return found


def is_of_one_row(each):
    return each[0] == "one row" or each[0] in ("line", "format") and each[1].startswith(("one_row/", "layout/one_row"))


def for_suite(suite, features):
    """Trees are launches of several rows alone; what both kinds of kernels share is told apart by who has it."""
    has_one = ("rows a step", 1) in features
    has_rows = any(each[0] == "rows a step" and each[1] > 1 for each in features)
    only_rows = suite.startswith(("Tree", "SampledTree", "PromptOf"))
    found = set()
    for each in features:
        if only_rows and is_of_one_row(each):
            continue
        shared = each[0] in ("fact", "weights", "order", "kinds of layers", "heads of a KV head") or (
            each[0] in ("line", "format") and re.match("(ops|machine|formats)/", each[1]))
        if not shared:
            found.add(each)
            continue
        if has_one and not only_rows:
            found.add((*each, "of one row"))
        if has_rows:
            found.add((*each, "of rows"))
    return found


def is_of_attention(each):
    return (each[0] == "line" and re.match(ATTENTION, each[1]) or each[0] in ("rows a step", "cards")
            or each[0] == "rows" and each[1] in ("copies", "split", "one CTA") or each[:2] in (("fact", "kv_bits"), ("fact", "head_dim")))


def is_of_order(each):
    """What says who waits for whom."""
    return (each[0] == "line" and bool(re.match("(rows|one_row|machine|ops)/", each[1]))
            or each[0] in ("one row", "rows") and each[1] in ("sync", "copies", "shares_registers", "split"))


def is_of_sampling(each):
    return (each[0] == "line" and re.match(SAMPLING, each[1]) or each[0] == "cards"
            or each[0] in ("one row", "rows") and each[1] in ("sync", "copies", "one CTA", "many CTAs", "tiles", "split"))


def is_fact(each):
    return each[0] in ("fact", "weights", "order", "kinds of layers", "heads of a KV head", "cards")


GROUPS = {  # of suites, and what of a kernel matters to them
    "like the reference": (["Decode", *TREES, "PromptOfBlocks", "AttentionMatrix"], lambda each: True),
    "trees": (TREES, is_of_attention),
    "races": (["Race", "TreeRace"], is_of_order),
    "verified": (["Verify"], is_fact),
    "rows drawn": (["SampledRow"], is_of_sampling),
    "trees drawn": (["SampledTree"], is_of_sampling),
}


def suites():
    """The kernels of each suite, as the sources have them."""
    found = collections.defaultdict(set)
    for path in [*(TESTS / "kernel").glob("*_test.cc"), TESTS / "verify" / "verify_test.cc"]:
        for suite, values in re.findall(r"INSTANTIATE_TEST_SUITE_P\(\s*Kernels, (\w+),\s*testing::Values\((.*?)\)", path.read_text(), re.S):
            found[suite] |= set(re.findall(r'"([\w-]+)"', values))
    for number in re.findall(r"^soliton_add_attention_kernel\((\d+)", (TESTS / "kernel/attention_kernels.cmake").read_text(), re.M):
        found["AttentionMatrix"].add(f"attention-{number}")
    return found


def long_cases():
    """Kernels of long runs, and (suite, kernel) of others that kLongCases leaves to them."""
    cmake = (TESTS / "CMakeLists.txt").read_text() + (TESTS / "kernel/attention_kernels.cmake").read_text()
    kernels = set(re.findall(r"^soliton_add_test_kernel\((\S+) .* LONG\)", cmake, re.M))
    kernels |= {f"attention-{number}" for number in re.findall(r"^soliton_add_attention_kernel\((\d+) .* LONG\)", cmake, re.M)}
    table = (TESTS / "kernel/kernel_cases.h").read_text().split("kLongCases = {")[1].split("};")[0]
    cases = {(suite, kernel) for suite, names in re.findall(r'\{"(\w+)",\s*\{(.*?)\}\}', table, re.S)
             for kernel in re.findall(r'"([\w-]+)"', names)}
    return kernels, cases


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else build / "cover"
    of_suite = suites()
    generated = {path.parent.name for path in (build / "tests" / "kernels").glob("*/kernel.cu")}
    names = sorted(set().union(*of_suite.values()) & generated)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        reports = dict(zip(names, pool.map(lambda name: compile_for_coverage(build, folder, name), names)))
    features = {}
    for name in names:
        plan = (build / "tests" / "kernels" / name / "plan.h").read_text() + (build / "tests" / "kernels" / name / "kernel.cu").read_text()
        features[name] = of_instances(reports[name]) | of_facts(plan) | of_plan(plan)
    of_case = {(suite, name): for_suite(suite, features[name])
               for suite in of_suite for name in of_suite[suite] if name in features}
    long_kernels, left_out = long_cases()
    short = {case for case in of_case if case[1] not in long_kernels and case not in left_out}
    counts = {group: collections.Counter() for group in GROUPS}
    needed = {}
    for group, (in_group, matters) in GROUPS.items():
        for case in of_case:
            if case[0] in in_group:
                needed[group, case] = {each for each in of_case[case] if matters(each)}
                if case in short:
                    counts[group].update(needed[group, case])
    for suite, name in sorted(short):
        groups = [group for group in GROUPS if (group, (suite, name)) in needed]
        if groups and all(counts[group][each] > 1 for group in groups for each in needed[group, (suite, name)]):
            print(f"spare    {suite}/{name}")
    for group in GROUPS:
        missing = collections.defaultdict(list)
        for (its_group, case), each_of_case in needed.items():
            if its_group == group and case not in short:
                for each in each_of_case:
                    if counts[group][each] == 0:
                        missing[case].append(each)
        for (suite, name), which in sorted(missing.items()):
            print(f"missing  {group}: {suite}/{name}: {len(which)}, as {sorted(which, key=str)[0]}")


if __name__ == "__main__":
    main()
