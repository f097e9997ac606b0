"""A client of OpenAI-style servers for serve_load.py: HTTP/1.1 and server-sent events over asyncio, without packages.

One Connection serves one request after the other and notes when each piece of an answer came, by a monotonic clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import ssl
import time
import urllib.parse
from typing import Any, AsyncIterator

READ_BYTES = 1 << 16
HEAD_LIMIT = 1 << 20  # bytes of a line of a response
SHOWN_CHARACTERS = 200  # of what a server says in a refusal


class Failed(Exception):
    """One request got no whole answer; says why in one line."""


@dataclasses.dataclass
class Server:
    url: str
    api_key: str
    model: str = ""

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url if "://" in self.url else "http://" + self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"--url: expected http://HOST:PORT, got {self.url}")
        self.is_tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.is_tls else 80)
        self.netloc = parts.netloc.rpartition("@")[2]
        # Both http://host and http://host/v1, as clients of OpenAI's API have it, mean the same server.
        self.base = parts.path.rstrip("/").removesuffix("/v1")


@dataclasses.dataclass
class Answer:
    """What came of one request; times are seconds of time.perf_counter()."""

    sent: float
    first: float | None = None  # when the first text came
    last: float | None = None
    pieces: list[float] = dataclasses.field(default_factory=list)  # when each piece of the text came
    text: str = ""
    prompt_tokens: int = 0
    cached_tokens: int | None = None  # None: the server does not say
    tokens: int = 0  # generated, by the server's usage
    ended: float = 0

    def gaps(self) -> list[float]:
        return [after - before for before, after in zip(self.pieces, self.pieces[1:])]

    def seconds_per_token(self) -> float | None:
        """The mean behind the first token; None if there is but one."""
        if self.first is None or self.last is None or self.tokens < 2:
            return None
        return (self.last - self.first) / (self.tokens - 1)


class Connection:
    """Kept from request to request, as clients do; opened again where the server has closed it."""

    def __init__(self, server: Server, timeout_s: float):
        self.server = server
        self.timeout_s = timeout_s
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None
        self.is_reused = False

    async def close(self) -> None:
        writer, self.reader, self.writer = self.writer, None, None
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def get(self, path: str) -> Any:
        return json.loads(await self.text(path))

    async def post(self, path: str, body: dict[str, Any]) -> Any:
        return json.loads(await self._good("POST", path, json.dumps(body).encode()))

    async def text(self, path: str) -> str:
        return (await self._good("GET", path, b"")).decode()

    async def _good(self, method: str, path: str, body: bytes) -> bytes:
        """The body of an answer. Throws Failed."""
        status, answer = await asyncio.wait_for(self._whole(method, path, body), self.timeout_s)
        if status != 200:
            raise Failed(f"{path}: expected status 200, got {status}: {_shown(answer)}")
        return answer

    async def stream(self, path: str, body: dict[str, Any]) -> Answer:
        """One streamed answer. Throws Failed."""
        encoded = json.dumps(body).encode()
        try:
            return await asyncio.wait_for(self._stream(path, encoded), self.timeout_s)
        except BaseException as error:
            await self.close()
            if isinstance(error, Failed):
                raise
            if isinstance(error, asyncio.TimeoutError):
                raise Failed(f"no whole answer within {self.timeout_s:g} s") from error
            if isinstance(error, (OSError, asyncio.IncompleteReadError, ValueError)):
                raise Failed(f"{type(error).__name__}: {error}") from error
            raise

    # ---- HTTP

    async def _open(self) -> None:
        self.is_reused = self.writer is not None
        if self.is_reused and self.reader is not None and not self.reader.at_eof():
            return
        await self.close()
        context = ssl.create_default_context() if self.server.is_tls else None
        self.reader, self.writer = await asyncio.open_connection(
            self.server.host, self.server.port, ssl=context, limit=HEAD_LIMIT)
        self.is_reused = False

    async def _ask(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, str]]:
        """Sends a request and reads the head of its answer."""
        lines = [f"{method} {self.server.base}{path} HTTP/1.1", f"Host: {self.server.netloc}",
                 "Content-Type: application/json", f"Content-Length: {len(body)}"]
        if self.server.api_key:
            lines.append(f"Authorization: Bearer {self.server.api_key}")
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        await self.writer.drain()
        status = (await self.reader.readuntil(b"\r\n")).split(maxsplit=2)
        if len(status) < 2 or not status[0].startswith(b"HTTP/1.") or not status[1].isdigit():
            raise Failed(f"expected an answer by HTTP/1.1, got {_shown(b' '.join(status))}")
        headers = {}
        while (line := await self.reader.readuntil(b"\r\n")) != b"\r\n":
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(status[1]), headers

    async def _body(self, headers: dict[str, str]) -> AsyncIterator[bytes]:
        """Pieces as they come; afterwards the connection is ready for the next request, or closed."""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
                yield await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            while await self.reader.readuntil(b"\r\n") != b"\r\n":
                pass  # trailers
        elif "content-length" in headers:
            left = int(headers["content-length"])
            while left > 0:
                piece = await self.reader.read(min(left, READ_BYTES))
                if not piece:
                    raise Failed("the server closed the connection within an answer")
                left -= len(piece)
                yield piece
        else:
            while piece := await self.reader.read(READ_BYTES):
                yield piece
            await self.close()
        if headers.get("connection", "").lower() == "close":
            await self.close()

    async def _whole(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        await self._open()
        status, headers = await self._ask(method, path, body)
        return status, b"".join([piece async for piece in self._body(headers)])

    # ---- Streams

    async def _stream(self, path: str, body: bytes) -> Answer:
        await self._open()
        answer = Answer(sent=time.perf_counter())
        try:
            status, headers = await self._ask("POST", path, body)
        except (ConnectionError, asyncio.IncompleteReadError):
            if not self.is_reused:
                raise
            await self.close()  # had been closed while nobody asked; the time so far counts
            await self._open()
            status, headers = await self._ask("POST", path, body)
        if status != 200:
            refusal = b"".join([piece async for piece in self._body(headers)])
            raise Failed(f"status {status}: {_shown(refusal)}")
        reader = EventReader(answer)
        async for piece in self._body(headers):
            reader.push(piece, time.perf_counter())
        answer.ended = time.perf_counter()
        reader.finish()
        return answer


class EventReader:
    """Server-sent events of a completion, put into an Answer."""

    def __init__(self, answer: Answer):
        self.answer = answer
        self.rest = b""
        self.is_done = False
        self.has_usage = False

    def push(self, piece: bytes, now: float) -> None:
        lines = (self.rest + piece).split(b"\n")
        self.rest = lines.pop()
        for line in lines:
            if not line.startswith(b"data:"):
                continue  # the empty line behind an event, a comment, or a field that these servers do not need
            data = line[len(b"data:"):].strip()
            if data == b"[DONE]":
                self.is_done = True
            else:
                self._take(json.loads(data), now)

    def _take(self, event: dict[str, Any], now: float) -> None:
        if event.get("error"):
            raise Failed(f"an error within the stream: {_shown(json.dumps(event['error']).encode())}")
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or choice
            text = (delta.get("content") or delta.get("text") or delta.get("reasoning_content")
                    or delta.get("reasoning") or "")
            if not text:
                continue
            self.answer.text += text
            self.answer.pieces.append(now)
            self.answer.last = now
            if self.answer.first is None:
                self.answer.first = now
        usage = event.get("usage")
        if usage:
            self.has_usage = True
            self.answer.prompt_tokens = usage["prompt_tokens"]
            self.answer.tokens = usage["completion_tokens"]
            self.answer.cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")

    def finish(self) -> None:
        """Throws Failed if the stream was cut, or what is to be counted is missing."""
        if not self.is_done:
            raise Failed("the stream ended without [DONE]")
        if not self.has_usage:
            raise Failed("expected usage in the stream (stream_options.include_usage), got none")
        if self.answer.first is None:
            raise Failed("expected text in the stream, got none")


def _shown(body: bytes) -> str:
    text = " ".join(body.decode("utf-8", "replace").split())
    return text[:SHOWN_CHARACTERS] + ("..." if len(text) > SHOWN_CHARACTERS else "")
