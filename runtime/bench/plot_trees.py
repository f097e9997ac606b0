#!/usr/bin/env python3
"""Plots the attention of one layer over trees: its floor, Soliton's, and the fastest of FlashInfer's.

    plot_trees.py OUT.svg FILE.json

FILE.json comes from baseline_tree.py --soliton ... --json-file. Trees that Soliton or FlashInfer has no time for are left
out. A time below its floor is none, but lost in how much steps vary: it has words instead of a bar. The same file gives the
same SVG, byte for byte.

Exit status: 0 good, 2 unusable input, in one line.
"""

import json
import pathlib
import sys
from typing import Any

from plot import Unusable, plt, run, save

WAYS = ("cascade", "flat", "batch_attention")
BARS = (("floor", "0.75"), ("Soliton", "C0"), ("FlashInfer, its best", "C1"))
BAR_HEIGHT = 0.27


def read_trees(path: str) -> list[tuple[str, tuple[float, float, float]]]:
    """Each tree's name, and its times as BARS has them."""
    try:
        rows: list[dict[str, Any]] = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["trees"]
        trees = []
        for row in rows:
            theirs = [float(row[f"{way}_us"]) for way in WAYS if f"{way}_us" in row]
            if theirs and "soliton_us" in row:
                trees.append((str(row["test"]), (float(row["floor_us"]), float(row["soliton_us"]), min(theirs))))
    except OSError as error:
        raise Unusable(f"{path}: expected a file that can be read, got: {error.strerror}") from error
    except KeyError as error:
        raise Unusable(f"{path}: expected the key {error}, got none") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise Unusable(f"{path}: expected JSON of baseline_tree.py, got: {error}") from error
    if not trees:
        raise Unusable(f"{path}: expected trees with times of Soliton and FlashInfer, got none")
    return trees


def draw(trees: list[tuple[str, tuple[float, float, float]]], output: str, files: list[str]) -> None:
    plt.rcParams.update({"svg.hashsalt": "soliton", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(7, 1 + 0.42 * len(trees)), layout="constrained")
    for bar, (label, color) in enumerate(BARS):
        places = [tree + (bar - 1) * BAR_HEIGHT for tree in range(len(trees))]
        is_lost = [times[bar] < times[0] for _, times in trees]
        shown = [float("nan") if lost else times[bar] for lost, (_, times) in zip(is_lost, trees)]
        drawn = axes.barh(places, shown, height=BAR_HEIGHT, color=color, label=label)
        axes.bar_label(drawn, ["" if lost else f"{value:.3g}" for lost, value in zip(is_lost, shown)], padding=2, fontsize=7)
        for place, lost, (_, times) in zip(places, is_lost, trees):
            if lost:
                axes.annotate("lost in the steps' spread", (times[0], place), (3, 0), textcoords="offset points",
                              va="center", fontsize=7, color=color)
    axes.set_yticks(range(len(trees)), [name for name, _ in trees])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("attention of one layer, us")
    axes.grid(color="0.9", axis="x")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="best")
    save(figure, output, files)


def plot(output: str, files: list[str]) -> None:
    draw(read_trees(files[0]), output, files)


if __name__ == "__main__":
    sys.exit(run("plot_trees.py", __doc__, "OUT.svg FILE.json", 1, plot))
