#!/usr/bin/env python3
"""Makes the golden results that tests/reference_model_test.cc holds the reference forward pass to.

transformers runs in float32 with eager attention on the CPU. Three kinds, each one JSON file below 200 KB:

    make_goldens.py --tiny models/tiny-stories   a real model: first logits and greedy tokens of three prompts
    make_goldens.py --layer-pair llama-3.1-8b    two layers of a real shape, vocabulary 512, all logits
    make_goldens.py --mixture mixture-shared     a mixture of experts of tests/models, all logits

Weights of the last two are not stored: random_tensor() below and random_weights() of tests/reference_model.cc
make the same bits from the seed. Checksums of every tensor are in the file, so that a difference shows as one
of weights.
"""

import argparse
import json
import math
import pathlib
import sys

import numpy as np
import torch
import transformers
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "goldens"
MAX_BYTES = 200_000

PAIR_SEED = 20240731
PAIR_LAYERS = 2
PAIR_VOCABULARY = 512
PAIR_TOKENS = [1, 511, 17, 17, 300, 42, 256, 99]

TINY_PROMPTS = ["Once upon a time", "The little fox wanted to", "Mia was sad because"]
TINY_PROMPT_IDS = [[0, 5, 77, 901], [0, 2047, 300, 300, 12], [0, 1024, 64, 9, 33, 500]]  # without a tokenizer
TINY_POSITIONS = 32
TINY_GREEDY_TOKENS = 256
TOP = 16

U64 = np.uint64
CHUNK = 1 << 18  # elements hashed at a time, so that temporaries stay in cache


# ---- Weights: the same bits as tests/reference_model.cc.

def random_unit(index, seed):
    """layout/random.h's random_unit() for an array of indices: splitmix64's finaliser, uniform in [-1, 1)."""
    z = index * U64(0x9E3779B97F4A7C15) + U64(seed)
    z = (z ^ (z >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> U64(27))) * U64(0x94D049BB133111EB)
    bits = (z ^ (z >> U64(31))) >> U64(40)
    return bits.astype(np.float32) * np.float32(2.0 / 16777216.0) - np.float32(1.0)


def fnv1a(text):
    value = 14695981039346656037
    for byte in text.encode():
        value = (value ^ byte) * 1099511628211 & (1 << 64) - 1
    return value


def to_bf16_bits(values):
    """float32 -> bf16 bits, to nearest, ties to even. For finite values."""
    bits = values.astype(np.float32).view(np.uint32)
    odd = bits >> np.uint32(16) & np.uint32(1)
    return ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype(np.uint16)


def random_tensor(name, shape, seed, norm_offset=False):
    """bf16 bits of one tensor.

    Norms and sinks are 1 + uniform(-1/4, 1/4), norms that 1 is added to without that 1, biases uniform(-1/2, 1/2), of gate and up of experts uniform(-8, 8), matrices
    uniform with variance 1 / columns, of q and k 2 / columns.
    """
    is_bias = name.endswith((".bias", "_proj_bias"))
    is_norm = len(shape) == 1 and not is_bias
    centre = 1.0 if is_norm and not (norm_offset and name.endswith("norm.weight")) else 0.0
    if is_norm or is_bias:
        bound = 0.25 if is_norm else 8.0 if name.endswith("gate_up_proj_bias") else 0.5
    else:
        variance = (2.0 if name.endswith(("q_proj.weight", "k_proj.weight")) else 1.0) / shape[1]
        bound = float(np.float32(math.sqrt(3.0 * variance)))
    tensor_seed = seed ^ fnv1a(name)
    result = np.empty(math.prod(shape), np.uint16)
    for begin in range(0, result.size, CHUNK):
        index = np.arange(begin, min(begin + CHUNK, result.size), dtype=np.uint64)
        unit = random_unit(index, tensor_seed).astype(np.float64)
        result[begin:begin + index.size] = to_bf16_bits(centre + bound * unit)
    return result.reshape(shape)


def checksum(bits):
    """sum((i + 1) * bits[i]) modulo 2^64, as a string because JSON readers round large integers."""
    bits = bits.reshape(-1)
    total = 0
    for begin in range(0, bits.size, CHUNK):
        part = bits[begin:begin + CHUNK].astype(np.uint64)
        ordinals = np.arange(begin + 1, begin + part.size + 1, dtype=np.uint64)
        total += int((part * ordinals).sum(dtype=np.uint64))
    return str(total & (1 << 64) - 1)


# ---- Models.

ROPE_KINDS = ("default", "llama3", "linear", "yarn")  # of models/*.yaml, in the order of layout/model_facts.h
ARCHITECTURES = {  # by qkv_bias, head_norm
    (0, 0): ("LlamaForCausalLM", "llama"),
    (1, 0): ("Qwen2ForCausalLM", "qwen2"),
    (0, 1): ("Qwen3ForCausalLM", "qwen3"),
}


MIXTURES = {  # by mixture_family()
    "qwen2": ("Qwen2MoeForCausalLM", "qwen2_moe"),
    "qwen3": ("Qwen3MoeForCausalLM", "qwen3_moe"),
    "mixtral": ("MixtralForCausalLM", "mixtral"),
    "glm4": ("Glm4MoeForCausalLM", "glm4_moe"),
    "olmoe": ("OlmoeForCausalLM", "olmoe"),
    "gpt_oss": ("GptOssForCausalLM", "gpt_oss"),
}
SHARED_EXPERTS = {"qwen2": "mlp.shared_expert", "glm4": "mlp.shared_experts"}


def mixture_family(facts):
    """Whose mixture of experts it is."""
    experts = facts["experts"]
    if experts.get("bias"):
        return "gpt_oss"
    if experts.get("scores") == "sigmoid":
        return "glm4"
    if experts.get("shared_gate"):
        return "qwen2"
    if facts.get("joint_norm"):
        return "olmoe"
    return "qwen3" if facts["head_norm"] else "mixtral"


def mixture_config(facts):
    """What config.json says of experts, and what it says of all else in words of the family."""
    experts, family = facts["experts"], mixture_family(facts)
    dense = experts.get("dense_layers", [])
    members = {"num_experts_per_tok": experts["per_token"]}
    if family == "mixtral":
        return members | {"num_local_experts": experts["count"], "sliding_window": None}
    if family == "gpt_oss":
        windows = [facts["windows"][layer % len(facts["windows"])] for layer in range(facts["num_layers"])]
        return members | {
            "num_local_experts": experts["count"], "attention_bias": True, "sliding_window": max(windows),
            "layer_types": ["sliding_attention" if window else "full_attention" for window in windows]}
    members["norm_topk_prob"] = experts["renormalised"]
    if family == "olmoe":
        return members | {"num_experts": experts["count"], "intermediate_size": experts["ffn"]}
    members["moe_intermediate_size"] = experts["ffn"]
    if family == "glm4":
        assert dense == list(range(len(dense)))
        return members | {
            "n_routed_experts": experts["count"], "n_shared_experts": experts["shared"], "n_group": 1, "topk_group": 1,
            "routed_scaling_factor": experts.get("scale", 1.0), "first_k_dense_replace": len(dense),
            "use_qk_norm": bool(facts["head_norm"]), "attention_bias": bool(facts["qkv_bias"]),
            "partial_rotary_factor": (facts["rope_dims"] or facts["head_dim"]) / facts["head_dim"],
            "num_nextn_predict_layers": 0}
    members |= {"num_experts": experts["count"], "decoder_sparse_step": 1, "mlp_only_layers": dense}
    if family == "qwen2":
        members["shared_expert_intermediate_size"] = experts["shared"] * experts["ffn"]
    return members


def read_facts(name):
    """Facts of models/<name>.yaml or tests/models/<name>.yaml, by the names of layout/model_facts.h."""
    paths = [folder / f"{name}.yaml" for folder in (ROOT / "models", ROOT / "tests" / "models")]
    document = yaml.safe_load(next((path for path in paths if path.exists()), paths[0]).read_text())
    rope = document.pop("rope")
    facts = {key: document[key] for key in ("hidden", "ffn", "num_layers", "num_heads", "num_kv_heads",
                                            "head_dim", "vocabulary", "tied_lm_head", "max_context")}
    facts["tied_lm_head"] = int(facts["tied_lm_head"])
    for key in ("qkv_bias", "head_norm", "joint_norm"):
        facts[key] = int(document.get(key, False))
    facts["rope_dims"] = int(rope.get("dims", 0))
    facts["experts"] = document.get("experts")
    facts["windows"] = document.get("windows")
    facts["rope_truncate"] = bool(rope.get("truncate", True))
    facts["norm_epsilon"] = float(document["norm_epsilon"])  # PyYAML reads 1e-5 as a string
    facts["rope_kind"] = ROPE_KINDS.index(rope["kind"])
    facts["rope_theta"] = float(rope["theta"])
    facts["rope_original_context"] = int(rope.get("original_context", 0))
    for key in ("factor", "low_freq_factor", "high_freq_factor"):
        facts[f"rope_{key}"] = float(rope.get(key, 1.0))
    return facts


def classic_config(facts):
    """config.json in the schema with rope_theta and rope_scaling at the top."""
    scaling = None
    if facts["rope_kind"] == 1:
        scaling = {
            "rope_type": "llama3",
            "factor": facts["rope_factor"],
            "low_freq_factor": facts["rope_low_freq_factor"],
            "high_freq_factor": facts["rope_high_freq_factor"],
            "original_max_position_embeddings": facts["rope_original_context"],
        }
    if facts["rope_kind"] == 3:
        scaling = {
            "rope_type": "yarn",
            "factor": facts["rope_factor"],
            "truncate": facts["rope_truncate"],
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "original_max_position_embeddings": facts["rope_original_context"],
        }
    experts = facts.get("experts")
    architecture, model_type = MIXTURES[mixture_family(facts)] if experts else ARCHITECTURES[
        facts["qkv_bias"], facts["head_norm"]]
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "hidden_size": facts["hidden"],
        "intermediate_size": facts["ffn"],
        "num_hidden_layers": facts["num_layers"],
        "num_attention_heads": facts["num_heads"],
        "num_key_value_heads": facts["num_kv_heads"],
        "head_dim": facts["head_dim"],
        "vocab_size": facts["vocabulary"],
        "max_position_embeddings": facts["max_context"],
        "rms_norm_eps": facts["norm_epsilon"],
        "rope_theta": facts["rope_theta"],
        "rope_scaling": scaling,
        "tie_word_embeddings": bool(facts["tied_lm_head"]),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "torch_dtype": "bfloat16",
    } | (mixture_config(facts) if experts else {})


def facts_of_config(config):
    """The inverse of classic_config, from a transformers config of either schema."""
    rope = dict(getattr(config, "rope_parameters", None) or config.rope_scaling or {})
    return {
        "hidden": config.hidden_size,
        "ffn": config.intermediate_size,
        "num_layers": config.num_hidden_layers,
        "num_heads": config.num_attention_heads,
        "num_kv_heads": config.num_key_value_heads,
        "head_dim": config.head_dim,
        "vocabulary": config.vocab_size,
        "tied_lm_head": int(config.tie_word_embeddings),
        "qkv_bias": int(config.model_type == "qwen2"),
        "head_norm": int(config.model_type in ("qwen3", "qwen3_moe")),
        "max_context": config.max_position_embeddings,
        "norm_epsilon": config.rms_norm_eps,
        "rope_kind": ROPE_KINDS.index(rope.get("rope_type", "default")),
        "rope_theta": float(rope["rope_theta"]),
        "rope_original_context": int(rope.get("original_max_position_embeddings", 0)),
        "rope_factor": float(rope.get("factor", 1.0)),
        "rope_low_freq_factor": float(rope.get("low_freq_factor", 1.0)),
        "rope_high_freq_factor": float(rope.get("high_freq_factor", 1.0)),
    } | (facts_of_mixture(config) if config.model_type == "qwen3_moe" else {})


def facts_of_mixture(config):
    """Of experts, by the names of layout/model_facts.h."""
    return {"num_experts": config.num_experts, "experts_per_token": config.num_experts_per_tok,
            "expert_ffn": config.moe_intermediate_size, "renormalised": int(config.norm_topk_prob)}


def expert_shapes(prefix, facts):
    """Of a layer that is a mixture of experts, in the names of its family."""
    experts, hidden, family = facts["experts"], facts["hidden"], mixture_family(facts)
    if family == "gpt_oss":
        count, width = experts["count"], experts["ffn"]
        return {prefix + "mlp.router.weight": (count, hidden), prefix + "mlp.router.bias": (count,),
                prefix + "mlp.experts.gate_up_proj": (count, hidden, 2 * width),
                prefix + "mlp.experts.gate_up_proj_bias": (count, 2 * width),
                prefix + "mlp.experts.down_proj": (count, width, hidden),
                prefix + "mlp.experts.down_proj_bias": (count, hidden)}
    is_mixtral = family == "mixtral"
    block = prefix + ("block_sparse_moe" if is_mixtral else "mlp")
    gate, up, down = ("w1", "w3", "w2") if is_mixtral else ("gate_proj", "up_proj", "down_proj")

    def network(name, width):
        return {f"{name}.{gate}.weight": (width, hidden), f"{name}.{up}.weight": (width, hidden),
                f"{name}.{down}.weight": (hidden, width)}

    shapes = {f"{block}.gate.weight": (experts["count"], hidden)}
    if family == "glm4":
        shapes[f"{block}.gate.e_score_correction_bias"] = (experts["count"],)
    for expert in range(experts["count"]):
        shapes |= network(f"{block}.experts.{expert}", experts["ffn"])
    if family in SHARED_EXPERTS:
        shapes |= network(prefix + SHARED_EXPERTS[family], experts["shared"] * experts["ffn"])
    if family == "qwen2":
        shapes[prefix + "mlp.shared_expert_gate.weight"] = (1, hidden)
    return shapes


def tensor_shapes(facts):
    """Hugging Face's names and shapes, in the order in which a checkpoint holds them."""
    hidden, ffn = facts["hidden"], facts["ffn"]
    q_rows = facts["num_heads"] * facts["head_dim"]
    kv_rows = facts["num_kv_heads"] * facts["head_dim"]
    shapes = {"model.embed_tokens.weight": (facts["vocabulary"], hidden)}
    for layer in range(facts["num_layers"]):
        prefix = f"model.layers.{layer}."
        shapes |= {
            prefix + "input_layernorm.weight": (hidden,),
            prefix + "self_attn.q_proj.weight": (q_rows, hidden),
            prefix + "self_attn.k_proj.weight": (kv_rows, hidden),
            prefix + "self_attn.v_proj.weight": (kv_rows, hidden),
        }
        if facts["qkv_bias"]:
            shapes |= {
                prefix + "self_attn.q_proj.bias": (q_rows,),
                prefix + "self_attn.k_proj.bias": (kv_rows,),
                prefix + "self_attn.v_proj.bias": (kv_rows,),
            }
        if facts["head_norm"]:
            is_joint = facts.get("joint_norm")
            shapes |= {
                prefix + "self_attn.q_norm.weight": (q_rows if is_joint else facts["head_dim"],),
                prefix + "self_attn.k_norm.weight": (kv_rows if is_joint else facts["head_dim"],),
            }
        shapes |= {
            prefix + "self_attn.o_proj.weight": (hidden, q_rows),
            prefix + "post_attention_layernorm.weight": (hidden,),
        }
        experts = facts.get("experts")
        if experts and mixture_family(facts) == "gpt_oss":
            shapes |= {prefix + "self_attn.o_proj.bias": (hidden,), prefix + "self_attn.sinks": (facts["num_heads"],)}
        if experts and layer not in experts.get("dense_layers", []):
            shapes |= expert_shapes(prefix, facts)
        else:
            shapes |= {
                prefix + "mlp.gate_proj.weight": (ffn, hidden),
                prefix + "mlp.up_proj.weight": (ffn, hidden),
                prefix + "mlp.down_proj.weight": (hidden, ffn),
            }
    shapes["model.norm.weight"] = (hidden,)
    if not facts["tied_lm_head"]:
        shapes["lm_head.weight"] = (facts["vocabulary"], hidden)
    return shapes


def fused_experts(name, bits):
    """Tensor `name` of all experts as transformers keeps it, stacked out of those of each."""
    prefix = name[:name.rfind(".")]
    own = {"gate_proj": "gate", "w1": "gate", "up_proj": "up", "w3": "up", "down_proj": "down", "w2": "down"}
    parts = {"gate": [], "up": [], "down": []}
    for each, tensor in bits.items():  # experts in ascending order
        if each.replace("block_sparse_moe", "mlp").startswith(prefix + "."):
            parts[own[each.split(".")[-2]]].append(tensor)
    if name.endswith("down_proj"):
        return np.stack(parts["down"])
    return np.stack([np.concatenate(pair) for pair in zip(parts["gate"], parts["up"])])


def parameters_by_expert(model):
    """The bits of all parameters, those of each expert apart, as a checkpoint has them."""
    result = {}
    for name, parameter in model.named_parameters():
        bits = to_bf16_bits(parameter.detach().numpy())
        prefix = name[:name.rfind(".")]
        if name.endswith("experts.gate_up_proj"):
            for expert, pair in enumerate(bits):
                for own, half in zip(("gate_proj", "up_proj"), np.split(pair, 2)):
                    result[f"{prefix}.{expert}.{own}.weight"] = half
        elif name.endswith("experts.down_proj"):
            result |= {f"{prefix}.{expert}.down_proj.weight": down for expert, down in enumerate(bits)}
        else:
            result[name] = bits
    return result


def pair_model(facts):
    """The float32 model of a layer pair, or of a mixture, and the checksums of its weights."""
    members = classic_config(facts)
    config = transformers.AutoConfig.for_model(members.pop("model_type"), **members)
    config.dtype = None  # build in torch's default, float32
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    bits = {name: random_tensor(name, shape, PAIR_SEED) for name, shape in tensor_shapes(facts).items()}
    unused = set(bits)
    for name, tensor in model.state_dict().items():
        if name not in bits and name.endswith((".experts.gate_up_proj", ".experts.down_proj")):
            value = fused_experts(name, bits)
            unused = {each for each in unused if ".experts." not in each}
        else:
            stored = name if name in bits else name.replace("mlp.", "block_sparse_moe.")
            value = bits[stored]
            unused.discard(stored)
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(value).view(torch.bfloat16))
    assert not unused, unused
    return model, {name: checksum(value) for name, value in bits.items()}


# ---- Results.

def rounded(values):
    """Eight significant digits: half a unit is below a float32 ulp."""
    return [float(f"{value:.8g}") for value in values]


def inverse_frequencies(model):
    return [float(value) for value in model.model.rotary_emb.inv_freq.float()]


def layer_pair(name):
    facts = read_facts(name) | {"num_layers": PAIR_LAYERS, "vocabulary": PAIR_VOCABULARY}
    model, checksums = pair_model(facts)
    with torch.inference_mode():
        logits = model(torch.tensor([PAIR_TOKENS])).logits[0].float()
    return {
        "facts": facts,
        "seed": PAIR_SEED,
        "inverse_frequencies": inverse_frequencies(model),
        "tensor_checksums": checksums,
        "tokens": PAIR_TOKENS,
        "logits": [rounded(row.tolist()) for row in logits],
    }


def mixture(name):
    facts = read_facts(name)
    model, checksums = pair_model(facts)
    tokens = [token % facts["vocabulary"] for token in PAIR_TOKENS]
    with torch.inference_mode():
        logits = model(torch.tensor([tokens])).logits[0].float()
    return {"seed": PAIR_SEED, "tensor_checksums": checksums, "tokens": tokens,
            "logits": [rounded(row.tolist()) for row in logits]}


def tiny_prompts(folder):
    if not (folder / "tokenizer.json").exists():
        return TINY_PROMPT_IDS
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    begin = json.loads((folder / "config.json").read_text())["bos_token_id"]
    return [[begin] + tokenizer.encode(text, add_special_tokens=False).ids for text in TINY_PROMPTS]


def tiny_case(model, prompt):
    """Greedy continuation, past any end-of-text token, and the logits of the first positions of all of it."""
    tokens = list(prompt)
    with torch.inference_mode():
        output = model(torch.tensor([tokens]), use_cache=True)
        margins = []
        for _ in range(TINY_GREEDY_TOKENS):
            top = output.logits[0, -1].topk(2)
            margins.append(float(top.values[0] - top.values[1]))
            tokens.append(int(top.indices[0]))
            output = model(torch.tensor([tokens[-1:]]), past_key_values=output.past_key_values, use_cache=True)
        mixture = getattr(model.config, "num_experts", None) is not None
        output = model(torch.tensor([tokens[:TINY_POSITIONS]]), **{"output_router_logits": True} if mixture else {})
    positions = []
    for index, row in enumerate(output.logits[0].float()):
        top = row.topk(TOP)
        experts = [router[index].topk(model.config.num_experts_per_tok).indices.tolist()
                   for router in (output.router_logits if mixture else ())]
        positions.append(({"experts": experts} if mixture else {}) | {
            "top_ids": top.indices.tolist(),
            "top_logits": rounded(top.values.tolist()),
            "mean": float(f"{row.double().mean():.8g}"),
            "deviation": float(f"{row.double().std(correction=0):.8g}"),
        })
    return {
        "prompt": prompt,
        "tokens": tokens[len(prompt):],
        "margins": [float(f"{margin:.3g}") for margin in margins],
        "positions": positions,
    }


def tiny(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()
    facts = facts_of_config(model.config)
    experts = {"count": facts["num_experts"], "ffn": facts["expert_ffn"]} if "num_experts" in facts else None
    parameters = parameters_by_expert(model)
    checksums = {name: checksum(parameters[name]) for name in tensor_shapes(facts | {"experts": experts})}
    assert len(checksums) == len(parameters)
    return {
        "facts": facts,
        "inverse_frequencies": inverse_frequencies(model),
        "tensor_checksums": checksums,
        "top": TOP,
        "cases": [tiny_case(model, prompt) for prompt in tiny_prompts(folder)],
    }


def write(path, golden):
    header = {
        "command": f"tests/goldens/{pathlib.Path(sys.argv[0]).name} " + " ".join(sys.argv[1:]),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
    }
    members = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in (header | golden).items()]
    text = "{\n" + ",\n".join(members) + "\n}\n"
    if len(text) >= MAX_BYTES:
        sys.exit(f"{path}: expected less than {MAX_BYTES} bytes, got {len(text)}")
    path.write_text(text)
    print(f"{path}: {len(text)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--tiny", metavar="FOLDER", type=pathlib.Path, help="a Hugging Face folder")
    kind.add_argument("--layer-pair", metavar="NAME", help="of models/NAME.yaml")
    kind.add_argument("--mixture", metavar="NAME", help="of tests/models/NAME.yaml")
    parser.add_argument("--output", metavar="FOLDER", type=pathlib.Path, default=GOLDENS)
    arguments = parser.parse_args()
    if arguments.tiny:
        write(arguments.output / f"{arguments.tiny.name}.json", tiny(arguments.tiny))
    elif arguments.mixture:
        write(arguments.output / f"{arguments.mixture}.json", mixture(arguments.mixture))
    else:
        write(arguments.output / f"{arguments.layer_pair}-pair.json", layer_pair(arguments.layer_pair))


if __name__ == "__main__":
    main()
