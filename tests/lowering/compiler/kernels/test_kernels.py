"""Kernels: equal ones are compiled once, in a process and across processes; what counts as equal."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm_ffi
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from lowering.compiler import kernel_maker
from lowering.compiler.kernel_maker import KernelOptions
from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE, CodeCache
from tir_dialect.analysis.fingerprint import Fingerprint
from tir_dialect.dialect import TIR
from tir_dialect.target import Target

SCALE = """
tir.prim_func @NAME[%SIZE](%X: !tir.buffer<[SIZE], f32>, %Y: !tir.buffer<[SIZE], f32>) {
  %c = arith.constant FACTOR : f32
  tir.for (%I) in (%SIZE) {
    %x = tir.load %X[%I]
    %y = arith.mulf %x, %c : f32
    tir.store %y, %Y[%I]
  }
}"""


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Arith, TIR):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


def scale(name: str, factor: float, index: str = "i", size: str = "n") -> str:
    return SCALE.replace("NAME", name).replace("FACTOR", str(factor)).replace("%I", f"%{index}").replace("SIZE", size)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The symbols that have been compiled."""
    done: list[str] = []
    real = kernel_maker.lower_kernel

    def count(group: Any, symbol: str, *rest: Any) -> object:
        done.append(symbol)
        return real(group, symbol, *rest)

    monkeypatch.setattr(kernel_maker, "lower_kernel", count)
    return done


def apply(kernels: Any, name: str) -> np.ndarray:
    y = np.zeros(3, "f4")
    kernels.packed(name)(tvm_ffi.from_dlpack(np.ones(3, "f4")), tvm_ffi.from_dlpack(y))
    return y


def test_equal_functions_are_compiled_once(compilations: list[str]):
    module = parse(scale("a", 2.0) + scale("b", 3.0) + scale("c", 2.0, index="other"))
    kernels = compile_prim_funcs(module, cache=NO_CACHE)
    assert len(compilations) == 2
    assert kernels.symbols["a"] == kernels.symbols["c"] != kernels.symbols["b"]
    assert kernels.address("a") == kernels.address("c")
    for name, factor in (("a", 2), ("b", 3), ("c", 2)):
        np.testing.assert_array_equal(apply(kernels, name), [factor] * 3)


def test_the_module_is_left_as_it_is():
    module = parse(scale("a", 2.0))
    before = str(module)
    compile_prim_funcs(module, cache=NO_CACHE)
    assert str(module) == before


def test_a_second_build_comes_from_the_cache(tmp_path: Path, compilations: list[str]):
    text = scale("a", 2.0) + scale("b", 3.0)
    compile_prim_funcs(parse(text), cache=CodeCache(tmp_path)).packed("a")
    assert len(compilations) == 2
    again = compile_prim_funcs(parse(text), cache=CodeCache(tmp_path))
    assert len(compilations) == 2
    np.testing.assert_array_equal(apply(again, "b"), [3] * 3)


def test_a_damaged_entry_is_compiled_again(tmp_path: Path, compilations: list[str]):
    compile_prim_funcs(parse(scale("a", 2.0)), cache=CodeCache(tmp_path))
    (entry,) = (path for path in tmp_path.rglob("*") if path.is_file())
    entry.write_bytes(entry.read_bytes()[:-1])
    np.testing.assert_array_equal(
        apply(compile_prim_funcs(parse(scale("a", 2.0)), cache=CodeCache(tmp_path)), "a"), [2] * 3
    )
    assert len(compilations) == 2


def test_what_the_code_depends_on_is_in_the_key(tmp_path: Path, compilations: list[str]):
    module, cache = parse(scale("a", 2.0)), CodeCache(tmp_path)
    for target in (Target.parse("x86-64-v3"), Target.parse("x86-64-v4"), Target.parse("x86-64-v3 vector-bits=128")):
        for options in (KernelOptions(), KernelOptions(opt_level=1), KernelOptions(contract=False)):
            compile_prim_funcs(module, target, cache=cache, options=options)
    assert len(compilations) == len(set(compilations)) == 9
    compile_prim_funcs(module, Target.parse("x86-64-v3 cores=99"), cache=cache)
    assert len(compilations) == 10  # loops of one core are not parallel


CALLS = """
tir.prim_func private @inner(%Y: !tir.buffer<[], i64>) {
  %c = arith.constant NUMBER : i64
  tir.store %c, %Y[]
}
tir.prim_func @outer(%Y: !tir.buffer<[], i64>) {
  tir.call @inner(%Y)
}"""


def test_what_is_called_belongs_to_the_kernel(tmp_path: Path, compilations: list[str]):
    for number in (1, 2, 1):
        kernels = compile_prim_funcs(parse(CALLS.replace("NUMBER", str(number))), cache=CodeCache(tmp_path))
        y = np.zeros((), np.int64)
        kernels.packed("outer")(tvm_ffi.from_dlpack(y))
        assert y == number
        assert list(kernels.symbols) == ["outer"]
    assert len(compilations) == 2


def test_fingerprints():
    fingerprint = Fingerprint()

    def of(text: str) -> str:
        return fingerprint(next(iter(parse(text).ops)), ("sym_name",))

    assert of(scale("a", 2.0)) == of(scale("b", 2.0, index="k"))
    others = [
        scale("a", 2.5),
        scale("a", 2.0, size="m"),
        scale("a", 2.0).replace("mulf", "addf"),
        scale("a", 2.0).replace("%x, %c", "%c, %x"),
        scale("a", 2.0).replace("f32", "f64"),
        scale("a", 2.0).replace("tir.for (", "tir.for parallel ("),
        scale("a", 2.0).replace("%n]", "%n in [1, 2]]"),
        scale("a", 2.0).replace("f32>) {", "f32>) may_alias {"),
    ]
    assert len({of(text) for text in [scale("a", 2.0), *others]}) == len(others) + 1
