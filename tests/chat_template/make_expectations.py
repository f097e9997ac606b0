#!/usr/bin/env python3
"""Renders with jinja2, set up as transformers does, what the C++ engine has to render alike.

Without arguments it writes data/expected.json (every template x every conversation, with and without a generation
prompt), data/features.json (sources that show one thing each) and data/expressions.json (expressions at random, seed 1). With --check it compares them with what jinja2 says
now and writes nothing. With --fuzz N --seed S it writes N new expressions to --output, for a longer search.
"""

import argparse
import copy
import datetime
import json
import pathlib
import sys

try:
    import jinja2
    import jinja2.ext
    import jinja2.sandbox
except ImportError:
    print("skipped: no jinja2 in this python3 (SOLITON_PYTHON names another)")
    sys.exit(77)

from feature_sources import SOURCES
from random_expressions import VARIABLES, random_sources

DATA = pathlib.Path(__file__).parent / "data"
BOS, EOS = "<|begin_of_text|>", "</s>"
NOW = datetime.datetime(2024, 7, 26, 12, 34, 56)
NUM_STORED = 400
KEPT_ERRORS = 6  # of errors one in so many: most random sources end in one


class Generation(jinja2.ext.Extension):
    """{% generation %}, which transformers adds: here only a block."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("render"), [], [], body).set_lineno(line)

    def render(self, caller):
        return caller()


class Refused(Exception):
    """raise_exception of a template."""


def raise_exception(message):
    raise Refused(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    return environment


def outcome(environment, source, **variables):
    """{"text": ...}, {"refused": message} or {"error": what jinja2 said}."""
    try:
        # A copy, as jinja2's indent filter extends a list that it is given.
        return {"text": environment.from_string(source).render(**copy.deepcopy(variables))}
    except Refused as refused:
        return {"refused": str(refused)}
    except Exception as error:  # whatever Python meets inside a template
        return {"error": f"{type(error).__name__}: {error}"}


def render_conversations(environment):
    conversations = json.loads((DATA / "conversations.json").read_text())
    cases = []
    for path in sorted((DATA / "templates").glob("*.jinja")):
        for conversation in conversations:
            for prompt in (True, False):
                result = outcome(
                    environment,
                    path.read_text(),
                    messages=conversation["messages"],
                    tools=conversation.get("tools"),
                    documents=None,
                    add_generation_prompt=prompt,
                    bos_token=BOS,
                    eos_token=EOS,
                    **conversation.get("variables", {}),
                )
                cases.append({"template": path.name, "conversation": conversation["name"], "prompt": prompt, **result})
    return {"bos_token": BOS, "eos_token": EOS, "cases": cases}


def is_reproducible(result):
    """Addresses and Python's own limits are not to be equalled."""
    text = (result.get("text", "") + result.get("error", "")).lower()
    return not any(sign in text for sign in (" at 0x", "<bound method", "<built-in method", "<list"))


def render_expressions(environment, count, seed):
    cases, num_errors = [], 0
    for source in random_sources(seed):
        if len(cases) == count:
            break
        result = outcome(environment, source, **VARIABLES)
        num_errors += "error" in result
        if is_reproducible(result) and ("text" in result or num_errors % KEPT_ERRORS == 0):
            cases.append({"source": source, **result})
    return {"variables": VARIABLES, "cases": cases}


def render_features(environment):
    return {"variables": VARIABLES, "cases": [{"source": source, **outcome(environment, source, **VARIABLES)} for source in SOURCES]}


def dump(document):
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--fuzz", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("expressions.json"))
    arguments = parser.parse_args()
    environment = make_environment()
    if arguments.fuzz:
        arguments.output.write_text(dump(render_expressions(environment, arguments.fuzz, arguments.seed)))
        return 0
    documents = {
        "expected.json": render_conversations(environment),
        "features.json": render_features(environment),
        "expressions.json": render_expressions(environment, NUM_STORED, arguments.seed),
    }
    different = 0
    for name, document in documents.items():
        if not arguments.check:
            (DATA / name).write_text(dump(document))
            continue
        stored = json.loads((DATA / name).read_text())
        pairs = zip(stored["cases"], document["cases"], strict=True)
        for before, now in pairs:
            # What an error says changes with the versions of Python and jinja2.
            if {**before, "error": "error" in before} != {**now, "error": "error" in now}:
                different += 1
                print(f"{name}: stored {before}, jinja2 {jinja2.__version__} says {now}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
