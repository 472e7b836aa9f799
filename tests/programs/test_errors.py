"""What a caller reads who does it wrong: function, argument, what was expected and what came; in both modes."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import tvm_ffi
from xdsl.utils.exceptions import DiagnosticException, ParseError

from lowering import build
from lowering.parsing import parse_module
from tests.support.programs import MODES, runner
from vm_dialect import VirtualMachine

PROGRAM = """
relax.func @main[%n, %m](%x: !relax.tensor<[n, m], f32>, %w: !relax.tensor<[n], f32>)
    -> !relax.tensor<[n, m], f32> impure {
  %y = relax.exp %x
  relax.call_packed "tests.errors.observe"(%w)
  relax.return %y
}
"""


def f32(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


@cache
def main(mode: str) -> Callable[..., object]:
    tvm_ffi.register_global_func("tests.errors.observe", lambda tensor: None, override=True)
    return VirtualMachine(build(parse_module(PROGRAM), mode=mode))["main"]


@pytest.fixture(params=["bytecode", "native"])
def function(request: pytest.FixtureRequest) -> Callable[..., object]:
    return main(request.param)


def misaligned(size: int) -> np.ndarray:
    return np.frombuffer(bytearray(4 * size + 1), np.uint8)[1:].view(np.float32)


CASES = {
    "too few arguments": ((f32(2, 3),), TypeError, r"main: expected 2 arguments \(x, w\), got 1"),
    "too many arguments": ((f32(2, 3), f32(2), f32(2)), TypeError, r"main: expected 2 arguments \(x, w\), got 3"),
    "no tensor": ((f32(2, 3), 4), TypeError, r"main: argument #1 \(w\): expected a tensor, got int"),
    "wrong rank": ((f32(2), f32(2)), TypeError, r"main: argument #0 \(x\): expected rank 2, got 1"),
    "wrong dtype": (
        (f32(2, 3).astype(np.int32), f32(2)),
        TypeError,
        r"main: argument #0 \(x\): expected dtype float32, got int32",
    ),
    "arguments that disagree": (
        (f32(2, 3), f32(5)),
        ValueError,
        r"main: argument #1 \(w\) dimension 0: expected n = 2 \(from argument #0 \(x\) dimension 0\), got 5",
    ),
    "written, not contiguous": (
        (f32(2, 3), f32(4)[::2]),
        ValueError,
        r"main: argument #1 \(w\): is written, so that it cannot be copied, but has gaps between its elements: ",
    ),
    "written, not aligned": (
        (f32(2, 3), misaligned(2)),
        ValueError,
        r"main: argument #1 \(w\): is written, so that it cannot be copied, but is not aligned to its elements: ",
    ),
}


CHECKS = """
relax.func @result[%n](%x: !relax.object, %y: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  relax.return %x
}
relax.func private @callee[%n](%x: !relax.tuple<!relax.tensor<[n], f32>, !relax.prim<i64, n>>) -> !relax.object {
  relax.return %x
}
relax.func @call(%x: !relax.object, %y: !relax.tensor<[4], f32>) -> !relax.object {
  %0 = relax.tuple(%y, %x)
  %1 = relax.call @callee(%0) : !relax.object
  relax.return %1
}
relax.func @carried(%x: !relax.tensor<[_], f32>, %y: !relax.tensor<[3], f32>) -> !relax.object {
  %zero = relax.prim 0
  %two = relax.prim 2
  %0 = relax.for %i = %zero to %two [%m in [0, 9]](%a: !relax.tensor<[m], f32> = %y) {
    %1 = relax.concat %a, %x axis = 0
    relax.yield %1
  }
  relax.return %0
}
"""


def test_checks_inside_of_programs_read_alike():
    """What the interpreter says, compiled programs say, too."""
    module = parse_module(CHECKS)
    for name, args, message in (
        ("result", (f32(3), f32(4)), "result: result at <text>:3:3 dimension 0: expected n = 4, got 3"),
        ("call", (5, f32(4)), "argument #0 (x) field 1: expected n = 4 (from argument #0 (x) field 0 dimension 0)"),
        ("carried", (f32(5), f32(3)), "carried: carried value #0 at <text>:16:3 dimension 0: expected m in the range"),
    ):
        for mode in MODES:
            with pytest.raises(ValueError, match=re.escape(message)):
                runner(module, name, mode)(*args)


WIDER = """
relax.func @for(%x: !relax.tensor<[], i64>, %y: !relax.tensor<*, _>) -> !relax.object {
  %zero = relax.prim 0
  %two = relax.prim 2
  %0 = relax.for %i = %zero to %two (%a: !relax.tensor<[], i64> = %x) {
    relax.yield %y
  }
  relax.return %0
}
relax.func @while(%x: !relax.tensor<[], i64>, %y: !relax.object) -> !relax.object {
  %four = relax.constant dense<4> : tensor<i64>
  %0 = relax.while (%a: !relax.tensor<[], i64> = %x) {
    %less = relax.less %a, %four
    relax.yield %less
  } do (%a) {
    relax.yield %y
  }
  relax.return %0
}
relax.func @fields(%x: !relax.tensor<[], i64>, %y: !relax.object) -> !relax.object {
  %zero = relax.prim 0
  %two = relax.prim 2
  %first = relax.tuple(%x, %x)
  %0 = relax.for %i = %zero to %two (%a: !relax.tuple<!relax.tensor<[], i64>, !relax.tensor<[], i64>> = %first) {
    %next = relax.tuple(%x, %y)
    relax.yield %next
  }
  relax.return %0
}
relax.func @initial(%x: !relax.tensor<[], i64>, %y: !relax.object) -> !relax.object {
  %zero = relax.prim 0
  %two = relax.prim 2
  %0 = relax.for %i = %zero to %two (%a: !relax.tensor<[], i64> = %y) {
    relax.yield %x
  }
  relax.return %0
}
"""


@pytest.mark.parametrize("mode", MODES)
def test_loops_check_the_kinds_of_values_of_wider_types(mode: str):
    """A loop takes what may be of the carried type; whether it is shows when the value is carried."""
    module = parse_module(WIDER)
    for name in ("for", "while", "fields", "initial"):
        function = runner(module, name, mode)
        result = function(np.array(1), np.array(5))
        assert np.array_equal(
            np.ravel(np.array(result)), {"for": [5], "while": [5], "fields": [1, 5], "initial": [1]}[name]
        )
        for wrong in (np.array(5, np.int32), np.array([5])):
            with pytest.raises((TypeError, ValueError), match=f"{name}: carried value #0 at <text>:.*: expected"):
                function(np.array(1), wrong)


@pytest.mark.parametrize(("arguments", "kind", "message"), CASES.values(), ids=CASES)
def test_arguments(
    function: Callable[..., object], arguments: tuple[object, ...], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        function(*arguments)
    np.testing.assert_allclose(np.from_dlpack(function(f32(2, 3), f32(2))), np.exp(f32(2, 3)), rtol=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_zero_sizes_work(function: Callable[..., object], shape: tuple[int, int]) -> None:
    assert np.from_dlpack(function(f32(*shape), f32(shape[0]))).shape == shape


@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_an_exception_of_a_packed_function_reaches_the_caller(mode: str) -> None:
    def refuse(tensor: object) -> None:
        raise LookupError("nothing here")

    tvm_ffi.register_global_func("tests.errors.refuse", refuse, override=True)
    module = parse_module(PROGRAM.replace("tests.errors.observe", "tests.errors.refuse"))
    function = VirtualMachine(build(module, mode=mode))["main"]
    with pytest.raises(LookupError, match="nothing here"):
        function(f32(2, 3), f32(2))


@pytest.mark.parametrize("mode", ["bytecode", "native"])
def test_an_unknown_packed_function_is_named(mode: str) -> None:
    module = parse_module(PROGRAM.replace("tests.errors.observe", "tests.errors.nobody"))
    with pytest.raises(ValueError, match=r'packed function "tests.errors.nobody" is not registered: use'):
        VirtualMachine(build(module, mode=mode))["main"](f32(2, 3), f32(2))


def test_malformed_text_points_at_the_place() -> None:
    with pytest.raises(ParseError, match=r"expected a relax type"):
        parse_module("relax.func @f(%x: f32) -> !relax.object {\n  relax.return %x\n}", "broken.mlir")


def test_an_unbound_symbol_is_an_error_at_its_use() -> None:
    module = parse_module("""
relax.func @f(%x: !relax.tensor<[_], f32>) -> !relax.object {
  %0 = relax.call_pure_packed "g"(%x) : !relax.tensor<[q], f32>
  relax.return %0
}""")
    with pytest.raises(DiagnosticException, match=r"symbol q"):
        build(module)


def test_an_impure_op_in_a_dataflow_region_is_named_with_its_reason() -> None:
    module = parse_module("""
relax.func @f(%x: !relax.object) -> !relax.object impure {
  %r = relax.dataflow {
    %0 = relax.call_packed "g"(%x) : !relax.object
    relax.output %0
  }
  relax.return %r
}""")
    with pytest.raises(DiagnosticException, match=r'relax.call_packed.*calls the packed function "g"'):
        build(module)
