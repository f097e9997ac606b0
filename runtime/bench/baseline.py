#!/usr/bin/env python3
"""A peer for soliton-bench: compiled PyTorch decoding of a Llama or Qwen shape at batch 1, with random weights.

    baseline.py models/llama-3.1-8b.yaml -d 128,1024,6144 -n 128 -r 5 --json-file peer.json
    baseline.py models/llama-3.1-8b.yaml --int4 -d 6144    with 4-bit weights in groups of 128
    baseline.py --self-check    on the CPU, in float32: the same logits and greedy tokens as transformers?

Each step is one call of torch.compile's code, with CUDA graphs in both compiled modes. Token, position and
cache stay on the device, so that nothing waits for the host between tokens. A row's time per token is that
of its n tokens between two CUDA events, over n; the median over the repeats. The cache is as long as the row
needs, rounded up to 128, and filled with random keys and values.

--attention picks how a token attends, since PyTorch has no single best way: sdpa is
scaled_dot_product_attention with enable_gqa, grouped is two batched products around a softmax, flex is
flex_attention, which splits the context over the GPU, repeated gives each query head its own copy of the
keys and values and leaves the rest to Inductor, as gpt-fast does.

--int4 multiplies with PyTorch's own weight-only kernels, as gpt-fast does: integers of 4 bits, a bf16 scale
and zero for each group of a row, activations in bf16. The lm_head stays in bf16 unless --int4-lm-head. A shape
whose yaml has the key quantization is decoded so without the flag, in its groups.

Exit status: 0 good, 1 the self-check failed, 2 unusable input, in one line.
"""

import argparse
import dataclasses
import json
import pathlib
import platform
import statistics
import sys
import time
from typing import Callable, NoReturn

import torch
from torch import Tensor

from baseline_check import check_int4, format_name, self_check
from baseline_facts import Facts, Unusable, read_facts
from baseline_model import ATTENTION, CACHE_MULTIPLE, SEED, Decoder, Int4, compiled_step

COMPILE_STEPS = 3  # compile and run, record the CUDA graph, replay it
INT4_GROUPS = (32, 64, 128, 256)  # of columns, that PyTorch's kernels take
INT4_GROUP = 128


@dataclasses.dataclass
class Row:
    test: str
    tokens_per_s: float
    token_us_p50: float
    token_bytes: int
    bytes_per_s: float


def time_tokens(model: Decoder, step: Callable[[], Tensor], depth: int, count: int) -> float:
    """Microseconds per token."""
    model.set_state(0, depth)
    step()  # gives the host a lead, so that the first measured step does not wait for its launch
    model.set_state(0, depth)
    if not model.token.is_cuda:
        begin = time.perf_counter()
        for _ in range(count):
            step()
        return (time.perf_counter() - begin) * 1e6 / count
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        torch.compiler.cudagraph_mark_step_begin()
        step()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / count


def measure(model: Decoder, mode: str, depth: int, count: int, repeats: int) -> Row:
    torch.compiler.reset()  # each depth has a cache of its own size, so code of its own
    model.drop_cache()
    model.make_cache(-(-(depth + count) // CACHE_MULTIPLE) * CACHE_MULTIPLE)
    step = compiled_step(model, mode)
    for _ in range(COMPILE_STEPS):
        model.set_state(0, depth)
        step()
    time_tokens(model, step, depth, count)  # warms up
    us = statistics.median(time_tokens(model, step, depth, count) for _ in range(repeats))
    token_bytes = model.matrix_bytes() + model.kv_bytes(depth + count // 2)
    return Row(test=f"tg{count} @ d{depth}" if depth else f"tg{count}", tokens_per_s=1e6 / us,
               token_us_p50=us, token_bytes=token_bytes, bytes_per_s=token_bytes / us * 1e6)


def device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else platform.processor() or platform.machine()


def markdown(row: Row) -> str:
    return (f"| {row.test} | {row.tokens_per_s:.2f} | {row.token_us_p50:.1f} | {row.token_bytes * 1e-9:.3f} "
            f"| {row.bytes_per_s * 1e-12:.3f} |")


def int4_of(options: argparse.Namespace, facts: Facts) -> Int4 | None:
    """What the command line asks for; what it leaves open the shape may say."""
    stated = facts.quantization
    if not (options.int4 or options.int4_lm_head or stated):
        if options.group:
            raise Unusable("--group: expected --int4 with it, got none")
        return None
    group = options.group or (stated.group if stated else INT4_GROUP)
    if group not in INT4_GROUPS:
        raise Unusable(f"--group: expected one of {', '.join(map(str, INT4_GROUPS))}, which PyTorch's kernels "
                       f"take, got {group}")
    return Int4(group, options.int4_lm_head or bool(stated and stated.lm_head))


def bench(options: argparse.Namespace) -> None:
    facts = read_facts(options.model)
    int4 = int4_of(options, facts)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise Unusable("--device: expected a CUDA device for cuda, got none")
    needed = max(options.depths) + options.tokens
    if needed > facts.max_context:
        raise Unusable(f"--n-depth and --n-gen: expected at most the model's {facts.max_context} tokens, "
                       f"got {needed}")
    if options.json_file and not options.json_file.absolute().parent.is_dir():
        raise Unusable(f"{options.json_file}: expected a file in a folder that exists")
    torch.manual_seed(SEED)
    torch.set_default_dtype(torch.bfloat16)
    if int4:
        check_int4(options.device, int4.group)
    with torch.device(options.device):
        model = Decoder(facts, options.attention, int4)
        model.randomise()
    print(f"{facts.name} on {device_name(options.device)}, {format_name(int4)}, torch {torch.__version__}, "
          f"{options.mode}, {options.attention}\n\n| test | t/s | us a token | GB a token | TB/s |\n"
          "| --- | --- | --- | --- | --- |", flush=True)
    rows = []
    for depth in options.depths:
        rows.append(measure(model, options.mode, depth, options.tokens, options.repeats))
        print(markdown(rows[-1]), flush=True)
    if options.json_file:
        document = {"command": " ".join(["baseline.py", *sys.argv[1:]]), "program": "baseline.py",
                    "model": facts.name, "weights": "random", "format": format_name(int4),
                    "device": device_name(options.device), "torch": torch.__version__, "mode": options.mode,
                    "attention": options.attention, "repeats": options.repeats,
                    "rows": [dataclasses.asdict(row) for row in rows]}
        try:
            options.json_file.write_text(json.dumps(document, indent=2) + "\n")
        except OSError as error:
            raise Unusable(f"{options.json_file}: expected a file that can be written, "
                           f"got: {error.strerror}") from error


# ---- The command line.

class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Unusable(message)


def at_least(minimum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isdecimal() or int(text) < minimum:
            raise argparse.ArgumentTypeError(f"expected a number of at least {minimum}, got {text!r}")
        return int(text)
    return parse


def depth_list(text: str) -> list[int]:
    return [at_least(0)(part) for part in text.split(",")]


def add_test_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", type=pathlib.Path,
                        help="a shape, such as models/llama-3.1-8b.yaml")
    parser.add_argument("-d", "--n-depth", dest="depths", metavar="LIST", type=depth_list, default=[0],
                        help="tokens in the cache before, a list (default 0)")
    parser.add_argument("-n", "--n-gen", dest="tokens", metavar="N", type=at_least(1), default=128,
                        help="tokens to generate (default 128)")
    parser.add_argument("-r", "--repetitions", dest="repeats", metavar="N", type=at_least(1), default=5,
                        help="repeats of each test (default 5)")
    parser.add_argument("--attention", choices=list(ATTENTION), default="sdpa")
    parser.add_argument("--json-file", metavar="FILE", type=pathlib.Path,
                        help="also writes JSON to this file")


def parse_options() -> argparse.Namespace:
    parser = Parser(prog="baseline.py", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    add_test_flags(parser)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--mode", choices=["eager", "reduce-overhead", "max-autotune"],
                        help="default reduce-overhead; eager on the CPU and for --self-check")
    parser.add_argument("--int4", action="store_true", help="4-bit weights in the layers")
    parser.add_argument("--int4-lm-head", action="store_true",
                        help="4-bit weights in the layers and the lm_head")
    parser.add_argument("--group", metavar="N", type=at_least(1),
                        help=f"columns that share a scale: {', '.join(map(str, INT4_GROUPS))} (default "
                             f"{INT4_GROUP}, or the shape's)")
    parser.add_argument("--self-check", action="store_true",
                        help="compares tiny models with transformers, on the CPU")
    options = parser.parse_args()
    if options.self_check == (options.model is not None):
        parser.error("expected a model's yaml file or --self-check, one of the two")
    if options.mode is None:
        on_gpu = options.device == "cuda" and not options.self_check
        options.mode = "reduce-overhead" if on_gpu else "eager"
    return options


def main() -> int:
    try:
        options = parse_options()
        with torch.no_grad():
            if options.self_check:
                torch.set_float32_matmul_precision("highest")
                return 0 if self_check(options.mode) else 1
            torch.set_float32_matmul_precision("high")
            torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)  # or sdpa may widen the cache
            bench(options)
    except Unusable as error:
        print(f"baseline.py: {error}", file=sys.stderr)
        return 2
    except torch.OutOfMemoryError as error:
        print(f"baseline.py: expected the model to fit the device, got: {str(error).splitlines()[0]}",
              file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
