#!/usr/bin/env python3
"""Writes a whole model in formats of integers, and what they mean: make_models.py BASE FOLDER FORMAT...

BASE                              a Hugging Face folder in bf16: config.json and *.safetensors
FOLDER/FORMAT/config.json         that of BASE, with quantization_config
FOLDER/FORMAT/model.safetensors   the tensors of BASE; of the linear layers those of the format
FOLDER/FORMAT.meant/model.safetensors  the same as bf16 and, of the linear layers, float32

A FORMAT is METHOD-GROUP or METHOD-GROUP-EXTRA+EXTRA..., such as gptq-v1-64-no-g-idx: see METHODS and EXTRAS; or one of
E4M3: fp8-blocks, fp8-channel or fp8-tensor; or of E2M1: nvfp4-c-t, nvfp4-modelopt, mxfp4-c-t or mxfp4-quark;
or of bitsandbytes: nf4 or nf4-single. The
layers are drawn as make_cases.py draws its own, with weights of about the size of BASE's. Needs numpy alone.
"""

import json
import pathlib
import re
import struct
import sys
import zlib

import numpy as np

import make_cases

EIGHT = (8, 8)
BYTES = (128, 128)
# The zeros that are drawn, and how a layer is stored.
METHODS = {
    "gptq-v1": EIGHT, "gptq-v2": EIGHT, "gptq-v1-zeros": (1, 16), "gptq-v2-zeros": (0, 15),
    "awq": EIGHT, "awq-zeros": (0, 15), "c-t": EIGHT, "c-t-zeros": (0, 15), "gptq-v1-bytes": BYTES, "gptq-v2-bytes": BYTES, "c-t-bytes": BYTES}
EXTRAS = ("act-order", "no-g-idx", "zero-g-idx", "bf16-scales", "lm-head", "second-file", "dynamic-eight", "dynamic-skip")
# GPTQModel's overrides of single layers: other bits and groups, or none.
EIGHT_BITS = {"+:.*\\.1\\.self_attn\\.[qkv]_proj": {"bits": 8, "group_size": 32},
              ".*\\.0\\.mlp\\.down": {"bits": 8, "group_size": 32, "sym": True}}
SKIPPED = {"-:.*\\.0\\.self_attn\\.o_proj": {}, "-:model\\.layers\\.1\\.mlp\\.down_proj$": {}}


class Layer(make_cases.Case):
    """A linear layer whose weights vary by 1 / columns."""

    def __init__(self, layer, *args, ordered=False, **more):
        self.layer = layer
        super().__init__(*args, **more)
        if ordered:  # layers that read the same activations have the same order
            read = re.sub(r"(q|k|v|gate|up)_proj$", "", layer)
            self.group_of = np.random.default_rng(zlib.crc32(read.encode())).permutation(self.group_of)

    def draw_scales(self, random, shape):
        unit = (self.columns * (4 ** self.bits - 1) / 12) ** -0.5  # integers 0 to 15 vary by 255 / 12
        return random.uniform(0.75, 1.25, shape) * unit


def read_safetensors(path):
    """Name to array; bf16 as its bits."""
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            assert entry["dtype"] == "BF16", (name, entry["dtype"])
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[8 + size + begin:8 + size + end], np.uint16).reshape(entry["shape"])
    return tensors


class EveryLayer:
    """A format in which all linear layers are but lm_head."""

    lm_head = False
    extras = ()

    def leaves_out(self, _):
        return False


class Format(EveryLayer):
    """What the parts of a format's name say."""

    def __init__(self, name):
        self.name = name
        match = re.fullmatch(r"(.+?)-(one|32|64|128)(?:-(.*))?", name)
        self.method, group = match[1], match[2]
        self.extras = match[3].split("+") if match[3] else []
        assert self.method in METHODS and set(self.extras) <= set(EXTRAS), name
        self.group = -1 if group == "one" else int(group)
        self.zeros = METHODS[self.method]
        self.symmetric = self.zeros in (EIGHT, BYTES)
        self.bits = 8 if self.zeros == BYTES else 4
        self.lm_head = "lm-head" in self.extras

    def config(self):
        if self.method.startswith("gptq"):
            version = "gptq_v2" if "v2" in self.method else "gptq"
            config = make_cases.gptq_config(self.group, self.symmetric, version) | {"dynamic": self.dynamic()}
            return config | {"bits": self.bits, "lm_head": self.lm_head, "desc_act": "act-order" in self.extras}
        if self.method.startswith("awq"):
            return {"quant_method": "awq", "bits": 4, "group_size": self.group, "zero_point": not self.symmetric,
                    "version": "gemm"}
        config = make_cases.compressed_tensors_config(self.group, self.symmetric)
        config["config_groups"]["group_0"]["weights"]["num_bits"] = self.bits
        return config | {"ignore": [] if self.lm_head else ["lm_head"]}

    def dynamic(self):
        if "dynamic-eight" in self.extras:
            return EIGHT_BITS
        return SKIPPED if "dynamic-skip" in self.extras else {}

    def leaves_out(self, prefix):
        return any(re.match(pattern[2:], prefix) for pattern in self.dynamic() if pattern.startswith("-:"))

    def layer(self, prefix, rows, columns):
        scale_type = "bfloat16" if "bf16-scales" in self.extras else "float16"
        bits, group, zeros = self.bits, self.group, self.zeros
        if any(re.match(pattern.removeprefix("+:"), prefix) for pattern in self.dynamic()):
            bits, group, zeros = 8, 32, BYTES
        return Layer(prefix, f"{self.name} {prefix}", rows, columns, group, zeros, scale_type=scale_type,
                     ordered="act-order" in self.extras, bits=bits)

    def tensors(self, _, layer):
        if self.method.startswith("gptq"):
            version = 2 if "v2" in self.method else 1
            if "no-g-idx" in self.extras:
                return layer.gptq(version, None)
            return layer.gptq(version, "zero" if "zero-g-idx" in self.extras else "groups")
        if self.method.startswith("awq"):
            return layer.awq()
        return layer.compressed_tensors(self.symmetric, None, np.dtype("int64"))


def e4m3_values():
    """What each code stands for; the two NaN are 0."""
    codes = np.arange(256)
    exponents, mantissas = codes >> 3 & 15, codes & 7
    magnitudes = np.where(exponents == 0, mantissas / 8 * 2.0 ** -6, (1 + mantissas / 8) * 2.0 ** (exponents - 7.0))
    return np.where(codes & 127 == 127, 0, np.where(codes >= 128, -magnitudes, magnitudes)).astype(np.float32)


class Fp8Layer:
    """Codes in E4M3, all that there are, and scales of the tensor, of rows or of blocks of 128 x 128."""

    def __init__(self, form, seed, rows, columns):
        random = np.random.default_rng(zlib.crc32(seed.encode()))
        self.form = form
        self.codes = random.integers(0, 256, (rows, columns)).astype(np.uint8)
        self.codes[self.codes & 127 == 127] -= 1  # no NaN
        shape = {"blocks": (-(-rows // 128), -(-columns // 128)), "channel": (rows, 1), "tensor": ()}[form]
        scales = random.uniform(0.5, 1.5, shape) * columns ** -0.5 / 108  # codes vary by 108 squared
        # Of rows bf16, as bits.
        self.scales = np.asarray(scales, np.float32)
        if form == "channel":
            self.scales = (self.scales.view(np.uint32) & 0xffff0000).view(np.float32)

    def weight(self):
        scales = self.scales
        if self.form == "blocks":
            scales = np.repeat(np.repeat(scales, 128, 0), 128, 1)[:self.codes.shape[0], :self.codes.shape[1]]
        return e4m3_values()[self.codes] * scales


class Fp8Format(EveryLayer):
    """fp8-blocks: as DeepSeek and Qwen3 are published; fp8-channel: compressed-tensors; fp8-tensor: modelopt."""

    def __init__(self, name):
        self.name = name
        self.form = name.removeprefix("fp8-")

    def config(self):
        if self.form == "blocks":
            return {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128],
                    "modules_to_not_convert": ["lm_head"]}
        if self.form == "tensor":
            return {"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}
        weights = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False}
        group = {"targets": ["Linear"], "weights": weights, "output_activations": None,
                 "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}}
        return {"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
                "quantization_status": "compressed", "config_groups": {"group_0": group}}

    def layer(self, prefix, rows, columns):
        return Fp8Layer(self.form, f"{self.name} {prefix}", rows, columns)

    def tensors(self, prefix, layer):
        stored = {prefix + ".weight": ("F8_E4M3", layer.codes)}
        if self.form == "blocks":
            return stored | {prefix + ".weight_scale_inv": layer.scales}
        if self.form == "channel":
            return stored | {prefix + ".weight_scale": (layer.scales.view(np.uint32) >> 16).astype(np.uint16)}
        return stored | {prefix + ".weight_scale": layer.scales, prefix + ".input_scale": np.float32(1)}


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


class E2m1Layer:
    """All codes in E2M1; of each 16 columns a scale in E4M3, 0 and subnormal ones among them, and a float for all (NVFP4), or of
    each 32 a power of two (MXFP4)."""

    def __init__(self, name, seed, rows, columns):
        random = np.random.default_rng(zlib.crc32(seed.encode()))
        self.is_nvfp4, self.divides = name.startswith("nvfp4"), name.endswith("c-t")
        self.codes = random.integers(0, 16, (rows, columns)).astype(np.uint8)
        size = columns ** -0.5 / 3.4  # codes vary by 3.4 squared
        if self.is_nvfp4:
            self.scales = random.integers(0x58, 0x70, (rows, columns // 16)).astype(np.uint8)  # 16 to 120
            self.scales[random.random(self.scales.shape) < 0.1] = 0
            self.scales[random.random(self.scales.shape) < 0.1] = random.integers(1, 8)
            own = np.float32(size / 56 * random.uniform(0.7, 1.4))
            self.factor = np.float32(1 / own) if self.divides else own
        else:
            self.scales = (127 + np.floor(np.log2(size)) - random.integers(0, 3, (rows, columns // 32))).astype(np.uint8)

    def weight(self):
        """As compressed-tensors' and modelopt's own code computes it, in float32."""
        if not self.is_nvfp4:
            return E2M1[self.codes] * np.repeat(2.0 ** (self.scales - 127.0), 32, 1).astype(np.float32)
        scales = e4m3_values()[self.scales]
        scales = scales / self.factor if self.divides else scales * self.factor
        return E2M1[self.codes] * np.repeat(scales, 16, 1)


class E2m1Format(EveryLayer):
    """As compressed-tensors, modelopt and quark have it; some layers are left out by name, by wildcards or by expressions."""

    def __init__(self, name):
        self.name = name

    def leaves_out(self, prefix):
        return prefix in ("lm_head", "model.layers.1.self_attn.o_proj", "model.layers.0.mlp.down_proj")

    def config(self):
        if self.name == "nvfp4-modelopt":
            return {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "kv_cache_scheme": {"num_bits": 8},
                    "ignore": ["lm_head", "*layers.1.self_attn.o*", "model.layer?.0.mlp.down_proj"]}
        if self.name == "mxfp4-quark":
            weight = {"dtype": "fp4", "qscheme": "per_group", "group_size": 32, "scale_format": "e8m0", "is_dynamic": False}
            return {"quant_method": "quark", "exclude": ["lm_head", "*.1.self_attn.o_proj", "*.0.mlp.down_proj"],
                    "global_quant_config": {"weight": weight, "input_tensors": weight | {"is_dynamic": True},
                                            "output_tensors": None, "bias": None},
                    "layer_quant_config": {"*k_proj": {"weight": weight, "output_tensors": {"dtype": "fp8_e4m3"}}},
                    "export": {"weight_format": "real_quantized", "pack_method": "reorder"}}
        weights = {"num_bits": 4, "type": "float", "symmetric": True, "dynamic": False}
        weights |= ({"strategy": "tensor_group", "group_size": 16} if self.name.startswith("nvfp4")
                    else {"strategy": "group", "group_size": 32})
        group = {"targets": ["Linear"], "weights": weights, "output_activations": None,
                 "input_activations": weights | {"dynamic": "local"}}
        return {"quant_method": "compressed-tensors", "format": self.name[:5] + "-pack-quantized",
                "quantization_status": "compressed", "config_groups": {"group_0": group},
                "ignore": ["lm_head", "re:.*layers\\.1\\.self_attn\\.o_proj$", "model.layers.0.mlp.down_proj"]}

    def layer(self, prefix, rows, columns):
        return E2m1Layer(self.name, f"{self.name} {prefix}", rows, columns)

    def tensors(self, prefix, layer):
        packed = layer.codes[:, 0::2] | layer.codes[:, 1::2] << 4
        name = prefix + (".weight_packed" if self.name.endswith("c-t") else ".weight")
        stored = {name: ("U8", packed), prefix + ".input_scale": np.float32(1)}
        if not layer.is_nvfp4:
            return stored | {prefix + ".weight_scale": ("U8", layer.scales)}
        stored[prefix + ".weight_scale"] = ("F8_E4M3", layer.scales)
        if layer.divides:
            return stored | {prefix + ".weight_global_scale": np.array([layer.factor])}
        return stored | {prefix + ".weight_scale_2": layer.factor}


NF4 = np.array([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
                -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
                0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023,
                1.0], np.float32)


class Nf4Layer:
    """Codes of the flattened matrix, 64 with a scale, a float or a code of 8 bits of a table, 256 of these with a float."""

    def __init__(self, is_nested, seed, rows, columns):
        random = np.random.default_rng(zlib.crc32(seed.encode()))
        self.shape, self.is_nested = (rows, columns), is_nested
        self.codes = random.integers(0, 16, rows * columns).astype(np.uint8)
        blocks = rows * columns // 64
        self.table = np.sort(random.uniform(-1, 1, 256)).astype(np.float32)
        size = columns ** -0.5 / 0.56  # the table varies by 0.56 squared
        self.nested = random.integers(0, 256, blocks).astype(np.uint8)
        self.nested_scales = (random.uniform(0.3, 0.4, -(-blocks // 256)) * size).astype(np.float32)
        self.offset = float(np.float32(size))
        self.scales = (random.uniform(0.7, 1.4, blocks) * size).astype(np.float32)

    def weight(self):
        """As bitsandbytes' own code computes it in float32, and rounds it to bf16."""
        scales = self.scales
        if self.is_nested:
            scales = self.table[self.nested] * np.repeat(self.nested_scales, 256)[:len(self.nested)]
            scales = scales + np.float32(self.offset)
        bits = (NF4[self.codes] * np.repeat(scales, 64)).reshape(self.shape).view(np.uint32)
        return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype(np.uint32).view(np.float32)


class Nf4Format(EveryLayer):
    """nf4: as bitsandbytes stores it with double quantisation; nf4-single: without."""

    def __init__(self, name):
        self.name = name

    def config(self):
        return {"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False, "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_quant_storage": "uint8", "bnb_4bit_use_double_quant": self.name == "nf4"}

    def layer(self, prefix, rows, columns):
        return Nf4Layer(self.name == "nf4", f"{self.name} {prefix}", rows, columns)

    def tensors(self, prefix, layer):
        name = prefix + ".weight"
        state = {"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": list(layer.shape)}
        stored = {name: ("U8", (layer.codes[0::2] << 4 | layer.codes[1::2]).reshape(-1, 1)), name + ".quant_map": NF4}
        if layer.is_nested:
            state |= {"nested_blocksize": 256, "nested_dtype": "float32", "nested_offset": layer.offset}
            stored |= {name + ".absmax": ("U8", layer.nested), name + ".nested_absmax": layer.nested_scales,
                       name + ".nested_quant_map": layer.table}
        else:
            stored[name + ".absmax"] = layer.scales
        text = np.frombuffer(json.dumps(state).encode(), np.uint8)
        return stored | {name + ".quant_state.bitsandbytes__nf4": ("U8", text)}


def format_of(name):
    if name.startswith("nf4"):
        return Nf4Format(name)
    if name.startswith("fp8"):
        return Fp8Format(name)
    return E2m1Format(name) if name.startswith(("nvfp4", "mxfp4")) else Format(name)


def write(base, folder, chosen):
    stored, meant = {}, {}
    tensors = {}
    for path in sorted(base.glob("*.safetensors")):
        tensors |= read_safetensors(path)
    for name, bits in tensors.items():
        prefix = name.removesuffix(".weight")
        if not (prefix.endswith("_proj") or (prefix == "lm_head" and chosen.lm_head)) or chosen.leaves_out(prefix):
            stored[name] = meant[name] = bits
            continue
        layer = chosen.layer(prefix, *bits.shape)
        stored |= chosen.tensors(prefix, layer)
        meant[name] = layer.weight()
    config = json.loads((base / "config.json").read_text())
    quantization = chosen.config()
    (folder / chosen.name).mkdir(parents=True)
    if "second-file" in chosen.extras:
        (folder / chosen.name / "quantize_config.json").write_text(json.dumps(quantization))
    else:
        config["quantization_config"] = quantization
    (folder / chosen.name / "config.json").write_text(json.dumps(config))
    make_cases.save(folder / chosen.name / "model.safetensors", stored)
    (folder / (chosen.name + ".meant")).mkdir()
    make_cases.save(folder / (chosen.name + ".meant") / "model.safetensors", meant)


def main():
    base, folder = map(pathlib.Path, sys.argv[1:3])
    for name in sys.argv[3:]:
        write(base, folder, format_of(name))


main()
