"""Assembly formats: what they share with xDSL's, and where they differ."""

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, i32
from xdsl.ir import Dialect, Operation
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.traits import Pure
from xdsl.utils.exceptions import ParseError, VerifyException

from lowering.registry import DIALECTS, load_dialect
from tests.support.rules import each
from tir_dialect.ops.assembly_format import ResultType, format_of, op_definition


def has_format(op: type[Operation]) -> bool:
    """Whether the op says its syntax in a format."""
    return issubclass(op, IRDLOperation) and op.assembly_format is not None


OPS = [op for name in ("relax", "tir") for op in load_dialect(name).operations]
REGIONS = {"relax": 7, "tir": 6, "vm": 1}
"""How many ops have a syntax that no format describes: nearly all have regions."""


@op_definition
class GroupsOp(IRDLOperation):
    """Operands of every kind."""

    name = "test.groups"

    first = operand_def(i32)
    others = var_operand_def()
    last = opt_operand_def()
    result = result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = "$first `[` $others `]` (`to` $last^)? attr-dict `:` custom<ResultType>(type($result))"
    custom_directives = (ResultType,)


@op_definition
class WrongOp(IRDLOperation):
    """An op whose format does not have its operand."""

    name = "test.wrong"

    value = operand_def()

    assembly_format = "attr-dict"


HEAD = '%a = "test.op"() : () -> i32\n%f = "test.op"() : () -> f32\n'


def last_op(text: str) -> Operation:
    context = Context(allow_unregistered=True)
    context.load_dialect(Builtin)
    context.load_dialect(Dialect("test", [GroupsOp, WrongOp]))
    found = Parser(context, HEAD + text).parse_module().body.block.last_op
    assert found is not None
    return found


@each(["%a[]", "%a[%f]", "%a[%f, %a] to %f", '%a[] {note = "x"}'])
def test_text_is_read_and_printed(text: str):
    op = last_op(f"%r = test.groups {text} : i64")
    op.verify()
    assert f"test.groups {text} : i64" in str(op).replace("%0", "%a").replace("%1", "%f")


def test_operands_are_grouped():
    op = last_op("%r = test.groups %a[%f, %a] to %f : i64")
    assert isinstance(op, GroupsOp)
    assert [value.type for value in op.others] == [op.operands[1].type, i32]
    assert op.last is op.operands[3]


def test_types_are_left_to_the_verifier():
    op = last_op("%r = test.groups %f[] : i64")
    with pytest.raises(VerifyException, match="i32"):
        op.verify()


@each(
    [
        ("%b[]", "value %b is used before its definition"),
        ("%a#1[]", "value %a has 1 results, got index 1"),
        ("%a[] to : i64", "expected a value"),
        ("3", "expected a value"),
    ]
)
def test_wrong_operands_are_errors_at_them(text: str, message: str):
    with pytest.raises(ParseError, match=message):
        last_op(f"%r = test.groups {text}")


def test_wrong_formats_are_errors_at_first_use():
    with pytest.raises(ParseError, match="operand 'value' not found"):
        last_op("test.wrong")


def test_an_op_needs_a_format():
    class NoOp(IRDLOperation):
        name = "test.no"

    with pytest.raises(TypeError, match="NoOp has no assembly_format"):
        op_definition(NoOp)


@each([op for op in OPS if has_format(op)], lambda op: op.name)
def test_formats_are_right(op: type[IRDLOperation]):
    assert format_of(op).stmts


@each([op for name in ("vm", "llvm_ext") for op in load_dialect(name).operations if has_format(op)], lambda op: op.name)
def test_formats_with_types_are_right(op: type[IRDLOperation]):
    assert FormatProgram.from_str(op.assembly_format or "", op.get_irdl_definition()).stmts


@each(REGIONS)
def test_most_ops_have_a_format(dialect: str):
    assert dialect in DIALECTS
    other = [op.name for op in load_dialect(dialect).operations if not has_format(op)]
    assert len(other) <= REGIONS[dialect], f"{other} have hand-written syntax"
