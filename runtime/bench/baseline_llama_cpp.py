#!/usr/bin/env python3
"""A peer for soliton-bench: llama.cpp's own llama-bench with a Llama shape as a GGUF file of random weights, on one card.

    baseline_llama_cpp.py models/llama-3.1-8b.yaml --llama-bench build/bin/llama-bench -d 128,6144 -p 512,4096 --json-file peer.json
    baseline_llama_cpp.py models/llama-3.1-8b.yaml --llama-bench build/bin/llama-bench --type q4_0 --json-file peer.json

The file is written by the public package gguf; it has no vocabulary, since llama-bench feeds tokens' numbers. --type is that of
the layers' matrices; embedding and output are bf16, as the models that Soliton is measured with have them. All layers are on
the card, with flash attention, and prompts are read 2048 tokens at a time. A row has the median over llama-bench's repeats,
behind its own warm-up.

Exit status: 0 good, 2 unusable input, in one line.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

from baseline_facts import Facts, Unusable, read_facts
from baseline_peer import Row, check_options, make_parser, report

PROGRAM = "baseline_llama_cpp.py"
SEED = 7
LIMIT_S = 600  # of one call of llama-bench
BATCH = 2048  # tokens of a prompt at once, which llama-bench would take 512 of
BLOCK = 32  # values of a block of Q4_0 or Q8_0, behind its scale in f16
BLOCK_BYTES = {"q4_0": BLOCK // 2, "q8_0": BLOCK}


def check(facts: Facts) -> None:
    if facts.quantization or facts.head_norm or facts.qkv_bias or facts.rope.kind not in ("default", "llama3"):
        raise Unusable(f"{facts.name}: expected a Llama in bf16 with rope of kind default or llama3, got another model")


def matrices_of_layer(facts: Facts) -> dict[str, tuple[int, int]]:
    """Rows and columns."""
    queries, keys = facts.num_heads * facts.head_dim, facts.num_kv_heads * facts.head_dim
    return {"attn_q": (queries, facts.hidden), "attn_k": (keys, facts.hidden), "attn_v": (keys, facts.hidden),
            "attn_output": (facts.hidden, queries), "ffn_gate": (facts.ffn, facts.hidden),
            "ffn_up": (facts.ffn, facts.hidden), "ffn_down": (facts.hidden, facts.ffn)}


class Values:
    """Random weights, of a spread of about 1 / sqrt(columns); all matrices of a shape have the same."""

    def __init__(self) -> None:
        import gguf
        import numpy
        self.gguf, self.numpy = gguf, numpy
        self.random = numpy.random.default_rng(SEED)
        self.made: dict[tuple[str, int, int], Any] = {}

    def bytes_of(self, kind: str, rows: int, columns: int) -> Any:
        """As the file has them: uint8 [rows][bytes of a row]."""
        if (kind, rows, columns) not in self.made:
            self.made[kind, rows, columns] = self.make(kind, rows, columns)
        return self.made[kind, rows, columns]

    def make(self, kind: str, rows: int, columns: int) -> Any:
        numpy = self.numpy
        if kind == "bf16":  # sign, an exponent of some, any fraction
            words = self.random.integers(0, 1 << 16, (rows, columns), numpy.uint16)
            exponent = 124 - (columns.bit_length() - 1) // 2
            return ((words & 0x81ff) + (exponent << 7)).astype(numpy.uint16).view(numpy.uint8)
        blocks = self.random.integers(0, 256, (rows, columns // BLOCK, 2 + BLOCK_BYTES[kind]), numpy.uint8)
        spread = 4.6 if kind == "q4_0" else 74  # of the block's integers
        scale = numpy.array([1 / (spread * columns**0.5)], numpy.float16)
        blocks[:, :, :2] = scale.view(numpy.uint8)
        return blocks.reshape(rows, -1)

    def type_of(self, kind: str) -> Any:
        return self.gguf.GGMLQuantizationType[kind.upper()]


def write_model(facts: Facts, kind: str, path: pathlib.Path) -> None:
    values = Values()
    numpy = values.numpy
    writer = values.gguf.GGUFWriter(path, "llama", use_temp_file=False)
    writer.add_name(facts.name)
    writer.add_context_length(facts.max_context)
    writer.add_embedding_length(facts.hidden)
    writer.add_block_count(facts.num_layers)
    writer.add_feed_forward_length(facts.ffn)
    writer.add_head_count(facts.num_heads)
    writer.add_head_count_kv(facts.num_kv_heads)
    writer.add_key_length(facts.head_dim)
    writer.add_value_length(facts.head_dim)
    writer.add_rope_dimension_count(facts.head_dim)
    writer.add_rope_freq_base(facts.rope.theta)
    writer.add_layer_norm_rms_eps(facts.norm_epsilon)
    writer.add_vocab_size(facts.vocabulary)
    writer.add_tokenizer_model("none")

    def add(name: str, of: str, rows: int, columns: int) -> None:
        writer.add_tensor(name, values.bytes_of(of, rows, columns), raw_dtype=values.type_of(of))

    def add_norm(name: str) -> None:
        writer.add_tensor(name, numpy.ones(facts.hidden, numpy.float32))

    if facts.rope.kind == "llama3":
        writer.add_tensor("rope_freqs.weight", numpy.ones(facts.head_dim // 2, numpy.float32))
    add("token_embd.weight", "bf16", facts.vocabulary, facts.hidden)
    if not facts.tied_lm_head:
        add("output.weight", "bf16", facts.vocabulary, facts.hidden)
    add_norm("output_norm.weight")
    for layer in range(facts.num_layers):
        add_norm(f"blk.{layer}.attn_norm.weight")
        add_norm(f"blk.{layer}.ffn_norm.weight")
        for name, (rows, columns) in matrices_of_layer(facts).items():
            add(f"blk.{layer}.{name}.weight", kind, rows, columns)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run(options: argparse.Namespace, model: pathlib.Path, *arguments: str) -> dict[str, Any]:
    """The one test of a call."""
    command = [str(options.llama_bench.absolute()), "-m", str(model), "-ngl", "99", "-fa", "1", "-r", str(options.repeats),
               "-o", "json", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        tests = json.loads(done.stdout) if done.returncode == 0 else []
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError) as error:
        raise Unusable(f"{options.llama_bench}: {str(error)[:200]}") from error
    if len(tests) != 1:
        last = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise Unusable(f"{options.llama_bench}: expected a test as JSON, got exit status {done.returncode}: {last[:200]}")
    return tests[0]


def seconds_of(test: dict[str, Any]) -> float:
    return statistics.median(test["samples_ns"]) * 1e-9


def parse_options() -> argparse.Namespace:
    parser = make_parser(PROGRAM, __doc__)
    parser.add_argument("--llama-bench", metavar="FILE", type=pathlib.Path, required=True,
                        help="llama.cpp's program, built with CUDA")
    parser.add_argument("--type", choices=["bf16", *BLOCK_BYTES], default="bf16", help="of layers (default bf16)")
    return parser.parse_args()


def measure(options: argparse.Namespace, model: pathlib.Path) -> tuple[list[Row], dict[str, Any]]:
    """The rows, and what llama-bench says of itself."""
    rows = []
    for depth in options.depths:
        test = run(options, model, "-p", "0", "-n", str(options.tokens), "-d", str(depth))
        rows.append(Row.of_tokens(depth, options.tokens, seconds_of(test) / options.tokens))
    for prompt in options.prompts:
        test = run(options, model, "-n", "0", "-p", str(prompt), "-ub", str(BATCH), "-b", str(BATCH))
        rows.append(Row.of_prompt(prompt, seconds_of(test)))
    return rows, test


def bench(options: argparse.Namespace) -> None:
    facts = read_facts(options.model)
    check(facts)
    check_options(options, facts, further_tokens=0, of_prompt=0)
    if not options.llama_bench.is_file():
        raise Unusable(f"--llama-bench {options.llama_bench}: expected a program, found none")
    try:
        import gguf  # noqa: F401
        import numpy  # noqa: F401
    except ImportError as error:
        raise Unusable(f"expected gguf and numpy, got: {error}") from error
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / f"{facts.name}-{options.type}.gguf"
        write_model(facts, options.type, model)
        rows, test = measure(options, model)
    if "CUDA" not in test["backends"]:
        raise Unusable(f"{options.llama_bench}: expected the backend CUDA, got {test['backends']}")
    report(options, PROGRAM, rows, {"model": facts.name, "weights": "random", "format": options.type,
                                    "device": test["gpu_info"], "build": test["build_commit"],
                                    "model_bytes": test["model_size"]})


def main() -> int:
    try:
        bench(parse_options())
    except (Unusable, OSError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
