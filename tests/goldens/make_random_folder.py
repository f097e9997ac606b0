#!/usr/bin/env python3
"""Writes a Hugging Face folder with random bf16 weights of a named shape, for speed and agreement at full size.

    make_random_folder.py llama-3.1-8b /tmp/llama-8b [--layers 4]

Shapes are those of models/*.yaml and tests/models/*.yaml; config.json is in the classic schema; there is no tokenizer. Matrices are
normal with deviation 0.02 as transformers initialises them, norms close to 1, biases of deviation 0.5, which is what
those of q and k are like. The same seed and kind of device
give the same weights. One shard at a time is in memory; the index comes last, so that a folder cut short is not
taken for a whole one.
"""

import argparse
import json
import math
import pathlib
import shutil
import sys
import time

import safetensors.torch
import torch

from make_goldens import classic_config, read_facts, tensor_shapes

SHARD_BYTES = 4 << 30  # at most, if no tensor is larger
MATRIX_DEVIATION = 0.02
NORM_DEVIATION = 0.05
BIAS_DEVIATION = 0.5
BF16_BYTES = 2


def plan_shards(shapes):
    """Lists of tensor names, each up to SHARD_BYTES."""
    shards, room = [], 0
    for name, shape in shapes.items():
        size = math.prod(shape) * BF16_BYTES
        if not shards or size > room:
            shards.append([])
            room = SHARD_BYTES
        shards[-1].append(name)
        room -= size
    return shards


def random_tensor(name, shape, generator, device):
    tensor = torch.randn(shape, generator=generator, device=device, dtype=torch.float32)
    if name.endswith((".bias", "_proj_bias")):
        tensor = BIAS_DEVIATION * tensor
    else:
        tensor = 1.0 + NORM_DEVIATION * tensor if len(shape) == 1 else MATRIX_DEVIATION * tensor
    return tensor.to(torch.bfloat16).cpu()


def fused(shapes):
    """The same rows with q, k, v in one tensor and gate, up in another, as Phi-3 has them."""
    stacks = {"self_attn.q_proj": "self_attn.qkv_proj", "self_attn.k_proj": "self_attn.qkv_proj",
              "self_attn.v_proj": "self_attn.qkv_proj", "mlp.gate_proj": "mlp.gate_up_proj",
              "mlp.up_proj": "mlp.gate_up_proj"}
    all_shapes = {}
    for name, shape in shapes.items():
        for part, stack in stacks.items():
            name = name.replace(part, stack)
        rows = all_shapes[name][0] if name in all_shapes else 0
        all_shapes[name] = (rows + shape[0], *shape[1:])
    return all_shapes


def write_weights(folder, shapes, seed, device):
    generator = torch.Generator(device=device).manual_seed(seed)
    shards = plan_shards(shapes)
    weight_map = {}
    for i, names in enumerate(shards):
        file = f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        begin = time.monotonic()
        tensors = {name: random_tensor(name, shapes[name], generator, device) for name in names}
        safetensors.torch.save_file(tensors, folder / file, metadata={"format": "pt"})
        del tensors
        weight_map |= {name: file for name in names}
        gigabytes = (folder / file).stat().st_size / 1e9
        print(f"{file}: {gigabytes:.2f} GB in {time.monotonic() - begin:.1f} s", flush=True)
    return weight_map


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of models/NAME.yaml or tests/models/NAME.yaml")
    parser.add_argument("folder", type=pathlib.Path, help="to make; must not exist, or be empty")
    parser.add_argument("--layers", type=int, help="fewer than the shape has")
    parser.add_argument("--fused", action="store_true", help="a folder of Phi3ForCausalLM")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()

    facts = read_facts(arguments.name)
    if arguments.layers is not None:
        if not 1 <= arguments.layers <= facts["num_layers"]:
            parser.error(f"--layers: expected 1 to {facts['num_layers']}, got {arguments.layers}")
        facts["num_layers"] = arguments.layers
    shapes = tensor_shapes(facts)
    config = classic_config(facts)
    if arguments.fused:
        shapes = fused(shapes)
        config |= {"architectures": ["Phi3ForCausalLM"], "model_type": "phi3", "pad_token_id": 0}
    total = sum(math.prod(shape) for shape in shapes.values()) * BF16_BYTES

    folder = arguments.folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder}: expected an empty folder")
    free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
    if total >= free:
        sys.exit(f"{folder}: expected {total / 1e9:.1f} GB of free disk, got {free / 1e9:.1f}; "
                 "--layers takes less")

    folder.mkdir(parents=True, exist_ok=True)
    weight_map = write_weights(folder, shapes, arguments.seed, arguments.device)
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    generation = {"bos_token_id": 0, "eos_token_id": 1}
    (folder / "generation_config.json").write_text(json.dumps(generation, indent=2) + "\n")
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    print(f"{folder}: {arguments.name}, {facts['num_layers']} layers, {total / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
