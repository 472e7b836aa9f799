"""A language model over HTTP: what OpenAI's clients send and expect, and requests that make no sense."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from lowering.generation.language_model import LanguageModel
from lowering.generation.scheduler import Request
from tests.support import decoders
from xdsl_relax.server import LARGEST_REQUEST, application

CONTEXT = 48


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    decoders.write_decoder(path)
    return LanguageModel.load(path, context=CONTEXT, sequences=3)


@pytest.fixture(scope="module")
def client(model: LanguageModel) -> TestClient:
    return TestClient(application(model, "small"))


def _events(response: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_models(client: TestClient):
    assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["small"]


def test_completion(client: TestClient, model: LanguageModel):
    body = {"model": "small", "prompt": "ab", "max_tokens": 6, "temperature": 0}
    expected = model.generate("ab", max_tokens=6)
    found = client.post("/v1/completions", json=body).json()
    assert found["object"] == "text_completion"
    assert found["choices"] == [{"index": 0, "text": expected.text, "logprobs": None, "finish_reason": "length"}]
    counts = (len(expected.prompt), len(expected.tokens))
    assert (found["usage"]["prompt_tokens"], found["usage"]["completion_tokens"]) == counts
    stopped = client.post("/v1/completions", json={**body, "stop": expected.text[2:4]}).json()["choices"][0]
    assert (stopped["text"], stopped["finish_reason"]) == (expected.text[:2], "stop")
    tokens = client.post("/v1/completions", json={**body, "prompt": expected.prompt}).json()
    assert tokens["choices"][0]["text"] == expected.text


def test_chat(client: TestClient, model: LanguageModel):
    body = {
        "model": "small",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
        "max_completion_tokens": 5,
        "temperature": 0,
    }
    expected = model.chat([{"role": "user", "content": "ab"}], max_tokens=5).text
    found = client.post("/v1/chat/completions", json=body).json()
    assert found["object"] == "chat.completion"
    assert found["choices"][0]["message"] == {"role": "assistant", "content": expected}
    streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
    events = _events(client.post("/v1/chat/completions", json=streamed))
    deltas = [each["choices"][0]["delta"] for each in events if each["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == expected
    assert deltas[0]["role"] == "assistant"
    assert {each["object"] for each in events} == {"chat.completion.chunk"}
    assert events[-2]["choices"][0]["finish_reason"] == "length"
    assert events[-1]["usage"]["completion_tokens"] == 5


def test_sampling_is_that_of_the_request(client: TestClient):
    def text(seed: int) -> str:
        body = {"prompt": "ab", "max_tokens": 12, "temperature": 3.0, "top_k": 40, "seed": seed, "stream": True}
        return "".join(each["choices"][0]["text"] for each in _events(client.post("/v1/completions", json=body)))

    assert text(1) == text(1) != text(2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "expected JSON"),
        (b"[1]", "expected a JSON object"),
        (b"[" * 100_000, "expected JSON"),
        (b" " * (LARGEST_REQUEST + 1), f"expected at most {LARGEST_REQUEST} bytes"),
        ({}, "'prompt' expected a text or a list of tokens"),
        ({"prompt": 3}, "'prompt' expected a text or a list of tokens"),
        ({"prompt": [1, 2**40]}, "expected tokens from 0 to 95"),
        ({"prompt": "a" * 60}, f"room for {CONTEXT} with the text"),
        ({"prompt": "a", "n": 2}, "'n' expected 1"),
        ({"prompt": "a", "temperature": "hot"}, "'temperature' expected a float, got 'hot'"),
        ({"prompt": "a", "temperature": -1}, "temperature of at least 0"),
        ({"prompt": "a", "max_tokens": 0}, "'max_tokens' expected an integer from 1"),
        ({"prompt": "a", "stop": [3]}, "'stop' expected a text or a list of texts"),
        ({"prompt": "a", "stop": 3}, "'stop' expected a text or a list of texts"),
        ({"prompt": "a", "stream": 1}, "'stream' expected a bool"),
    ],
)
def test_what_is_refused(body: Any, message: str, client: TestClient):
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    response = client.post("/v1/completions", **sent)
    assert response.status_code == 400
    assert message in response.json()["error"]["message"]


def test_messages_that_are_refused(client: TestClient):
    for messages in (None, [], [3], [{"role": "user"}], [{"role": "user", "content": [{"type": "image_url"}]}]):
        response = client.post("/v1/chat/completions", json={"messages": messages})
        assert response.status_code == 400
        assert "'messages' expected" in response.json()["error"]["message"]


def test_requests_at_the_same_time_share_a_batch(
    client: TestClient, model: LanguageModel, monkeypatch: pytest.MonkeyPatch
):
    prompts, sizes = ["ab", "abc de", "xyz", "q", "hello"], list[int]()
    step, add, everyone = model.decoding.step, model._scheduler.add, threading.Barrier(len(prompts), timeout=60)
    expected = [model.generate(prompt, max_tokens=30).text for prompt in prompts]

    def count(sequences: Sequence[Any], *rest: Any) -> Any:
        sizes.append(len(sequences))
        return step(sequences, *rest)

    def add_with_others(request: Request) -> None:
        add(request)
        everyone.wait()

    def ask(number: int) -> str:
        body = {"prompt": prompts[number], "max_tokens": 30, "temperature": 0, "stream": number % 2 == 1}
        response = client.post("/v1/completions", json=body)
        answers = _events(response) if number % 2 else [response.json()]
        return "".join(each["choices"][0]["text"] for each in answers)

    monkeypatch.setattr(model.decoding, "step", count)
    monkeypatch.setattr(model._scheduler, "add", add_with_others)
    with ThreadPoolExecutor(len(prompts)) as pool:
        assert list(pool.map(ask, range(len(prompts)))) == expected
    assert max(sizes) > 1
    assert max(sizes) <= 3


def test_a_stream_that_is_left_ends(client: TestClient, model: LanguageModel):
    body = {"prompt": "ab", "max_tokens": 40, "temperature": 0, "stream": True}
    with client.stream("POST", "/v1/completions", json=body) as response:
        assert response.status_code == 200
    assert client.post("/v1/completions", json={**body, "stream": False, "max_tokens": 2}).status_code == 200
    assert not model._scheduler._active


@pytest.mark.slow
def test_command_line(tmp_path: Path):
    decoders.write_decoder(tmp_path / "small.gguf")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "xdsl_relax.cli.relax_run", str(tmp_path / "small.gguf"), "--serve", str(port)]
    server = subprocess.Popen([*command, "--context", "48"], stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        address = server.stderr.readline().strip()
        assert address == f"http://127.0.0.1:{port}/v1"
        transport = httpx.HTTPTransport(retries=20)
        with httpx.Client(transport=transport, timeout=60) as client:
            assert client.get(f"{address}/models").json()["data"][0]["id"] == "small"
    finally:
        server.terminate()
        server.communicate()
