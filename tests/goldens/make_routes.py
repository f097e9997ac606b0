#!/usr/bin/env python3
"""Makes the golden routes that tests/reference_routes_test.cc holds the rule of each family of mixtures to.

    make_routes.py > tests/goldens/routes.json

transformers' own routers, whose matrix is the identity, get 10,000 vectors of logits in float32, and where there are biases
these; the test makes the same numbers from the seed. Every fourth vector has integers alone, so that many are alike.

torch.topk() promises nothing of equal scores: where the last that is chosen equals the first that is not, either may be. Of
such a vector only those count that are above; of any other all that are chosen, in whichever order. The weights that go with
them are the same whoever is chosen. Scores in float32 may be equal where logits are not, but of these vectors none is such.
"""

import json

import numpy as np
import torch
import transformers
from make_goldens import random_unit
from transformers.models.glm4_moe.modeling_glm4_moe import Glm4MoeTopkRouter
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssTopKRouter
from transformers.models.mixtral.modeling_mixtral import MixtralTopKRouter
from transformers.models.olmoe.modeling_olmoe import OlmoeTopKRouter
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeTopKRouter
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeTopKRouter

VECTORS = 10_000
SEED = 20261126
BIAS_SEED = 20261127

# Experts and how many are chosen, as published models have them; whether weights are renormalised, which some leave to
# config.json, and what they are multiplied with.
FAMILIES = {
    "qwen3_moe": (Qwen3MoeTopKRouter, 128, 8, True, 1.0),
    "qwen2_moe": (Qwen2MoeTopKRouter, 60, 4, False, 1.0),
    "mixtral": (MixtralTopKRouter, 8, 2, True, 1.0),
    "olmoe": (OlmoeTopKRouter, 64, 8, False, 1.0),
    "glm4_moe": (Glm4MoeTopkRouter, 128, 8, True, 2.5),
    "gpt_oss": (GptOssTopKRouter, 32, 4, True, 1.0),
}


def random_logits(experts):
    index = np.arange(VECTORS * experts, dtype=np.uint64)
    logits = (np.float32(4) * random_unit(index, SEED)).reshape(VECTORS, experts)
    logits[::4] = np.trunc(logits[::4])
    return logits + np.float32(0)  # a product with the identity knows no negative zero


def random_biases(experts):
    """Few values, so that sums with them are alike too."""
    return np.trunc(np.float32(4) * random_unit(np.arange(experts, dtype=np.uint64), BIAS_SEED)) / np.float32(8)


def make_router(family):
    kind, experts, chosen, renormalised, scale = FAMILIES[family]
    count = "n_routed_experts" if family == "glm4_moe" else "num_experts"
    config = transformers.AutoConfig.for_model(family, **{
        count: experts, "num_experts_per_tok": chosen, "norm_topk_prob": renormalised, "hidden_size": experts,
        "routed_scaling_factor": scale})
    router = kind(config)
    with torch.no_grad():
        router.weight.copy_(torch.eye(experts))
        for name in ("bias", "e_score_correction_bias"):
            if hasattr(router, name):
                getattr(router, name).copy_(torch.from_numpy(random_biases(experts)))
    return router


def compared(family, logits, dtype):
    """What the router compares, [vector][expert], in a type of either width."""
    values, biases = logits.to(dtype), torch.from_numpy(random_biases(logits.shape[1])).to(dtype)
    if family == "glm4_moe":
        return values.sigmoid() + biases
    return values + biases if family == "gpt_oss" else values.softmax(-1)


def golden(family):
    _, experts, chosen, renormalised, scale = FAMILIES[family]
    logits = torch.from_numpy(random_logits(experts))
    with torch.inference_mode():
        _, weights, choices = make_router(family)(logits)
    first_out = {}
    for dtype in (torch.float32, torch.float64):
        scores = compared(family, logits, dtype)
        best = scores.topk(chosen + 1 if chosen < experts else chosen).values
        first_out[dtype] = (scores, best[:, chosen - 1:chosen], best[:, chosen - 1] == best[:, chosen])
    scores, last, is_tied = first_out[torch.float64]
    assert torch.equal(is_tied, first_out[torch.float32][2]), family
    is_counted = torch.zeros(logits.shape, dtype=torch.bool).scatter(1, choices, True)
    is_counted &= ~is_tied[:, None] | (scores > last)
    ordinals = torch.arange(1, VECTORS + 1)[:, None] * torch.arange(1, experts + 1)[None, :]
    sorted_weights = weights.double().sort(dim=-1, descending=True).values
    return {
        "experts": experts, "chosen": chosen, "renormalised": renormalised, "scale": scale,
        "tied": int(is_tied.sum()), "counted": int(is_counted.sum()), "checksum": int((ordinals * is_counted).sum()),
        "mean_weights": [float(f"{mean:.9g}") for mean in sorted_weights.mean(0).tolist()],
        "weights_of_the_last": [float(f"{weight:.8g}") for weight in sorted_weights[-1].tolist()],
    }


def main():
    members = {"torch": torch.__version__, "transformers": transformers.__version__, "seed": SEED, "bias_seed": BIAS_SEED,
               "vectors": VECTORS, "families": {family: golden(family) for family in FAMILIES}}
    print(json.dumps(members, indent=1))


if __name__ == "__main__":
    main()
