"""`relax-run`: runs a program on arrays from files or random arrays, and prints a summary of the results."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from tools.arguments import build_options
from tools.failures import ToolError, run_tool, with_traceback
from tools.programs import (
    BuildOptions,
    Program,
    load_program,
    load_python_files,
    memory_text,
    read_module,
    target_of,
)
from tools.run_arguments import command_line
from tools.values import (
    Arrays,
    NamedValue,
    as_argument,
    describe,
    leaves,
    literal,
    random_array,
    read_array,
    results_folder,
    write_results,
)

if TYPE_CHECKING:
    from lowering.tune import Report

Result = TypeVar("Result")


def _arguments(collected: Iterable[tuple[str, str]], seed: int) -> list[NamedValue]:
    import numpy as np

    rng = np.random.default_rng(seed)
    readers: dict[str, Callable[[str], object]] = {
        "--input": read_array,
        "--random": lambda text: random_array(text, rng),
        "--value": literal,
    }
    return [NamedValue(text, readers[kind](text)) for kind, text in collected]


def _call(function: Callable[..., Result], arguments: Sequence[object]) -> Result:
    try:
        return function(*arguments)
    except DiagnosticException:
        raise
    except Exception as error:
        lines = (f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ()))
        raise ToolError(with_traceback("\n".join(lines), error)) from error


def _run(argv: Sequence[str] | None) -> None:
    args = command_line(__doc__).parse_args(argv)
    if Path(args.file).suffix == ".gguf":
        from tools.generate import generate  # which needs what most programs do without

        generate(args)
        return
    if args.prompt is not None or args.ask is not None:
        raise ToolError(f"--prompt and --ask are for language models (.gguf), got {args.file}")
    mode = args.mode or ("bytecode" if args.profile else "native")
    load_python_files(args.load)
    inputs = _arguments(args.inputs or (), args.seed)
    options = replace(build_options(args, mode), trust=args.trust)
    if not options.shapes:
        options = replace(options, shapes=[_rank(value.value) for value in inputs])
    if args.tune:
        module = read_module(args.file, args.weights, options.shapes)
        if target_of(options) != target_of(replace(options, target=None)):
            raise ToolError("--tune measures on this machine, and cannot search for another one; leave out --target")
        _tune(module, args, options, [as_argument(value.value) for value in inputs])
    program = load_program(args.file, args.entry, options)
    if args.profile and program.profile is None:
        raise ToolError("only bytecode can be profiled; leave out --mode, or give an executable with bytecode")
    # what cannot be had is said before the program runs
    report = memory_text(args.file, args.weights, options.shapes) if args.report_memory else None
    folder = None if args.output_dir is None else results_folder(args.output_dir)
    outputs, arguments = _call_and_print(program, inputs, args)
    if report is not None:
        print(report)
    for path in [] if folder is None else write_results(outputs, folder):
        print(f"  wrote {path}")
    if args.profile and program.profile is not None:
        print(_call(program.profile, arguments).as_text())


def _call_and_print(
    program: Program, inputs: Sequence[NamedValue], args: argparse.Namespace
) -> tuple[list[NamedValue], list[object]]:
    """Calls the function and prints a line for each value; gives results, with arrays that it wrote, and arguments."""
    given = [describe(value.value) for value in inputs]
    arrays = Arrays([value.value for value in inputs])
    arguments = [as_argument(value.value) for value in inputs]
    outputs, seconds = _measure(program.call, arguments, args.repeat)
    outputs += arrays.written()
    print(f"@{args.entry}  {program.origin}")
    for index, (text, value) in enumerate(zip(given, inputs, strict=True)):
        print(f"  input {index}  {text}  ({value.source})")
    for value in outputs:
        print(f"  {value.source}  {describe(value.value)}")
    print(f"  time  {_timing(seconds)}")
    return outputs, arguments


def _rank(argument: object) -> list[None] | None:
    """The shape of a parameter that an array determines: its rank."""
    ndim = getattr(argument, "ndim", None)
    return None if ndim is None else [None] * ndim


def _tune(module: ModuleOp, args: argparse.Namespace, options: BuildOptions, arguments: Sequence[object]) -> None:
    from lowering.tune import tune
    from lowering.tune.location import default_path

    path = default_path()
    kept = "nowhere, as RELAX_TUNING is 0" if path is None else f"in {path}"

    def search(*given: object) -> Report:
        try:
            return tune(
                module,
                given,
                entry=args.entry,
                trials=args.tune,
                seed=args.seed,
                opt_level=options.opt_level,
                cache=options.cache,
            )
        except (OSError, ValueError) as error:
            raise ToolError(str(error)) from error

    try:
        report = _call(search, arguments)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; what the search has found until now is kept {kept}") from None
    print(report.as_text())
    if report.records:
        print(f"  kept {kept}")


def _measure(
    function: Callable[..., object], arguments: Sequence[object], repeat: int
) -> tuple[list[NamedValue], list[float]]:
    """The result of the last call, and the seconds that each call took."""
    seconds: list[float] = []
    result: object = None
    for _ in range(repeat):
        started = time.perf_counter()
        result = _call(function, arguments)
        seconds.append(time.perf_counter() - started)
    return list(leaves(result)), seconds


def _timing(seconds: Sequence[float]) -> str:
    microseconds = [1e6 * each for each in seconds]
    if len(microseconds) == 1:
        return f"{microseconds[0]:.1f} us"
    return (
        f"{min(microseconds):.1f} us at best, {statistics.median(microseconds):.1f} us in the middle, "
        f"{microseconds[0]:.1f} us the first of {len(microseconds)}"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; 0 on success, 1 after a diagnostic on stderr."""
    return run_tool("relax-run", lambda: _run(argv), own_process=argv is None)


if __name__ == "__main__":
    sys.exit(main())
