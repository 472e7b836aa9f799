"""Formats that are read late are the formats."""

import pytest
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import Builtin, i32
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.traits import Pure
from xdsl.utils.exceptions import ParseError, PyRDLOpDefinitionError

from tir_dialect.startup.assembly_formats import formats_on_demand

with formats_on_demand():

    @irdl_op_definition
    class LateOp(IRDLOperation):
        """An op with a format."""

        name = "late.op"
        x = operand_def(i32)
        y = result_def(i32)
        traits = traits_def(Pure())
        assembly_format = "`of` $x attr-dict"

    @irdl_op_definition
    class FaultyOp(IRDLOperation):
        """An op whose format says nothing of its operand."""

        name = "late.faulty"
        x = operand_def(i32)
        assembly_format = "attr-dict"


def test_ops_are_parsed_and_printed():
    context = Context()
    for dialect in (Builtin, test.Test, Dialect("late", [LateOp])):
        context.load_dialect(dialect)
    module = Parser(context, '%x = "test.op"() : () -> i32  %y = late.op of %x {a}').parse_module()
    assert isinstance(module.body.block.last_op, LateOp)
    assert "late.op of %x {a}" in str(module)


def test_a_faulty_format_fails_when_it_is_needed():
    op = FaultyOp.build(operands=[test.TestOp(result_types=[i32]).results[0]])
    with pytest.raises(ParseError, match="operand 'x' not found"):
        str(op)


def test_xdsl_is_put_back():
    before = FormatProgram.from_str
    with pytest.raises(ValueError, match="stop"), formats_on_demand(), formats_on_demand():
        raise ValueError("stop")
    assert FormatProgram.from_str is before

    class AtOnceOp(IRDLOperation):
        name = "late.at_once"
        x = operand_def(i32)
        assembly_format = "attr-dict"

    with pytest.raises(PyRDLOpDefinitionError, match="assembly format"):
        irdl_op_definition(AtOnceOp)
