"""GEMM with block-quantised weights: decoded in registers for a few rows, once for many."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.cost_model import BLOCK_DOT_MAX_M
from lowering.kernels.gemm.block_registers import GROUPS
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.relax.fusion.fuse_ops import FuseOpsPass
from lowering.relax.fusion.fuse_tir import FuseTIRPass
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.sweeps import in_turn
from tir_dialect import te
from tir_dialect.block_arrays import decode, encode_integers
from tir_dialect.block_expressions import decoded
from tir_dialect.block_formats import FORMATS
from tir_dialect.interpreter import compile_prim_func
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

WIDE = "x86-64-v4" if "avx512dq" in Target.host().extensions else "x86-64-v3"
"""The widest vectors of x86 that code can be run with here."""
MACHINES = (
    "host activation-bits=32",
    f"{WIDE} activation-bits=24",
    "x86-64-v3 activation-bits=8",
    "host activation-bits=24",
    f"{WIDE} activation-bits=32",
    "host activation-bits=8",
    "x86-64-v3 activation-bits=32",
    "host activation-bits=16",
)
ROWS = 19
HALVES = {
    "q4_1": (0, 2),
    "q5_1": (0, 2),
    "q4_k": (0, 2),
    "q5_k": (0, 2),
    "q2_k": (80, 82),
    "q3_k": (108,),
    "q6_k": (208,),
}
"""The bytes where blocks have numbers of 16 bits; at 0 in the other formats."""


def _program(name: str, blocks: int, epilogue: str = "relax.nn.relu %2", rows: str = "n") -> str:
    block_format = FORMATS[name]
    k, size = blocks * block_format.elements, blocks * block_format.bytes
    symbols = "[%n]" if rows == "n" else ""
    return f"""relax.func @main{symbols}(
  %x: !relax.tensor<[{rows}, {k}], f32>, %w: !relax.tensor<[{ROWS}, {size}], ui8>
) -> !relax.object {{
  %0 = relax.dequantize_blocks %w format = "{name}"
  %1 = relax.permute_dims %0
  %2 = relax.matmul %x, %1
  %3 = {epilogue}
  relax.return %3
}}"""


def _kernels(text: str) -> list[PrimFuncOp]:
    module = parse_module(text)
    for each in (LegalizeOpsPass(), FuseOpsPass(), FuseTIRPass()):
        each.apply(Context(), module)
    return [op for op in module.ops if isinstance(op, PrimFuncOp)]


@cache
def _compiled(name: str, blocks: int, machine: str) -> tuple[PrimFuncOp, Kernels]:
    (func,) = _kernels(_program(name, blocks))
    target = Target.parse(machine)
    return func, compile_prim_funcs(ModuleOp([func.clone()]), target, cache=NO_CACHE)


def _packed(name: str, blocks: int) -> np.ndarray:
    """Random blocks with scales of a hundredth."""
    rng, block_format = np.random.default_rng(blocks), FORMATS[name]
    packed = rng.integers(0, 256, (ROWS, blocks, block_format.bytes), np.uint8)
    if name.endswith("_f32"):
        bits = int(name[1])
        scale, zero = rng.standard_normal((ROWS, blocks)) / 100, rng.integers(0, 1 << bits, (ROWS, blocks))
        return encode_integers(rng.integers(0, 1 << bits, (ROWS, 32 * blocks)), scale, zero, bits).packed
    if name == "mxfp4":
        packed[..., 0] = rng.integers(115, 122, (ROWS, blocks))
        packed[:3, :, 0] = np.arange(3)[:, None]  # subnormal powers of two, and the least other one
        return packed.reshape(ROWS, -1)
    for at in HALVES.get(name, (0,)):
        packed[..., at : at + 2] = (rng.standard_normal((ROWS, blocks, 1)) / 100).astype("<f2").view(np.uint8)
    return packed.reshape(ROWS, -1)


def _bound(name: str, x: np.ndarray, weights: np.ndarray, bits: int) -> np.ndarray:
    """What sums may be off by: a millionth of the sum of magnitudes, and half a step of `x` for each weight.

    In tile registers subnormal numbers count as zeros.
    """
    sizes = np.abs(x.astype(np.float64)), np.abs(weights)
    if bits in (24, 32):
        return 1e-6 * (sizes[0] @ sizes[1].T) + 1e-36
    size = FORMATS[name].elements
    parts = [each.reshape(len(each), each.shape[1] // size, size) for each in sizes]
    steps = parts[0].max(-1, initial=0) / {8: 127, 16: 32639}[bits]
    return 1e-36 + 1e-6 * (sizes[0] @ sizes[1].T) + steps @ parts[1].sum(-1).T / 2


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "machine"), in_turn(GROUPS, MACHINES))
def test_sums_are_near_those_of_decoded_weights(name: str, machine: str):
    """Between guard pages; rows in `f32`, and quantised to integers of so many bits."""
    blocks = 2 if FORMATS[name].elements == 256 else 3
    func, kernels = _compiled(name, blocks, machine)
    packed = _packed(name, blocks)
    weights = decode(packed, FORMATS[name]).astype(np.float64)
    for rows in (0, 1, BLOCK_DOT_MAX_M, BLOCK_DOT_MAX_M + 1, 13, 20, 35, 50):
        x = np.random.default_rng(rows).standard_normal((rows, weights.shape[1])).astype(np.float32)
        for at_end in (True, False):
            arrays = [packed, x, np.full((rows, ROWS), 7, np.float32)]
            pages = [Guarded(array, at_end) for array in arrays]
            assert call(kernels, func, [page.array for page in pages], {"n": rows}) == 0
            found = np.array(pages[-1].array)
            for page in pages:
                page.release()
            bound = _bound(name, x, weights, int(machine.rpartition("=")[2]))
            assert (np.abs(found - np.maximum(x @ weights.T, 0)) <= bound).all()


def test_quantised_rows_of_zeros_and_of_infinities():
    """Numbers so small that their step has no inverse count as zeros; what has no step makes the sum NaN."""
    func, kernels = _compiled("q4_0", 3, MACHINES[3])
    packed = _packed("q4_0", 3)
    weights = decode(packed, FORMATS["q4_0"])
    for value in (0.0, 1e-42, np.inf, np.nan, 3e38):
        x = np.zeros((1, 96), np.float32)
        x[0, 40] = value
        found = np.full((1, ROWS), 7, np.float32)
        assert call(kernels, func, [packed, x, found], {"n": 1}) == 0
        expected = np.maximum(x @ weights.T, 0) if np.isfinite(value) else np.full_like(found, np.nan)
        whole = slice(None, ROWS // 16 * 16)  # others are multiplied in `f32`
        np.testing.assert_allclose(found[:, whole], expected[:, whole], rtol=1e-6, atol=1e-40)


@cache
def _stacked(name: str, machine: str) -> tuple[PrimFuncOp, Kernels]:
    """A kernel that multiplies with one of several matrices, whose number is a symbol."""
    block_format, blocks = FORMATS[name], 1
    n, x_size, w_size = te.var("n"), blocks * block_format.elements, blocks * block_format.bytes
    x = te.placeholder((n, x_size), "f32", "x")
    packed = te.placeholder((te.var("matrices"), ROWS, w_size), "ui8", "packed")
    own = decoded(packed, (ROWS, x_size), block_format, leading=(te.var("which"),))
    k = te.reduce_axis(x_size, "k")
    y = te.compute((n, ROWS), lambda i, j: te.sum(x[i, k] * own[j, k], k), name="y")
    func = te.create_prim_func([x, packed, y], name="main")
    assert "dot products" in (schedule(func.clone(), Target.parse(f"{machine} cores=1")) or "")
    return func, compile_prim_funcs(ModuleOp([func.clone()]), Target.parse(machine), cache=NO_CACHE)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "machine"), in_turn(("q4_1", "q6_k", "q8_0"), MACHINES[:3]))
def test_one_of_several_matrices(name: str, machine: str):
    func, kernels = _stacked(name, machine)
    packed = np.stack([np.roll(_packed(name, 1), matrix, axis=0) for matrix in range(3)])
    for which, rows in ((0, 1), (1, 1), (2, 2), (2, 7)):
        weights = decode(packed[which], FORMATS[name]).astype(np.float64)
        x = np.random.default_rng(rows).standard_normal((rows, weights.shape[1])).astype(np.float32)
        pages = [Guarded(array, True) for array in (x, packed, np.full((rows, ROWS), 7, np.float32))]
        sizes = {"n": rows, "matrices": 3, "which": which}
        assert call(kernels, func, [page.array for page in pages], sizes) == 0
        found = np.array(pages[-1].array)
        for page in pages:
            page.release()
        assert (np.abs(found - x @ weights.T) <= _bound(name, x, weights, int(machine.rpartition("=")[2]))).all()


def _explained(text: str) -> list[str | None]:
    target = Target.parse("x86-64-v3 cores=1 activation-bits=32")
    return [schedule(func, target) for func in _kernels(text)]


def test_few_rows_are_multiplied_with_packed_weights():
    (explained,) = _explained(_program("q8_0", 2))
    assert explained == (
        "dot products with q8_0 blocks decoded in registers where M <= 2, else dot products of blocks that are decoded "
        "before"
    )
    for rows, kind in (
        ("1", "with q8_0 blocks decoded in registers since M <= 2"),
        ("9", "of blocks that are decoded before since M > 2"),
    ):
        func = _kernels(_program("q8_0", 2, rows=rows))[0]
        assert schedule(func, Target.parse("x86-64-v3 cores=1 activation-bits=32")) == f"dot products {kind}"
        assert not [op for op in func.body.walk() if op.name == "tir.alloc_buffer" and "[19, 64]" in str(op)]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("bits", "bound"), [(24, 1e-6), (16, 1e-5), (8, 8e-3)])
@pytest.mark.parametrize("name", ["q4_1", "q8_0", "q6_k"])
def test_tile_registers(name: str, bits: int, bound: float):
    """What the interpreter makes of the code for a machine that has them: whole strips of rows, and low ones.

    Of 19 columns the second tile has three.
    """
    (func,) = _kernels(_program(name, 1))
    target = f"sapphirerapids cores=2 activation-bits={bits} task-percent=1"
    explained = schedule(func, Target.parse(target))
    assert f"where M < 16, else tile registers with numbers in {bits // 8} parts of bf16" in (explained or "")
    packed = _packed(name, 1)
    weights = decode(packed, FORMATS[name]).astype(np.float64)
    run = compile_prim_func(func)
    for rows in (16, 37, 49):
        x = np.random.default_rng(rows).standard_normal((rows, weights.shape[1])).astype(np.float32)
        found = np.full((rows, ROWS), 7, np.float32)
        run([x, packed, found] if func.params[0].type.shape[0].constant_value is None else [packed, x, found])
        magnitudes = np.abs(x.astype(np.float64)) @ np.abs(weights.T)
        assert (np.abs(found - np.maximum(x @ weights.T, 0)) <= bound * magnitudes).all()


def test_more_rows_than_a_block_has():
    """Rows are multiplied with decoded columns block by block, where all of them would not stay near."""
    func, kernels = _compiled("q8_0", 3, "x86-64-v3 l2-bytes=1024 activation-bits=32")
    packed = _packed("q8_0", 3)
    x = np.random.default_rng(0).standard_normal((150, 96)).astype(np.float32)
    found = np.full((150, ROWS), 7, np.float32)
    assert call(kernels, func, [packed, x, found], {"n": 150}) == 0
    np.testing.assert_allclose(found, np.maximum(x @ decode(packed, FORMATS["q8_0"]).T, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("target", "blocks", "bits"),
    [
        ("znver4", 2, 24),
        ("znver4 activation-bits=8", 2, 8),
        ("znver4 activation-bits=32", 2, None),
        ("x86-64-v3", 2, 16),
        ("x86-64-v3 activation-bits=8", 2, 16),
        ("x86-64-v3 activation-bits=24", 2, 24),
        ("x86-64-v3 activation-bits=32", 2, None),
        ("x86-64-v2", 2, None),
        ("znver4 l2-bytes=65536", 31, None),  # 16 copies of a row
    ],
)
def test_rows_are_quantised_where_that_suits(target: str, blocks: int, bits: int | None):
    func = _kernels(_program("q8_0", blocks, rows="1"))[0]
    explained = schedule(func, Target.parse(f"{target} cores=1"))
    kind = f"integer dot products of q8_0 blocks with rows of {bits} bits{', lanes along K' if bits == 16 else ''}"
    assert explained == f"{kind if bits else 'dot products with q8_0 blocks decoded in registers'} since M <= 2"


@pytest.mark.parametrize("name", ["q2_k", "q3_k"])
def test_formats_without_code_of_their_own_are_decoded_once(name: str):
    (explained,) = _explained(_program(name, 2))
    assert explained is not None
    assert "registers" not in explained


def test_other_arithmetic_on_bytes_is_not_taken_for_a_format():
    """One constant differs from the formula of `q8_0`."""
    func = _kernels(_program("q8_0", 2))[0]
    block = next(op for op in func.body.walk() if isinstance(op, BlockOp))
    changed = next(op for op in block.walk() if op.name == "arith.constant" and "128 : i32" in str(op))
    text = str(func).replace(str(changed).partition(" = ")[2], "arith.constant 64 : i32")
    (other,) = (op for op in parse_module(text).ops if isinstance(op, PrimFuncOp))
    assert "registers" not in (schedule(other, Target.parse("x86-64-v3 cores=1")) or "")


def test_weights_that_are_used_twice_are_decoded_by_a_kernel_of_their_own():
    text = _program("q4_0", 1, "relax.tuple(%2, %0)")
    assert _kernels(text)[0].sym_name.data == "dequantize_blocks"
