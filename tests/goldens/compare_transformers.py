#!/usr/bin/env python3
"""Holds what Soliton decoded to transformers on the same weights. Run by hand on a machine with a GPU.

Greedy (the default): transformers in float32 reads prompt and tokens in one forward pass. Every token has to
be its argmax, or within 1e-3 of it: a tie.

    compare_transformers.py FOLDER decoded.json [--logits logits.f32]

--logits holds one row a token, the one it was chosen by.

Spread: transformers in bf16 with eager and with sdpa attention, and in float32, at chosen positions of prompt
and tokens. The spread is the largest difference between the two bf16 runs; our logits have to lie within twice
that of one of them, and of float32.

    compare_transformers.py FOLDER decoded.json --spread --positions 0,127,4095 [--logits logits.f32]

--logits holds one row for each of --positions, in that order.

decoded.json: {"prompt": [ids], "tokens": [ids]}. logits.f32: raw little-endian float32 [rows][vocabulary].
Eager attention keeps several copies of a layer's scores: each 9 GB for 8192 tokens, 32 heads, float32.
Exit status: 0 agrees, 1 differs, 2 unusable input.
"""

import argparse
import gc
import json
import pathlib
import sys

import numpy as np
import torch
import transformers

TIE = 1e-3  # of the logits
SPREAD_FACTOR = 2.0


def fail_usage(message):
    print(message, file=sys.stderr)
    sys.exit(2)


def read_decoded(path):
    document = json.loads(path.read_text())
    prompt, tokens = document["prompt"], document["tokens"]
    if not prompt or not all(isinstance(token, int) for token in prompt + tokens):
        fail_usage(f"{path}: expected lists of token ids with at least one in prompt")
    return prompt, tokens


def read_logits(path, rows, vocabulary):
    """The file as [rows][vocabulary], mapped, not loaded; None without a file."""
    if path is None:
        return None
    expected = rows * vocabulary * 4
    if path.stat().st_size != expected:
        fail_usage(f"{path}: expected {rows} x {vocabulary} float32 = {expected} bytes, "
                   f"got {path.stat().st_size}")
    return np.memmap(path, dtype="<f4", mode="r", shape=(rows, vocabulary))


def run_transformers(arguments, tokens, positions, dtype, attention):
    """Logits [len(positions)][vocabulary] in float32, on the device. The model is gone when this returns."""
    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.folder, dtype=dtype, attn_implementation=attention).to(arguments.device).eval()
    with torch.inference_mode():
        ids = torch.tensor([tokens], device=arguments.device)
        keep = torch.tensor(positions, device=arguments.device)
        logits = model(ids, use_cache=False, logits_to_keep=keep).logits[0].float()
    if arguments.device == "cuda":
        peak = torch.cuda.max_memory_allocated() / 2**30
        print(f"transformers {dtype} {attention}: {len(tokens)} tokens, peak {peak:.1f} GiB", flush=True)
    del model
    gc.collect()
    if arguments.device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return logits


def max_differences(a, b):
    """Of each row; a NaN stays a NaN and so never passes a limit."""
    return (a - b).abs().amax(dim=-1).cpu().double()


def row_to_device(ours, i, device):
    return torch.from_numpy(np.array(ours[i])).to(device)


def check_greedy(arguments, prompt, tokens, vocabulary):
    ours = read_logits(arguments.logits, len(tokens), vocabulary)
    positions = list(range(len(prompt) - 1, len(prompt) + len(tokens) - 1))
    theirs = run_transformers(arguments, (prompt + tokens)[:-1], positions, torch.float32, "eager")

    top = theirs.topk(2, dim=-1)
    chosen = theirs.gather(-1, torch.tensor(tokens, device=theirs.device)[:, None])[:, 0]
    shortfall = (top.values[:, 0] - chosen).tolist()  # below the best logit
    best = top.indices[:, 0].tolist()
    num_close = int((top.values[:, 0] - top.values[:, 1] <= TIE).sum())
    num_ties = num_wrong = 0
    for i, token in enumerate(tokens):
        if shortfall[i] <= 0.0:  # the best, or exactly as good
            continue
        tie = shortfall[i] <= TIE
        num_ties += tie
        num_wrong += not tie
        print(f"{'tie  ' if tie else 'WRONG'} position {positions[i]}: token {token}, "
              f"transformers {best[i]}, {shortfall[i]:.3g} below it")
    num_equal = len(tokens) - num_ties - num_wrong
    print(f"{len(tokens)} tokens: {num_equal} equal, {num_ties} other at a tie, {num_wrong} wrong; "
          f"top two within {TIE} at {num_close} positions")

    finite = True
    if ours is not None:
        differences = [max_differences(row_to_device(ours, i, theirs.device), theirs[i]).item()
                       for i in range(len(tokens))]
        finite = bool(np.isfinite(differences).all())
        worst = int(np.argmax(differences))  # the first NaN, if there is one
        print(f"logits: max abs difference {differences[worst]:.4g} at position {positions[worst]}, "
              f"median over positions {np.median(differences):.4g}, logits up to {theirs.abs().max():.4g}")
    return num_wrong == 0 and finite


def check_spread(arguments, prompt, tokens, vocabulary):
    text = prompt + tokens
    positions = [int(position) for position in arguments.positions.split(",")]
    if not all(0 <= position < len(text) for position in positions):
        fail_usage(f"--positions: expected 0 to {len(text) - 1}, got {arguments.positions}")
    ours = read_logits(arguments.logits, len(positions), vocabulary)
    used = text[:max(positions) + 1]
    eager = run_transformers(arguments, used, positions, torch.bfloat16, "eager")
    sdpa = run_transformers(arguments, used, positions, torch.bfloat16, "sdpa")
    exact = run_transformers(arguments, used, positions, torch.float32, "eager")

    spread = max_differences(eager, sdpa)
    eager_error, sdpa_error = max_differences(eager, exact), max_differences(sdpa, exact)
    # Both bf16 runs can agree to the bit, as at position 0, where attention has nothing to add up. Then
    # their distance from float32 says how far apart equally good results may be.
    replaced = spread == 0.0
    limit = SPREAD_FACTOR * torch.where(replaced, torch.maximum(eager_error, sdpa_error), spread)
    print("| position | spread | eager - f32 | sdpa - f32 "
          "| ours - eager | ours - sdpa | ours - f32 | limit | |")
    print("|---|---|---|---|---|---|---|---|---|")
    all_good = True
    for i, position in enumerate(positions):
        row = [f"{position}", f"{spread[i]:.4f}", f"{eager_error[i]:.4f}", f"{sdpa_error[i]:.4f}"]
        mark = " (from f32)" if replaced[i] else ""
        if ours is None:
            row += ["", "", "", f"{limit[i]:.4f}{mark}", ""]
        else:
            mine = row_to_device(ours, i, exact.device)
            distances = [max_differences(mine, theirs[i]).item() for theirs in (eager, sdpa, exact)]
            # Python's min() may drop a NaN, but the last condition does not.
            good = min(distances[0], distances[1]) <= limit[i] and distances[2] <= limit[i]
            all_good = all_good and bool(good)
            row += [f"{distance:.4f}" for distance in distances]
            row += [f"{limit[i]:.4f}{mark}", "ok" if good else "TOO FAR"]
        print("| " + " | ".join(row) + " |")
    return all_good


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, help="a Hugging Face folder")
    parser.add_argument("decoded", type=pathlib.Path, help='{"prompt": [...], "tokens": [...]}')
    parser.add_argument("--logits", type=pathlib.Path, help="our logits, raw float32")
    parser.add_argument("--spread", action="store_true",
                        help="compare with the spread of transformers' bf16 paths")
    parser.add_argument("--positions", help="of prompt and tokens, such as 0,127,4095; with --spread")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    arguments = parser.parse_args()
    if arguments.spread != (arguments.positions is not None):
        parser.error("--spread and --positions go together")

    torch.set_float32_matmul_precision("highest")  # no TF32
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, {arguments.device}")
    prompt, tokens = read_decoded(arguments.decoded)
    if not tokens and not arguments.spread:
        fail_usage(f"{arguments.decoded}: expected at least one token")
    vocabulary = transformers.AutoConfig.from_pretrained(arguments.folder).vocab_size
    if not all(0 <= token < vocabulary for token in prompt + tokens):
        fail_usage(f"{arguments.decoded}: expected token ids below {vocabulary}")
    check = check_spread if arguments.spread else check_greedy
    good = check(arguments, prompt, tokens, vocabulary)
    print("agrees" if good else "DIFFERS")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
