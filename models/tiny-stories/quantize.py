"""Makes models/tiny-stories-gptq: the layers of this folder's model as 4-bit integers, in GPTQ's second format.

    python quantize.py          writes ../tiny-stories-gptq, or --out FOLDER
    python quantize.py --check  the same bits as the folder has? Exit status 0 or 1

Each row's groups of 32 weights share a scale; every zero is 8. Integers are rounded to nearest, with that
scale of many that leaves the smallest square of the error: weights are all there is to look at, so that the
result is the same on every machine. The embedding, which is the lm_head too, and the norms stay in bf16.
Needs numpy alone.
"""
import argparse
import json
import shutil
import struct
import sys
import tempfile
from pathlib import Path

import numpy as np

GROUP = 32
BITS = 4
MIDDLE = 8                  # the zero: weight = scale * (integer - MIDDLE)
LARGEST = 15
NIBBLES = 8                 # of a word
CANDIDATES = np.linspace(0.5, 1.2, 71)  # of a scale, in units of the one that the largest weight needs
COPIED = ("generation_config.json", "tokenizer.json", "tokenizer_config.json")
HERE = Path(__file__).resolve().parent


def read_safetensors(path):
    """Name to (type, array); bf16 as its bits."""
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] != "BF16":
            raise SystemExit(f"{path}: {name}: expected BF16, got {entry['dtype']}")
        begin, end = entry["data_offsets"]
        bits = np.frombuffer(data[8 + size + begin:8 + size + end], np.uint16)
        tensors[name] = "BF16", bits.reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    header, parts, end = {"__metadata__": {"format": "pt"}}, [], 0
    for name, (dtype, array) in tensors.items():
        parts.append(np.ascontiguousarray(array).tobytes())
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [end, end + len(parts[-1])]}
        end += len(parts[-1])
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def round_to_integers(weight):
    """Integers [rows][columns] and their scales, f16 [rows][groups]."""
    groups = weight.reshape(weight.shape[0], -1, GROUP)
    unit = np.abs(groups).max(-1) / (LARGEST - MIDDLE)
    best = np.full(unit.shape, np.inf)
    integers, scales = np.zeros(groups.shape, np.uint8), np.zeros(unit.shape, np.float16)
    for candidate in CANDIDATES:
        scale = np.maximum((unit * candidate).astype(np.float16), np.finfo(np.float16).tiny)
        wide = scale.astype(np.float64)[..., None]
        rounded = np.clip(np.rint(groups / wide) + MIDDLE, 0, LARGEST)
        error = ((wide * (rounded - MIDDLE) - groups) ** 2).sum(-1)
        better = error < best
        best[better], scales[better], integers[better] = error[better], scale[better], rounded[better]
    return integers.reshape(weight.shape), scales


def pack(values):
    """[eights of rows][columns] of words: the first of eight rows in the lowest bits."""
    eights = values.reshape(-1, NIBBLES, values.shape[1]).astype(np.uint32)
    shifts = (np.arange(NIBBLES, dtype=np.uint32) * BITS)[None, :, None]
    return np.bitwise_or.reduce(eights << shifts, axis=1).view(np.int32)


def quantize(bits):
    """A layer's tensors, by what follows its name."""
    weight = (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    rows, columns = weight.shape
    integers, scales = round_to_integers(weight)
    zeros = np.full((rows, columns // GROUP), MIDDLE)
    return {"qweight": ("I32", pack(integers.T)), "qzeros": ("I32", pack(zeros).T), "scales": ("F16", scales.T),
            "g_idx": ("I32", (np.arange(columns) // GROUP).astype(np.int32))}


def write_folder(folder):
    tensors = {}
    for name, tensor in read_safetensors(HERE / "model.safetensors").items():
        layer = name.removesuffix(".weight")
        if not layer.endswith("_proj"):
            tensors[name] = tensor
            continue
        for part, packed in quantize(tensor[1]).items():
            tensors[f"{layer}.{part}"] = packed
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", tensors)
    config = json.loads((HERE / "config.json").read_text(encoding="utf-8"))
    config["quantization_config"] = {"quant_method": "gptq", "bits": BITS, "group_size": GROUP, "sym": True,
                                     "desc_act": False, "lm_head": False, "checkpoint_format": "gptq_v2"}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    for name in COPIED:
        shutil.copyfile(HERE / name, folder / name)


def check(folder):
    """Are the files those that this script writes?"""
    with tempfile.TemporaryDirectory() as temporary:
        write_folder(Path(temporary))
        written = {path.name: path.read_bytes() for path in sorted(Path(temporary).iterdir())}
    different = [name for name, data in written.items()
                 if not (folder / name).exists() or (folder / name).read_bytes() != data]
    for name in different:
        print(f"{folder / name}: expected what quantize.py writes, got something else", file=sys.stderr)
    return not different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE.parent / "tiny-stories-gptq")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args()
    if args.check:
        return 0 if check(args.out) else 1
    write_folder(args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
