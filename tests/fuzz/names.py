"""Random names of functions, kernels, parameters, dimensions, weights and results, in every mode and artefact.

Whatever the names are, the results are right and are found under these names; what cannot have such names says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import tvm_ffi
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.parsing import parse_module
from relax_dialect import BlockBuilder
from relax_dialect.builder import op, tensor
from relax_dialect.frontend.onnx import import_model
from relax_dialect.frontend.tvmscript import parse
from relax_dialect.interpreter import run as interpret
from relax_dialect.ops.structure import FuncOp
from relax_dialect.tvmscript.module import as_tvmscript
from tests.fuzz.drawing import check_one
from tests.support.names import NAMES, RESERVED, X, check, is_text, open_library, program
from tir_dialect.dims.text import is_symbol_name
from vm_dialect import Executable, VirtualMachine

NAME = "names"

TEXTS = NAMES.filter(is_text)
SYMBOLS = st.one_of(
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_$.]{0,5}", fullmatch=True),
    st.sampled_from(["T", "R", "I", "cls", "n", "n_1", "n.1", "n$1", "def", "self", "range", "main", "k", "x"]),
).filter(is_symbol_name)

W = np.arange(12, dtype=np.float32).reshape(3, 4)


def _in_each_artefact(module: ModuleOp, folder: Path) -> Iterator[VirtualMachine]:
    """A program in memory, in files and as it is read back from text."""
    for mode in ("native", "bytecode"):
        executable = build(module.clone(), mode=mode)
        yield VirtualMachine(executable)
        executable.save(folder / f"{mode}.rvm")
        yield VirtualMachine(Executable.load(folder / f"{mode}.rvm"))
    yield VirtualMachine(build(parse_module(str(module)), mode="bytecode"))


def _check_functions(names: Sequence[str], folder: Path) -> None:
    functions, kernels = names[:3], names[3:]
    module = parse_module(program(functions, kernels))
    for machine in _in_each_artefact(module, folder):
        check(machine, functions, kernels)
    for name in functions:
        np.testing.assert_array_equal(np.asarray(interpret(module, name, [X])), 2 * X)
    if shutil.which("cc") is not None and not any("\0" in name or name in RESERVED for name in functions):
        build(module).export_library(folder / "names.so")
        library = open_library(folder / "names.so")
        for name in functions:
            np.testing.assert_array_equal(np.from_dlpack(library[name](tvm_ffi.from_dlpack(X))), 2 * X)
    script = parse(as_tvmscript(parse_module(program(functions, []))))
    written = [each.sym_name.data for each in script.ops if isinstance(each, FuncOp)]
    assert len(set(written)) == len(functions) + 1
    for name in written:
        np.testing.assert_array_equal(np.asarray(interpret(script, name, [X])), 2 * X)


def _model(names: Sequence[str]) -> onnx.ModelProto:
    """`first - second @ weight`, and its negation; the names are those of inputs, the weight, results and sizes."""
    first, second, weight, difference, negated, rows, columns = names
    inputs = [
        helper.make_tensor_value_info(first, TensorProto.FLOAT, [rows, 4]),
        helper.make_tensor_value_info(second, TensorProto.FLOAT, [rows, columns]),
    ]
    outputs = [helper.make_tensor_value_info(each, TensorProto.FLOAT, [rows, 4]) for each in (difference, negated)]
    nodes = [
        helper.make_node("MatMul", [second, weight], ["a product"], name=first),
        helper.make_node("Sub", [first, "a product"], [difference], name=first),
        helper.make_node("Neg", [difference], [negated], name=weight),
    ]
    graph = helper.make_graph(nodes, negated, inputs, outputs, [numpy_helper.from_array(W, weight)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _check_model(names: Sequence[str], folder: Path) -> None:
    first, second, _, difference, negated, *_ = names
    module = import_model(_model(names))
    a, b = W[:2], W[:2, :3]
    expected = a - b @ W
    arguments = {second: b, first: a}
    np.testing.assert_array_equal(np.asarray(interpret(module, "main", arguments)[0]), expected)
    for machine in _in_each_artefact(module, folder):
        main = machine["main"]
        results = main.by_name(main(arguments))
        np.testing.assert_array_equal(np.asarray(results[difference]), expected)
        np.testing.assert_array_equal(np.asarray(results[negated]), -expected)


def _check_builder(names: Sequence[str], sizes: Sequence[str], folder: Path) -> None:
    bb = BlockBuilder()
    first, second, function, *_ = names
    with bb.function(function, {first: tensor(tuple(sizes)), second: tensor(tuple(sizes))}) as (x, y):
        bb.emit_func_output(op.permute_dims(op.subtract(x, y)))
    module = bb.get()
    for machine in _in_each_artefact(module, folder):
        np.testing.assert_array_equal(np.asarray(machine[function]({second: W, first: 2 * W})), W.T)
    script = parse(as_tvmscript(module))
    (written,) = (each.sym_name.data for each in script.ops if isinstance(each, FuncOp))
    np.testing.assert_array_equal(np.asarray(interpret(script, written, [2 * W, W])), W.T)


CASES = st.tuples(
    st.sampled_from(["functions", "model", "builder"]),
    st.lists(TEXTS, min_size=7, max_size=7, unique=True),
    st.lists(SYMBOLS, min_size=2, max_size=2, unique=True),
)


def check_case(case: tuple[str, list[str], list[str]]) -> None:
    """One program."""
    kind, names, sizes = case
    with TemporaryDirectory() as folder:
        match kind:
            case "functions":
                _check_functions(names, Path(folder))
            case "model":
                _check_model(names, Path(folder))
            case _:
                _check_builder(names, sizes, Path(folder))


def run(number: int) -> None:
    """The names of a seed."""
    check_one(number, CASES, check_case)
