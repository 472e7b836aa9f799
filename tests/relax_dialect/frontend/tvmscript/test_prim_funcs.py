"""PrimFuncs: buffers, loops, blocks, scalars, as the interpreter runs them."""

from textwrap import dedent

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import TVMScriptError, parse
from tests.support.programs import run_everywhere


def module_of(text: str):
    return parse(dedent(text), filename="test.py")


def call(body: str, *arguments: np.ndarray, out: str = "(n,)", params: str = 'A: T.Buffer((n,), "float32")') -> object:
    """Runs a PrimFunc of one result, called from a relax function."""
    tensors = ", ".join(f"x{index}: R.Tensor({_dims(each)}, '{each.dtype}')" for index, each in enumerate(arguments))
    names = ", ".join(f"x{index}" for index in range(len(arguments)))
    text = f"""
n = T.int64()
m = T.int64()

@I.ir_module
class Module:
    @T.prim_func
    def kernel({params}, B: T.Buffer({out}, "float32")):
{_indented(body, 8)}

    @R.function
    def main({tensors}):
        cls = Module
        return R.call_tir(cls.kernel, ({names},), out_ty=R.Tensor({out}, "float32"))
"""
    return run_everywhere(module_of(text), "main", list(arguments))


def _dims(array: np.ndarray) -> str:
    return "(" + "".join(f"{'nm'[axis]}," for axis in range(array.ndim)) + ")"


def _indented(text: str, columns: int) -> str:
    return "\n".join(" " * columns + line for line in dedent(text).strip().splitlines())


X = np.arange(1, 7, dtype=np.float32)


def test_blocks():
    body = """
    for i in T.grid(n):
        with T.sblock("B"):
            vi = T.axis.spatial(n, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = T.exp(A[vi]) + T.float32(1)
    """
    np.testing.assert_allclose(call(body, X), np.exp(X) + 1, rtol=1e-6)


def test_branches_loops_and_scalars():
    body = """
    for i in T.serial(n):
        total: T.float32 = A[i] * T.float32(2)
        if i % 2 == 0 and A[i] > 1.0:
            B[i] = total
        else:
            B[i] = T.if_then_else(i > 0, A[i - 1], T.float32(-1)) + T.Cast("float32", i)
    """
    expected = [X[i] * 2 if i % 2 == 0 and X[i] > 1 else (X[i - 1] if i else -1) + i for i in range(6)]
    np.testing.assert_allclose(call(body, X), np.array(expected, np.float32))


def test_thread_binding_is_refused_with_the_reason():
    with pytest.raises(TVMScriptError, match="for GPUs, which are not a target"):
        call("for i in T.thread_binding(n, thread='threadIdx.x'):\n    B[i] = A[i]", X)
