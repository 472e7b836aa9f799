import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from lowering.parsing import parse_module
from lowering.verify import dominance_findings


def _op(*operands: SSAValue, regions: list[list[Operation]] | None = None, name: str | None = None) -> test.TestOp:
    op = test.TestOp(operands, [i32], regions=[Region(Block(ops)) for ops in regions or []])
    op.results[0].name_hint = name
    return op


def _messages(*ops: Operation) -> list[str]:
    return [finding.message for finding in dominance_findings(ModuleOp(list(ops)))]


def test_a_value_is_not_visible_outside_of_its_region():
    inner = _op(name="v")
    outer = _op(regions=[[inner]])
    assert _messages(outer, _op(inner.results[0])) == [
        "'test.op' op operand #0 (%v) is defined inside 'test.op' and is not visible outside of it"
    ]


def test_a_value_is_not_visible_in_a_sibling_region():
    inner = _op(name="v")
    assert _messages(_op(regions=[[inner], [_op(inner.results[0])]])) == [
        "'test.op' op operand #0 (%v) is defined inside 'test.op' and is not visible outside of it"
    ]


def test_a_value_is_visible_in_nested_regions():
    value = _op()
    assert not _messages(value, _op(regions=[[_op(regions=[[_op(value.results[0])]])]]))


def test_an_op_does_not_see_its_own_results_inside():
    user = _op()
    outer = _op(regions=[[user]], name="v")
    user.operands = [outer.results[0]]
    assert _messages(outer) == ["'test.op' op operand #0 (%v) is used inside its own definition"]


def test_isolation_hides_what_is_outside():
    value = _op(name="v")
    function = FuncOp("f", ((), ()), Region(Block([_op(value.results[0])])))
    assert _messages(value, function) == [
        "'test.op' op operand #0 (%v) is defined outside of 'func.func', which is isolated from above"
    ]


def test_a_detached_definition_is_an_error():
    assert _messages(_op(_op().results[0])) == [
        "'test.op' op operand #0 (result #0 of 'test.op') is defined by an op that is in no block"
    ]


def test_an_erased_value_is_an_error():
    value = _op()
    user = _op(value.results[0])
    value.results[0].erase(safe_erase=False)
    assert _messages(value, user) == ["'test.op' op operand #0 (result #0 of 'test.op') was erased"]


def test_each_bad_value_is_reported_once_and_each_of_several():
    late, later = _op(name="a"), _op(name="b")
    users = [_op(late.results[0], later.results[0]), _op(late.results[0])]
    assert [message.split(" is used ")[0] for message in _messages(*users, late, later)] == [
        "'test.op' op operand #0 (%a)",
        "'test.op' op operand #1 (%b)",
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # A diamond: the entry dominates the join, a side does not.
        (
            """
              %x = arith.constant 1 : i32
              cf.cond_br %c, ^left, ^right
            ^left:
              %y = arith.constant 1 : i32
              cf.br ^join
            ^right:
              cf.br ^join
            ^join:
              %z = arith.addi %x, %y : i32
              func.return
            """,
            ["'arith.addi' op operand #1 (%y) is defined at t:5:15 in a block that does not dominate this use"],
        ),
        # A loop: what the header defines is visible in the body and after; what the body defines is not after.
        (
            """
              cf.br ^header
            ^header:
              %x = arith.constant 1 : i32
              cf.cond_br %c, ^body, ^exit
            ^body:
              %y = arith.addi %x, %x : i32
              cf.br ^header
            ^exit:
              %z = arith.addi %x, %y : i32
              func.return
            """,
            ["'arith.addi' op operand #1 (%y) is defined at t:7:15 in a block that does not dominate this use"],
        ),
        # Anything may be used where control never comes, but not the other way round.
        (
            """
              %z = arith.addi %y, %y : i32
              func.return
            ^never:
              %x = arith.addi %y, %z : i32
              cf.br ^never
            ^neither:
              %y = arith.addi %x, %x : i32
              cf.br ^never
            """,
            ["'arith.addi' op operand #0 (%y) is defined at t:8:15 in a block that does not dominate this use"],
        ),
    ],
    ids=["diamond", "loop", "unreachable"],
)
def test_blocks(body: str, expected: list[str]):
    module = parse_module(f"func.func @f(%c: i1) {{ {body} }}", "t")
    module.verify()
    assert [finding.message for finding in dominance_findings(module)] == expected
