#!/usr/bin/env python3
"""Writes gpt-oss with random weights of its own shapes twice: make_gpt_oss_folder.py FOLDER [--layers N] [--device D]

FOLDER/mxfp4   as it is published, experts in MXFP4
FOLDER/bf16    the same values, experts in bf16, for compare_transformers.py

Needs torch and safetensors.
"""

import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file

HIDDEN, WIDTH, HEADS, KV_HEADS, HEAD_DIM, EXPERTS, VOCABULARY = 2880, 2880, 64, 8, 64, 32, 201088
MAGNITUDES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
GROUP = 32


def config(layers):
    types = ["sliding_attention" if layer % 2 == 0 else "full_attention" for layer in range(layers)]
    return {"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss", "attention_bias": True, "head_dim": HEAD_DIM,
            "hidden_act": "silu", "hidden_size": HIDDEN, "intermediate_size": WIDTH, "layer_types": types,
            "max_position_embeddings": 131072, "num_attention_heads": HEADS, "num_experts_per_tok": 4,
            "num_hidden_layers": layers, "num_key_value_heads": KV_HEADS, "num_local_experts": EXPERTS,
            "rms_norm_eps": 1e-05, "rope_theta": 150000, "sliding_window": 128, "swiglu_limit": 7.0,
            "rope_scaling": {"beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0,
                             "original_max_position_embeddings": 4096, "rope_type": "yarn", "truncate": False},
            "tie_word_embeddings": False, "torch_dtype": "bfloat16", "vocab_size": VOCABULARY, "eos_token_id": 1,
            "pad_token_id": 0}


def experts(rows, columns, device):
    """Blocks and scales as published, and what they are in bf16: [experts][columns][rows]."""
    codes = torch.randint(0, 16, (EXPERTS, rows, columns), dtype=torch.uint8, device=device)
    scales = torch.randint(116, 120, (EXPERTS, rows, columns // GROUP), dtype=torch.uint8, device=device)
    values = torch.tensor(MAGNITUDES + [-m for m in MAGNITUDES], device=device)[codes.int()]
    values = values.view(EXPERTS, rows, -1, GROUP) * torch.exp2(scales.float() - 127)[..., None]
    blocks = (codes[..., 0::2] | codes[..., 1::2] << 4).view(EXPERTS, rows, -1, GROUP // 2)
    return blocks, scales, values.view(EXPERTS, rows, columns).to(torch.bfloat16).transpose(1, 2).contiguous()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.manual_seed(5)

    def random(*shape, deviation=0.02, centre=0.0):
        return (torch.randn(shape, device=arguments.device) * deviation + centre).to(torch.bfloat16)

    shared = {"model.embed_tokens.weight": random(VOCABULARY, HIDDEN), "lm_head.weight": random(VOCABULARY, HIDDEN),
              "model.norm.weight": random(HIDDEN, centre=1.0, deviation=0.1)}
    mxfp4, bf16 = {}, {}
    for layer in range(arguments.layers):
        prefix = f"model.layers.{layer}."
        for name, rows, columns in (("q", HEADS * HEAD_DIM, HIDDEN), ("k", KV_HEADS * HEAD_DIM, HIDDEN),
                                    ("v", KV_HEADS * HEAD_DIM, HIDDEN), ("o", HIDDEN, HEADS * HEAD_DIM)):
            shared[f"{prefix}self_attn.{name}_proj.weight"] = random(rows, columns)
            shared[f"{prefix}self_attn.{name}_proj.bias"] = random(rows, deviation=0.1)
        shared[prefix + "self_attn.sinks"] = random(HEADS, deviation=1.0)
        shared[prefix + "mlp.router.weight"] = random(EXPERTS, HIDDEN)
        shared[prefix + "mlp.router.bias"] = random(EXPERTS, deviation=0.5)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            shared[f"{prefix}{norm}.weight"] = random(HIDDEN, centre=1.0, deviation=0.1)
        for name, rows, columns in (("gate_up_proj", 2 * WIDTH, HIDDEN), ("down_proj", HIDDEN, WIDTH)):
            own = f"{prefix}mlp.experts.{name}"
            shared[own + "_bias"] = random(EXPERTS, rows, deviation=0.5)
            blocks, scales, values = experts(rows, columns, arguments.device)
            mxfp4 |= {own + "_blocks": blocks.cpu(), own + "_scales": scales.cpu()}
            bf16[own] = values.cpu()
    shared = {name: tensor.cpu() for name, tensor in shared.items()}
    for name, own, more in (("mxfp4", mxfp4, {"quantization_config": {"quant_method": "mxfp4"}}), ("bf16", bf16, {})):
        folder = arguments.folder / name
        folder.mkdir(parents=True)
        save_file(shared | own, folder / "model.safetensors", {"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config(arguments.layers) | more, indent=2) + "\n")
        (folder / "generation_config.json").write_text(json.dumps({"bos_token_id": 0, "eos_token_id": 1}) + "\n")


if __name__ == "__main__":
    main()
