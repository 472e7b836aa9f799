"""The parser of the command line of `relax-run`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tir_dialect.target import ACTIVATION_BITS
from vm_dialect.process import WAITING
from xdsl_relax.cli.parser import ToolParser, add_build_options, add_load_option
from xdsl_relax.cli.programs import MODES
from xdsl_relax.cli.values import given_dims
from xdsl_relax.file_kinds import KINDS

GENERATION = "text from a language model (.gguf, or a folder of Hugging Face)"
ARGUMENTS = "arguments of the function, in order, or by name (x=x.npy)"
REPORTS = "results and reports"
"""The titles of groups of options."""


def command_line(description: str | None) -> ToolParser:
    """The parser of the command line of `relax-run`."""
    parser = ToolParser("relax-run", description)
    kinds = ", ".join(f"{kind.what} ({kind.suffix})" for kind in KINDS.values())
    parser.add_argument("file", help=f"{kinds}; - for stdin")
    parser.add_argument("--entry", help="the function to call (default: main, or the only one)")
    parser.add_argument(
        "--signature", action="store_true", help="say what the functions take and give, and do not run any"
    )
    parser.add_argument(
        "--warm-up",
        action="store_true",
        help="compile the program into the cache, from where later processes start it at once, and do not run it",
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        help="native code (default), the bytecode machine, or the NumPy semantics of the relax level itself",
    )
    parser.add_argument(
        "--trust",
        action="store_true",
        help="run an executable (.rvm) with machine code that you have not made yourself, as you would run a program",
    )
    parser.add_argument(
        "--threads",
        type=_positive,
        metavar="N",
        help="threads of parallel loops, 1 to 256 (default: RELAX_NUM_THREADS, or one for each processor)",
    )
    parser.add_argument(
        "--affinity",
        metavar="CPUS",
        help="bind threads to processors, 0,2,4-7: the first is for the caller (default: RELAX_AFFINITY, or free)",
    )
    parser.add_argument(
        "--wait-policy",
        choices=WAITING,
        help="threads that wait sleep at once, or stay awake (default: RELAX_WAIT_POLICY, or awake for a short time)",
    )
    parser.add_argument(
        "--mesh",
        metavar="SIZES",
        help="run a sharded program on the processes that mpiexec has started: 4, or x=2,y=2",
    )
    parser.add_argument(
        "--timeout", type=_seconds, metavar="SECONDS", help="with --mesh, how long workers wait for each other"
    )
    _add_inputs(parser)
    parser.add_argument(
        "--seed", type=_not_negative, default=0, help="of random arrays, --tune and --temperature (default: 0)"
    )
    add_load_option(parser, "register packed functions, dialects, passes, converters and rules of operators")
    _add_reports(parser)
    _add_generation(parser)
    add_build_options(parser)
    return parser


def _add_generation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(GENERATION)
    text = group.add_mutually_exclusive_group()
    text.add_argument("--prompt", metavar="TEXT", help="the text to continue")
    text.add_argument("--ask", metavar="TEXT", help="a question, in the words of the model's template for chats")
    text.add_argument("--chat", action="store_true", help="answer line after line of the standard input")
    text.add_argument(
        "--serve", type=_positive, metavar="PORT", help="answer OpenAI's clients on a port of this machine"
    )
    group.add_argument("--system", metavar="TEXT", help="what the model is told before --ask and --chat")
    group.add_argument("--max-tokens", type=_positive, default=128, metavar="N", help="at most so many (default: 128)")
    group.add_argument("--context", type=_positive, metavar="N", help="room for so many tokens, the prompt included")
    group.add_argument(
        "--sequences", type=_positive, default=8, metavar="N", help="with --serve, texts at once (default: 8)"
    )
    group.add_argument(
        "--cache-format",
        choices=("f16", "f32", "q8_0"),
        default="f32",
        help="how keys and values are stored (default: f32)",
    )
    group.add_argument(
        "--weight-format", metavar="FORMAT", help="pack the matrices of a folder into blocks, such as q8_0 or q4_k"
    )
    group.add_argument(
        "--activation-bits",
        type=int,
        choices=ACTIVATION_BITS[1:],
        help="round what is multiplied with packed weights: 8 and 16 are faster, 24 is as near as f32 (the default "
        "where the processor has dot products of bytes; 16 with AVX2), 32 rounds nothing",
    )
    group.add_argument(
        "--temperature", type=float, default=0.0, metavar="T", help="draw by probability (default: 0, the likeliest)"
    )
    group.add_argument("--top-k", type=_not_negative, default=0, metavar="K", help="of the K likeliest only")
    group.add_argument(
        "--top-p", type=float, default=1.0, metavar="P", help="of the likeliest of this probability only"
    )
    group.add_argument(
        "--min-p",
        type=float,
        default=0.0,
        metavar="P",
        help="of this share of the greatest probability only",
    )
    group.add_argument(
        "--repetition-penalty", type=float, default=1.0, metavar="R", help="make tokens that are there less likely"
    )
    group.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before this text")


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    inputs = parser.add_argument_group(ARGUMENTS)
    inputs.add_argument(
        "--input",
        action=_InOrder,
        dest="inputs",
        nargs="+",
        metavar="[NAME=]X.npy",
        help="arrays from files, and all of an archive, X.npz, by their names, or one, X.npz:KEY; "
        "X.npy:f8E4M3FN says of which type the elements are",
    )
    inputs.add_argument(
        "--random",
        action=_InOrder,
        dest="inputs",
        nargs="*",
        metavar="[NAME=]SPEC",
        help='random arrays: "f32[3,4]", "i64[8]<100"; alone, for each parameter that has no value',
    )
    inputs.add_argument(
        "--dim",
        action="append",
        default=[],
        dest="dims",
        type=given_dims,
        metavar="SYMBOL=N[,..]",
        help="the sizes of symbols in arrays of --random alone (default: 4, or what their bounds allow)",
    )
    inputs.add_argument(
        "--value",
        action=_InOrder,
        dest="inputs",
        nargs="+",
        metavar="[NAME=]VALUE",
        help='3, 2.5, (1, 2), [4, 8] (a shape), "text"',
    )


def _add_reports(container: argparse.ArgumentParser) -> None:
    parser = container.add_argument_group(REPORTS)
    parser.add_argument("--print", action="store_true", help="print the values of the results")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the result to a file: arrays by name (.npz), or one (.npy)"
    )
    parser.add_argument("--output-dir", metavar="DIR", help="write each tensor of the result to a .npy file here")
    parser.add_argument(
        "--repeat", type=_positive, default=1, metavar="N", help="call N times and show the time of a call"
    )
    parser.add_argument(
        "--tune",
        type=_positive,
        default=0,
        metavar="N",
        help="first try N schedules for every kernel on these arguments, and remember the fastest for this machine",
    )
    parser.add_argument(
        "--tune-on-ranks",
        action="store_true",
        help="with --tune, the processes that mpiexec has started search for one kernel each; rank 0 runs the program",
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="call once more and show where the time went, by kernel and by layer of the model",
    )
    parser.add_argument("--profile-json", metavar="FILE", help="write that as JSON")
    parser.add_argument(
        "--flame-graph", metavar="FILE", help="write it as a page with a flame graph of the layers and their kernels"
    )
    parser.add_argument(
        "--trace", metavar="FILE", help="write the calls in time as JSON for Perfetto, speedscope or chrome://tracing"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare native code with the interpreter, value by value, and name the first that differs",
    )
    parser.add_argument(
        "--bisect", action="store_true", help="name the first pass of the compiler that changes the result"
    )
    parser.add_argument(
        "--debug",
        action="store_true",
        help="run bytecode step by step: breakpoints, registers, calls",
    )
    parser.add_argument(
        "--report-memory", action="store_true", help="say how much memory each function takes, planned and naive"
    )


class _InOrder(argparse.Action):
    """Collects arguments of several kinds in one list, in the order of the command line."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        given = [values] if isinstance(values, str) else list(values or ("",))
        collected: list[tuple[str, str]] = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, collected + [(self.option_strings[0], str(value)) for value in given])


def _not_negative(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"expected a number of at least 0, got {text}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, got {text}")
    return found


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a positive number, got {text}")
    return int(text)
