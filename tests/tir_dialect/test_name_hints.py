import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import i32

from tir_dialect.types import as_name_hint


@pytest.mark.parametrize(
    ("name", "hint"),
    [("x", "x"), ("x_1", "x"), ("_", "_"), ("x_1_2", "x"), ("_1", None), ("_1_2", None), ("1x", None), (None, None)],
)
def test_hint_can_be_copied(name: str | None, hint: str | None):
    op = test.TestOp(result_types=[i32])
    op.results[0].name_hint = as_name_hint(name)
    assert op.results[0].name_hint == hint
    assert op.clone().results[0].name_hint == hint
