#!/usr/bin/env python3
"""A peer for soliton-bench: FlashInfer's attention of one layer where it has a variant, in fp16.

    baseline_variants.py sinks --soliton attention-8b-sinks.json --json-file peer.json
    baseline_variants.py --self-check    on the CPU: is the softmax that answers are compared with the right one?

Variants are none, window (of 4096 keys), soft-cap (of 30), sinks (a logit a head) and alibi, each by itself. Tests are
dN, one row with N cached tokens, a tree as baseline_tree.py has them, and apart:TREE, its rows with a copy of their
path each.

Of FlashInfer these ways are timed, where they take the variant: decode (BatchDecodeWithPagedKVCacheWrapper), flat and
flat_fa3 (the same with tensor cores, by fa2 and by fa3; for sinks BatchAttentionWithAttentionSinkWrapper), xqa
(xqa_batch_decode_with_kv_cache), batch_attention (BatchAttention) and cascade (MultiLevelCascadeAttentionWrapper, a
level of the tree each). For windows decode and flat are also timed as servers call them: trimmed, by page tables without
the pages that no query sees. A CUDA graph holds 8 layers, each with a cache of its own; the L2 cache is flushed before
it runs; the time of a layer is the median of the repeats over 8. Answers are compared with a softmax in fp32 first, which
has to differ from that without the variant.

The files of --soliton, of soliton-bench, are of tests/models/attention-8b*.yaml, a file for each variant, made on the
same kind of card with -n and -d of dN and 0, and --tree. Soliton's time is how much its step grows by the cache, a
layer; for the same of FlashInfer there is the time of each way with one cached token a row. The floor is the keys and
values that any row sees, each counted once, over S of that file.

Exit status: 0 good, 1 the self-check failed, 2 unusable input, in one line.
"""

import argparse
import dataclasses
import functools
import json
import math
import pathlib
import re
import sys
from typing import Any, Callable

import torch
from torch import Tensor

from baseline import Parser, at_least, device_name
from baseline_facts import Unusable, parse_yaml
from baseline_tree import (HEAD_DIM, KV_HEADS, QUERY_HEADS, SEED, TOLERANCE, Apart, Level, Pages, Tables, Tree, cache_of,
                           captured, cascade_tables, flat_tables, import_flashinfer, ints, parse_tree, path_of,
                           read_soliton, time_us, tokens_by_tables, use_fa2)

LAYERS = 8  # of a graph
PAGE_SIZE = 64
QUERY_SCALE = 4.0  # scores of this deviation: a cap of 30 changes them by far more than fp16 does
CHECK_TOLERANCE = 1e-5
WORKSPACE_BYTES = 512 << 20
TESTS = ("d4096,d32768,parallel:8@4096,parallel:64@4096,parallel:8@32768,parallel:64@16384,apart:parallel:8@4096,"
         "apart:parallel:64@4096,apart:parallel:8@32768")
MODELS = pathlib.Path(__file__).resolve().parents[2] / "tests" / "models"


@dataclasses.dataclass(frozen=True)
class Variant:
    model: str  # Soliton's
    ways: tuple[str, ...]
    window: int = 0  # keys that a query sees, its own too; 0: all
    soft_cap: float = 0.0  # 0: none
    sinks: bool = False
    alibi: bool = False


PLAIN = Variant("attention-8b", ("decode", "flat", "flat_fa3", "xqa", "batch_attention", "cascade"))
VARIANTS = {
    "none": PLAIN,
    "window": Variant("attention-8b-window", ("decode", "flat", "flat_fa3", "xqa", "decode_trimmed", "flat_trimmed"),
                      window=4096),
    "soft-cap": Variant("attention-8b-soft-cap", ("decode", "flat", "flat_fa3", "batch_attention", "cascade"),
                        soft_cap=30.0),
    "sinks": Variant("attention-8b-sinks", ("flat", "flat_fa3", "xqa"), sinks=True),
    "alibi": Variant("attention-8b-alibi", ("decode", "flat"), alibi=True)}


# ---- Tests

def parse_test(name: str) -> Tree:
    if match := re.fullmatch(r"d([1-9]\d{0,8})", name):
        return Tree(name, (Level(1, int(match[1])),))
    if name.startswith("apart:"):
        tree = parse_tree(name.removeprefix("apart:"))
        return Tree(name, (Level(tree.rows, path_tokens(tree)),))
    return parse_tree(name)


def path_tokens(tree: Tree) -> int:
    return sum(level.tokens for level in tree.levels)


def seen_tokens(tree: Tree, window: int) -> int:
    """That any row sees."""
    hidden = max(0, path_tokens(tree) - window) if window else 0
    seen = end = 0
    for level in tree.levels:
        end += level.tokens
        seen += level.nodes * min(level.tokens, max(0, end - hidden))
    return seen


def trimmed(tables: Tables, page_size: int, window: int) -> Tables:
    """Without the pages before the windows."""
    cut = Tables(tables.row_starts, [0], [], [])
    for reader, length in enumerate(tables.lengths):
        gone = max(0, length - window) // page_size
        cut.pages += tables.pages[tables.page_starts[reader] + gone:tables.page_starts[reader + 1]]
        cut.page_starts.append(len(cut.pages))
        cut.lengths.append(length - gone * page_size)
    return cut


# ---- The same in plain PyTorch

def alibi_slopes(heads: int) -> Tensor:
    """Of a number of heads that is a power of two: https://arxiv.org/abs/2108.12409."""
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)


def scores_of(variant: Variant, q: Tensor, keys: Tensor) -> Tensor:
    """[KV heads, query heads of each, tokens] of q [query heads, dim] and keys [tokens, KV heads, dim], the last q's own."""
    heads = q.view(keys.shape[1], -1, q.shape[-1])
    scores = torch.einsum("kgd,tkd->kgt", heads, keys) * q.shape[-1] ** -0.5
    if variant.soft_cap:
        scores = variant.soft_cap * torch.tanh(scores / variant.soft_cap)
    if variant.alibi:
        distances = torch.arange(1 - len(keys), 1, device=q.device)
        scores = scores + alibi_slopes(len(q)).to(q).view(*heads.shape[:2], 1) * distances
    return scores


def attend(variant: Variant, q: Tensor, keys: Tensor, values: Tensor, sinks: Tensor) -> Tensor:
    """[query heads, dim]; sinks are [query heads], and values as keys."""
    if variant.window:
        keys, values = keys[-variant.window:], values[-variant.window:]
    scores = scores_of(variant, q, keys)
    if variant.sinks:
        scores = torch.cat([scores, sinks.view(*scores.shape[:2], 1)], -1)
    return torch.einsum("kgt,tkd->kgd", scores.softmax(-1)[..., :len(keys)], values).reshape(q.shape)


def expected_rows(variant: Variant, tree: Tree, q: Tensor, keys: Tensor, values: Tensor, sinks: Tensor) -> Tensor:
    rows = []
    for row in range(tree.rows):
        path = torch.tensor(path_of(tree, row), device=q.device)
        rows.append(attend(variant, q[row].float(), keys[path].float(), values[path].float(), sinks))
    return torch.stack(rows)


def heavy_sinks(q: Tensor, keys: Tensor) -> Tensor:
    """As heavy as a row's keys together, else no answer would show them."""
    return scores_of(PLAIN, q.float(), keys.float()).logsumexp(-1).reshape(-1)


def attend_one_by_one(variant: Variant, q: Tensor, keys: Tensor, values: Tensor, sinks: Tensor) -> Tensor:
    """attend() in Python's floats, token by token."""
    outputs = torch.zeros(q.shape)
    group = q.shape[0] // keys.shape[1]
    for head in range(q.shape[0]):
        weights = []
        for token in range(len(keys)):
            distance = len(keys) - 1 - token
            score = sum(a * b for a, b in zip(q[head].tolist(), keys[token, head // group].tolist())) / math.sqrt(q.shape[1])
            if variant.soft_cap:
                score = variant.soft_cap * math.tanh(score / variant.soft_cap)
            if variant.alibi:
                score -= 2 ** (-8 * (head + 1) / q.shape[0]) * distance
            weights.append(0.0 if variant.window and distance >= variant.window else math.exp(score))
        total = sum(weights) + (math.exp(float(sinks[head])) if variant.sinks else 0.0)
        for token, weight in enumerate(weights):
            outputs[head] += weight / total * values[token, head // group]
    return outputs


def self_check() -> bool:
    torch.manual_seed(SEED)
    good = True
    for name, variant in VARIANTS.items():
        variant = dataclasses.replace(variant, window=variant.window and 21, soft_cap=variant.soft_cap and 2.0)
        for test in ("d37", "levels:1x40/4x5", "apart:levels:1x9/2x17"):
            tree = parse_test(test)
            q = torch.randn(tree.rows, 4, 16)
            keys, values = torch.randn(2, tree.unique_tokens, 2, 16)
            sinks = heavy_sinks(q[0], keys[path_of(tree, 0)])
            rows = [attend_one_by_one(variant, q[row], keys[path], values[path], sinks)
                    for row, path in ((row, path_of(tree, row)) for row in range(tree.rows))]
            worst = float((expected_rows(variant, tree, q, keys, values, sinks) - torch.stack(rows)).abs().max())
            pages = Pages(8)
            tables = flat_tables(tree, pages)
            if variant.window:
                tables = trimmed(tables, pages.page_size, variant.window)
            by_tables = [attend(variant, q[row], keys[tokens], values[tokens], sinks)
                         for row, tokens in enumerate(tokens_by_tables(tables, pages))]
            worst = max(worst, float((torch.stack(by_tables) - torch.stack(rows)).abs().max()))
            seen = {token for row in range(tree.rows) for token in path_of(tree, row)[-(variant.window or 10 ** 9):]}
            is_good = worst < CHECK_TOLERANCE and seen_tokens(tree, variant.window) == len(seen)
            good = good and is_good
            print(f"{name}, {test}: {worst:.1e} at most, {len(seen)} tokens seen: {'ok' if is_good else 'DIFFERS'}")
    return good


# ---- FlashInfer

def takes(way: str, tree: Tree) -> bool:
    return way != "cascade" or len(tree.levels) > 1


def run_of(way: str, variant: Variant, tree: Tree, pages: Pages, q: Tensor, sinks: Tensor) -> Callable[[Tensor], Tensor]:
    """Plans; what it returns runs with a cache of these pages."""
    flashinfer = import_flashinfer()
    of_page = pages.page_size
    if way == "cascade":
        levels = cascade_tables(tree, pages)
        cascade = flashinfer.MultiLevelCascadeAttentionWrapper(len(levels), workspace(), "NHD")
        use_fa2(cascade)
        cascade.plan([ints(level.row_starts) for level in levels], [ints(level.page_starts) for level in levels],
                     [ints(level.pages) for level in levels], [ints(level.last_page_tokens(of_page)) for level in levels],
                     QUERY_HEADS, KV_HEADS, HEAD_DIM, of_page, q_data_type=torch.float16, logits_soft_cap=variant.soft_cap)
        return lambda cache: cascade.run(q, cache)
    tables = flat_tables(tree, pages)
    if way.endswith("_trimmed"):
        tables = trimmed(tables, of_page, variant.window)
    kv = [ints(tables.page_starts), ints(tables.pages), ints(tables.last_page_tokens(of_page))]
    heads = [QUERY_HEADS, KV_HEADS, HEAD_DIM]
    types = {"q_data_type": torch.float16, "kv_data_type": torch.float16}
    window_left = variant.window - 1  # without its own
    backend = "fa3" if way == "flat_fa3" else "fa2"
    if way == "xqa":
        return xqa(flashinfer, variant, tables, q, sinks)
    if way == "batch_attention":
        attention = flashinfer.BatchAttention(kv_layout="NHD")
        attention.plan(ints(tables.row_starts), kv[0], kv[1], ints(tables.lengths), *heads, HEAD_DIM, of_page,
                       logits_soft_cap=variant.soft_cap, **types)
        return lambda cache: attention.run(q, cache, logits_soft_cap=variant.soft_cap)[0]
    if variant.sinks:
        with_sinks = flashinfer.BatchAttentionWithAttentionSinkWrapper(
            workspace(), kv_layout="NHD", backend=backend, head_dim_qk=HEAD_DIM, head_dim_vo=HEAD_DIM, window_left=window_left,
            **types)
        with_sinks.plan(ints(tables.row_starts), *kv, *heads, of_page, causal=False, window_left=window_left, **types)
        return lambda cache: with_sinks.run(q, cache, sinks, HEAD_DIM ** -0.5)
    decode = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace(), "NHD", use_tensor_cores=way.startswith("flat"),
                                                           backend=backend)
    decode.plan(*kv, *heads, of_page, pos_encoding_mode="ALIBI" if variant.alibi else "NONE", window_left=window_left,
                logits_soft_cap=variant.soft_cap, **types)
    return lambda cache: decode.run(q, cache)


def workspace() -> Tensor:
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")


def xqa(flashinfer: Any, variant: Variant, tables: Tables, q: Tensor, sinks: Tensor) -> Callable[[Tensor], Tensor]:
    pages = [tables.pages[begin:end] for begin, end in zip(tables.page_starts, tables.page_starts[1:])]
    most = max(map(len, pages))
    block_tables = torch.tensor([row + [0] * (most - len(row)) for row in pages], dtype=torch.int32, device="cuda")
    lengths, scratch = ints(tables.lengths), workspace()
    return lambda cache: flashinfer.decode.xqa_batch_decode_with_kv_cache(
        q, (cache[:, 0], cache[:, 1]), scratch, block_tables, lengths, max(tables.lengths), bmm1_scale=HEAD_DIM ** -0.5,
        bmm2_scale=1.0, window_left=variant.window - 1, sinks=sinks if variant.sinks else None, kv_layout="NHD")


def off_by(outputs: Tensor, expected: Tensor) -> float:
    return float(((outputs.float() - expected).abs() / (1 + expected.abs())).max())


def inputs_of(tree: Tree) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """q, keys and values of the tree's tokens, sinks."""
    torch.manual_seed(SEED)
    q = QUERY_SCALE * torch.randn(tree.rows, QUERY_HEADS, HEAD_DIM, dtype=torch.float16, device="cuda")
    keys, values = (torch.randn(tree.unique_tokens, KV_HEADS, HEAD_DIM, dtype=torch.float16, device="cuda")
                    for _ in range(2))
    return q, keys, values, heavy_sinks(q[0], keys[torch.tensor(path_of(tree, 0), device="cuda")])


@functools.cache
def expected_of(name: str, tree: Tree) -> tuple[Tensor, float]:
    """Also how far the answer without the variant is off."""
    inputs = inputs_of(tree)
    expected = expected_rows(VARIANTS[name], tree, *inputs)
    return expected, off_by(expected_rows(PLAIN, tree, *inputs), expected)


def measure(way: str, name: str, tree: Tree, is_compared: bool, repeats: int) -> float | str:
    """us of a layer, or why there are none. Only where it is compared must the variant show."""
    try:
        expected, shown = expected_of(name, tree)
        if is_compared and VARIANTS[name] is not PLAIN and not shown > 5 * TOLERANCE:
            return f"expected answers that show the variant, got them within {shown:.3g} of those without it"
        q, keys, values, sinks = inputs_of(tree)
        pages = Pages(PAGE_SIZE)
        run = run_of(way, VARIANTS[name], tree, pages, q, sinks)
        caches = [cache_of(pages, keys, values) for _ in range(LAYERS)]
        run(caches[0])
        torch.cuda.synchronize()
        graph, outputs = captured(lambda: [run(cache) for cache in caches])
        graph.replay()
        torch.cuda.synchronize()
        worst = max(off_by(output, expected) for output in outputs)
        if not worst <= TOLERANCE:
            return f"expected the softmax's answer within {TOLERANCE}, got one {worst:.3g} off"
        return time_us(graph, repeats) / LAYERS
    except (RuntimeError, ValueError, TypeError, AssertionError, AttributeError, NotImplementedError) as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


# ---- Beside Soliton

def layers_of(model: str) -> int:
    path = MODELS / f"{model}.yaml"
    try:
        return int(parse_yaml(path.read_text(encoding="utf-8"))["num_layers"])
    except (OSError, ValueError, KeyError) as error:
        raise Unusable(f"{path}: expected the facts of {model}, got: {error}") from error


def number(path: pathlib.Path, document: Any, key: str) -> float:
    value = document.get(key) if isinstance(document, dict) else None
    if not isinstance(value, (int, float)):
        raise Unusable(f"{path}: {key}: expected a number, got {value!r}")
    return float(value)


@dataclasses.dataclass
class Soliton:
    """A file of soliton-bench."""
    path: pathlib.Path
    document: dict[str, Any]

    def entries(self, key: str) -> list[dict[str, Any]]:
        entries = self.document.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise Unusable(f"{self.path}: {key}: expected a list of tests, got something else")
        return entries

    def row_us(self, cached: str) -> float | None:
        for row in self.entries("rows"):
            if re.fullmatch(rf"tg\d+{cached}", str(row.get("test"))):
                return number(self.path, row, "token_us_p50")
        return None

    def growth_us(self, test: str) -> float | None:
        """Of a step by the cache, of all layers; None: the file has no such test."""
        if re.fullmatch(r"d\d+", test):
            step, without = self.row_us(f" @ {test}"), self.row_us("")
            return None if step is None or without is None else step - without
        for tree in self.entries("trees"):
            if tree.get("test") == test.removeprefix("apart:"):
                key = "unshared_us_p50" if test.startswith("apart:") else "step_us_p50"
                without = number(self.path, tree, "without_cache_us_p50")
                return number(self.path, tree, key) - without if tree.get(key) else None
        return None


def read_file_of(variant: Variant, path: pathlib.Path) -> Soliton:
    document = read_soliton(path)
    model = document.get("model") if isinstance(document, dict) else None
    if model != variant.model:
        raise Unusable(f"{path}: model: expected {variant.model}, got {model!r}")
    return Soliton(path, document)


def add_soliton(row: dict[str, Any], variant: Variant, soliton: Soliton) -> None:
    kv_bytes = row["seen_tokens"] * KV_HEADS * HEAD_DIM * 2 * 2  # two of two bytes
    row["floor_us"] = kv_bytes / number(soliton.path, soliton.document, "read_bandwidth_bytes_per_s") * 1e6
    growth = soliton.growth_us(row["test"])
    if growth is not None:
        row["soliton_us"] = growth / layers_of(variant.model)


def best_way(row: dict[str, Any]) -> str | None:
    timed = [way for way, result in row["ways"].items() if "us" in result]
    return min(timed, key=lambda way: row["ways"][way]["us"], default=None)


def markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["| variant | cache | rows | floor us | Soliton us | FlashInfer us | by the cache us | way | FlashInfer / Soliton |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        way = best_way(row)
        best = row["ways"][way]["us"] if way else None
        by_cache = best - row["ways"][way]["without_cache_us"] if way and "without_cache_us" in row["ways"][way] else None
        ratio = best / row["soliton_us"] if best and row.get("soliton_us") else None
        cells = [f"{cell:.1f}" if cell is not None else "-"
                 for cell in (row.get("floor_us"), row.get("soliton_us"), best, by_cache)]
        lines.append(f"| {row['variant']} | {row['test']} | {row['rows']} | {' | '.join(cells)} | {way or '-'} | "
                     f"{f'{ratio:.2f}' if ratio is not None else '-'} |")
    return "\n".join(lines)


def time_row(row: dict[str, Any], tree: Tree, without: dict[tuple[str, int], float | str], options: argparse.Namespace,
             apart: Apart) -> None:
    for way in VARIANTS[options.variant].ways:
        if not takes(way, tree) or (options.ways and way not in options.ways):
            continue
        result = apart.measure(way, options.variant, tree, True, options.repeats)
        row["ways"][way] = {"failed": result} if isinstance(result, str) else {"us": result}
        if isinstance(result, str):
            print(f"{options.variant}, {tree.name}: {way}: {result}", file=sys.stderr, flush=True)
            continue
        levels = (Level(1, 1), Level(tree.rows, 1)) if way == "cascade" else (Level(tree.rows, 1),)
        if (way, tree.rows) not in without:
            without[way, tree.rows] = apart.measure(way, options.variant, Tree("without", levels), False, options.repeats)
        if not isinstance(without[way, tree.rows], str):
            row["ways"][way]["without_cache_us"] = without[way, tree.rows]


def tests_of(variant: Variant, names: str | None) -> list[Tree]:
    """Where none are named, those of all in which the variant shows."""
    trees = [parse_test(name) for name in (names or TESTS).split(",")]
    if not names:
        return [tree for tree in trees if path_tokens(tree) > 2 * variant.window]
    for tree in trees:
        if path_tokens(tree) <= variant.window:
            raise Unusable(f"{tree.name}: expected more cached tokens than the window's {variant.window}, got "
                           f"{path_tokens(tree)}")
    return trees


def bench(options: argparse.Namespace) -> None:
    variant = VARIANTS[options.variant]
    trees = tests_of(variant, options.tests)
    soliton = read_file_of(variant, options.soliton) if options.soliton else None
    rows: list[dict[str, Any]] = [{"variant": options.variant, "test": tree.name, "rows": tree.rows,
                                   "seen_tokens": seen_tokens(tree, variant.window), "ways": {}} for tree in trees]
    if soliton:
        for row in rows:
            add_soliton(row, variant, soliton)
    if not torch.cuda.is_available():
        raise Unusable("cuda: expected a device, got none")
    flashinfer = import_flashinfer()
    document = {"command": " ".join(["baseline_variants.py", *sys.argv[1:]]), "program": "baseline_variants.py",
                "flashinfer": flashinfer.__version__, "torch": torch.__version__, "device": device_name("cuda"),
                "query_heads": QUERY_HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM, "page_size": PAGE_SIZE,
                "layers": LAYERS, "repeats": options.repeats, "soliton": options.soliton.name if soliton else None,
                "variants": rows}
    apart = Apart(measure)
    without: dict[tuple[str, int], float | str] = {}
    for tree, row in zip(trees, rows):
        time_row(row, tree, without, options, apart)
        if options.json_file:  # what there is, should the next one not end
            options.json_file.write_text(json.dumps(document, indent=2) + "\n")
    print(f"flashinfer {flashinfer.__version__} on {device_name('cuda')}, torch {torch.__version__}, fp16, "
          f"{QUERY_HEADS}/{KV_HEADS} heads of {HEAD_DIM}, pages of {PAGE_SIZE}, one layer\n\n{markdown(rows)}")


def parse_options() -> argparse.Namespace:
    parser = Parser(prog="baseline_variants.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variant", nargs="?", choices=VARIANTS, help="one of them")
    parser.add_argument("--tests", metavar="LIST", help=f"of one variant (default those of {TESTS} in which it shows)")
    parser.add_argument("--ways", metavar="LIST", type=lambda text: text.split(","), help="of FlashInfer (default all)")
    parser.add_argument("-r", "--repetitions", dest="repeats", metavar="N", type=at_least(1), default=30,
                        help="runs of each (default 30)")
    parser.add_argument("--soliton", metavar="FILE", type=pathlib.Path, help="JSON of soliton-bench, for floor and ratio")
    parser.add_argument("--json-file", metavar="FILE", type=pathlib.Path, help="also writes JSON to this file")
    parser.add_argument("--self-check", action="store_true", help="checks the softmax on the CPU")
    options = parser.parse_args()
    if options.self_check == (options.variant is not None):
        parser.error("expected a variant or --self-check, one of the two")
    for way in options.ways or []:
        if options.variant and way not in VARIANTS[options.variant].ways:
            parser.error(f"--ways: expected some of {', '.join(VARIANTS[options.variant].ways)}, got {way}")
    return options


def main() -> int:
    try:
        options = parse_options()
        if options.self_check:
            return 0 if self_check() else 1
        bench(options)
    except Unusable as error:
        print(f"baseline_variants.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
