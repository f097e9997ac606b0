#!/usr/bin/env python3
"""A peer for soliton-bench --tree: FlashInfer's attention of one layer over the same trees, in fp16.

    baseline_tree.py few-shot:20,document-qa:8 --soliton trees.json --json-file peer.json
    baseline_tree.py --self-check    on the CPU: do the page tables that FlashInfer is given hold the trees?

Trees are those of soliton-bench: few-shot:B[@OWN], document-qa:B[@OWN], parallel:N@PROMPT, speculative:T[@ROOT],
binary:D[@LEN] and levels:NxTOKENS/NxTOKENS/..., whose levels have N nodes of TOKENS tokens each; every leaf has a row.

Three of FlashInfer's ways are timed, each in a CUDA graph, the L2 cache flushed before each run, median of the repeats:
cascade (MultiLevelCascadeAttentionWrapper, a level of the tree each), flat (BatchDecodeWithPagedKVCacheWrapper with tensor
cores, which reads a page of a prefix once for each row) and BatchAttention (the same tables, a persistent kernel). Each
answer is compared with a softmax in fp32 before its time counts. For the last two a prefix is shared as far as its pages
are full; the rest is copied, as servers do.

The floor is the bytes of keys and values, each counted once, over S, which soliton-bench measured in the file of
--soliton on the same kind of card; Soliton's own time is how much that file's steps grow by the cache, a layer.

Exit status: 0 good, 1 the self-check failed, 2 unusable input, in one line.
"""

import argparse
import concurrent.futures
import concurrent.futures.process
import dataclasses
import json
import multiprocessing
import pathlib
import re
import statistics
import sys
from typing import Any, Callable, TypeVar

import torch
from torch import Tensor

from baseline import Parser, at_least, device_name
from baseline_facts import Unusable

QUERY_HEADS, KV_HEADS, HEAD_DIM = 32, 8, 128  # of the 8B
NUM_LAYERS = 32
FLUSHED_BYTES = 256 << 20  # several times the L2 cache
TOLERANCE = 4e-3  # of an output, whose values are means of normal ones: fp16 holds 11 bits
CHECK_TOLERANCE = 1e-5
SEED = 1
Outputs = TypeVar("Outputs")
WAYS = ("cascade", "flat", "batch_attention")
ALL = ("few-shot:20,few-shot:30,few-shot:50,speculative:64,document-qa:2,document-qa:8,document-qa:32,parallel:8@1024,"
       "parallel:32@1024,parallel:32@2048,binary:6")


# ---- Trees

@dataclasses.dataclass(frozen=True)
class Level:
    nodes: int  # a multiple of the level's above
    tokens: int  # of each


@dataclasses.dataclass(frozen=True)
class Tree:
    name: str
    levels: tuple[Level, ...]

    @property
    def rows(self) -> int:
        return self.levels[-1].nodes

    @property
    def unique_tokens(self) -> int:
        return sum(level.nodes * level.tokens for level in self.levels)

    def node_of(self, level: int, row: int) -> int:
        """Which of a level's nodes a row sees."""
        return row // (self.rows // self.levels[level].nodes)


def parse_tree(name: str) -> Tree:
    if match := re.fullmatch(r"levels:(\d+x\d+(?:/\d+x\d+)*)", name):
        levels = [Level(*map(int, level.split("x"))) for level in match[1].split("/")]
    else:
        shapes: dict[str, tuple[int | None, Callable[[int, int], list[Level]]]] = {
            "few-shot": (200, lambda n, own: [Level(1, 4000), Level(n, own)]),
            "document-qa": (1000, lambda n, own: [Level(1, 120000), Level(n, own)]),
            "parallel": (None, lambda n, prompt: [Level(1, prompt), Level(n, 64)]),
            "speculative": (4000, lambda n, root: [Level(1, root), Level(n, 1)]),
            "binary": (256, lambda depth, length: [Level(1 << i, length) for i in range(depth + 1)])}
        match = re.fullmatch(r"([a-z-]+):(\d+)(?:@(\d+))?", name)
        usual, make = shapes.get(match[1], (None, None)) if match else (None, None)
        second = int(match[3]) if match and match[3] else usual
        if make is None or second is None:
            raise Unusable(f"{name}: expected a tree as --help lists them")
        levels = make(int(match[2]), second)
    above = 1
    for level in levels:
        if level.nodes < 1 or level.tokens < 1 or level.nodes % above:
            raise Unusable(f"{name}: expected levels of a multiple of the nodes above and at least one token each")
        above = level.nodes
    return Tree(name, tuple(levels))


# ---- Page tables

@dataclasses.dataclass
class Tables:
    """Of the readers of one launch, be they rows or nodes: which pages, how many tokens in the last one, which rows."""
    row_starts: list[int]
    page_starts: list[int]
    pages: list[int]
    lengths: list[int]  # tokens

    def last_page_tokens(self, page_size: int) -> list[int]:
        return [(length - 1) % page_size + 1 for length in self.lengths]


class Pages:
    """Deals pages out, and knows which token each slot holds: tokens are numbered through the tree, level by level."""

    def __init__(self, page_size: int) -> None:
        self.page_size = page_size
        self.tokens: list[int] = []  # [page][slot], flat; -1 where there is none

    def hold(self, tokens: list[int]) -> list[int]:
        first = len(self.tokens) // self.page_size
        count = -(-len(tokens) // self.page_size)
        self.tokens += tokens + [-1] * (count * self.page_size - len(tokens))
        return list(range(first, first + count))


def tokens_of(tree: Tree, level: int, node: int) -> list[int]:
    before = sum(above.nodes * above.tokens for above in tree.levels[:level])
    length = tree.levels[level].tokens
    return list(range(before + node * length, before + (node + 1) * length))


def path_of(tree: Tree, row: int) -> list[int]:
    return [token for level in range(len(tree.levels)) for token in tokens_of(tree, level, tree.node_of(level, row))]


def cascade_tables(tree: Tree, pages: Pages) -> list[Tables]:
    """A level of the tree each."""
    tables = []
    for number, level in enumerate(tree.levels):
        of_level = Tables([0], [0], [], [level.tokens] * level.nodes)
        for node in range(level.nodes):
            of_level.pages += pages.hold(tokens_of(tree, number, node))
            of_level.page_starts.append(len(of_level.pages))
            of_level.row_starts.append((node + 1) * tree.rows // level.nodes)
        tables.append(of_level)
    return tables


def flat_tables(tree: Tree, pages: Pages) -> Tables:
    """A row each; rows share the pages that their paths fill alike."""
    held: dict[tuple[int, ...], list[int]] = {}  # by the nodes that a page's tokens are of, and which page of these
    tables = Tables([0], [0], [], [])
    ends = [sum(level.tokens for level in tree.levels[:number + 1]) for number in range(len(tree.levels))]
    for row in range(tree.rows):
        path = path_of(tree, row)
        for first in range(0, len(path), pages.page_size):
            last = min(first + pages.page_size, len(path)) - 1
            deepest = next(level for level, end in enumerate(ends) if last < end)
            key = (first, deepest, tree.node_of(deepest, row))
            if key not in held:
                held[key] = pages.hold(path[first:last + 1])
            tables.pages += held[key]
        tables.page_starts.append(len(tables.pages))
        tables.row_starts.append(row + 1)
        tables.lengths.append(len(path))
    return tables


# ---- The same in plain PyTorch

def attend(q: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """q [rows, query heads, dim], keys and values [tokens, KV heads, dim]; also the logarithm of each sum."""
    group = q.shape[1] // keys.shape[1]
    heads = q.view(q.shape[0], keys.shape[1], group, -1)
    scores = torch.einsum("rkgd,tkd->rkgt", heads, keys) * q.shape[-1] ** -0.5
    outputs = torch.einsum("rkgt,tkd->rkgd", scores.softmax(-1), values)
    return outputs.reshape(q.shape), scores.logsumexp(-1).reshape(q.shape[:2])


def expected_rows(tree: Tree, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """keys and values are [token of the tree]."""
    rows = []
    for row in range(tree.rows):
        path = torch.tensor(path_of(tree, row), device=q.device)
        rows.append(attend(q[row:row + 1].float(), keys[path].float(), values[path].float())[0])
    return torch.cat(rows)


def tokens_by_tables(tables: Tables, pages: Pages) -> list[Tensor]:
    """Of each reader."""
    of_readers = []
    for reader, length in enumerate(tables.lengths):
        of_reader = tables.pages[tables.page_starts[reader]:tables.page_starts[reader + 1]]
        slots = [page * pages.page_size + slot for page in of_reader for slot in range(pages.page_size)][:length]
        tokens = torch.tensor([pages.tokens[slot] for slot in slots])
        if int(tokens.min()) < 0:
            raise Unusable("--self-check: expected tokens in all slots that are read, got an empty one")
        of_readers.append(tokens)
    return of_readers


def attend_by_tables(tables: Tables, pages: Pages, q: Tensor, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    outputs, sums = torch.empty_like(q), torch.empty(q.shape[:2])
    for reader, tokens in enumerate(tokens_by_tables(tables, pages)):
        rows = slice(tables.row_starts[reader], tables.row_starts[reader + 1])
        outputs[rows], sums[rows] = attend(q[rows], keys[tokens], values[tokens])
    return outputs, sums


def self_check() -> bool:
    torch.manual_seed(SEED)
    good = True
    for name in ("few-shot:3@20", "speculative:5@33", "parallel:4@64", "binary:3@7", "levels:1x40/2x17/6x5", "levels:2x9/4x16"):
        tree = parse_tree(name)
        q = torch.randn(tree.rows, 4, 16)
        keys, values = torch.randn(2, tree.unique_tokens, 2, 16)
        expected = expected_rows(tree, q, keys, values)
        for page_size in (1, 8, 16):
            pages = Pages(page_size)
            flat = attend_by_tables(flat_tables(tree, pages), pages, q, keys, values)[0]
            apart = Pages(page_size)
            levels = [attend_by_tables(level, apart, q, keys, values) for level in cascade_tables(tree, apart)]
            weights = torch.stack([sums for _, sums in levels]).softmax(0)[..., None]
            merged = (torch.stack([outputs for outputs, _ in levels]) * weights).sum(0)
            worst = max(float((flat - expected).abs().max()), float((merged - expected).abs().max()))
            each_once = sorted(token for token in apart.tokens if token >= 0) == list(range(tree.unique_tokens))
            good = good and worst < CHECK_TOLERANCE and each_once
            print(f"{name}, pages of {page_size}: {worst:.1e} at most, {len(pages.tokens) // page_size} pages flat, "
                  f"{len(apart.tokens) // page_size} in levels: {'ok' if worst < CHECK_TOLERANCE and each_once else 'DIFFERS'}")
    return good


# ---- FlashInfer

def import_flashinfer() -> Any:
    try:
        import flashinfer
    except ImportError as error:
        raise Unusable(f"flashinfer: expected to be installed, got: {error}") from error
    return flashinfer


def ints(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int32, device="cuda")


def cache_of(pages: Pages, keys: Tensor, values: Tensor) -> Tensor:
    """[page][K, V][slot][KV head][dim]; slots without a token are zeros."""
    tokens = torch.tensor(pages.tokens, device="cuda").clamp(min=0)
    return torch.stack([part[tokens].view(-1, pages.page_size, KV_HEADS, HEAD_DIM) for part in (keys, values)], dim=1)


def use_fa2(cascade: Any) -> None:
    """What flat decoding takes too, where a cascade would choose by the card."""
    for part in getattr(cascade, "_batch_prefill_wrappers", []):
        part._backend = part._requested_backend = "fa2"  # the latter since 0.7


def way_to_attend(way: str, tree: Tree, page_size: int, q: Tensor, keys: Tensor, values: Tensor) -> Callable[[], Tensor]:
    """Plans; what it returns runs."""
    flashinfer = import_flashinfer()
    pages = Pages(page_size)
    if way == "cascade":
        levels = cascade_tables(tree, pages)
        workspace = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
        wrapper = flashinfer.MultiLevelCascadeAttentionWrapper(len(levels), workspace, "NHD")
        use_fa2(wrapper)
        wrapper.plan([ints(level.row_starts) for level in levels], [ints(level.page_starts) for level in levels],
                     [ints(level.pages) for level in levels],
                     [ints(level.last_page_tokens(page_size)) for level in levels],
                     QUERY_HEADS, KV_HEADS, HEAD_DIM, page_size, q_data_type=torch.float16)
        cache = cache_of(pages, keys, values)
        return lambda: wrapper.run(q, cache)
    tables = flat_tables(tree, pages)
    if way == "flat":
        workspace = torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
        wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "NHD", use_tensor_cores=True)
        wrapper.plan(ints(tables.page_starts), ints(tables.pages), ints(tables.last_page_tokens(page_size)), QUERY_HEADS,
                     KV_HEADS, HEAD_DIM, page_size, q_data_type=torch.float16, kv_data_type=torch.float16)
        cache = cache_of(pages, keys, values)
        return lambda: wrapper.run(q, cache)
    wrapper = flashinfer.BatchAttention(kv_layout="NHD")
    wrapper.plan(ints(tables.row_starts), ints(tables.page_starts), ints(tables.pages), ints(tables.lengths), QUERY_HEADS,
                 KV_HEADS, HEAD_DIM, HEAD_DIM, page_size, q_data_type=torch.float16, kv_data_type=torch.float16)
    cache = cache_of(pages, keys, values)
    return lambda: wrapper.run(q, cache)[0]


def captured(run: Callable[[], Outputs]) -> tuple[torch.cuda.CUDAGraph, Outputs]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = run()
    return graph, outputs


def time_us(graph: torch.cuda.CUDAGraph, repeats: int) -> float:
    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device="cuda")
    times = []
    for _ in range(repeats + 1):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flushed.fill_(len(times) % 256)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times[1:])


def measure(way: str, tree: Tree, page_size: int, repeats: int) -> float | str:
    """us, or why there are none."""
    try:
        torch.manual_seed(SEED)
        q = torch.randn(tree.rows, QUERY_HEADS, HEAD_DIM, dtype=torch.float16, device="cuda")
        keys, values = (torch.randn(tree.unique_tokens, KV_HEADS, HEAD_DIM, dtype=torch.float16, device="cuda")
                        for _ in range(2))
        run = way_to_attend(way, tree, page_size, q, keys, values)
        run()
        torch.cuda.synchronize()
        graph, outputs = captured(run)
        graph.replay()
        worst = float((outputs.float() - expected_rows(tree, q, keys, values)).abs().max())
        if not worst <= TOLERANCE:
            return f"expected the softmax's answer within {TOLERANCE}, got one {worst:.3g} off"
        return time_us(graph, repeats)
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"


class Apart:
    """Measures in a process of its own, and in another one behind each failure: that of a kernel ends all use of the device."""

    def __init__(self, measure: Callable[..., float | str]) -> None:
        """measure gives a time, or says why there is none."""
        self.one = measure
        self.pool: concurrent.futures.ProcessPoolExecutor | None = None

    def measure(self, *arguments: Any) -> float | str:
        if self.pool is None:
            self.pool = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
        try:
            result = self.pool.submit(self.one, *arguments).result()
        except concurrent.futures.process.BrokenProcessPool:
            result = "the process ended"
        if isinstance(result, str):
            self.pool.shutdown()
            self.pool = None
        return result


# ---- Beside Soliton

def read_soliton(path: pathlib.Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: expected JSON of soliton-bench, got: {error}") from error


def add_soliton(row: dict[str, Any], soliton: dict[str, Any]) -> None:
    kv_bytes = row["unique_tokens"] * KV_HEADS * HEAD_DIM * 2 * 2  # two of two bytes
    row["floor_us"] = kv_bytes / soliton["read_bandwidth_bytes_per_s"] * 1e6
    for theirs in soliton.get("trees", []):
        if theirs["test"] != row["test"]:
            continue
        # Drafted rows are no cached tokens there.
        if theirs["unique_tokens"] not in (row["unique_tokens"], row["unique_tokens"] - row["rows"]):
            raise Unusable(f"{row['test']}: expected {row['unique_tokens']} tokens in the file of --soliton too, got "
                           f"{theirs['unique_tokens']}")
        row["soliton_us"] = (theirs["step_us_p50"] - theirs["without_cache_us_p50"]) / NUM_LAYERS


def best_of(row: dict[str, Any]) -> float | None:
    return min((row[f"{way}_us"] for way in WAYS if f"{way}_us" in row), default=None)


def markdown(rows: list[dict[str, Any]]) -> str:
    def cell(row: dict[str, Any], key: str) -> str:
        return f"{row[key]:.1f}" if key in row else "-"
    lines = ["| tree | rows | unique tokens | floor us | Soliton us | cascade us | flat us | BatchAttention us | best / Soliton |",
             "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in rows:
        best = best_of(row)
        ratio = f"{best / row['soliton_us']:.2f}" if best and "soliton_us" in row else "-"
        cells = [cell(row, key) for key in ("floor_us", "soliton_us", "cascade_us", "flat_us", "batch_attention_us")]
        lines.append(f"| {row['test']} | {row['rows']} | {row['unique_tokens']} | {' | '.join(cells)} | {ratio} |")
    return "\n".join(lines)


def bench(options: argparse.Namespace) -> None:
    trees = [parse_tree(name) for name in (ALL if options.trees == "all" else options.trees).split(",")]
    soliton = read_soliton(options.soliton) if options.soliton else None
    if not torch.cuda.is_available():
        raise Unusable("cuda: expected a device, got none")
    flashinfer = import_flashinfer()
    rows: list[dict[str, Any]] = [{"test": tree.name, "rows": tree.rows, "unique_tokens": tree.unique_tokens}
                                  for tree in trees]
    apart = Apart(measure)
    for way in options.ways:
        for tree, row in zip(trees, rows):
            result = apart.measure(way, tree, options.page_size, options.repeats)
            row[f"{way}_failed" if isinstance(result, str) else f"{way}_us"] = result
            if isinstance(result, str):
                print(f"{tree.name}: {way}: {result}", file=sys.stderr, flush=True)
    if soliton:
        for row in rows:
            add_soliton(row, soliton)
    print(f"flashinfer {flashinfer.__version__} on {device_name('cuda')}, torch {torch.__version__}, fp16, "
          f"{QUERY_HEADS}/{KV_HEADS} heads of {HEAD_DIM}, pages of {options.page_size}, one layer\n\n{markdown(rows)}")
    if options.json_file:
        document = {"command": " ".join(["baseline_tree.py", *sys.argv[1:]]), "program": "baseline_tree.py",
                    "flashinfer": flashinfer.__version__, "torch": torch.__version__, "device": device_name("cuda"),
                    "query_heads": QUERY_HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM, "page_size": options.page_size,
                    "repeats": options.repeats, "soliton": options.soliton.name if options.soliton else None, "trees": rows}
        options.json_file.write_text(json.dumps(document, indent=2) + "\n")


def way_list(text: str) -> list[str]:
    ways = text.split(",")
    for way in ways:
        if way not in WAYS:
            raise Unusable(f"--ways: expected some of {', '.join(WAYS)}, got {way}")
    return ways


def parse_options() -> argparse.Namespace:
    parser = Parser(prog="baseline_tree.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="?", help="a list, or all")
    parser.add_argument("--ways", metavar="LIST", type=way_list, default=list(WAYS), help="of FlashInfer (default all three)")
    parser.add_argument("--page-size", metavar="N", type=at_least(1), default=64, help="tokens of a page (default 64)")
    parser.add_argument("-r", "--repetitions", dest="repeats", metavar="N", type=at_least(1), default=50,
                        help="runs of each (default 50)")
    parser.add_argument("--soliton", metavar="FILE", type=pathlib.Path, help="JSON of soliton-bench --tree, for floor and ratio")
    parser.add_argument("--json-file", metavar="FILE", type=pathlib.Path, help="also writes JSON to this file")
    parser.add_argument("--self-check", action="store_true", help="checks page tables on the CPU")
    options = parser.parse_args()
    if options.self_check == (options.trees is not None):
        parser.error("expected trees or --self-check, one of the two")
    return options


def main() -> int:
    try:
        options = parse_options()
        if options.self_check:
            return 0 if self_check() else 1
        bench(options)
    except Unusable as error:
        print(f"baseline_tree.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
