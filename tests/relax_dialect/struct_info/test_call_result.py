"""What calls return, derive functions, and partial application."""

from collections.abc import Sequence
from typing import cast

import pytest

from relax_dialect.struct_info.match import (
    Mismatch,
    Verdict,
    call_result,
    open_function,
    partial_application,
    register_derive_function,
)
from relax_dialect.struct_info.types import StructInfo
from tests.support.struct_info import func, info
from tir_dialect.dims import Prover

CALLEE = "[n, m](!relax.tensor<[n, m], f32>, !relax.tensor<[m], f32>) -> !relax.tensor<[m, 2 * n], f32>"


@pytest.mark.parametrize(
    ("arguments", "ret", "verdict"),
    [
        (("tensor<[4, 3], f32>", "tensor<[3], f32>"), "tensor<[3, 8], f32>", Verdict.YES),
        (("tensor<[m, n], f32>", "tensor<[n], f32>"), "tensor<[n, 2 * m], f32>", Verdict.YES),
        (("tensor<[k, 3], f32>", "tensor<[k], f32>"), "tensor<[3, 2 * k], f32>", Verdict.RUNTIME),
        # What only the run time knows is unknown in the result; there is nothing to check about it.
        (("tensor<[_, 3], f32>", "tensor<[3], f32>"), "tensor<[3, _], f32>", Verdict.YES),
        (("object", "object"), "tensor<[_, _], f32>", Verdict.RUNTIME),
    ],
)
def test_symbols_are_put_into_the_result(arguments: Sequence[str], ret: str, verdict: Verdict):
    outcome = call_result(func(CALLEE), [info(argument) for argument in arguments])
    assert (outcome.ret, outcome.verdict) == (info(ret), verdict)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tensor<[4, 3], f32>",), "expected 2 values, got 1"),
        (("tensor<[4, 3], f32>", "tensor<[4], f32>"), "#1 dimension 0: 4 does not match m with m = 3"),
        (("tensor<[4, 3], f32>", "shape<[3]>"), "#1: expected"),
    ],
)
def test_wrong_arguments(arguments: Sequence[str], message: str):
    with pytest.raises(Mismatch, match=message):
        call_result(func(CALLEE), [info(argument) for argument in arguments])


def test_opaque_callee_returns_what_it_declares():
    outcome = call_result(func("* -> !relax.shape<*>"), [info("object")] * 3)
    assert (outcome.ret, outcome.verdict, outcome.match) == (info("shape<*>"), Verdict.YES, None)


def _first(arguments: Sequence[StructInfo]) -> StructInfo:
    return arguments[0]


def test_derive_function():
    register_derive_function("tests.first", _first)
    register_derive_function("tests.first", _first)
    callee = func('* derive "tests.first" -> !relax.object, pure')
    assert call_result(callee, [info("tensor<[n], f32>"), info("object")]).ret == info("tensor<[n], f32>")
    with pytest.raises(ValueError, match="registered already"):
        register_derive_function("tests.first", lambda arguments: arguments[-1])


def test_derive_function_fails():
    register_derive_function("tests.second", lambda arguments: arguments[1])
    register_derive_function("tests.nothing", lambda arguments: cast("StructInfo", None))
    for name, message in (("second", "tests.second failed: IndexError: "), ("nothing", "to give a type, got NoneType")):
        with pytest.raises(ValueError, match=message):
            call_result(func(f'* derive "tests.{name}" -> !relax.object, pure'), [info("object")])


def test_derive_function_is_not_registered():
    with pytest.raises(ValueError, match="is not registered"):
        call_result(func('* derive "tests.none" -> !relax.object, pure'), [])


@pytest.mark.parametrize(
    ("captured", "expected"),
    [
        ((), CALLEE + ", pure"),
        (("tensor<[4, k], f32>",), "(!relax.tensor<[k], f32>) -> !relax.tensor<[k, 8], f32>, pure"),
        (("tensor<[4, 3], f32>", "tensor<[3], f32>"), "() -> !relax.tensor<[3, 8], f32>, pure"),
        # A parameter that depends on what only the run time knows cannot be written.
        (("tensor<[4, _], f32>",), "* -> !relax.tensor<[_, 8], f32>, pure"),
    ],
)
def test_partial_application(captured: Sequence[str], expected: str):
    assert partial_application(func(CALLEE), [info(each) for each in captured]) == func(expected)


def test_partial_application_leaves_symbols_that_nothing_determines():
    callee = func("[n, m](!relax.tensor<[n + m], f32>, !relax.tensor<[n, m], f32>) -> !relax.prim<i64, m>")
    rest = partial_application(callee, [info("tensor<[9], f32>")])
    assert rest == func("[n, m](!relax.tensor<[n, m], f32>) -> !relax.prim<i64, m>")


def test_partial_application_of_wrong_values():
    with pytest.raises(Mismatch, match="#0: expected"):
        partial_application(func(CALLEE), [info("shape<*>")])


def test_open_function_renames_what_it_binds():
    opened = open_function(
        func("[n](!relax.tensor<[n, m], f32>) -> !relax.prim<i64, n>"),
        func("[n](!relax.prim<i64, n_1>) -> !relax.object"),
    )
    assert opened == func("[n_2](!relax.tensor<[n_2, m], f32>) -> !relax.prim<i64, n_2>")


def test_bounds_are_used():
    callee = func("[n in [1, 4]](!relax.tensor<[n], f32>) -> !relax.object")
    assert call_result(callee, [info("tensor<[k], f32>")], Prover({"k": (2, 3)})).verdict is Verdict.YES
    assert call_result(callee, [info("tensor<[k], f32>")]).verdict is Verdict.RUNTIME
