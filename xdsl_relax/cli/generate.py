"""Text from a language model, for `relax-run`."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from lowering.generation.language_model import Generation, LanguageModel
from lowering.generation.sampling import Sampling
from xdsl_relax.cli.failures import ToolError, with_traceback


def generate(args: argparse.Namespace) -> None:
    """Continues a prompt or answers a question, and prints the text as it comes, then how fast it came; or serves."""
    given: str | None = args.prompt if args.ask is None else args.ask
    if given is None and args.serve is None:
        raise ToolError("a language model expected --prompt TEXT, --ask TEXT or --serve PORT")
    try:
        sampling = Sampling(
            args.temperature, args.top_k, args.top_p, args.min_p, args.repetition_penalty, seed=args.seed
        )
        model = LanguageModel.load(args.file, context=args.context, cache=not args.no_cache)
        if given is None:
            _serve(model, args)
            return
        prompt = given if args.ask is None else model.tokenizer.chat([{"role": "user", "content": given}])
        made: Generation = model.generate(
            prompt, max_tokens=args.max_tokens, sampling=sampling, stop=args.stop, show=_show
        )
    except (ValueError, OSError) as error:
        raise ToolError(with_traceback(str(error), error)) from error
    print()
    print(made.summary(), file=sys.stderr)


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
