#!/usr/bin/env python3
"""Makes ropes.json, to which tests/runtime/rotary_test.cc holds the rotary table: what transformers computes for
every kind of RoPE that config.json may state.

    make_ropes.py

Of each case: the members of config.json, and cosine and sine of every pair of a head's dims at POSITIONS, in float32.
"""

import json
import pathlib

import torch
import transformers
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

GOLDENS = pathlib.Path(__file__).resolve().parent
POSITIONS = [0, 1, 77, 4095, 40000]

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
LONGROPE = {"rope_type": "longrope", "original_max_position_embeddings": 4096,
            "short_factor": [1.0 + 0.125 * pair for pair in range(32)],
            "long_factor": [1.0 + 1.5 * pair for pair in range(32)]}
CASES = {
    "default": (64, 131072, {"rope_type": "default"}),
    "llama3": (64, 131072, {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                            "original_max_position_embeddings": 8192}),
    "linear": (64, 16384, {"rope_type": "linear", "factor": 3.0}),
    "yarn": (128, 32768, YARN),
    "yarn, whole context": (128, 131072, YARN),
    "yarn, betas": (64, 131072, YARN | {"beta_fast": 16.0, "beta_slow": 2.5}),
    "yarn, not truncated": (64, 131072, YARN | {"truncate": False}),
    "yarn, attention factor": (64, 131072, YARN | {"attention_factor": 1.25}),
    "yarn, mscale": (64, 131072, YARN | {"mscale": 1.0, "mscale_all_dim": 0.5}),
    "yarn, one mscale": (64, 131072, YARN | {"mscale": 0.707}),
    "yarn, original context not stated": (64, 8192, {"rope_type": "yarn", "factor": 8.0}),
    "yarn, factor not stated": (64, 131072, {key: YARN[key] for key in YARN if key != "factor"} | {"factor": None}),
    "dynamic, up to its context": (64, 131072, {"rope_type": "dynamic", "factor": 4.0}),
    "longrope": (64, 131072, LONGROPE),
    "longrope, attention factor": (64, 131072, LONGROPE | {"attention_factor": 1.5}),
    "longrope, up to its original context": (64, 65536, LONGROPE | {"original_max_position_embeddings": 65536}),
}
THETA = 1e6


def rounded(tensor):
    """Eight significant digits: half a unit is below a float32 ulp."""
    return [float(f"{value:.8g}") for value in tensor.tolist()]


def case(name, head_dim, max_position_embeddings, scaling):
    config = transformers.LlamaConfig(head_dim=head_dim, max_position_embeddings=max_position_embeddings,
                                      rope_parameters=scaling | {"rope_theta": THETA})
    cosine, sine = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.tensor([POSITIONS]))
    half = head_dim // 2
    return {
        "name": name,
        "config": {"head_dim": head_dim, "max_position_embeddings": max_position_embeddings,
                   "rope_theta": THETA, "rope_scaling": scaling},
        "cosines": [rounded(row[:half]) for row in cosine[0]],
        "sines": [rounded(row[:half]) for row in sine[0]],
    }


def main():
    golden = {"torch": torch.__version__, "transformers": transformers.__version__, "positions": POSITIONS}
    members = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in golden.items()]
    cases = ",\n".join(json.dumps(case(name, *shape)) for name, shape in CASES.items())
    path = GOLDENS / "ropes.json"
    path.write_text("{\n" + ",\n".join(members) + ',\n"cases": [\n' + cases + "\n]\n}\n")
    print(f"{path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
