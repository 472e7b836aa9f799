"""`relax-translate`: from a module to what other programs read (LLVM IR, assembly, objects, libraries, bytecode), and
from ONNX, PyTorch or TVMScript to a module.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from lowering.tune.location import nothing_is_tuned
from lowering.verify.module import verify_module
from xdsl_relax.cli.arguments import add_build_options, add_save_weights_option, build_options
from xdsl_relax.cli.failures import ToolError, run_tool
from xdsl_relax.cli.programs import (
    BuildOptions,
    build_executable,
    read_module,
    read_onnx,
    read_text,
    read_torch,
    target_of,
)

if TYPE_CHECKING:
    from relax_dialect.frontend.onnx.parameters import GivenShapes
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
            from lowering.tune.schedule_tuned import ScheduleTunedPass

            return ScheduleTunedPass(options.target or "")
        case ConvertTIRToLLVMPass():
            lowering = LoweringOptions.of(target_of(options))
            extensions = tuple(sorted(lowering.extensions))
            return replace(each, vector_bits=lowering.vector_bits, streams=lowering.streams, extensions=extensions)
        case _:
            return for_target(each, target_of(options))


def _mlir_to_llvmir(module: ModuleOp, options: BuildOptions) -> str:
    from lowering.llvm.text.llvm_text import llvm_text

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


def _bytecode(module: ModuleOp, options: BuildOptions) -> bytes:
    return build_executable(module, options).to_bytes()


def _listing(module: ModuleOp, options: BuildOptions) -> str:
    return build_executable(module, options).as_text()


def _tvmscript(module: ModuleOp, options: BuildOptions) -> str:
    from tir_dialect.tvmscript import ScriptError, as_tvmscript

    verify_module(module)
    try:
        return as_tvmscript(module)
    except ScriptError as error:
        raise ToolError(str(error)) from None


EMITTERS: Mapping[str, Emitter] = {
    "llvmir": _llvmir,
    "asm": _assembly,
    "object": _object,
    "bytecode": _bytecode,
    "listing": _listing,
    "tvmscript": _tvmscript,
}
"""What `--emit` makes, beside `library`, which a linker writes."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="relax-translate", description=__doc__)
    parser.add_argument("file", help="a module (.mlir), a model (.onnx, .pt2) or a TVMScript file (.py)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--emit",
        choices=(*EMITTERS, "library"),
        help="optimised LLVM IR or assembly; an object file; an executable of the bytecode machine, or its listing; "
        "a shared library that tvm_ffi.load_module opens; PrimFuncs as TVMScript",
    )
    what.add_argument("--import-onnx", action="store_true", help="the module of an ONNX model")
    what.add_argument("--import-torch", action="store_true", help="the module of an exported program of PyTorch (.pt2)")
    what.add_argument(
        "--import-tvmscript", action="store_true", help="the module of a TVMScript file (.py), which is not executed"
    )
    what.add_argument(
        "--mlir-to-llvmir", action="store_true", help="LLVM IR of a module of the llvm dialect, as it stands"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write (default: stdout, for text)")
    add_save_weights_option(parser)
    add_build_options(parser)
    return parser


def _translate(argv: Sequence[str] | None) -> None:
    args = _parser().parse_args(argv)
    options = build_options(args, "native" if args.emit == "library" else "bytecode")
    if (read := _importer(args)) is not None:
        module = read(args.file, options.shapes)
        verify_module(module)
        _write_text(str(module), args.output)
        if args.save_weights is not None:
            from lowering.compiler.weight_files import save_weights

            save_weights(module, args.save_weights)
        return
    if args.save_weights is not None:
        raise ToolError("--save-weights goes with an import; what is emitted has its weights in it")
    module = read_module(args.file, options.weights, options.shapes)
    if args.emit == "library":
        _export(build_executable(module, options), _required_output(args.output, "library"))
        return
    contents = _mlir_to_llvmir(module, options) if args.mlir_to_llvmir else EMITTERS[args.emit](module, options)
    if isinstance(contents, bytes):
        Path(_required_output(args.output, args.emit)).write_bytes(contents)
    else:
        _write_text(contents, args.output)


def _importer(args: argparse.Namespace) -> Callable[[str, GivenShapes], ModuleOp] | None:
    """What reads the file, if it is of another system."""
    importers = {
        "import_onnx": read_onnx,
        "import_torch": read_torch,
        "import_tvmscript": partial(_read_tvmscript, target=args.target),
    }
    return next((read for name, read in importers.items() if getattr(args, name)), None)


def _read_tvmscript(path: str, shapes: GivenShapes, target: str | None) -> ModuleOp:
    """The module that a TVMScript file describes, which says all shapes; the target says how long its vectors are."""
    if shapes:
        raise ToolError(f"{path}: --shape is for ONNX models; a TVMScript file says its shapes")
    from relax_dialect.frontend.tvmscript import parse

    return parse(read_text(path), filename=path, target=target)


def _write_text(contents: str, path: str | None) -> None:
    if path is None:
        print(contents.rstrip("\n"))
    else:
        Path(path).write_text(contents.rstrip("\n") + "\n", encoding="utf-8")


def _required_output(path: str | None, kind: str) -> str:
    if path is None:
        raise ToolError(f"expected -o FILE for {kind}, which is not text")
    return path


def _export(executable: Executable, path: str) -> None:
    try:
        executable.export_library(path)
    except RuntimeError as error:  # of the linker
        raise ToolError(str(error)) from error


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; 0 on success, 1 after a diagnostic on stderr."""
    return run_tool("relax-translate", lambda: _translate(argv), own_process=argv is None)


if __name__ == "__main__":
    sys.exit(main())
