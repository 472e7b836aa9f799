"""Text from a language model, for `relax-run`: a continued prompt, an answer, a conversation, or a server."""

from __future__ import annotations

import argparse
import resource
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from lowering.generation.language_model import Generation, LanguageModel
from lowering.generation.sampling import Sampling
from xdsl_relax.cli.diagnostics import ToolError, with_traceback
from xdsl_relax.cli.workers import mesh_of_model, print_on_rank_0, rank_of_process, run_together

_COMMANDS = "/clear forgets the conversation, /exit or Ctrl-D ends it, Ctrl-C ends an answer, \\ continues a line"


def generate(args: argparse.Namespace) -> None:
    """Continues a prompt, answers, or chats, and prints the text as it comes, then how fast it came; or serves.

    With `--mesh`, the processes that mpiexec has started do it together, and rank 0 prints.
    """
    given: str | None = args.prompt if args.ask is None else args.ask
    if given is None and args.serve is None and not args.chat and not args.warm_up:
        raise ToolError("a language model expected --prompt TEXT, --ask TEXT, --chat, --serve PORT or --warm-up")
    if args.mesh is not None:
        if args.chat or args.serve is not None or args.warm_up:
            raise ToolError("--mesh of a language model goes with --prompt and --ask only")
        run_together(lambda: _generate(args))
    else:
        _generate(args)


def _generate(args: argparse.Namespace) -> None:
    mesh = None if args.mesh is None else mesh_of_model(args.mesh)
    try:
        sampling = Sampling(
            args.temperature, args.top_k, args.top_p, args.min_p, args.repetition_penalty, seed=args.seed
        )
        model = LanguageModel.load(
            args.file,
            context=args.context,
            sequences=1 if args.serve is None else args.sequences,
            cache_format=args.cache_format,
            weight_format=args.weight_format,
            activation_bits=args.activation_bits,
            cache=not args.no_cache,
            mesh=mesh,
            timeout=args.timeout,
        )
        if args.warm_up:
            return
        if args.serve is not None:
            _serve(model, args)
        elif args.chat:
            _Chat(model, args, sampling).run()
        else:
            _answer(model, args, sampling)
    except ValueError as error:
        raise ToolError(with_traceback(str(error), error)) from error


def _answer(model: LanguageModel, args: argparse.Namespace, sampling: Sampling) -> None:
    messages = [*_told(args), {"role": "user", "content": args.ask}]
    prompt = args.prompt if args.ask is None else model.tokenizer.chat(messages)
    rank = 0 if args.mesh is None else rank_of_process()
    print_on_rank_0(rank)
    made: Generation = model.generate(prompt, max_tokens=args.max_tokens, sampling=sampling, stop=args.stop, show=_show)
    print()
    worker = "" if args.mesh is None else f"rank {rank}: "
    print(f"{worker}{made.summary()}; {_memory()}", file=sys.stderr)


def _told(args: argparse.Namespace) -> list[Mapping[str, str]]:
    """The messages before those of the user."""
    return [] if args.system is None else [{"role": "system", "content": args.system}]


def _memory() -> str:
    """The most memory that the process has had; files that are mapped count where they have been read."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return f"memory: {most / (1e6 if sys.platform == 'darwin' else 1024):.0f} MB at most"


@dataclass
class _Chat:
    """A conversation: a line is a message, unless it ends in a backslash. Ctrl-C ends an answer, and what was said
    stays part of the conversation.
    """

    model: LanguageModel
    args: argparse.Namespace
    sampling: Sampling
    messages: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    total: Generation = field(default_factory=Generation)

    def run(self) -> None:
        """Answers until the input ends."""
        if sys.stdin.isatty():
            with_editing = import_module("readline")  # lines can be edited, and earlier ones called back
            assert with_editing
            print(_COMMANDS, file=sys.stderr)
        self.messages = _told(self.args)
        for message in self._lines():
            if message == "/clear":
                self.messages = _told(self.args)
            elif message.startswith("/"):
                print(f"unknown command {message.split()[0]}; {_COMMANDS}", file=sys.stderr)
            elif message:
                self._reply(message)
        print(f"{self.total.summary()}; {_memory()}", file=sys.stderr)

    def _lines(self) -> Iterator[str]:
        """What the user says, until the input ends."""
        prompt = "> " if sys.stdin.isatty() else ""
        try:
            while True:
                line = input(prompt)
                while line.endswith("\\"):
                    line = f"{line[:-1]}\n{input(prompt and '. ')}"
                if line.strip() == "/exit":
                    return
                yield line.strip()
        except (EOFError, KeyboardInterrupt):
            if prompt:
                print()

    def _reply(self, message: str) -> None:
        """Answers one message; it is forgotten if that fails."""
        before = list(self.messages)
        self.messages.append({"role": "user", "content": message})
        try:
            prompt = self._prompt()
        except ValueError as error:
            self.messages = before
            print(error, file=sys.stderr)
            return
        text, made = "", Generation()
        pieces = self.model.stream(
            prompt, max_tokens=self.args.max_tokens, sampling=self.sampling, stop=self.args.stop, made=made
        )
        try:
            for piece in pieces:
                text += piece
                _show(piece)
        except KeyboardInterrupt:
            pass
        print(flush=True)
        self.messages.append({"role": "assistant", "content": text})
        self.total.add(made)

    def _prompt(self) -> list[int]:
        """The tokens of the conversation, of which the oldest messages are left out where there is no room for all.

        `ValueError` if there is none for the last one.
        """
        tokenizer, first = self.model.tokenizer, len(_told(self.args))
        room = self.model.context - min(self.args.max_tokens, self.model.context // 4)
        is_cut = False
        while True:
            prompt = tokenizer.encode(tokenizer.chat(self.messages))
            if len(prompt) <= room or len(self.messages) <= first + 1:
                break
            del self.messages[first : first + 2]
            is_cut = True
        self.model.check(prompt)
        if is_cut:
            print("(the context is full: the oldest messages are forgotten)", file=sys.stderr)
        return prompt


def _serve(model: LanguageModel, args: argparse.Namespace) -> None:
    try:
        server = import_module("xdsl_relax.server")
        import_module("uvicorn")
    except ModuleNotFoundError as error:
        raise ToolError(f"--serve needs the package {error.name}: pip install xdsl-relax[serve]") from error
    print(f"http://127.0.0.1:{args.serve}/v1", file=sys.stderr, flush=True)
    server.serve(model, Path(args.file).stem, port=args.serve)


def _show(text: str) -> None:
    print(text, end="", flush=True)
