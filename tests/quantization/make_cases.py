#!/usr/bin/env python3
"""Writes one layer of integers in every format, and what it means: make_cases.py FOLDER

FOLDER/NAME/config.json           with quantization_config, or without where the next one has it
FOLDER/NAME/quantize_config.json  for some
FOLDER/NAME/model.safetensors     the tensors of LAYER
FOLDER/NAME/weight.safetensors    `weight`: float32 [rows, columns], inputs in the model's order; `bias` likewise
FOLDER/NAME/expected.json         what the reader should say of the layer

A case is drawn first: values, zeros and scales of each row and group, and the group of each input. The weight is
computed from those; each format then stores them in its own way. Needs numpy alone.
"""

import json
import pathlib
import struct
import sys
import zlib

import numpy as np

LAYER = "model.layers.3.mlp.down_proj"
AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]
TYPES = {"int32": "I32", "int64": "I64", "float16": "F16", "float32": "F32", "uint16": "BF16"}


def to_bf16(values):
    """Bits of float32 values that bf16 represents exactly."""
    bits = values.astype(np.float32).view(np.uint32)
    assert not np.any(bits & 0xFFFF)
    return (bits >> 16).astype(np.uint16)


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        dtype, tensor = tensor if isinstance(tensor, tuple) else (TYPES[str(tensor.dtype)], tensor)
        raw = np.ascontiguousarray(tensor).tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def pack(values, axis, order=range(8), bits=4):
    """Values of so many bits along an axis to words: place p, lowest first, holds value order[p]. Filled up with zeros."""
    values = np.moveaxis(values, axis, -1)
    count = 32 // bits
    filling = -values.shape[-1] % count
    values = np.pad(values, [(0, 0), (0, filling)]).reshape(values.shape[0], -1, count)
    words = np.zeros(values.shape[:2], np.uint32)
    for position, index in enumerate(order[:count]):
        words |= values[..., index].astype(np.uint32) << np.uint32(bits * position)
    return np.ascontiguousarray(np.moveaxis(words.view(np.int32), -1, axis))


class Case:
    """One layer before it is stored. Zeros are what is subtracted, 0..16, or 128 of 8 bits."""
    layer = LAYER

    def __init__(self, name, rows, columns, group_size, zeros, scale_type="float16", ordered=False, bias=None, bits=4):
        self.bits = bits
        random = np.random.default_rng(zlib.crc32(name.encode()))
        self.name, self.rows, self.columns, self.group_size = name, rows, columns, group_size
        groups = 1 if group_size < 0 else -(-columns // group_size)
        self.groups = groups
        self.values = random.integers(0, 1 << bits, (rows, columns))
        low, high = zeros
        self.zeros = random.integers(low, high + 1, (rows, groups))
        self.zeros.flat[0], self.zeros.flat[-1] = low, high
        scales = self.draw_scales(random, (rows, groups))
        if scale_type == "bfloat16":
            bits = scales.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
            self.scales = bits.view(np.float32)
            self.stored_scales = to_bf16(self.scales)
        else:
            self.stored_scales = scales.astype(np.float16)
            self.scales = self.stored_scales.astype(np.float32)
        self.group_of = np.arange(columns) // (columns // groups)
        if ordered:
            self.group_of = random.permutation(self.group_of)
        self.bias = None
        if bias == "zero":
            self.bias = np.zeros(rows, np.float16)
        elif bias is not None:
            self.bias = random.uniform(-1, 1, rows).astype(bias)

    def draw_scales(self, random, shape):
        """Of both signs, some of them tiny."""
        return random.uniform(1e-3, 2e-2, shape) * random.choice([1, 1e-4, -1], shape)

    def weight(self):
        difference = (self.values - self.zeros[:, self.group_of]).astype(np.float32)
        return self.scales[:, self.group_of] * difference

    def tensors_with_bias(self, tensors):
        if self.bias is not None:
            tensors["bias"] = self.bias
        return {f"{self.layer}.{name}": tensor for name, tensor in tensors.items()}

    def gptq(self, version, g_idx):
        stored = self.zeros - (1 if version == 1 else 0)
        assert stored.min() >= 0 and stored.max() < 1 << self.bits
        tensors = {"qweight": pack(self.values.T, 0, bits=self.bits), "qzeros": pack(stored.T, 1, bits=self.bits),
                   "scales": self.stored_scales.T}
        if g_idx is not None:
            tensors["g_idx"] = np.zeros(self.columns, np.int32) if g_idx == "zero" else self.group_of.astype(np.int32)
        return self.tensors_with_bias(tensors)

    def awq(self):
        tensors = {"qweight": pack(self.values.T, 1, AWQ_ORDER), "qzeros": pack(self.zeros.T, 1, AWQ_ORDER),
                   "scales": self.stored_scales.T}
        return self.tensors_with_bias(tensors)

    def compressed_tensors(self, symmetric, g_idx, shape_type):
        tensors = {"weight_packed": pack(self.values, 1, bits=self.bits), "weight_scale": self.stored_scales,
                   "weight_shape": np.array([self.rows, self.columns], shape_type)}
        if not symmetric:
            tensors["weight_zero_point"] = pack((self.zeros - 8) + 8, 0)
        if g_idx == "groups":
            tensors["weight_g_idx"] = self.group_of.astype(np.int32)
        if g_idx == "unset":
            tensors["weight_g_idx"] = np.full(self.columns, -1, np.int32)
        return self.tensors_with_bias(tensors)

    def write(self, folder, tensors, config=None, second=None, remark=False):
        folder = folder / self.name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps({} if config is None else {"quantization_config": config}))
        if second is not None:
            (folder / "quantize_config.json").write_text(json.dumps(second))
        save(folder / "model.safetensors", tensors)
        meant = {"weight": self.weight()}
        has_bias = self.bias is not None and bool(np.any(self.bias))
        if has_bias:
            meant["bias"] = self.bias.astype(np.float32)
        save(folder / "weight.safetensors", meant)
        order = np.argsort(self.group_of, kind="stable")
        natural = bool(np.all(order == np.arange(self.columns)))
        (folder / "expected.json").write_text(json.dumps({
            "layer": LAYER, "rows": self.rows, "columns": self.columns, "num_groups": self.groups,
            "symmetric": bool(np.all(self.zeros == 1 << self.bits - 1)), "order": [] if natural else order.tolist(),
            "bias": has_bias, "remark": remark}))


def gptq_config(group_size, symmetric, checkpoint_format=None, **more):
    config = {"quant_method": "gptq", "bits": 4, "group_size": group_size, "sym": symmetric, "desc_act": False,
              "lm_head": False, "damp_percent": 0.1, "true_sequential": True, **more}
    if checkpoint_format is not None:
        config["checkpoint_format"] = checkpoint_format
    return config


def write_gptq(folder):
    eight, v1, v2 = (8, 8), (1, 16), (0, 15)

    def case(name, rows, columns, group_size, zeros, version, config, g_idx="groups", second=None, remark=False,
             **more):
        layer = Case("gptq-" + name, rows, columns, group_size, zeros, ordered=g_idx == "ordered", **more)
        layer.write(folder, layer.gptq(version, g_idx), config, second, remark)

    for size in (32, 64, 128, -1):
        case(f"v1-symmetric-{size}", 48, 512, size, eight, 1, gptq_config(size, True))
        case(f"v2-asymmetric-{size}", 48, 512, size, v2, 2, gptq_config(size, False, "gptq_v2", pack_dtype="int32"))
    case("v1-asymmetric", 72, 320, 64, v1, 1, gptq_config(64, False, "gptq", dynamic={}))
    case("v2-symmetric", 24, 384, 128, eight, 2, gptq_config(128, True, "gptq_v2", dynamic=None))
    case("v1-called-v2", 32, 256, 128, eight, 1, gptq_config(128, True, "gptq_v2"), remark=True)
    case("v2-called-v1", 32, 256, 128, eight, 2, gptq_config(128, True, "gptq"), remark=True)
    case("v2-not-called", 32, 256, 128, eight, 2, gptq_config(128, True), remark=True)
    case("v1-called-symmetric", 32, 256, 128, v1, 1, gptq_config(128, True), remark=True)
    case("v2-called-symmetric", 32, 256, 128, v2, 2, gptq_config(128, True, "gptq_v2"), remark=True)
    case("v1-eights-called-asymmetric", 16, 128, 32, (9, 9), 1, gptq_config(32, False))
    case("v1-symmetric-called-asymmetric", 16, 128, 32, eight, 1, gptq_config(32, False))
    case("no-g-idx", 40, 256, 32, v1, 1, gptq_config(32, False), g_idx=None)
    case("zero-g-idx", 40, 256, 32, v1, 1, gptq_config(32, False), g_idx="zero")
    case("few-inputs", 8, 72, -1, v1, 1, gptq_config(-1, False))
    case("fewer-inputs-than-a-group", 8, 64, 128, v1, 1, gptq_config(128, False))
    for size in (32, 64, 128):
        case(f"act-order-{size}", 56, 512, size, v1, 1, gptq_config(size, False, desc_act=True), g_idx="ordered")
    case("act-order-symmetric", 32, 384, 64, eight, 1, gptq_config(64, True, desc_act=True), g_idx="ordered")
    case("act-order-natural", 32, 384, 64, eight, 1, gptq_config(64, True, desc_act=True))
    case("act-order-one-group", 32, 384, -1, eight, 1, gptq_config(-1, True, desc_act=True), g_idx=None)
    case("act-order-unstated", 32, 384, 64, eight, 1, gptq_config(64, True), g_idx="ordered")
    for kind in ("float16", "float32", "zero"):
        case(f"bias-{kind}", 32, 128, 64, v1, 1, gptq_config(64, False), bias=kind)
    case("bf16-scales", 32, 256, 64, v1, 1, gptq_config(64, False), scale_type="bfloat16")
    bytes_ = (128, 128)
    case("8-bits-v1", 40, 256, 32, bytes_, 1, gptq_config(32, True, bits=8), bits=8)
    case("8-bits-v2-one", 24, 200, -1, bytes_, 2, gptq_config(-1, True, "gptq_v2", bits=8), bits=8)
    case("8-bits-act-order", 16, 384, 64, bytes_, 1, gptq_config(64, True, desc_act=True, bits=8), g_idx="ordered", bits=8)
    second = {name: value for name, value in gptq_config(64, False, "gptq_v2").items() if name != "quant_method"}
    case("second-file", 32, 256, 64, v2, 2, None, second=second)
    case("both-files", 32, 256, 64, v2, 2, gptq_config(64, False), second=second)


def write_awq(folder):
    for size in (32, 64, 128, -1):
        layer = Case(f"awq-{size}", 72, 640, size, (0, 15), bias="float16" if size == 64 else None)
        config = {"quant_method": "awq", "bits": 4, "group_size": size, "zero_point": True, "version": "gemm"}
        layer.write(folder, layer.awq(), config)
    layer = Case("awq-symmetric", 24, 200, -1, (8, 8), scale_type="bfloat16")
    config = {"quant_method": "awq", "bits": 4, "group_size": -1, "zero_point": False, "version": "GEMM",
              "backend": "autoawq", "modules_to_not_convert": None}
    layer.write(folder, layer.awq(), config)


def compressed_tensors_config(group_size, symmetric, actorder=None):
    weights = {"num_bits": 4, "type": "int", "symmetric": symmetric, "dynamic": False, "actorder": actorder,
               "strategy": "channel" if group_size < 0 else "group",
               "group_size": None if group_size < 0 else group_size, "observer": "minmax"}
    group = {"targets": ["Linear"], "weights": weights, "input_activations": None, "output_activations": None}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "quantization_status": "compressed",
            "config_groups": {"group_0": group}, "ignore": ["lm_head"], "kv_cache_scheme": None,
            "sparsity_config": {}, "transform_config": {}}


def write_compressed_tensors(folder):
    def case(name, rows, columns, group_size, symmetric, actorder=None, g_idx=None, shape="int64", zeros=None, **more):
        zeros = zeros or ((8, 8) if symmetric else (0, 15))
        layer = Case("c-t-" + name, rows, columns, group_size, zeros, ordered=g_idx == "groups", **more)
        layer.write(folder, layer.compressed_tensors(symmetric, g_idx, np.dtype(shape)),
                    compressed_tensors_config(group_size, symmetric, actorder))

    for size in (32, 64, 128, -1):
        case(f"symmetric-{size}", 48, 512, size, True, scale_type="bfloat16")
        case(f"asymmetric-{size}", 43, 512, size, False)
    case("symmetric-called-asymmetric", 43, 128, 32, False, zeros=(8, 8))
    case("ordered", 32, 384, 64, True, actorder="group", g_idx="groups")
    case("ordered-asymmetric", 29, 384, 32, False, actorder="group", g_idx="groups", bias="float16")
    case("static", 32, 384, 64, True, actorder="static")
    case("unset-g-idx", 32, 384, 64, True, actorder="weight", g_idx="unset", shape="int32")


def main():
    folder = pathlib.Path(sys.argv[1])
    write_gptq(folder)
    write_awq(folder)
    write_compressed_tensors(folder)


if __name__ == "__main__":
    main()
