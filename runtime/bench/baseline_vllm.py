#!/usr/bin/env python3
"""A peer for soliton-bench: vLLM's offline engine with a Llama or Qwen shape in bf16, one request at a time, with random weights.

    baseline_vllm.py models/llama-3.1-8b.yaml -d 128,6144 -p 512,4096,32768 --json-file peer.json

The engine has its defaults (CUDA graphs, asynchronous scheduling, chunks of its own choice for prompts), but finds no prompt in
its prefix cache: prompts are random and the cache is off.

A row of decoding is the time of a long answer behind a prompt less that of a short one behind another of as many tokens, over the
tokens by which they differ; a row of a prompt is its tokens over the time to the first token of its answer. Both are what
the caller of the engine waits for, and medians over the repeats.

Exit status: 0 good, 2 unusable input, in one line.
"""

import argparse
import dataclasses
import json
import pathlib
import random
import statistics
import sys
import tempfile
import time
from typing import Any

from baseline_facts import Facts, Unusable, read_facts

SHORT_ANSWER = 32  # tokens
WARM_UPS = 5  # answers of each test that do not count: some of vLLM's code is compiled when it is first needed
SEED = 7


@dataclasses.dataclass
class Row:
    test: str
    tokens_per_s: float
    token_us_p50: float | None = None
    first_token_ms_p50: float | None = None


def config_of(facts: Facts) -> dict[str, Any]:
    """config.json, as a checkpoint of this shape has it."""
    if facts.quantization or facts.rope.kind not in ("default", "llama3"):
        raise Unusable(f"{facts.name}: expected bf16 weights and rope of kind default or llama3, got others")
    rope: dict[str, Any] = {"rope_type": facts.rope.kind, "rope_theta": facts.rope.theta}
    if facts.rope.kind == "llama3":
        rope |= {"factor": facts.rope.factor, "low_freq_factor": facts.rope.low_freq_factor,
                 "high_freq_factor": facts.rope.high_freq_factor,
                 "original_max_position_embeddings": facts.rope.original_context}
    architecture, kind = (("Qwen3ForCausalLM", "qwen3") if facts.head_norm else
                          ("Qwen2ForCausalLM", "qwen2") if facts.qkv_bias else ("LlamaForCausalLM", "llama"))
    return {"architectures": [architecture], "model_type": kind, "hidden_size": facts.hidden,
            "intermediate_size": facts.ffn, "num_hidden_layers": facts.num_layers,
            "num_attention_heads": facts.num_heads, "num_key_value_heads": facts.num_kv_heads,
            "head_dim": facts.head_dim, "vocab_size": facts.vocabulary, "hidden_act": "silu",
            "max_position_embeddings": facts.max_context, "rms_norm_eps": facts.norm_epsilon,
            "tie_word_embeddings": facts.tied_lm_head, "rope_parameters": rope, "dtype": "bfloat16"}


class Engine:
    def __init__(self, facts: Facts, context: int):
        from vllm import LLM
        self.vocabulary = facts.vocabulary
        self.random = random.Random(SEED)
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "config.json").write_text(json.dumps(config_of(facts)))
            self.llm = LLM(model=folder, load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16",
                           max_model_len=context, enable_prefix_caching=False, seed=SEED)

    def seconds(self, prompt: int, tokens: int) -> float:
        """Of a whole answer."""
        from vllm import SamplingParams
        ids = self.random.choices(range(self.vocabulary), k=prompt)
        sampling = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True, detokenize=False)
        begin = time.perf_counter()
        answer = self.llm.generate([{"prompt_token_ids": ids}], sampling, use_tqdm=False)[0]
        seconds = time.perf_counter() - begin
        if len(answer.outputs[0].token_ids) != tokens:
            raise Unusable(f"vllm: expected {tokens} tokens, got {len(answer.outputs[0].token_ids)}")
        return seconds

    def decode(self, depth: int, tokens: int, repeats: int) -> Row:
        def token_seconds() -> float:
            longer = self.seconds(depth, SHORT_ANSWER + tokens)
            return (longer - self.seconds(depth, SHORT_ANSWER)) / tokens
        for _ in range(WARM_UPS):
            self.seconds(depth, SHORT_ANSWER)
        token_seconds()
        seconds = statistics.median(token_seconds() for _ in range(repeats))
        return Row(f"tg{tokens} @ d{depth}", 1 / seconds, token_us_p50=seconds * 1e6)

    def read(self, prompt: int, repeats: int) -> Row:
        for _ in range(WARM_UPS):
            self.seconds(prompt, 1)
        seconds = statistics.median(self.seconds(prompt, 1) for _ in range(repeats))
        return Row(f"pp{prompt}", prompt / seconds, first_token_ms_p50=seconds * 1e3)


def numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"expected positive numbers, got {text!r}")
    return [int(part) for part in parts]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="baseline_vllm.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="a shape, such as models/llama-3.1-8b.yaml")
    parser.add_argument("-d", "--n-depth", dest="depths", metavar="LIST", type=numbers, default=[128],
                        help="tokens in the cache before, a list (default 128)")
    parser.add_argument("-n", "--n-gen", dest="tokens", metavar="N", type=int, default=128,
                        help="tokens of a longer answer that are timed (default 128)")
    parser.add_argument("-p", "--n-prompt", dest="prompts", metavar="LIST", type=numbers, default=[],
                        help="tokens of the prompts that are read, a list")
    parser.add_argument("-r", "--repetitions", dest="repeats", metavar="N", type=int, default=5,
                        help="repeats of each test (default 5)")
    parser.add_argument("--json-file", metavar="FILE", type=pathlib.Path, help="also writes JSON to this file")
    return parser.parse_args()


def bench(options: argparse.Namespace) -> None:
    facts = read_facts(options.model)
    config_of(facts)
    longest = max([depth + SHORT_ANSWER + options.tokens for depth in options.depths] +
                  [prompt + 1 for prompt in options.prompts])
    if longest > facts.max_context:
        raise Unusable(f"expected at most the model's {facts.max_context} tokens, got {longest}")
    if options.tokens < 1 or options.repeats < 1:
        raise Unusable("--n-gen and --repetitions: expected 1 or more, got less")
    if options.json_file and not options.json_file.absolute().parent.is_dir():
        raise Unusable(f"{options.json_file}: expected a file in a folder that exists")
    try:
        import torch
        import vllm
    except ImportError as error:
        raise Unusable(f"expected vllm and torch, got: {error}") from error
    if torch.cuda.device_count() == 0:
        raise Unusable("expected a CUDA device, got none")
    engine = Engine(facts, longest)
    rows = [engine.decode(depth, options.tokens, options.repeats) for depth in options.depths]
    rows += [engine.read(prompt, options.repeats) for prompt in options.prompts]
    print("| test | t/s | us a token | ms to the first token |\n| --- | --- | --- | --- |")
    for row in rows:
        us, ms = ("-" if value is None else f"{value:.1f}" for value in (row.token_us_p50, row.first_token_ms_p50))
        print(f"| {row.test} | {row.tokens_per_s:.2f} | {us} | {ms} |")
    if options.json_file:
        document = {"command": " ".join(["baseline_vllm.py", *sys.argv[1:]]), "program": "baseline_vllm.py",
                    "model": facts.name, "weights": "random", "format": "bf16",
                    "device": torch.cuda.get_device_name(), "torch": torch.__version__,
                    "vllm": vllm.__version__, "repeats": options.repeats,
                    "rows": [dataclasses.asdict(row) for row in rows]}
        options.json_file.write_text(json.dumps(document, indent=2) + "\n")


def main() -> int:
    try:
        bench(parse_options())
    except (Unusable, OSError) as error:
        print(f"baseline_vllm.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":  # vLLM's engine is a process of its own, which imports this file
    sys.exit(main())
