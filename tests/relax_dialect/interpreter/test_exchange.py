"""Arrays become tensors, and tensors arrays, of the same shape and elements."""

import numpy as np
import pytest

from relax_dialect.interpreter.runtime_values import to_array, to_tensor
from tests.operators.support import DTYPES, random


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3)])
def test_there_and_back(shape: tuple[int, ...]):
    for dtype in DTYPES:
        array = random(dtype, *shape)
        locked = array.copy()
        locked.flags.writeable = False
        for given in (array, locked, array.T):
            back = to_array(to_tensor(given))
            assert back.dtype == given.dtype
            np.testing.assert_array_equal(back, given, strict=True, err_msg=dtype)
