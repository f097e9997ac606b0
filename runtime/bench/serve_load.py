#!/usr/bin/env python3
"""Load on a server of OpenAI's API: time to the first token, time per token, and tokens/s of many clients at once.

    serve_load.py --url http://127.0.0.1:8080 --clients 1,2,4,8,16,32 --prompt 512 --max-tokens 128 --json-file load.json
    serve_load.py --rate 2,4,8 --duration 60     requests that come by chance, so many a second (Poisson)
    serve_load.py --clients 1 --turns 2 --prompt 4000     chats of two turns: what does the second one wait for?
    serve_load.py --token-ids 128256 ...         prompts of random token ids below this, for exactly as many as asked for

In a closed loop each client sends its next request when the last one has ended; with --rate requests come by themselves,
however many are under way. It is plain Python and points at any such server. What is measured:

    first token      from the request to the first text of its answer, at this end of the connection
    time per token   behind the first: p50, p90 and p99 of the time between two pieces of a stream, of all clients together
                     ("gap"), and the median over answers of their mean, by the server's count of tokens ("mean")
    tokens/s         all tokens generated over the time from the first request to the end of the last answer

Tokens are counted from the server's usage (stream_options.include_usage); where a stream has not one piece a token, the
JSON says how many tokens a piece had, and the gaps are those of pieces. Each point begins with requests of every client
that do not count (--warm-up). Prompts are random, all different but for the tokens of --shared-prefix, and the same again
for the same --seed; as text a word is about a token. A request that is refused or cut is a failure, counted by its reason.

Exit status: 0 good, 1 some request failed, 2 a flag, or no server there.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import random
import sys
import time
from typing import Any, Sequence

from serve_load_client import Answer, Connection, Failed, Server
from serve_load_report import markdown, report, summary

WORDS = ("time year people way day man thing woman life child world school state family student group country problem hand "
         "part place case week company system program question work government number night point home water room mother "
         "area money story fact month lot right study book eye job word business issue side kind head house service friend "
         "father power hour game line end member law car city community name president team minute idea body").split()
ROUNDS = 4  # of requests of each client, where neither --requests nor --duration says otherwise
WAIT_S = 0.2  # between two looks at whether a server is there


@dataclasses.dataclass
class Outcome:
    turn: int
    answer: Answer | None = None
    failure: str = ""


class Prompts:
    """What is asked: text, or with --token-ids lists of tokens, that only a generator of random numbers knows."""

    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.shared = self._random(random.Random(f"{options.seed} shared"), options.shared_prefix)

    def _random(self, generator: random.Random, count: int) -> list:
        if self.options.token_ids:
            return [generator.randrange(self.options.token_ids) for _ in range(count)]
        return [generator.choice(WORDS) for _ in range(count)]

    def first(self, generator: random.Random) -> list:
        return self.shared + self._random(generator, self.options.prompt - len(self.shared))

    def turn(self, generator: random.Random) -> list:
        return self._random(generator, self.options.turn)

    def answer(self, answer: Answer) -> list:
        """An answer as part of the next turn's prompt. Throws Failed."""
        if not self.options.token_ids:
            return [answer.text]
        words = answer.text.split()
        if len(words) != answer.tokens or not all(word.isdigit() for word in words):
            raise Failed("--token-ids: expected answers of token ids (soliton-server --random-weights) for a second turn, "
                         "got other text; without the flag turns are text")
        return [int(word) for word in words]

    def request(self, model: str, history: list[list], seed: int) -> dict[str, Any]:
        """`history`: what was asked and answered in turn, and asked last."""
        options = self.options
        body: dict[str, Any] = {"model": model, "max_tokens": options.max_tokens, "temperature": options.temperature,
                                "seed": seed, "stream": True, "stream_options": {"include_usage": True}}
        if options.ignore_eos:
            body["ignore_eos"] = True
        if options.api == "chat":
            body["messages"] = [{"role": "assistant" if i % 2 else "user", "content": " ".join(part)}
                                for i, part in enumerate(history)]
        elif options.token_ids:
            body["prompt"] = [token for part in history for token in part]
        else:
            body["prompt"] = " ".join(word for part in history for word in part)
        return body

    def path(self) -> str:
        return "/v1/chat/completions" if self.options.api == "chat" else "/v1/completions"


class Load:
    """One server under the load of one point."""

    def __init__(self, options: argparse.Namespace, server: Server):
        self.options = options
        self.server = server
        self.prompts = Prompts(options)

    async def chat(self, connection: Connection, generator: random.Random) -> list[Outcome]:
        """The turns of one chat, up to one that fails."""
        history = [self.prompts.first(generator)]
        outcomes = []
        for turn in range(self.options.turns):
            body = self.prompts.request(self.server.model, history, generator.getrandbits(31))
            try:
                answer = await connection.stream(self.prompts.path(), body)
                outcomes.append(Outcome(turn, answer))
                if turn + 1 < self.options.turns:
                    history += [self.prompts.answer(answer), self.prompts.turn(generator)]
            except Failed as failure:
                outcomes.append(Outcome(turn, failure=str(failure)))
                break
        return outcomes

    async def closed_loop(self, num_clients: int) -> tuple[list[Outcome], float]:
        """What came, and how long all of it took."""
        connections = [Connection(self.server, self.options.timeout) for _ in range(num_clients)]

        async def client(index: int, kind: str, rounds: int, duration: float) -> list[Outcome]:
            generator = random.Random(f"{self.options.seed} {kind} {num_clients} {index}")
            outcomes: list[Outcome] = []
            begin = time.perf_counter()
            done = 0
            while time.perf_counter() - begin < duration if duration else done < rounds:
                outcomes += await self.chat(connections[index], generator)
                done += 1
                if outcomes[-1].failure:
                    await asyncio.sleep(WAIT_S)  # a server that refuses is not asked as fast as it can refuse
            return outcomes

        await asyncio.gather(*(client(i, "warm-up", self.options.warm_up, 0) for i in range(num_clients)))
        begin = time.perf_counter()
        parts = await asyncio.gather(*(client(i, "measured", self.options.requests or ROUNDS, self.options.duration)
                                       for i in range(num_clients)))
        took_s = time.perf_counter() - begin
        for connection in connections:
            await connection.close()
        return [outcome for part in parts for outcome in part], took_s

    async def arrivals(self, rate: float) -> tuple[list[Outcome], float]:
        """Requests of which so many a second come, whatever becomes of those before."""
        free: list[Connection] = []

        async def visitor(generator: random.Random) -> list[Outcome]:
            connection = free.pop() if free else Connection(self.server, self.options.timeout)
            outcomes = await self.chat(connection, generator)
            free.append(connection)
            return outcomes

        def generator(kind: str, index: int) -> random.Random:
            return random.Random(f"{self.options.seed} {kind} {rate} {index}")

        for i in range(self.options.warm_up):
            await visitor(generator("warm-up", i))
        clock = generator("arrivals", 0)
        begin = time.perf_counter()
        due = begin
        visits = []
        while due - begin < self.options.duration if self.options.duration else len(visits) < self.options.requests:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            visits.append(asyncio.ensure_future(visitor(generator("measured", len(visits)))))
            due += clock.expovariate(rate)
        parts = await asyncio.gather(*visits)
        took_s = time.perf_counter() - begin
        for connection in free:
            await connection.close()
        return [outcome for part in parts for outcome in part], took_s


async def find_server(options: argparse.Namespace) -> Server:
    """Waits for it as long as --wait says. Throws Failed."""
    server = Server(options.url, options.api_key, options.model)
    limit = time.perf_counter() + options.wait
    while True:
        connection = Connection(server, options.timeout)
        try:
            models = (await connection.get("/v1/models"))["data"]
            server.model = server.model or models[0]["id"]
            return server
        except (OSError, ValueError, KeyError, IndexError, TypeError, asyncio.TimeoutError,
                asyncio.IncompleteReadError, Failed) as error:
            if time.perf_counter() >= limit:
                raise Failed(f"--url: expected a server of OpenAI's API at {options.url}, got "
                             f"{type(error).__name__}: {error}") from error
        finally:
            await connection.close()
        await asyncio.sleep(WAIT_S)


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    server = await find_server(options)
    points = []
    for value in options.rate or options.clients:
        load = Load(options, server)
        busy = time.process_time()
        outcomes, took_s = await (load.arrivals(value) if options.rate else load.closed_loop(value))
        point = {"rate": value} if options.rate else {"clients": value}
        busy_share = (time.process_time() - busy) / took_s  # with the warm-up: rather too much
        points.append({**point, **summary(outcomes, took_s, options.turns), "load_cpu_share": busy_share})
        print(f"{point}: {points[-1]['requests']} requests in {took_s:.1f} s", file=sys.stderr)
    settings = {name: getattr(options, name) for name in
                ("api", "prompt", "shared_prefix", "max_tokens", "turns", "turn", "token_ids", "temperature", "ignore_eos",
                 "warm_up", "seed")}
    return {"command": "serve_load.py " + " ".join(options.typed), "url": options.url, "model": server.model, **settings,
            "points": points}


# ---- The command line

def numbers(kind: type, least: float):
    def parse(text: str) -> list:
        values = [kind(part) for part in text.split(",")]
        if any(not least <= value < float("inf") for value in values):
            raise ValueError
        return values
    parse.__name__ = f"list of numbers from {least:g} on"
    return parse


def number(kind: type, least: float):
    def parse(text: str):
        return numbers(kind, least)(text)[0]
    parse.__name__ = f"number from {least:g} on"
    return parse


def parse_options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__)
    add = parser.add_argument
    add("--url", default="http://127.0.0.1:8080", help="of the server, with or without /v1")
    add("--model", default="", help="its name in requests; else the first that the server lists")
    add("--api-key", default="", help="sent as a bearer token; not part of the command that the JSON holds")
    load = parser.add_mutually_exclusive_group()
    load.add_argument("--clients", type=numbers(int, 1), default=[1], help="closed loop: how many at once, a list")
    load.add_argument("--rate", type=numbers(float, 1e-6), help="requests a second that come by chance, a list")
    add("--requests", type=number(int, 1), help=f"of each client ({ROUNDS}), or with --rate in all (64)")
    add("--duration", type=number(float, 0), default=0, help="seconds in which requests begin, in place of --requests")
    add("--warm-up", type=number(int, 0), default=1, help="requests of each client before, that do not count")
    add("--api", choices=("completions", "chat"), default="completions")
    add("--prompt", type=number(int, 1), default=128, help="tokens of a first prompt, as text words")
    add("--shared-prefix", type=number(int, 0), default=0, help="tokens that all prompts begin with, of --prompt")
    add("--max-tokens", type=number(int, 1), default=128)
    add("--turns", type=number(int, 1), default=1, help="of each chat, which then is one of --requests")
    add("--turn", type=number(int, 1), default=32, help="tokens that each further turn adds")
    add("--token-ids", type=number(int, 2), default=0, metavar="VOCABULARY",
        help="prompts of random token ids below this, in place of words")
    add("--temperature", type=number(float, 0), default=0.0)
    add("--no-ignore-eos", dest="ignore_eos", action="store_false",
        help="answers may end before --max-tokens; for servers that do not know ignore_eos")
    add("--seed", type=int, default=1)
    add("--timeout", type=number(float, 0.001), default=600.0, help="seconds of one request")
    add("--wait", type=number(float, 0), default=0.0, help="seconds to wait for a server that is being started")
    add("--json-file", help="also writes all figures, and the command, to this file")
    options = parser.parse_args(arguments)
    if options.shared_prefix > options.prompt:
        parser.error(f"--shared-prefix: expected at most {options.prompt} tokens, as --prompt has, got {options.shared_prefix}")
    if options.token_ids and options.api == "chat":
        parser.error("--token-ids: expected --api completions with it, got chat")
    if options.rate and not options.requests:
        options.requests = 64
    options.typed = without_key(arguments)
    return options


def without_key(arguments: Sequence[str]) -> list[str]:
    shown, is_key = [], False
    for argument in arguments:
        shown.append("KEY" if is_key else "--api-key=KEY" if argument.startswith("--api-key=") else argument)
        is_key = argument == "--api-key"
    return shown


def main(arguments: Sequence[str]) -> int:
    options = parse_options(arguments)
    results = report("serve_load.py", measure(options), options.json_file, markdown)
    if results is None:
        return 2
    return 1 if any(point["failures"] for point in results["points"]) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
