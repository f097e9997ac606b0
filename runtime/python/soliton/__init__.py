"""Language models as one persistent CUDA kernel: answers, streams of them, and trees of text.

    import soliton

    model = soliton.Model("Qwen/Qwen2.5-7B-Instruct")
    print(model.generate([{"role": "user", "content": "Hello!"}]).text)

    async for token in model.stream("Once upon a time", max_tokens=100):
        print(token.text, end="", flush=True)

What is raised is soliton.Error, whose `status` is an exit code of the programs, and ValueError or TypeError for what is
no argument. Any thread may call anything: calls that need the device take turns, and the GIL is free meanwhile.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from . import _soliton
from ._soliton import Error

__version__: str = _soliton.version()
__all__ = ["Answer", "Error", "Model", "Token", "Tree"]

_FINISHES = ("stop_token", "stop_text", "length", "callback", "cancelled", "whole")

#: A text, which is given the tokens that a text of its own begins with; tokens, taken as they are; or messages of a
#: conversation, rendered by the model's chat template.
Prompt = Union[str, Sequence[int], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Token:
    """A token as it comes."""

    branch: int  #: of the tree; 0 without one
    id: int  #: -1: none; what follows is the end of the text
    text: str  #: what can be shown now: whole characters, often none
    logprob: float  #: natural logarithm of its probability; NaN unless `logprobs` is set


@dataclass(frozen=True)
class Answer:
    """What has become of one text."""

    text: str  #: up to a stop, without it
    tokens: list[int]  #: generated, with those of a stop
    logprobs: list[float]  #: [tokens], or empty unless `logprobs` is set
    finish: str  #: "stop_token", "stop_text", "length", "callback", "cancelled", or "whole": nothing fits its grammar behind it
    num_prompt: int  #: tokens of the text before
    num_cached: int  #: of these, not fed again
    first_token_s: float  #: from the call to the first token
    total_s: float  #: of the call


OnToken = Callable[[Token], Optional[bool]]


def _answer(raw: _soliton.Answer) -> Answer:
    return Answer(raw.text, raw.tokens, raw.logprobs, _FINISHES[raw.finish], raw.num_prompt, raw.num_cached,
                  raw.first_token_s, raw.total_s)


def _raw_on_token(on_token: OnToken | None) -> Callable[[int, int, str, float], bool] | None:
    if on_token is None:
        return None
    return lambda branch, id, text, logprob: on_token(Token(branch, id, text, logprob)) is not False


class Model:
    """A model folder with its tokenizer, kernel and weights on the device, and the cache of all of its texts."""

    def __init__(self, folder: str, *, device: int = 0, context: int = 0, cache_tokens: int = 0,
                 kernel: str | None = None, chat_template: str | None = None,
                 log: Callable[[str], object] | None = None) -> None:
        """Opens a Hugging Face folder, a GGUF file, or the name of a model that is in Hugging Face's cache; takes seconds.

        device: index of the card; where there is no card, the emulation on the CPU takes its place.
        context: tokens of one text at most; 0: as many as the model takes and memory holds, 32768 at most.
        cache_tokens: tokens that are kept in all; 0: as many as memory holds.
        kernel: path of a kernel library; None: a fitting one is found, or made, which takes up to a minute.
        chat_template: path of a template in place of the model's.
        log: told, a line each, what takes a while or surprises while the model is opened.
        Raises Error: status 3, 4 and 5 for what is no sound model, 6, 7 and 8 for what this machine cannot do.
        """
        self._raw = _soliton.Model(folder, device, context, cache_tokens, kernel or "", chat_template or "", log)
        info = self._raw.info()
        self.context: int = info.context  #: tokens of one text at most
        self.vocabulary: int = info.vocabulary  #: token ids are 0 to vocabulary - 1
        self.max_rows: int = info.max_rows  #: texts that are decoded in one step at most
        self.has_chat_template: bool = info.has_chat_template
        self.is_emulated: bool = info.is_emulated  #: there is no card, and it is slow
        self.cache_tokens: int = info.cache_tokens  #: that are kept in all

    def tokenize(self, text: str, *, prefix: bool = False, parse_special: bool = False) -> list[int]:
        """Token ids of a text.

        prefix: first the tokens that a text of its own begins with, such as begin-of-text.
        parse_special: special tokens that the text spells out count; never for a text that a user wrote.
        """
        flags = (_soliton.ADD_PREFIX if prefix else 0) | (_soliton.PARSE_SPECIAL if parse_special else 0)
        return self._raw.tokenize(text, flags)

    def detokenize(self, tokens: Sequence[int], *, skip_special: bool = False) -> str:
        """The text of tokens."""
        return self._raw.detokenize(list(tokens), skip_special)

    def render_chat(self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] | None = None,
                    variables: Mapping[str, Any] | None = None) -> list[int]:
        """Token ids of what stands before the next answer of the assistant, by the model's chat template.

        Raises Error: status 2 if there is no template, 4 and 5 for messages that are none or that it refuses.
        """
        def as_json(value: Any) -> str:
            return "" if value is None else json.dumps(value)
        return self._raw.render_chat(as_json(messages), as_json(tools), as_json(variables))

    def generate(self, prompt: Prompt, *, on_token: OnToken | None = None, **options: Any) -> Answer:
        """Generates behind a prompt; what the cache has of it is not fed again.

        on_token: told of each token as it comes; ends the answer by returning False.
        options: as the model's files ask for unless given: max_tokens (0: as many as the context takes), temperature
        (0: always the best token), top_k, top_p, min_p, repeat_penalty, seed, logprobs, ignore_eos; stops, a list of
        texts that end the answer; and what it may be: grammar, in llama.cpp's notation, or json_schema, as text or value.
        Raises Error: status 7 if the prompt does not fit the context, 5 for tokens that are none; and what on_token does.
        """
        return _answer(_soliton.Session(self._raw).generate(self._tokens(prompt), self._options(options),
                                                            _raw_on_token(on_token)))

    async def stream(self, prompt: Prompt, **options: Any) -> AsyncIterator[Token]:
        """The tokens of generate() as they come. Whoever stops iterating ends the answer."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Token | None] = asyncio.Queue()
        session = _soliton.Session(self._raw)
        tokens, raw_options = self._tokens(prompt), self._options(options)

        def tell(token: Token | None) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, token)

        def run() -> None:
            try:
                session.generate(tokens, raw_options, _raw_on_token(tell))
            finally:
                tell(None)

        running = loop.run_in_executor(None, run)
        try:
            while (token := await queue.get()) is not None:
                yield token
        finally:
            session.cancel()
            await running

    def tree(self) -> Tree:
        """A tree of texts without branches."""
        return Tree(self)

    def _tokens(self, prompt: Prompt) -> list[int]:
        if isinstance(prompt, str):
            return self.tokenize(prompt, prefix=True)
        if prompt and isinstance(prompt[0], Mapping):
            return self.render_chat(prompt)  # type: ignore[arg-type]
        return list(prompt)  # type: ignore[arg-type]

    def _options(self, given: Mapping[str, Any]) -> _soliton.Options:
        options = self._raw.options()
        for name, value in given.items():
            if not hasattr(options, name):
                raise TypeError(f"{name}: expected an option that generate() knows, got another one")
            is_value = name == "json_schema" and not isinstance(value, str)
            setattr(options, name, json.dumps(value) if is_value else value)
        return options


class Tree:
    """Texts that branch, share what is cached of them, and are decoded together. Branches are numbers."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._raw = _soliton.Tree(model._raw)

    def add(self, prompt: Prompt) -> int:
        """A new branch with a text of its own."""
        return self._raw.add(self._model._tokens(prompt))

    def fork(self, branch: int, count: int) -> list[int]:
        """[count] new branches that go on from another one, which stays. Raises Error (7) where the cache is full."""
        return self._raw.fork(branch, count)

    def append(self, branch: int, text: str | Sequence[int]) -> None:
        """Puts a text or tokens at the end of a branch."""
        self._raw.append(branch, self._model.tokenize(text) if isinstance(text, str) else list(text))

    def prune(self, branch: int) -> None:
        """Ends a branch, whose number may be given out again."""
        self._raw.prune(branch)

    def tokens(self, branch: int) -> list[int]:
        """All tokens of a branch."""
        return self._raw.tokens(branch)

    def text(self, branch: int) -> str:
        """All text of a branch, without special tokens."""
        return self._model.detokenize(self.tokens(branch), skip_special=True)

    def decode(self, branches: Sequence[int], *, on_token: OnToken | None = None, **options: Any) -> list[Answer]:
        """[branches] answers, decoded together, which become part of the branches. Options as those of generate();
        branch i draws with seed + i."""
        raw = self._raw.decode(list(branches), self._model._options(options), _raw_on_token(on_token))
        return [_answer(answer) for answer in raw]

    def score(self, branch: int, text: str | Sequence[int]) -> list[float]:
        """[tokens] logprobs of a text or tokens behind a branch, which stays as it is."""
        return self._raw.score(branch, self._model.tokenize(text) if isinstance(text, str) else list(text))
