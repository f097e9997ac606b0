#!/usr/bin/env python3
"""Makes the fixtures of tokenizer_test.cc with the reference library: python3 make_tokenizer_fixture.py

llama/     a small Llama-3-like tokenizer.json: Split and ByteLevel, ignore_merges, begin-of-text, added tokens
gpt2/      a GPT-2-like one: ByteLevel alone, merges as "a b" strings, no post-processor
smollm/    Digits, then ByteLevel with its own pattern
cases.json texts, and per tokenizer the ids with special tokens parsed, without, and what the ids decode to

Training is deterministic, so running it again changes nothing unless the library did.
"""

import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

FOLDER = pathlib.Path(__file__).resolve().parent
LLAMA_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
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


def trained(pre_tokenizer, vocabulary, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False, min_frequency=1,
                                  initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=text == "<tool>") for text in PLAIN])
    return tokenizer


def llama():
    split = pre_tokenizers.Split(Regex(LLAMA_PATTERN), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer = trained(pre_tokenizers.Sequence([split, byte_level]), 700, ignore_merges=True)
    begin = tokenizer.token_to_id(SPECIAL[0])
    template = processors.TemplateProcessing(single=f"{SPECIAL[0]} $A", special_tokens=[(SPECIAL[0], begin)])
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return json.loads(tokenizer.to_str())


def gpt2():
    document = json.loads(trained(pre_tokenizers.ByteLevel(add_prefix_space=False), 500).to_str())
    document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
    return document


def smollm():
    digits = pre_tokenizers.Digits(individual_digits=True)
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return json.loads(trained(pre_tokenizers.Sequence([digits, byte_level]), 450).to_str())


def write_json(path, value):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n", encoding="ascii")


def main():
    cases = {"texts": texts()}
    for name, document in {"llama": llama(), "gpt2": gpt2(), "smollm": smollm()}.items():
        path = FOLDER / name / "tokenizer.json"
        write_json(path, document)
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
