"""Command line arguments that several tools share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from xdsl_relax.cli.programs import BuildOptions


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--target`, `-O`, `--no-cache`, `--weights` and `--shape`."""
    group = parser.add_argument_group("compilation")
    group.add_argument(
        "--target",
        metavar="TARGET",
        action="append",
        type=_target_text,
        default=[],
        help="the target to compile for (default: this machine); given several times, code is made for each, and the "
        "best is chosen when it is loaded",
    )
    group.add_argument(
        "-O", dest="opt_level", type=int, choices=range(4), default=3, help="optimisation level (default: 3)"
    )
    group.add_argument("--no-cache", action="store_true", help="bypass the code cache")
    add_weights_option(parser)
    add_shape_option(parser)


def _target_text(text: str) -> str:
    """The text of a target; of several, an option is wanted for each."""
    name, *_ = text.split() or [""]
    if names := [each for each in re.split("[,;]", name) if each][1:]:
        several = " ".join(f"--target {each}" for each in (re.split("[,;]", name)[0], *names))
        raise argparse.ArgumentTypeError(f"expected one target, got {text}: {several}")
    return text


def add_load_option(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Adds `--load`."""
    parser.add_argument(
        "--load",
        action="append",
        default=[],
        metavar="FILE.py|MODULE",
        help=f"run a Python file, or import a module, first; it may {purpose}",
    )


def add_shape_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--shape`."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        dest="shapes",
        metavar="NAME=[n,4]",
        type=given_shape,
        help="the shape of an input of an ONNX model: numbers, symbols, and _ for what the model says",
    )


def given_shape(text: str) -> tuple[str, tuple[int | str | None, ...]]:
    """The name and the dimensions of `x=[n,4,_]`."""
    match = re.fullmatch(r"(?P<name>[^=]+)=\[(?P<dims>[\w\s,]*)\]", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"expected a name and a shape like x=[n,4,_], got {text}")
    words = [word.strip() for word in match["dims"].split(",")] if match["dims"].strip() else []
    if not all(word.isdecimal() or word.isidentifier() for word in words):
        raise argparse.ArgumentTypeError(f"expected numbers, names and _ as dimensions, got {text}")
    return match["name"], tuple(None if word == "_" else int(word) if word.isdecimal() else word for word in words)


def add_weights_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--weights`."""
    parser.add_argument(
        "--weights", metavar="FILE.safetensors", help="the file with the weights that the module refers to by name"
    )


def add_save_weights_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--save-weights`."""
    parser.add_argument(
        "--save-weights",
        metavar="FILE.safetensors",
        help="write the weights that the text refers to by name to this file",
    )


def build_options(args: argparse.Namespace, mode: str) -> BuildOptions:
    """The options that `add_build_options` has read; the mode is the tool's."""
    targets: Sequence[str] = args.target
    return BuildOptions(
        mode,
        targets[0] if targets else None,
        args.opt_level,
        not args.no_cache,
        args.weights,
        dict(args.shapes),
        targets=tuple(targets) if len(targets) > 1 else (),
    )
