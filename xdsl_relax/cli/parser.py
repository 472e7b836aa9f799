"""What the parsers of all command lines have in common: shared arguments, near misses are named, the version is ours,
and help on passes and dialects comes from their docstrings.
"""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from typing_extensions import override
from xdsl.passes import ModulePass, get_pass_option_infos

from lowering.registry import available_passes, dialect_factories, pass_factories
from tir_dialect.extensions import load_extensions
from xdsl_relax.cli.programs import BuildOptions
from xdsl_relax.errors import unknown_pass


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


Listing = tuple[str, Sequence[tuple[str, str]]]
"""A section at the end of the help: its title, and names with what they mean, one a line."""

Completer = Callable[[str], Iterable[str]]
"""The words that begin so."""


class ToolParser(argparse.ArgumentParser):
    """The parser of a command line."""

    def __init__(self, tool: str, description: str | None, listings: Sequence[Callable[[], Listing]] = ()):
        """`listings` are made when help is wanted; an option of the same name as one before takes its place."""
        super().__init__(prog=tool, description=description, conflict_handler="resolve")
        self._listings = listings
        self.completers: dict[str, Completer] = {}
        """What completes the values of options, by where they are kept."""

    def read(self, argv: Sequence[str] | None) -> argparse.Namespace:
        """The arguments; a shell that wants completions gets them instead, and the process ends."""
        self.add_argument(
            "-v", "--version", action=_Version, nargs=0, help="say the versions of xdsl-relax and of xDSL, and stop"
        )
        if "_ARGCOMPLETE" in os.environ:
            self._complete()
        return self.parse_args(argv)

    def given(self, args: argparse.Namespace, *groups: str) -> list[str]:
        """The options of these groups, by their titles, that the command line has given another value than they have
        by default; those that are kept together as one, `--input/--random`.
        """
        actions = [each for group in self._action_groups if group.title in groups for each in group._group_actions]
        found = dict[str, list[str]]()
        for each in actions:
            if each.option_strings and getattr(args, each.dest) != each.default:
                found.setdefault(each.dest, []).append(each.option_strings[-1])
        return ["/".join(names) for names in found.values()]

    def _complete(self) -> None:
        import argcomplete
        from argcomplete.completers import FilesCompleter

        completers = self.completers

        class Values(FilesCompleter):
            """Of an option: what completes it, or files."""

            def __call__(self, prefix: str, **given: Any) -> list[str]:
                completer = completers.get(given["action"].dest)
                return super().__call__(prefix, **given) if completer is None else list(completer(prefix))

        argcomplete.autocomplete(self, default_completer=Values())

    @override
    def format_help(self) -> str:
        """The options, then the listings."""
        return "\n".join((super().format_help(), *(listing_text(make()) for make in self._listings)))

    @override
    def error(self, message: str) -> NoReturn:
        """Says what is wrong in a line, and in another one what was meant."""
        print(f"{self.prog}: error: {message}", f"hint: {self._hint(message)}", sep="\n", file=sys.stderr)
        sys.exit(2)

    def _hint(self, message: str) -> str:
        from difflib import get_close_matches

        known: Iterable[str] = self._option_string_actions
        wrong = [word.partition("=")[0] for word in re.findall(r"(?:^|\s)(--?\w[^\s,]*)", message)]
        if (choice := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)) is not None:
            wrong, known = [choice[1]], re.findall(r"[\w-]+", choice[2])
        elif not message.startswith("unrecognized arguments"):
            return "--help lists the options"
        else:
            if passes := [word[2:] for word in wrong if word[2:] in available_passes()]:
                return f"passes are named by -p: -p {','.join(passes)}"
            if "--input" in known and (arrays := re.findall(r"(?<!\S)\S+\.np[yz]\b", message)):
                return f"files with arguments are named by --input: --input {arrays[0]}"
        close = dict.fromkeys(match for word in wrong for match in get_close_matches(word, list(known), n=2))
        return f"did you mean {' or '.join(close)}?" if close else "--help lists the options"


class _Version(argparse.Action):
    @override
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        from importlib.metadata import version

        from xdsl_relax.version import VERSION

        print(f"xdsl-relax {VERSION} (xdsl {version('xdsl')}, llvmlite {version('llvmlite')})")
        parser.exit()


def listing_text(listing: Listing) -> str:
    """A title, if there is one, and a line for each name."""
    title, rows = listing
    width = max((len(name) for name, _ in rows), default=0)
    lines = [f"  {name:{width}}  {what}".rstrip() for name, what in rows]
    return "\n".join((*([f"{title}:"] if title else ()), *lines, ""))


def comma_separated(words: Callable[[], Iterable[str]]) -> Completer:
    """Completes the last word of a list like `legalize-ops,fu`."""

    def complete(prefix: str) -> Iterable[str]:
        before, comma, last = prefix.rpartition(",")
        return [f"{before}{comma}{word}" for word in words() if word.startswith(last)]

    return complete


# `get_pass_option_infos` gives postponed annotations as the repr of their text.
QUOTE = "'"


def our_passes() -> Listing:
    """Our passes and those of extensions, with the first line of their docstrings."""
    load_extensions()
    rows = [
        (name, (_documentation(make()).splitlines() or [""])[0])
        for name, make in sorted(pass_factories(former=False).items())
    ]
    return "passes", rows


def other_passes(available: Iterable[str]) -> Listing:
    """The passes of xDSL and other packages, which are not loaded for their names."""
    ours = pass_factories()
    return "passes of xDSL", [(name, "") for name in sorted(available) if name not in ours]


def dialects(available: Iterable[str]) -> tuple[Listing, Listing]:
    """Our dialects and those of extensions with their ops, then those of xDSL."""
    load_extensions()
    ours = dialect_factories()
    rows = [(name, f"{len(list(make().operations))} ops") for name, make in ours.items()]
    return ("dialects", rows), ("dialects of xDSL", [(name, "") for name in sorted(available) if name not in ours])


def describe_pass(name: str) -> str:
    """The docstring and the options of a pass; `PassError` if there is none of this name."""
    load_extensions()
    passes = pass_factories()
    if name not in passes:
        raise unknown_pass(name, list(passes))
    cls = passes[name]()
    options = [
        f"  {option.name.replace('_', '-')}: {option.expected_type.strip(QUOTE)}"
        f"{'' if option.default_value is None else f', {option.default_value} by default'}"
        for option in get_pass_option_infos(cls)
    ]
    return "\n".join((f"{name}\n", _documentation(cls), *(("\nOptions:", *options) if options else ())))


def _documentation(cls: type[ModulePass]) -> str:
    return inspect.getdoc(cls) or ""
