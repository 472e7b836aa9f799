"""What a function or region must not hold is told at the op, and all of it at once."""

import pytest

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.verify import verify_module

MODULE = """
relax.func @f[%n, %k](%x: !relax.tensor<[n], f32>) -> !relax.object {
  relax.print "{}"(%x)
  %y = relax.dataflow {
    %0 = relax.call_packed "g"(%x) : !relax.object
    %1 = relax.call @f(%x) : !relax.object
    %2 = relax.closure (%r: !relax.object) -> !relax.object {
      relax.print "{}"(%r)
      relax.return %1
    }
    relax.output %2
  }
  %z = relax.add %x, %y
  %w = relax.exp %z
  relax.print "{}"(%w)
  %u = relax.call @nowhere(%x)  %v = relax.exp %u
  %s = relax.shape [q]
  relax.return %w
}
relax.func @g(%x: !relax.object) -> !relax.object {
  relax.return %x
}
relax.func @g(%x: !relax.object) -> !relax.object {
  relax.return %x
}
"""


def test_every_violation_is_reported_where_it_is():
    """Operands of a wrong kind and unknown functions do not end the reading; what follows from them is left out."""
    with pytest.raises(InvalidModule) as caught:
        verify_module(parse_module(MODULE))
    found = sorted((line_of(finding.headline()), finding.message) for finding in caught.value.findings)
    expected = [
        (2, "cannot be entered: nothing binds the symbol k"),
        (3, "@f is pure, but holds 'relax.print', which is impure: it writes to the standard output"),
        (5, "'relax.dataflow' op holds 'relax.call_packed', which is impure"),
        (6, "'relax.call' op argument #0: nothing binds the symbol k"),
        (6, "'relax.dataflow' op calls @f recursively"),
        (7, "holds a closure that captures a value of the region"),
        (8, "'relax.closure' op is pure, but holds 'relax.print'"),
        (13, "'relax.add' op operand #1 expected a tensor, got !relax.func<"),
        (15, "@f is pure, but holds 'relax.print'"),
        (16, "'relax.call' op expected a 'relax.func', but @nowhere is not defined in the module"),
        (17, "property values uses symbol q, which nothing binds"),
        (23, "'relax.func' op @g is defined already at <text>:20:1; give it another name"),
    ]
    assert [line for line, _ in found] == [line for line, _ in expected]
    assert all(part in message for (_, message), (_, part) in zip(found, expected, strict=True))


CAPTURES = """
relax.func @f(%x: !relax.tensor<[2], f32>, %y: !relax.object) -> !relax.tensor<[2], f32> {
  relax.return %x
}
relax.func @g(%s: !relax.shape<[2]>, %x: !relax.tensor<[3], f32>) -> !relax.object {
  %f = relax.make_closure @f(%s)
  %r = relax.call_closure %f(%x)
  %h = relax.make_closure @f(%x, %x, %x)
  %k = relax.make_closure @f(%x)
  %m = relax.make_closure @nobody(%x)
  %y = relax.add %x, %s
  relax.return %r
}
"""


def test_wrong_captures_are_errors_among_others():
    with pytest.raises(InvalidModule) as caught:
        verify_module(parse_module(CAPTURES))
    found = sorted((line_of(finding.headline()), finding.message) for finding in caught.value.findings)
    expected = [
        (6, "captured value #0: expected !relax.tensor<[2], f32>, got !relax.shape<[2]>"),
        (8, "captures 3 values, but @f has 2 parameters"),
        (9, "captured value #0 dimension 0: 3 does not match 2"),
        (10, "expected a 'relax.func', but @nobody is not defined in the module"),
        (11, "operand #1 expected a tensor, got !relax.shape<[2]>"),
    ]
    assert [line for line, _ in found] == [line for line, _ in expected]
    assert all(part in message for (_, message), (_, part) in zip(found, expected, strict=True))


def test_operands_of_a_wrong_kind_are_named():
    text = """
    relax.func @f(%x: !relax.tensor<[4], f32>) -> !relax.object {
      relax.for %i = %x to %x () {
        relax.yield
      }
      relax.return %x
    }
    """
    with pytest.raises(
        InvalidModule, match=r"'relax.for' op operand #0 \(lower\) expected !relax.prim, got !relax.tensor"
    ):
        verify_module(parse_module(text))


def line_of(headline: str) -> int:
    """The line in `<text>:line:column: error: ...`."""
    return int(headline.split(":")[1])
