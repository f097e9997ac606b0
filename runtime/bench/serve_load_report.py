"""What the requests of serve_load.py and serve_mix.py come to: percentiles, tables and files."""

from __future__ import annotations

import asyncio
import collections
import json
import pathlib
import statistics
import sys
from typing import Any, Callable, Coroutine, Iterable, Sequence

from serve_load_client import Failed

PERCENTILES = (50, 90, 99)
BUSY = 0.7  # of a core: beyond it the load script itself may be what is waited for


def percentile(values: Sequence[float], percent: float) -> float:
    """Of values in any order, at least one; between two of them in proportion."""
    ordered = sorted(values)
    at = (len(ordered) - 1) * percent / 100
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def distribution(seconds: Iterable[float]) -> dict[str, float] | None:
    """Milliseconds; None of nothing."""
    values = [1e3 * value for value in seconds]
    if not values:
        return None
    return {**{f"p{percent}": percentile(values, percent) for percent in PERCENTILES}, "max": max(values),
            "count": len(values)}


def summary(outcomes: list, took_s: float, num_turns: int) -> dict[str, Any]:
    answers = [outcome.answer for outcome in outcomes if outcome.answer]
    failures = collections.Counter(outcome.failure for outcome in outcomes if outcome.failure)
    tokens = sum(answer.tokens for answer in answers)
    pieces = sum(len(answer.pieces) for answer in answers)
    means = [mean for answer in answers if (mean := answer.seconds_per_token()) is not None]
    result = {
        "requests": len(outcomes),
        "failures": sum(failures.values()),
        "failures_by_reason": dict(failures),
        "seconds": took_s,
        "prompt_tokens": sum(answer.prompt_tokens for answer in answers),
        "cached_tokens": sum_or_none([answer.cached_tokens for answer in answers]),
        "generated_tokens": tokens,
        "tokens_per_s": tokens / took_s,
        "tokens_per_piece": tokens / pieces if pieces else None,
        "first_token_ms": distribution(answer.first - answer.sent for answer in answers),
        "gap_ms": distribution(gap for answer in answers for gap in answer.gaps()),
        "token_ms_mean": 1e3 * statistics.median(means) if means else None,
        "request_ms": distribution(answer.ended - answer.sent for answer in answers),
    }
    if num_turns > 1:
        result["turns"] = [turn_summary([outcome.answer for outcome in outcomes
                                         if outcome.answer and outcome.turn == turn]) for turn in range(num_turns)]
    return result


def turn_summary(answers: list) -> dict[str, Any]:
    """Of the same turn of all chats."""
    return {"requests": len(answers),
            "prompt_tokens": sum(answer.prompt_tokens for answer in answers),
            "cached_tokens": sum_or_none([answer.cached_tokens for answer in answers]),
            "first_token_ms": distribution(answer.first - answer.sent for answer in answers)}


def sum_or_none(values: list) -> int | None:
    return None if None in values else sum(values)


# ---- The table

def shown(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def percentiles(values: dict[str, float] | None) -> str:
    return "-" if values is None else " / ".join(shown(values[f"p{percent}"]) for percent in PERCENTILES)


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def markdown(results: dict[str, Any]) -> str:
    points = results["points"]
    is_rate = "rate" in points[0]
    lone = next((point["token_ms_mean"] for point in points if point.get("clients") == 1), None)
    lines = [row(["requests/s" if is_rate else "clients", "requests", "failed", "first token, ms p50 / p90 / p99",
                  "gap, ms p50 / p90 / p99", "mean per token, ms", "tokens/s", "of one client's speed, %"]),
             row(["---"] * 8)]
    for point in points:
        share = 100 * lone / point["token_ms_mean"] if lone and point["token_ms_mean"] else None
        lines.append(row([f"{point['rate']:g}" if is_rate else str(point["clients"]), str(point["requests"]),
                          str(point["failures"]), percentiles(point["first_token_ms"]), percentiles(point["gap_ms"]),
                          shown(point["token_ms_mean"], 3), shown(point["tokens_per_s"], 1), shown(share, 1)]))
    if results["turns"] > 1:
        lines += ["", *turns(points, is_rate)]
    lines += remarks(points)
    return "\n".join(lines)


def turns(points: list[dict[str, Any]], is_rate: bool) -> list[str]:
    lines = [row(["requests/s" if is_rate else "clients", "turn", "requests", "prompt tokens", "of these cached, %",
                  "first token, ms p50 / p90 / p99"]), row(["---"] * 6)]
    for point in points:
        for index, turn in enumerate(point["turns"]):
            cached = turn["cached_tokens"]
            share = None if cached is None or not turn["prompt_tokens"] else 100 * cached / turn["prompt_tokens"]
            mean = turn["prompt_tokens"] / turn["requests"] if turn["requests"] else None
            lines.append(row([f"{point['rate']:g}" if is_rate else str(point["clients"]), str(index + 1),
                              str(turn["requests"]), shown(mean, 1), shown(share, 1),
                              percentiles(turn["first_token_ms"])]))
    return lines


def remarks(points: list[dict[str, Any]]) -> list[str]:
    """What a reader of the table has to know."""
    lines = []
    reasons: collections.Counter = collections.Counter()
    for point in points:
        reasons.update(point["failures_by_reason"])
    lines += [f"\n{count} failed: {reason}" for reason, count in reasons.most_common()]
    apart = [point for point in points if point["tokens_per_piece"] and abs(point["tokens_per_piece"] - 1) > 0.01]
    if apart:
        worst = max(point["tokens_per_piece"] for point in apart)
        lines.append(f"\nGaps are between pieces, of up to {worst:.2f} tokens in the mean.")
    if any(point["load_cpu_share"] > BUSY for point in points):
        lines.append("\nThis script kept a core busy for more than 70 % of the time: figures may be its own.")
    return lines


def report(program: str, measurement: Coroutine[Any, Any, dict[str, Any]], json_file: str | None,
           table: Callable[[dict[str, Any]], str]) -> dict[str, Any] | None:
    """Measures; writes the figures to the file, if there is to be one; prints their table. None, and a line that says why,
    if something of that can't be done."""
    try:
        results = asyncio.run(measurement)
        if json_file:
            pathlib.Path(json_file).write_text(json.dumps(results, indent=2) + "\n")
    except (Failed, ValueError, OSError) as error:
        print(f"{program}: {error}", file=sys.stderr)
        return None
    print(table(results))
    return results
