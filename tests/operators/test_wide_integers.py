"""Integers of 64 bits that `f64` has not: as elements, numbers of operators, and in the text of importers."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from lowering.parsing import parse_module
from relax_dialect.builder import BlockBuilder, op, tensor
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx import import_model
from relax_dialect.frontend.tvmscript import parse
from tests.operators.support import Programs
from tests.support.programs import IDENTICAL, run_everywhere

MOST, LEAST, ODD = 2**63 - 1, -(2**63), 2**53 + 1
I64 = np.array([0, 1, -1, MOST, LEAST, ODD, -ODD, MOST - 1])
UI64 = np.array([0, 1, 2**63, 2**64 - 1, 2**64 - 2, ODD], np.uint64)
SIGNED, UNSIGNED = "%x: !relax.tensor<[8], i64>", "%x: !relax.tensor<[6], ui64>"
EDGES = "dense<[18446744073709551615, 1, 9223372036854775808, 0, 3, 9007199254740993]> : tensor<6xui64>"

PROGRAMS = Programs(
    {
        "constant": (UNSIGNED, f"%c = relax.constant {EDGES}; relax.bitwise_xor %x, %c"),
        "constant_result": ("", f"relax.constant {EDGES}"),
        "splat": (
            UNSIGNED,
            "%c = relax.constant dense<18446744073709551615> : tensor<6xui64>; relax.subtract %c, %x",
        ),
        "folded": ("", f"%c = relax.constant {EDGES}; relax.maximum %c, %c"),
        "clip": (SIGNED, f"relax.clip %x min = {-ODD} max = {MOST - 1}"),
        "clip_unsigned": (UNSIGNED, f"relax.clip %x min = {ODD} max = {2**64 - 2}"),
        "clip_beyond": (SIGNED, f"relax.clip %x min = -inf max = {2**64 - 1}"),
        "pad": (SIGNED, f"relax.nn.pad %x pad_width = [1, 0] pad_value = {-MOST}"),
        "pad_unsigned": (UNSIGNED, f"relax.nn.pad %x pad_width = [1, 0] pad_value = {2**64 - 2}"),
        "pad_beyond": (SIGNED, f"relax.nn.pad %x pad_width = [1, 0] pad_value = {2**64 - 1}"),
        "map_indices": (
            UNSIGNED,
            f"relax.map_indices %x index_map = affine_map<(d0) -> (d0 floordiv 4, d0 mod 4)> pad_value = {2**64 - 2}",
        ),
        "arange": (
            "",
            f"%a = relax.prim {LEAST}; %b = relax.prim {MOST}; %s = relax.prim {2**62}; relax.arange %a, %b, %s",
        ),
        "arange_data": (
            "%a: !relax.prim<i64>, %b: !relax.prim<i64>, %s: !relax.prim<i64>",
            "relax.arange %a, %b, %s",
        ),
    }
)


def _is_exact(name: str, args: list[object], expected: np.ndarray) -> None:
    PROGRAMS.check(name, args, expected, IDENTICAL)


def test_elements():
    edges = np.array([2**64 - 1, 1, 2**63, 0, 3, ODD], np.uint64)
    _is_exact("constant", [UI64], UI64 ^ edges)
    _is_exact("constant_result", [], edges)
    _is_exact("splat", [UI64], ~UI64)
    _is_exact("folded", [], edges)


def test_numbers_of_operators():
    _is_exact("clip", [I64], np.clip(I64, -ODD, MOST - 1))
    _is_exact("clip_unsigned", [UI64], np.clip(UI64, np.uint64(ODD), np.uint64(2**64 - 2)))
    _is_exact("clip_beyond", [I64], I64)
    _is_exact("pad", [I64], np.array([-MOST, *I64.tolist()]))
    _is_exact("pad_unsigned", [UI64], np.array([2**64 - 2, *UI64.tolist()], np.uint64))
    _is_exact("pad_beyond", [I64], np.array([MOST, *I64.tolist()]))
    mapped = np.array([*UI64.tolist(), 2**64 - 2, 2**64 - 2], np.uint64).reshape(2, 4)
    _is_exact("map_indices", [UI64], mapped)


def test_ranges_longer_than_half_of_all_integers():
    _is_exact("arange", [], np.array([LEAST, LEAST // 2, 0, -(LEAST // 2)]))
    for start, stop, step in ((LEAST, MOST, 2**62), (MOST, LEAST, -(2**62)), (MOST, LEAST, LEAST), (ODD, ODD + 7, 3)):
        _is_exact("arange_data", [start, stop, step], np.array(list(range(start, stop, step))))


def test_text():
    """What `f64` has is a float, as before; other integers stay what they are."""
    text = str(parse_module(PROGRAMS.text))
    assert f"min = {-ODD} max = {MOST - 1}" in text
    assert f"pad_value = {2**64 - 2}" in text
    plain = f"relax.func @f({SIGNED}) -> !relax.object {{ %0 = relax.clip %x min = -1 max = -0 relax.return %0 }}"
    assert "min = -1.0 max = -0.0" in str(parse_module(plain))


def test_lists_of_python_in_the_builder():
    """NumPy would make floats of the mixture."""
    builder = BlockBuilder()
    with builder.function("main", {"x": tensor((3,), "ui64")}) as (x,):
        builder.emit_func_output(op.bitwise_xor(x, builder.const([2**64 - 1, 1, 2**63])))
    result = run_everywhere(builder.get(), "main", [UI64[:3]], IDENTICAL)
    np.testing.assert_array_equal(result, UI64[:3] ^ np.array([2**64 - 1, 1, 2**63], np.uint64))


_N = helper.make_node
ONNX = {
    "add": ([_N("Add", ["x", "c"], ["y"])], UI64, {"c": UI64[::-1]}, UI64 + UI64[::-1]),
    "clip": (
        [_N("Clip", ["x", "a", "b"], ["y"])],
        I64,
        {"a": np.int64(-ODD), "b": np.int64(ODD)},
        np.clip(I64, -ODD, ODD),
    ),
    "pad": (
        [_N("Pad", ["x", "p", "v"], ["y"])],
        UI64,
        {"p": np.array([1, 0]), "v": np.uint64(2**64 - 2)},
        np.array([2**64 - 2, *UI64.tolist()], np.uint64),
    ),
    "range": (
        [_N("Range", ["a", "b", "s"], ["c"]), _N("Add", ["x", "c"], ["y"])],
        np.array([0]),
        {"a": np.int64(LEAST), "b": np.int64(MOST), "s": np.int64(2**62)},
        np.array([LEAST, LEAST // 2, 0, -(LEAST // 2)]),
    ),
    "range of data": (
        [_N("Squeeze", ["x"], ["a"]), _N("Range", ["a", "b", "s"], ["y"])],
        np.array([LEAST]),
        {"b": np.int64(MOST), "s": np.int64(2**62)},
        np.array([LEAST, LEAST // 2, 0, -(LEAST // 2)]),
    ),
}


@pytest.mark.parametrize("name", ONNX)
def test_onnx(name: str):
    nodes, x, weights, expected = ONNX[name]
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    graph = onnx.helper.make_graph(
        nodes,
        "main",
        [helper.make_tensor_value_info("x", dtype, x.shape)],
        [helper.make_tensor_value_info("y", dtype, expected.shape)],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    module = import_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]))
    np.testing.assert_array_equal(run_everywhere(module, "main", [x], IDENTICAL), expected)


SCRIPT = """
from tvm.script import ir as I, relax as R, tir as T
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(({size},), "{dtype}")):
        y = {call}
        return y
"""
SCRIPTS = {
    'R.bitwise_xor(x, R.const([18446744073709551615, 1, 2, 3, 4, 5], "uint64"))': (
        UI64,
        UI64 ^ np.array([2**64 - 1, 1, 2, 3, 4, 5], np.uint64),
    ),
    f"R.clip(x, {-ODD}, {ODD})": (I64, np.clip(I64, -ODD, ODD)),
    f"R.nn.pad(x, [1, 0], pad_value={ODD})": (I64, np.array([ODD, *I64.tolist()])),
    f"R.layout_transform(x, index_map=lambda i: (i // 5, i % 5), pad_value={ODD})": (
        I64,
        np.array([*I64.tolist(), ODD, ODD]).reshape(2, 5),
    ),
}


@pytest.mark.parametrize("call", SCRIPTS)
def test_tvmscript(call: str):
    x, expected = SCRIPTS[call]
    module = parse(SCRIPT.format(size=x.size, dtype=x.dtype.name, call=call))
    np.testing.assert_array_equal(run_everywhere(module, "main", [x], IDENTICAL), expected)


def test_numbers_that_no_dtype_has():
    with pytest.raises(Exception, match="expected an integer of 64 bits, got 18446744073709551617"):
        parse_module(f"relax.func @f({SIGNED}) -> !relax.object {{ %0 = relax.clip %x min = 1 max = {2**64 + 1} }}")
    with pytest.raises(ValueError, match="expected an integer of 64 bits, got 18446744073709551617"):
        _clipped(2**64 + 1)


def _clipped(bound: int) -> Expr:
    builder = BlockBuilder()
    with builder.function("main", {"x": tensor((3,), "ui64")}) as (x,):
        return builder.emit_func_output(op.clip(x, 0, bound))
