"""Which pass over a row asks for the memory of other passes, and for how much of it."""

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.ir import Operation

from lowering.legalize.legalize_ops import LegalizeOpsPass
from lowering.parsing import parse_module
from lowering.schedule.schedule_cpu import schedule
from tests.support.programs import run_everywhere
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.prefetch import PrefetchOp
from tir_dialect.target import Target

ROW = "!relax.tensor<[n], f32>"
LAYER_NORM = "relax.nn.layer_norm %x, %y, %z axes = [-1]"


def program(rows: str, body: str, length: str = "n") -> str:
    symbols = ", ".join(f"%{name}" for name in (rows, length) if not name.isdigit())
    row = ROW.replace("n]", f"{length}]")
    return f"""
    relax.func @main[{symbols}](%x: !relax.tensor<[{rows}, {length}], f32>, %y: {row}, %z: {row}) -> !relax.object {{
      %0 = {body}
      relax.return %0
    }}"""


def asked(body: str, length: str = "n") -> list[tuple[str, Operation | None]]:
    """What is asked for in which loop, in order."""
    module = parse_module(program("m", body, length))
    LegalizeOpsPass().apply(Context(), module)
    func = next(op for op in module.ops if isinstance(op, PrimFuncOp))
    schedule(func, Target.parse("x86-64-v3 cores=1 l2-bytes=524288"))
    return [(op.buffer.name_hint or "", op.parent_op()) for op in func.walk() if isinstance(op, PrefetchOp)]


def test_the_second_sum_of_a_row_asks_line_by_line_for_the_next_row_and_the_result() -> None:
    found = asked(LAYER_NORM)
    # A turn of four vectors has two lines; a vector that is left has half of one.
    assert [name for name, _ in found] == ["x", "x", "layer_norm", "layer_norm", "x", "layer_norm"]
    assert [loop is found[0][1] for _, loop in found] == [True] * 4 + [False] * 2


def test_a_variance_has_no_row_of_results() -> None:
    assert {name for name, _ in asked("relax.variance %x axes = [1]")} == {"x"}


@pytest.mark.parametrize(("length", "asks"), [("1000", True), ("4096", True), ("4104", False)])
def test_rows_that_would_be_gone_are_not_asked_for(length: str, asks: bool) -> None:
    assert bool(asked(LAYER_NORM, length)) == asks


@pytest.mark.parametrize("n", [1, 300, 4100])
def test_values_of_rows_that_are_asked_for_or_too_long(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y, z = (rng.standard_normal(shape, np.float32) for shape in ((3, n), (n,), (n,)))
    run_everywhere(program("m", LAYER_NORM), "main", [x, y, z])
