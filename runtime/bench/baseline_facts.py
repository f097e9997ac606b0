"""The shapes that baseline.py measures: models/*.yaml, read and checked."""

import dataclasses
import math
import pathlib
import types
from typing import Any

ROPE_KINDS = ("default", "llama3", "linear", "yarn")


class Unusable(Exception):
    """What the user gave cannot be used; the message is one line."""


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
