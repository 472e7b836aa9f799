"""Errors of ops whose result types are not written: all are reported, as those of ops with types are."""

import pytest

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.verify import verify_module

MODULE = """
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[n, 5], f32>) {
  %0 = relax.add %x, %y
  %1 = relax.exp %0
  %s = relax.shape_of %1
  %2 = relax.shape_of %x
  %3 = relax.shape_get %2[7]
  %4 = relax.call @vector(%x)
  %5 = relax.concat %4, %x axis = 0
  %6 = relax.multiply %x, %2
  %7 = relax.call @vector(%6)
  %8 = relax.shape_of %s
  %9 = relax.tuple_get %8[0]
  relax.return %1
}
relax.func private @vector(%x: !relax.tensor<[3], f32>) -> !relax.tensor<[3], f32> {
  relax.return %x
}
"""


def test_every_op_reports_its_own_error():
    """Not: `exp`, `call` and `tuple_get`, which only use values of which nothing is known."""
    with pytest.raises(InvalidModule) as caught:
        verify_module(parse_module(MODULE))
    messages = [finding.message for finding in caught.value.findings]
    assert messages == [
        "'relax.add' op dimensions 4 and 5 do not broadcast",
        "'relax.shape_get' op expected an index within !relax.shape<[n, 4]>, got 7",
        "'relax.call' op argument #0: expected !relax.tensor<[3], f32>, got !relax.tensor<[n, 4], f32>",
        "'relax.concat' op expected operands of one rank, got 1 and 2",
        "'relax.multiply' op operand #1 expected a tensor, got !relax.shape<[n, 4]>",
        "'relax.shape_of' op operand #0 expected a tensor, got !relax.shape<*>",
    ]
    for line in (3, 7, 8, 9, 10, 12):
        assert f"<text>:{line}:3: error" in str(caught.value)
