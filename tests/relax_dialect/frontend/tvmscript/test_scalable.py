"""`T.vscale()`: the same results whatever it is, and as many lanes as the target says."""

from pathlib import Path

import numpy as np
import pytest

from relax_dialect.frontend.tvmscript import parse
from tests.support.programs import run_in_turn
from tir_dialect.target import Target
from xdsl_relax.cli.relax_translate import main

TEXT = """
@T.prim_func
def kernel(a: T.handle, b: T.handle, c: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for i in range(T.ceildiv(n, T.vscale() * 4)):
        mask = T.meta_var(T.get_active_lane_mask("uint1xvscalex4", i * 4 * T.vscale(), n))
        row = T.meta_var(A.vload([i * 4 * T.vscale()], "float32xvscalex4", predicate=mask))
        B.vstore([i * 4 * T.vscale()], row * T.Broadcast(T.float32(2), T.vscale() * 4), predicate=mask)
    for i in range(T.floordiv(n, T.vscale() * 4)):
        for j in T.vectorized(4 * T.vscale()):
            C[i * 4 * T.vscale() + j] = A[i * 4 * T.vscale() + j]
    for i in range(n // (T.vscale() * 4) * (T.vscale() * 4), n):
        C[i] = A[i]
    if n >= 4 * T.vscale():
        C[T.ramp(0, 1, 4 * T.vscale())] = C[T.ramp(0, 1, 4 * T.vscale())] + T.Cast(
            "float32xvscalex4", T.Broadcast(0, T.vscale() * 4))

@R.function
def f(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    return R.call_tir(kernel, (x,), out_ty=[R.Tensor((n,), "float32"), R.Tensor((n,), "float32")])
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", [None, "x86-64-v3", Target("", "", vector_bits=64), "x86-64-v4"])
def test_values_do_not_depend_on_the_machine(target: Target | str | None):
    module = parse(TEXT, target=target)
    for n in (0, 3, 16, 37):
        x = np.arange(n, dtype=np.float32)
        doubled, same = run_in_turn(module, "f", [x])
        np.testing.assert_array_equal(doubled, x * 2)
        np.testing.assert_array_equal(same, x)


@pytest.mark.parametrize(("target", "lanes"), [(None, 4), ("x86-64-v3", 8), ("x86-64-v4", 16)])
def test_lanes_are_those_of_the_target(target: str | None, lanes: int):
    assert f"vector<{lanes}xf32>" in str(parse(TEXT, target=target))


def test_target_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "p.py"
    path.write_text(TEXT)
    assert main([str(path), "--import-tvmscript", "--target", "x86-64-v4"]) == 0
    assert "vector<16xf32>" in capsys.readouterr().out


def test_names_around_a_text():
    text = "@T.prim_func\ndef f(A: T.Buffer((32,), dtype)):\n    A[0:extent] = T.Cast(row, T.Broadcast(1, extent))"
    from relax_dialect.frontend.tvmscript import tir as T

    around = {"extent": T.vscale() * 4, "dtype": "float32", "row": "float32xvscalex4"}
    assert "vector<8xf32>" in str(parse(text, around, target="x86-64-v3"))
