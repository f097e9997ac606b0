#!/usr/bin/env python3
"""A peer for soliton-bench: compiled PyTorch decoding of a Llama or Qwen shape at batch 1, with random weights.

    baseline.py models/llama-3.1-8b.yaml -d 128,1024,6144 -n 128 -r 5 --json-file peer.json
    baseline.py models/llama-3.1-8b.yaml --int4 -d 6144    with 4-bit weights in groups of 128
    baseline.py --self-check    on the CPU, in float32: the same logits and greedy tokens as transformers?

Each step is one call of torch.compile's code, with CUDA graphs in both compiled modes. Token, position and
cache stay on the device, so that nothing waits for the host between tokens. A row's time per token is that
of its n tokens between two CUDA events, over n; the median over the repeats. The cache is as long as the row
needs, rounded up to 128, and filled with random keys and values.

--attention picks how a token attends, since PyTorch has no single best way: sdpa is
scaled_dot_product_attention with enable_gqa, grouped is two batched products around a softmax, flex is
flex_attention, which splits the context over the GPU, repeated gives each query head its own copy of the
keys and values and leaves the rest to Inductor, as gpt-fast does.

--int4 multiplies with PyTorch's own weight-only kernels, as gpt-fast does: integers of 4 bits, a bf16 scale
and zero for each group of a row, activations in bf16. The lm_head stays in bf16 unless --int4-lm-head. A shape
whose yaml has the key quantization is decoded so without the flag, in its groups.

Exit status: 0 good, 1 the self-check failed, 2 unusable input, in one line.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import platform
import statistics
import sys
import time
import types
import warnings
from typing import Any, Callable, NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention

CACHE_MULTIPLE = 128  # tokens
COMPILE_STEPS = 3  # compile and run, record the CUDA graph, replay it
INT4_GROUPS = (32, 64, 128, 256)  # of columns, that PyTorch's kernels take
INT4_GROUP = 128
INT4_ROWS = {"cuda": 8, "cpu": 16}  # of a tile of the kernels, for each kind of device
ROPE_KINDS = ("default", "llama3", "linear", "yarn")
SEED = 1
INT4_LIMIT = 0.02  # of a product, relative to its largest element: bf16 holds 8 bits
SELF_CHECK_LIMIT = 1e-4  # of the logits
SELF_CHECK_PROMPT = 64
SELF_CHECK_TOKENS = 192


class Unusable(Exception):
    """What the user gave cannot be used; the message is one line."""


# ---- The shape.

@dataclasses.dataclass(frozen=True)
class Rope:
    kind: str
    theta: float
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 1.0
    original_context: int = 0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float = 0.0  # 0: what the factor implies
    truncate: bool = True

    @property
    def scale(self) -> float:
        """Of cosine and sine."""
        if self.kind != "yarn":
            return 1.0
        return self.attention_factor or 0.1 * math.log(self.factor) + 1.0


@dataclasses.dataclass(frozen=True)
class Quantization:
    bits: int
    group: int
    symmetric: bool
    act_order: bool
    lm_head: bool


@dataclasses.dataclass(frozen=True)
class Facts:
    """The keys of models/*.yaml."""
    name: str
    hidden: int
    ffn: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    vocabulary: int
    tied_lm_head: bool
    max_context: int
    norm_epsilon: float
    rope: Rope
    qkv_bias: bool = False
    head_norm: bool = False
    quantization: Quantization | None = None

    @property
    def q_rows(self) -> int:
        return self.num_heads * self.head_dim

    @property
    def kv_rows(self) -> int:
        return self.num_kv_heads * self.head_dim


def parse_simple_yaml(text: str) -> dict[str, Any]:
    """`key: value` lines with maps one level deep, which is all that models/*.yaml use. Values stay text."""
    document: dict[str, Any] = {}
    inner = document
    for line in text.splitlines():
        line = line.split("#")[0].rstrip()
        if not line:
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise ValueError(f"expected key: value, got {line.strip()!r}")
        if not key.startswith(" "):
            inner = document
        if value.strip():
            inner[key.strip()] = value.strip()
        else:
            inner = document[key.strip()] = {}
    return document


def parse_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        return parse_simple_yaml(text)
    try:
        return yaml.load(text, yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error


def typed(kind: type, document: Any) -> Any:
    """A Facts, or what is inside of it, of a map whose values are text."""
    if not isinstance(document, dict):
        raise ValueError(f"expected a map, got {document!r}")
    names = [field.name for field in dataclasses.fields(kind)]
    if unknown := [key for key in document if key not in names]:
        raise ValueError(f"expected the keys {', '.join(names)}, got {unknown[0]}")
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name not in document:
            if field.default is dataclasses.MISSING:
                raise ValueError(f"expected the key {field.name}, got none")
            continue
        text = document[field.name]
        inner = field.type.__args__[0] if isinstance(field.type, types.UnionType) else field.type
        if dataclasses.is_dataclass(inner):
            values[field.name] = typed(inner, text)
        elif field.type is bool:
            if text not in ("true", "false"):
                raise ValueError(f"{field.name}: expected true or false, got {text!r}")
            values[field.name] = text == "true"
        else:
            try:
                values[field.name] = field.type(text)
            except (TypeError, ValueError):
                raise ValueError(f"{field.name}: expected {field.type.__name__}, got {text!r}") from None
    return kind(**values)


def read_facts(path: pathlib.Path) -> Facts:
    try:
        facts = typed(Facts, parse_yaml(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise Unusable(f"{path}: expected a file that can be read, got: {error.strerror}") from error
    except ValueError as error:
        raise Unusable(f"{path}: {error}") from error
    if facts.rope.kind not in ROPE_KINDS:
        raise Unusable(f"{path}: rope.kind: expected one of {', '.join(ROPE_KINDS)}, got {facts.rope.kind!r}")
    if facts.quantization and facts.quantization.bits != 4:
        raise Unusable(f"{path}: quantization.bits: expected 4, got {facts.quantization.bits}")
    sizes = (facts.hidden, facts.ffn, facts.num_layers, facts.num_heads, facts.num_kv_heads, facts.head_dim,
             facts.vocabulary, facts.max_context)
    if min(sizes) < 1 or facts.num_heads % facts.num_kv_heads or facts.head_dim % 2:
        raise Unusable(f"{path}: expected positive sizes, num_kv_heads that divides num_heads and an even "
                       "head_dim")
    return facts


# ---- The model.

def inverse_frequencies(facts: Facts) -> Tensor:
    """Of each pair of a head's elements, in radians a token."""
    rope = facts.rope
    exponents = torch.arange(0, facts.head_dim, 2, dtype=torch.float32) / facts.head_dim
    plain = 1.0 / rope.theta ** exponents
    if rope.kind == "default":
        return plain
    if rope.kind == "linear":
        return plain / rope.factor
    if rope.kind == "yarn":
        return yarn_frequencies(facts, plain)
    # Slow pairs are slowed down further, fast ones kept, those between the two interpolated.
    turns = rope.original_context * plain / (2 * math.pi)
    kept = (turns - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    return torch.lerp(plain / rope.factor, plain, kept.clamp(0, 1))


def yarn_frequencies(facts: Facts, plain: Tensor) -> Tensor:
    """Pairs that turn often within the original context are kept, those that turn seldom slowed down."""
    rope = facts.rope

    def pair_of(turns: float) -> float:
        return (facts.head_dim * math.log(rope.original_context / (turns * 2 * math.pi))
                / (2 * math.log(rope.theta)))

    first, last = pair_of(rope.beta_fast), pair_of(rope.beta_slow)
    if rope.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, facts.head_dim - 1)
    pairs = torch.arange(facts.head_dim // 2, dtype=torch.float32)
    slowed = ((pairs - first) / max(last - first, 0.001)).clamp(0, 1)
    return torch.lerp(plain, plain / rope.factor, slowed)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1).to(x.dtype)


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    wide = x.float()
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)).to(x.dtype) * weight


# Each takes queries [num_heads][head_dim], keys and values [num_kv_heads][context][head_dim] and the token's
# position [1], and gives [num_heads][head_dim].

def visible(position: Tensor, context: int) -> Tensor:
    return torch.arange(context, device=position.device) <= position


def attend_sdpa(q: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    mask = visible(position, keys.shape[1])[None, None, None]
    return F.scaled_dot_product_attention(q[None, :, None], keys[None], values[None], attn_mask=mask,
                                          enable_gqa=True)[0, :, 0]


def attend_repeated(q: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    group = q.shape[0] // keys.shape[0]
    keys, values = keys.repeat_interleave(group, 0), values.repeat_interleave(group, 0)
    mask = visible(position, keys.shape[1])[None, None, None]
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q[None, :, None], keys[None], values[None],
                                              attn_mask=mask)[0, :, 0]


def attend_grouped(q: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    grouped = q.view(keys.shape[0], -1, q.shape[-1]) * q.shape[-1] ** -0.5
    scores = (grouped @ keys.transpose(1, 2)).float()
    scores = scores.masked_fill(~visible(position, keys.shape[1]), -math.inf)
    return (scores.softmax(-1).to(q.dtype) @ values).view_as(q)


def attend_flex(q: Tensor, keys: Tensor, values: Tensor, position: Tensor) -> Tensor:
    last = position[0]

    def score(value: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return torch.where(key <= last, value, -math.inf)

    return flex_attention(q[None, :, None], keys[None], values[None], score_mod=score,
                          enable_gqa=True)[0, :, 0]


ATTENTION: dict[str, Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]] = {
    "sdpa": attend_sdpa, "grouped": attend_grouped, "flex": attend_flex, "repeated": attend_repeated}


@dataclasses.dataclass(frozen=True)
class Int4:
    """Which matrices are of 4-bit integers, and how."""
    group: int
    lm_head: bool


class Matrix(nn.Module):
    """[rows][columns] of the default type."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, columns), requires_grad=False)

    def randomise(self) -> None:
        """Variance 1 / columns, so that activations neither vanish nor overflow."""
        self.weight.normal_(std=self.weight.shape[1] ** -0.5)

    def num_bytes(self) -> int:
        return self.weight.numel() * self.weight.element_size()

    def dense(self) -> Tensor:
        return self.weight

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


class Int4Matrix(nn.Module):
    """[rows][columns] of weights scale * (integer - 8) + zero, in the order that PyTorch's kernels want."""
    integers: Tensor  # of 4 bits, packed
    scales_and_zeros: Tensor  # [columns / group][rows][2], of the default type

    def __init__(self, rows: int, columns: int, group: int) -> None:
        super().__init__()
        self.rows, self.columns, self.group = rows, columns, group
        scales_and_zeros = torch.empty(columns // group, rows, 2)
        tile_rows = INT4_ROWS[scales_and_zeros.device.type]
        if rows % tile_rows or columns % group:
            raise Unusable(f"--int4: expected matrices of a multiple of {tile_rows} rows and {group} columns, "
                           f"for PyTorch's kernels, got {rows} x {columns}")
        self.register_buffer("scales_and_zeros", scales_and_zeros)
        self.register_buffer("integers", None)

    def set(self, integers: Tensor, scales: Tensor, zeros: Tensor) -> None:
        """integers: two to a byte, of neighbouring columns, the first one in the upper bits."""
        self.scales_and_zeros.copy_(torch.stack([scales, zeros], dim=-1))
        if integers.is_cuda:
            # How many tiles of 16 columns a lane loads at once: as many as fit.
            tiles = next(count for count in (8, 4, 2) if self.columns % (16 * count) == 0)
            self.integers = torch.ops.aten._convert_weight_to_int4pack(integers, tiles)
        else:
            wide = torch.stack([integers >> 4, integers & 15], dim=-1).view(self.rows, self.columns)
            self.integers = torch.ops.aten._convert_weight_to_int4pack_for_cpu(wide.int(), 2)

    def draw(self) -> tuple[Tensor, Tensor, Tensor]:
        """For set(): with a variance of about 1 / columns, as the integers 0 to 15 have one of 255 / 12."""
        device = self.scales_and_zeros.device
        shape = self.scales_and_zeros.shape[:2]
        integers = torch.randint(256, (self.rows, self.columns // 2), dtype=torch.uint8, device=device)
        scales = torch.empty(shape, device=device).uniform_(0.75, 1.25) * (self.columns * 255 / 12) ** -0.5
        return integers, scales, scales * torch.empty(shape, device=device).uniform_(0, 1)

    def randomise(self) -> None:
        self.set(*self.draw())

    def num_bytes(self) -> int:
        return sum(buffer.numel() * buffer.element_size() for buffer in (self.integers, self.scales_and_zeros))

    def dense(self) -> Tensor:
        """What the kernels take the weights for: small matrices only."""
        return self(torch.eye(self.columns)).T.contiguous()

    def forward(self, x: Tensor) -> Tensor:
        if x.is_cuda:
            return torch.ops.aten._weight_int4pack_mm(x, self.integers, self.group, self.scales_and_zeros)
        return torch.ops.aten._weight_int4pack_mm_for_cpu(x, self.integers, self.group, self.scales_and_zeros)


def make_matrix(rows: int, columns: int, int4: Int4 | None) -> Matrix | Int4Matrix:
    return Int4Matrix(rows, columns, int4.group) if int4 else Matrix(rows, columns)


def vector(size: int) -> nn.Parameter:
    """Of a norm's weights, or of biases."""
    return nn.Parameter(torch.ones(size), requires_grad=False)


class Layer(nn.Module):
    keys: Tensor  # [num_kv_heads][context][head_dim]
    values: Tensor

    def __init__(self, facts: Facts, attention: str, int4: Int4 | None) -> None:
        super().__init__()
        self.facts = facts
        self.attend = ATTENTION[attention]
        self.attention_norm = vector(facts.hidden)
        self.qkv = make_matrix(facts.q_rows + 2 * facts.kv_rows, facts.hidden, int4)
        self.qkv_bias = vector(facts.q_rows + 2 * facts.kv_rows) if facts.qkv_bias else None
        self.q_norm = vector(facts.head_dim) if facts.head_norm else None
        self.k_norm = vector(facts.head_dim) if facts.head_norm else None
        self.o = make_matrix(facts.hidden, facts.q_rows, int4)
        self.ffn_norm = vector(facts.hidden)
        self.gate_up = make_matrix(2 * facts.ffn, facts.hidden, int4)
        self.down = make_matrix(facts.hidden, facts.ffn, int4)

    def make_cache(self, context: int) -> None:
        """Of its own tensors: as slices of one, each layer's update would be one of the whole cache."""
        shape = (self.facts.num_kv_heads, context, self.facts.head_dim)
        self.register_buffer("keys", torch.empty(shape, device=self.ffn_norm.device,
                                                 dtype=self.ffn_norm.dtype).normal_())
        self.register_buffer("values", torch.empty_like(self.keys).normal_())

    def forward(self, x: Tensor, position: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        facts = self.facts
        qkv = self.qkv(rms_norm(x, self.attention_norm, facts.norm_epsilon))
        if self.qkv_bias is not None:
            qkv = qkv + self.qkv_bias
        q, k, v = qkv.view(-1, facts.head_dim).split(
            [facts.num_heads, facts.num_kv_heads, facts.num_kv_heads])
        if self.q_norm is not None:
            q, k = rms_norm(q, self.q_norm, facts.norm_epsilon), rms_norm(k, self.k_norm, facts.norm_epsilon)
        self.keys.index_copy_(1, position, rotate(k, cosine, sine)[:, None])
        self.values.index_copy_(1, position, v[:, None])
        heads = self.attend(rotate(q, cosine, sine), self.keys, self.values, position)
        x = x + self.o(heads.reshape(1, -1))
        gate, up = self.gate_up(rms_norm(x, self.ffn_norm, facts.norm_epsilon)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    """The state of a decode lies in buffers, whose addresses CUDA graphs can rely on."""
    token: Tensor  # [1]
    position: Tensor  # [1]
    cosines: Tensor  # [context][head_dim / 2]
    sines: Tensor

    def __init__(self, facts: Facts, attention: str, int4: Int4 | None = None) -> None:
        super().__init__()
        self.facts = facts
        self.embedding = Matrix(facts.vocabulary, facts.hidden)
        self.layers = nn.ModuleList(Layer(facts, attention, int4) for _ in range(facts.num_layers))
        self.norm = vector(facts.hidden)
        int4_lm_head = int4 if int4 and int4.lm_head else None
        tied = facts.tied_lm_head and not int4_lm_head
        self.lm_head = self.embedding if tied else make_matrix(facts.vocabulary, facts.hidden, int4_lm_head)
        self.register_buffer("token", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("position", torch.zeros(1, dtype=torch.int64))

    def matrices(self) -> list[Matrix | Int4Matrix]:
        return [module for module in self.modules() if isinstance(module, (Matrix, Int4Matrix))]

    def randomise(self) -> None:
        for matrix in self.matrices():
            matrix.randomise()

    def make_cache(self, context: int) -> None:
        for layer in self.layers:
            layer.make_cache(context)
        angles = torch.outer(torch.arange(context, dtype=torch.float32), inverse_frequencies(self.facts))
        scale = self.facts.rope.scale
        self.register_buffer("cosines", (angles.cos() * scale).to(self.norm.device))
        self.register_buffer("sines", (angles.sin() * scale).to(self.norm.device))

    def drop_cache(self) -> None:
        for module in (self, *self.layers):
            for name in ("cosines", "sines", "keys", "values"):
                if hasattr(module, name):
                    delattr(module, name)

    def set_state(self, token: int, position: int) -> None:
        self.token.fill_(token)
        self.position.fill_(position)

    def step(self) -> Tensor:
        """Feeds `token` at `position`, and sets both to the next. Returns logits [1][vocabulary]."""
        cosine, sine = self.cosines[self.position], self.sines[self.position]
        x = F.embedding(self.token, self.embedding.weight)
        for layer in self.layers:
            x = layer(x, self.position, cosine, sine)
        logits = self.lm_head(rms_norm(x, self.norm, self.facts.norm_epsilon))
        self.token.copy_(logits.argmax(-1))
        self.position.add_(1)
        return logits

    def matrix_bytes(self) -> int:
        """That each token must read."""
        unread = None if self.lm_head is self.embedding else self.embedding
        return sum(matrix.num_bytes() for matrix in self.matrices() if matrix is not unread)

    def kv_bytes(self, position: int) -> int:
        return 2 * position * self.facts.num_layers * self.facts.kv_rows * self.norm.element_size()


def compiled_step(model: Decoder, mode: str) -> Callable[[], Tensor]:
    if mode == "eager":
        return model.step
    # Lets matrix-vector products become fused reductions, which read faster than cuBLAS.
    torch._inductor.config.coordinate_descent_tuning = True
    return torch.compile(model.step, mode=mode, fullgraph=True, dynamic=False)


# ---- The measurement.

@dataclasses.dataclass
class Row:
    test: str
    tokens_per_s: float
    token_us_p50: float
    token_bytes: int
    bytes_per_s: float


def time_tokens(model: Decoder, step: Callable[[], Tensor], depth: int, count: int) -> float:
    """Microseconds per token."""
    model.set_state(0, depth)
    step()  # gives the host a lead, so that the first measured step does not wait for its launch
    model.set_state(0, depth)
    if not model.token.is_cuda:
        begin = time.perf_counter()
        for _ in range(count):
            step()
        return (time.perf_counter() - begin) * 1e6 / count
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(count):
        torch.compiler.cudagraph_mark_step_begin()
        step()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3 / count


def measure(model: Decoder, mode: str, depth: int, count: int, repeats: int) -> Row:
    torch.compiler.reset()  # each depth has a cache of its own size, so code of its own
    model.drop_cache()
    model.make_cache(-(-(depth + count) // CACHE_MULTIPLE) * CACHE_MULTIPLE)
    step = compiled_step(model, mode)
    for _ in range(COMPILE_STEPS):
        model.set_state(0, depth)
        step()
    time_tokens(model, step, depth, count)  # warms up
    us = statistics.median(time_tokens(model, step, depth, count) for _ in range(repeats))
    token_bytes = model.matrix_bytes() + model.kv_bytes(depth + count // 2)
    return Row(test=f"tg{count} @ d{depth}" if depth else f"tg{count}", tokens_per_s=1e6 / us,
               token_us_p50=us, token_bytes=token_bytes, bytes_per_s=token_bytes / us * 1e6)


def device_name(device: str) -> str:
    return torch.cuda.get_device_name() if device == "cuda" else platform.processor() or platform.machine()


def markdown(row: Row) -> str:
    return (f"| {row.test} | {row.tokens_per_s:.2f} | {row.token_us_p50:.1f} | {row.token_bytes * 1e-9:.3f} "
            f"| {row.bytes_per_s * 1e-12:.3f} |")


def int4_of(options: argparse.Namespace, facts: Facts) -> Int4 | None:
    """What the command line asks for; what it leaves open the shape may say."""
    stated = facts.quantization
    if not (options.int4 or options.int4_lm_head or stated):
        if options.group:
            raise Unusable("--group: expected --int4 with it, got none")
        return None
    group = options.group or (stated.group if stated else INT4_GROUP)
    if group not in INT4_GROUPS:
        raise Unusable(f"--group: expected one of {', '.join(map(str, INT4_GROUPS))}, which PyTorch's kernels "
                       f"take, got {group}")
    return Int4(group, options.int4_lm_head or bool(stated and stated.lm_head))


def check_int4(device: str, group: int) -> None:
    """Does a product with PyTorch's kernels agree with its definition?"""
    try:
        with torch.device(device):
            matrix = Int4Matrix(64, 1024, group)
            integers, scales, zeros = matrix.draw()
            matrix.set(integers, scales, zeros)
            x = torch.randn(1, 1024)
            got = matrix(x).double()
            values = torch.stack([integers >> 4, integers & 15], dim=-1).view(64, -1, group).double() - 8
            scales, zeros = (part.double()[..., None] for part in matrix.scales_and_zeros.permute(2, 1, 0))
            expected = x.double() @ (scales * values + zeros).reshape(64, 1024).T
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, AttributeError) as error:
        raise Unusable("--int4: expected PyTorch's int4 kernels to run on this device, got: "
                       f"{str(error).splitlines()[0]}") from error
    difference = float((got - expected).abs().max() / expected.abs().max())
    if not difference <= INT4_LIMIT:
        raise Unusable("--int4: expected PyTorch's int4 product to be that of its integers within "
                       f"{INT4_LIMIT}, got a relative difference of {difference:.3g}")


def format_name(int4: Int4 | None) -> str:
    if int4 is None:
        return "bf16"
    return f"int4 in groups of {int4.group}, lm_head in {'int4' if int4.lm_head else 'bf16'}"


def bench(options: argparse.Namespace) -> None:
    facts = read_facts(options.model)
    int4 = int4_of(options, facts)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise Unusable("--device: expected a CUDA device for cuda, got none")
    needed = max(options.depths) + options.tokens
    if needed > facts.max_context:
        raise Unusable(f"--n-depth and --n-gen: expected at most the model's {facts.max_context} tokens, "
                       f"got {needed}")
    if options.json_file and not options.json_file.absolute().parent.is_dir():
        raise Unusable(f"{options.json_file}: expected a file in a folder that exists")
    torch.manual_seed(SEED)
    torch.set_default_dtype(torch.bfloat16)
    if int4:
        check_int4(options.device, int4.group)
    with torch.device(options.device):
        model = Decoder(facts, options.attention, int4)
        model.randomise()
    print(f"{facts.name} on {device_name(options.device)}, {format_name(int4)}, torch {torch.__version__}, "
          f"{options.mode}, {options.attention}\n\n| test | t/s | us a token | GB a token | TB/s |\n"
          "| --- | --- | --- | --- | --- |", flush=True)
    rows = []
    for depth in options.depths:
        rows.append(measure(model, options.mode, depth, options.tokens, options.repeats))
        print(markdown(rows[-1]), flush=True)
    if options.json_file:
        document = {"command": " ".join(["baseline.py", *sys.argv[1:]]), "program": "baseline.py",
                    "model": facts.name, "weights": "random", "format": format_name(int4),
                    "device": device_name(options.device), "torch": torch.__version__, "mode": options.mode,
                    "attention": options.attention, "repeats": options.repeats,
                    "rows": [dataclasses.asdict(row) for row in rows]}
        try:
            options.json_file.write_text(json.dumps(document, indent=2) + "\n")
        except OSError as error:
            raise Unusable(f"{options.json_file}: expected a file that can be written, "
                           f"got: {error.strerror}") from error


# ---- The self-check.

def transformers_model(model: Decoder) -> nn.Module:
    """transformers' model with the same weights."""
    try:
        import transformers
    except ImportError as error:
        raise Unusable("--self-check: expected transformers to be installed, got none") from error
    facts, rope = model.facts, model.facts.rope
    parameters: dict[str, Any] = {"rope_type": rope.kind, "rope_theta": rope.theta}
    if rope.kind != "default":
        parameters["factor"] = rope.factor
    if rope.kind in ("llama3", "yarn"):
        parameters["original_max_position_embeddings"] = rope.original_context
    if rope.kind == "llama3":
        parameters |= {"low_freq_factor": rope.low_freq_factor, "high_freq_factor": rope.high_freq_factor}
    if rope.kind == "yarn":
        parameters |= {"beta_fast": rope.beta_fast, "beta_slow": rope.beta_slow, "truncate": rope.truncate,
                       "attention_factor": rope.scale}
    family = "qwen3" if facts.head_norm else "qwen2" if facts.qkv_bias else "llama"
    theirs = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(
        family, hidden_size=facts.hidden, intermediate_size=facts.ffn, num_hidden_layers=facts.num_layers,
        num_attention_heads=facts.num_heads, num_key_value_heads=facts.num_kv_heads, head_dim=facts.head_dim,
        vocab_size=facts.vocabulary, max_position_embeddings=facts.max_context,
        rms_norm_eps=facts.norm_epsilon, rope_parameters=parameters,
        tie_word_embeddings=model.lm_head is model.embedding), attn_implementation="eager").float().eval()
    state = {"model.embed_tokens.weight": model.embedding.dense(), "model.norm.weight": model.norm,
             "lm_head.weight": model.lm_head.dense()}
    for i, layer in enumerate(model.layers):
        q, k, v = layer.qkv.dense().split([facts.q_rows, facts.kv_rows, facts.kv_rows])
        gate, up = layer.gate_up.dense().chunk(2)
        for name, tensor in {"input_layernorm": layer.attention_norm, "self_attn.q_proj": q,
                             "self_attn.k_proj": k, "self_attn.v_proj": v, "self_attn.o_proj": layer.o.dense(),
                             "post_attention_layernorm": layer.ffn_norm, "mlp.gate_proj": gate,
                             "mlp.up_proj": up, "mlp.down_proj": layer.down.dense()}.items():
            state[f"model.layers.{i}.{name}.weight"] = tensor
        if layer.qkv_bias is not None:
            for name, bias in zip("qkv", layer.qkv_bias.split([facts.q_rows, facts.kv_rows, facts.kv_rows])):
                state[f"model.layers.{i}.self_attn.{name}_proj.bias"] = bias
        if layer.q_norm is not None:
            state[f"model.layers.{i}.self_attn.q_norm.weight"] = layer.q_norm
            state[f"model.layers.{i}.self_attn.k_norm.weight"] = layer.k_norm
    theirs.load_state_dict(state)  # strict: every tensor, and no other
    return theirs


def decode(model: Decoder, step: Callable[[], Tensor], prompt: list[int]) -> tuple[list[int], Tensor]:
    """Prompt and greedy tokens, and the logits at each of their positions."""
    tokens, logits = list(prompt), []
    for position in range(len(prompt) + SELF_CHECK_TOKENS):
        if position == len(tokens):
            tokens.append(int(model.token))
        model.set_state(tokens[position], position)
        logits.append(step().clone()[0])
    return tokens, torch.stack(logits)


def agrees(facts: Facts, attention: str, mode: str, int4: Int4 | None = None) -> bool:
    torch.compiler.reset()
    torch.manual_seed(SEED)
    model = Decoder(facts, attention, int4)
    model.randomise()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.uniform_(0.75, 1.25)  # 1 could as well be left out of a norm, or be any bias
    model.make_cache(-(-(SELF_CHECK_PROMPT + SELF_CHECK_TOKENS) // CACHE_MULTIPLE) * CACHE_MULTIPLE)
    prompt = torch.randint(facts.vocabulary, (SELF_CHECK_PROMPT,)).tolist()
    tokens, logits = decode(model, compiled_step(model, mode), prompt)
    theirs = transformers_model(model)(torch.tensor([tokens]), use_cache=False).logits[0]
    # Each of our tokens follows ours before it. If each is also transformers' choice, so is the sequence.
    chosen = torch.tensor(tokens[SELF_CHECK_PROMPT:])
    equal = int((theirs.argmax(-1)[SELF_CHECK_PROMPT - 1:-1] == chosen).sum())
    difference = float((logits - theirs).abs().max())  # NaN passes no limit
    good = difference <= SELF_CHECK_LIMIT and equal == SELF_CHECK_TOKENS
    kind = f"{attention}, {format_name(int4)}" if int4 else attention
    print(f"{facts.name}, {kind}, {mode}: logits up to {float(theirs.abs().max()):.2f}, max difference "
          f"{difference:.3g}, {equal} of {SELF_CHECK_TOKENS} greedy tokens equal: "
          f"{'ok' if good else 'DIFFERS'}", flush=True)
    return good


def self_check(mode: str) -> bool:
    """With a context beyond rope.original_context and frequencies in all three bands."""
    llama3 = Facts(name="llama3 tied", hidden=128, ffn=192, num_layers=3, num_heads=4, num_kv_heads=2,
                   head_dim=64, vocabulary=515, tied_lm_head=True, max_context=1024, norm_epsilon=1e-5,
                   rope=Rope("llama3", 10000.0, 8.0, 1.0, 4.0, 128))
    default = dataclasses.replace(llama3, name="default untied", num_heads=8, tied_lm_head=False,
                                  rope=Rope("default", 10000.0))
    qwen2 = dataclasses.replace(default, name="qwen2 yarn", qkv_bias=True,
                                rope=Rope("yarn", 10000.0, 8.0, original_context=128))
    qwen3 = dataclasses.replace(llama3, name="qwen3 linear", head_norm=True, rope=Rope("linear", 10000.0, 2.0))
    warnings.filterwarnings("ignore", "flex_attention called without torch.compile")
    kinds = list(ATTENTION)
    if mode != "eager":
        print("flex: left out, PyTorch's compiler for CPUs fails on it")
        kinds.remove("flex")
    results = [agrees(facts, attention, mode) for facts in (llama3, default) for attention in kinds]
    results += [agrees(facts, kinds[0], mode) for facts in (qwen2, qwen3)]
    # Of integers whole tiles of rows only, so another vocabulary for their lm_head.
    check_int4("cpu", 128)
    whole = dataclasses.replace(default, name="default untied", vocabulary=528)
    for facts, int4 in ((llama3, Int4(64, False)), (whole, Int4(32, True)),
                        (dataclasses.replace(llama3, vocabulary=528), Int4(64, True))):
        results.append(agrees(facts, kinds[0], mode, int4))
    return all(results)


# ---- The command line.

class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Unusable(message)


def at_least(minimum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.strip().isdecimal() or int(text) < minimum:
            raise argparse.ArgumentTypeError(f"expected a number of at least {minimum}, got {text!r}")
        return int(text)
    return parse


def depth_list(text: str) -> list[int]:
    return [at_least(0)(part) for part in text.split(",")]


def parse_options() -> argparse.Namespace:
    parser = Parser(prog="baseline.py", description=__doc__,
                    formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=pathlib.Path,
                        help="a shape, such as models/llama-3.1-8b.yaml")
    parser.add_argument("-d", "--n-depth", dest="depths", metavar="LIST", type=depth_list, default=[0],
                        help="tokens in the cache before, a list (default 0)")
    parser.add_argument("-n", "--n-gen", dest="tokens", metavar="N", type=at_least(1), default=128,
                        help="tokens to generate (default 128)")
    parser.add_argument("-r", "--repetitions", dest="repeats", metavar="N", type=at_least(1), default=5,
                        help="repeats of each test (default 5)")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--mode", choices=["eager", "reduce-overhead", "max-autotune"],
                        help="default reduce-overhead; eager on the CPU and for --self-check")
    parser.add_argument("--attention", choices=list(ATTENTION), default="sdpa")
    parser.add_argument("--int4", action="store_true", help="4-bit weights in the layers")
    parser.add_argument("--int4-lm-head", action="store_true",
                        help="4-bit weights in the layers and the lm_head")
    parser.add_argument("--group", metavar="N", type=at_least(1),
                        help=f"columns that share a scale: {', '.join(map(str, INT4_GROUPS))} (default "
                             f"{INT4_GROUP}, or the shape's)")
    parser.add_argument("--json-file", metavar="FILE", type=pathlib.Path,
                        help="also writes JSON to this file")
    parser.add_argument("--self-check", action="store_true",
                        help="compares tiny models with transformers, on the CPU")
    options = parser.parse_args()
    if options.self_check == (options.model is not None):
        parser.error("expected a model's yaml file or --self-check, one of the two")
    if options.mode is None:
        on_gpu = options.device == "cuda" and not options.self_check
        options.mode = "reduce-overhead" if on_gpu else "eager"
    return options


def main() -> int:
    try:
        options = parse_options()
        with torch.no_grad():
            if options.self_check:
                torch.set_float32_matmul_precision("highest")
                return 0 if self_check(options.mode) else 1
            torch.set_float32_matmul_precision("high")
            torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)  # or sdpa may widen the cache
            bench(options)
    except Unusable as error:
        print(f"baseline.py: {error}", file=sys.stderr)
        return 2
    except torch.OutOfMemoryError as error:
        print(f"baseline.py: expected the model to fit the device, got: {str(error).splitlines()[0]}",
              file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
