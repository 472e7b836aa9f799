"""Quotients of vectors by floats, or of bytes by products: exact for all integers."""

import re

import numpy as np
import pytest

from lowering.llvm.llvm_text import llvm_text
from lowering.tir_to_llvm.convert_tir_to_llvm import lower_prim_funcs
from lowering.tir_to_llvm.emitter import LoweringOptions
from tests.lowering.tir_to_llvm.conftest import parse
from tir_dialect.target import Target

pytestmark = pytest.mark.sampled(3)

DIVISION = """
tir.prim_func @f(%X: !tir.buffer<[COUNT], TYPE>, %Y: !tir.buffer<[COUNT], TYPE>, %Z: !tir.buffer<[COUNT], TYPE>) {
  %count = arith.constant COUNT : index
  tir.for vectorized (%i) in (%count) {
    %x = tir.load %X[%i]
    DIVISOR
    %z = arith.OP %x, %y : TYPE
    tir.store %z, %Z[%i]
  }
}"""
OPS = ["divsi", "remsi", "floordivsi", "ceildivsi", "divui", "remui", "ceildivui"]
DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}


def program(op: str, type_: str, count: int, divisor: str = "%y = tir.load %Y[%i]") -> str:
    return DIVISION.replace("OP", op).replace("DIVISOR", divisor).replace("TYPE", type_).replace("COUNT", str(count))


EACH = pytest.mark.parametrize(
    ("type_", "machine"), [*((type_, "host") for type_ in DTYPES), ("i32", "x86-64-v3"), ("i64", "x86-64-v3")]
)
"""Processors with AVX-512 round by other instructions."""


@pytest.mark.sampled(12)
@EACH
@pytest.mark.parametrize("op", OPS)
def test_quotients_beside_whole_numbers(op: str, type_: str, machine: str, same_as_interpreter) -> None:
    """Products of the divisor and a number, one more and one less: where a quotient could be rounded across.

    Numbers of 64 bits that fill no more than 48 are divided otherwise than others.
    """
    dtype, info, rng = DTYPES[type_], np.iinfo(DTYPES[type_]), np.random.default_rng(0)
    edges = np.array([info.min, info.min + 1, info.max, info.max - 1, -1, 0, 1, 2, -3])
    y = np.concatenate([np.repeat(edges, 9), rng.integers(-9, 9, 500), rng.integers(info.min, info.max, 500)])
    x = np.concatenate([np.tile(edges, 9), (y[81:] * rng.integers(0, 1 << 32, 1000) + rng.integers(-1, 2, 1000))])
    small = y[581:] >> 40, rng.integers(-(1 << 24), 1 << 24, 500)
    x = np.concatenate([x, small[0] * small[1] + rng.integers(-1, 2, 500), rng.integers(-(1 << 48), 1 << 48, 81)])
    x, y = x.astype(dtype), np.concatenate([y, small[0], edges.repeat(9)]).astype(dtype)
    text = program(op, type_, len(x))
    same_as_interpreter(text, [x, y, np.zeros_like(x)], {}, target=machine)


BY_SCALARS = """
tir.prim_func @f(
  %X: !tir.buffer<[ROWS, COLUMNS], TYPE>, %Y: !tir.buffer<[ROWS], TYPE>, %Z: !tir.buffer<[ROWS, COLUMNS], TYPE>
) {
  %rows = arith.constant ROWS : index
  %columns = arith.constant COLUMNS : index
  tir.for (%j) in (%rows) {
    %y = tir.load %Y[%j]
    tir.for vectorized (%i) in (%columns) {
      %x = tir.load %X[%j, %i]
      %z = arith.OP %x, %y : TYPE
      tir.store %z, %Z[%j, %i]
    }
  }
}"""


def by_scalars(op: str, type_: str, rows: int, columns: int) -> str:
    text = BY_SCALARS.replace("OP", op).replace("TYPE", type_)
    return text.replace("ROWS", str(rows)).replace("COLUMNS", str(columns))


@pytest.mark.sampled(12)
@EACH
@pytest.mark.parametrize("op", OPS)
def test_quotients_by_one_divisor(op: str, type_: str, machine: str, same_as_interpreter) -> None:
    """Products with a reciprocal, beside whole numbers, from the least to the greatest."""
    dtype, info, rng = DTYPES[type_], np.iinfo(DTYPES[type_]), np.random.default_rng(0)
    edges = np.array([info.min, info.min + 1, info.max, info.max - 1, info.max // 2 + 1, -1, 0, 1, 2, 3, -3, 7, 10])
    y = np.concatenate([edges, rng.integers(-99, 99, 50), rng.integers(info.min, info.max, 50)])[:, None]
    greatest = info.max // np.maximum(np.abs(np.maximum(y, 1 - info.max)), 1)
    multiples = y * rng.integers(0, greatest, (len(y), 64), endpoint=True) + rng.integers(-1, 2, (len(y), 64))
    last = y * greatest + np.arange(-3, 4)
    small = (multiples >> 16, (np.minimum(multiples, 1 << 47) // y.clip(1)) * y.clip(1) - 1)
    parts = [np.tile(edges, (len(y), 1)), multiples, -multiples, last, -last, *small]
    x = np.concatenate(parts, axis=1).astype(dtype)
    arguments = [x, y[:, 0].astype(dtype), np.zeros_like(x)]
    same_as_interpreter(by_scalars(op, type_, *x.shape), arguments, {}, target=machine)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("machine", ["host", "x86-64-v3"])
@pytest.mark.parametrize("op", OPS)
def test_all_quotients_of_bytes(op: str, machine: str, same_as_interpreter) -> None:
    bytes_ = np.arange(-128, 128).astype(np.int8)
    x = np.tile(bytes_, (256, 1))
    same_as_interpreter(by_scalars(op, "i8", *x.shape), [x, bytes_, np.zeros_like(x)], {}, target=machine)


@pytest.mark.parametrize("type_", DTYPES)
def test_one_divisor_is_inverted_once(type_: str) -> None:
    """Before the loop, whose block begins between the division and the product."""
    text = lowered(by_scalars("floordivsi", type_, 8, 4096))
    division, product = text.index(" fdiv <"), text.index("pmulh" if type_ == "i8" else "@llvm.fma")
    assert re.search(r"^b\d+:", text[division:product], re.MULTILINE)


@pytest.mark.parametrize("op", OPS)
def test_vectors_are_not_divided_lane_by_lane(op: str) -> None:
    """But what is constant becomes a product, which LLVM knows best."""
    for type_ in DTYPES:
        text = lowered(program(op, type_, 64))
        assert "fdiv <" in text
        assert not re.search(r" [su](div|rem) ", text)
        assert "fdiv" not in lowered(program(op, type_, 64, f"%y = arith.constant 7 : {type_}"))


@pytest.mark.parametrize("machine", ["x86-64-v3", "neoverse-n1"])
@pytest.mark.parametrize("op", OPS)
def test_large_numbers_are_divided_lane_by_lane(op: str, machine: str) -> None:
    """Of 64 bits, and elsewhere than on processors with AVX-512, after a branch."""
    text = lowered(program(op, "i64", 64), machine)
    blocks = [block for block in re.split(r"^b\d+:", text, flags=re.MULTILINE) if "fdiv" in block or "div <" in block]
    assert [bool(re.search(r" [su]div ", block)) for block in blocks] == [True, False]


@pytest.mark.parametrize("type_", ["i16", "i32", "i64"])
def test_quotients_are_rounded_down_at_once(type_: str) -> None:
    """Without a remainder, whose sign says which are too large; of all numbers but those of 64 bits."""
    text = lowered(by_scalars("floordivsi", type_, 8, 4096))
    assert (" mul <" in text) == (type_ == "i64")


def lowered(text: str, machine: str = "x86-64-v4") -> str:
    return llvm_text(lower_prim_funcs(list(parse(text).ops), LoweringOptions.of(Target.parse(machine))))
