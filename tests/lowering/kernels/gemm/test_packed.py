"""Contractions on the default schedule: the same values as before, whatever the sizes, one artefact for all of them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import vector

from lowering import build
from lowering.kernels.gemm.tiling import tiling
from lowering.kernels.schedule_cpu import schedule
from lowering.kernels.structure.contraction import find_contraction
from lowering.kernels.structure.stages import find_program, find_stages
from lowering.parsing import parse_module
from tests.lowering.kernels.gemm.support import (
    SUMS,
    check_guarded,
    compile_to_text,
    compiled,
    kernel,
    run_guarded,
)
from tests.support.sweeps import in_turn
from tir_dialect.interpreter import compile_prim_func, run_prim_func
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp, LoadOp, StoreOp
from tir_dialect.ops.raw_memory import PrefetchOp
from tir_dialect.target import Target
from tir_dialect.types import BufferType
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy

pytestmark = pytest.mark.sampled(4)

MACHINES = ("x86-64-v2", "x86-64-v3 cores=1", "x86-64-v4 cores=4", "neoverse-n1 cores=2")


LETTERS = "bkmn"
SIZES = (
    (2, 2, 0, 3),
    (1, 2, 3, 0),
    (3, 0, 4, 3),
    (1, 1, 1, 1),
    (2, 9, 4, 129),
    (3, 7, 5, 33),
    (1, 512, 14, 32),
    (2, 130, 31, 65),
    (1, 1030, 64, 66),
    (2, 37, 35, 3),
    (0, 5, 20, 20),
)


@pytest.mark.parametrize("name", SUMS)
def test_the_structure_is_recognised(name: str) -> None:
    program = find_program(kernel(SUMS[name].text))
    stages = None if program is None else find_stages(program)
    assert stages is not None
    assert any(find_contraction(stage) is not None for stage in stages)


@pytest.mark.sampled(16)
@pytest.mark.parametrize(("name", "machine"), in_turn(SUMS, MACHINES))
def test_the_scheduled_function_means_the_same(name: str, machine: str) -> None:
    case = SUMS[name]
    func = kernel(case.text)
    schedule(func, Target.parse(machine))
    func.verify()
    assert not any(isinstance(op, BlockOp) for op in func.walk())
    run = compile_prim_func(func)
    for sizes in ((1, 1, 1, 1), (2, 3, 5, 4), (1, 5, 17, 66), (1, 19, 18, 2)):
        arrays = case.arrays(dict(zip(LETTERS, sizes, strict=True)))
        result = np.full(case.expected(arrays).shape, np.nan, arrays[0].dtype)
        run([*arrays, result])
        case.check(result, arrays)


def test_small_caches_take_blocks_and_sections() -> None:
    case = SUMS["product"]
    func = kernel(case.text)
    schedule(func, Target.parse("x86-64-v3 cores=2 l1-bytes=2048 l2-bytes=4096 l3-bytes=16384"))
    arrays = case.arrays({"m": 20, "k": 70, "n": 66})
    result = np.full((20, 66), np.nan, arrays[0].dtype)
    run_prim_func(func, [*arrays, result])
    case.check(result, arrays)


# Native code, between pages that must not be touched.


@pytest.mark.sampled(90)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_native_agrees_with_numpy(name: str, sizes: tuple[int, ...]) -> None:
    check_guarded(SUMS[name], dict(zip(LETTERS, sizes, strict=True)))


@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(sorted(SUMS)),
    b=st.integers(0, 3),
    m=st.integers(0, 40),
    n=st.integers(0, 100),
    k=st.integers(0, 300),
)
def test_random_sizes(name: str, b: int, m: int, n: int, k: int) -> None:
    check_guarded(SUMS[name], {"b": b, "m": m, "n": n, "k": k})


def test_products_that_are_not_added_are_a_map() -> None:
    """With one number for each row and each column there is nothing to pack, and no memory for it."""
    params = "%x: !relax.tensor<[m, 1], f32>, %y: !relax.tensor<[1, n], f32>"
    text = f"relax.func @main[%m, %n]({params}) -> !relax.object {{\n  %0 = relax.matmul %x, %y\n  relax.return %0\n}}"
    func = kernel(text)
    schedule(func, Target.parse("x86-64-v3 cores=2"))
    made = [op.buffer.type for op in func.walk() if isinstance(op, AllocBufferOp)]
    assert {type_.scope for type_ in made if isinstance(type_, BufferType)} <= {"local"}
    for m, n in ((0, 3), (1, 1), (3, 33), (64, 7)):
        x, y = (np.arange(size, dtype=np.float32) for size in (m, n))
        result = run_guarded(text, [x[:, None], y[None], np.full((m, n), 7, np.float32)], {"m": m, "n": n})
        np.testing.assert_array_equal(result, np.outer(x, y))


# Bytes: products and sums of them are exact.


@pytest.mark.parametrize(("left", "right"), [("i8", "i8"), ("ui8", "ui8")])
def test_sums_of_bytes_are_exact(left: str, right: str) -> None:
    text = f"""relax.func @main[%m, %k, %n](%x: !relax.tensor<[m, k], {left}>, %y: !relax.tensor<[k, n], {right}>)
    -> !relax.object {{
  %0 = relax.matmul %x, %y out_dtype = i32
  relax.return %0
}}"""
    dtype = np.int8 if left == "i8" else np.uint8
    extreme = np.iinfo(dtype).min if left == "i8" else np.iinfo(dtype).max
    for m, k, n in ((3, 2000, 17), (20, 1030, 40), (20, 4099, 70)):
        x, y = np.full((m, k), extreme, dtype), np.full((k, n), extreme, dtype)
        x[0], y[:, 0] = 1, 3
        np.testing.assert_array_equal(np.from_dlpack(compiled(text)(x, y)), x.astype("i4") @ y.astype("i4"))


# Code for machines that are not this one.


def micro_kernel(machine: str) -> str:
    """The loop of a product of matrices, one with many rows, that has most multiply-adds."""
    target = Target.parse(machine)
    many_rows = SUMS["product"].text.replace(", %m", "").replace("[m, ", "[64, ")
    kernels = compile_to_text(kernel(many_rows), target)
    return max(kernels.split("\n.LBB"), key=lambda part: part.count("fmla") + part.count("vfmadd"))


def test_tiles_fill_the_registers_of_a_machine() -> None:
    machines = "neoverse-n1", "x86-64-v3", "x86-64-v4 l2-bytes=1048576"
    arm, avx2, avx512 = (micro_kernel(machine) for machine in machines)
    assert arm.count("fmla") == 8 * 3
    assert avx2.count("vfmadd") == 4 * 6 * 2  # four steps
    assert "%ymm15" in avx2
    assert avx512.count("vfmadd") == 2 * 14 * 2  # two steps
    assert "%zmm28" in avx512
    assert "prefetch" in avx512
    assert "prefetch" not in avx2  # its panels stay in the first-level cache
    assert not [spill for block in (arm, avx2, avx512) for spill in spills(block)]


def spills(block: str) -> list[str]:
    """The instructions that move a vector register to or from the stack."""
    return [line for line in block.splitlines() if re.search(r"mm\d|\b[qv]\d", line) and re.search(r"\[sp|%rsp", line)]


PANELS = """
tir.prim_func @panels[%m](
    %A: !tir.buffer<[m, 80], f32>, %B: !tir.buffer<[5, 80, 16], f32>, %C: !tir.buffer<[m, 80], f32>) {
  %c16 = arith.constant 16 : index
  %c80 = arith.constant 80 : index
  tir.for (%i, %j, %r) in (%m, %c80, %c80) {
    tir.block "b" (%vi = spatial %i in %m, %vj = spatial %j in %c80, %vr = reduce %r in %c80) {
      tir.init {
        %zero = arith.constant 0.0 : f32
        tir.store %zero, %C[%vi, %vj]
      }
      %a = tir.load %A[%vi, %vr]
      %panel = arith.divui %vj, %c16 : index
      %within = arith.remui %vj, %c16 : index
      %b = tir.load %B[%panel, %vr, %within]
      %c = tir.load %C[%vi, %vj]
      %p = arith.mulf %a, %b : f32
      %s = arith.addf %c, %p : f32
      tir.store %s, %C[%vi, %vj]
    }
  }
}"""
"""Columns that lie in panels, as constant weights do."""


@pytest.mark.parametrize(("machine", "masked", "prefetched"), [("x86-64-v3", 0, 4), ("x86-64-v4", 16, 0)])
def test_columns_along_k_are_transposed_in_blocks(machine: str, masked: int, prefetched: int) -> None:
    """Whole blocks without masks where these take long; there a block asks for the next line of half of its columns."""
    func = kernel(SUMS["right transposed"].text)
    schedule(func, Target.parse(machine))
    blocks = [op for op in func.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "block"]
    inner = [block for block in blocks if any(isinstance(op, vector.ShuffleOp) for op in block.body.block.ops)]
    assert inner
    for block in inner:
        loads = [op for op in block.body.block.ops if isinstance(op, LoadOp)]
        assert sum(load.mask is not None for load in loads) == masked
        assert sum(isinstance(op, PrefetchOp) for op in block.body.block.ops) == prefetched


def test_rows_that_are_packed_soon_are_prefetched() -> None:
    func = kernel(SUMS["product"].text)
    schedule(func, Target.parse("x86-64-v3"))
    copies = [op for op in func.walk() if isinstance(op, StoreOp) and op.buffer.name_hint == "packed_rows"]
    inner = [block for op in copies if (block := op.parent_block()) and isinstance(block.parent_op(), ForOp)]
    prefetched = [op.buffer.name_hint for block in inner for op in block.ops if isinstance(op, PrefetchOp)]
    assert prefetched == ["x"]


@pytest.mark.parametrize(("caches", "panel", "rows"), [("l2-bytes=524288", 16, 156), ("l2-bytes=1048576", 64, 504)])
def test_panels_and_rows_leave_room_in_the_caches(caches: str, panel: int, rows: int) -> None:
    """In KiB: half of a first level that is as large as a 16th of the second, or else such a 16th; whole tiles of rows.

    A panel that fills the first level would come from the second for each tile.
    """
    tiles = tiling(Target.parse(f"x86-64-v3 l1-bytes=32768 {caches}"), 4)
    assert tiles.kc * tiles.nr * 4 == panel * 1024
    assert tiles.kc * tiles.mc * 4 // 1024 == rows
    assert tiles.far == (panel > 32)


def test_sums_in_parts_fit_the_registers() -> None:
    func = next(op for op in parse_module(PANELS).walk() if isinstance(op, PrimFuncOp))
    blocks = compile_to_text(func, Target.parse("x86-64-v3")).split("\n.LBB")
    loops = [block[: block.rindex("vfmadd")] + "vfmadd" for block in blocks if block.count("vfmadd") >= 8]
    assert {loop.count("vfmadd") for loop in loops} >= {4 * 6 * 2, 4 * 4 * 2, 8}
    assert not [spill for loop in loops for spill in spills(loop)]


@pytest.mark.parametrize(("name", "product"), [("product", "mulps"), ("f64", "mulpd"), ("row vector", "mulps")])
def test_no_function_is_called_where_nothing_fuses(name: str, product: str) -> None:
    text = compile_to_text(kernel(SUMS[name].text), Target.parse("x86-64-v2"))
    assert text.count(product) >= 12
    assert not re.search(r"\bfmaf?\b", text)


@pytest.mark.parametrize("bits", [128, 256])
@pytest.mark.parametrize("k", [33, 300])
def test_sums_of_integers_begin_with_zeros(k: int, bits: int) -> None:
    """What is in memory before the first K block is not part of any sum, whatever follows a matmul.

    Without instructions for bytes, whose sums are others, and with the vectors of a part of the machine's registers.
    """
    host = Target.host()
    features = re.sub(r"\+(avx512|avxvnni|i8mm)", r"-\1", host.features)
    machine = replace(host, features=features, vector_bits=min(bits, host.vector_bits), cores=1)
    module = parse_module(f"""relax.func @main(
  %x: !relax.tensor<[5, {k}], i8>, %w: !relax.tensor<[{k}, 8], i8>, %z: !relax.tensor<[1, 8], i32>
) -> !relax.tensor<[5, 8], i32> {{
  %0 = relax.matmul %x, %w out_dtype = i32
  %1 = relax.subtract %0, %z
  relax.return %1
}}""")
    rng = np.random.default_rng(k)
    x, w = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((5, k), (k, 8)))
    z = rng.integers(-99, 99, (1, 8)).astype(np.int32)
    found = VirtualMachine(build(module, target=machine, cache=False))["main"](x, w, z)
    np.testing.assert_array_equal(to_numpy(found), x.astype(np.int32) @ w.astype(np.int32) - z)
