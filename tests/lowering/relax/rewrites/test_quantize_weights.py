"""Packed weights: products and look-ups are those of the decoded elements, and the program is smaller."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

import xdsl_relax as xr
from lowering import build
from lowering.relax.rewrites.quantize_weights import REPORT, QuantizeWeightsPass, quantize_weights
from relax_dialect.frontend.onnx import import_model
from relax_dialect.interpreter import run
from relax_dialect.ops.structure import FuncOp
from tests.relax_dialect.frontend.onnx.models import model, unknown
from tests.support.programs import Tolerance, check_pass
from tir_dialect.block_arrays import decode, encode
from tir_dialect.block_formats import FORMATS
from tir_dialect.ops.function import PrimFuncOp
from vm_dialect import VirtualMachine

RNG = np.random.default_rng(0)
VOCABULARY, HIDDEN, INNER = 320, 256, 512
TABLE, UP, DOWN = (
    RNG.standard_normal(shape).astype(np.float32) for shape in ((VOCABULARY, HIDDEN), (HIDDEN, INNER), (HIDDEN, INNER))
)
IDS = np.array([[3, 0, 319], [-1, 7, 7]], np.int64)


def _onnx() -> ModuleOp:
    """A look-up, two layers and a head that shares the table, with weights in both orders."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"]),
        helper.make_node("MatMul", ["x", "up"], ["h"]),
        helper.make_node("Transpose", ["down"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["h", "t"], ["z"]),
        helper.make_node("Transpose", ["table"], ["head"], perm=[1, 0]),
        helper.make_node("MatMul", ["z", "head"], ["y"]),
    ]
    ids = helper.make_tensor_value_info("ids", 7, ["batch", "length"])
    constants = {"table": TABLE, "up": UP, "down": DOWN}
    return import_model(model(nodes, [ids], unknown(["y"], 3), constants))


def _expected(name: str | None) -> np.ndarray:
    def rounded(rows: np.ndarray) -> np.ndarray:
        return rows if name is None else decode(encode(rows, FORMATS[name]), FORMATS[name])

    table, up, down = rounded(TABLE), rounded(np.ascontiguousarray(UP.T)), rounded(DOWN)
    return table[IDS] @ up.T @ down.T @ table.T


def _relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize(("name", "most"), [("q8_0", 0.006), ("q4_k", 0.09), ("u8_f32", 0.005)])
def test_the_error_is_that_of_the_report(name: str, most: float):
    module = _onnx()
    (reports,) = quantize_weights(module.clone(), QuantizeWeightsPass(name)).values()
    assert {each.name: each.shape for each in reports} == {
        "table": TABLE.shape,
        "up": UP.shape,
        "down": DOWN.shape,
    }
    for each, rows in zip(reports, (TABLE, UP.T, DOWN), strict=True):
        packed = encode(np.ascontiguousarray(rows), FORMATS[name])
        assert each.error == pytest.approx(_relative(decode(packed, FORMATS[name]), rows), rel=1e-4)
        assert (each.left, each.bytes_before, each.bytes_after) == (None, rows.nbytes, packed.nbytes)
        assert each.error < most
    tolerance = Tolerance(0, float(3 * most * np.abs(_expected(None)).max()))
    changed = check_pass(module, f'quantize-weights{{format="{name}"}}', [[IDS]], tolerance=tolerance)
    found = np.asarray(run(changed, "main", [IDS]))
    assert _relative(found, _expected(name)) < 1e-5
    assert _relative(found, _expected(None)) < 2.5 * most


@pytest.mark.slow
def test_a_model_of_onnx_becomes_small(tmp_path: Path):
    """Its kernels decode the weights, in each of two products that read the same ones."""
    module = xr.run_passes(_onnx(), "quantize-weights{explain=true}")
    (func,) = (op for op in module.ops if isinstance(op, FuncOp))
    report = func.attributes[REPORT]
    assert isinstance(report, ArrayAttr)
    assert report.data[0] == StringAttr("table [320, 256]: 327680 to 87040 bytes, relative error 0.0054")
    executable = build(module)
    executable.save(tmp_path / "model.rvm")
    weights = TABLE.nbytes + UP.nbytes + DOWN.nbytes
    assert (tmp_path / "model.rvm").stat().st_size < 0.27 * weights + 150_000
    found = np.from_dlpack(VirtualMachine(executable)["main"](IDS))
    assert _relative(found, _expected("q8_0")) < 1e-4
    kernels = 'schedule-cpu{target="x86-64-v3 activation-bits=32" explain=true}'
    lowered = xr.run_passes(module, f"optimize-graph,legalize-ops,fuse-ops,fuse-tir,{kernels}")
    explained = [
        str(op.attributes["explain"]) for op in lowered.ops if isinstance(op, PrimFuncOp) if "explain" in op.attributes
    ]
    assert len(explained) == 3
    assert all("q8_0 blocks decoded in registers where M <= 2" in each for each in explained)


def test_names_and_sizes_that_are_left_out():
    (reports,) = quantize_weights(_onnx(), QuantizeWeightsPass(leave_out=("t*", "d?wn"), min_elements=1 << 20)).values()
    assert [(each.name, each.left) for each in reports] == [
        ("table", "as its name says"),
        ("up", "it has fewer than 1048576 elements"),
        ("down", "as its name says"),
    ]


def test_constants_with_the_same_elements_are_packed_once():
    """Also in several functions; and if an op of another function reads them too, they are left."""
    builder = xr.BlockBuilder()
    weight = RNG.standard_normal((64, 64)).astype(np.float32)
    for name in ("main", "other"):
        with builder.function(name, {"x": ("n", 64)}) as (x,):
            builder.emit_func_output(x @ builder.const(weight, name="w"))
    module = builder.get()
    packed = xr.run_passes(module, "quantize-weights")
    values = {op.value for op in packed.walk() if op.name == "relax.constant"}
    assert len(values) == 1
    with builder.function("third", {"x": ("n", 64)}) as (x,):
        builder.emit_func_output(x + builder.const(weight, name="w"))
    left = quantize_weights(builder.get(), QuantizeWeightsPass())
    assert [each.left for reports in left.values() for each in reports] == ["'relax.add' reads it too"] * 2


def test_equal_constants_in_both_orders():
    """Small ones have no name by which they would be one: each has the bytes for its order."""
    builder = xr.BlockBuilder()
    weight = RNG.standard_normal((32, 32)).astype(np.float32)
    with builder.function("main", {"x": ("n", 32)}) as (x,):
        rows, columns = (builder.const(weight) for _ in range(2))
        builder.emit_func_output(x @ xr.op.permute_dims(rows) @ columns)
    x = RNG.standard_normal((3, 32)).astype(np.float32)
    tolerance = Tolerance(0, float(0.02 * np.abs(x @ weight.T @ weight).max()))
    changed = check_pass(builder.get(), "quantize-weights{min-elements=1}", [[x]], tolerance=tolerance)
    assert sum(op.name == "relax.dequantize_blocks" for op in changed.walk()) == 2
