"""What the interpreter refuses: accesses out of range, failed assertions, arguments that do not fit."""

import numpy as np
import pytest

from tests.support.tir import run_text
from tir_dialect.interpreter import OutOfRangeError, UnsupportedOpError

LOAD = """
tir.prim_func @f[%n](%X: !tir.buffer<[n, 3], f32>, %i: i64, %j: i64) {
  %a = arith.index_cast %i : i64 to index
  %b = arith.index_cast %j : i64 to index
  %x = tir.load %X[%a, %b]
  tir.store %x, %X[%b, %a]
}
"""


@pytest.mark.parametrize(
    ("i", "j", "message"),
    [
        (4, 0, "'tir.load' of buffer %X: index 0 is 4, expected 0 <= index < 4"),
        (0, -1, "'tir.load' of buffer %X: index 1 is -1, expected 0 <= index < 3"),
        (3, 1, "'tir.store' of buffer %X: index 1 is 3, expected 0 <= index < 3"),
    ],
)
def test_accesses_out_of_range(i, j, message):
    with pytest.raises(OutOfRangeError, match=message):
        run_text(LOAD, np.zeros((4, 3), np.float32), i, j)


def test_iterator_out_of_its_domain():
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %last: i64) {
      %i = arith.index_cast %last : i64 to index
      tir.block "copy" (%vi = spatial %i in %n) {
        %x = tir.load %X[%vi]
        tir.store %x, %X[%vi]
      }
    }
    """
    run_text(text, np.zeros(4, np.float32), 3)
    with pytest.raises(OutOfRangeError, match=r"'tir.block' \"copy\": iterator %vi is 4, expected 0 <= %vi < 4"):
        run_text(text, np.zeros(4, np.float32), 4)


def test_sizes_that_leave_a_buffer_are_refused_before_anything_is_written():
    text = """
    tir.prim_func @f[%n, %m](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[m], f32>) {
      tir.for (%i) in (%m) {
        tir.block "copy" (%vi = spatial %i in %m) {
          %x = tir.load %X[%vi]
          tir.store %x, %Y[%vi]
        }
      }
    }
    """
    run_text(text, np.ones(4, np.float32), np.zeros(3, np.float32))
    written = np.zeros(5, np.float32)
    with pytest.raises(ValueError, match=r"f: a 'tir.load' whose index 0 of %X reaches m - 1, expected less than n"):
        run_text(text, np.ones(4, np.float32), written)
    assert not written.any()


def test_view_out_of_range():
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>, %i: i64) {
      %c2 = arith.constant 2 : index
      %a = arith.index_cast %i : i64 to index
      %b = arith.addi %a, %c2 : index
      %R = tir.match_buffer %X[%a to %b] : !tir.buffer<[2], f32>
    }
    """
    run_text(text, np.zeros(4, np.float32), 2)
    with pytest.raises(OutOfRangeError, match="dimension 0 covers 3 to 5 of 4"):
        run_text(text, np.zeros(4, np.float32), 3)


def test_assertion():
    text = """
    tir.prim_func @f[%n](%X: !tir.buffer<[n], f32>) {
      %c4 = arith.constant 4 : index
      %ok = arith.cmpi sle, %n, %c4 : index
      tir.assert %ok, "at most 4 elements"
    }
    """
    run_text(text, np.zeros(4, np.float32))
    with pytest.raises(ValueError, match="at most 4 elements"):
        run_text(text, np.zeros(5, np.float32))


SIGNATURE = """
tir.prim_func @f[%n, %m](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n + 1], f32>, %s: i32) {
}
"""
ONE = np.zeros(1, np.float32)
TWO = np.zeros(2, np.float32)


@pytest.mark.parametrize(
    ("args", "symbols", "error", "message"),
    [
        ((ONE, TWO), {"m": 1}, TypeError, "f: expected 3 arguments, got 2"),
        ((ONE, TWO, 3), {"m": 1, "q": 1}, ValueError, "f: q is not a symbol of the function"),
        ((ONE, TWO, 3), {}, ValueError, "f: symbol m cannot be bound from the arguments, pass its value"),
        ((TWO, TWO, 3), {"m": 1}, ValueError, r"f: argument #1 \(B\) dimension 0: .*"),
        ((ONE, TWO, 3), {"m": 1, "n": 2}, ValueError, r"f: argument #0 \(A\) dimension 0: .*"),
        (
            (ONE, TWO[None], 3),
            {"m": 1},
            TypeError,
            r"f: argument #1 \(B\) expected rank 1 and dtype float32, got rank 2",
        ),
        (
            (ONE, TWO.astype(int), 3),
            {"m": 1},
            TypeError,
            r"expected rank 1 and dtype float32, got rank 1 and dtype int64",
        ),
        ((ONE, 2.0, 3), {"m": 1}, TypeError, r"f: argument #1 \(B\) expected an array, got float"),
        ((ONE, [1.0, 2.0], 3), {"m": 1}, TypeError, r"f: argument #1 \(B\) expected an array, got list"),
        ((ONE, TWO, TWO), {"m": 1}, TypeError, r"f: argument #2 \(s\) expected a number, got an array"),
    ],
)
def test_arguments_that_do_not_fit(args, symbols, error, message):
    with pytest.raises(error, match=message):
        run_text(SIGNATURE, *args, symbols=symbols)


def test_symbols_may_be_given():
    run_text(SIGNATURE, ONE, TWO, 3, symbols={"m": 1, "n": 1})


SHIFT = """
tir.prim_func @shift[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {
  tir.for (%i) in (%n) {
    %x = tir.load %X[%i]
    tir.store %x, %Y[%i]
  }
}
"""
"""As `tests/lowering/tir_to_llvm/packed_entry/test_packed_entry.py` has it for native code."""


def test_memory_that_is_written_and_read_elsewhere():
    memory = np.arange(8, dtype=np.float32)
    before = memory.copy()
    for first, second in ((memory, memory), (memory[:5], memory[1:6]), (memory[4:], memory[1:5])):
        with pytest.raises(ValueError, match=r"shift: argument #1 \(Y\): overlaps argument #0 \(X\): pass a copy"):
            run_text(SHIFT, first, second)
        np.testing.assert_array_equal(memory, before)
    run_text(SHIFT, memory[:4], memory[4:])
    np.testing.assert_array_equal(memory[4:], before[:4])
    run_text(SHIFT.replace(", f32>) {", ", f32>) may_alias {"), memory[:5], memory[1:6])
    run_text(SHIFT.replace("store %x, %Y", "store %x, %X"), memory[:0], memory[3:3])


def test_a_call_whose_arguments_overlap():
    text = """
    tir.prim_func @main[%n](%A: !tir.buffer<[n], f32>) {
      tir.call @shift[%n](%A, %A)
    }
    """
    run_text(text + SHIFT, np.zeros(0, np.float32))
    with pytest.raises(ValueError, match=r"shift: argument #1 \(Y\): overlaps argument #0 \(X\): pass a copy"):
        run_text(text + SHIFT, np.zeros(4, np.float32))


def test_other_ops_are_refused():
    text = """
    tir.prim_func @f(%X: !tir.buffer<[1], f32>) {
      "test.op"() : () -> ()
    }
    """
    with pytest.raises(UnsupportedOpError, match=r"'test\.op' is not interpreted"):
        run_text(text, ONE)
