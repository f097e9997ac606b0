"""Replicas of a model for many users: Soliton's Python package as a deployment of Ray Serve, behind OpenAI's API.

    serve run soliton_serve:app model=Qwen/Qwen2.5-7B-Instruct max_replicas=4

A replica has a card of its own and a model on it; Ray starts more while requests wait, on any machine of its cluster. What
a conversation has said so far is cached where it was answered, so requests of one conversation go to the same replica as long as
that one is there and has time.
"""

import asyncio
import hashlib
import json
import threading
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import fastapi
import ray.exceptions
from fastapi.responses import JSONResponse, StreamingResponse
from ray import serve
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from ray.serve.handle import DeploymentHandle
from ray.serve.request_router import FIFOMixin, PendingRequest, RequestRouter, RunningReplica

#: Of requests to one replica: it answers one after the other, and the rest wait where others may still take them.
MAX_ONGOING_REQUESTS = 4

#: What generate() takes, by the names of OpenAI's API.
OPTIONS = {"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p", "seed": "seed",
           "repetition_penalty": "repeat_penalty", "max_tokens": "max_tokens", "max_completion_tokens": "max_tokens"}
#: What changes nothing of an answer, or is read elsewhere.
IGNORED = {"model", "messages", "prompt", "stream", "stream_options", "stop", "response_format", "user", "metadata", "store",
           "prompt_cache_key", "n"}


class BadRequest(Exception):
    """A request that cannot be answered: its text says what was expected."""


# ---- Where a request goes


def conversation_of(body: dict[str, Any]) -> str:
    """What requests of one conversation have in common: its key, if it has one, or else how it begins."""
    if key := body.get("prompt_cache_key") or body.get("user"):
        return str(key)
    messages = body.get("messages")
    if not isinstance(messages, list):
        return str(body.get("prompt", ""))[:256]
    first = next((i for i, message in enumerate(messages) if message.get("role") == "user"), len(messages))
    return json.dumps(messages[: first + 1])


class ConversationRouter(FIFOMixin, RequestRouter):
    """By rendezvous hashing: each replica has a rank of its own for a conversation, so that one that comes or goes moves
    none but its own. Ray takes the first that has room."""

    async def choose_replicas(self, candidate_replicas: list[RunningReplica],
                              pending_request: PendingRequest | None = None) -> list[list[RunningReplica]]:
        key = pending_request.args[0] if pending_request and pending_request.args else ""

        def rank(replica: RunningReplica) -> bytes:
            return hashlib.sha256(f"{replica.replica_id.unique_id} {key}".encode()).digest()

        return [[replica] for replica in sorted(candidate_replicas, key=rank)]


# ---- A replica


@serve.deployment(max_ongoing_requests=MAX_ONGOING_REQUESTS, health_check_period_s=10, health_check_timeout_s=30,
                  request_router_config=RequestRouterConfig(request_router_class=ConversationRouter))
class Replica:
    """A model on a card. Its answers take turns."""

    def __init__(self, model: str, options: dict[str, Any]) -> None:
        import soliton  # here, as the machine that deploys may have no card

        self._error = soliton.Error
        self._model = soliton.Model(model, **options)
        self._failure: str | None = None  # of the device, after which only a new process helps

    def check_health(self) -> None:
        """Asked by Ray, which replaces whoever raises."""
        if self._failure:
            raise RuntimeError(self._failure)

    def ready(self) -> bool:
        return True

    async def answer(self, conversation: str, prompt: Any, options: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """{"text"} for each piece as it comes, and at the end {"finish", "prompt", "cached", "generated"}; or, of what cannot
        be answered, {"error", "status"}. `conversation` is for the router."""
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        gone = threading.Event()

        def tell(event: dict[str, Any]) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, event)

        def on_token(token: Any) -> bool:
            if token.text:
                tell({"text": token.text})
            return not gone.is_set()

        def run() -> None:
            try:
                answer = self._model.generate(prompt, on_token=on_token, **options)
                tell({"finish": answer.finish, "prompt": answer.num_prompt, "cached": answer.num_cached,
                      "generated": len(answer.tokens)})
            except self._error as error:
                if error.status == 6:
                    self._failure = str(error)
                tell({"error": str(error), "status": 500 if error.status == 6 else 400})
            except (TypeError, ValueError) as error:
                tell({"error": str(error), "status": 400})

        running = loop.run_in_executor(None, run)
        try:
            while "text" in (event := await queue.get()):
                yield event
            yield event
        finally:
            gone.set()  # whoever does not read any more ends the answer
            await running


# ---- OpenAI's API. Ray takes along what stands above a deployment, and nothing below it.


def options_of(body: dict[str, Any]) -> dict[str, Any]:
    """What generate() is to be given. Throws BadRequest of what would change the answer and is not known here."""
    unknown = [name for name in body if name not in OPTIONS and name not in IGNORED and body[name] is not None]
    if unknown:
        raise BadRequest(f"{unknown[0]}: expected a member that this endpoint knows; soliton-server knows more")
    if body.get("n") not in (None, 1):
        raise BadRequest(f"n: expected 1, got {body['n']}")
    options = {OPTIONS[name]: value for name, value in body.items() if name in OPTIONS and value is not None}
    stop = body.get("stop") or []
    options["stops"] = [stop] if isinstance(stop, str) else stop
    form = body.get("response_format") or {"type": "text"}
    if form.get("type") == "json_schema":
        options["json_schema"] = form["json_schema"]["schema"]
    elif form.get("type") != "text":
        raise BadRequest(f"response_format: expected text or json_schema, got {form.get('type')}")
    return options


def refusal(status: int, message: str) -> JSONResponse:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return JSONResponse({"error": {"message": message, "type": kind, "code": status}}, status)


def finish_of(event: dict[str, Any]) -> str:
    return "length" if event["finish"] == "length" else "stop"


def usage_of(event: dict[str, Any]) -> dict[str, Any]:
    return {"prompt_tokens": event["prompt"], "completion_tokens": event["generated"],
            "total_tokens": event["prompt"] + event["generated"],
            "prompt_tokens_details": {"cached_tokens": event["cached"]}}


async def whole(first: dict[str, Any], events: AsyncIterator[dict[str, Any]], base: dict[str, Any], is_chat: bool) -> Any:
    text, event = "", first
    while "text" in event:
        text += event["text"]
        event = await anext(events)
    if "error" in event:
        return refusal(event["status"], event["error"])
    content = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
    return {**base, "object": "chat.completion" if is_chat else "text_completion",
            "choices": [{"index": 0, "finish_reason": finish_of(event), **content}], "usage": usage_of(event)}


async def stream(first: dict[str, Any], events: AsyncIterator[dict[str, Any]], base: dict[str, Any], is_chat: bool,
                 has_usage: bool) -> AsyncIterator[str]:
    base["object"] = "chat.completion.chunk" if is_chat else "text_completion"

    def data(value: Any) -> str:
        return f"data: {json.dumps(value)}\n\n"

    def chunk(text: str, finish: str | None = None) -> str:
        content = {"delta": {"content": text} if text else {}} if is_chat else {"text": text}
        return data({**base, "choices": [{"index": 0, "finish_reason": finish, **content}]})

    event = first
    while "text" in event:
        yield chunk(event["text"])
        event = await anext(events)
    if "error" in event:
        yield data({"error": {"message": event["error"], "type": "server_error", "code": event["status"]}})
    else:
        yield chunk("", finish_of(event))
        if has_usage:
            yield data({**base, "choices": [], "usage": usage_of(event)})
    yield "data: [DONE]\n\n"


api = fastapi.FastAPI(title="Soliton on Ray Serve")


@serve.deployment
@serve.ingress(api)
class Endpoint:
    """Has no card; reads requests, and hands them to replicas."""

    def __init__(self, model: str, replicas: DeploymentHandle) -> None:
        self._name = model
        self._replicas = replicas

    @api.get("/health")
    async def health(self) -> JSONResponse:
        """Whether a replica answers."""
        try:
            await asyncio.wait_for(self._replicas.ready.remote(), timeout=10)
        except Exception as error:  # whatever it is, nobody answers
            return refusal(503, f"no replica answers: {type(error).__name__}")
        return JSONResponse({"status": "ok"})

    @api.get("/v1/models")
    async def models(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": self._name, "object": "model", "owned_by": "soliton"}]}

    @api.post("/v1/chat/completions")
    async def chat(self, request: fastapi.Request) -> Any:
        return await self._answer(request, is_chat=True)

    @api.post("/v1/completions")
    async def completions(self, request: fastapi.Request) -> Any:
        return await self._answer(request, is_chat=False)

    async def _answer(self, request: fastapi.Request, is_chat: bool) -> Any:
        try:
            body = await request.json()
            prompt = body["messages" if is_chat else "prompt"]
            if not prompt or not isinstance(prompt, list if is_chat else str):
                raise BadRequest("messages: expected a list" if is_chat else "prompt: expected a text")
            options = options_of(body)
            conversation = conversation_of(body)
        except BadRequest as error:
            return refusal(400, str(error))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return refusal(400, f"expected a request of OpenAI's API, got one without sense: {error!r}")
        events = self._events(conversation, prompt, options)
        first = await anext(events)  # a refusal has a status of its own
        if "error" in first:
            return refusal(first["status"], first["error"])
        base = {"id": f"{'chatcmpl' if is_chat else 'cmpl'}-{uuid.uuid4().hex}", "created": int(time.time()),
                "model": self._name}
        if body.get("stream"):
            usage = (body.get("stream_options") or {}).get("include_usage")
            return StreamingResponse(stream(first, events, base, is_chat, usage), media_type="text/event-stream")
        return await whole(first, events, base, is_chat)

    async def _events(self, conversation: str, prompt: Any, options: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Those of a replica. If it goes away meanwhile, what was asked of it ends with an error."""
        try:
            async for event in self._replicas.options(stream=True).answer.remote(conversation, prompt, options):
                yield event
        except ray.exceptions.RayError as error:
            yield {"error": f"the replica that answered has gone ({type(error).__name__}); ask again", "status": 503}


def app(args: dict[str, str]) -> serve.Application:
    """By `serve run soliton_serve:app NAME=VALUE...`: model, a name or folder; min_replicas and max_replicas (1); gpus of a
    replica (1; 0: in emulation, for tests); context and chat_template, as soliton.Model takes them."""
    known = {"model", "min_replicas", "max_replicas", "gpus", "context", "chat_template"}
    if "model" not in args or set(args) - known:
        raise ValueError(f"expected model=NAME and any of {', '.join(sorted(known))}, got {', '.join(args) or 'nothing'}")
    options: dict[str, Any] = {name: args[name] for name in ("chat_template",) if name in args}
    options["context"] = int(args.get("context", 0))
    least = int(args.get("min_replicas", 1))
    scaling = AutoscalingConfig(min_replicas=least, max_replicas=max(least, int(args.get("max_replicas", 1))),
                                target_ongoing_requests=MAX_ONGOING_REQUESTS / 2)
    replicas = Replica.options(autoscaling_config=scaling, ray_actor_options={"num_gpus": float(args.get("gpus", 1))})
    return Endpoint.bind(args["model"], replicas.bind(args["model"], options))
