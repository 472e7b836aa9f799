"""Tuples: `vm.make_tuple`, `vm.tuple_get`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from vm_dialect.ops.base import Argument, BuiltinOp, verify_boxable
from vm_dialect.ops.definition import op_definition
from vm_dialect.ops.syntax import Value, Values
from vm_dialect.types import OBJECT


@op_definition
class MakeTupleOp(BuiltinOp):
    """A tuple of values: `vm.make_tuple(%a, %b)`.

    C1: no field is a storage.
    """

    name = "vm.make_tuple"
    BUILTIN: ClassVar[str] = "make_tuple"

    fields = var_operand_def()
    result = result_def(OBJECT)

    traits = traits_def(Pure())

    custom_directives = (Values,)
    assembly_format = "custom<Values>($fields, type($fields)) attr-dict"

    def __init__(self, fields: Sequence[SSAValue | Operation]):
        super().__init__(operands=[fields], result_types=[OBJECT])

    @override
    def verify_(self) -> None:
        verify_boxable(self, self.fields)  # C1


@op_definition
class TupleGetOp(BuiltinOp):
    """A field of a tuple: `vm.tuple_get %t[1]`.

    `TypeError` if the value is no tuple, `ValueError` if it has no such field.

    C1: the index is not negative.
    """

    name = "vm.tuple_get"
    BUILTIN: ClassVar[str] = "tuple_get"

    tuple = operand_def(OBJECT)
    index = prop_def(IntegerAttr.constr(i64))
    result = result_def(OBJECT)

    traits = traits_def(NoMemoryEffect())

    custom_directives = (Value,)
    assembly_format = "$tuple `[` $index `]` attr-dict"

    def __init__(self, value: SSAValue | Operation, index: int):
        super().__init__(operands=[value], result_types=[OBJECT], properties={"index": IntegerAttr(index, i64)})

    @override
    def verify_(self) -> None:
        if self.index.value.data < 0:
            raise VerifyException(f"'vm.tuple_get' op expected an index >= 0, got {self.index.value.data}")  # C1

    def bytecode_args(self) -> Sequence[Argument]:
        """The tuple and the index."""
        return (self.tuple, self.index.value.data)
