#!/usr/bin/env python3
"""Writes blocks of every quantised type that is read, and what the public package gguf makes of them: make_blocks.py FOLDER

FOLDER/TYPE.blocks   random bytes, of which f16 scales are finite: ROWS rows of COLUMNS columns
FOLDER/TYPE.floats   their values, float32
"""

import pathlib
import sys

import gguf
import numpy

ROWS, COLUMNS = 64, 1024
# Where blocks have their f16 numbers.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2],
    "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}


def main():
    folder = pathlib.Path(sys.argv[1])
    random = numpy.random.default_rng(5)
    for name, places in SCALES.items():
        kind = gguf.GGMLQuantizationType[name]
        columns, size = gguf.GGML_QUANT_SIZES[kind]
        blocks = random.integers(0, 256, (ROWS * COLUMNS // columns, size), dtype=numpy.uint8)
        for place in places:
            scales = random.normal(0, 0.1, len(blocks)).astype(numpy.float16)
            scales[:4] = [0, 6e-8, -65504, 2**-14]
            blocks[:, place:place + 2] = scales.reshape(-1, 1).view(numpy.uint8)
        if name == "MXFP4":
            blocks[:, 0] = numpy.clip(blocks[:, 0], 0, 250)
            blocks[:3, 0] = [0, 1, 2]
        (folder / f"{name}.blocks").write_bytes(blocks.tobytes())
        floats = gguf.quants.dequantize(blocks.reshape(ROWS, -1), kind)
        assert floats.shape == (ROWS, COLUMNS) and floats.dtype == numpy.float32
        (folder / f"{name}.floats").write_bytes(floats.tobytes())


if __name__ == "__main__":
    main()
