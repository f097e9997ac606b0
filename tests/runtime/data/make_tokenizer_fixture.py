#!/usr/bin/env python3
"""Makes the fixtures of tokenizer_test.cc with the reference library: python3 make_tokenizer_fixture.py

NAME/tokenizer.json  for each family of ../../tokenizer/families.py
cases.json           texts, and per tokenizer the ids with special tokens parsed, without, and what the ids decode to

Training is deterministic, so running it again changes nothing unless the library did.
"""

import json
import pathlib
import random
import sys

from tokenizers import Tokenizer

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parents[1] / "tokenizer"))

from families import FAMILIES  # noqa: E402


def texts():
    fixed = [
        "", " ", "  ", "a", "Hello, world!", "The quick brown fox doesn't.", "  two spaces  inside  ",
        "\t\ttabs\tand\r\nlines\n\n\n  indented", "I'll DON'T we'RE 'ſ 'S ’s", "1 12 123 1234 12345678 ½ ² Ⅷ ๓๔ ١٢٣",
        "naïve café Größe Ærø", "e\u0301 a\u0308 combining \u200d\u200c joiners", "東京都に住んでいます。", "Привет, как дела?",
        "مرحبا بالعالم", "नमस्ते दुनिया", "👍🏽 👨‍👩‍👧‍👦 🇩🇪 ☃️", "\u0000\u0001\u001b[31m\u007f\u0080\u0085\u009f", "\u00a0\u2003\u3000\u2028\u2029 \u1680\u202f",
        "\ufeffmark \ufffd \ufffe \uffff \U0010ffff", "zero\u200bwidth \u00adsoft", "a" * 700, " " * 700, "\n" * 399 + "x", "12" * 299,
        "é" * 177, "🎉" * 99, "the" * 200, "!?" * 150, " \n" * 150, "ab " * 90,
        "<|begin_of_text|>Hi<|eot_id|>", "<|eot_id|><|eot_id|>x<|eot_id|>", "x<|eot_id|", "<|eot_id|>xy <tool_call>{}</tool_call><tool>",
        "<tool_callx<tool> <｜pause｜>", "a<|end_of_text|> b <|end_of_text|>", "<<tool>> <|<tool>|>", "<|begin_of_text|", " <|eot_id|> ",
        "def f(x):\n    return x**2  # square\n", "https://example.org/a?b=c&d=%20", "x\u2028y\u0085z\u180ew", "!\u180e! \u180ea  \u180e\u1823\u180e\n", "\u182f\u180e !",
        "[INST] Hi [/INST]</s><s>x", "▁▁ ▁x ▁", "<0x0A><0xE4>", "cafe\u0301 A\u030a \u212b \u1100\u1161\u11a8 \u0958 q\u0307\u0323",
    ]
    generator = random.Random(7)
    alphabet = "abtheingr ABZ  '.,!?\n\t\r09éßæ東京дな़👍🏽\u200d\u00a0\u3000½<|>tool_eotid"
    mixed = ["".join(generator.choices(alphabet, k=generator.randint(1, 60))) for _ in range(60)]
    anything = []
    for _ in range(30):
        points = [generator.choice([generator.randrange(0x250), generator.randrange(0xD800), generator.randrange(0xE000, 0x11000),
                                    generator.randrange(0x1F300, 0x1F700)]) for _ in range(generator.randint(1, 30))]
        anything.append("".join(map(chr, points)))
    return fixed + mixed + anything


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n", encoding="ascii")


def main():
    cases = {"texts": texts()}
    for name, make in FAMILIES.items():
        path = FOLDER / name / "tokenizer.json"
        write_json(path, make())
        tokenizer = Tokenizer.from_file(str(path))
        rows = []
        for text in cases["texts"]:
            tokenizer.encode_special_tokens = False
            parsed = tokenizer.encode(text, add_special_tokens=False).ids
            tokenizer.encode_special_tokens = True
            plain = tokenizer.encode(text, add_special_tokens=False).ids
            row = {"parsed": parsed, "decoded": tokenizer.decode(plain, skip_special_tokens=False)}
            if plain != parsed:
                row["plain"] = plain
            if row["decoded"] == text:
                del row["decoded"]  # the common case
            rows.append(row)
        cases[name] = rows
    write_json(FOLDER / "cases.json", cases)


if __name__ == "__main__":
    main()
