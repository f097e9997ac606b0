#!/usr/bin/env python3
"""Writes folders of families as GGUF, by the public package gguf and as llama.cpp's converters do: make_families.py FOLDER...

Each has a config.json of its family, as transformers 5 writes it, and tensors under the names that most families give theirs:
tests/goldens/make_families.py. FOLDER/model.gguf is written. Names of tensors and keys are the package's.
Of gpt-oss, whose experts are in MXFP4, FOLDER/q8.gguf has the other matrices in Q8_0, as published files have them.
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
    "gpt_oss": gguf.MODEL_ARCH.GPT_OSS, "seed_oss": gguf.MODEL_ARCH.SEED_OSS, "hunyuan_v1_dense": gguf.MODEL_ARCH.HUNYUAN_DENSE,
}
PERMUTED = {"granite", "smollm3", "ministral3"}
LISTS_WINDOWS = {"gemma3_text", "olmo3", "exaone4"}
TYPES = gguf.GGMLQuantizationType
GLM_NORMS = {"post_attention_layernorm": "post_self_attn_layernorm", "pre_feedforward_layernorm": "post_attention_layernorm",
             "post_feedforward_layernorm": "post_mlp_layernorm"}


def head_dim(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def add_rope(writer, config, family):
    """Of layers without a window, and of those with one."""
    rope = config.get("rope_parameters") or config["rope_scaling"] | {"rope_theta": config["rope_theta"]}
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
    if family == "gpt_oss":
        writer.add_expert_count(config["num_local_experts"])
        writer.add_expert_used_count(config["num_experts_per_tok"])
        writer.add_expert_feed_forward_length(config["intermediate_size"])
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


def mxfp4(blocks, scales):
    """Blocks of 17 bytes: the scale, and values so that a byte has columns j and j + 16, not 2 j and 2 j + 1."""
    codes = numpy.stack([blocks & 15, blocks >> 4], axis=-1).reshape(*blocks.shape[:-1], 32)
    data = numpy.concatenate([scales[..., None], codes[..., :16] | codes[..., 16:] << 4], axis=-1)
    return data.reshape(*data.shape[:-2], -1)


def as_gpt_oss(tensors):
    """Gate and up apart, and named as the package knows them; of experts in MXFP4 the bytes."""
    for name, values in tensors.items():
        last = name.split(".")[-1]
        if last.endswith("_scales"):
            continue
        if last.endswith("_blocks"):
            values = mxfp4(values, tensors[name.replace("_blocks", "_scales")])
        if last == "sinks":
            yield name + ".weight", values
        elif last.startswith("gate_up_proj"):
            suffix = ".bias" if last.endswith("_bias") else ".weight"
            for i, part in enumerate(("gate_proj", "up_proj")):
                yield name.replace(last, part + suffix), values[:, i::2]
        elif last.startswith("down_proj"):
            yield name.replace(last, "down_proj" + (".bias" if last.endswith("_bias") else ".weight")), values
        else:
            yield name, values


def stored(name, weights, config, family):
    """As converters change them."""
    if family.startswith("gemma") and name.endswith("norm.weight"):
        return weights + numpy.float32(1)
    if family in PERMUTED and name.endswith(("q_proj.weight", "k_proj.weight")):
        return make_gguf.permute(weights, weights.shape[0] // head_dim(config))
    return weights


def adapted(tensors, config, family):
    if family == "glm4":
        return as_glm4(tensors, config)
    return as_gpt_oss(tensors) if family == "gpt_oss" else tensors.items()


def write(folder, file, matrices):
    """The type of matrices of floats is given, but for routers and embeddings."""
    config = json.loads((folder / "config.json").read_text())
    family = config["model_type"]
    architecture = ARCHITECTURES[family]
    writer = gguf.GGUFWriter(str(folder / file), gguf.MODEL_ARCH_NAMES[architecture])
    add_config(writer, config, family)
    names = gguf.get_tensor_name_map(architecture, config["num_hidden_layers"])
    tensors = dict(make_gguf.read_tensors(folder))
    for name, weights in adapted(tensors, config, family):
        to = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if to is None and name == "lm_head.weight":
            to = "output.weight"  # Gemma 2's is the embedding, but not that of the golden
        assert to is not None, name
        if weights.dtype == numpy.uint8:
            writer.add_tensor(to, weights, raw_dtype=gguf.GGMLQuantizationType.MXFP4)
            continue
        weights = stored(name, weights, config, family)
        is_vector = weights.ndim == 1 or name.endswith(".bias") or "router" in name
        kind = TYPES.F32 if is_vector else TYPES.BF16 if name.startswith("model.embed") else matrices
        writer.add_tensor(to, gguf.quants.quantize(weights, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


for each in map(pathlib.Path, sys.argv[1:]):
    write(each, "model.gguf", TYPES.BF16)
    if json.loads((each / "config.json").read_text())["model_type"] == "gpt_oss":
        write(each, "q8.gguf", TYPES.Q8_0)
