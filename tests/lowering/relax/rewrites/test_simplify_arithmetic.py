"""Simplified arithmetic gives the same values, for special numbers too."""

import numpy as np
import pytest
from hypothesis import given

from tests.strategies.relax_programs import ALL, Program, programs
from tests.support.programs import Tolerance, check_pass
from tests.support.sweeps import examples

SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 1e-38, 3e38, 1e-45], np.float32)

BODIES = {
    f"{name} {number}": f"%c = relax.constant dense<{number}> : tensor<f32> %r = relax.{name} %x, %c"
    for name in ("add", "subtract", "multiply", "divide", "power")
    for number in (0.0, -0.0, 1.0, 2.0, 0.25, -4.0, 3.0)
}


def _program(body: str, dtype: str = "f32") -> str:
    return f"""
    relax.func @main[%n](%x: !relax.tensor<[n], {dtype}>) -> !relax.tensor<[n], {dtype}> {{
      {body}
      relax.return %r
    }}
    """


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_floats(body: str):
    tolerance = Tolerance(1e-6, 0) if "power" in body else Tolerance(0, 0)
    check_pass(_program(body), "simplify-arithmetic", [[SPECIAL]], tolerance=tolerance)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "floor_divide", "power"])
@pytest.mark.parametrize("number", [0, 1, 2, 3, 4])
def test_integers(name: str, number: int):
    if number or "divide" not in name:
        body = f"%c = relax.constant dense<{number}> : tensor<1xi32> %r = relax.{name} %x, %c"
        check_pass(_program(body, "i32"), "simplify-arithmetic", [[np.arange(-5, 6, dtype=np.int32)]])


@given(programs(ALL))
@examples(15)
def test_random_programs(program: Program):
    check_pass(
        program.module, "simplify-arithmetic", [program.inputs], entry=program.entry, tolerance=Tolerance(1e-6, 1e-7)
    )
