#!/usr/bin/env python3
"""Writes a Hugging Face folder of LlamaForCausalLM as GGUF, by the public package gguf and as llama.cpp's converter does:
make_gguf.py FOLDER FILE.gguf [TYPE [SHARD_TENSORS]]

TYPE is F32, F16, BF16, or a quantised type that the package can write: then the matrices of layers have it, and all else
of two extents is F16. Or it is Q4_K_M or Q6_K, which are rounded here, as simply as may be: then the embedding has Q6_K. With
SHARD_TENSORS the file is split into several of so many tensors.
"""

import json
import math
import pathlib
import sys

import gguf
import numpy

TYPES = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
LAYER_TYPES = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}
TOKEN_TYPES = gguf.TokenType


def read_tensors(folder):
    """Names and float32 values, or bytes."""
    data = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "U8":
            yield name, numpy.frombuffer(data[8 + size + begin:8 + size + end], dtype=numpy.uint8).reshape(entry["shape"])
            continue
        assert entry["dtype"] == "BF16", entry["dtype"]
        bits = numpy.frombuffer(data[8 + size + begin:8 + size + end], dtype=numpy.uint16)
        yield name, (bits.astype(numpy.uint32) << 16).view(numpy.float32).reshape(entry["shape"])


def renamed(name):
    stem = name.removesuffix(".weight")
    if stem in TYPES:
        return TYPES[stem] + ".weight"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{LAYER_TYPES[rest]}.weight"


def permute(weights, num_heads):
    """Rows of a rotated pair side by side."""
    return weights.reshape(num_heads, 2, weights.shape[0] // num_heads // 2, -1).swapaxes(1, 2).reshape(weights.shape)


def halves(values):
    """f16, and what it is in float32."""
    stored = values.astype(numpy.float16)
    return stored, stored.astype(numpy.float32)


def ratio(values, units):
    return numpy.divide(values, units, out=numpy.zeros_like(values), where=units != 0)


def q4_k(weights):
    """Blocks of 256: d, dmin; eight scales and minima of 6 bits; 32 bytes for each 64 columns."""
    groups = weights.reshape(-1, 8, 32)
    low = numpy.minimum(groups.min(axis=2), 0)
    scale, minimum = (groups.max(axis=2) - low) / 15, -low
    d16, d = halves(scale.max(axis=1, keepdims=True) / 63)
    m16, m = halves(minimum.max(axis=1, keepdims=True) / 63)
    scales = numpy.clip(numpy.rint(ratio(scale, d + 0 * scale)), 0, 63)
    minima = numpy.clip(numpy.rint(ratio(minimum, m + 0 * minimum)), 0, 63)
    codes = ratio(groups + (m * minima)[..., None], (d * scales)[..., None] + 0 * groups)
    codes = numpy.clip(numpy.rint(codes), 0, 15).astype(numpy.uint8)
    scales, minima = scales.astype(numpy.uint8), minima.astype(numpy.uint8)
    packed = numpy.zeros((len(groups), 12), numpy.uint8)
    packed[:, 0:4] = scales[:, :4] | scales[:, 4:] >> 4 << 6
    packed[:, 4:8] = minima[:, :4] | minima[:, 4:] >> 4 << 6
    packed[:, 8:12] = scales[:, 4:] & 15 | (minima[:, 4:] & 15) << 4
    nibbles = codes.reshape(-1, 4, 2, 32)
    parts = (d16.view(numpy.uint8), m16.view(numpy.uint8), packed, (nibbles[:, :, 0] | nibbles[:, :, 1] << 4).reshape(-1, 128))
    return numpy.concatenate(parts, axis=1).reshape(*weights.shape[:-1], -1)


def q6_k(weights):
    """Blocks of 256: the lower four bits, the upper two, sixteen scales, d."""
    groups = weights.reshape(-1, 16, 16)
    scale = numpy.abs(groups).max(axis=2) / 31
    d16, d = halves(scale.max(axis=1, keepdims=True) / 127)
    scales = numpy.clip(numpy.rint(ratio(scale, d + 0 * scale)), 0, 127)
    codes = numpy.clip(numpy.rint(ratio(groups, (d * scales)[..., None] + 0 * groups)), -32, 31) + 32
    codes = codes.astype(numpy.uint8).reshape(-1, 2, 4, 32)
    low = codes[:, :, :2] & 15 | (codes[:, :, 2:] & 15) << 4
    high = codes[:, :, 0] >> 4 | codes[:, :, 1] >> 4 << 2 | codes[:, :, 2] >> 4 << 4 | codes[:, :, 3] >> 4 << 6
    parts = (low.reshape(-1, 128), high.reshape(-1, 64), scales.astype(numpy.int8).view(numpy.uint8), d16.view(numpy.uint8))
    return numpy.concatenate(parts, axis=1).reshape(*weights.shape[:-1], -1)


def k_quants(name, weights, kind, num_layers):
    """Blocks and their type; of Q4_K_M v and down of the last layers have Q6_K, as has the embedding."""
    is_late = name.startswith("blk.") and int(name.split(".")[1]) >= num_layers // 2
    is_wide = is_late and ("attn_v" in name or "ffn_down" in name)
    if kind == "Q4_K_M" and name.startswith("blk.") and not is_wide:
        return q4_k(weights), gguf.GGMLQuantizationType.Q4_K
    return q6_k(weights), gguf.GGMLQuantizationType.Q6_K


def rope_factors(config):
    scaling = config["rope_scaling"]
    original = scaling["original_max_position_embeddings"]
    low, high = original / scaling["low_freq_factor"], original / scaling["high_freq_factor"]
    dims = config["head_dim"]
    factors = []
    for pair in range(dims // 2):
        length = 2 * math.pi * config["rope_theta"] ** (2 * pair / dims)
        smooth = (original / length - scaling["low_freq_factor"]) / (scaling["high_freq_factor"] - scaling["low_freq_factor"])
        factor = 1 if length < high else scaling["factor"] if length > low else 1 / ((1 - smooth) / scaling["factor"] + smooth)
        factors.append(factor)
    return numpy.array(factors, dtype=numpy.float32)


def add_config(writer, config):
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_vocab_size(config["vocab_size"])


def add_tokenizer(writer, document, pre, vocab_size, add_bos, bos, eos):
    """A byte-level one."""
    texts = [f"[PAD{i}]" for i in range(vocab_size)]
    types = [TOKEN_TYPES.UNUSED] * vocab_size
    for text, token in document["model"]["vocab"].items():
        texts[token], types[token] = text, TOKEN_TYPES.NORMAL
    for token in document["added_tokens"]:
        texts[token["id"]] = token["content"]
        types[token["id"]] = TOKEN_TYPES.CONTROL if token["special"] else TOKEN_TYPES.USER_DEFINED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(texts)
    writer.add_token_types(types)
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in document["model"]["merges"]])
    writer.add_add_bos_token(add_bos)
    if bos is not None:
        writer.add_bos_token_id(bos)
    if eos is not None:
        writer.add_eos_token_id(eos)


def main():
    folder, path = pathlib.Path(sys.argv[1]), sys.argv[2]
    type_name = sys.argv[3] if len(sys.argv) > 3 else "BF16"
    is_k = type_name in ("Q4_K_M", "Q6_K")
    kind = None if is_k else gguf.GGMLQuantizationType[type_name]
    shard_tensors = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "llama", split_max_tensors=shard_tensors)
    add_config(writer, config)
    document = json.loads((folder / "tokenizer.json").read_text())
    add_tokenizer(writer, document, "gpt-2", config["vocab_size"], True, config["bos_token_id"], config["eos_token_id"])
    text = json.loads((folder / "tokenizer_config.json").read_text())
    if "chat_template" in text:
        writer.add_chat_template(text["chat_template"])
    is_quantised = kind not in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16)
    for name, weights in read_tensors(folder):
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            heads = config["num_attention_heads" if "q_proj" in name else "num_key_value_heads"]
            weights = permute(weights, heads)
        name = renamed(name)
        if weights.ndim == 1:
            writer.add_tensor(name, weights)
            continue
        if is_k:
            blocks, used = k_quants(name, weights, type_name, config["num_hidden_layers"])
            error = numpy.abs(gguf.quants.dequantize(blocks, used) - weights).mean() / numpy.abs(weights).mean()
            assert error < 0.12, (name, error)
            writer.add_tensor(name, blocks, raw_dtype=used)
            continue
        is_layer = name.startswith("blk.")
        used = gguf.GGMLQuantizationType.F16 if is_quantised and not is_layer else kind
        writer.add_tensor(name, gguf.quants.quantize(weights, used), raw_dtype=used)
    if config.get("rope_scaling"):
        writer.add_tensor("rope_freqs.weight", rope_factors(config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
