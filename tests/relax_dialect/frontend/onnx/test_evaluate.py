"""Evaluation while importing: numbers as NumPy, dimensions exactly, and nothing that depends on a symbol's value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import i32, i64

from relax_dialect.frontend.onnx.evaluation import evaluate
from relax_dialect.ops import binary
from relax_dialect.ops.binary import BinaryOp
from tir_dialect.dims import Dim, floordiv, maximum, symbol

N, M = symbol("n"), symbol("m")


def dims(*elements: Any) -> np.ndarray[Any, Any]:
    made = np.empty(len(elements), object)
    made[:] = list(elements)
    return made


def result(name: str, *operands: Any, **attributes: Any) -> Any:
    """The elements of the first output, or `None`."""
    arrays = [None if each is None else np.asarray(each) for each in operands]
    made = evaluate(name, attributes, arrays, [i64 for _ in arrays])
    return None if made is None else made[0][0].tolist()


@pytest.mark.parametrize(
    ("name", "operands", "attributes", "expected"),
    [
        ("Add", [dims(N, 2), np.int64([1, 3])], {}, [N + 1, 5]),
        ("Mul", [dims(N, M), np.int64(2)], {}, [2 * N, 2 * M]),
        ("Sub", [dims(N), np.int64([1])], {}, [N - 1]),
        ("Div", [dims(N), np.int64([2])], {}, [floordiv(N, 2)]),
        ("Div", [np.int64([7, -7]), np.int64(2)], {}, [3, -3]),
        ("Neg", [dims(N)], {}, [-N]),
        ("Max", [dims(N), np.int64([4])], {}, [maximum(N, 4)]),
        ("Gather", [dims(N, M, 3), np.int64(1)], {"axis": 0}, M),
        ("Gather", [dims(N, M, 3), np.int64([-1, 0])], {"axis": 0}, [3, N]),
        ("Slice", [dims(N, M, 3), np.int64([1]), np.int64([9])], {}, [M, 3]),
        ("Slice", [dims(N, M, 3), np.int64([-1]), np.int64([-9]), None, np.int64([-1])], {}, [3, M, N]),
        ("Concat", [dims(N), np.int64([-1])], {"axis": 0}, [N, -1]),
        ("Unsqueeze", [np.int64(4), np.int64([0])], {}, [4]),
        ("Squeeze", [dims(N), np.int64([0])], {}, N),
        ("ReduceProd", [dims(N, M, 2)], {"keepdims": 0}, 2 * N * M),
        ("ReduceSum", [np.int64([[1, 2], [3, 4]]), np.int64([1])], {"keepdims": 1}, [[3], [7]]),
        ("Where", [np.array([True, False]), dims(N, N), np.int64([1, 1])], {}, [N, 1]),
        ("Range", [np.int64(1), np.int64(7), np.int64(2)], {}, [1, 3, 5]),
        ("ConstantOfShape", [np.int64([2])], {"value": np.int64([7])}, [7, 7]),
        ("Equal", [dims(N, 3), np.int64([3, 3])[1:]], {}, None),
        ("Equal", [dims(N + 1), np.int64([0])], {}, [False]),
        ("Less", [dims(N), dims(N + 1)], {}, [True]),
        ("LessOrEqual", [dims(N), dims(M)], {}, None),
        ("Mod", [np.int64([-7]), np.int64([3])], {}, [2]),
        ("Mod", [np.int64([-7]), np.int64([3])], {"fmod": 1}, [-1]),
        ("Cast", [dims(N)], {"to": 7}, [N]),
        ("Cast", [dims(N)], {"to": 1}, None),
        ("Sqrt", [np.float32([4.0])], {}, [2.0]),
    ],
)
def test_results(name: str, operands: list[Any], attributes: dict[str, Any], expected: Any):
    assert result(name, *operands, **attributes) == expected


def test_a_quotient_that_may_be_negative_is_left_open():
    assert result("Div", dims(N - M), np.int64([2])) is None


def test_what_would_be_large_is_left_to_run_time():
    assert result("ConstantOfShape", np.int64([1 << 40])) is None
    assert result("Range", np.int64(0), np.int64(1 << 40), np.int64(1)) is None
    assert result("Expand", np.int64([1]), np.int64([1 << 40])) is None


def test_operators_without_a_rule_and_operands_that_do_not_fit():
    assert result("MatMul", np.int64([1]), np.int64([1])) is None
    assert result("Add", np.int64([1, 2]), np.int64([1, 2, 3])) is None
    assert result("Gather", np.int64([1]), np.int64(5), axis=0) is None


def test_results_keep_their_dtype():
    ((made, dtype),) = evaluate("Add", {}, [np.int32([1]), np.int32([2])], [None, None]) or [(None, None)]
    assert made is not None
    assert (made.dtype, dtype) == (np.int32, None)
    assert isinstance(result("Add", dims(N), np.int64([0]))[0], Dim)


SAME: dict[tuple[str, int], type[BinaryOp]] = {
    ("Add", 0): binary.AddOp,
    ("Sub", 0): binary.SubtractOp,
    ("Mul", 0): binary.MultiplyOp,
    ("Div", 0): binary.DivideOp,
    ("Mod", 0): binary.FloorModOp,
    ("Mod", 1): binary.ModOp,
    ("Max", 0): binary.MaximumOp,
    ("Min", 0): binary.MinimumOp,
    ("Equal", 0): binary.EqualOp,
    ("Less", 0): binary.LessOp,
    ("LessOrEqual", 0): binary.LessEqualOp,
    ("Greater", 0): binary.GreaterOp,
    ("GreaterOrEqual", 0): binary.GreaterEqualOp,
}


@pytest.mark.parametrize(("name", "fmod"), SAME)
def test_all_pairs_of_numbers(name: str, fmod: int):
    """Of 8 bits, and the ends of other widths: what is computed while importing is what the program would compute."""
    for kind in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        info = np.iinfo(kind)
        near = [each + by for each in (info.min, info.max, 0) for by in range(-3, 4)]
        numbers = range(info.min, info.max + 1) if info.bits == 8 else [n for n in near if info.min <= n <= info.max]
        row = np.array(list(numbers), kind)
        for x in row:
            made = evaluate(name, {"fmod": fmod}, [np.full_like(row, x), row], [None, None])
            assert made is not None
            with np.errstate(all="ignore"):
                expected = SAME[name, fmod].SCALAR.evaluate(np.full_like(row, x), row)
            np.testing.assert_array_equal(made[0][0], expected, strict=True, err_msg=f"{name} {x}")


def test_what_no_dtype_holds_is_left_to_run_time():
    assert result("Mul", dims(N, 2**62), np.int64([1, 4])) is None
    assert result("Sub", dims(N, -(2**63)), np.int64([1, 1])) is None
    assert evaluate("Add", {}, [dims(N, 2**31 - 1), np.int32([1, 1])], [i32, i32]) is None
