"""Functions of bytes are looked up: all 256 values, with and without a sign, in every mode."""

import numpy as np
import pytest

from tests.support.programs import check_pass, run_in_turn

ALL = np.arange(256, dtype=np.uint8)


def program(dtype: str, function: str) -> str:
    return f"""
    relax.func @main[%n](%x: !relax.tensor<[n, 16], {dtype}>) -> !relax.tensor<[n, 16], {dtype}> {{
      %scale = relax.constant dense<0.05> : tensor<f32>
      %steps = relax.constant dense<[[90.0]]> : tensor<1x1xf32>
      %0 = relax.astype %x dtype = f32
      %1 = relax.multiply %0, %scale
      %2 = relax.{function} %1
      %3 = relax.multiply %2, %steps
      %4 = relax.round %3
      %5 = relax.astype %4 dtype = {dtype}
      relax.return %5
    }}
    """


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("dtype", "function"), [("ui8", "sigmoid"), ("i8", "tanh"), ("i8", "nn.silu")])
def test_every_byte(dtype: str, function: str) -> None:
    x = ALL.view({"ui8": np.uint8, "i8": np.int8}[dtype]).reshape(16, 16)
    text = program(dtype, function)
    check_pass(text, "use-byte-tables", [[x], [x[:0]]])
    run_in_turn(text, "main", [x])
