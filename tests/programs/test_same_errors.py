"""Wrong calls are the same error in every mode: the same kind, in the same words."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import tvm_ffi
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.parsing import parse_module
from relax_dialect.interpreter import run as interpret
from tests.support.programs import MODES, as_arguments
from vm_dialect import VirtualMachine

CALL = "!relax.func<* -> !relax.tensor<[3], f32>, pure>"
PROGRAM = f"""
relax.func @signature[%n](%x: !relax.tensor<[n, 4], f32>, %s: !relax.shape<[n, 2]>, %p: !relax.prim<i64, n>,
                          %t: !relax.tuple<!relax.tensor<[n], i64>, !relax.prim<f32>>) -> !relax.object {{
  relax.return %x
}}
relax.func @scalars(%c: !relax.prim<i1>, %d: !relax.prim<i8>, %u: !relax.prim<ui64>, %e: !relax.prim<f64>)
    -> !relax.object {{
  %r = relax.tuple(%c, %d, %u, %e)
  relax.return %r
}}
relax.func @function(%f: !relax.func<(!relax.tensor<[_], f32>) -> !relax.tensor<[2], f32>, pure>,
                     %x: !relax.tensor<[_], f32>) -> !relax.object {{
  %0 = relax.call_closure %f(%x)
  relax.return %0
}}
relax.func @tensor(%o: !relax.object) -> !relax.object {{
  %0, %n = relax.match_cast %o : !relax.tensor<[2, n], f32> binds [n in [2, 8]]
  relax.return %0
}}
relax.func @shape(%o: !relax.object) -> !relax.object {{
  %0, %n = relax.match_cast %o : !relax.shape<[2 * n, n]> binds [n]
  relax.return %n
}}
relax.func @number(%o: !relax.object) -> !relax.object {{
  %0, %n = relax.match_cast %o : !relax.prim<i64, 3 * n> binds [n]
  relax.return %n
}}
relax.func @fields(%o: !relax.object) -> !relax.object {{
  %0, %n = relax.match_cast %o : !relax.tuple<!relax.tuple<>, !relax.prim<i64, n>, !relax.tensor<[n], _>> binds [n]
  relax.return %n
}}
relax.func private @callee[%n](%x: !relax.tensor<[n, 3], f32>) -> !relax.tensor<[n, 3], f32> {{
  relax.return %x
}}
relax.func @by_name(%x: !relax.tensor<*, _>) -> !relax.object {{
  %0 = relax.call @callee(%x) : !relax.object
  relax.return %0
}}
relax.func private @opaque(%t: !relax.object) -> {CALL} {{
  %0 = relax.match_cast %t : {CALL}
  relax.return %0
}}
relax.func @closure(%x: !relax.object, %y: !relax.object) -> !relax.object {{
  %f = relax.closure [%n](%a: !relax.tensor<[n], f32>, %b: !relax.tensor<[2 * n], f32>) -> !relax.tensor<[_], f32> {{
    %0 = relax.concat %a, %b axis = 0
    relax.return %0
  }}
  %g = relax.call @opaque(%f) : {CALL}
  %r = relax.call_closure %g(%x, %y)
  relax.return %r
}}
relax.func @one_too_few(%x: !relax.object) -> !relax.object {{
  %f = relax.closure (%a: !relax.object, %b: !relax.object) -> !relax.object {{
    relax.return %a
  }}
  %g = relax.call @opaque(%f) : {CALL}
  %r = relax.call_closure %g(%x)
  relax.return %r
}}
relax.func @from_outside[%n](%x: !relax.tensor<[n], f32>, %p: !relax.prim<i64>) -> !relax.object impure {{
  %f = relax.closure (%a: !relax.tensor<[n], f32>, %b: !relax.tensor<[_], f32>) -> !relax.tensor<[_], f32> {{
    %0 = relax.add %a, %x
    %1 = relax.concat %0, %b axis = 0
    relax.return %1
  }}
  %r = relax.call_packed "tests.same_errors.call"(%f, %p) : !relax.object
  relax.return %r
}}
relax.func @pair[%n](%x: !relax.tensor<[n], f32>, %a: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {{
  %0 = relax.add %a, %x
  relax.return %0
}}
relax.func @of_a_function[%n](%x: !relax.tensor<[n], f32>, %p: !relax.prim<i64>) -> !relax.object impure {{
  %f = relax.make_closure @pair(%x)
  %r = relax.call_packed "tests.same_errors.call"(%f, %p) : !relax.object
  relax.return %r
}}
relax.func private @hidden[%n](%x: !relax.tensor<[n], f32>, %a: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {{
  %0 = relax.add %a, %x
  relax.return %0
}}
relax.func @of_a_private_function[%n](%x: !relax.tensor<[n], f32>, %p: !relax.prim<i64>) -> !relax.object impure {{
  %f = relax.make_closure @hidden(%x)
  %r = relax.call_packed "tests.same_errors.call"(%f, %p) : !relax.object
  relax.return %r
}}
relax.func @loop(%k: !relax.prim<i64>, %s: !relax.prim<i64>) -> !relax.object {{
  %lo = relax.prim 0
  %r = relax.for %i = %lo to %k step %s (%acc: !relax.prim<i64> = %lo) {{
    relax.yield %i
  }}
  relax.return %r
}}
relax.func @sizes(%p: !relax.prim<i64>) -> !relax.object {{
  %q, %n = relax.match_cast %p : !relax.prim<i64, n> binds [n]
  %s = relax.shape [n, n, n - 1]
  %x = relax.zeros %s dtype = f32
  relax.return %x
}}
relax.func @division(%p: !relax.prim<i64>) -> !relax.object {{
  %q, %n = relax.match_cast %p : !relax.prim<i64, n> binds [n]
  %0 = relax.prim floordiv(7, n)
  relax.return %0
}}
tir.prim_func private @copy[%n](%A: !tir.buffer<[n], f32>, %B: !tir.buffer<[n], f32>) {{
  tir.for (%i) in (%n) {{
    tir.block "copy" (%v = spatial %i in %n) {{
      %a = tir.load %A[%v]
      tir.store %a, %B[%v]
    }}
  }}
}}
relax.func @storage[%k, %m, %n](%p: !relax.prim<i64, k>, %at: !relax.prim<i64, m>, %x: !relax.tensor<[n], f32>)
    -> !relax.tensor<[n], f32> impure {{
  %s = relax.alloc_storage size 4 * k - 16
  %t = relax.storage_tensor %s at m : !relax.tensor<[n], f32>
  relax.call_kernel @copy(%x, %t) sizes [n]
  %0 = relax.add %t, %x
  relax.return %0
}}
relax.func @packed(%x: !relax.object) -> !relax.tensor<[2], f32> impure {{
  %0 = relax.call_packed "tests.same_errors.identity"(%x) : !relax.tensor<[2], f32>
  relax.return %0
}}
relax.func @assertion(%c: !relax.tensor<[], i1>, %n: !relax.prim<i64>) -> !relax.object impure {{
  relax.assert %c, "{{}} of {{}}"(%n, %n)
  relax.return %n
}}
"""


def f32(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


RIGHT = (f32(3, 4), tvm_ffi.Shape((3, 2)), 3, (np.zeros(3, np.int64), 0.5))


def but(index: int, argument: object) -> tuple[object, ...]:
    """Arguments of `@signature` of which one is wrong."""
    return (*RIGHT[:index], argument, *RIGHT[index + 1 :])


def identity(value: object) -> object:
    return value


GIVEN: list[tuple[object, ...]] = [
    (),
    (1, 2, 3),
    (f32(3), f32(1)),
    (f32(2), 5),
    (f32(3),),
    (None,),
    (np.zeros(2, np.int64),),
]
"""Arguments that `call` gives to a function of `[2]` and `[_]`, or of `[2]`; all are wrong for either."""


def call(function: Callable[..., object], index: int) -> object:
    """Calls a closure of a program from outside."""
    return function(*as_arguments(GIVEN[index]))


WRONG: dict[str, list[tuple[object, ...]]] = {
    "signature": [
        (),
        RIGHT[:3],
        (*RIGHT, 1),
        but(0, None),
        but(0, "x"),
        but(0, f32(3)),
        but(0, f32(3, 5)),
        but(0, np.zeros((3, 4), np.int64)),
        but(1, tvm_ffi.Shape((4, 2))),
        but(1, tvm_ffi.Shape((3, 2, 1))),
        but(1, (3, 2)),
        but(2, 4),
        but(2, 3.0),
        but(2, True),
        but(3, RIGHT[3][:1]),
        but(3, (np.zeros(2, np.int64), 0.5)),
        but(3, (None, 0.5)),
        but(3, (np.zeros(3, np.int64), True)),
    ],
    "scalars": [
        (1, 2, 3, 4.0),
        (True, 128, 3, 4.0),
        (True, -129, 3, 4.0),
        (True, 2, -1, 4.0),
        (True, 2, 1 << 63, 4.0),
        (True, 2, 3, "4"),
    ],
    "function": [(5, f32(2)), (None, f32(2)), (identity, f32(3)), (lambda _: 5, f32(2)), (lambda: 0, f32(2))],
    "tensor": [(3,), (None,), (f32(2),), (f32(3, 3),), (f32(2, 9),), (f32(2, 1),), (np.zeros((2, 3), np.int32),)],
    "shape": [(tvm_ffi.Shape(each),) for each in ((5, 2), (4, 3), (4,))] + [((4, 2),)],
    "number": [(8,), (-3,), (2.0,), (False,)],
    "fields": [(((), 2, f32(3)),), (((1,), 2, f32(2)),), (((), 2),), (((), -2, f32(2)),), ((None, 2, f32(2)),)],
    "by_name": [(f32(2),), (f32(2, 4),), (np.zeros((2, 3), np.int32),)],
    "closure": [(f32(2), f32(4)), (f32(2), f32(3)), (None, f32(2))],
    "one_too_few": [(f32(2),)],
    "from_outside": [(f32(2), index) for index in range(len(GIVEN))],
    "of_a_function": [(f32(2), index) for index in range(len(GIVEN))],
    "of_a_private_function": [(f32(2), index) for index in range(len(GIVEN))],
    "loop": [(5, 0)],
    "sizes": [(0,), (-1,), (2**31,), (2**62,)],
    "division": [(0,)],
    "storage": [(3, 0, f32(1)), (6, 8, f32(1)), (6, 0, f32(3)), (6, 2, f32(1))],
    "packed": [(f32(3),), (3,), (None,)],
    "assertion": [(np.array(False), 3)],
}

DEFERRED = """
relax.func @never(%x: !relax.tensor<*, f32>, %y: !relax.tensor<[2, 3], f32>) -> !relax.object {
  %0 = relax.expand_dims %x axes = [0]
  %1 = relax.concat %0, %y axis = 1
  relax.return %1
}
relax.func @product(%x: !relax.tensor<*, _>, %y: !relax.tensor<[2, 3], f32>) -> !relax.object {
  %0 = relax.matmul %x, %y
  relax.return %0
}
relax.func @unknown_sizes(%x: !relax.tensor<[_, 3], f32>, %y: !relax.tensor<[2, 3], f32>) -> !relax.object {
  %0 = relax.add %x, %y
  relax.return %0
}
relax.func @rank_of_values(%x: !relax.tensor<*, _>, %y: !relax.tensor<[2, 3], f32>) -> !relax.object {
  %0 = relax.squeeze %x
  %1 = relax.matmul %0, %y
  relax.return %1
}
"""
UNFIT: dict[str, list[tuple[object, type[Exception]]]] = {
    "never": [(f32(3), ValueError)],
    "unknown_sizes": [(f32(4, 3), ValueError)],
    "product": [(f32(2, 3), ValueError), (f32(), TypeError), (np.zeros((2, 2), np.int64), TypeError)],
    "rank_of_values": [(f32(1, 3), ValueError), (f32(1), TypeError), (np.zeros((1, 2), np.int64), TypeError)],
}


@cache
def functions(program: str) -> dict[str, Callable[..., object]]:
    """For each mode a function that calls a function of the program by name."""
    tvm_ffi.register_global_func("tests.same_errors.identity", identity, override=True)
    tvm_ffi.register_global_func("tests.same_errors.call", call, override=True)
    module = parse_module(program)
    return {mode: _caller(module, mode) for mode in MODES}


def _caller(module: ModuleOp, mode: str) -> Callable[..., object]:
    if mode == "interpret":
        return lambda name, *arguments: interpret(module, name, arguments)
    machine = VirtualMachine(build(module.clone(), mode=mode))
    return lambda name, *arguments: machine[name](*arguments)


def error_of(call: Callable[..., object], name: str, arguments: tuple[object, ...]) -> Exception:
    """What a wrong call raises."""
    with pytest.raises((TypeError, ValueError, MemoryError)) as caught:
        call(name, *map(converted, arguments))
    return caught.value


def converted(argument: object) -> object:
    """An argument with tensors of tvm-ffi; fields of tuples too."""
    if isinstance(argument, tuple) and not isinstance(argument, tvm_ffi.Shape):
        return tuple(map(converted, argument))
    return as_arguments([argument])[0]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_read_alike(name: str):
    for arguments in WRONG[name]:
        found = [error_of(call, name, arguments) for call in functions(PROGRAM).values()]
        kinds, texts = {type(error) for error in found}, {str(error).partition("\n")[0] for error in found}
        assert len(kinds) == 1, f"{arguments}: {found}"
        assert len(texts) == 1, f"{arguments}: {texts}"


def test_captured_values_are_no_arguments():
    for mode, run in functions(PROGRAM).items():
        too_few, too_many, wrong, second, *_ = [
            str(error_of(run, "from_outside", (f32(2), index))) for index in range(len(GIVEN))
        ]
        assert "from_outside_f: expected 2 arguments (a, b), got 0" in too_few, mode
        assert "from_outside_f: expected 2 arguments (a, b), got 3" in too_many, mode
        assert "from_outside_f: argument #0 (a) dimension 0: expected n = 2, got 3" in wrong, mode
        assert "from_outside_f: argument #1 (b): expected a tensor, got int" in second, mode


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", UNFIT)
def test_operators_that_do_not_fit_read_alike(name: str):
    """Compiled code is made for all sizes; of those that the program does not name, only numbers are said."""
    for argument, kind in UNFIT[name]:
        errors = [error_of(call, name, (argument, f32(2, 3))) for call in functions(DEFERRED).values()]
        assert {type(error) for error in errors} == {kind}, (name, argument)
        assert len({str(error).partition("\n")[0] for error in errors}) == 1, errors
