"""What the peers of whole engines share: tests of tokens and prompts by random weights of a shape, and their report."""

import argparse
import dataclasses
import json
import pathlib
import sys
from typing import Any

from baseline_facts import Facts, Unusable


@dataclasses.dataclass
class Row:
    test: str
    tokens_per_s: float
    token_us_p50: float | None = None
    first_token_ms_p50: float | None = None

    @staticmethod
    def of_tokens(depth: int, tokens: int, token_seconds: float) -> "Row":
        return Row(f"tg{tokens} @ d{depth}", 1 / token_seconds, token_us_p50=token_seconds * 1e6)

    @staticmethod
    def of_prompt(tokens: int, seconds: float) -> "Row":
        """`seconds`: of all of it."""
        return Row(f"pp{tokens}", tokens / seconds, first_token_ms_p50=seconds * 1e3)


def numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"expected positive numbers, got {text!r}")
    return [int(part) for part in parts]


def make_parser(program: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=program, description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path, help="a shape, such as models/llama-3.1-8b.yaml")
    parser.add_argument("-d", "--n-depth", dest="depths", metavar="LIST", type=numbers, default=[128],
                        help="tokens in the cache before, a list (default 128)")
    parser.add_argument("-n", "--n-gen", dest="tokens", metavar="N", type=int, default=128,
                        help="tokens that are timed (default 128)")
    parser.add_argument("-p", "--n-prompt", dest="prompts", metavar="LIST", type=numbers, default=[],
                        help="tokens of the prompts that are read, a list")
    parser.add_argument("-r", "--repetitions", dest="repeats", metavar="N", type=int, default=5,
                        help="repeats of each test (default 5)")
    parser.add_argument("--json-file", metavar="FILE", type=pathlib.Path, help="also writes JSON to this file")
    return parser


def check_options(options: argparse.Namespace, facts: Facts, further_tokens: int, of_prompt: int) -> int:
    """The tokens of the longest test, if the model has so many: a test of tokens takes `further_tokens` more than those that are
    timed, one of a prompt `of_prompt` more than it has."""
    longest = max([depth + further_tokens + options.tokens for depth in options.depths] +
                  [prompt + of_prompt for prompt in options.prompts])
    if longest > facts.max_context:
        raise Unusable(f"expected at most the model's {facts.max_context} tokens, got {longest}")
    if options.tokens < 1 or options.repeats < 1:
        raise Unusable("--n-gen and --repetitions: expected 1 or more, got less")
    if options.json_file and not options.json_file.absolute().parent.is_dir():
        raise Unusable(f"{options.json_file}: expected a file in a folder that exists")
    return longest


def report(options: argparse.Namespace, program: str, rows: list[Row], run: dict[str, Any]) -> None:
    """Prints the rows, and writes the JSON file if one is asked for: `run` is what it says of the engine and the weights."""
    print("| test | t/s | us a token | ms to the first token |\n| --- | --- | --- | --- |")
    for row in rows:
        us, ms = ("-" if value is None else f"{value:.1f}" for value in (row.token_us_p50, row.first_token_ms_p50))
        print(f"| {row.test} | {row.tokens_per_s:.2f} | {us} | {ms} |")
    if options.json_file:
        document = {"command": " ".join([program, *sys.argv[1:]]), "program": program, **run, "repeats": options.repeats,
                    "rows": [dataclasses.asdict(row) for row in rows]}
        options.json_file.write_text(json.dumps(document, indent=2) + "\n")
