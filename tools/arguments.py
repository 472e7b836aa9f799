"""Command line arguments that several tools share."""

from __future__ import annotations

import argparse

from tools.programs import BuildOptions


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """Adds `--target`, `-O`, `--no-cache` and `--weights`."""
    group = parser.add_argument_group("compilation")
    group.add_argument("--target", metavar="TARGET", help="the machine to compile for (default: this one)")
    group.add_argument(
        "-O", dest="opt_level", type=int, choices=range(4), default=3, help="optimisation level (default: 3)"
    )
    group.add_argument("--no-cache", action="store_true", help="compile again what the cache holds")
    add_weights_option(parser)


def add_weights_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--weights`."""
    parser.add_argument(
        "--weights", metavar="FILE.safetensors", help="the elements of the constants that the module has by name only"
    )


def add_save_weights_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--save-weights`."""
    parser.add_argument(
        "--save-weights",
        metavar="FILE.safetensors",
        help="write the elements of the constants that the text has by name only",
    )


def build_options(args: argparse.Namespace, mode: str) -> BuildOptions:
    """The options that `add_build_options` has read; the mode is the tool's."""
    return BuildOptions(mode, args.target, args.opt_level, not args.no_cache, args.weights)
