"""A language model over HTTP, as OpenAI's clients expect it: `relax-run model.gguf --serve 8000`.

`POST /v1/chat/completions` and `/v1/completions`, whole or as a stream of events, and `GET /v1/models`. Texts are
written in one batch, as many as the model has sequences; others wait. A client that goes away ends its text. Needs the
extra `serve` (Starlette and uvicorn).
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from lowering.generation.language_model import Generation, LanguageModel
from lowering.generation.sampling import Sampling

if TYPE_CHECKING:
    from starlette.requests import Request

MOST_TOKENS = 1 << 20
LARGEST_REQUEST = 1 << 24
"""Bytes."""

ValueT = TypeVar("ValueT")


class RequestError(ValueError):
    """A request that makes no sense; the message is for the client."""


@dataclass(frozen=True)
class _Wanted:
    """What a client asks for."""

    prompt: list[int]
    options: Mapping[str, Any]
    is_chat: bool
    stream: bool
    usage: bool
    """Whether the last event of a stream says how many tokens there were."""


def application(model: LanguageModel, name: str) -> Starlette:
    """An ASGI application that serves a model under a name."""
    service = _Service(model, name)
    return Starlette(
        routes=[
            Route("/v1/models", service.models),
            Route("/v1/chat/completions", service.chat, methods=["POST"]),
            Route("/v1/completions", service.complete, methods=["POST"]),
        ]
    )


class _Service:
    def __init__(self, model: LanguageModel, name: str):
        self._model, self._name = model, name

    async def models(self, request: Request) -> Response:
        """The only model."""
        return JSONResponse({"object": "list", "data": [{"id": self._name, "object": "model", "owned_by": "local"}]})

    async def chat(self, request: Request) -> Response:
        """The answer to messages."""
        return await self._answer(request, is_chat=True)

    async def complete(self, request: Request) -> Response:
        """The continuation of a prompt."""
        return await self._answer(request, is_chat=False)

    async def _answer(self, request: Request, is_chat: bool) -> Response:
        try:
            wanted = self._wanted(await _body(request), is_chat)
        except ValueError as error:
            return _refusal(400, str(error))
        if wanted.stream:
            return StreamingResponse(self._events(wanted), media_type="text/event-stream")
        try:
            made = await run_in_threadpool(lambda: self._model.generate(wanted.prompt, **wanted.options))
        except ValueError as error:
            return _refusal(500, str(error))
        message = {"message": {"role": "assistant", "content": made.text}}
        choice = message if is_chat else {"text": made.text, "logprobs": None}
        choices = [{"index": 0, **choice, "finish_reason": made.end}]
        return JSONResponse({**self._identity(wanted), "choices": choices, "usage": _usage(made)})

    async def _events(self, wanted: _Wanted) -> AsyncIterator[str]:
        """The text as server-sent events, piece by piece; it ends where the client goes away."""
        identity = self._identity(wanted)
        pieces = self._model.stream(wanted.prompt, **wanted.options)
        made: Generation | None = None
        try:
            while made is None:
                piece, made = await run_in_threadpool(_next, pieces)
                if piece:
                    yield _event({**identity, "choices": [self._choice(wanted, {"content": piece}, None)]})
        except ValueError as error:
            yield _event({"error": {"message": str(error), "type": "server_error"}})
            return
        finally:
            pieces.close()
        yield _event({**identity, "choices": [self._choice(wanted, {}, made.end)]})
        if wanted.usage:
            yield _event({**identity, "choices": [], "usage": _usage(made)})
        yield "data: [DONE]\n\n"

    def _choice(self, wanted: _Wanted, delta: Mapping[str, str], end: str | None) -> Mapping[str, Any]:
        own = {"delta": {"role": "assistant", **delta}} if wanted.is_chat else {"text": delta.get("content", "")}
        return {"index": 0, **own, "finish_reason": end}

    def _identity(self, wanted: _Wanted) -> Mapping[str, Any]:
        kind = "chat.completion" if wanted.is_chat else "text_completion"
        suffix = ".chunk" if wanted.is_chat and wanted.stream else ""
        prefix = "chatcmpl" if wanted.is_chat else "cmpl"
        return {
            "id": f"{prefix}-{uuid4().hex}",
            "object": kind + suffix,
            "created": int(time.time()),
            "model": self._name,
        }

    def _wanted(self, body: Mapping[str, Any], is_chat: bool) -> _Wanted:
        """What a request asks for; `ValueError` for one that makes no sense."""
        prompt = self._prompt(body, is_chat)
        self._model.check(prompt)
        if _value(body, "n", int, 1) != 1:
            raise RequestError("'n' expected 1: one text at a time is made")
        limit = body.get("max_completion_tokens", body.get("max_tokens"))
        most = self._model.context - len(prompt) if limit is None else _integer("max_tokens", limit)
        stop: Any = body.get("stop") or []
        stops: list[Any] = cast("list[Any]", stop) if isinstance(stop, list) else [stop]
        if not all(isinstance(each, str) for each in stops):
            raise RequestError("'stop' expected a text or a list of texts")
        sampling = Sampling(
            temperature=_value(body, "temperature", float, 1.0),
            top_p=_value(body, "top_p", float, 1.0),
            top_k=_value(body, "top_k", int, 0),
            min_p=_value(body, "min_p", float, 0.0),
            repetition_penalty=_value(body, "repetition_penalty", float, 1.0),
            seed=_value(body, "seed", int, time.time_ns() % (1 << 32)),
        )
        options: Any = body.get("stream_options") or {}
        usage = isinstance(options, dict) and cast("Mapping[str, Any]", options).get("include_usage") is True
        wanted = {"max_tokens": most, "sampling": sampling, "stop": stops}
        return _Wanted(prompt, wanted, is_chat, _value(body, "stream", bool, False), usage)

    def _prompt(self, body: Mapping[str, Any], is_chat: bool) -> list[int]:
        if is_chat:
            # Messages whose contents are texts; contents in several texts are joined.
            messages = body.get("messages")
            if not isinstance(messages, list) or not messages:
                raise RequestError("'messages' expected a list of messages")
            found: list[Mapping[str, str]] = []
            for each in cast("list[Any]", messages):
                message: Mapping[str, Any] = cast("Mapping[str, Any]", each) if isinstance(each, dict) else {}
                role, content = message.get("role"), message.get("content")
                if isinstance(content, list):
                    texts = [_text(part) for part in cast("list[Any]", content)]
                    content = None if None in texts else "".join(text for text in texts if text is not None)
                if not isinstance(role, str) or not isinstance(content, str):
                    raise RequestError("'messages' expected objects with the texts 'role' and 'content'")
                found.append({"role": role, "content": content})
            return self._model.tokenizer.encode(self._model.tokenizer.chat(found))
        prompt: Any = body.get("prompt")
        if isinstance(prompt, list) and prompt and all(type(each) is int for each in cast("list[Any]", prompt)):
            return cast("list[int]", prompt)
        if isinstance(prompt, list) and len(cast("list[Any]", prompt)) == 1:
            prompt = cast("list[Any]", prompt)[0]
        if not isinstance(prompt, str):
            raise RequestError("'prompt' expected a text or a list of tokens")
        return self._model.tokenizer.encode(prompt)


def _next(pieces: Generator[str, None, Generation]) -> tuple[str, Generation | None]:
    """The next piece, or what was made at the end: `StopIteration` cannot leave a thread."""
    try:
        return next(pieces), None
    except StopIteration as end:
        return "", end.value


async def _body(request: Request) -> Mapping[str, Any]:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > LARGEST_REQUEST:
            raise RequestError(f"expected at most {LARGEST_REQUEST} bytes")
    try:
        body: Any = json.loads(bytes(data))
    except (ValueError, RecursionError) as error:
        raise RequestError(f"expected JSON: {error}") from error
    if not isinstance(body, dict):
        raise RequestError("expected a JSON object")
    return cast("Mapping[str, Any]", body)


def _text(part: Any) -> str | None:
    """The text of a part of a message; `None` if it is something else."""
    text = cast("Mapping[str, Any]", part).get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else None


def _value(body: Mapping[str, Any], key: str, kind: Callable[[Any], ValueT], otherwise: ValueT) -> ValueT:
    """A value of one kind, or the usual one; `RequestError` for anything else."""
    value = body.get(key)
    if value is None:
        return otherwise
    allowed = (int, float) if kind is float else kind
    if not isinstance(value, cast("type", allowed)) or (isinstance(value, bool) and kind is not bool):
        raise RequestError(f"'{key}' expected a {getattr(kind, '__name__', kind)}, got {value!r}")
    return kind(value)


def _integer(key: str, value: Any) -> int:
    if type(value) is not int or not 0 < value <= MOST_TOKENS:
        raise RequestError(f"'{key}' expected an integer from 1 to {MOST_TOKENS}, got {value!r}")
    return value


def _usage(made: Generation) -> Mapping[str, int]:
    prompt, text = len(made.prompt), len(made.tokens)
    return {"prompt_tokens": prompt, "completion_tokens": text, "total_tokens": prompt + text}


def _event(content: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(content)}\n\n"


def _refusal(status: int, message: str) -> Response:
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error"}}, status_code=status)


def serve(model: LanguageModel, name: str, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Serves a model until the process is interrupted."""
    import uvicorn

    uvicorn.run(application(model, name), host=host, port=port, log_level="warning")
