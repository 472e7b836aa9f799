"""The packed functions that are there wherever programs run."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from tests.support.programs import run_everywhere
from vm_dialect.numpy_library import fft, linalg
from vm_dialect.tensors import from_numpy, to_numpy

PROGRAM = """
relax.func @main[%n](%x: !relax.tensor<[n, 3, 3], f32>)
    -> !relax.tuple<!relax.tensor<[n, 3, 3], f32>, !relax.tensor<[n, 3, 2], f32>> {
  %inv = relax.string "inv"
  %y = relax.call_dps_packed "relax.linalg"(%inv, %x) : !relax.tensor<[n, 3, 3], f32>
  %what = relax.string "r2c 2 backward"
  %re, %im = relax.call_dps_packed "relax.fft"(%what, %x) : !relax.tensor<[n, 3, 2], f32>, !relax.tensor<[n, 3, 2], f32>
  %both = relax.add %re, %im
  %t = relax.tuple(%y, %both)
  relax.return %t
}
"""


def test_in_all_modes():
    x = (np.random.default_rng(0).standard_normal((2, 3, 3)) + 3 * np.eye(3)).astype(np.float32)
    inverse, spectrum = run_everywhere(PROGRAM, "main", [x])
    np.testing.assert_allclose(inverse @ x, np.broadcast_to(np.eye(3), x.shape), 1e-4, 1e-5)
    found = np.fft.rfft(x)
    np.testing.assert_allclose(spectrum, found.real + found.imag, 1e-4, 1e-5)


def test_the_interpreter_alone_knows_them():
    code = f"""
import sys
import numpy as np
from lowering.parsing import parse_module
from relax_dialect.interpreter import run
run(parse_module({PROGRAM!r}), "main", [np.eye(3, dtype=np.float32)[None]])
assert "vm_dialect.machine" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_errors_name_what_is_wrong():
    x = from_numpy(np.zeros((2, 2), np.float32))
    with pytest.raises(ValueError, match="inv: Singular matrix"):
        linalg("inv", x, x)
    with pytest.raises(ValueError, match="there is no nothing"):
        linalg("nothing", x, x)
    with pytest.raises(ValueError, match="zip"):
        linalg("svd", x, x)


def test_a_transform_there_and_back():
    x = np.random.default_rng(0).standard_normal((3, 4))
    re, im, back = (from_numpy(np.zeros(shape)) for shape in ((3, 3), (3, 3), (3, 4)))
    fft("r2c 0,1 ortho", from_numpy(x), re, im)
    fft("c2r 0,1 ortho", re, im, back)
    np.testing.assert_allclose(to_numpy(back), x)


def test_exponentials_of_small_and_of_large_matrices():
    rotations = np.array([[[0.0, -angle], [angle, 0.0]] for angle in (1e-3, 2.0, 200.0)])
    found = from_numpy(np.zeros_like(rotations))
    linalg("expm", from_numpy(rotations), found)
    angles = rotations[:, 1, 0]
    np.testing.assert_allclose(to_numpy(found)[:, 1, 0], np.sin(angles), 1e-10, 1e-12)
    with pytest.raises(ValueError, match="expm: the matrix has elements that are not finite"):
        linalg("expm", from_numpy(np.full((1, 2, 2), np.inf)), found)
