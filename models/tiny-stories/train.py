"""Makes the tiny-stories models: grammar -> tokenizer -> training -> a Hugging Face folder.

    python train.py                    the real run (one GPU, a few minutes)
    python train.py --experts          a mixture of experts, with this folder's tokenizer: ../tiny-stories-experts
    python train.py --smoke            the whole path on a CPU in seconds; the model is useless

Everything is seeded: stories come from grammar.py in chunks, chunk i from (seed, i), whatever
the number of worker processes. Heavy imports stay inside functions, so that workers start fast.
"""
import argparse
import json
import math
import multiprocessing
import os
import random
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

import grammar

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")     # repeatable cuBLAS sums

BOS, EOS = "<|begin_of_text|>", "<|end_of_text|>"
BOS_ID, EOS_ID = 0, 1
VOCAB = 2048
SEQ = 512
CHUNK = 2000                # stories per unit of work
TOKENIZER_STORIES = 20000
IGNORE = -100

CONFIG = {                  # the classic Llama schema, readable by every transformers version
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCAB,
    "hidden_size": 256,
    "intermediate_size": 768,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "hidden_act": "silu",
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                     "high_freq_factor": 4.0, "original_max_position_embeddings": 256},
    "attention_bias": False,
    "attention_dropout": 0.0,
    "mlp_bias": False,
    "initializer_range": 0.02,
    "pretraining_tp": 1,
    "tie_word_embeddings": True,
    "use_cache": True,
    "bos_token_id": BOS_ID,
    "eos_token_id": EOS_ID,
    "torch_dtype": "bfloat16",
}
EXPERTS = 8
BALANCE = 0.01              # of the loss that keeps experts alike in use, beside that of tokens
MIXTURE = {key: value for key, value in CONFIG.items() if key not in ("mlp_bias", "pretraining_tp")} | {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": 192,
    "num_hidden_layers": 4,
    "intermediate_size": 256,       # of layers without experts, of which there are none
    "moe_intermediate_size": 128,
    "num_experts": EXPERTS,
    "num_experts_per_tok": 2,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "rms_norm_eps": 1e-6,
    "rope_scaling": None,
    "sliding_window": None,
    "use_sliding_window": False,
    "router_aux_loss_coef": BALANCE,
    "output_router_logits": False,
}
GENERATION = {"bos_token_id": BOS_ID, "eos_token_id": EOS_ID}
TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": BOS,
    "eos_token": EOS,
    "model_max_length": 2048,
    "clean_up_tokenization_spaces": False,
    "model_input_names": ["input_ids", "attention_mask"],
}
PROMPTS = ["Once upon a time", "One day, a curious fox named Ruby was playing in the forest.",
           "There once was a brave mouse named Leo who lived by the lake.", "In a small house on the hill lived"]


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


# ---- stories and tokens ---------------------------------------------------------------------

def stories(seed, chunk, count=CHUNK):
    rng = random.Random(f"tiny-stories {seed} {chunk}")
    return [grammar.story(rng) for _ in range(count)]


def make_tokenizer(out, seed):
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, show_progress=False,
        special_tokens=[AddedToken(BOS, special=True, normalized=False), AddedToken(EOS, special=True, normalized=False)],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tok.train_from_iterator(stories(seed, "tokenizer", TOKENIZER_STORIES), trainer)
    tok.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A {BOS} $B", special_tokens=[(BOS, BOS_ID)])
    assert tok.token_to_id(BOS) == BOS_ID and tok.token_to_id(EOS) == EOS_ID
    assert tok.get_vocab_size() == VOCAB, tok.get_vocab_size()
    tok.save(str(out / "tokenizer.json"))
    write_json(out / "tokenizer_config.json", TOKENIZER_CONFIG)


def encode_chunk(task):
    """One chunk of stories as rows of SEQ + 1 tokens. A row holds whole stories, then filler
    (EOS, left out of the loss by the row's length): the first story always starts at position 0."""
    from tokenizers import Tokenizer
    tokenizer_file, seed, chunk = task
    tok = Tokenizer.from_file(tokenizer_file)
    rows, row = [], []
    for enc in tok.encode_batch(stories(seed, chunk)):
        ids = enc.ids + [EOS_ID]
        if len(row) + len(ids) > SEQ:
            rows.append(row)
            row = []
        row = row + ids
    rows.append(row)
    packed = np.full((len(rows), SEQ + 1), EOS_ID, np.uint16)
    for i, row in enumerate(rows):
        row = row[:SEQ] + [BOS_ID]          # after the end of a story comes a new one
        packed[i, :len(row)] = row
    return packed, np.array([min(len(row), SEQ) + 1 for row in rows], np.int32)


def make_data(out, seed, chunks, workers):
    """chunks: the names of the chunks; returns all rows and how many tokens of each are real"""
    tasks = [(str(out / "tokenizer.json"), seed, c) for c in chunks]
    if workers > 1:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"      # inherited by the workers
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            parts = pool.map(encode_chunk, tasks, chunksize=1)
    else:
        parts = [encode_chunk(t) for t in tasks]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])


# ---- the model ------------------------------------------------------------------------------

def inv_freq(c):
    """the rotary frequencies that the config asks for, computed here on their own"""
    s = c["rope_scaling"]
    out = []
    for i in range(0, c["head_dim"], 2):
        f = c["rope_theta"] ** (-i / c["head_dim"])
        if s is None:
            out.append(f)
            continue
        turns = s["original_max_position_embeddings"] * f / (2 * math.pi)
        if turns < s["low_freq_factor"]:
            f = f / s["factor"]
        elif turns <= s["high_freq_factor"]:
            w = (turns - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])
            f = (1 - w) * f / s["factor"] + w * f
        out.append(f)
    return np.array(out)


def all_experts(experts, hidden, chosen, weights):
    """Every expert of every token, times 0 where it is not chosen: the experts are so small that large products take
    less time than sorting tokens, and sums have one order.
    hidden [tokens][hidden], chosen and weights [tokens][experts of a token]"""
    import torch
    every = torch.zeros(len(hidden), EXPERTS, dtype=weights.dtype, device=weights.device).scatter(1, chosen, weights)
    gate, up = torch.einsum("th,erh->etr", hidden, experts.gate_up_proj).chunk(2, dim=-1)
    inner = experts.act_fn(gate) * up * every.T[..., None]
    return torch.einsum("etr,ehr->th", inner, experts.down_proj)


def make_model(config, out, seed):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    write_json(out / "config.json", config)
    torch.manual_seed(seed)
    read = AutoConfig.from_pretrained(out)
    if "num_experts" in config:
        from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
        ALL_EXPERTS_FUNCTIONS.register("all_experts", all_experts)
        read._experts_implementation = "all_experts"
    model = AutoModelForCausalLM.from_config(read).float()
    # whichever way this transformers version reads the config, the model must be the one meant
    assert np.allclose(model.model.rotary_emb.inv_freq.numpy(), inv_freq(config), rtol=1e-5)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())
    return model


def save_model(model, config, out):
    """Tensors as transformers writes them, each expert's apart; its config stays as it stands above."""
    import torch
    model.to("cpu", torch.bfloat16).save_pretrained(out)
    write_json(out / "config.json", config)
    write_json(out / "generation_config.json", GENERATION)


def batch_loss(model, rows, lengths, device, balance=0.0):
    """The mean loss of the rows' tokens; with `balance` and that of unequal use of experts times it."""
    import torch
    import torch.nn.functional as F
    rows = rows.long()
    targets = rows[:, 1:].clone()
    targets[torch.arange(1, SEQ + 1, device=device)[None, :] >= lengths[:, None]] = IGNORE
    routers = {"output_router_logits": True} if balance else {}
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda"):
        got = model(input_ids=rows[:, :-1], use_cache=False, **routers)
    loss = F.cross_entropy(got.logits.float().view(-1, VOCAB), targets.reshape(-1), ignore_index=IGNORE)
    return loss + balance * got.aux_loss if balance else loss


def print_use(model, rows):
    """What share of the rows' tokens goes through each expert of each layer."""
    import torch
    with torch.no_grad():
        routers = model(input_ids=rows.long()[:, :-1], use_cache=False, output_router_logits=True).router_logits
    for layer, logits in enumerate(routers):
        chosen = logits.topk(model.config.num_experts_per_tok, dim=-1).indices.flatten()
        shares = torch.bincount(chosen, minlength=EXPERTS).double() / len(logits)
        print(f"layer {layer}: experts' tokens " + " ".join(f"{share:.0%}" for share in shares.tolist()), flush=True)


def train(model, rows, lengths, val, args, device):
    import torch
    model.to(device).train()
    decay = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}],
                            lr=args.lr, betas=(0.9, 0.95), eps=1e-8, fused=device.type == "cuda")
    forward = torch.compile(model) if args.compile else model
    balance = BALANCE if args.experts else 0.0
    rows, lengths = torch.from_numpy(rows.astype(np.int16)).to(device), torch.from_numpy(lengths).to(device)
    order_rng = torch.Generator().manual_seed(args.seed)
    order, at = torch.empty(0, dtype=torch.long), 0
    steps, warmup, start, timed_from = args.steps, max(1, min(100, args.steps // 10)), time.time(), None
    step, total, count = 0, torch.zeros((), device=device), 0
    while step < steps:
        if at + args.batch > len(order):
            order, at = torch.cat([order[at:], torch.randperm(len(rows), generator=order_rng)]), 0
        pick = order[at:at + args.batch].to(device)
        at += args.batch
        progress = (step - warmup) / max(1, steps - warmup)
        lr = args.lr * ((step + 1) / warmup if step < warmup else 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
        for group in opt.param_groups:
            group["lr"] = lr
        loss = batch_loss(forward, rows[pick], lengths[pick], device, balance)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        step += 1
        total, count = total + loss.detach(), count + 1
        if step == 1 or step % args.log_every == 0 or step == steps:
            mean = float(total) / count         # waits for the device
            total, count = torch.zeros_like(total), 0
            print(f"step {step:5d}/{steps}  loss {mean:.4f}  lr {lr:.2e}  {time.time() - start:6.1f} s", flush=True)
            if not math.isfinite(mean):
                raise SystemExit("the loss is not finite")
        if args.max_seconds and step in (20, 60):       # a slow device gets a shorter, complete schedule
            if device.type == "cuda":
                torch.cuda.synchronize()
            if step == 20:
                timed_from = time.time()
            else:
                per_step = (time.time() - timed_from) / 40
                fits = step + int((args.max_seconds - (time.time() - start)) / per_step)
                print(f"{1000 * per_step:.1f} ms a step, {args.batch * SEQ / per_step:,.0f} tokens/s", flush=True)
                if fits < steps:
                    steps = max(fits, step + 40)
                    print(f"the steps do not fit into --max-seconds {args.max_seconds}: {steps} steps instead", flush=True)
    model.eval()
    with torch.no_grad():
        v_rows, v_len = (torch.from_numpy(x.astype(np.int32)).to(device) for x in val)
        losses = [float(batch_loss(model, v_rows[i:i + 32], v_len[i:i + 32], device)) for i in range(0, len(v_rows), 32)]
    print(f"held-out stories: loss {sum(losses) / len(losses):.4f}", flush=True)
    if args.experts:
        print_use(model, v_rows[:32])


def check_and_sample(out, device, seed, new_tokens):
    """loads the finished folder like any user would"""
    import torch
    from safetensors import safe_open
    from transformers import AutoModelForCausalLM, AutoTokenizer
    tok = AutoTokenizer.from_pretrained(out)
    model = AutoModelForCausalLM.from_pretrained(out).to(device).eval()
    with safe_open(str(out / "model.safetensors"), "pt") as f:
        names = list(f.keys())
        assert "lm_head.weight" not in names
        assert all(f.get_slice(n).get_dtype() == "BF16" for n in names)
    assert model.dtype == torch.bfloat16 and model.lm_head.weight is model.model.embed_tokens.weight
    text = 'Once upon a time, "Äpfel" cost 12 €!\n'
    ids = tok(text).input_ids
    assert ids[0] == BOS_ID and EOS_ID not in ids and tok.decode(ids, skip_special_tokens=True) == text
    torch.manual_seed(seed)
    for i, prompt in enumerate(PROMPTS + PROMPTS[:2]):
        enc = tok(prompt, return_tensors="pt")
        how = dict(do_sample=False) if i < len(PROMPTS) else dict(do_sample=True, temperature=0.7, top_k=0)
        got = model.generate(input_ids=enc.input_ids.to(device), attention_mask=enc.attention_mask.to(device),
                             max_new_tokens=new_tokens, pad_token_id=EOS_ID, **how)[0].tolist()
        end = "ended by itself" if got[-1] == EOS_ID else "cut off"
        print(f"\n[{'greedy' if i < len(PROMPTS) else 'temperature 0.7'}, {len(got)} tokens, {end}]\n"
              + tok.decode(got, skip_special_tokens=True), flush=True)
    print()
    for path in sorted(out.iterdir()):
        if path.is_file():
            print(f"{path.stat().st_size:10d}  {path.name}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--steps", type=int, default=2400)
    p.add_argument("--batch", type=int, default=128, help=f"rows of {SEQ} tokens per step")
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--stories", type=int, default=400_000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--workers", type=int, default=min(16, os.cpu_count() or 1))
    p.add_argument("--out", type=Path, help="default: the folder of this script, with --experts the one beside it; with --smoke "
                                            "a temporary one")
    p.add_argument("--max-seconds", type=float, default=150, help="limit of the training loop; 0: none")
    p.add_argument("--log-every", type=int, default=100)
    p.add_argument("--compile", action="store_true", help="torch.compile the model")
    p.add_argument("--experts", action="store_true", help=f"a mixture of {EXPERTS} experts")
    p.add_argument("--smoke", action="store_true", help="check the path only: few steps, few stories")
    args = p.parse_args()
    if args.smoke:
        args.steps, args.batch, args.stories, args.log_every = min(args.steps, 6), 4, 2 * CHUNK, 1
        args.workers = min(args.workers, 2)
    here = Path(__file__).resolve().parent
    if args.out is None:
        folder = here.with_name("tiny-stories-experts") if args.experts else here
        args.out = Path(tempfile.mkdtemp(prefix="tiny-stories-")) if args.smoke else folder
    args.out.mkdir(parents=True, exist_ok=True)
    begin = time.time()

    def say(text):
        print(f"[{time.time() - begin:6.1f} s] {text}", flush=True)

    if args.experts:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(here / name, args.out / name)
    else:
        make_tokenizer(args.out, args.seed)
        say(f"tokenizer with {VOCAB} tokens")
    rows, lengths = make_data(args.out, args.seed, range(math.ceil(args.stories / CHUNK)), args.workers)
    val = [x[:16 if args.smoke else 256] for x in make_data(args.out, args.seed, ["held out"], 1)]
    say(f"{args.stories} stories, {int(lengths.sum()) / 1e6:.1f} M tokens in {len(rows)} rows, {lengths.mean() / (SEQ + 1):.0%} full")

    import torch
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False     # costs time and hides nothing here
    torch.set_float32_matmul_precision("high")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = MIXTURE if args.experts else CONFIG
    model = make_model(config, args.out, args.seed)
    say(f"{sum(x.numel() for x in model.parameters())} parameters, training on {device}")
    train(model, rows, lengths, val, args, device)
    save_model(model, config, args.out)
    say("saved")
    check_and_sample(args.out, device, args.seed, 40 if args.smoke else 260)
    say("done")


if __name__ == "__main__":
    main()
