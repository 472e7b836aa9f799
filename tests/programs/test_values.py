"""Values that are no tensors, as arguments and results in every mode: strings, dtypes, null, prims, shapes, tuples."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm_ffi

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
from relax_dialect.interpreter.runtime_values import DType
from tests.support.programs import MODES
from vm_dialect import VirtualMachine

PROGRAM = """
relax.func @same(%x: !relax.object) -> !relax.object {
  relax.return %x
}
relax.func @through(%c: !relax.prim<i1>, %x: !relax.object) -> !relax.object impure {
  %f = relax.closure (%y: !relax.object) -> !relax.object {
    %t = relax.tuple(%x, %y)
    relax.return %t
  }
  %null = relax.null
  %r = relax.if %c {
    %0 = relax.call_closure %f(%x)
    relax.yield %0
  } else {
    %1 = relax.call_packed "tests.values.echo"(%null, %x) : !relax.object
    relax.yield %1
  } : !relax.object
  relax.return %r
}
relax.func @made() -> !relax.object {
  %text = relax.string "a \\"text\\", é"
  %type = relax.dtype bf16
  %null = relax.null
  %int = relax.prim -9000000000
  %float = relax.prim f64 0.25
  %bool = relax.prim i1 true
  %t = relax.tuple(%text, %type, %null, %int, %float, %bool)
  relax.return %t
}
relax.func @prims[%n](%n0: !relax.prim<i64, n>, %f: !relax.prim<f32>, %b: !relax.prim<i1>, %i: !relax.prim<i32>)
    -> !relax.tuple<!relax.prim<i64, 2 * n>, !relax.prim<f32>, !relax.object, !relax.prim<i32>, !relax.shape<[n, 4]>> {
  %twice = relax.prim 2 * n
  %s = relax.shape [n, 4]
  %t = relax.tuple(%twice, %f, %b, %i, %s)
  relax.return %t
}
"""
EACH_MODE = pytest.mark.parametrize("mode", MODES)


def function(mode: str, name: str) -> Callable[..., Any]:
    tvm_ffi.register_global_func("tests.values.echo", lambda null, value: [null, value], override=True)
    module = parse_module(PROGRAM)
    if mode == "interpret":
        return lambda *args: run(module, name, args)
    return VirtualMachine(build(module, mode="native" if mode == "native" else "bytecode"))[name]


def plain(value: Any) -> object:
    """A value of any mode as one of Python: dtypes by name, shapes and tuples as tuples, tensors as lists."""
    if isinstance(value, DType | tvm_ffi.dtype):
        return f"dtype {str(value.name if isinstance(value, DType) else value).replace('bf16', 'bfloat16')}"
    if isinstance(value, tvm_ffi.Tensor):
        return np.from_dlpack(value).tolist()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tvm_ffi.Shape | tvm_ffi.Array | tuple | list):
        return tuple(map(plain, value))
    return value


VALUES = (None, True, -3, 1.5, "", "text", tvm_ffi.dtype("bfloat16"), tvm_ffi.Shape((2, 0)), (), (1, ("a", None), 2.5))


@EACH_MODE
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_pass_through(mode: str, value: object):
    result = function(mode, "same")(value)
    assert plain(result) == plain(value)
    assert type(plain(result)) is type(plain(value))


@EACH_MODE
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_pass_through_closures_and_packed_functions(mode: str, value: object):
    through = function(mode, "through")
    assert plain(through(True, value)) == (plain(value), plain(value))
    assert plain(through(False, value)) == (None, plain(value))


@EACH_MODE
def test_values_that_are_made(mode: str):
    expected = ('a "text", é', "dtype bfloat16", None, -9_000_000_000, 0.25, True)
    assert plain(function(mode, "made")()) == expected


@EACH_MODE
def test_prims(mode: str):
    assert plain(function(mode, "prims")(5, 0.5, False, -2)) == (10, 0.5, False, -2, (5, 4))


@EACH_MODE
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("5", 0.5, False, -2), r"prims: argument #0 \(n0\): expected an int, got string"),
        ((5, "x", False, -2), r"prims: argument #1 \(f\): expected a float, got string"),
        ((5, 0.5, 3, -2), r"prims: argument #2 \(b\): expected a bool, got int"),
        ((5, 0.5, True, None), r"prims: argument #3 \(i\): expected an int, got null"),
    ],
    ids=repr,
)
def test_prims_of_another_kind(mode: str, arguments: tuple[object, ...], message: str):
    with pytest.raises(TypeError, match=message):
        function(mode, "prims")(*arguments)
