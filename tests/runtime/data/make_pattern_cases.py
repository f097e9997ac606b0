#!/usr/bin/env python3
"""Makes patterns.json with the reference library: python3 make_pattern_cases.py

"texts", and under "patterns" for each pattern what a Replace with "|" makes of each text; null where that is the text.
Random patterns that the library refuses are left out.
"""

import json
import pathlib
import random

from tokenizers import Regex, normalizers

TEXTS = [
    "", "aaaaa", "The café's 12 naïve_words don't", "a\nb\n", "\n", " x  y\t\u00a0z\u3000", "u\u180ev \u180e\n", "e\u0301a",
    "ß ss SS ẞ ſs straße", "ﬁfiﬆst", "kK\u212asS\u017f", "éÉ µΜμ ςσΣ", "東京、都。（は）ひ・ヒー", "\u1fc3 \u0345Ιι", "x² y³ ¹ ¼½¾ Ⓐ Ⅷ ٣",
    "a-b_c d\u203fe", "\r\n\r\u0085\u2028\u000b", "0fG 1aH", "a{2}a{,}a{", "pLQaE.\\", "aAbB\nAb", "\U0001d7d8\U0001f600\u200dx",
]

# Each shows one difference between the engines, or that there is none.
PATTERNS = [
    r"\w", r"\W", r"[\w]", r"[^\w]", r"[\W]", r"[\W\d]", r"[^\W\d_]+", r"[^\W]", r"\w+(?= )", r"\b", r"\B", r"\bn\w*", r"\b\w",
    r"(?<=\b)a", r"[\b]", r"\s", r"\S", r"[\S]", r"[^\S\n]", r"[^\S\n]+$", r"[^\s\S]", r"\d", r"\D", r"[\D]", r"\h", r"\H", r"[\h]",
    r"\v", r"\R", r"(?m)a.", r"(?m:.)+", r"(?m).+(?-m).", r"a(?i)b|a", r"(?:a(?i)b|A)b", r"(?i:a)b", r"(?i)a(?-i)b", r"(?im-:a.)",
    r"a{2}?", r"(a{2}?)b?", r"a{2}+", r"a{1,2}+", r"a{1,2}?", r"a{,2}", r"a{,2}?", r"a{2}{2}", r"a{2}*?", r"a++a", r"a{,}", r"a{", r"^",
    r"$", r"^.", r"\A.", r".\z", r".\Z", r"(?i)k", r"(?i)s", r"(?i)[s]", r"(?i)[^k]", r"(?i)é", r"(?i)ς", r"(?i)µ", r"(?i)\p{Lu}",
    r"(?i)[a-z]+", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"\p{Han}", r"[\p{Han}]+", r"\P{Han}", r"\p{^Han}", r"[^\p{Hiragana}]", r"\p{Greek}",
    r"\p{Katakana}", r"\p{Common}", r"\p{Alpha}", r"\p{Letter}+", r"\p{^L}", r"\P{^L}", r"[\p{^L}]", r"\p{White_Space}", r"[[:alpha:]]",
    r"[[:alnum:]_]", r"[[:upper:]]", r"[[:lower:]]", r"[[:punct:]]", r"[[:space:]]", r"[[:xdigit:]]", r"[]a]", r"[^]a]", r"[x[ab]_]", r" ?[^(\s|[.,!?…。，、])]+", r"[[a-c][[:digit:]]]", r"[a\]-]",
    r"\u00e9", r"\x{e9}", r"\x61", r"[\x{4e00}-\x{9fff}]", r"[\u4e00-\u9fff]", r"(?#no)a", r"(?<name>a)(b)?", r"a|", r"(?=a)", r"x*",
]

ATOMS = ["a", "b", "s", "k", "é", "1", "_", "-", " ", "\n", ".", "^", "$", r"\w", r"\W", r"\b", r"\B", r"\s", r"\S", r"\d", r"\h", r"\p{L}",
         r"\p{^N}", r"\p{Han}", r"\x41", r"\A", r"\z", r"\R", "{", "}"]
MEMBERS = ["a-z", "A-Z", "s", "é", "0-9", r"\w", r"\W", r"\s", r"\S", r"\d", r"\p{L}", r"\P{N}", r"\n", "_", "[:alpha:]", "[:space:]", r"\h",
           "\u180e", r"\]", "東", r"\p{^L}"]
OPENINGS = ["(", "(?:", "(?i:", "(?m:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?<n>", "(?i-m:"]
QUANTIFIERS = ["*", "+", "?", "*?", "+?", "??", "*+", "++", "{2}", "{2}?", "{1,2}", "{1,2}?", "{1,2}+", "{,2}", "{2}+", "{1,}", "{2}{2}"]


def random_pattern(generator, depth=2):
    pieces = []
    for _ in range(generator.randint(1, 3)):
        chance = generator.random()
        if chance < 0.25:
            members = "".join(generator.choices(MEMBERS, k=generator.randint(1, 3)))
            piece = f"[{generator.choice(['', '^'])}{members}]"
        elif chance < 0.45 and depth > 0:
            piece = generator.choice(OPENINGS) + random_pattern(generator, depth - 1) + ")"
        else:
            piece = generator.choice(ATOMS)
        if generator.random() < 0.35:
            piece += generator.choice(QUANTIFIERS)
        if generator.random() < 0.05:
            piece = generator.choice(["(?i)", "(?m)", "|"]) + piece
        pieces.append(piece)
    return "".join(pieces)


def main():
    generator = random.Random(5)
    cases = {}
    for pattern in PATTERNS + [random_pattern(generator) for _ in range(250)]:
        try:
            replace = normalizers.Replace(Regex(pattern), "|")
        except Exception:
            assert pattern not in PATTERNS, pattern
            continue
        made = [replace.normalize_str(text) for text in TEXTS]
        cases[pattern] = [None if after == text else after for text, after in zip(TEXTS, made)]
    lines = ",\n".join(f" {json.dumps(pattern)}: {json.dumps(made)}" for pattern, made in cases.items())
    path = pathlib.Path(__file__).with_name("patterns.json")
    path.write_text(f'{{"texts": {json.dumps(TEXTS)},\n"patterns": {{\n{lines}\n}}}}\n', encoding="ascii")


if __name__ == "__main__":
    main()
