"""Weights in panels: the same values, whatever the sizes and the machine, and no copy of what is not needed."""

from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.pipelines import for_target
from lowering.relax.layout.pack_weights import PackWeightsPass, PanelLayout, pack, panel_parameters, with_panels
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from relax_dialect.ops.values import ConstantOp
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.sweeps import in_turn
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.raw_memory import PrefetchOp
from tir_dialect.target import Target
from tir_dialect.weights import WeightAttr
from vm_dialect import VirtualMachine
from vm_dialect.executable import Executable

MACHINES = ("x86-64-v2", "x86-64-v3", "x86-64-v4 cores=2", "neoverse-n1")
SUMS = ("mk,kn->mn", "mk,nk->mn", "km,kn->mn", "lmk,kn->lmn", "mlk,kn->lmn", "bmk,bkn->bmn", "bmk,bnk->bmn", "k,kn->n")
DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
ROWS = (0, 1, 4, 7, 8, 13, 31, 33)
L, B = 2, 3


def shape_of(operand: str, k: int, n: int) -> list[str]:
    return [{"k": str(k), "n": str(n), "l": str(L), "b": str(B)}.get(letter, letter) for letter in operand]


@cache
def kernel(subscripts: str, k: int, n: int, dtype: str) -> PrimFuncOp:
    """A sum of products whose sizes are known but for `m`."""
    left, right = subscripts.partition("->")[0].split(",")
    types = [f"!relax.tensor<[{', '.join(shape_of(operand, k, n))}], {dtype}>" for operand in (left, right)]
    module = parse_module(f"""relax.func @main[%m](%s: !relax.shape<[m]>, %x: {types[0]}, %y: {types[1]})
    -> !relax.object {{
  %0 = relax.einsum %x, %y subscripts = "{subscripts}"
  relax.return %0
}}""")
    LegalizeOpsPass().apply(Context(), module)
    func = next(op for op in module.ops if isinstance(op, PrimFuncOp))
    func.detach()
    return func


def arrays(subscripts: str, m: int, k: int, n: int, dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The operands, and what they should give."""
    rng, sizes = np.random.default_rng(m + k + n), {"m": m, "k": k, "n": n, "l": L, "b": B}
    operands = subscripts.partition("->")[0].split(",")
    x, y = (rng.standard_normal([sizes[letter] for letter in operand]).astype(DTYPES[dtype]) for operand in operands)
    return x, y, np.einsum(subscripts, x.astype("f8"), y.astype("f8"))


def close(result: np.ndarray, expected: np.ndarray, dtype: str) -> None:
    tolerance = 3e-2 if dtype == "bf16" else 2e-4
    np.testing.assert_allclose(result.astype("f8"), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("panels", "machine"), in_turn(MACHINES, (*MACHINES[1:], MACHINES[0])))
def test_any_machine_reads_the_panels_of_any_other(panels: str, machine: str) -> None:
    """Two of the sums for each pair; each machine writes and reads panels for all of them."""
    for subscripts in SUMS[(MACHINES.index(panels) + MACHINES.index(machine)) % 4 :: 4]:
        func = kernel(subscripts, 9, 77, "f32")
        (layout,) = panel_parameters(func, Target.parse(panels)).values()
        variant = with_panels(func, "variant", {1: layout})
        variant.verify()
        schedule(variant, Target.parse(machine))
        variant.verify()
        x, y, expected = arrays(subscripts, 5, 9, 77, "f32")
        result = np.full(expected.shape, np.nan, np.float32)
        run_prim_func(variant, [x, pack(y, layout), result])
        close(result, expected, "f32")


def test_matrices_with_the_same_rows_are_packed_one_by_one() -> None:
    """As those of experts: with enough columns each fills tiles, otherwise all of them share tiles as they lie."""
    for n, is_packed in ((77, True), (63, False)):
        func = kernel("mk,bkn->bmn", 9, n, "f32")
        assert bool(panel_parameters(func, Target.parse("x86-64-v3"))) is is_packed
    for m in (0, 1, 5, 20):
        check_guarded("mk,bkn->bmn", m, 31, 77)


@pytest.mark.parametrize("machine", MACHINES)
def test_panels_are_read_where_they_are(machine: str) -> None:
    func, target = kernel("mk,nk->mn", 9, 77, "f32"), Target.parse(machine)
    variant = with_panels(func, "variant", panel_parameters(func, target))
    schedule(variant, target)
    names = {op.results[0].name_hint for op in variant.walk() if op.results}
    assert "packed_columns" not in names
    assert any(isinstance(op, PrefetchOp) for op in variant.walk())


@pytest.mark.parametrize(("n", "is_narrow"), [(77, True), (80, True), (81, False), (96, False)])
def test_tiles_of_the_last_panel_have_one_vector_if_that_has_its_columns(n: int, is_narrow: bool) -> None:
    func, target = kernel("mk,kn->mn", 9, n, "f32"), Target.parse("x86-64-v4 cores=2")
    variant = with_panels(func, "variant", panel_parameters(func, target))
    schedule(variant, target)
    assert (', 16], f32, scope = "local"' in str(variant)) is is_narrow


@pytest.mark.parametrize("subscripts", ["mk,kn->mn", "mk,nk->mn"])
def test_panels_of_words_of_bf16(subscripts: str) -> None:
    """Two numbers to a word where the machine multiplies them; the reduction ends within a word."""
    func, target = kernel(subscripts, 9, 77, "bf16"), Target.parse("znver4")
    (layout,) = panel_parameters(func, target).values()
    assert layout.parts == 2
    variant = with_panels(func, "variant", {1: layout})
    schedule(variant, target)
    for m in (1, 5, 20):
        x, y, expected = arrays(subscripts, m, 9, 77, "bf16")
        result = np.full(expected.shape, np.nan, ml_dtypes.bfloat16)
        run_prim_func(variant, [x, pack(y, layout), result])
        close(result, expected, "bf16")


# Native code, between pages that must not be touched.


@cache
def guarded(subscripts: str, k: int, n: int, dtype: str) -> tuple[PrimFuncOp, PanelLayout, Kernels]:
    func = kernel(subscripts, k, n, dtype)
    (layout,) = panel_parameters(func, Target.host()).values()
    variant = with_panels(func, "variant", {1: layout})
    return variant, layout, compile_prim_funcs(ModuleOp([variant.clone()]), cache=NO_CACHE)


def check_guarded(subscripts: str, m: int, k: int, n: int, dtype: str = "f32") -> None:
    func, layout, kernels = guarded(subscripts, k, n, dtype)
    x, y, expected = arrays(subscripts, m, k, n, dtype)
    for at_end in (True, False):
        result = np.full(expected.shape, 7, DTYPES[dtype])
        operands: list[np.ndarray] = [x, pack(y, layout), result]
        pages = [Guarded(array, at_end) for array in operands]
        assert call(kernels, func, [page.array for page in pages], {"m": m} if func.symbols else {}) == 0
        close(np.array(pages[-1].array), expected, dtype)
        for page in pages:
            page.release()


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("k", "n"), [(64, 100), (777, 65), (31, 32), (31, 48), (4200, 49)])
@pytest.mark.parametrize("subscripts", SUMS)
def test_native_agrees_with_numpy(subscripts: str, k: int, n: int) -> None:
    for m in ROWS:
        check_guarded(subscripts, m, k, n)


@pytest.mark.parametrize("dtype", ["f64", "bf16"])
def test_other_types(dtype: str) -> None:
    for m in ROWS:
        check_guarded("mk,nk->mn", m, 77, 50, dtype)


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(SUMS), st.integers(0, 60), st.sampled_from((5, 130)), st.sampled_from((32, 90)))
def test_random_sizes(subscripts: str, m: int, k: int, n: int) -> None:
    check_guarded(subscripts, m, k, n)


# What becomes of constants.

PROGRAM = """relax.func @main[%m](%x: !relax.tensor<[m, 96], f32>) -> !relax.object {
  %w = relax.constant "w" : !relax.tensor<[96, 70], f32>
  %0 = relax.matmul %x, %w
  %1 = relax.nn.relu %0
  relax.return %1
}"""
TWICE = """relax.func @main[%m](%x: !relax.tensor<[m, {k}], f32>) -> !relax.object {{
  %w = relax.constant "w" : !relax.tensor<[{k}, {n}], f32>
  %0 = relax.matmul %x, %w
  %1 = relax.exp %w
  %2 = relax.tuple(%0, %1)
  relax.return %2
}}"""


def with_weight(text: str, array: np.ndarray) -> ModuleOp:
    module = parse_module(text)
    for op in list(module.walk()):
        if isinstance(op, ConstantOp):
            op.value = WeightAttr("w", array)
    return module


def weights_of(module: ModuleOp) -> list[str]:
    LegalizeOpsPass().apply(Context(), module)
    PackWeightsPass("x86-64-v4").apply(Context(), module)
    module.verify()
    return sorted(op.weight_name or "" for op in module.walk() if isinstance(op, ConstantOp))


def test_a_weight_has_a_name_of_its_own_and_the_original_goes() -> None:
    assert weights_of(with_weight(PROGRAM, np.ones((96, 70), np.float32))) == ["w.panels32"]


def test_what_others_read_is_kept_twice_only_if_it_is_small() -> None:
    small, large = (with_weight(TWICE.format(k=k, n=n), np.ones((k, n), np.float32)) for k, n in ((8, 64), (1024, 512)))
    assert weights_of(small) == ["w", "w.panels32"]
    assert weights_of(large) == ["w"]


def test_an_executable_has_panels_only(tmp_path: Path) -> None:
    w = np.random.default_rng(0).standard_normal((96, 70)).astype("f4")
    executable = build(with_weight(PROGRAM, w))
    executable.save(tmp_path / "program.rlx")
    loaded = Executable.load(tmp_path / "program.rlx")
    for m in (0, 1, 5, 40):
        x = np.random.default_rng(m).standard_normal((m, 96)).astype("f4")
        for each in (executable, loaded):
            result = np.from_dlpack(VirtualMachine(each)["main"](x))
            np.testing.assert_allclose(result, np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("machine", "width"), [("x86-64-v4", 32), ("x86-64-v3", 16), ("neoverse-n1", 12)])
def test_a_build_for_another_machine_packs_for_it(machine: str, width: int) -> None:
    module = with_weight(PROGRAM, np.ones((96, 70), np.float32))
    LegalizeOpsPass().apply(Context(), module)
    for_target(PackWeightsPass(), Target.parse(machine)).apply(Context(), module)
    (constant,) = (op for op in module.walk() if isinstance(op, ConstantOp))
    assert constant.weight_name == f"w.panels{width}"


def test_sums_of_bytes_are_exact() -> None:
    text = """relax.func @main[%m](%x: !relax.tensor<[m, 700], i8>) -> !relax.object {
  %w = relax.constant "w" : !relax.tensor<[700, 40], i8>
  %0 = relax.matmul %x, %w out_dtype = i32
  relax.return %0
}"""
    w, x = np.full((700, 40), -128, np.int8), np.full((20, 700), -128, np.int8)
    w[:, 0], x[0] = 3, 1
    result = VirtualMachine(build(with_weight(text, w)))["main"](x)
    np.testing.assert_array_equal(np.from_dlpack(result), x.astype("i4") @ w.astype("i4"))


def test_weights_by_name_stay_as_they_are() -> None:
    w = np.random.default_rng(0).standard_normal((96, 70)).astype("f4")
    x = np.ones((3, 96), np.float32)
    result = VirtualMachine(build(parse_module(PROGRAM), weights={"w": w}))["main"](x)
    np.testing.assert_allclose(np.from_dlpack(result), np.maximum(x @ w, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (2, 3, 9), (0, 7), (7, 0)])
def test_panels_hold_each_element_once(shape: tuple[int, ...], transposed: bool) -> None:
    array = np.arange(1, 1 + np.prod(shape), dtype=np.int32).reshape(shape)
    packed = pack(array, PanelLayout(4, transposed))
    straight = np.swapaxes(array, -1, -2) if transposed else array
    k, n = straight.shape[-2:]
    assert packed.shape == (*shape[:-2], -(-n // 4), k, 4)
    assert packed.size == 0 or packed.ctypes.data % 64 == 0
    for j in range(n):
        np.testing.assert_array_equal(packed[..., j // 4, :, j % 4], straight[..., j])
    assert np.count_nonzero(packed) == array.size
