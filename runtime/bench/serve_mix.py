#!/usr/bin/env python3
"""A bit of everything for a server of OpenAI's API, for as long as asked: does each answer come, and is it what was asked for?

    serve_mix.py --url http://127.0.0.1:8080 --clients 1,8,64,100 --duration 600 --json-file mix.json
    serve_mix.py --token-ids 128256 ...     for soliton-server --random-weights: prompts and answers are token ids

Clients ask by chance for streams, several samples, turns of a chat that share what stands before, the likeliest tokens, a
stop, and answers of a grammar or of a JSON schema (not with --token-ids: those tokens write neither); some go away amid a
stream. Looked at is: as many tokens as asked for, by `usage`; each sample there; what `echo` gives back is this client's
own prompt; an answer is of its grammar or schema; a stop is not in it. Each number of clients has an equal share of the
time. In the end nothing may be left of those who went (/metrics).

Exit status: 0 good, 1 something else came, 2 a flag, or no server there.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import random
import re
import sys
import time
from typing import Any, Sequence

from serve_load import WORDS, find_server, number, numbers, without_key
from serve_load_client import Connection, Failed, Server
from serve_load_report import report

GRAMMAR = 'root ::= (" " [0-9]{1,3}){3,6}'
OF_GRAMMAR = re.compile(r"( [0-9]{1,3}){3,6}")
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer", "minimum": -9, "maximum": 999},
                                           "b": {"type": "array", "items": {"enum": ["x", 2]}, "minItems": 1, "maxItems": 4}},
          "required": ["a", "b"], "additionalProperties": False}
KINDS = ("stream", "turns", "samples", "best tokens", "stop", "goes away")
CONSTRAINED = ("grammar", "schema")
LEAVE_S = 10.0  # for those who went to be gone


def expect(condition: bool, what: str) -> None:
    if not condition:
        raise Failed(f"expected {what}")


class Client:
    """Asks one thing after the other."""

    def __init__(self, options: argparse.Namespace, server: Server, seed: str):
        self.options = options
        self.server = server
        self.random = random.Random(seed)
        self.connection = Connection(server, options.timeout)

    def words(self, count: int) -> list:
        if self.options.token_ids:
            return [self.random.randrange(self.options.token_ids) for _ in range(count)]
        return [self.random.choice(WORDS) for _ in range(count)]

    def up_to(self, most: int, sizes: Sequence[int]) -> int:
        return self.random.choice([size for size in sizes if size <= most])

    def prompt(self) -> list:
        most = self.options.prompt
        shared = random.Random(self.random.randrange(4)).choices(WORDS, k=self.up_to(most // 2, [0, 64, 200]))
        if self.options.token_ids:
            shared = [hash_of(word) % self.options.token_ids for word in shared]
        return shared + self.words(self.up_to(most // 2, [1, 20, 100, 400, 1500]))

    def body(self, prompt: list, max_tokens: int, **members: Any) -> dict[str, Any]:
        text = prompt if self.options.token_ids else " ".join(prompt)
        return {"model": self.server.model, "prompt": text, "max_tokens": max_tokens, "ignore_eos": True,
                "temperature": self.random.choice([0, 0.8]), "seed": self.random.getrandbits(31), **members}

    async def ask(self, kind: str) -> int:
        """Returns how many tokens came. Throws Failed."""
        return await getattr(self, kind.replace(" ", "_"))()

    async def whole(self, body: dict[str, Any]) -> dict[str, Any]:
        return await self.connection.post("/v1/completions", body)

    async def stream(self) -> int:
        wanted = self.up_to(self.options.max_tokens, [1, 30, 200])
        answer = await self.connection.stream("/v1/completions", {
            **self.body(self.prompt(), wanted), "stream": True, "stream_options": {"include_usage": True}})
        expect(answer.tokens == wanted, f"{wanted} tokens, got {answer.tokens}")
        return answer.tokens

    async def turns(self) -> int:
        tokens, history = 0, self.prompt()
        for _ in range(3):
            answer = await self.whole(self.body(history, 24, echo=True))
            echoed = answer["choices"][0]["text"]
            own = " ".join(str(word) for word in history)
            expect(echoed.lstrip().startswith(own), "the own prompt before the answer, got another one")
            tokens += answer["usage"]["completion_tokens"]
            said = [int(word) for word in echoed.split()] if self.options.token_ids else [echoed]
            history = said + self.words(8)
        return tokens

    async def samples(self) -> int:
        count, wanted = self.random.choice([2, 4, 8]), self.up_to(self.options.max_tokens, [8, 64])
        answer = await self.whole(self.body(self.prompt(), wanted, n=count))
        got = answer["usage"]["completion_tokens"]
        expect(sorted(choice["index"] for choice in answer["choices"]) == list(range(count)), f"{count} samples")
        expect(got == count * wanted, f"{count} x {wanted} tokens, got {got}")
        return got

    async def grammar(self) -> int:
        answer = await self.whole({**self.body(self.prompt(), 40, grammar=GRAMMAR), "ignore_eos": False})
        text, reason = answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]
        is_whole = OF_GRAMMAR.fullmatch(text) is not None
        expect(is_whole or (reason == "length" and re.fullmatch(r"[ 0-9]*", text)), f"a text of the grammar, got {text!r}")
        return answer["usage"]["completion_tokens"]

    async def schema(self) -> int:
        form = {"type": "json_schema", "json_schema": {"name": "it", "schema": SCHEMA}}
        answer = await self.whole({**self.body(self.prompt(), 60, response_format=form), "ignore_eos": False})
        text, reason = answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]
        if reason != "length":
            value = json.loads(text)
            expect(set(value) == {"a", "b"} and -9 <= value["a"] <= 999 and 1 <= len(value["b"]) <= 4
                   and all(item in ("x", 2) for item in value["b"]), f"JSON of the schema, got {text!r}")
        return answer["usage"]["completion_tokens"]

    async def best_tokens(self) -> int:
        answer = await self.whole(self.body(self.prompt(), 10, logprobs=3))
        logprobs = answer["choices"][0]["logprobs"]
        expect(len(logprobs["tokens"]) == 10, f"10 tokens with logprobs, got {len(logprobs['tokens'])}")
        expect(all(value <= 0 for value in logprobs["token_logprobs"]), "logarithms of probabilities")
        return 10

    async def stop(self) -> int:
        stop = f"{self.random.randrange(10)}"
        answer = await self.whole(self.body(self.prompt(), self.options.max_tokens, stop=[stop]))
        expect(stop not in answer["choices"][0]["text"], "an answer without its stop")
        return answer["usage"]["completion_tokens"]

    async def goes_away(self) -> int:
        reader, writer = await asyncio.open_connection(self.server.host, self.server.port)
        body = json.dumps({**self.body(self.prompt(), self.options.max_tokens), "stream": True}).encode()
        writer.write(f"POST {self.server.base}/v1/completions HTTP/1.1\r\nHost: {self.server.netloc}\r\n"
                     f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        if self.random.random() < 0.7:
            status = await asyncio.wait_for(reader.readuntil(b"\r\n"), self.options.timeout)
            expect(b" 200 " in status, f"status 200, got {status!r}")
            await asyncio.sleep(self.random.random() / 2)
        writer.close()
        return 0


def hash_of(word: str) -> int:
    return sum((i + 1) * ord(letter) for i, letter in enumerate(word)) * 7919


async def mix(options: argparse.Namespace, server: Server, num_clients: int, duration: float) -> dict[str, Any]:
    """One number of clients for so many seconds."""
    counts: collections.Counter = collections.Counter()
    failures: collections.Counter = collections.Counter()
    tokens = 0
    begin = time.perf_counter()

    async def run(index: int) -> None:
        nonlocal tokens
        client = Client(options, server, f"{options.seed} {num_clients} {index}")
        while time.perf_counter() - begin < duration:
            kind = client.random.choice(KINDS if options.token_ids else KINDS + CONSTRAINED)
            counts[kind] += 1
            try:
                got = await client.ask(kind)
                tokens += got  # not in one line: others add while this one waits
            except (Failed, OSError, ValueError, KeyError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
                failures[f"{kind}: {type(error).__name__}: {error}"] += 1
                await client.connection.close()
        await client.connection.close()

    await asyncio.gather(*(run(i) for i in range(num_clients)))
    took_s = time.perf_counter() - begin
    return {"clients": num_clients, "seconds": took_s, "requests": sum(counts.values()), "by_kind": dict(counts),
            "failures": sum(failures.values()), "failures_by_reason": dict(failures), "tokens": tokens,
            "tokens_per_s": tokens / took_s}


async def left_over(server: Server, options: argparse.Namespace) -> dict[str, float]:
    """What the server still does or keeps; it has some time to come to rest."""
    limit = time.perf_counter() + LEAVE_S
    while True:
        connection = Connection(server, options.timeout)
        text = await connection.text("/metrics")
        await connection.close()
        values = dict(re.findall(r"^(soliton_\w+) ([-+.\de]+)$", text, re.MULTILINE))
        left = {name: float(value) for name, value in values.items()
                if name in ("soliton_samples_running", "soliton_samples_waiting")}
        if not any(left.values()) or time.perf_counter() > limit:
            return left
        await asyncio.sleep(0.1)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    server = await find_server(options)
    points = []
    for num_clients in options.clients:
        points.append(await mix(options, server, num_clients, options.duration / len(options.clients)))
        print({name: points[-1][name] for name in ("clients", "requests", "failures", "tokens")}, file=sys.stderr)
    return {"command": "serve_mix.py " + " ".join(options.typed), "model": server.model, "seed": options.seed,
            "duration": options.duration, "points": points, "left": await left_over(server, options)}


def markdown(results: dict[str, Any]) -> str:
    lines = ["| clients | s | requests | failed | tokens/s |", "| --- | --- | --- | --- | --- |"]
    for point in results["points"]:
        lines.append(f"| {point['clients']} | {point['seconds']:.1f} | {point['requests']} | {point['failures']} | "
                     f"{point['tokens_per_s']:.1f} |")
        lines += [f"\n{count} failed: {reason}" for reason, count in point["failures_by_reason"].items()]
    return "\n".join(lines + [f"\nLeft: {results['left']}"])


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    add = parser.add_argument
    add("--url", default="http://127.0.0.1:8080", help="of the server, with or without /v1")
    add("--model", default="", help="its name in requests; else the first that the server lists")
    add("--api-key", default="", help="sent as a bearer token; not part of the command that the JSON holds")
    add("--clients", type=numbers(int, 1), default=[8], help="how many at once, a list")
    add("--duration", type=number(float, 0.1), default=60.0, help="seconds, of all of the list together")
    add("--token-ids", type=number(int, 2), default=0, metavar="VOCABULARY", help="prompts of random token ids below this")
    add("--prompt", type=number(int, 2), default=4000, help="tokens of a prompt at most")
    add("--max-tokens", type=number(int, 8), default=400, help="of an answer")
    add("--seed", type=int, default=1)
    add("--timeout", type=number(float, 0.001), default=120.0, help="seconds of one request")
    add("--wait", type=number(float, 0), default=0.0, help="seconds to wait for a server that is being started")
    add("--json-file", help="also writes all figures, and the command, to this file")
    options = parser.parse_args(arguments)
    options.typed = without_key(arguments)
    return options


def main(arguments: Sequence[str]) -> int:
    options = parse_options(arguments)
    results = report("serve_mix.py", measure(options), options.json_file, markdown)
    if results is None:
        return 2
    return 1 if any(results["left"].values()) or any(point["failures"] for point in results["points"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
