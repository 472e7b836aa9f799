"""Depthwise convolutions of bytes: exact sums, padding with any number, and memory around buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from lowering.compiler.kernels import Kernels, compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from lowering.parsing import parse_module
from lowering.relax.fusion.fuse_ops import FuseOpsPass
from lowering.relax.fusion.fuse_tir import FuseTIRPass
from lowering.relax_to_tir.legalize_ops import LegalizeOpsPass
from tests.lowering.tir_to_llvm.conftest import call
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tests.support.sweeps import in_turn
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target

pytestmark = pytest.mark.sampled(2)

DTYPES = {"ui8": np.uint8, "i8": np.int8}


@dataclass(frozen=True)
class Depthwise:
    """A convolution of each of 20 channels by itself, of data that are padded with a number."""

    size: tuple[int, int] = (3, 3)
    stride: int = 1
    dilation: int = 1
    padding: int = 1
    filler: int = 0
    dtypes: tuple[str, str] = ("ui8", "i8")
    channels: int = 20
    image: tuple[int, int] | None = None
    """Height and width if they are known."""

    def extent(self, length: int, axis: int) -> int:
        return (length + 2 * self.padding - (self.size[axis] - 1) * self.dilation - 1) // self.stride + 1

    @property
    def text(self) -> str:
        """A function that pads, convolves, and adds a number for each channel."""
        c, (x, k), (high, wide), p = self.channels, self.dtypes, self.size, self.padding
        h, w = self.image or ("h", "w")
        pad = f"%p = relax.nn.pad %x pad_width = [0, 0, {p}, {p}, {p}, {p}, 0, 0] pad_value = {float(self.filler)}"
        return f"""
        relax.func @main[{"%n" if self.image else "%n, %h, %w"}](%x: !relax.tensor<[n, {h}, {w}, {c}], {x}>,
            %k: !relax.tensor<[{high}, {wide}, 1, {c}], {k}>, %b: !relax.tensor<[{c}], i32>)
            -> !relax.object {{
          {pad if p else ""}
          %0 = relax.nn.conv2d {"%p" if p else "%x"}, %k strides = [{self.stride}, {self.stride}]
            dilation = [{self.dilation}, {self.dilation}] groups = {c}
            data_layout = "NHWC" kernel_layout = "HWIO" out_dtype = i32
          %1 = relax.add %0, %b
          relax.return %1
        }}"""

    def arrays(self, n: int, h: int, w: int) -> tuple[list[np.ndarray], np.ndarray]:
        """Data, weights and numbers that are added; and the results."""
        rng = np.random.default_rng(n + h + w)
        kinds = [np.iinfo(DTYPES[each]) for each in self.dtypes]
        extreme = [
            rng.choice([kind.min, kind.max, 1], size)
            for kind, size in zip(kinds, ((n, h, w, self.channels), (*self.size, 1, self.channels)), strict=True)
        ]
        x, k = (each.astype(DTYPES[dtype]) for each, dtype in zip(extreme, self.dtypes, strict=True))
        b = rng.integers(-(2**31), 2**31, self.channels).astype(np.int32)
        p = self.padding
        padded = np.pad(x.astype(np.int64), ((0, 0), (p, p), (p, p), (0, 0)), constant_values=self.filler)
        rows, columns = self.extent(h, 0), self.extent(w, 1)
        total = np.zeros((n, rows, columns, self.channels), np.int64) + b
        for i in range(self.size[0]):
            for j in range(self.size[1]):
                top, left = i * self.dilation, j * self.dilation
                seen = padded[
                    :,
                    top : top + (rows - 1) * self.stride + 1 : self.stride,
                    left : left + (columns - 1) * self.stride + 1 : self.stride,
                ]
                total += seen * k[i, j, 0].astype(np.int64)
        return [x, k, b], total.astype(np.int32)


CASES = {
    "3x3": Depthwise(),
    "3x3, a zero point": Depthwise(filler=119),
    "3x3, every second": Depthwise(stride=2, filler=3),
    "3x3, every second, known": Depthwise(stride=2, filler=255, image=(7, 6), channels=32),
    "3x3, known": Depthwise(filler=1, image=(7, 13), channels=16),
    "3x3, one row": Depthwise(image=(1, 9), filler=7),
    "3x3, one column": Depthwise(image=(6, 1), filler=7),
    "3x3, one pixel": Depthwise(image=(3, 3), padding=0),
    "5x5": Depthwise((5, 5), padding=2, filler=9),
    "5x5, every second": Depthwise((5, 5), stride=2, padding=2, filler=9, channels=48),
    "3x3, dilated": Depthwise(dilation=2, padding=2, filler=200),
    "more padding than window": Depthwise(padding=4, filler=50),
    "no padding": Depthwise(padding=0),
    "9x9": Depthwise((9, 9), padding=4, filler=9, image=(10, 9), channels=16),
    "4x2": Depthwise((4, 2), filler=3),
    "1x3": Depthwise((1, 3), filler=3),
    "3x1": Depthwise((3, 1), filler=3),
    "signed data": Depthwise(dtypes=("i8", "i8"), filler=-128),
    "unsigned weights": Depthwise(dtypes=("ui8", "ui8"), filler=2, stride=2),
    "signed data, unsigned weights": Depthwise(dtypes=("i8", "ui8"), filler=-7),
}
SIZES = ((1, 7, 8), (2, 9, 21), (0, 4, 4), (1, 0, 5), (1, 5, 0))


@cache
def kernel(name: str) -> PrimFuncOp:
    module = parse_module(CASES[name].text)
    for each in (LegalizeOpsPass(), FuseOpsPass(), FuseTIRPass()):
        each.apply(Context(), module)
    (func,) = (op for op in module.ops if isinstance(op, PrimFuncOp))
    return func


@cache
def native(name: str, target: str) -> Kernels:
    machine = Target.host() if target == "host" else Target.parse(target)
    return compile_prim_funcs(ModuleOp([kernel(name).clone()]), machine, cache=NO_CACHE)


def sizes_of(case: Depthwise) -> list[tuple[int, int, int]]:
    """Sizes of data that have results."""
    found = SIZES if case.image is None else [(2, *case.image), (0, *case.image)]
    return [each for each in found if min(case.extent(each[1], 0), case.extent(each[2], 1)) > 0]


def symbols_of(func: PrimFuncOp, sizes: tuple[int, int, int]) -> dict[str, int]:
    known = dict(zip("nhw", sizes, strict=True))
    return {symbol: known[symbol] for symbol in func.symbol_names}


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "target"), in_turn(CASES, ("host", "x86-64-v3"), 4))
def test_sums_are_exact(name: str, target: str) -> None:
    case, func = CASES[name], kernel(name)
    for sizes in sizes_of(case):
        arguments, expected = case.arrays(*sizes)
        for at_end in (True, False):
            pages = [Guarded(array, at_end) for array in (*arguments, np.full(expected.shape, -1, np.int32))]
            assert call(native(name, target), func, [page.array for page in pages], symbols_of(func, sizes)) == 0
            result = np.array(pages[-1].array)
            for page in pages:
                page.release()
            np.testing.assert_array_equal(result, expected)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "machine"), in_turn(CASES, ("x86-64-v3 cores=2", "neoverse-n1", "x86-64-v4"), 9))
def test_the_scheduled_convolution_means_the_same(name: str, machine: str) -> None:
    case, func = CASES[name], kernel(name).clone()
    schedule(func, Target.parse(machine))
    func.verify()
    arguments, expected = case.arrays(*((1, *case.image) if case.image else (1, 4, 5)))
    result = np.full(expected.shape, -1, np.int32)
    run_prim_func(func, [*arguments, result])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["3x3, a zero point", "3x3, one pixel", "1x3"])
def test_no_data_are_copied(name: str) -> None:
    func = kernel(name).clone()
    schedule(func, Target.parse("x86-64-v4"))
    assert {op.results[0].name_hint for op in func.walk() if op.name == "tir.alloc_buffer"} == {
        "weights",
        "begin",
        "sums",
    }
