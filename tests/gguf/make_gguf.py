#!/usr/bin/env python3
"""Writes a Hugging Face folder of LlamaForCausalLM as GGUF, by the public package gguf and as llama.cpp's converter does:
make_gguf.py FOLDER FILE.gguf [TYPE [SHARD_TENSORS]]

TYPE is F32, F16, BF16, or a quantised type that the package can write: then the matrices of layers have it, and all else
of two extents is F16. With SHARD_TENSORS the file is split into several of so many tensors.
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
    """Names and float32 values."""
    data = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + size])
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "BF16", entry["dtype"]
        begin, end = entry["data_offsets"]
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
    kind = gguf.GGMLQuantizationType[sys.argv[3] if len(sys.argv) > 3 else "BF16"]
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
