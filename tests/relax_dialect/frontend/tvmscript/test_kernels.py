"""Kernels: loops, blocks, scalars, vectors, views; in every mode against NumPy."""

from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent, indent

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import parse
from tests.support.programs import run_in_turn

A1 = np.array([3, -1, 4, 1, -5, 9, 2, 6], np.float32)
I1 = np.array([3, -1, 4, 1, -5, 9, 2, 6], np.int32)
M = np.arange(12, dtype=np.float32).reshape(3, 4) - 5
BOOLS = A1 > 1


@dataclass(frozen=True)
class Case:
    """The body of `def kernel(A, B)`, where `A` is the argument and `B` the result."""

    body: str
    argument: np.ndarray
    expected: Callable[[np.ndarray], np.ndarray]
    head: str = ""


def module_of(text: str):
    return parse(dedent(text), filename="test.py")


def call(case: Case) -> object:
    expected = case.expected(case.argument)
    argument = f'({_shape(case.argument)}), "{case.argument.dtype}"'
    result = f'({_shape(expected)}), "{expected.dtype}"'
    text = f"""
@T.prim_func
def kernel(A: T.Buffer({argument}), B: T.Buffer({result})):
{indent(dedent(case.body).strip(), "    ")}

@R.function
def main(x: R.Tensor({argument})):
    return R.call_tir(kernel, (x,), out_ty=R.Tensor({result}))
"""
    return run_in_turn(module_of(text), "main", [case.argument])


def _shape(array: np.ndarray) -> str:
    return "".join(f"{size}, " for size in array.shape)


CASES = {
    "grid_and_blocks": Case(
        """
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj])
                T.writes(B[vj, vi])
                B[vj, vi] = A[vi, vj] * 2.0
        """,
        M,
        lambda a: a.T * 2,
    ),
    "reduction_with_init": Case(
        """
        for i, j in T.grid(3, 4):
            with T.sblock("B"):
                vi = T.axis.spatial(3, i)
                vj = T.axis.reduce(4, j)
                with T.init():
                    B[vi] = T.min_value("float32")
                B[vi] = T.max(B[vi], A[vi, vj])
        """,
        M,
        lambda a: a.max(1),
    ),
    "scan": Case(
        """
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.scan(8, i)
                B[vi] = T.if_then_else(vi > 0, B[vi - 1], T.float32(0)) + A[vi]
        """,
        A1,
        np.cumsum,
    ),
    "init_in_each_step_of_a_scan": Case(
        """
        for i, j in T.grid(3, 4):
            with T.sblock("B"):
                vi = T.axis.scan(3, i)
                vj = T.axis.reduce(4, j)
                with T.init():
                    B[vi] = T.float32(1)
                B[vi] = B[vi] + A[vi, vj]
        """,
        M,
        lambda a: 1 + a.sum(1),
    ),
    "opaque_axis": Case(
        """
        for i in range(8):
            with T.sblock("B"):
                vi = T.axis.opaque(8, 7 - i)
                B[vi] = A[vi]
        """,
        A1,
        np.copy,
    ),
    "predicate": Case(
        """
        for i0, i1 in T.grid(3, 3):
            with T.sblock("B"):
                vi = T.axis.spatial(8, i0 * 3 + i1)
                T.where(i0 * 3 + i1 < 8)
                B[vi] = A[vi] + T.float32(1)
        """,
        A1,
        lambda a: a + 1,
    ),
    "domain_from_one": Case(
        """
        B[0] = A[0]
        for i in range(1, 8):
            with T.sblock("B"):
                vi = T.axis.spatial((1, 8), i)
                B[vi] = A[vi - 1]
        """,
        A1,
        lambda a: np.concatenate([a[:1], a[:-1]]),
    ),
    "remap_from_one": Case(
        """
        B[0] = A[0]
        for i in T.serial(1, 8):
            with T.sblock("B"):
                vi = T.axis.remap("S", [i])
                B[vi] = -A[vi]
        """,
        A1,
        lambda a: np.concatenate([a[:1], -a[1:]]),
    ),
    "loop_kinds": Case(
        """
        for i in T.parallel(2):
            for j in T.unroll(2):
                for k in T.vectorized(2, annotations={"hint": 1}):
                    B[i * 4 + j * 2 + k] = A[i * 4 + j * 2 + k] * A[i * 4 + j * 2 + k]
        """,
        A1,
        lambda a: a * a,
    ),
    "step": Case(
        """
        for i in range(8):
            B[i] = 0
        for i in range(1, 8, 3):
            B[i] = A[i]
        """,
        A1,
        lambda a: np.where(np.arange(8) % 3 == 1, a, 0).astype(np.float32),
    ),
    "while": Case(
        """
        i = T.alloc_buffer((1,), "int32", scope="local")
        i[0] = 0
        while i[0] < 8 and A[i[0]] != 9.0:
            B[i[0]] = A[i[0]]
            i[0] += 1
        while i[0] < 8:
            B[i[0]] = 0.5
            i[0] = i[0] + 1
        """,
        A1,
        lambda a: np.where(np.arange(8) < 5, a, 0.5).astype(np.float32),
    ),
    "branches": Case(
        """
        for i in range(8):
            if A[i] > 3:
                B[i] = 1
            elif A[i] < 0 or i == 0:
                B[i] = 2
            else:
                B[i] = A[i]
        """,
        A1,
        lambda a: np.select([a > 3, (a < 0) | (np.arange(8) == 0)], [1, 2], a).astype(np.float32),
    ),
    "guarded_load": Case(
        """
        for i in range(8):
            B[i] = T.if_then_else(i > 0 and i < 7, A[i - 1] + A[i + 1], A[i])
        """,
        A1,
        lambda a: np.concatenate([a[:1], a[:-2] + a[2:], a[-1:]]),
    ),
    "scalars": Case(
        """
        for i in range(8):
            x: T.float32 = A[i] * T.float32(2)
            y = x + A[7 - i]
            with T.LetStmt(y * y) as z:
                B[i] = z - T.Let(t * t, where={t: x})
        """,
        A1,
        lambda a: (2 * a + a[::-1]) ** 2 - 4 * a * a,
    ),
    "integers": Case(
        """
        for i in range(8):
            B[i] = A[i] // 3 + A[i] % 3 * 10 + T.truncdiv(A[i], 2) * 100 + T.truncmod(A[i], 2) * 1000 + i
        """,
        I1,
        lambda a: (a // 3 + a % 3 * 10 + np.trunc(a / 2) * 100 + np.fmod(a, 2) * 1000 + np.arange(8)).astype(np.int32),
    ),
    "bits": Case(
        """
        for i in range(8):
            B[i] = (A[i] << 2) ^ (A[i] >> 1) | ~A[i] & 7
        """,
        I1,
        lambda a: (a << 2) ^ (a >> 1) | ~a & 7,
    ),
    "casts": Case(
        """
        for i in range(8):
            B[i] = T.Cast("float64", T.int32(A[i])) + T.cast(i, "float64") + A[i].astype("float64")
        """,
        A1,
        lambda a: np.trunc(a).astype(np.float64) + np.arange(8) + a,
    ),
    "mixed_dtypes": Case(
        """
        for i in range(8):
            B[i] = A[i] * 0.5 + i
        """,
        I1,
        lambda a: (a * 0.5 + np.arange(8)).astype(np.float32),
    ),
    "truth_values": Case(
        """
        for i in range(8):
            B[i] = T.Select(A[i] and not (i == 3), T.float32("inf"), -T.infinity("float32"))
        """,
        BOOLS,
        lambda a: np.where(a & (np.arange(8) != 3), np.inf, -np.inf).astype(np.float32),
    ),
    "functions": Case(
        """
        for i in range(8):
            B[i] = T.sqrt(T.fabs(A[i])) + T.exp(T.min(A[i], T.float32(1))) * T.sigmoid(A[i]) - T.pow(2.0, A[i])
        """,
        A1,
        lambda a: np.sqrt(abs(a)) + np.exp(np.minimum(a, 1)) / (1 + np.exp(-a)) - np.float32(2) ** a,
    ),
    "views": Case(
        """
        for i, j in T.grid(3, 2):
            with T.sblock("tile"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi, vj * 2:vj * 2 + 2])
                T.writes(B[vi, vj * 2:vj * 2 + 2])
                SA = T.match_buffer(A[vi, vj * 2:vj * 2 + 2], (2,), strides=("s",), offset_factor=1)
                SB = T.match_buffer(B[vi, vj * 2:vj * 2 + 2], (2,), offset_factor=1)
                for k in range(2):
                    with T.sblock("element"):
                        vk = T.axis.spatial(2, k)
                        SB[vk] = SA[1 - vk]
        """,
        M,
        lambda a: a.reshape(3, 2, 2)[:, :, ::-1].reshape(3, 4),
    ),
    "allocation": Case(
        """
        with T.sblock("root"):
            T.reads()
            T.writes()
            C = T.sblock_alloc_buffer((3, 4), align=64)
            D = T.alloc_buffer((3, 4), "float32", scope="local")
            for i, j in T.grid(3, 4):
                with T.sblock("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = A[vi, vj] + 1.0
            for i, j in T.grid(3, 4):
                D[i, j] = C[i, j] * 2.0
            for i, j in T.grid(3, 4):
                B[i, j] = D[i, j]
        """,
        M,
        lambda a: (a + 1) * 2,
    ),
    "flat_memory": Case(
        """
        A_1 = T.decl_buffer((12,), "float32", data=A.data)
        data = T.allocate([12], "float32", "global")
        C = T.decl_buffer((12,), "float32", data=data)
        for i in range(12):
            C[i] = A_1[11 - i]
        for i, j in T.grid(3, 4):
            B[i, j] = C[i * 4 + j]
        """,
        M,
        lambda a: a.reshape(-1)[::-1].reshape(3, 4),
    ),
    "vectors": Case(
        """
        B[0:4] = A[4:8] * A[0:4] + T.Broadcast(T.float32(1), 4)
        for i in range(2):
            B[4 + i * 2:4 + i * 2 + 2] = A[i * 2:i * 2 + 2]
        """,
        A1,
        lambda a: np.concatenate([a[4:] * a[:4] + 1, a[:4]]),
    ),
    "ramps": Case(
        """
        B[T.Ramp(0, 2, 4)] = A[T.Ramp(7, -1, 4)]
        B[T.ramp(1, 2, 4)] = A[0:4] - 1.0
        """,
        A1,
        lambda a: np.stack([a[:3:-1], a[:4] - 1], 1).reshape(-1),
    ),
    "external_functions": Case(
        """
        for i in range(8):
            B[i] = T.call_pure_extern("float32", "fabsf", A[i]) + T.call_extern("float32", "floorf", A[i])
        """,
        A1,
        lambda a: abs(a) + np.floor(a),
    ),
    "assertion": Case(
        """
        assert A[0] == 3.0, "starts with three"
        for i in range(8):
            T.evaluate(0)
            B[i] = A[i]
        """,
        A1,
        np.copy,
    ),
    "block_with_extents": Case(
        """
        with T.block([3, 4]) as [i, j]:
            B[i, j] = A[i, j] + 2.0
        """,
        M,
        lambda a: a + 2,
    ),
    "block_with_a_reduction": Case(
        """
        with T.block([3, T.reduce_axis(0, 4)], "sum") as [i, j]:
            with T.init():
                B[i] = T.float32(0)
            B[i] += A[i, j]
        """,
        M,
        lambda a: a.sum(1),
    ),
    "grid_as_a_scope": Case(
        """
        with T.grid(3, 4) as (i, j):
            B[i, j] = -A[i, j]
        """,
        M,
        lambda a: -a,
    ),
    "shapes_of_buffers": Case(
        """
        for i, j in T.grid(A.shape[0], A.shape[1]):
            B[i, j] = A[i, j] if i < j else 0.0
        """,
        M,
        lambda a: np.where(np.arange(3)[:, None] < np.arange(4), a, 0).astype(np.float32),
    ),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", CASES)
def test_kernel(name: str):
    case = CASES[name]
    np.testing.assert_allclose(call(case), case.expected(case.argument), rtol=1e-5, atol=1e-6)
