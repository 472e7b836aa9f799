"""The code that kernels call is there before they are."""

import pytest

from lowering import build
from lowering.codegen import support
from lowering.parsing import parse_module

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.negative %x
  relax.return %0
}
"""


def test_a_build_compiles_what_its_kernels_may_call(monkeypatch: pytest.MonkeyPatch):
    """Loading the program, for which everybody waits, has nothing to compile."""
    support.support_object.cache_clear()
    build(parse_module(PROGRAM), cache=False)
    compiled = support.support_object.cache_info().currsize

    def refuse(*_: object) -> bytes:
        raise AssertionError("compiled late")

    monkeypatch.setattr("lowering.codegen.support.compile_cached", refuse)
    for each in support.SUPPORT:
        support.support_object(each.text())
    assert support.support_object.cache_info().currsize == compiled


def test_code_for_another_machine_needs_nothing_of_this_one():
    support.support_object.cache_clear()
    build(parse_module(PROGRAM), cache=False, target="x86-64-v2")
    assert support.support_object.cache_info().currsize == 0
