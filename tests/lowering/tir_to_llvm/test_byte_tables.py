"""Tables of 256 bytes, looked up in registers: every byte, with and without a sign, in whole vectors and few lanes."""

import numpy as np
import pytest

from tests.support.programs import run_in_turn

RNG = np.random.default_rng(0)
DTYPES = {"ui8": np.uint8, "i8": np.int8}


def _program(index: str, entry: str, epilogue: str = "") -> tuple[str, np.ndarray]:
    table = RNG.permutation(256).astype(np.uint8).view(DTYPES[entry])
    result = "f32" if epilogue else entry
    text = f"""
    relax.func @main[%n, %m](%x: !relax.tensor<[n, m], {index}>) -> !relax.tensor<[n, m], {result}> {{
      %table = relax.constant dense<{table.tolist()}> : tensor<256x{entry}>
      %0 = relax.take %table, %x axis = 0
      {epilogue}
      relax.return %{1 if epilogue else 0}
    }}
    """
    return text, table


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("index", "entry"), [("ui8", "ui8"), ("i8", "ui8"), ("i8", "i8")])
def test_every_byte(index: str, entry: str):
    text, table = _program(index, entry)
    for shape in ((1, 256), (0, 4), (1, 1), (3, 21), (5, 39)):
        x = np.resize(RNG.permutation(256).astype(np.uint8), shape)
        found = run_in_turn(text, "main", [x.view(DTYPES[index])])
        np.testing.assert_array_equal(np.asarray(found), table[x])


def test_with_wider_numbers():
    """Entries that are converted at once, in as many lanes as the wider numbers have, or several vectors of them."""
    text, table = _program("ui8", "i8", "%1 = relax.astype %0 dtype = f32")
    x = RNG.integers(0, 256, (7, 37), np.uint8)
    np.testing.assert_array_equal(np.asarray(run_in_turn(text, "main", [x])), table[x].astype(np.float32))
