#!/usr/bin/env python3
"""Writes folders of families as GGUF, by the public package gguf and as llama.cpp's converters do: make_families.py FOLDER...

Each has a config.json of its family, as transformers 5 writes it, and tensors under the names that most families give theirs:
tests/goldens/make_families.py. FOLDER/model.gguf is written. Names of tensors and keys are the package's.
"""

import json
import pathlib
import sys

import gguf
import numpy

import make_gguf

ARCHITECTURES = {
    "gemma2": gguf.MODEL_ARCH.GEMMA2, "gemma3_text": gguf.MODEL_ARCH.GEMMA3, "granite": gguf.MODEL_ARCH.GRANITE,
    "olmo2": gguf.MODEL_ARCH.OLMO2, "olmo3": gguf.MODEL_ARCH.OLMO2, "smollm3": gguf.MODEL_ARCH.SMOLLM3,
    "ministral3": gguf.MODEL_ARCH.MISTRAL3, "exaone4": gguf.MODEL_ARCH.EXAONE4, "glm4": gguf.MODEL_ARCH.GLM4,
    "seed_oss": gguf.MODEL_ARCH.SEED_OSS, "hunyuan_v1_dense": gguf.MODEL_ARCH.HUNYUAN_DENSE,
}
PERMUTED = {"granite", "smollm3", "ministral3"}
LISTS_WINDOWS = {"gemma3_text", "olmo3", "exaone4"}
GLM_NORMS = {"post_attention_layernorm": "post_self_attn_layernorm", "pre_feedforward_layernorm": "post_attention_layernorm",
             "post_feedforward_layernorm": "post_mlp_layernorm"}


def head_dim(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def add_rope(writer, config, family):
    """Of layers without a window, and of those with one."""
    rope = config["rope_parameters"]
    main = rope.get("full_attention", rope)
    theta = main["rope_theta"]
    if "alpha" in main:
        theta *= main["alpha"] ** (head_dim(config) / (head_dim(config) - 2))
    writer.add_rope_freq_base(theta)
    if "sliding_attention" in rope:
        writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    if main["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(main["rope_type"]))
        writer.add_rope_scaling_factor(main["factor"])
    if main["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(main["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(main["beta_fast"])
        writer.add_rope_scaling_yarn_beta_slow(main["beta_slow"])
        if "attention_factor" in main:
            writer.add_rope_scaling_yarn_attn_factor(main["attention_factor"])
    if family == "ministral3":
        writer.add_rope_scaling_yarn_log_mul(main["mscale_all_dim"])
        writer.add_attn_temperature_scale(main["llama_4_scaling_beta"])
    if family in PERMUTED or family == "glm4":
        writer.add_rope_dimension_count(int(head_dim(config) * main.get("partial_rotary_factor", 1)))


def add_config(writer, config, family):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    if "head_dim" in config:
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    add_rope(writer, config, family)
    if config.get("sliding_window"):
        writer.add_sliding_window(config["sliding_window"])
    if family in LISTS_WINDOWS:
        writer.add_sliding_window_pattern([kind == "sliding_attention" for kind in config["layer_types"]])
    if family == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
    if family == "granite":
        writer.add_attention_scale(config["attention_multiplier"])
        writer.add_embedding_scale(config["embedding_multiplier"])
        writer.add_residual_scale(config["residual_multiplier"])
        writer.add_logit_scale(config["logits_scaling"])


def side_by_side(weights, dims, rotated):
    """Rows, or biases, of heads: the two of a rotated pair become neighbours."""
    order = numpy.arange(dims)
    order[0:rotated:2], order[1:rotated:2] = numpy.arange(rotated // 2), numpy.arange(rotated // 2, rotated)
    return weights.reshape(-1, dims, *weights.shape[1:])[:, order].reshape(weights.shape)


def as_glm4(tensors, config):
    """Named and stored as GLM-4's own files are."""
    dims = head_dim(config)
    rotated = int(dims * config["rope_parameters"]["partial_rotary_factor"])
    for name, weights in tensors.items():
        last = name.split(".")[-2]
        if last == "up_proj":
            continue
        if last == "gate_proj":
            yield name.replace(last, "gate_up_proj"), numpy.concatenate([weights, tensors[name.replace(last, "up_proj")]])
        elif last in ("q_proj", "k_proj"):
            yield name, side_by_side(weights, dims, rotated)
        else:
            yield name.replace(last, GLM_NORMS.get(last, last)), weights


def stored(name, weights, config, family):
    """As converters change them."""
    if family.startswith("gemma") and name.endswith("norm.weight"):
        return weights + numpy.float32(1)
    if family in PERMUTED and name.endswith(("q_proj.weight", "k_proj.weight")):
        return make_gguf.permute(weights, weights.shape[0] // head_dim(config))
    return weights


def write(folder):
    config = json.loads((folder / "config.json").read_text())
    family = config["model_type"]
    architecture = ARCHITECTURES[family]
    writer = gguf.GGUFWriter(str(folder / "model.gguf"), gguf.MODEL_ARCH_NAMES[architecture])
    add_config(writer, config, family)
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    tensors = dict(make_gguf.read_tensors(folder))
    for name, weights in as_glm4(tensors, config) if family == "glm4" else tensors.items():
        to = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if to is None and name == "lm_head.weight":
            to = "output.weight"  # Gemma 2's is the embedding, but not that of the golden
        assert to is not None, name
        weights = stored(name, weights, config, family)
        kind = gguf.GGMLQuantizationType.F32 if weights.ndim == 1 else gguf.GGMLQuantizationType.BF16
        writer.add_tensor(to, gguf.quants.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


for each in sys.argv[1:]:
    write(pathlib.Path(each))
