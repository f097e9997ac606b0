"""Whether the decoder of baseline.py computes what transformers does, and PyTorch's int4 products what they say."""

import dataclasses
import warnings
from typing import Any, Callable

import torch
from torch import Tensor, nn

from baseline_facts import Facts, Rope, Unusable
from baseline_model import ATTENTION, CACHE_MULTIPLE, SEED, Decoder, Int4, Int4Matrix, compiled_step

INT4_LIMIT = 0.02  # of a product, relative to its largest element: bf16 holds 8 bits
SELF_CHECK_LIMIT = 1e-4  # of the logits
SELF_CHECK_PROMPT = 64
SELF_CHECK_TOKENS = 192


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
            for name, bias in zip(("q", "k", "v"), layer.qkv_bias.split([facts.q_rows, facts.kv_rows, facts.kv_rows])):
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
