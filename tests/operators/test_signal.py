"""Windows against NumPy's, in every mode."""

import numpy as np
import pytest

from tests.operators.support import Programs

PROGRAMS = Programs(
    {
        "hann": ("%at: !relax.prim<i64, n>", "relax.cosine_window length = n coefficients = [0.5, 0.5]"),
        "hamming": (
            "%at: !relax.prim<i64, n>",
            "relax.cosine_window length = n coefficients = [0.54, 0.46] dtype = f64",
        ),
        "blackman": (
            "%at: !relax.prim<i64, n>",
            "relax.cosine_window length = n + 1 coefficients = [0.42, 0.5, 0.08] periodic",
        ),
        "flat": ("%at: !relax.prim<i64, n>", "relax.cosine_window length = n coefficients = [2.0] dtype = f16"),
    }
)


@pytest.mark.parametrize("size", [0, 2, 7, 32])
def test_windows(size: int):
    PROGRAMS.check("hann", [size], np.hanning(size).astype(np.float32))
    PROGRAMS.check("hamming", [size], np.hamming(size))
    PROGRAMS.check("blackman", [size], np.blackman(size + 2)[:-1].astype(np.float32))
    PROGRAMS.check("flat", [size], np.full(size, 2, np.float16))


def test_one_place():
    PROGRAMS.check("hann", [1], np.zeros(1, np.float32))
