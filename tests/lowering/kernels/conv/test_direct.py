"""Direct and depthwise convolutions on channel-blocked data: values, memory around buffers, and epilogues."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp, DivUIOp, RemUIOp
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.conv import micro_kernel
from lowering.kernels.emit.kernel import outside_modules
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.relax.fusion.fuse_ops import FuseOpsPass
from lowering.relax.fusion.fuse_tir import FuseTIRPass
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from lowering.tir.vectorize import constant_value
from tests.lowering.kernels.conv.convolutions import Convolution
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.sweeps import in_turn
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.calls import ROUTINE
from tir_dialect.ops.control_flow import ForOp, LoopKind
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.ops.raw_memory import PrefetchOp
from tir_dialect.target import Target


def cut(x: np.ndarray, axis: int, size: int, end: int | None = None) -> np.ndarray:
    """A dimension in blocks, with the positions in the blocks as dimension `end`, the last one unless told."""
    split = x.reshape(*x.shape[:axis], x.shape[axis] // size, size, *x.shape[axis + 1 :])
    return np.ascontiguousarray(np.moveaxis(split, axis + 1, split.ndim - 1 if end is None else end))


@dataclass(frozen=True)
class Blocked:
    """A convolution in blocks; height and width are symbols unless they are given."""

    plain: Convolution
    block: int = 16
    image: tuple[int, int] | None = None
    followed: bool = False
    """Whether a bias, another tensor and a maximum follow."""
    images: int | None = None
    """How many there are; a symbol unless it is given."""

    @property
    def cuts_data(self) -> bool:
        return self.plain.channels % self.block == 0

    @property
    def cuts_kernel(self) -> bool:
        return self.plain.channels // self.plain.groups % self.block == 0

    @property
    def text(self) -> str:
        c, b = self.plain, self.block
        height, width = self.image or ("h", "w")
        n = self.images or "n"
        image = f"{c.channels // b}, {height}, {width}, {b}" if self.cuts_data else f"{c.channels}, {height}, {width}"
        seen, inner = c.channels // c.groups, f"{b}, {b}" if self.cuts_kernel else str(b)
        kernel = f"{c.filters // b}, {seen // b if self.cuts_kernel else seen}, {c.size}, {c.size}, {inner}"
        lists = f"strides = {[c.stride] * 2} padding = {[c.padding] * 4} dilation = {[c.dilation] * 2}"
        data, letters = f"NCHW{b}c", f"OIHW{b}i{b}o" if self.cuts_kernel else f"OIHW{b}o"
        layouts = (
            f'data_layout = "{data if self.cuts_data else "NCHW"}" kernel_layout = "{letters}" out_layout = "{data}"'
        )
        more = f""", %b: !relax.tensor<[1, {c.filters // b}, 1, 1, {b}], f32>,
    %r: !relax.tensor<[{n}, {c.filters // b}, {height}, {width}, {b}], f32>"""
        tail = """
  %1 = relax.add %0, %b
  %2 = relax.add %1, %r
  %3 = relax.nn.relu %2"""
        return f"""relax.func @main[%n, %h, %w](%x: !relax.tensor<[{n}, {image}], f32>,
    %k: !relax.tensor<[{kernel}], f32>{more if self.followed else ""}) -> !relax.object {{
  %0 = relax.nn.conv2d %x, %k {lists} groups = {c.groups} {layouts}{tail if self.followed else ""}
  relax.return %{3 if self.followed else 0}
}}"""

    def arrays(self, n: int, h: int, w: int) -> tuple[list[np.ndarray], np.ndarray]:
        """The arguments, and the expected result."""
        x, k = self.plain.arrays(self.images or n, *(self.image or (h, w)))
        expected = self.plain.expected(x, k)
        data = cut(x, 1, self.block) if self.cuts_data else x
        kernel = cut(k, 0, self.block)
        arrays = [data, cut(kernel, 1, self.block, 4) if self.cuts_kernel else kernel]
        if self.followed:
            rng = np.random.default_rng(n)
            bias = rng.standard_normal((1, self.plain.filters, 1, 1)).astype("f4")
            other = rng.standard_normal(expected.shape).astype("f4")
            expected = np.maximum(expected + bias + other, 0)
            arrays += [cut(each, 1, self.block) for each in (bias, other)]
        return arrays, cut(expected, 1, self.block)


CASES = {
    "1x1": Blocked(Convolution(16, 32, 1)),
    "1x1, every second": Blocked(Convolution(32, 16, 1, stride=2)),
    "3x3": Blocked(Convolution(16, 48, 3, padding=1)),
    "3x3, every second": Blocked(Convolution(16, 32, 3, stride=2, padding=1)),
    "3x3, dilated": Blocked(Convolution(32, 16, 3, padding=2, dilation=2)),
    "3x3, far apart": Blocked(Convolution(32, 32, 3, padding=6, dilation=6)),
    "first": Blocked(Convolution(3, 32, 7, stride=2, padding=3)),
    "groups": Blocked(Convolution(32, 64, 3, padding=1, groups=2)),
    "whole groups": Blocked(Convolution(32, 32, 1, groups=2)),
    "groups of 8, every second": Blocked(Convolution(16, 16, 3, stride=2, padding=1, groups=2)),
    "depthwise": Blocked(Convolution(32, 32, 3, padding=1, groups=32)),
    "depthwise, every second": Blocked(Convolution(32, 32, 3, stride=2, padding=1, groups=32)),
    "depthwise, 5x5": Blocked(Convolution(16, 16, 5, padding=2, groups=16)),
    "blocks of 8": Blocked(Convolution(8, 24, 3, padding=1), block=8),
    "blocks of 32": Blocked(Convolution(32, 64, 1), block=32),
    "1x1, 7x7": Blocked(Convolution(32, 80, 1), image=(7, 7)),
    "3x3, 7x7": Blocked(Convolution(16, 80, 3, padding=1), image=(7, 7)),
    "3x3, 13x17": Blocked(Convolution(16, 32, 3, padding=1), image=(13, 17)),
    "3x3, 14x14": Blocked(Convolution(16, 256, 3, padding=1), block=8, image=(14, 14), images=1),
    "1x1, many channels": Blocked(Convolution(400, 32, 1), image=(3, 5)),
    "followed": Blocked(Convolution(16, 32, 3, padding=1), followed=True),
    "followed, 1x1": Blocked(Convolution(16, 48, 1), followed=True),
    "followed, five blocks": Blocked(Convolution(16, 80, 3, padding=1), followed=True),
    "followed, depthwise": Blocked(Convolution(32, 32, 3, padding=1, groups=32), followed=True),
    "followed, groups": Blocked(Convolution(32, 64, 3, padding=1, groups=2), followed=True),
    "followed, groups of 4": Blocked(Convolution(32, 32, 3, padding=1, groups=8), followed=True),
    "followed, one image": Blocked(Convolution(16, 32, 3, padding=1), followed=True, images=1),
}
SIZES = ((1, 7, 7), (2, 9, 8), (1, 13, 40), (0, 8, 8), (3, 7, 33))


@cache
def kernel(name: str) -> PrimFuncOp:
    module = parse_module(CASES[name].text)
    for each in (LegalizeOpsPass(), FuseOpsPass(), FuseTIRPass()):
        each.apply(Context(), module)
    return next(op for op in module.ops if isinstance(op, PrimFuncOp) and len(list(op.params)) > 2)


LARGE = {
    "256 to 64, 56x56": Blocked(Convolution(256, 64, 1), image=(56, 56)),
    "512 to 128, 28x28": Blocked(Convolution(512, 128, 1), image=(28, 28)),
    "512 to 128, 28x28, every second": Blocked(Convolution(512, 128, 1, stride=2), image=(56, 56)),
    "64 to 384, 14x14": Blocked(Convolution(64, 384, 1), image=(14, 14)),
    "96 to 576, 14x14": Blocked(Convolution(96, 576, 1), image=(14, 14)),
    "32 to 192, 28x28": Blocked(Convolution(32, 192, 1), image=(28, 28)),
    "16 to 32, 56x56": Blocked(Convolution(16, 32, 1), image=(56, 56)),
    "far apart": Blocked(Convolution(64, 32, 3, padding=12, dilation=12), image=(28, 28)),
}
SMALL_CACHES = replace(Target.host(), l1_bytes=4096, l2_bytes=8192)
"""A machine on which sums are made in turns, and weights asked for in advance."""
TURNS = (
    *("3x3", "3x3, every second", "3x3, far apart", "followed", "followed, five blocks", "3x3, 7x7"),
    *("1x1, many channels", "groups"),
)


@cache
def native(name: str, target: Target) -> Kernels:
    return compile_prim_funcs(ModuleOp([kernel(name).clone()]), target, cache=NO_CACHE)


@pytest.mark.sampled(42)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_native_convolutions(name: str, sizes: tuple[int, int, int]) -> None:
    _check(name, sizes, Target.host())


@pytest.mark.sampled(16)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("name", TURNS)
def test_blocks_of_the_reduction(name: str, sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """All of whose tiles are functions."""
    monkeypatch.setattr(micro_kernel, "CONV_CALLED_MACS", 0)
    monkeypatch.setattr(micro_kernel, "CONV_CALLED_LOOPS", range(5))
    _check(name, sizes, SMALL_CACHES)


@pytest.mark.parametrize(
    ("convolutions", "target", "expected"),
    [
        (["256 to 64, 56x56", "512 to 128, 28x28"], "x86-64-v4", ["convolution.f32.14x32"]),
        (["64 to 384, 14x14", "96 to 576, 14x14"], "x86-64-v4", ["convolution.f32.14x32"]),
        (["512 to 128, 28x28", "512 to 128, 28x28, every second"], "x86-64-v4", ["convolution.f32.14x32"] * 2),
        (["32 to 192, 28x28"], "x86-64-v4", ["convolution.f32.14x32"]),
        (["32 to 192, 28x28"], "x86-64-v3", []),
        (["16 to 32, 56x56", "far apart"], "x86-64-v4", []),
    ],
    ids=["equal tiles", "other prefetches", "other strides", "short tiles", "shorter vectors", "short loops"],
)
def test_tiles_of_one_kind_are_one_function(convolutions: list[str], target: str, expected: list[str]) -> None:
    with outside_modules() as routines:
        for name in convolutions:
            module = parse_module(LARGE[name].text)
            LegalizeOpsPass().apply(Context(), module)
            (function,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
            schedule(function, Target.parse(f"{target} cores=1"))
    assert [name.removeprefix(ROUTINE).rpartition(".")[0] for name in routines] == expected


def _check(name: str, sizes: tuple[int, int, int], target: Target) -> None:
    arguments, expected = CASES[name].arrays(*sizes)
    arrays = [*arguments, np.full(expected.shape, np.nan, "f4")]
    for at_end in (True, False):
        pages = [Guarded(array, at_end) for array in arrays]
        func = kernel(name)
        symbols = {symbol: dict(zip("nhw", sizes, strict=True))[symbol] for symbol in func.symbol_names}
        assert call(native(name, target), func, [page.array for page in pages], symbols) == 0
        result = np.array(pages[-1].array)
        for page in pages:
            page.release()
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("name", "machine"),
    in_turn(
        [name for name in CASES if CASES[name].image is None and CASES[name].plain.groups != 2],
        ("x86-64-v3 cores=2", "neoverse-n1"),
    ),
)
def test_the_scheduled_convolution_means_the_same(name: str, machine: str) -> None:
    func = kernel(name).clone()
    schedule(func, Target.parse(machine))
    func.verify()
    assert not any(isinstance(op, BlockOp) for op in func.walk())
    arguments, expected = CASES[name].arrays(1, 2, 7)
    result = np.full(expected.shape, np.nan, "f4")
    run_prim_func(func, [*arguments, result])
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [
        "1x1",
        "3x3",
        "followed",
        "depthwise",
        "groups of 8, every second",
        *(name for name in CASES if "followed," in name),
    ],
)
def test_nothing_is_packed_and_sums_need_no_memory(name: str) -> None:
    func = kernel(name).clone()
    schedule(func, Target.parse("x86-64-v4"))
    allocated = {op.results[0].name_hint for op in func.walk() if op.name == "tir.alloc_buffer"}
    assert allocated <= {"padded", "sums", "tile"}


def test_blocks_after_the_last_whole_group_have_tiles_of_their_own() -> None:
    """No sum of the fifth block is made twice, where a target has vectors that keep the multipliers busy."""
    func = kernel("followed, five blocks").clone()
    schedule(func, Target.parse("x86-64-v4"))
    sums = [
        op.buffer_type.shape for op in func.walk() if isinstance(op, AllocBufferOp) and op.buffer.name_hint == "sums"
    ]
    assert {shape[1].constant_value for shape in sums} == {32, 48}


def test_operands_and_results_of_a_tile_are_prefetched() -> None:
    func = kernel("followed, 1x1").clone()
    schedule(func, Target.parse("x86-64-v4"))
    prefetched = {op.buffer.name_hint for op in func.walk() if isinstance(op, PrefetchOp)}
    assert prefetched == {"x", "r", "T"}  # few weights and a bias stay near


def test_data_between_skipped_pixels_is_not_prefetched() -> None:
    func = kernel("1x1, every second").clone()
    schedule(func, Target.parse("x86-64-v3"))
    prefetched = {op.buffer.name_hint for op in func.walk() if isinstance(op, PrefetchOp)}
    assert prefetched == {"conv2d"}  # its result


@pytest.mark.parametrize("name", ["1x1, 7x7", "3x3, 13x17"])
def test_the_tiles_of_rows_of_known_length_are_found_without_divisions(name: str) -> None:
    func = kernel(name).clone()
    schedule(func, Target.parse("x86-64-v3"))
    tiles = [op for op in func.walk() if isinstance(op, ForOp) and op.body.block.args[0].name_hint == "position"]
    divisors = [op.rhs.owner for loop in tiles for op in loop.walk() if isinstance(op, DivUIOp | RemUIOp)]
    assert divisors
    assert all(isinstance(divisor, ConstantOp) for divisor in divisors)


def test_rows_are_partitioned_where_groups_of_filters_are_few() -> None:
    """Eleven groups of three blocks would leave one of two threads with six."""
    func = kernel("3x3, 14x14").clone()
    schedule(func, Target.parse("x86-64-v3 cores=2"))
    (tasks,) = [op for op in func.walk() if isinstance(op, ForOp) and op.kind.data is LoopKind.PARALLEL]
    assert constant_value(tasks.upper) == 22


@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", [Target.host(), SMALL_CACHES], ids=["whole", "in turns"])
@pytest.mark.parametrize("name", ["3x3, dilated", "groups", "first"])
def test_rows_of_zeros_are_not_multiplied(name: str, target: Target) -> None:
    """A image of one row meets the middle row of the filters only; of one column, where positions are apart, too."""
    plain = CASES[name].plain
    for height, width in ((1, 9), (9, 1)) if plain.dilation > 1 else ((1, 9),):
        (data, filters), expected = CASES[name].arrays(1, height, width)
        others = [place for place in range(plain.size) if place != plain.size // 2]
        filters[(slice(None),) * (2 if height == 1 else 3) + (others,)] = np.nan
        result = np.full(expected.shape, np.nan, "f4")
        symbols = {"n": 1, "h": height, "w": width}
        assert call(native(name, target), kernel(name), [data, filters, result], symbols) == 0
        np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
