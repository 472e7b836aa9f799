"""`relax-translate`: from a module to what other programs read (LLVM IR, assembly, objects, libraries, executables),
and from ONNX, PyTorch or TVMScript to a module. What to make is said by the suffix: `model.onnx -o model.so`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowering.compiler.tuning_file import nothing_is_tuned
from lowering.verify import verify_module
from xdsl_relax.cli.diagnostics import ToolError, run_tool
from xdsl_relax.cli.parser import ToolParser, add_build_options, add_load_option, add_save_weights_option, build_options
from xdsl_relax.cli.programs import (
    BuildOptions,
    build_executable,
    load_python_files,
    load_weights_into,
    target_of,
)
from xdsl_relax.file_kinds import STDIN, Holds, ReadOptions, read_module, suffixes

if TYPE_CHECKING:
    from vm_dialect import Executable

Emitter = Callable[[ModuleOp, BuildOptions], str | bytes]


def _lowered(module: ModuleOp, options: BuildOptions) -> ModuleOp:
    """The module after the pipeline that builds of this level run: functions of the machine, kernels and entries in one
    llvm module.
    """
    from lowering.context import make_context
    from lowering.pipelines import RelaxToLLVMPass, RelaxToLLVMPlainPass

    verify_module(module)
    ctx = make_context()
    pipeline = RelaxToLLVMPass if options.opt_level else RelaxToLLVMPlainPass
    for each in pipeline.passes():
        _for_target(each, options).apply(ctx, module)
    return module


def _for_target(each: ModulePass, options: BuildOptions) -> ModulePass:
    """The same pass as builds run it: for the machine of the options, with what tuning has found."""
    from lowering.kernels.schedule_cpu import ScheduleCPUPass
    from lowering.pipelines import for_target
    from lowering.tir_to_llvm.convert_tir_to_llvm import ConvertTIRToLLVMPass
    from lowering.tir_to_llvm.emitter import LoweringOptions

    match each:
        case ScheduleCPUPass() if nothing_is_tuned():
            return replace(each, target=options.target or "")
        case ScheduleCPUPass():
            from lowering.tune.tuner import ScheduleTunedPass

            return ScheduleTunedPass(options.target or "")
        case ConvertTIRToLLVMPass():
            lowering = LoweringOptions.of(target_of(options))
            extensions = tuple(sorted(lowering.extensions))
            return replace(each, vector_bits=lowering.vector_bits, streams=lowering.streams, extensions=extensions)
        case _:
            return for_target(each, target_of(options))


def _mlir_to_llvmir(module: ModuleOp, options: BuildOptions) -> str:
    from lowering.llvm.llvm_text import llvm_text

    verify_module(module)
    return llvm_text(module)


def _llvmir(module: ModuleOp, options: BuildOptions) -> str:
    from lowering.llvm.compiler import CompileOptions, emit_llvm_ir

    return emit_llvm_ir(_lowered(module, options), target_of(options), CompileOptions(options.opt_level))


def _assembly(module: ModuleOp, options: BuildOptions) -> str:
    from lowering.llvm.compiler import CompileOptions, emit_assembly

    return emit_assembly(_lowered(module, options), target_of(options), CompileOptions(options.opt_level))


def _object(module: ModuleOp, options: BuildOptions) -> bytes:
    from lowering.llvm.compiler import CompileOptions, compile_object

    return compile_object(_lowered(module, options), target_of(options), CompileOptions(options.opt_level))


def _listing(module: ModuleOp, options: BuildOptions) -> str:
    return build_executable(module, options).as_text()


def _tvmscript(module: ModuleOp, options: BuildOptions) -> str:
    from relax_dialect.tvmscript import ScriptError, as_tvmscript

    verify_module(module)
    try:
        return as_tvmscript(module)
    except ScriptError as error:
        raise ToolError(str(error)) from None


EMITTERS: Mapping[str, Emitter] = {
    "llvmir": _llvmir,
    "asm": _assembly,
    "object": _object,
    "listing": _listing,
    "tvmscript": _tvmscript,
}
"""What `--emit` makes of a module, beside the `FILES`."""

FILES = ("library", "executable", "bytecode")
"""What `--emit` makes that is no text and is written by others: a linker, and `Executable.save`."""

SUFFIXES: Mapping[str, str] = {
    ".so": "library",
    ".rvm": "executable",
    ".o": "object",
    ".ll": "llvmir",
    ".s": "asm",
    ".mlir": "module",
    ".py": "tvmscript",
}
"""What is made where `--emit` does not say it, by how the name of the output ends."""


def _parser() -> ToolParser:
    parser = ToolParser("relax-translate", __doc__)
    parser.add_argument("file", help=f"a file of a module ({', '.join(suffixes(Holds.MODULE))}), or - for stdin")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--emit",
        choices=(*EMITTERS, *FILES),
        help="optimised LLVM IR or assembly; an object file; the listing of bytecode; TVMScript; a shared "
        "library that tvm_ffi.load_module opens; an executable of --mode, or of bytecode (default: by suffix of -o)",
    )
    what.add_argument("--import-onnx", action="store_true", help="the module of an ONNX model")
    what.add_argument("--import-torch", action="store_true", help="the module of an exported program of PyTorch (.pt2)")
    what.add_argument(
        "--import-tvmscript", action="store_true", help="the module of a TVMScript file (.py), which is not executed"
    )
    what.add_argument(
        "--mlir-to-llvmir", action="store_true", help="LLVM IR of a module of the llvm dialect, as it stands"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write (default: stdout, for text); the suffix says what, unless another option does: "
        + ", ".join(f"{suffix} {kind}" for suffix, kind in SUFFIXES.items()),
    )
    parser.add_argument(
        "--mode",
        choices=("native", "bytecode"),
        help="of an executable (.rvm): machine code, or bytecode with kernels as machine code (default: native)",
    )
    parser.add_argument(
        "--weights-beside",
        action="store_true",
        help="of a library or an executable: write the weights to FILE.weights, which is mapped when it is loaded",
    )
    add_load_option(parser, "register dialects, passes, converters and rules of operators")
    add_save_weights_option(parser)
    add_build_options(parser)
    return parser


def _translate(argv: Sequence[str] | None) -> None:
    parser = _parser()
    args = parser.read(argv)
    load_python_files(args.load)
    what = _wanted(args) or parser.error("expected --emit, an import, or -o FILE whose suffix says what to make")
    if args.mode is not None and what != "executable":
        raise ToolError(f"--mode is for executables (.rvm), not for {what}")
    native = what == "library" or (what == "executable" and args.mode != "bytecode")
    options = build_options(args, "native" if native else "bytecode")
    if what == "module":
        _write_module(_read(args, options), args)
        return
    if args.save_weights is not None:
        raise ToolError("--save-weights goes with an import; what is emitted has its weights in it")
    module = _read(args, options)
    if what in FILES:
        path = _required_output(args.output, what)
        _write_compiled(what, build_executable(module, options), path, "beside" if args.weights_beside else "inside")
        return
    if args.weights_beside:
        raise ToolError(f"--weights-beside is for libraries and executables, not for {what}")
    contents = _mlir_to_llvmir(module, options) if what == "as it stands" else EMITTERS[what](module, options)
    if isinstance(contents, bytes):
        path = _required_output(args.output, what)
        if path == STDIN:
            sys.stdout.buffer.write(contents)
        else:
            Path(path).write_bytes(contents)
    else:
        _write_text(contents, args.output)


def _wanted(args: argparse.Namespace) -> str | None:
    """What is to be made: one of `EMITTERS` or `FILES`, `module`, or `as it stands`; None if nothing says it."""
    if args.emit is not None:
        return args.emit
    if args.mlir_to_llvmir:
        return "as it stands"
    if any(getattr(args, name) for name in _IMPORTS):
        return "module"
    if args.output is None:
        return None
    if args.output == STDIN:
        return None
    suffix = Path(args.output).suffix
    if suffix not in SUFFIXES:
        raise ToolError(f"expected -o FILE that ends in one of {', '.join(SUFFIXES)}, or --emit, got {args.output}")
    return SUFFIXES[suffix]


_IMPORTS: Mapping[str, str] = {"import_onnx": ".onnx", "import_torch": ".pt2", "import_tvmscript": ".py"}
"""The options that say what the file is, whatever it is called, and the suffix that says it, too."""


def _read(args: argparse.Namespace, options: BuildOptions) -> ModuleOp:
    """The module in the file or on standard input, not yet verified."""
    said = next((suffix for name, suffix in _IMPORTS.items() if getattr(args, name)), None)
    module = read_module(args.file, ReadOptions(shapes=options.shapes, target=options.target), said)
    load_weights_into(module, options.weights)
    return module


def _write_module(module: ModuleOp, args: argparse.Namespace) -> None:
    verify_module(module)
    _write_text(str(module), args.output)
    if args.save_weights is not None:
        from lowering.compiler.weight_files import save_weights

        save_weights(module, args.save_weights)


def _write_compiled(what: str, executable: Executable, path: str, weights: Literal["inside", "beside"]) -> None:
    if path == STDIN and weights == "beside":
        raise ToolError("--weights-beside writes two files: give -o a file")
    if what != "library":
        if path == STDIN:
            sys.stdout.buffer.write(executable.to_bytes())
        else:
            executable.save(path, weights=weights)
        return
    if path == STDIN:
        raise ToolError("a library is written by a linker: give -o a file")
    try:
        executable.export_library(path, weights=weights)
    except RuntimeError as error:  # of the linker
        raise ToolError(str(error)) from error


def _write_text(contents: str, path: str | None) -> None:
    if path is None or path == STDIN:
        print(contents.rstrip("\n"))
    else:
        Path(path).write_text(contents.rstrip("\n") + "\n", encoding="utf-8")


def _required_output(path: str | None, kind: str) -> str:
    if path is None:
        raise ToolError(f"expected -o FILE for {kind}, which is not text")
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; 0 on success, 1 after a diagnostic on stderr."""
    return run_tool("relax-translate", lambda: _translate(argv), own_process=argv is None)


if __name__ == "__main__":
    sys.exit(main())
