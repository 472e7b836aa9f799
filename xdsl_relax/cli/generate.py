"""Text from a language model, for `relax-run`."""

from __future__ import annotations

import argparse
import sys

from lowering.generation.language_model import Generation, LanguageModel
from lowering.generation.sampling import Sampling
from xdsl_relax.cli.failures import ToolError, with_traceback


def generate(args: argparse.Namespace) -> None:
    """Continues a prompt, or answers a question, and prints the text as it comes, then how fast it came."""
    given: str | None = args.prompt if args.ask is None else args.ask
    if given is None:
        raise ToolError("a language model (.gguf) expected --prompt TEXT or --ask TEXT")
    try:
        sampling = Sampling(args.temperature, args.top_k, args.top_p, args.seed)
        model = LanguageModel.load(args.file, context=args.context, cache=not args.no_cache)
        prompt = given if args.ask is None else model.tokenizer.chat([{"role": "user", "content": given}])
        made: Generation = model.generate(
            prompt, max_tokens=args.max_tokens, sampling=sampling, stop=args.stop, show=_show
        )
    except (ValueError, OSError) as error:
        raise ToolError(with_traceback(str(error), error)) from error
    print()
    print(made.summary(), file=sys.stderr)


def _show(text: str) -> None:
    print(text, end="", flush=True)
