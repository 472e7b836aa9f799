"""The tile registers of AMX: as the interpreter has them where the machine has some, and their instructions."""

import ml_dtypes
import numpy as np
import pytest
from xdsl.utils.exceptions import PassFailedException

from lowering.compiler.kernel_maker import run_tir_passes
from lowering.llvm.compiler import emit_assembly
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.tir_to_llvm.conftest import Check, find, parse
from tir_dialect.interpreter import run_prim_func
from tir_dialect.interpreter.numerics import OutOfRangeError
from tir_dialect.target import Target

TOTALS = {"i32": np.int32, "f32": np.float32}
PAIRS = [(left, right) for left in ("i8", "ui8") for right in ("i8", "ui8")]


def program(left: str, right: str, total: str) -> str:
    """A step of sixteen groups and one of `rest`."""
    return f"""
    tir.prim_func @f[%rest](%A: !tir.buffer<[20, 40], i32>, %B: !tir.buffer<[2, 16, 20], i32>,
                            %C: !tir.buffer<[17, 16], {total}>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      tir.configure_tiles %rest
      tir.zero_tile 2
      tir.load_tile 4, %A[%c1, %c0]
      tir.load_tile 6, %B[%c0, %c0, %c1]
      tir.dot_tiles 2, {left} 4, {right} 6
      tir.load_tile 5, %A[%c1, %c16]
      tir.load_tile 7, %B[%c1, %c0, %c1]
      tir.dot_tiles 2, {left} 5, {right} 7
      tir.store_tile 2, %C[%c1, %c0]
      tir.release_tiles
    }}"""


@pytest.mark.parametrize("rest", [0, 1, 5, 16])
@pytest.mark.parametrize(("left", "right", "total"), [*((*pair, "i32") for pair in PAIRS), ("bf16", "bf16", "f32")])
def test_dot_products(left: str, right: str, total: str, rest: int) -> None:
    """Whole numbers, so that every order of additions gives the same; against NumPy."""
    rng, numbers = np.random.default_rng(0), {"i8": np.int8, "ui8": np.uint8, "bf16": ml_dtypes.bfloat16}
    parts = 2 if left == "bf16" else 4
    ends = (-9, 9) if left == "bf16" else (-128, 256)
    a, b = (
        np.ascontiguousarray(rng.integers(*ends, (*shape, parts)).astype(numbers[each])).view(np.int32)
        for shape, each in (((20, 40), left), ((2, 16, 20), right))
    )
    a, b, c = (
        a.reshape(20, 40),
        b.reshape(2, 16, 20),
        np.ones((17, 16), TOTALS[total]),
    )
    run_prim_func(find(parse(program(left, right, total))), [a, b, c], {"rest": rest})
    groups = rest or 16
    rows, columns = a[1:17, : 16 + groups], np.concatenate([b[0], b[1, :groups]])[:, 1:17]
    rows = np.ascontiguousarray(rows).view(numbers[left]).astype(np.int64)
    columns = np.ascontiguousarray(columns.T).view(numbers[right]).astype(np.int64)
    np.testing.assert_array_equal(c[1:], rows @ columns.T)
    assert (c[0] == 1).all()


@pytest.mark.sampled(2)
@pytest.mark.skipif("amx-int8" not in Target.host().extensions, reason="the machine has no tile registers")
@pytest.mark.parametrize("rest", [0, 1, 5, 16])
@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_native_code(left: str, right: str, rest: int, same_as_interpreter: Check) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-(2**31), 2**31, shape).astype(np.int32) for shape in ((20, 40), (2, 16, 20)))
    same_as_interpreter(program(left, right, "i32"), [a, b, np.zeros((17, 16), np.int32)], {"rest": rest})


@pytest.mark.parametrize(
    ("left", "right", "instruction"),
    [("ui8", "i8", "tdpbusd"), ("i8", "ui8", "tdpbsud"), ("i8", "i8", "tdpbssd"), ("ui8", "ui8", "tdpbuud")],
)
def test_instructions(left: str, right: str, instruction: str) -> None:
    module, target = parse(program(left, right, "i32")), Target.parse("sapphirerapids")
    run_tir_passes(module)
    text = emit_assembly(lower_prim_funcs([find(module)], LoweringOptions.of(target)), target)
    assert instruction in text
    assert "ldtilecfg" in text
    assert "tilerelease" in text


def test_a_target_without_them_is_refused() -> None:
    module = parse(program("i8", "i8", "i32"))
    with pytest.raises(
        PassFailedException, match=r"'tir.configure_tiles' op needs a target with the tile registers of AMX"
    ):
        lower_prim_funcs([find(module)], LoweringOptions.of(Target.parse("znver4")))
    target = Target.parse("sapphirerapids features=-amx-bf16")
    with pytest.raises(PassFailedException, match=r"'tir.dot_tiles' op needs a target with amx-bf16"):
        lower_prim_funcs([find(parse(program("bf16", "bf16", "f32")))], LoweringOptions.of(target))


def test_too_many_groups_and_accesses_outside() -> None:
    a, b, c = np.zeros((20, 40), np.int32), np.zeros((2, 16, 20), np.int32), np.zeros((17, 16), np.int32)
    func = find(parse(program("i8", "i8", "i32")))
    with pytest.raises(OutOfRangeError, match="expected at most 16 groups, got 17"):
        run_prim_func(func, [a, b, c], {"rest": 17})
    outside = find(
        parse(program("i8", "i8", "i32").replace("store_tile 2, %C[%c1, %c0]", "store_tile 2, %C[%c1, %c1]"))
    )
    with pytest.raises(OutOfRangeError, match="of buffer %C: index 1 is 16, expected 0 <= index < 16"):
        run_prim_func(outside, [a, b, c], {"rest": 3})
