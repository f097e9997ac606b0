#!/usr/bin/env python3
"""Writes tokenizers as GGUF, by the public package gguf, and what the reference library makes of hard texts with the
tokenizer.json that each stands for: make_tokenizers.py FOLDER [COUNT [SEED]]

As tests/tokenizer/make_cases.py, with FOLDER/NAME/model.gguf beside each tokenizer.json.
"""

import pathlib
import sys

import gguf
from tokenizers import Regex, pre_tokenizers

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tokenizer"))

import families
import make_cases
import make_gguf
import texts

SEED_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|"
                r"\s+(?!\S)|\s+")
DEEPSEEK_PATTERNS = (r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                     r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|"
                     r" ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
BYTE_LEVEL = {"llama": "llama-bpe", "qwen": "qwen2", "nemo": "tekken", "gpt2": "gpt-2", "smollm": "smollm", "seed": "seed-coder",
              "hunyuan": "hunyuan-dense"}
SHARE = 5  # of the texts that each tokenizer gets
TOKEN_TYPES = gguf.TokenType


def as_files_can_say(document):
    """Added tokens without what a GGUF file has no word for."""
    for token in document["added_tokens"]:
        token["normalized"] = False
    return document


def split_by(*patterns):
    """A byte-level tokenizer whose words these cut, each what those before it have left."""
    steps = [pre_tokenizers.Split(Regex(pattern), behavior="isolated") for pattern in patterns]
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    return families.to_json(families.byte_level(pre_tokenizers.Sequence(steps), 600))


FAMILIES = families.FAMILIES | {"seed": lambda: split_by(SEED_PATTERN), "hunyuan": lambda: split_by(*DEEPSEEK_PATTERNS)}


def vocabulary_size(document):
    return 1 + max([*document["model"]["vocab"].values(), *(token["id"] for token in document["added_tokens"])])


def write_gguf(path, add):
    writer = gguf.GGUFWriter(str(path), "llama")
    add(writer)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def merges_of(vocab, scores):
    """As transformers makes them of SentencePiece's scores."""
    merges = []
    for piece, score in scores.items():
        local = [(piece[:i], piece[i:], score) for i in range(1, len(piece)) if piece[:i] in vocab and piece[i:] in vocab]
        merges.extend(sorted(local, key=lambda merge: (vocab[merge[0]], vocab[merge[1]])))
    merges.sort(key=lambda merge: (merge[2], len(merge[0]), len(merge[1])), reverse=True)
    return [[left, right] for left, right, _ in merges]


def sentence_piece(has_prefix):
    """A tokenizer.json, and the score of every token."""
    document = as_files_can_say(families.mistral())
    vocab = document["model"]["vocab"]
    made = {}
    for rank, (left, right) in enumerate(document["model"]["merges"]):
        made.setdefault(left + right, -float(rank))
    added = {token["content"] for token in document["added_tokens"]}
    skipped = added | set(families.BYTE_TOKENS)
    scores = {text: 0.0 if text in skipped else made.get(text, -1e4) for text in vocab}
    document["model"]["merges"] = merges_of(vocab, {text: score for text, score in scores.items() if text not in skipped})
    if not has_prefix:
        document["normalizer"]["normalizers"] = document["normalizer"]["normalizers"][1:]
        document["decoder"]["decoders"] = document["decoder"]["decoders"][:-1]
    return document, scores


def add_sentence_piece(writer, document, scores, has_prefix):
    size = vocabulary_size(document)
    tokens, types = [f"[PAD{i}]" for i in range(size)], [TOKEN_TYPES.UNUSED] * size
    values = [-1000.0] * size
    for text, token in document["model"]["vocab"].items():
        tokens[token], types[token], values[token] = text, TOKEN_TYPES.NORMAL, scores[text]
        if text in families.BYTE_TOKENS:
            types[token] = TOKEN_TYPES.BYTE
    for token in document["added_tokens"]:
        tokens[token["id"]] = token["content"]
        types[token["id"]] = TOKEN_TYPES.CONTROL if token["special"] else TOKEN_TYPES.USER_DEFINED
    types[0] = TOKEN_TYPES.UNKNOWN
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores(values)
    writer.add_token_types(types)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    if not has_prefix:
        writer.add_add_space_prefix(False)


def main():
    folder = pathlib.Path(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 5000
    all_texts = texts.hard_texts(count, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.bin").write_bytes(make_cases.number(len(all_texts)) + b"".join(map(make_cases.text_bytes, all_texts)))
    some, num_random = all_texts[::SHARE], count // SHARE // make_cases.RANDOM_SHARE
    for name, pre in BYTE_LEVEL.items():
        document = as_files_can_say(FAMILIES[name]())
        make_cases.write_cases(folder / name, document, some, num_random)
        write_gguf(folder / name / "model.gguf", lambda writer: make_gguf.add_tokenizer(
            writer, document, pre, vocabulary_size(document), False, None, None))
    for name, has_prefix in {"spm": True, "spm-no-prefix": False}.items():
        document, scores = sentence_piece(has_prefix)
        make_cases.write_cases(folder / name, document, some, num_random)
        write_gguf(folder / name / "model.gguf", lambda writer: add_sentence_piece(writer, document, scores, has_prefix))


if __name__ == "__main__":
    main()
