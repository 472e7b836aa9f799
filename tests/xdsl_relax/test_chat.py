"""`relax-run model.gguf --chat` through pipes, with answers that are interrupted, and through a pseudo-terminal."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lowering.generation.language_model import LanguageModel
from tests.support import decoders
from xdsl_relax.cli import generate
from xdsl_relax.cli.relax_run import main

CONTEXT = 120


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("model") / "model.gguf"
    decoders.write_decoder(found)
    return found


@pytest.fixture(scope="module")
def model(path: Path) -> LanguageModel:
    return LanguageModel.load(path, context=CONTEXT)


def _chat(path: Path, lines: str, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    assert main([str(path), "--chat", "--context", str(CONTEXT), "--max-tokens", "9", *options]) == 0


def test_lines_are_answered(
    path: Path, model: LanguageModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    _chat(path, "hi\nab\\\ncd\n\n/clear\n/other\nhi\n/exit\nhi\n", monkeypatch, "--system", "s")
    out, err = capsys.readouterr()
    messages = [{"role": "system", "content": "s"}]
    expected, tokens = list[str](), list[int]()
    for text in ("hi", "ab\ncd"):
        messages.append({"role": "user", "content": text})
        answer = model.chat(messages, max_tokens=9)
        tokens.append(len(answer.tokens))
        expected.append(answer.text)
        messages.append({"role": "assistant", "content": expected[-1]})
    assert out == "".join(f"{text}\n" for text in (*expected, expected[0]))
    assert "unknown command /other" in err
    assert re.search(rf"text: {sum(tokens) + tokens[0]} tokens, [\d.]+ tokens/s; memory: \d+ MB at most", err)


def test_the_oldest_messages_are_forgotten(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    _chat(path, f"{'x' * 50}\n{'y' * 20}\n{'z' * 30}\n{'w' * 200}\nhi\n", monkeypatch)
    out, err = capsys.readouterr()
    assert err.count("the context is full: the oldest messages are forgotten") == 2
    assert "there is room for 120 with the text" in err
    assert len(out.splitlines()) >= 4


def test_an_answer_that_is_interrupted_stays(
    path: Path, model: LanguageModel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    shown: list[str] = []

    def show(text: str) -> None:
        shown.append(text)
        print(text, end="")
        if len(shown) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(generate, "_show", show)
    _chat(path, "hi\nab\n", monkeypatch)
    first, second = "".join(shown[:3]), "".join(shown[3:])
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": first}]
    assert second == model.chat([*messages, {"role": "user", "content": "ab"}], max_tokens=9).text
    assert "text: 12 tokens" in capsys.readouterr().err


@pytest.mark.slow
def test_a_terminal(path: Path):
    """It prompts for lines, and Ctrl-D ends the conversation."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "xdsl_relax.cli.relax_run", str(path), "--chat", "--max-tokens", "9"]
    chat = subprocess.Popen([*command, "--context", str(CONTEXT)], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = ""

    def until(text: str) -> None:
        nonlocal seen
        while text not in seen:
            seen += os.read(ours, 4096).decode(errors="replace")
        seen = seen.split(text, 1)[1]

    try:
        until("Ctrl-C ends an answer")
        until("> ")
        os.write(ours, b"hi\n")
        until("hi\r\n")
        until("> ")
        os.write(ours, b"\x04")
        until("tokens/s; memory:")
        assert chat.wait(60) == 0
    finally:
        chat.send_signal(signal.SIGKILL)
        chat.wait()
        os.close(ours)
