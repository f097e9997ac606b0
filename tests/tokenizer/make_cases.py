#!/usr/bin/env python3
"""Writes tokenizers and what the reference library makes of hard texts: make_cases.py FOLDER WHICH [COUNT [SEED]]

WHICH is a name of families.FAMILIES, or "variants" for all of families.variants().

FOLDER/texts.bin            count, then texts
FOLDER/NAME/tokenizer.json  for the family, or each variant
FOLDER/NAME/cases.bin       a family's covers all texts, a variant's every VARIANT_SHARE-th. Number of texts; for
                            each its ids with special tokens parsed and without, and the latter decoded. Number
                            of random ids, a RANDOM_SHARE-th of COUNT; for each the ids, decoded, and decoded
                            without special tokens

Numbers are 32 bits, little-endian; texts are UTF-8 after their number of bytes, ids after their number, which is
2**32 - 1 where the library gives nothing.
"""

import json
import pathlib
import random
import struct
import sys

from tokenizers import Tokenizer

import families
import texts

VARIANT_SHARE = 50
RANDOM_SHARE = 33
NOTHING = b"\xff" * 4


def number(value):
    return struct.pack("<I", value)


def text_bytes(text):
    if text is None:
        return NOTHING
    data = text.encode()
    return number(len(data)) + data


def id_bytes(ids):
    if ids is None:
        return NOTHING
    return number(len(ids)) + struct.pack(f"<{len(ids)}I", *ids)


def attempt(function, *arguments, **options):
    """The result, or None where the library itself panics, as it does where tokens strip the same space."""
    try:
        return function(*arguments, **options)
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return None


def encode_all(tokenizer, some, parse_special):
    tokenizer.encode_special_tokens = not parse_special
    encodings = attempt(tokenizer.encode_batch_fast, some, add_special_tokens=False)
    if encodings is None:
        encodings = [attempt(tokenizer.encode, text, add_special_tokens=False) for text in some]
    return [None if encoding is None else encoding.ids for encoding in encodings]


def decode(tokenizer, ids, skip_special):
    return attempt(tokenizer.decode, ids, skip_special_tokens=skip_special)


def decode_all(tokenizer, some):
    if None not in some:
        decoded = attempt(tokenizer.decode_batch, some, skip_special_tokens=False)
        if decoded is not None:
            return decoded
    return [None if ids is None else decode(tokenizer, ids, False) for ids in some]


def random_ids(tokenizer, generator):
    """Ids in any order, often of single bytes, so that characters break."""
    size = tokenizer.get_vocab_size()
    limit = generator.choice([size, 256, 270])
    return [generator.randrange(min(limit, size)) for _ in range(generator.randint(0, 12))]


def write_cases(folder, document, some, num_random):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(document), encoding="ascii")
    tokenizer = Tokenizer.from_file(str(path))
    parsed = encode_all(tokenizer, some, True)
    plain = encode_all(tokenizer, some, False)
    decoded = decode_all(tokenizer, plain)
    generator = random.Random(11)
    with open(folder / "cases.bin", "wb") as out:
        out.write(number(len(some)))
        for row in zip(parsed, plain, decoded):
            out.write(id_bytes(row[0]) + id_bytes(row[1]) + text_bytes(row[2]))
        out.write(number(num_random))
        for _ in range(num_random):
            ids = random_ids(tokenizer, generator)
            out.write(id_bytes(ids) + text_bytes(decode(tokenizer, ids, False)) + text_bytes(decode(tokenizer, ids, True)))


def main():
    folder = pathlib.Path(sys.argv[1])
    which = sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 100_000
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    all_texts = texts.hard_texts(count, seed)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.bin").write_bytes(number(len(all_texts)) + b"".join(map(text_bytes, all_texts)))
    if which != "variants":
        write_cases(folder / which, families.FAMILIES[which](), all_texts, count // RANDOM_SHARE)
        return
    for name, document in families.variants():
        write_cases(folder / name, document, all_texts[::VARIANT_SHARE], count // RANDOM_SHARE)


if __name__ == "__main__":
    main()
