"""Remainders of floats: the bits of C's `fmod`, as scalars and vectors."""

import ctypes

import numpy as np
import pytest

from lowering.compiler.kernels import compile_prim_funcs
from lowering.llvm.code_cache import NO_CACHE
from tir_dialect.target import Target

COUNT = 16384
FMOD = f"""
tir.prim_func @KIND_TYPE(%X: !tir.buffer<[{COUNT}], TYPE>, %Y: !tir.buffer<[{COUNT}], TYPE>,
                         %Z: !tir.buffer<[{COUNT}], TYPE>) {{
  %turns = arith.constant {COUNT // 16} : index
  %lanes = arith.constant 16 : index
  tir.for (%turn) in (%turns) {{
    %first = arith.muli %turn, %lanes : index
    tir.for KIND (%i) in (%lanes) {{
      %place = arith.addi %first, %i : index
      %x = tir.load %X[%place]
      %y = tir.load %Y[%place]
      %z = tir.fmod %x, %y : TYPE
      tir.store %z, %Z[%place]
    }}
  }}
}}"""
TYPES = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}


def operands(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Special values; any bits; quotients that are whole numbers, or next to them, some longer than a format has."""
    kind, bits = TYPES[name]
    rng, info = np.random.default_rng(0), np.finfo(kind)
    least = np.nextafter(kind(0), kind(1))
    special = np.array([0, 1, 3, 0.5, info.max, info.tiny, least, np.inf, np.nan, info.tiny * 0.75], kind)
    special = np.concatenate([special, -special])
    grid = [each.ravel() for each in np.meshgrid(special, special)]
    anything = rng.integers(0, np.iinfo(bits).max, (2, 4000), bits, endpoint=True).view(kind)
    y = rng.standard_normal(COUNT - 400 - 4000).astype(kind)
    quotients = np.trunc(2.0 ** rng.uniform(0, info.nmant + 3, y.size))
    x = (quotients * y).astype(kind)
    x = np.where(rng.random(y.size) < 0.5, x, np.nextafter(x, kind(0)))
    return np.concatenate([grid[0], anything[0], x]), np.concatenate([grid[1], anything[1], y])


@pytest.mark.parametrize("target", ["host", "x86-64-v3", "x86-64-v2"])
def test_every_bit(target: str, tir) -> None:
    kinds = [(kind, name) for kind in ("serial", "vectorized") for name in TYPES]
    text = "".join(FMOD.replace("KIND", kind).replace("TYPE", name) for kind, name in kinds).replace(
        "for serial", "for"
    )
    kernels = compile_prim_funcs(tir(text), Target.parse(target), cache=NO_CACHE)
    for kind, name in kinds:
        x, y = operands(name)
        got = np.full_like(x, 7)
        call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(kernels.address(f"{kind}_{name}"))
        assert call(x.ctypes.data, y.ctypes.data, got.ctypes.data) == 0
        with np.errstate(invalid="ignore"):
            expected = np.fmod(x, y)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
        number = ~np.isnan(expected)
        np.testing.assert_array_equal(*(each[number].view(TYPES[name][1]) for each in (got, expected)))


def test_the_interpreter_agrees(same_as_interpreter) -> None:
    text = FMOD.replace("KIND", "vectorized").replace("TYPE", "f32")
    x, y = operands("f32")
    same_as_interpreter(text, [x, y, np.zeros_like(x)], {})
