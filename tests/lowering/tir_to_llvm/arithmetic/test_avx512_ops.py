"""Extrema of vectors as IEEE 754 has them, at every width."""

import math

import numpy as np
import pytest

EDGES = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 2.0**-149, -(2.0**-149), 3.4e38, -3.4e38, 0.5]


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
