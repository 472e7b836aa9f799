"""Arithmetic on sizes: `vm.int`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from typing_extensions import override
from xdsl.dialects.utils import EnumAttribute
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SpacedOpaqueSyntaxAttribute, SSAValue
from xdsl.irdl import IRDLOperation, eq, irdl_attr_definition, operand_def, prop_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import AttributeVariable, ParsingState, PrintingState, TypeDirective
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from vm_dialect.integers import COMPARISONS, INT_FUNCTIONS, LOGICAL
from vm_dialect.ops.base import BuiltinOp
from vm_dialect.ops.constants import ConstOp, number_attr
from vm_dialect.ops.definition import Directive, op_definition
from vm_dialect.types import I1, I64

_INTEGER = eq(I64) | eq(I1)


class IntKind(StrEnum):
    """What `vm.int` computes."""

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    ADD_SAT = "add_sat"
    MUL_SAT = "mul_sat"
    FLOORDIV = "floordiv"
    MOD = "mod"
    MIN = "min"
    MAX = "max"
    EQ = "eq"
    NE = "ne"
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    AND = "and"
    OR = "or"
    BROADCAST = "broadcast"

    @property
    def operand_type(self) -> Attribute:
        """`i1` for `and` and `or`, else `i64`."""
        return I1 if self.value in LOGICAL else I64

    @property
    def result_type(self) -> Attribute:
        """`i1` for comparisons, `and` and `or`, else `i64`."""
        return I1 if self.value in LOGICAL or self.value in COMPARISONS else I64


@irdl_attr_definition
class IntKindAttr(EnumAttribute[IntKind], SpacedOpaqueSyntaxAttribute):
    """`#vm<int_kind add>`."""

    name = "vm.int_kind"


class Kind(Directive):
    """The kind, which says the types of operands and result: `add`."""

    kind: AttributeVariable
    lhs: TypeDirective
    rhs: TypeDirective
    result: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Reads `add`."""
        kind = parser.parse_str_enum(IntKind)
        self.kind.set(state, IntKindAttr(kind))
        self.lhs.set(state, (kind.operand_type,))
        self.rhs.set(state, (kind.operand_type,))
        self.result.set(state, (kind.result_type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Writes `add`."""
        state.print_whitespace(printer)
        printer.print_string(cast(IntKindAttr, self.kind.get(op)).data.value)


@op_definition
class IntOp(BuiltinOp, HasFolderInterface):
    """A function of two integers, or of two booleans for `and` and `or`.

    `ValueError` if 64 bits do not hold the result, for which `add_sat` and `mul_sat` give the nearest number that they
    do. `floordiv` and `mod` round towards minus infinity and raise `ValueError` on division by zero; `broadcast` is
    the second operand if the first is 1, else the first.

    ```mlir
    %bytes = vm.int mul %n, %four
    %same = vm.int eq %n, %m
    ```

    C1: operands and result have the types of the kind.
    """

    name = "vm.int"

    kind = prop_def(IntKindAttr)
    lhs = operand_def(_INTEGER)
    rhs = operand_def(_INTEGER)
    result = result_def(_INTEGER)

    traits = traits_def(NoMemoryEffect())

    custom_directives = (Kind,)
    assembly_format = "custom<Kind>($kind, type($lhs), type($rhs), type($result)) $lhs `,` $rhs attr-dict"

    def __init__(self, kind: str | IntKind, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        kind = IntKind(kind)
        super().__init__(operands=[lhs, rhs], result_types=[kind.result_type], properties={"kind": IntKindAttr(kind)})

    @property
    def builtin_name(self) -> str:
        """`int_add`, `int_eq`, ..."""
        return f"int_{self.kind.data.value}"

    @override
    def verify_(self) -> None:
        kind = self.kind.data
        got = (self.lhs.type, self.rhs.type, self.result.type)
        expected = (kind.operand_type, kind.operand_type, kind.result_type)
        if got != expected:
            shown = "({}, {}) -> {}"
            raise VerifyException(
                f"'vm.int' op {kind.value} expected {shown.format(*expected)}, got {shown.format(*got)}"
            )  # C1

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        """The number, if both operands are constants and the operation is defined on them."""
        lhs, rhs = self.lhs.owner, self.rhs.owner
        if not (isinstance(lhs, ConstOp) and isinstance(rhs, ConstOp)):
            return None
        try:
            value = INT_FUNCTIONS[self.kind.data.value](int(lhs.python_value), int(rhs.python_value))
        except ValueError:
            return None
        return (number_attr(bool(value) if self.kind.data.result_type == I1 else value),)
