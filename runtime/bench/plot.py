#!/usr/bin/env python3
"""Plots the read bandwidth of decoding, as a share of the card's, over the context.

    plot.py OUT.svg FILE.json...

FILE.json come from soliton-bench --json-file and baseline.py --json-file, one line each. 100 % is S, the
read bandwidth that soliton-bench measured in the same run; a file of baseline.py takes S of the last file of
soliton-bench before it with the same model, or else of the first one after it; neighbouring files of baseline.py
for one model make one line. A point lies at the context
in the middle of its run, for which its bytes are counted. The same files give the same SVG, byte for byte.

Exit status: 0 good, 2 unusable input, in one line.
"""

import dataclasses
import hashlib
import json
import pathlib
import re
import sys
from typing import Any, Callable

import matplotlib
matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

BASELINE = "baseline.py"
TEST = re.compile(r"tg(\d+)(?: @ d(\d+))?")


class Unusable(Exception):
    """What the user gave cannot be used; the message is one line."""


@dataclasses.dataclass
class Run:
    path: str
    model: str
    device: str
    is_baseline: bool
    ceiling: float  # S, bytes per second; 0 in a baseline
    points: list[tuple[int, float]]  # context, bytes per second


def points(rows: list[dict[str, Any]]) -> list[tuple[int, float]]:
    """Of the rows that generate; prompts have no one context."""
    result = []
    for row in rows:
        if match := TEST.fullmatch(row["test"]):
            result.append((int(match[2] or 0) + int(match[1]) // 2, float(row["bytes_per_s"])))
    return sorted(result)


def read_run(path: str) -> Run:
    try:
        document = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        is_baseline = document.get("program") == BASELINE
        limit = 0.0 if is_baseline else float(document["read_bandwidth_bytes_per_s"])
        run = Run(path, str(document["model"]), str(document["device"]), is_baseline, limit,
                  points(document["rows"]))
    except OSError as error:
        raise Unusable(f"{path}: expected a file that can be read, got: {error.strerror}") from error
    except KeyError as error:
        raise Unusable(f"{path}: expected the key {error}, got none") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise Unusable(f"{path}: expected JSON of soliton-bench or baseline.py, got: {error}") from error
    if not run.points:
        raise Unusable(f"{path}: expected rows that generate tokens (tg...), got none")
    if not is_baseline and run.ceiling <= 0:
        raise Unusable(f"{path}: expected a measured read bandwidth, got none: the kernel was emulated")
    return run


def ceiling(runs: list[Run], index: int) -> float:
    """S for the run at `index`."""
    run = runs[index]
    if not run.is_baseline:
        return run.ceiling
    candidates = [other for other in [*reversed(runs[:index]), *runs[index:]]
                  if other.model == run.model and not other.is_baseline]
    if not candidates:
        raise Unusable(f"{run.path}: expected a file of soliton-bench for {run.model} too, got none")
    if candidates[0].device != run.device:
        raise Unusable(f"{run.path}: expected the device of {candidates[0].path}, {candidates[0].device}, "
                       f"got {run.device}")
    return candidates[0].ceiling


def joined(runs: list[Run]) -> list[Run]:
    """Baselines of one model that stand side by side become one line: each depth may have a file of its own."""
    result: list[Run] = []
    for run in runs:
        last = result[-1] if result else None
        if last and run.is_baseline and last.is_baseline and (run.model, run.device) == (last.model, last.device):
            last.points = sorted(last.points + run.points)
        else:
            result.append(run)
    return result


def draw(runs: list[Run], output: str, files: list[str]) -> None:
    plt.rcParams.update({"svg.hashsalt": "soliton", "font.size": 9, "lines.linewidth": 1.6,
                         "lines.markersize": 4, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    models = list(dict.fromkeys(run.model for run in runs))
    for i, run in enumerate(runs):
        limit = ceiling(runs, i)
        axes.plot([context for context, _ in run.points], [100 * rate / limit for _, rate in run.points],
                  color=f"C{models.index(run.model) % 10}", marker="s" if run.is_baseline else "o",
                  linestyle="--" if run.is_baseline else "-", clip_on=False,
                  label=f"{'compiled PyTorch' if run.is_baseline else 'Soliton'}, {run.model}")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_ylim(0, 100)
    axes.set_xlabel("context, tokens")
    axes.set_ylabel("read bandwidth, % of S")
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, loc="lower left")
    save(figure, output, files)


def save(figure: Any, output: str, files: list[str]) -> None:
    """The picture says of what files it is, and by which content, so that a test finds one that is stale."""
    try:
        sources = [f"{pathlib.Path(path).name} {hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()}" for path in files]
        figure.savefig(output, format="svg", metadata={"Date": None, "Source": "; ".join(sources)})
    except OSError as error:
        raise Unusable(f"{output}: expected a file that can be written, got: {error.strerror}") from error


def run(script: str, document: str, wanted: str, most_files: int | None, plot: Callable[[str, list[str]], None]) -> int:
    """Calls plot(OUT.svg, files) with what stands behind the script's name, and returns the exit status."""
    arguments = sys.argv[1:]
    if arguments in (["-h"], ["--help"]):
        print(document.strip())
        return 0
    try:
        too_many = most_files is not None and len(arguments) > most_files + 1
        if len(arguments) < 2 or too_many or not arguments[0].endswith(".svg"):
            raise Unusable(f"expected {wanted}, got {' '.join(arguments) or 'nothing'}")
        plot(arguments[0], arguments[1:])
    except Unusable as error:
        print(f"{script}: {error}", file=sys.stderr)
        return 2
    return 0


def plot_runs(output: str, files: list[str]) -> None:
    draw(joined([read_run(path) for path in files]), output, files)


if __name__ == "__main__":
    sys.exit(run("plot.py", __doc__, "OUT.svg FILE.json...", None, plot_runs))
