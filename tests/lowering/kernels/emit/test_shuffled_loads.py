"""Elements that several lanes share are loaded once, contiguously, and shuffled."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from lowering.compiler.kernels import compile_prim_funcs
from lowering.kernels.schedule_cpu import schedule
from lowering.llvm.code_cache import NO_CACHE
from tests.lowering.tir_to_llvm.conftest import call, find, parse, run_both
from tests.lowering.tir_to_llvm.test_safety import Guarded
from tir_dialect import te
from tir_dialect.dims import symbol
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.target import Target

M, N = symbol("m"), symbol("n")


def text_of(*tensors: te.Tensor) -> str:
    """The module with the function of some tensors, of which the last is the result."""
    return str(te.create_prim_func(tensors, name="f"))


def repeated(times: int, dtype: str = "f32") -> str:
    """Neighbours along the rows and, of these, along the columns."""
    x = te.placeholder((M, N), dtype, name="X")
    return text_of(x, te.compute((M * 2, N * times), lambda i, j: x[i // 2, j // times], name="Y"))


def with_others(times: int) -> str:
    """Beside an operand that lies as the result."""
    x, z = te.placeholder((M, N), "f32", name="X"), te.placeholder((M, N * times), "f32", name="Z")
    shape = (M, N * times)
    return text_of(
        x, z, te.compute(shape, lambda i, j: te.exp(x[i, j // times]) * z[i, j] + x[i, (j + 1) // (times + 1)])
    )


def counted(times: int) -> str:
    """Beside a use of the quotient as a number."""
    x = te.placeholder((M, N), "f32", name="X")

    def element(i: te.Expr, j: te.Expr) -> te.Expr:
        return x[i, j // times] + te.cast(te.cast(j // times, "i64"), "f32")

    return text_of(x, te.compute((M, N * times), element, name="Y"))


def shuffled(times: int) -> str:
    """Lines in turns, as pixels are made of channels."""
    x = te.placeholder((times * times, M, N), "f32", name="X")
    shape = (M * times, N * times)
    return text_of(
        x, te.compute(shape, lambda i, j: x[(i % times) * times + j % times, i // times, j // times], name="Y")
    )


def blocked(times: int) -> str:
    """Channels beside each other, which were lines: the quotient is not of what lies along the lanes."""
    x = te.placeholder((32, M, N), "f32", name="X")
    shape = (2, M * times, N * times, 16)
    return text_of(x, te.compute(shape, lambda b, i, j, c: x[b * 16 + c, i // times, j // times], name="Y"))


def chosen(times: int) -> str:
    """Rows from positions in memory."""
    x, rows = te.placeholder((M, N), "f32", name="X"), te.placeholder((M,), "i64", name="I")
    return text_of(x, rows, te.compute((M, N * times), lambda i, j: x[te.cast(rows[i], "index"), j // times], name="Y"))


def arrays(text: str, m: int, n: int) -> list[NDArray[np.generic]]:
    """Arguments of a function of these sizes."""
    rng = np.random.default_rng(0)
    found: list[NDArray[np.generic]] = []
    for param in find(parse(text), None).params:
        shape = tuple(each.evaluate({"m": m, "n": n}) for each in param.type.shape)
        dtype = np.dtype({"f32": "f4", "ui8": "u1", "i64": "i8", "f64": "f8"}[str(param.type.dtype)])
        high = max(m, 1) if dtype == np.int64 else 100
        found.append(rng.integers(0, high, shape).astype(dtype))
    return found


TEXTS = {
    **{f"repeated {k}": repeated(k) for k in (2, 3, 5, 8, 17, 24)},
    "bytes": repeated(3, "ui8"),
    "doubles": repeated(4, "f64"),
    "with others": with_others(3),
    **{f"shuffled {k}": shuffled(k) for k in (2, 3, 4)},
    "counted": counted(3),
    "chosen": chosen(2),
    "blocked": blocked(2),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_values(text: str) -> None:
    for m, n in ((1, 1), (2, 7), (3, 16), (2, 33), (0, 2), (2, 0)):
        native, interpreted = run_both(text, arrays(text, m, n), {"m": m, "n": n})
        np.testing.assert_allclose(native[-1], interpreted[-1], rtol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_nothing_else_is_touched(text: str) -> None:
    module = parse(text)
    func, kernels = find(module, None), compile_prim_funcs(module, cache=NO_CACHE)
    for m, n in ((1, 1), (2, 7), (1, 16), (1, 33)):
        for at_end in (True, False):
            guarded = [Guarded(each, at_end=at_end) for each in arrays(text, m, n)]
            assert call(kernels, func, [each.array for each in guarded], {"m": m, "n": n}) == 0
            for each in guarded:
                each.release()


def test_rows_shorter_than_tiles_are_vectors_too() -> None:
    (func,) = parse(blocked(2)).ops
    schedule(func, Target.parse("x86-64-v4"))
    assert all(op.lanes for op in func.walk() if isinstance(op, LoadOp) and str(op.buffer.name_hint).startswith("X"))


def test_every_second_element_is_taken_from_vectors() -> None:
    """As space is made depth: there are too few elements beside each other to transpose tiles."""
    x = te.placeholder((M, N, 2), "f32", name="X")
    text = text_of(x, te.compute((2, M, N), lambda r, i, j: x[i, j, r], name="Y"))
    (func,) = parse(text).ops
    schedule(func, Target.parse("x86-64-v4"))
    assert not [op for op in func.walk() if isinstance(op, ForOp) and op.induction_var.name_hint == "tile"]
    native, interpreted = run_both(text, arrays(text, 3, 37), {"m": 3, "n": 37})
    np.testing.assert_array_equal(native[1], interpreted[1])


def test_one_row_is_partitioned_in_whole_groups() -> None:
    x = te.placeholder((N,), "f32", name="X")
    text = text_of(x, te.compute((N * 3,), lambda i: x[i // 3], name="Y"))
    (data, result), n = arrays(text, 0, 40_001), 40_001
    native, _ = run_both(text, [data, result], {"n": n})
    np.testing.assert_array_equal(native[1], np.repeat(data, 3))


@pytest.mark.parametrize(("text", "lanes"), [(repeated(2), 8), (repeated(3), 16), (shuffled(2), 8), (chosen(4), 4)])
def test_runs_are_loaded_contiguously(text: str, lanes: int) -> None:
    (func,) = parse(text).ops
    schedule(func, Target.parse("x86-64-v4"))
    vectors = [op.lanes for op in func.walk() if isinstance(op, LoadOp) and op.lanes]
    assert vectors
    assert set(vectors) == {lanes}
    inner = [op for op in func.walk() if isinstance(op, ForOp) and str(op.kind.data) == "vectorized"]
    assert not any("div" in op.name or "rem" in op.name for loop in inner for op in loop.walk())
