"""Many kernels are made by two processes: what one would make, and here what the other one cannot."""

import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from xdsl.utils.exceptions import PassFailedException

from lowering import build
from lowering.compiler import compilation, kernel_maker
from lowering.compiler.kernel_maker import DEFAULT_OPTIONS, code_key, compile_kernel, sent
from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.llvm import background
from lowering.llvm.background import CompilerProcess, NoAnswerError
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from tests.support.kernels import MATMUL
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.ops.calls import ROUTINE
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

pytestmark = pytest.mark.usefixtures("own_process")

SCALE = """
tir.prim_func @f{number}[%n](%X: !tir.buffer<[n], f32>, %Y: !tir.buffer<[n], f32>) {{
  %c = arith.constant {number}.1 : f32
  tir.for (%i) in (%n) {{
    %x = tir.load %X[%i]
    %y = arith.mulf %x, %c : f32
    tir.store %y, %Y[%i]
  }}
}}"""

REFUSED = """
tir.prim_func @refused[%n](%X: !tir.buffer<[n], f32>) {
  tir.for parallel (%i) in (%n) {
    tir.call_packed "f"(%X)
  }
}"""

SCALES = "".join(SCALE.format(number=number) for number in range(4))
MODULE = SCALES + MATMUL
"""The last one, which is the first for the other process, calls routines."""


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two processes, of which each gets some kernels. Names of the functions that are lowered here."""
    begun, here = threading.Event(), list[str]()
    ask, lower = kernel_maker.KernelMaker._ask, kernel_maker.lower_kernel

    def asked(self: Any, *arguments: Any) -> bytes:
        begun.set()
        return ask(self, *arguments)

    def lowered(group: Any, *rest: Any) -> object:
        assert begun.wait(60)
        here.append(group[0].sym_name.data)
        return lower(group, *rest)

    monkeypatch.setattr(background, "_processors", lambda: 2)
    monkeypatch.setattr(kernel_maker, "MANY_KERNELS", 2)
    monkeypatch.setattr(kernel_maker.KernelMaker, "_ask", asked)
    monkeypatch.setattr(kernel_maker, "lower_kernel", lowered)
    return here


def compiled(text: str) -> Kernels:
    return compile_prim_funcs(parse_module(text), cache=NO_CACHE)


def check(kernels: Kernels) -> None:
    x, y = np.arange(5, dtype="f4"), np.full(5, np.nan, "f4")
    kernels.packed("f3")(*map(tvm_ffi.from_dlpack, (x, y)))
    np.testing.assert_array_equal(y, x * np.float32(3.1))
    a, b, c = np.random.rand(9, 40).astype("f4"), np.random.rand(40, 33).astype("f4"), np.full((9, 33), np.nan, "f4")
    kernels.packed("matmul")(*map(tvm_ffi.from_dlpack, (a, b, c)))
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)


@pytest.mark.slow
def test_two_processes_make_what_one_makes(two: list[str], monkeypatch: pytest.MonkeyPatch):
    both = compiled(MODULE)
    assert "matmul" not in two
    assert "f0" in two
    monkeypatch.undo()
    alone = compiled(MODULE)
    assert any(symbol.startswith(ROUTINE) for symbol in both.objects)
    assert list(both.pending)[:5] == list(alone.pending)[:5]
    assert both.objects == alone.objects
    check(both)


def test_what_the_other_process_cannot_make_is_made_here(two: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "")
    check(compiled(MODULE))
    assert sorted(two) == ["f0", "f1", "f2", "f3", "matmul"]


def test_an_error_of_the_other_process_is_raised_here(two: list[str]):
    with pytest.raises(PassFailedException, match=r"'tir.call_packed' op is inside a parallel loop"):
        compiled(SCALES + REFUSED)
    assert two[-1] == "refused"


def test_few_kernels_stay_here(monkeypatch: pytest.MonkeyPatch):
    def asked(*_: object) -> object:
        raise AssertionError("there is another process")

    monkeypatch.setattr(background, "_processors", lambda: 2)
    monkeypatch.setattr(background, "START_TEXT", sys.maxsize)  # which may be waiting, if this thread is fast
    monkeypatch.setattr(CompilerProcess, "ask", asked)
    assert kernel_maker.MANY_KERNELS >= 5
    check(compiled(MODULE))


def test_a_text_that_has_lost_something_is_refused():
    function = parse_module(SCALES).body.block.first_op
    assert isinstance(function, PrimFuncOp)
    key = code_key([function], "salt", None, Fingerprint())
    kernel = sent([function], key, "salt", "f", Target.host(), DEFAULT_OPTIONS)
    assert compile_kernel(kernel, frozenset()).data
    other = replace(kernel, text=kernel.text.replace("1.000000e-01", "1.000001e-01"))
    assert other != kernel
    with pytest.raises(ValueError, match="is read as another one"):
        compile_kernel(other, frozenset())


@pytest.mark.parametrize(
    ("many", "operators", "functions", "expected"),
    [(1, 4, 2, []), (1, 5, 0, ["load"]), (1, 0, 3, ["load"]), (0, 1, 1, ["load"])],
    ids=["few", "operators", "PrimFuncs", "both"],
)
def test_the_other_process_starts_as_soon_as_there_seem_to_be_many(
    many: int, operators: int, functions: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
):
    asked: list[str] = []
    monkeypatch.setattr(compilation, "_different_operators", lambda module: operators)
    monkeypatch.setattr(compilation, "_prim_funcs", lambda module: functions)

    def ask(self: CompilerProcess, work: Callable[..., object], *arguments: object) -> object:
        asked.append(work.__name__)
        raise NoAnswerError("there is none")

    monkeypatch.setattr(background, "_processors", lambda: 2)
    monkeypatch.setattr(compilation, "MANY_KERNELS", many)
    monkeypatch.setattr(CompilerProcess, "ask", ask)
    program = """
    relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
      %0 = relax.exp %x
      relax.return %0
    }"""
    build(parse_module(program), cache=False)
    assert [each for each in asked if each == "load"] == expected
