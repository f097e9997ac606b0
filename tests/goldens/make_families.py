#!/usr/bin/env python3
"""Makes the golden results of families: a small model of each with random weights, as transformers computes it in float32.

    make_families.py [FAMILY...]   writes goldens/families/FAMILY.json

Each has the model's config.json, a prompt and 128 greedy tokens, which go beyond its windows, the margins by which they
were chosen, and all logits of some positions. Weights are not stored: random_weights() of tests/reference_model.cc makes the
same bits from the seed, by the names that most families give their tensors.
"""

import sys

import make_goldens
import numpy as np
import torch
import transformers

SEED = 20261126
PROMPT = [1, 33, 17, 17, 30, 42, 25, 9]
GREEDY_TOKENS = 128
POSITIONS = [0, 7, 38, 39, 40, 41, 100, 135]  # whose logits are kept: around a window of 40, and the last

COMMON = {"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 4, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 64, "max_position_embeddings": 256, "rms_norm_eps": 1e-6,
          "bos_token_id": 0, "eos_token_id": 63, "pad_token_id": 62, "tie_word_embeddings": False}
LOCAL, GLOBAL = "sliding_attention", "full_attention"
YARN = {"rope_type": "yarn", "rope_theta": 500000.0, "factor": 8.0, "attention_factor": 1.2079441541679836,
        "beta_fast": 32.0, "beta_slow": 1.0, "original_max_position_embeddings": 64}
GRANITE4 = {"hidden_size": 256, "embedding_multiplier": 12.0, "residual_multiplier": 0.263, "attention_multiplier": 0.015625,
            "logits_scaling": 4.0, "intermediate_size": 64, "shared_intermediate_size": 192, "num_local_experts": 0,
            "num_experts_per_tok": 0, "layer_types": ["attention"] * 4,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}

# By model_type, and behind a hyphen what tells two of one apart: what config.json says beside COMMON. Ropes as transformers 5
# has them.
FAMILIES = {
    "gemma2": ("Gemma2ForCausalLM", {
        "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 40, "layer_types": [LOCAL, GLOBAL] * 2,
        "query_pre_attn_scalar": 96, "final_logit_softcapping": 3.0, "attn_logit_softcapping": 2.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    "gemma3_text": ("Gemma3ForCausalLM", {
        "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 40, "layer_types": [LOCAL, LOCAL, GLOBAL, LOCAL],
        "head_dim": 256, "query_pre_attn_scalar": 168,
        "rope_parameters": {GLOBAL: {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
                            LOCAL: {"rope_type": "default", "rope_theta": 10000.0}}}),
    "olmo2": ("Olmo2ForCausalLM", {"hidden_size": 256, "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}),
    "olmo3": ("Olmo3ForCausalLM", {
        "hidden_size": 256, "sliding_window": 40, "layer_types": [LOCAL, LOCAL, LOCAL, GLOBAL],
        "rope_parameters": {GLOBAL: YARN, LOCAL: {"rope_type": "default", "rope_theta": 500000.0}}}),
    "granite": ("GraniteForCausalLM", {
        "hidden_size": 256, "embedding_multiplier": 12.0, "residual_multiplier": 0.22, "attention_multiplier": 0.015625,
        "logits_scaling": 8.0,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    "granitemoehybrid": ("GraniteMoeHybridForCausalLM", GRANITE4 | {"position_embedding_type": "rope"}),
    "granitemoehybrid-nope": ("GraniteMoeHybridForCausalLM", GRANITE4 | {"position_embedding_type": "nope"}),
    "smollm3": ("SmolLM3ForCausalLM", {
        "hidden_size": 256, "no_rope_layers": [1, 1, 1, 0],
        "rope_parameters": {"rope_type": "default", "rope_theta": 2000000.0}}),
    "seed_oss": ("SeedOssForCausalLM", {
        "attention_bias": True, "attention_out_bias": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0}}),
    "exaone4": ("Exaone4ForCausalLM", {
        "sliding_window": 40, "sliding_window_pattern": 4, "layer_types": [LOCAL, LOCAL, LOCAL, GLOBAL],
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}}),
    "glm4": ("Glm4ForCausalLM", {
        "attention_bias": True, "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}}),
    "phi3": ("Phi3ForCausalLM", {
        "hidden_size": 256,
        "original_max_position_embeddings": 6, "sliding_window": 40, "pad_token_id": 62,
        "rope_parameters": {"rope_type": "longrope", "rope_theta": 10000.0, "partial_rotary_factor": 0.75, "attention_factor": 1.1,
                            "short_factor": [1.0] * 24, "long_factor": [1.0 + 0.25 * pair for pair in range(24)]}}),
    "mistral": ("MistralForCausalLM", {
        "sliding_window": 40, "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    "ministral": ("MinistralForCausalLM", {
        "sliding_window": 40, "layer_types": [LOCAL, GLOBAL, LOCAL, LOCAL],
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0}}),
    "ministral3": ("Ministral3ForCausalLM", {
        "sliding_window": None,
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0, "factor": 8.0, "beta_fast": 32.0, "beta_slow": 1.0,
                            "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.5,
                            "original_max_position_embeddings": 32}}),
    "hunyuan_v1_dense": ("HunYuanDenseV1ForCausalLM", {
        "head_dim": 128,
        "rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 1.0, "alpha": 1000.0}}),
    "arcee": ("ArceeForCausalLM", {
        "hidden_act": "relu2", "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
                            "original_max_position_embeddings": 64}}),
    "nemotron": ("NemotronForCausalLM", {
        "hidden_act": "relu2", "norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}}),
    "starcoder2": ("Starcoder2ForCausalLM", {
        "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5, "use_bias": True, "sliding_window": 40, "tie_word_embeddings": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 999999.4420358813}}),
    "cohere": ("CohereForCausalLM", {
        "hidden_size": 256, "layer_norm_eps": 1e-5, "logit_scale": 0.25, "use_qk_norm": False,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    "cohere2": ("Cohere2ForCausalLM", {
        "layer_norm_eps": 1e-5, "logit_scale": 0.25, "sliding_window": 40, "layer_types": [LOCAL, LOCAL, GLOBAL, LOCAL],
        "rope_parameters": {"rope_type": "default", "rope_theta": 50000.0}}),
}
# Members that have other names throughout, without COMMON.
OWN_MEMBERS = {
    "mpt": ("MptForCausalLM", {
        "d_model": 192, "n_heads": 3, "n_layers": 4, "expansion_ratio": 4, "max_seq_len": 256, "vocab_size": 64,
        "layer_norm_epsilon": 1e-5, "no_bias": True, "tie_word_embeddings": True, "norm_type": "low_precision_layernorm",
        "bos_token_id": 0, "eos_token_id": 63, "pad_token_id": 62,
        "attn_config": {"alibi": True, "alibi_bias_max": 8, "attn_impl": "torch", "attn_type": "multihead_attention"}}),
}
# MPT's names of tensors, and what most families call those.
MPT_NAMES = (("transformer.wte", "model.embed_tokens"), ("transformer.blocks.", "model.layers."), ("transformer.norm_f", "model.norm"),
             ("norm_1", "input_layernorm"), ("norm_2", "post_attention_layernorm"), ("attn.Wqkv", "self_attn.qkv_proj"),
             ("attn.out_proj", "self_attn.o_proj"), ("ffn.", "mlp."))
# StarCoder2's names of linear layers, likewise.
STARCODER_NAMES = (("mlp.c_fc", "mlp.up_proj"), ("mlp.c_proj", "mlp.down_proj"))
# Granite 4's, likewise.
GRANITE_NAMES = (("shared_mlp.input_linear", "mlp.gate_up_proj"), ("shared_mlp.output_linear", "mlp.down_proj"))
OFFSET_NORMS = {"gemma2", "gemma3_text", "nemotron"}
ROTATED = {"glm4": 0.5, "cohere": 1, "cohere2": 1}  # part of a head's dims, by pairs that stand side by side


# GLM-4's norms, and what most families call those in their places.
NORMS = {"post_self_attn_layernorm": "post_attention_layernorm", "post_attention_layernorm": "pre_feedforward_layernorm",
         "post_mlp_layernorm": "post_feedforward_layernorm"}


def side_by_side(bits, head_dim, rotated):
    """Rows of q or k, or their biases: the two of a rotated pair, half of the rotated dims apart, become neighbours."""
    order = np.arange(head_dim)
    order[0:rotated:2], order[1:rotated:2] = np.arange(rotated // 2), np.arange(rotated // 2, rotated)
    return bits.reshape(-1, head_dim, *bits.shape[1:])[:, order].reshape(bits.shape)


def random_parameter(name, shape, family):
    """By the name of most families."""
    def random(each, each_shape):
        return make_goldens.random_tensor(each, each_shape, SEED, family in OFFSET_NORMS)

    if family == "mpt":
        for own, most in MPT_NAMES:
            name = name.replace(own, most)
        if "qkv_proj" in name:
            third = (shape[0] // 3, shape[1])
            return np.concatenate([random(name.replace("qkv_proj", part), third) for part in ("q_proj", "k_proj", "v_proj")])
    for own, most in {"starcoder2": STARCODER_NAMES, "granitemoehybrid": GRANITE_NAMES}.get(family, ()):
        name = name.replace(own, most)
    if "gate_up_proj" in name:
        half = (shape[0] // 2, shape[1])
        return np.concatenate([random(name.replace("gate_up_proj", part), half) for part in ("gate_proj", "up_proj")])
    if "qkv_proj" in name:
        rows = [heads * COMMON["head_dim"] for heads in (COMMON["num_attention_heads"], 2, 2)]
        parts = zip(("q_proj", "k_proj", "v_proj"), rows)
        return np.concatenate([random(name.replace("qkv_proj", part), (count, shape[1])) for part, count in parts])
    last = name.split(".")[-2]
    bits = random(name.replace(last, NORMS.get(last, last)) if family == "glm4" else name, shape)
    if family not in ROTATED or last not in ("q_proj", "k_proj"):
        return bits
    return side_by_side(bits, COMMON["head_dim"], int(COMMON["head_dim"] * ROTATED[family]))


def fill(model, family):
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(torch.from_numpy(random_parameter(name, tuple(tensor.shape), family)).view(torch.bfloat16))


def golden(case):
    architecture, members = (FAMILIES | OWN_MEMBERS)[case]
    family = case.partition("-")[0]
    config = members if family in OWN_MEMBERS else COMMON | members
    if family in ("olmo2", "olmo3", "granite", "granitemoehybrid", "smollm3", "cohere"):
        config.pop("head_dim")  # hidden_size says it
    made = transformers.AutoConfig.for_model(family, **config)
    made.dtype = None
    model = transformers.AutoModelForCausalLM.from_config(made, attn_implementation="eager").float().eval()
    assert type(model).__name__ == architecture
    fill(model, family)
    tokens, margins = list(PROMPT), []
    with torch.inference_mode():
        for _ in range(GREEDY_TOKENS):
            top = model(torch.tensor([tokens]), use_cache=False).logits[0, -1].topk(2)
            margins.append(float(f"{float(top.values[0] - top.values[1]):.3g}"))
            tokens.append(int(top.indices[0]))
        logits = model(torch.tensor([tokens]), use_cache=False).logits[0].float()
    return {"config": {"architectures": [architecture], "model_type": family} | config, "seed": SEED,
            "prompt": PROMPT, "tokens": tokens[len(PROMPT):], "margins": margins,
            "logits": {str(position): make_goldens.rounded(logits[position].tolist()) for position in POSITIONS}}


def main():
    folder = make_goldens.GOLDENS / "families"
    folder.mkdir(exist_ok=True)
    for family in sys.argv[1:] or FAMILIES | OWN_MEMBERS:
        sys.argv[1:] = [family]
        make_goldens.write(folder / f"{family}.json", golden(family))


if __name__ == "__main__":
    main()
