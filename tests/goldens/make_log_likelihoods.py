#!/usr/bin/env python3
"""Makes the golden log-likelihoods that tests/server/log_likelihoods_test.cc holds soliton-server to.

    make_log_likelihoods.py   writes tests/goldens/log-likelihoods.json

Of the toy task, on models/tiny-stories. Requests are those that lm-eval 0.4.13 sends by
its model `local-completions`: prompts of token ids, context and continuation one behind the other, so many at a time, echoed
with the logprobs of one token each, and one token behind them, which it forgets. Blanks at the end of a context belong to the
continuation, as there. The last request has max_tokens 0, which other evaluations send. What the answers should say of each
continuation is computed by transformers in float32: the sum of its tokens' log-probabilities, and whether each of them is
the most likely one.
"""

import json

import make_goldens
import tokenizers
import torch
import transformers
from toy_task import TASK

MODEL = "models/tiny-stories"
BATCH = 4
SEED = 1234  # lm-eval's, on which greedy tokens do not depend


def pairs(tokenizer):
    """Context and continuation of each question, in ids: those of both together, cut where the context's own end."""
    for context, continuations in TASK:
        blanks = len(context) - len(context.rstrip())
        for continuation in continuations:
            cut = context[:-blanks] if blanks else context
            whole = tokenizer.encode(context + continuation).ids
            length = len(tokenizer.encode(cut).ids)
            yield whole[:length], whole[length:]


def score(model, context, continuation):
    tokens = context + continuation
    with torch.inference_mode():
        logprobs = model(torch.tensor([tokens])).logits[0].double().log_softmax(-1)
    total, is_greedy, margin = 0.0, True, float("inf")
    for place, token in enumerate(continuation, len(context)):
        best = logprobs[place - 1].topk(2)
        total += float(logprobs[place - 1, token])
        is_greedy = is_greedy and int(best.indices[0]) == token
        margin = min(margin, float(best.values[0] - best.values[1]))
    return {"context_tokens": len(context), "log_likelihood": round(total, 6), "is_greedy": is_greedy,
            "margin": float(f"{margin:.3g}")}


def main():
    folder = make_goldens.ROOT / MODEL
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    asked = list(pairs(tokenizer))
    requests = []
    for first in range(0, len(asked), BATCH):
        batch = asked[first:first + BATCH]
        is_last = first + BATCH >= len(asked)
        requests.append({
            "body": {"model": "tiny-stories", "prompt": [context + continuation for context, continuation in batch],
                     "temperature": 0, "max_tokens": 0 if is_last else 1, "logprobs": 1, "seed": SEED, "echo": True},
            "expected": [score(model, context, continuation) for context, continuation in batch]})
    make_goldens.write(make_goldens.GOLDENS / "log-likelihoods.json", {"model": MODEL, "requests": requests})


if __name__ == "__main__":
    main()
