"""Rewrites of what a dataflow pattern matches."""

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from lowering.parsing import parse_module
from lowering.relax.matchers import RewriteMatch
from lowering.rewriting import apply_patterns, may_match
from relax_dialect.ops.activation import ReluOp
from relax_dialect.ops.structure import ReturnOp
from relax_dialect.ops.unary import ExpOp, NegativeOp
from relax_dialect.patterns import Match, is_op, wildcard
from tests.support.programs import run_in_turn


def function(body: str) -> str:
    return f"""
    relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %y: !relax.tensor<[n, 4], f32>) -> !relax.object {{
      {body}
      relax.return %r
    }}
    """


class RecognizeRelu(RewriteMatch):
    """`maximum(x, zeros_like(x))  ->  relu(x)`."""

    def __init__(self) -> None:
        self.x = wildcard()
        super().__init__(is_op("relax.maximum")(self.x, is_op("relax.zeros_like")(self.x)))

    def replacement(self, found: Match) -> Sequence[Operation] | None:
        return [ReluOp(found[self.x])]


class HalveExponentials(RewriteMatch):
    """`exp(exp(x))  ->  negative(x)`, which is wrong, but shows which ops were matched together."""

    def __init__(self) -> None:
        self.x = wildcard()
        super().__init__(is_op("relax.exp")(is_op("relax.exp")(self.x)))

    def replacement(self, found: Match) -> Sequence[Operation] | None:
        return [NegativeOp(found[self.x])]


class Decline(RewriteMatch):
    """Matches sums and leaves them."""

    def replacement(self, found: Match) -> Sequence[Operation] | None:
        return None


def test_a_match_is_replaced_with_its_name_and_location():
    module = parse_module(function("%z = relax.zeros_like %x\n%a = relax.maximum %x, %z\n%r = relax.exp %a"))
    (maximum,) = [op for op in module.walk() if op.name == "relax.maximum"]
    location = maximum.location
    assert apply_patterns(module, [RecognizeRelu()], reverse=True)
    assert [op.name for op in module.walk()][2:] == ["relax.nn.relu", "relax.exp", "relax.return"]
    assert not apply_patterns(module, [RecognizeRelu()], reverse=True)
    (relu,) = [op for op in module.walk() if isinstance(op, ReluOp)]
    assert (relu.results[0].name_hint, relu.location) == ("a", location)
    data = np.array([[-1, 0, 2, 3]], np.float32)
    np.testing.assert_allclose(run_in_turn(module, "main", [data, data]), np.exp(np.maximum(data, 0)), rtol=1e-6)


def test_the_last_ops_are_matched_first_and_no_op_twice():
    body = "%a = relax.exp %x\n%b = relax.exp %a\n%r = relax.exp %b"
    module = parse_module(function(body))
    assert apply_patterns(module, [HalveExponentials()], reverse=True)
    (ret,) = [op for op in module.walk() if isinstance(op, ReturnOp)]
    assert isinstance(last := ret.value.owner, NegativeOp)
    assert isinstance(first := last.operands[0].owner, ExpOp)
    assert first.operands[0].name_hint == "x"


def test_a_replacement_may_decline():
    module = parse_module(function("%r = relax.add %x, %y"))
    text = str(module)
    assert not apply_patterns(module, [Decline(is_op("relax.add"))], reverse=True)
    assert str(module) == text


def test_only_ops_that_can_make_the_value_are_tried():
    x = wildcard()
    root = (is_op("relax.exp")(x) | is_op("relax.negative")(x)).where(lambda value: True)
    assert [may_match(Decline(root), op) for op in (ExpOp, NegativeOp, ReluOp)] == [True, True, False]
    assert all(may_match(Decline(~root), op) for op in (ExpOp, NegativeOp, ReluOp))
