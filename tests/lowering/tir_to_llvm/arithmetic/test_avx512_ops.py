"""Extrema of vectors as IEEE 754 has them, at every width."""

import math

import numpy as np
import pytest

EDGES = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.0**-149, -(2.0**-149), 3.4e38, -3.4e38, 0.5]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["maximumf", "minimumf"])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 48])
def test_extrema(name: str, lanes: int, same_as_interpreter) -> None:
    text = f"""
    tir.prim_func @f(%X: !tir.buffer<[144], f32>, %Y: !tir.buffer<[144], f32>, %Z: !tir.buffer<[144], f32>) {{
      %turns = arith.constant {144 // lanes} : index
      %lanes = arith.constant {lanes} : index
      tir.for (%turn) in (%turns) {{
        %first = arith.muli %turn, %lanes : index
        tir.for vectorized (%i) in (%lanes) {{
          %place = arith.addi %first, %i : index
          %x = tir.load %X[%place]
          %y = tir.load %Y[%place]
          %z = arith.{name} %x, %y : f32
          %one = arith.constant 1.0 : f32
          %sign = math.copysign %one, %z : f32
          tir.store %z, %Z[%place]
          tir.store %sign, %Y[%place]
        }}
      }}
    }}"""
    x, y = (each.ravel().astype(np.float32) for each in np.meshgrid(EDGES, EDGES))
    same_as_interpreter(text, [x, y, np.zeros(144, np.float32)], {})


LIMITS = ("0.0", "-0.0", "6.0", "-0.5", "0x7F800000", "0xFF800000", "0x7FC00000")
"""Infinities and NaN are written as bits."""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lanes", [1, 4, 8, 16, 48])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_extrema_with_a_constant(lanes: int, dtype: str, same_as_interpreter) -> None:
    """The number and the sign of zeros, with the constant on either side."""
    limits = LIMITS[:4] if dtype == "f64" else LIMITS
    kind = "vectorized " if lanes > 1 else ""
    size, results = 48, 2 * len(limits)
    body = ""
    for number, limit in enumerate(limits):
        body += f"""
          %c{number} = arith.constant {limit} : {dtype}
          %max{number} = arith.maximumf %x, %c{number} : {dtype}
          %min{number} = arith.minimumf %c{number}, %x : {dtype}"""
        for at, name in enumerate(("max", "min")):
            place = 2 * number + at
            body += f"""
          %row{place} = arith.constant {place} : index
          %{name}_sign{number} = math.copysign %one, %{name}{number} : {dtype}
          tir.store %{name}{number}, %Y[%row{place}, %place]
          tir.store %{name}_sign{number}, %Z[%row{place}, %place]"""
    text = f"""
    tir.prim_func @f(%X: !tir.buffer<[{size}], {dtype}>, %Y: !tir.buffer<[{results}, {size}], {dtype}>,
                     %Z: !tir.buffer<[{results}, {size}], {dtype}>) {{
      %turns = arith.constant {size // lanes} : index
      %lanes = arith.constant {lanes} : index
      %one = arith.constant 1.0 : {dtype}
      tir.for (%turn) in (%turns) {{
        %first = arith.muli %turn, %lanes : index
        tir.for {kind}(%i) in (%lanes) {{
          %place = arith.addi %first, %i : index
          %x = tir.load %X[%place]
          {body}
        }}
      }}
    }}"""
    zeros = np.zeros((results, size), dtype.replace("f", "float"))
    x = np.resize(np.array(EDGES, zeros.dtype), size)
    same_as_interpreter(text, [x, zeros, zeros.copy()], {})
