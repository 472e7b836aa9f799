"""Products in another order: the same values, and no more work for any sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_dialect.ops.linear_algebra import MatmulOp
from tests.support.programs import Tolerance, check_pass
from tests.support.sweeps import examples

NAME = "adjust-matmul-order"
SIZE = st.integers(1, 5)


def program(rows: str, depth: int, middle: int, columns: int, *, left: bool) -> str:
    order = (("%x", "%a", "%0", "%b"), ("%a", "%b", "%x", "%0"))[not left]
    return f"""
    relax.func @main[%n](%x: !relax.tensor<[{rows}, {depth}], i32>, %a: !relax.tensor<[{depth}, {middle}], i32>,
        %b: !relax.tensor<[{middle}, {columns}], i32>) -> !relax.tensor<[{rows}, {columns}], i32> {{
      %0 = relax.matmul {order[0]}, {order[1]}
      %1 = relax.matmul {order[2]}, {order[3]}
      relax.return %1
    }}
    """


@given(depth=SIZE, middle=SIZE, columns=SIZE, left=st.booleans(), batched=st.booleans())
@examples(20)
def test_random_sizes(depth: int, middle: int, columns: int, left: bool, batched: bool):
    rng = np.random.default_rng(0)
    rows = "n, 2" if batched else "n"

    def arguments(n: int) -> list[np.ndarray]:
        shapes = [(n, 2, depth) if batched else (n, depth), (depth, middle), (middle, columns)]
        return [rng.integers(-9, 9, shape, np.int32) for shape in shapes]

    module = check_pass(program(rows, depth, middle, columns, left=left), NAME, [arguments(n) for n in (1, 7)])
    products = [op for op in module.walk() if isinstance(op, MatmulOp)]
    applied_one_by_one = products[0].result is products[1].x
    if depth * columns >= middle * (depth + columns):
        assert applied_one_by_one, "fewer multiplications for any number of rows"


@pytest.mark.parametrize("n", [0, 3])
def test_floats(n: int):
    text = program("n", 4, 1, 4, left=False).replace("i32", "f32")
    rng = np.random.default_rng(0)
    args = [rng.random(shape, np.float32) for shape in ((n, 4), (4, 1), (1, 4))]
    check_pass(text, NAME, [args], tolerance=Tolerance(1e-6, 1e-6))
