"""`relax-run`: runs a program on arrays from files or random arrays, and prints a summary of the results."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import DiagnosticException

from vm_dialect.process import checked_affinity, checked_threads
from xdsl_relax.cli.diagnostics import ToolError, run_tool, with_traceback
from xdsl_relax.cli.parser import build_options
from xdsl_relax.cli.programs import (
    BuildOptions,
    Program,
    build_executable,
    entry_of,
    load_executable,
    load_program,
    load_python_files,
    main_entry,
    memory_text,
    parameters_of,
    read_module,
    require_source,
    signatures_text,
    target_of,
)
from xdsl_relax.cli.run_arguments import ARGUMENTS, GENERATION, REPORTS, command_line
from xdsl_relax.cli.values import (
    Arrays,
    NamedValue,
    Signature,
    as_argument,
    describe,
    in_order,
    leaves,
    literal,
    named,
    random_array,
    read_archive,
    read_array,
    results_folder,
    signature_of,
    value_text,
    write_output,
    write_results,
)
from xdsl_relax.file_kinds import KINDS, kind_of

if TYPE_CHECKING:
    from numpy.random import Generator

    from lowering.tune import Report
    from relax_dialect.frontend.onnx.parameters import GivenShapes
    from vm_dialect.callee import Callee
    from vm_dialect.executable import Executable
    from vm_dialect.profiler import Profile

Result = TypeVar("Result")


def _call(function: Callable[..., Result], arguments: Sequence[object]) -> Result:
    try:
        return function(*arguments)
    except DiagnosticException:
        raise
    except Exception as error:
        lines = (f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ()))
        raise ToolError(with_traceback("\n".join(lines), error)) from error


def _set_threads(args: Any) -> None:
    """Options of threads count for all that this process runs; libraries look the variables up themselves."""
    option = "--threads"
    try:
        if args.threads is not None:
            os.environ["RELAX_NUM_THREADS"] = str(checked_threads(args.threads))
        option = "--affinity"
        if args.affinity is not None:
            os.environ["RELAX_AFFINITY"] = checked_affinity(args.affinity)
    except ValueError as error:
        raise ToolError(f"{option}: {error}") from error
    if args.wait_policy is not None:
        os.environ["RELAX_WAIT_POLICY"] = args.wait_policy


def _run(argv: Sequence[str] | None) -> None:
    parser = command_line(__doc__)
    args = parser.read(argv)
    _set_threads(args)
    if args.signature:
        load_python_files(args.load)
        print(signatures_text(args.file, replace(build_options(args, "native"), trust=args.trust)))
        return
    if args.warm_up and (args.no_cache or args.mode == "interpret" or _is_profiled(args) or args.mesh is not None):
        raise ToolError("--warm-up goes with none of --no-cache, --mode interpret, --mesh and reports of a run")
    if args.timeout is not None and args.mesh is None:
        raise ToolError("--timeout says how long the workers of --mesh wait")
    if Path(args.file).suffix == ".gguf" or Path(args.file, "config.json").is_file():
        if ignored := parser.given(args, ARGUMENTS, REPORTS):
            raise ToolError(f"{args.file} is a language model, which goes with none of {', '.join(ignored)}")
        from xdsl_relax.cli.generate import generate  # which needs what most programs do without

        generate(args)
        return
    if ignored := parser.given(args, GENERATION):
        raise ToolError(f"options of language models (.gguf) are given for {args.file}: {', '.join(ignored)}")
    if args.tune_on_ranks:
        _tune_on_ranks(args)
        return
    if args.mesh is None:
        _run_program(args)
        return
    from xdsl_relax.cli.workers import run_together  # needs MPI

    if _is_profiled(args) or args.report_memory or args.tune or args.check or args.bisect or args.debug:
        raise ToolError("--mesh goes with none of --profile, --report-memory, --tune, --check, --bisect and --debug")
    run_together(lambda: _run_program(args))


def _arguments(
    inputs: _Inputs, entry: str, signature: Signature | None, parameters: Sequence[str] | None
) -> Sequence[NamedValue]:
    """The arguments of a call, in order; `ToolError` if there are none, and the function takes some."""
    given = inputs.all(entry, signature)
    if not given and parameters:
        hint = "hint: --random makes up arguments, --input FILE.npy reads one, --value 3 is one"
        raise ToolError(f"@{entry} takes arguments ({', '.join(parameters)}), and none are given\n{hint}")
    return in_order(given, parameters, entry)


def _check_results(args: argparse.Namespace) -> None:
    """`ToolError` for files of results that could not be written after the run."""
    if args.output is not None and not args.output.endswith((".npz", ".npy")):
        raise ToolError(f"expected --output to end in .npz or .npy, got {args.output}")
    for path in (args.output, args.profile_json, args.flame_graph, args.trace):
        if path is not None and not (folder := Path(path).parent).is_dir():
            raise ToolError(f"cannot write {path}: there is no folder {folder}")
        if path is not None and Path(path).is_dir():
            raise ToolError(f"cannot write {path}: it is a folder")


def _tune_on_ranks(args: argparse.Namespace) -> None:
    """Runs the program on rank 0, for which the other ranks search."""
    if not args.tune:
        raise ToolError("--tune-on-ranks says where --tune N searches")
    from xdsl_relax.cli.workers import run_together, serve  # needs MPI

    if not serve():
        run_together(lambda: _run_program(args))


def _run_program(args: argparse.Namespace) -> None:
    _check_results(args)
    load_python_files(args.load)
    inputs = _Inputs.of(args)
    options = replace(build_options(args, args.mode or "native"), trust=args.trust, instrument=_is_profiled(args))
    if not options.shapes and inputs.given and kind_of(args.file) is KINDS[".onnx"]:
        options = replace(options, shapes=_ranks(inputs.given))
    if args.tune:
        inputs = _tune(inputs, args, options)
    if args.check or args.bisect:
        _compare(args, options, inputs)
        return
    if args.debug:
        _debug(args, replace(options, mode="bytecode"), inputs)
        return
    if args.warm_up:
        print(load_program(args.file, args.entry, options).origin)
        return
    if args.mesh is None:
        program = load_program(args.file, args.entry, options)
    else:
        from xdsl_relax.cli.workers import load_sharded

        program = load_sharded(args.file, args.entry, options, args.mesh, args.timeout)
    args.entry = program.entry
    arguments = _arguments(inputs, program.entry, program.signature, program.parameters)
    if _is_profiled(args) and program.profile is None:
        raise ToolError(
            "only bytecode, and native code that is built for it, can be profiled: give the module, in the mode native "
            "or bytecode, or an executable with bytecode"
        )
    # what cannot be had is said before the program runs
    report = memory_text(args.file, args.weights, options.shapes) if args.report_memory else None
    folder = None if args.output_dir is None else results_folder(args.output_dir)
    outputs, values = _call_and_print(program, arguments, inputs, args)
    if report is not None:
        print(report)
    for path in [] if args.output is None else [write_output(outputs, args.output)]:
        print(f"  wrote {path}")
    for path in [] if folder is None else write_results(outputs, folder):
        print(f"  wrote {path}")
    if _is_profiled(args) and program.profile is not None:
        _profile(program.profile, values, args)


def _compare(args: argparse.Namespace, options: BuildOptions, inputs: _Inputs) -> None:
    """`--check` and `--bisect`."""
    from lowering.compiler.comparison import bisect, check
    from lowering.pipelines import RelaxToLLVMPass, RelaxToLLVMPlainPass, for_target
    from lowering.verify import verify_module
    from relax_dialect.ops.structure import FuncOp

    require_source(args.file, "--check" if args.check else "--bisect")
    module = read_module(args.file, args.weights, options.shapes)
    verify_module(module)
    entry = args.entry = entry_of(module, args.entry)
    parameters = parameters_of(module, entry)
    if parameters is None:
        names = [op.sym_name.data for op in module.ops if isinstance(op, FuncOp) and not op.is_private]
        raise ToolError(f"expected --entry to be one of {', '.join(names) or 'none'}, got {entry}")
    signature = None if inputs.dims is None else signature_of(module, entry)
    arguments = [value.value for value in _arguments(inputs, entry, signature, parameters)]

    def compiled(module: ModuleOp, mode: str, weights: Mapping[str, Any]) -> Executable:
        return build_executable(module, replace(options, mode=mode, cache=False))

    is_wrong = False
    try:
        if args.check:
            checked = check(module, args.entry, arguments, compiled, {})
            print(checked.as_text())
            is_wrong = checked.first is not None or checked.result is not None
        if args.bisect:
            pipeline = RelaxToLLVMPass if options.opt_level else RelaxToLLVMPlainPass
            passes = [for_target(each, target_of(options)) for each in pipeline.passes()]
            found = bisect(module, args.entry, arguments, compiled, {}, passes)
            print(found.as_text())
            is_wrong = is_wrong or found.name is not None
    except ValueError as error:
        raise ToolError(str(error)) from error
    if is_wrong:
        raise ToolError("the program computes something else than it means")


def _debug(args: argparse.Namespace, options: BuildOptions, inputs: _Inputs) -> None:
    from vm_dialect import VirtualMachine
    from vm_dialect.debugger import Debugger
    from xdsl_relax.cli.values import Signature

    executable = load_executable(args.file, options)
    entry = args.entry = main_entry(executable.entries) if args.entry is None else args.entry
    info = executable.function_index.get(entry)
    parameters = None if info is None else executable.functions[info].parameters
    signature = None if info is None else Signature.of_compiled(cast("Callee", VirtualMachine(executable)[entry]))
    arguments = [as_argument(value.value) for value in _arguments(inputs, entry, signature, parameters)]
    try:
        Debugger(executable, args.entry, arguments).cmdloop()
    except (KeyError, ValueError, TypeError) as error:
        raise ToolError(str(error.args[0]) if error.args else str(error)) from error


def _is_profiled(args: argparse.Namespace) -> bool:
    return bool(args.profile or args.profile_json or args.flame_graph or args.trace)


def _profile(profile: Callable[..., Profile], arguments: Sequence[object], args: argparse.Namespace) -> None:
    from lowering.compiler.peaks import machine_peaks

    peaks = machine_peaks()
    found = _call(lambda *given: profile(*given, peaks=peaks), arguments)
    if args.profile:
        print(found.as_text())
    files = (args.profile_json, found.as_json), (args.flame_graph, found.as_html), (args.trace, found.as_trace)
    for path, text in files:
        if path is not None:
            Path(path).write_text(text() + "\n", encoding="utf-8")
            print(f"  wrote {path}")


@dataclass(frozen=True)
class _Inputs:
    """The arguments that the command line has, and how to make up the others."""

    given: Sequence[NamedValue]
    rng: Generator
    dims: Mapping[str, int] | None = None
    """The sizes of symbols in arguments that are made up; `None` if none are to be."""

    @staticmethod
    def of(args: argparse.Namespace) -> _Inputs:
        import numpy as np

        rng = np.random.default_rng(args.seed)
        collected: Sequence[tuple[str, str]] = args.inputs or ()
        readers: dict[str, Callable[[str], object]] = {
            "--input": read_array,
            "--random": lambda text: random_array(text, rng),
            "--value": literal,
        }
        given: list[NamedValue] = []
        for kind, text in collected:
            if not text:
                continue  # --random alone
            parameter, rest = named(text)
            if kind == "--input" and parameter is None and rest.endswith(".npz"):
                given += read_archive(rest)
                continue
            given.append(NamedValue(rest, readers[kind](rest), parameter))
        if ("--random", "") in collected:
            return _Inputs(given, rng, dict(pair for each in args.dims for pair in each))
        if args.dims:
            raise ToolError("--dim is for arrays that are made up: add --random without a specification")
        return _Inputs(given, rng)

    def all(self, entry: str, signature: Signature | None) -> Sequence[NamedValue]:
        """The arguments, with random ones for parameters that have none if that is wanted."""
        if self.dims is None:
            return self.given
        if signature is None:
            raise ToolError(f"@{entry} does not say what its arguments are; give them, --random 'f32[3,4]'")
        return signature.completed(self.given, self.dims, self.rng)

    def with_sizes(self, error: ToolError, signature: Signature | None) -> ToolError:
        """An error of a call, with the sizes of arguments that are made up: they may be what it is about."""
        if self.dims is None or signature is None or not signature.symbols:
            return error
        sizes = ",".join(f"{name}={size}" for name, size in signature.sizes(self.dims).items())
        return ToolError(f"{error}\nhint: the sizes of what --random makes up are --dim {sizes}, which can be changed")


def _call_and_print(
    program: Program, values: Sequence[NamedValue], inputs: _Inputs, args: argparse.Namespace
) -> tuple[list[NamedValue], list[object]]:
    """Calls the function and prints a line for each value; gives results, with arrays that it wrote, and arguments."""
    given = [describe(value.value) for value in values]
    arrays = Arrays([value.value for value in values])
    arguments = [as_argument(value.value) for value in values]
    try:
        outputs, seconds = _measure(program, arguments, args.repeat)
    except ToolError as error:
        raise inputs.with_sizes(error, program.signature) from error
    outputs += arrays.written()
    print(f"@{args.entry}  {program.origin}")
    for index, (text, value) in enumerate(zip(given, values, strict=True)):
        name = "" if value.parameter is None else f" {value.parameter}"
        print(f"  input {index}{name}  {text}  ({value.source})")
    for value in outputs:
        print(f"  {value.source}  {describe(value.value)}")
        if args.print:
            print(value_text(value.value))
    print(f"  time  {_timing(seconds)}")
    return outputs, arguments


def _ranks(inputs: Sequence[NamedValue]) -> GivenShapes:
    """What arrays say of the shapes of parameters: their ranks, by name if all are given so."""
    ranks = [None if (ndim := getattr(value.value, "ndim", None)) is None else [None] * ndim for value in inputs]
    names = [value.parameter for value in inputs]
    if all(name is not None for name in names) and names:
        return {name: rank for name, rank in zip(names, ranks, strict=True) if name is not None and rank is not None}
    return [] if any(name is not None for name in names) else ranks


def _tune(inputs: _Inputs, args: argparse.Namespace, options: BuildOptions) -> _Inputs:
    """Searches for schedules of the kernels; gives the arguments, of which none has to be made up any more."""
    module = read_module(args.file, args.weights, options.shapes)
    if target_of(options) != target_of(replace(options, target=None)):
        raise ToolError("--tune measures on this machine, and cannot search for another one; leave out --target")
    args.entry = entry_of(module, args.entry)
    given = inputs.all(args.entry, None if inputs.dims is None else signature_of(module, args.entry))
    ordered = in_order(given, parameters_of(module, args.entry), args.entry)
    _search(module, args, options, [as_argument(value.value) for value in ordered])
    return _Inputs(given, inputs.rng)


def _search(module: ModuleOp, args: argparse.Namespace, options: BuildOptions, arguments: Sequence[object]) -> None:
    from lowering.compiler.tuning_file import default_path
    from lowering.tune import tune

    ranks: AbstractContextManager[Executor | None] = nullcontext()
    if args.tune_on_ranks:
        from xdsl_relax.cli.workers import pool_of_ranks  # needs MPI

        ranks = pool_of_ranks()

    path = default_path()
    kept = "nowhere, as RELAX_TUNING is 0" if path is None else f"in {path}"

    def search(*given: object) -> Report:
        try:
            with ranks as pool:
                return tune(
                    module,
                    given,
                    entry=args.entry,
                    trials=args.tune,
                    seed=args.seed,
                    opt_level=options.opt_level,
                    cache=options.cache,
                    pool=pool,
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


def _measure(program: Program, arguments: Sequence[object], repeat: int) -> tuple[list[NamedValue], list[float]]:
    """The result of the last call, and the seconds that each call took."""
    seconds: list[float] = []
    result: object = None
    for _ in range(repeat):
        started = time.perf_counter()
        result = _call(program.call, arguments)
        seconds.append(time.perf_counter() - started)
    return list(leaves(result, program.result_names)), seconds


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
