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
import json
import pathlib
import random
import statistics
import sys
import tempfile
import time
from typing import Any

from baseline_facts import Facts, Unusable, read_facts
from baseline_peer import Row, check_options, make_parser, report

PROGRAM = "baseline_vllm.py"
SHORT_ANSWER = 32  # tokens
WARM_UPS = 5  # answers of each test that do not count: some of vLLM's code is compiled when it is first needed
SEED = 7


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
        return Row.of_tokens(depth, tokens, seconds)

    def read(self, prompt: int, repeats: int) -> Row:
        for _ in range(WARM_UPS):
            self.seconds(prompt, 1)
        seconds = statistics.median(self.seconds(prompt, 1) for _ in range(repeats))
        return Row.of_prompt(prompt, seconds)


def bench(options: argparse.Namespace) -> None:
    facts = read_facts(options.model)
    config_of(facts)
    longest = check_options(options, facts, further_tokens=SHORT_ANSWER, of_prompt=1)
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
    report(options, PROGRAM, rows, {"model": facts.name, "weights": "random", "format": "bf16",
                                    "device": torch.cuda.get_device_name(), "torch": torch.__version__,
                                    "vllm": vllm.__version__})


def main() -> int:
    try:
        bench(make_parser(PROGRAM, __doc__).parse_args())
    except (Unusable, OSError) as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":  # vLLM's engine is a process of its own, which imports this file
    sys.exit(main())
