"""What tensorize refuses: content that differs from the description of an intrinsic, and what the error says."""

from __future__ import annotations

import pytest

from tests.support.tir import parse_prim_func
from tests.tir_dialect.schedule.test_loops import refuses
from tir_dialect.schedule import Schedule
from tir_dialect.schedule.primitives.tensorizing import TensorIntrin, register_tensor_intrin

CONTENT = """
tir.prim_func @f[%n](%A: !tir.buffer<[2, 8 * n], i32>, %B: !tir.buffer<[8 * n], i32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  tir.for (%i, %j) in (%n, %c8) {
    %e = tir.dim 8 * n
    %s = arith.muli %i, %c8 : index
    %k = arith.addi %s, %j : index
    tir.block "C" (%v = spatial %k in %e) {
      %a = tir.load %A[%c0, %v]
      %b = tir.load %A[%c0, %v]
      %p = arith.subi %a, %b : i32
      tir.store %p, %B[%v]
    }
  }
}
"""

DESCRIPTION = """
tir.prim_func @difference(%A: !tir.buffer<[8], i32>, %B: !tir.buffer<[8], i32>) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  tir.for (%i) in (%c8) {
    tir.block "difference" (%v = spatial %i in %c8) {
      %a = tir.load %A[%v]
      %b = tir.load %A[%v]
      %p = arith.subi %a, %b : i32
      tir.store %p, %B[%v]
    }
  }
}
"""


@pytest.fixture(autouse=True)
def _intrinsics(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tir_dialect.schedule.primitives.tensorizing._INTRINS", {})


def schedule(content: str, description: str) -> Schedule:
    func = parse_prim_func(description)
    register_tensor_intrin(TensorIntrin("difference", func, func.clone()))
    return Schedule(parse_prim_func(content))


@pytest.mark.parametrize(
    ("content", "description", "message"),
    [
        (
            CONTENT,
            DESCRIPTION.replace("%B: !tir.buffer<[8], i32>", "%B: !tir.buffer<[8], i32>, %D: !tir.buffer<[8], i32>"),
            'the content of block "C_o" does not use all parameters of the description',
        ),
        (
            CONTENT,
            DESCRIPTION.replace("spatial", "opaque"),
            "has iterators of kinds spatial, the description of kinds opaque",
        ),
        (
            CONTENT.replace("arith.subi", "arith.addi"),
            DESCRIPTION,
            "has 'arith.addi' where the description has 'arith.subi'",
        ),
        (
            CONTENT.replace("subi %a, %b", "subi %b, %a"),
            DESCRIPTION,
            "has other operands of 'arith.subi' than the description",
        ),
        (
            CONTENT,
            DESCRIPTION.replace("%B: !tir.buffer<[8], i32>", "%B: !tir.buffer<[8, 1], i32>").replace(
                "store %p, %B[%v]", "store %p, %B[%v, %c0]"
            ),
            'accesses buffer "B" otherwise than the description',
        ),
        (
            CONTENT.replace("%b = tir.load %A[%c0, %v]", "%b = tir.load %A[%c1, %v]"),
            DESCRIPTION,
            'accesses several tiles of buffer "A"',
        ),
        (
            CONTENT.replace("%B: !tir.buffer<[8 * n], i32>", "%B: !tir.buffer<[8 * n], ui32>"),
            DESCRIPTION,
            'has ui32 in buffer "B", expected !tir.buffer<[8], i32>',
        ),
    ],
)
def test_content_that_differs(content: str, description: str, message: str):
    sch = schedule(content, description)
    refuses(sch, message, "tensorize", sch.get_loops("C")[1], "difference")


def test_content_that_is_no_nest():
    sch = schedule(CONTENT, DESCRIPTION)
    message = 'the content of block "C" is not a nest of loops around one block'
    refuses(sch, message, "tensorize", "C", "difference")


def test_content_that_is_described():
    sch = schedule(CONTENT, DESCRIPTION)
    assert sch.tensorize(sch.get_loops("C")[1], "difference").name == "C_o"
