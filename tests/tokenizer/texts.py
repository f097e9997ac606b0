"""Texts that are hard on tokenizers: every assigned character, and what breaks patterns, merges and decoders."""

import functools
import math
import random
import sys
import unicodedata

from tokenizers import normalizers

MARKS = [chr(c) for c in range(0x300, 0x370)] + list("\u0591\u05b0\u064b\u0651\u093c\u094d\u0e38\u0e48\u3099\u309a\u20d0")
SPACES = list(" \t\n\r\v\f\x1c\x85\u00a0\u1680\u2000\u2003\u2009\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff\u180e")
EMOJI = ["👍", "🏽", "👨", "👩", "👧", "🇩", "🇪", "☃", "❤", "\ufe0f", "\u200d", "🏴", "\U000e0067", "\U000e007f", "1\ufe0f\u20e3"]
TOKENS = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eot_id|>x", "<tool>", "<tool_call>", "<｜pause｜>", "<unk>",
          "<s>", "</s>", "[INST]", "[/INST]", "<0x0A>", "<0xE4>", "<l>", "<r>", "<lr>", "word", "Ünit", "U\u0308nit", "<s>x",
          "fox", " the ", "é", "e\u0301", "<sp>", "<tool", "<|eot", "[INST", "▁", "▁▁▁"]
WORDS = ("the quick brown fox jumps over lazy dog doesn't WE'RE I'll they've Größe naïve café Ærø Привет дела مرحبا नमस्ते "
         "दुनिया 東京都 住んでいます 中文字符 한국어 각 ภาษาไทย שלום 12345 3.14159 2,000,000 ½ Ⅷ ๓๔ ١٢٣ ² 'ſ 'S ’s İstanbul ǅ ﬁn Å ΣΑΣ "
         "ß ﷺ \u1e9b\u0323 \u2126 \u0344 \u0958 \u1100\u1161\u11a8 __init__ a_b x\u00adx").split(" ")
PUNCTUATION = list(".,;:!?'\"()[]{}<>|/\\-_+=*&^%$#@~`…—–“”。、！？《》")


NFKD = normalizers.NFKD()
BLOCK = 1024  # codes that the reference normalizes at once


def normalize_alike(lines):
    """For each line, which holds no end of one, whether the reference's normal form is Python's."""
    if not lines:
        return []
    found = NFKD.normalize_str("\n".join(lines)).split("\n")
    return [line == unicodedata.normalize("NFKD", text) for line, text in zip(found, lines, strict=True)]


@functools.cache
def compared_codes(block):
    """is_compared() of a block of codes; the end of a line, which has no normal form, is."""
    first = block * BLOCK
    compared = [code == ord("\n") for code in range(first, first + BLOCK)]
    codes = [code for code in range(first, first + BLOCK)
             if code != ord("\n") and unicodedata.category(chr(code)) not in ("Cn", "Cs")]
    alone = normalize_alike([chr(code) for code in codes])
    beside = normalize_alike([f"a\u0345{chr(code)}\u0323{chr(code)}" for code in codes])
    for code, *alike in zip(codes, alone, beside):
        compared[code - first] = all(alike)
    return compared


def is_compared(code):
    """Whether the character is assigned, in this Python's version of Unicode, and the reference's normal forms,
    which are Unicode 9's, know it: 171 marks and compatibility characters of later versions are left out."""
    return compared_codes(code // BLOCK)[code % BLOCK]


# Of ideographs and syllables, which are alike, few texts have every IDEOGRAPH_SHARE-th.
IDEOGRAPHS = [(0x3400, 0x4DC0), (0x4E00, 0xA000), (0xAC00, 0xD7A4), (0x17000, 0x18D00), (0x20000, 0x32400)]
IDEOGRAPH_SHARE = 16
FEW_TEXTS = 10_000


def every_character(most_texts, share):
    """Each assigned character outside the private planes, of ideographs and syllables one of `share`, between a letter, a
    digit and a space; at least four a text."""
    skipped = {code for first, end in IDEOGRAPHS for code in range(first, end) if (code - first) % share != 0}
    codes = [code for code in range(0xF0000) if code not in skipped and not 0xE100 <= code < 0xF8FF and is_compared(code)]
    per_text = max(4, math.ceil(len(codes) / most_texts))
    return ["".join(f"a{chr(code)}1{chr(code)} " for code in codes[start:start + per_text])
            for start in range(0, len(codes), per_text)]


def any_character(generator):
    plane = generator.choice([0x80, 0x250, 0x3000, 0x10000, 0x10000, 0x20000, 0x30000, sys.maxunicode + 1])
    while True:
        code = generator.randrange(plane)
        if is_compared(code):
            return chr(code)


def long_run(generator):
    unit = generator.choice([*"a 1\n.!-é東\u0301", "▁", "ab", "the ", "\r\n", " \n", "🎉", "\u0301\u0316", "'s", "<tool>", "\u00a0", "<"])
    return unit * generator.randint(20, 600)


def fragment(generator):
    kind = generator.random()
    if kind < 0.35:
        return generator.choice(WORDS)
    if kind < 0.5:
        return generator.choice(SPACES) * generator.choice([1, 1, 2, 5])
    if kind < 0.6:
        return generator.choice(TOKENS)
    if kind < 0.68:
        return generator.choice(PUNCTUATION) * generator.choice([1, 1, 3])
    if kind < 0.75:
        return "".join(generator.choices(EMOJI, k=generator.randint(1, 6)))
    if kind < 0.82:
        return generator.choice("aeouAnн가か") + "".join(generator.choices(MARKS, k=generator.randint(1, 5)))
    if kind < 0.88:
        return str(generator.randrange(10 ** generator.randint(1, 12)))
    if kind < 0.9:
        return generator.choice(["\ufffd", "\ufffe", "\uffff", "\U0010ffff", "\x00", "\x1b[31m", "\x7f", "Ã©", "â‚¬", "\u00ff\u00fe"])
    return any_character(generator)


def mixed(generator):
    separator = generator.choice(["", "", " ", " ", "\n"])
    return separator.join(fragment(generator) for _ in range(generator.randint(1, 16)))


def hard_texts(count, seed):
    """`count` texts: every character, in up to half of them, then mixtures. With a small count few ideographs."""
    generator = random.Random(seed)
    texts = ["", " ", "  ", "\n", *TOKENS, *WORDS, *SPACES]
    texts += every_character(max(1, count // 2), IDEOGRAPH_SHARE if count < FEW_TEXTS else 1)
    while len(texts) < count:
        texts.append(long_run(generator) if generator.random() < 0.01 else mixed(generator))
    return texts[:count]
