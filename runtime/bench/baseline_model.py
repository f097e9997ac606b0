"""The decoder that baseline.py compiles: one token a call, with everything on the device."""

import dataclasses
import math
from typing import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention

from baseline_facts import Facts, Unusable

CACHE_MULTIPLE = 128  # tokens
SEED = 1
INT4_ROWS = {"cuda": 8, "cpu": 16}  # of a tile of the kernels, for each kind of device


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
