"""Small tokenizers for tests, trained here with the parts that the big families have: functions that return
the document of a tokenizer.json. Needs the reference library `tokenizers`; training is deterministic.

FAMILIES are as published models have them. VARIANTS combine what those leave out.
"""

import itertools
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN_PATTERN = LLAMA_PATTERN.replace("{1,3}", "")
TEKKEN_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CORPUS = [
    "The quick brown fox jumps over the lazy dog. The dog doesn't mind; it's asleep.",
    "A kernel that never leaves the card: it reads weights, writes tokens, and waits for nobody.",
    "def encode(text):\n    ids = []\n    for piece in split(text):\n        ids += merge(piece)\n    return ids\n",
    "Größe, naïve café, Ærø, 東京都に住んでいます。 Привет, как дела? مرحبا بالعالم नमस्ते दुनिया",
    "In 1984 there were 12345 reasons; 3.14159 of them were rational, 2,000,000 were not.",
    "I'll say we're sure they've said you'd go, I'm certain. WE'RE SURE. DON'T!",
    "\u182e\u1823\u1829\u182d\u1823\u182f\u180e !\u180e! \u180ea",  # U+180E is no white space, though PCRE2 thinks so
    "the the the and and and ing ing tion tion er er re re    \t\t\n\n\n",
]
SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eot_id|>x"]
PLAIN = ["<tool>", "<tool_call>", "<｜pause｜>"]
BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


def to_json(tokenizer):
    return json.loads(tokenizer.to_str())


def add_tokens(tokenizer):
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=text == "<tool>") for text in PLAIN])


# ---- byte-level ----


def byte_level(pre_tokenizer, vocabulary, ignore_merges=False, normalizer=None):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False, min_frequency=1,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(CORPUS, trainer)
    add_tokens(tokenizer)
    return tokenizer


def split_by(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def begin_with(tokenizer, name):
    return processors.TemplateProcessing(single=f"{name} $A", special_tokens=[(name, tokenizer.token_to_id(name))])


def llama():
    tokenizer = byte_level(split_by(LLAMA_PATTERN), 700, ignore_merges=True)
    template = begin_with(tokenizer, SPECIAL[0])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return to_json(tokenizer)


def qwen():
    tokenizer = byte_level(split_by(QWEN_PATTERN), 600, normalizer=normalizers.NFC())
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return to_json(tokenizer)


def nemo():
    tokenizer = byte_level(split_by(TEKKEN_PATTERN), 650, ignore_merges=True)
    tokenizer.post_processor = begin_with(tokenizer, SPECIAL[0])
    return to_json(tokenizer)


def gpt2():
    document = to_json(byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), 500))
    document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
    return document


def smollm():
    digits = pre_tokenizers.Digits(individual_digits=True)
    return to_json(byte_level(pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)]), 450))


# ---- with byte fallback ----


def sentence_piece(vocabulary=700, bytes_present=256, **model):
    """A tokenizer without normalizer, pre-tokenizer and decoder. Its words are joined by U+2581."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokens = ["<unk>", "<s>", "</s>", *BYTE_TOKENS[:bytes_present]]
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False, min_frequency=1, special_tokens=tokens)
    lines = [line for line in CORPUS if "東" not in line]  # whose characters are left to fall back
    tokenizer.train_from_iterator([*lines, "<b>tags</b> [x]"], trainer)
    document = to_json(tokenizer)
    document["added_tokens"] = [token for token in document["added_tokens"] if token["content"] in tokens[:3]]
    document["pre_tokenizer"] = None
    document["model"] |= {"byte_fallback": True} | model
    vocab, merges = document["model"]["vocab"], document["model"]["merges"]
    for left, right in [("▁", "▁"), ("▁▁", "▁▁"), ("▁▁▁▁", "▁▁"), ("▁", "<"), ("s", ">")]:
        vocab.setdefault(left + right, len(vocab))
        merges.append([left, right])
    return document


def with_parts(document, **parts):
    """The document with parts of the library put in; None takes one away."""
    document = dict(document)
    tokenizer = Tokenizer(models.BPE())
    for name, part in parts.items():
        if part is not None:
            setattr(tokenizer, name, part)
        document[name] = to_json(tokenizer)[name] if part is not None else None
    return document


def with_added(document, *tokens):
    """The document with further tokens: content and the names of flags."""
    document = dict(document)
    ids = document["model"]["vocab"]
    next_id = max(len(ids), 1 + max((token["id"] for token in document["added_tokens"]), default=0))
    added = list(document["added_tokens"])
    for content, *flags in tokens:
        token = {"id": ids.get(content, next_id), "content": content}
        token |= {flag: flag in flags for flag in ["single_word", "lstrip", "rstrip", "normalized", "special"]}
        next_id += content not in ids
        added.append(token)
    document["added_tokens"] = added
    return document


def fallback_decoder():
    return decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                              decoders.Strip(" ", 1, 0)])


CONTROLS = [("[INST]", "special"), ("[/INST]", "special"), ("<tool>", "normalized"), ("<tool_call>",)]


def mistral():
    """As v0.1: the text's spaces are marks before anything else, and nothing cuts it."""
    normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    return with_added(with_parts(sentence_piece(), normalizer=normalizer, decoder=fallback_decoder()), *CONTROLS)


def mistral3():
    """As v0.3: Metaspace on the first section, which it does not split."""
    metaspace = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    return with_added(with_parts(sentence_piece(), pre_tokenizer=metaspace, decoder=fallback_decoder()), *CONTROLS)


FAMILIES = {function.__name__: function for function in [llama, qwen, nemo, gpt2, smollm, mistral, mistral3]}


# ---- variants ----

RULES = [("<l>", "lstrip"), ("<r>", "rstrip"), ("<lr>", "lstrip", "rstrip", "normalized"), ("word", "single_word"),
         ("Ünit", "single_word", "normalized"), ("\n", "lstrip"), ("<s>x", "special", "lstrip", "rstrip"),
         ("fox", "single_word", "lstrip"), ("<tool", ), (" the ", "normalized"), ("é",), ("<sp>", "special", "normalized")]


def split_variants():
    patterns = {"space": r"\s", "word": r"\p{L}+", "nothing": "x*", "line": "^.", "text": " ", "ends": r"$|(?<=a)"}
    behaviors = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]
    base = to_json(byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), 500))
    for (name, pattern), behavior, invert in itertools.product(patterns.items(), behaviors, [False, True]):
        split = pre_tokenizers.Split(pattern if name == "text" else Regex(pattern), behavior, invert)
        prefix = behavior in ("isolated", "removed")
        parts = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=invert)])
        yield f"split-{name}-{behavior}-{invert}", with_parts(base, pre_tokenizer=parts)


def metaspace_variants():
    base = with_parts(sentence_piece(), decoder=decoders.Metaspace())
    for scheme, split in itertools.product(["always", "first", "never"], [False, True]):
        metaspace = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
        digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=split), metaspace])
        document = with_parts(base, pre_tokenizer=metaspace, decoder=decoders.Metaspace(prepend_scheme=scheme))
        yield f"metaspace-{scheme}-{split}", with_added(document, *CONTROLS, *RULES)
        stripped = normalizers.Sequence([normalizers.Strip(left=True, right=split), normalizers.Prepend("x ")])
        yield f"metaspace-digits-{scheme}-{split}", with_parts(document, pre_tokenizer=digits, normalizer=stripped)


def normalizer_variants():
    base = with_parts(sentence_piece(), decoder=fallback_decoder())
    n = normalizers
    chains = {
        "nfd": n.NFD(), "nfc": n.NFC(), "nfkc": n.NFKC(), "nfkd": n.NFKD(), "lower": n.Lowercase(),
        "strip": n.Sequence([n.Strip(), n.Replace(" ", "▁")]), "right": n.Strip(left=False, right=True),
        "regex": n.Sequence([n.Replace(Regex(r"\s+|x*"), "▁"), n.Prepend("▁")]), "letters": n.ByteLevel(),
        "all": n.Sequence([n.NFKC(), n.Lowercase(), n.Strip(), n.Replace(Regex("[aeiou]{2}"), "ou"), n.Prepend("▁"),
                           n.Replace(" ", "▁")]),
    }
    for name, chain in chains.items():
        yield f"normalizer-{name}", with_added(with_parts(base, normalizer=chain), *CONTROLS, *RULES)


def unknown_variants():
    for fuse, has_unknown, num_bytes in itertools.product([False, True], [False, True], [0, 200, 256]):
        model = {"fuse_unk": fuse, "unk_token": "<unk>" if has_unknown else None, "byte_fallback": num_bytes > 0}
        document = with_parts(sentence_piece(bytes_present=num_bytes, **model),
                              normalizer=normalizers.Replace(" ", "▁"), decoder=fallback_decoder())
        yield f"unknown-{fuse}-{has_unknown}-{num_bytes}", document


def decoder_variants():
    d = decoders
    chains = {
        "none": None, "each": d.Strip("▁", 1, 0), "ends": d.Strip("s", 1, 2), "fuse": d.Fuse(), "bytes": d.ByteFallback(),
        "regex": d.Sequence([d.Replace(Regex("[aeiou]+|x*"), "_"), d.ByteFallback(), d.Fuse()]),
        "after": d.Sequence([d.Fuse(), d.Replace("▁t", " T"), d.Strip("▁", 2, 0)]),
        "mark": d.Sequence([d.ByteFallback(), d.Fuse(), d.Replace("▁", " "), d.Strip(" ", 1, 1)]),
        "letters": d.ByteLevel(), "twice": d.Sequence([d.ByteFallback(), d.ByteLevel(), d.Metaspace(), d.Fuse()]),
        "metaspace": d.Sequence([d.Metaspace(prepend_scheme="always"), d.Strip(" ", 1, 0), d.ByteFallback()]),
    }
    base = with_parts(sentence_piece(), normalizer=normalizers.Replace(" ", "▁"))
    for name, chain in chains.items():
        yield f"decoder-{name}", with_added(with_parts(base, decoder=chain), *CONTROLS)


def variants():
    """Names and documents."""
    yield from split_variants()
    yield from metaspace_variants()
    yield from normalizer_variants()
    yield from unknown_variants()
    yield from decoder_variants()
    base = to_json(byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True), 500, ignore_merges=True))
    yield "rules", with_added(base, *RULES)
    yield "rules-mistral", with_added(mistral(), *RULES)
