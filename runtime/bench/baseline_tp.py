#!/usr/bin/env python3
"""A peer for soliton-bench --cards: compiled PyTorch decoding with tensor parallelism over NCCL, random weights.

    baseline_tp.py models/llama-3.1-8b.yaml --cards 2 -d 128 -n 128 -r 5 --json-file peer.json
    baseline_tp.py --self-check    on the CPU, in float32, over gloo: the logits and tokens of one process?

It is baseline.py's decoder, split as is usual: each card has its share of the heads, of the FFN's columns and of the
vocabulary; what o and down give is added up over the cards, and of the best tokens of all cards the best one is taken.
Each card is a process. torch.compile makes the code of a layer, which all layers share, and of what comes behind them;
a CUDA graph holds a whole step, collectives too.
A row's time per token is that of n tokens between two CUDA events on the slowest card, over n; the median over the
repeats. Bytes are those of one card, which has as many as any.

Exit status: 0 good, 1 the self-check failed, 2 unusable input, in one line.
"""

import argparse
import dataclasses
import json
import os
import statistics
import sys
from typing import Callable

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as collectives
import torch.multiprocessing as processes
from torch import Tensor

from baseline import (COMPILE_STEPS, Parser, Row, add_test_flags, at_least, device_name, markdown, time_tokens)
from baseline_facts import Facts, Rope, Unusable, read_facts
from baseline_model import CACHE_MULTIPLE, SEED, Decoder, Matrix, rms_norm

PORT = 29541
CHECK_CARDS = 2
CHECK_TOKENS = 12
CHECK_TOLERANCE = 1e-4  # of the largest logit: sums are made in another order


class SummedMatrix(Matrix):
    """Whose columns are split: what each card has is added up over all."""

    def forward(self, x: Tensor) -> Tensor:
        return collectives.all_reduce(super().forward(x), "sum", dist.group.WORLD)


def share_of(facts: Facts, cards: int) -> Facts:
    for name in ("num_kv_heads", "ffn", "vocabulary"):
        if getattr(facts, name) % cards:
            raise Unusable(f"--cards: expected a divisor of {name} = {getattr(facts, name)}, got {cards}")
    if facts.quantization or facts.qkv_bias or facts.head_norm:
        raise Unusable(f"{facts.name}: expected a shape in bf16 without biases and normed heads")
    return dataclasses.replace(facts, num_heads=facts.num_heads // cards,
                               num_kv_heads=facts.num_kv_heads // cards, ffn=facts.ffn // cards)


class ShardedDecoder(Decoder):
    """One card's share; token, position, norms and embedding are on every card."""

    def __init__(self, facts: Facts, attention: str, card: int, cards: int) -> None:
        super().__init__(share_of(facts, cards), attention)
        self.card, self.rows = card, facts.vocabulary // cards
        for layer in self.layers:
            layer.o = SummedMatrix(facts.hidden, layer.o.weight.shape[1])
            layer.down = SummedMatrix(facts.hidden, layer.down.weight.shape[1])
        self.lm_head = Matrix(self.rows, facts.hidden)

    def step(self) -> Tensor:
        """Feeds `token` at `position`, and sets both to the next. Returns this card's logits [1][rows]."""
        cosine, sine = self.cosines[self.position], self.sines[self.position]
        x = torch.nn.functional.embedding(self.token, self.embedding.weight)
        for layer in self.layers:
            x = layer(x, self.position, cosine, sine)
        return self.choose(x)

    def choose(self, x: Tensor) -> Tensor:
        logits = self.lm_head(rms_norm(x, self.norm, self.facts.norm_epsilon))
        best, index = logits.float().max(-1)
        # Token numbers are exact in double.
        mine = torch.stack([best.double(), (index + self.card * self.rows).double()], dim=-1)
        all_cards = collectives.all_gather_tensor(mine, 0, dist.group.WORLD)
        self.token.copy_(all_cards[:, 1].index_select(0, all_cards[:, 0].argmax().view(1)).long())
        self.position.add_(1)
        return logits


def take_share(sharded: ShardedDecoder, whole: Decoder, cards: int) -> None:
    """A card's slices of the whole model's matrices."""
    card = sharded.card

    def rows(weight: Tensor) -> Tensor:
        return weight.chunk(cards, 0)[card]

    sharded.embedding.weight.copy_(whole.embedding.weight)
    sharded.lm_head.weight.copy_(rows(whole.lm_head.weight))
    for mine, theirs in zip(sharded.layers, whole.layers):
        facts = theirs.facts
        q, k, v = theirs.qkv.weight.split([facts.q_rows, facts.kv_rows, facts.kv_rows])
        mine.qkv.weight.copy_(torch.cat([rows(q), rows(k), rows(v)]))
        mine.gate_up.weight.copy_(torch.cat([rows(part) for part in theirs.gate_up.weight.chunk(2, 0)]))
        for name in ("o", "down"):
            getattr(mine, name).weight.copy_(getattr(theirs, name).weight.chunk(cards, 1)[card])


def join(card: int, cards: int, backend: str) -> None:
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(PORT)
    dist.init_process_group(backend, rank=card, world_size=cards)


def slowest(us: float, device: str) -> float:
    time = torch.tensor([us], dtype=torch.float64, device=device)
    dist.all_reduce(time, dist.ReduceOp.MAX)
    return time.item()


def compiled_step(model: ShardedDecoder, mode: str, depth: int) -> Callable[[], object]:
    if mode == "eager":
        return model.step
    # Lets matrix-vector products become fused reductions, which read faster than cuBLAS.
    torch._inductor.config.coordinate_descent_tuning = True
    torch._dynamo.config.recompile_limit = len(model.layers) + 1
    for layer in model.layers:
        layer.compile(fullgraph=True, dynamic=False)
    model.choose = torch.compile(type(model).choose.__get__(model), fullgraph=True, dynamic=False)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(COMPILE_STEPS):
            model.set_state(0, depth)
            model.step()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    dist.barrier()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        model.step()
    return graph.replay


def measure(model: ShardedDecoder, options: argparse.Namespace, depth: int) -> Row:
    torch.compiler.reset()
    model.drop_cache()
    model.make_cache(-(-(depth + options.tokens) // CACHE_MULTIPLE) * CACHE_MULTIPLE)
    step = compiled_step(model, options.mode, depth)
    for _ in range(COMPILE_STEPS):
        model.set_state(0, depth)
        step()
    times = []
    for repeat in range(options.repeats + 1):  # the first one warms up
        dist.barrier()
        times.append(slowest(time_tokens(model, step, depth, options.tokens), "cuda"))
    us = statistics.median(times[1:])
    token_bytes = model.matrix_bytes() + model.kv_bytes(depth + options.tokens // 2)
    name = f"tg{options.tokens} @ d{depth}" if depth else f"tg{options.tokens}"
    return Row(test=name, tokens_per_s=1e6 / us, token_us_p50=us, token_bytes=token_bytes,
               bytes_per_s=token_bytes / us * 1e6)


def bench_card(card: int, options: argparse.Namespace, facts: Facts) -> None:
    torch.cuda.set_device(card)
    torch.set_grad_enabled(False)
    torch.set_float32_matmul_precision("high")
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    join(card, options.cards, "nccl")
    torch.manual_seed(SEED + card)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = ShardedDecoder(facts, options.attention, card, options.cards)
        model.randomise()
    say = print if card == 0 else lambda *_, **__: None
    say(f"{facts.name} on {options.cards} x {device_name('cuda')}, bf16, torch {torch.__version__}, {options.mode}, "
        f"{options.attention}, NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}\n\n"
        "| test | t/s | us a token | GB a token and card | TB/s of a card |\n| --- | --- | --- | --- | --- |", flush=True)
    rows = []
    for depth in options.depths:
        rows.append(measure(model, options, depth))
        say(markdown(rows[-1]), flush=True)
    if options.json_file and card == 0:
        document = {"command": " ".join(["baseline_tp.py", *sys.argv[1:]]), "program": "baseline_tp.py",
                    "model": facts.name, "weights": "random", "format": "bf16", "cards": options.cards,
                    "device": device_name("cuda"), "torch": torch.__version__, "mode": options.mode,
                    "attention": options.attention, "repeats": options.repeats,
                    "rows": [dataclasses.asdict(row) for row in rows]}
        options.json_file.write_text(json.dumps(document, indent=2) + "\n")
    dist.destroy_process_group()


def bench(options: argparse.Namespace) -> None:
    facts = read_facts(options.model)
    share_of(facts, options.cards)
    if torch.cuda.device_count() < options.cards:
        raise Unusable(f"--cards: expected {options.cards} CUDA devices, got {torch.cuda.device_count()}")
    needed = max(options.depths) + options.tokens
    if needed > facts.max_context:
        raise Unusable(f"--n-depth and --n-gen: expected at most the model's {facts.max_context} tokens, got {needed}")
    processes.spawn(bench_card, args=(options, facts), nprocs=options.cards)


# ---- The check on the CPU.

def small_facts() -> Facts:
    return Facts(name="small", hidden=64, ffn=96, num_layers=2, num_heads=4, num_kv_heads=2, head_dim=16, vocabulary=50,
                 tied_lm_head=False, max_context=64, norm_epsilon=1e-5, rope=Rope(kind="default", theta=10000.0))


def decode(model: Decoder, count: int) -> tuple[list[Tensor], list[int]]:
    """Logits and tokens, behind token 0 in an empty cache."""
    model.make_cache(CACHE_MULTIPLE)
    model.set_state(0, 0)
    logits, tokens = [], []
    for _ in range(count):
        logits.append(model.step().clone())
        tokens.append(int(model.token))
    return logits, tokens


def check_card(card: int, cards: int) -> None:
    torch.set_grad_enabled(False)
    torch.set_float32_matmul_precision("highest")
    join(card, cards, "gloo")
    facts = small_facts()
    torch.manual_seed(SEED)
    whole = Decoder(facts, "grouped")
    whole.randomise()
    sharded = ShardedDecoder(facts, "grouped", card, cards)
    take_share(sharded, whole, cards)
    expected, expected_tokens = decode(whole, CHECK_TOKENS)
    logits, tokens = decode(sharded, CHECK_TOKENS)
    worst = max(float((mine - all_of_them.chunk(cards, -1)[card]).abs().max() / all_of_them.abs().max())
                for mine, all_of_them in zip(logits, expected))
    good = tokens == expected_tokens and worst < CHECK_TOLERANCE
    print(f"card {card} of {cards}: {'the same tokens' if tokens == expected_tokens else 'OTHER TOKENS'}, logits differ "
          f"by {worst:.1e} of the largest at most", flush=True)
    dist.destroy_process_group()
    if not good:
        raise SystemExit(1)


def self_check() -> int:
    try:
        processes.spawn(check_card, args=(CHECK_CARDS,), nprocs=CHECK_CARDS)
    except processes.ProcessExitedException:
        return 1
    return 0


def parse_options() -> argparse.Namespace:
    parser = Parser(prog="baseline_tp.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_test_flags(parser)
    parser.add_argument("--cards", metavar="N", type=at_least(2), default=2, help="CUDA devices 0 to N - 1 (default 2)")
    parser.add_argument("--mode", choices=["eager", "compiled"], default="compiled")
    parser.add_argument("--self-check", action="store_true", help="compares two processes with one, on the CPU")
    options = parser.parse_args()
    if options.self_check == (options.model is not None):
        parser.error("expected a model's yaml file or --self-check, one of the two")
    return options


def main() -> int:
    try:
        options = parse_options()
        if options.self_check:
            return self_check()
        bench(options)
    except Unusable as error:
        print(f"baseline_tp.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
