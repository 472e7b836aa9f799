"""Dimensions and index ramps as values, and assertions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, StringAttr, VectorType
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import ParsingState, PrintingState, TypeDirective
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import Dim, DimLike
from tir_dialect.new_ops import fill_op
from tir_dialect.ops.assembly_format import DimExpr, Directive, Text, op_definition
from tir_dialect.ops.effects import MayRaise
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import lanes_of
from tir_dialect.types import DimAttr

I1 = IntegerType(1)
_INDEX = IndexType()

DEFAULT_ERROR = "ValueError"
ERROR_KINDS = (DEFAULT_ERROR, "TypeError", "RuntimeError", "IndexError", "KeyError", "AssertionError", "MemoryError")
"""The errors that an assertion may raise, which have the same names in Python."""


@op_definition
class DimOp(HasFolderInterface, IRDLOperation):
    """The value of a symbolic dimension: `%e = tir.dim 4 * n + 1`."""

    name = "tir.dim"

    dim_attr = prop_def(DimAttr, prop_name="dim")
    result = result_def(IndexType())

    traits = traits_def(Pure())

    assembly_format = "custom<DimExpr>($dim) attr-dict"
    custom_directives = (DimExpr,)

    def __init__(self, dim: DimLike):
        fill_op(self, (), (_INDEX,), {"dim": DimAttr(dim)})

    @property
    def dim(self) -> Dim:
        """The dimension."""
        return self.dim_attr.data

    def fold(self) -> Sequence[SSAValue | Attribute] | None:
        """An integer, or the function's argument for a symbol."""
        value = self.dim.constant_value
        if value is not None:
            return (IntegerAttr(value, IndexType()),)
        name = self.dim.as_symbol
        func = self.parent_op()
        while func is not None and not isinstance(func, PrimFuncOp):
            func = func.parent_op()
        argument = None if name is None or func is None else func.symbol_arg(name)
        return None if argument is None else (argument,)


class IndexVector(Directive):
    """The type of a vector of indices: `vector<8xindex>`."""

    type: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        start = parser.pos
        type = parser.parse_type()
        lanes = lanes_of(type)
        if lanes is None or type != VectorType(IndexType(), [lanes]):
            parser.raise_error(f"expected a vector of index with one dimension, got {type}", start, parser.pos)
        self.type.set(state, (type,))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.type.print(printer, state, op)


@op_definition
class RampOp(IRDLOperation):
    """A vector of the indices `base`, `base + step`, `base + 2 * step`, ...: `%v = tir.ramp %base by %step :
    vector<8xindex>`.

    C1: the result is a vector of `index` with one fixed dimension.
    """

    name = "tir.ramp"

    base = operand_def(IndexType())
    step = operand_def(IndexType())
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "$base `by` $step attr-dict `:` custom<IndexVector>(type($result))"
    custom_directives = (IndexVector,)

    def __init__(self, base: SSAValue | Operation, step: SSAValue | Operation, lanes: int):
        super().__init__(operands=[base, step], result_types=[VectorType(IndexType(), [lanes])])

    @property
    def lanes(self) -> int:
        """The number of indices."""
        return lanes_of(self.result.type) or 0

    def verify_(self) -> None:
        if not self.lanes or self.result.type != VectorType(IndexType(), [self.lanes]):
            raise VerifyException(
                f"'tir.ramp' op expected a vector of index with one dimension, got {self.result.type}"
            )  # C1


@op_definition
class AssertOp(IRDLOperation):
    """Raises an error with the message unless the condition holds: `tir.assert %ok, "n is even"`.

    The error is a `ValueError`, or another one of `ERROR_KINDS`: `tir.assert %ok, "n is a number" raises "TypeError"`.

    C1: the kind is one of `ERROR_KINDS`.
    """

    name = "tir.assert"

    condition = operand_def(I1)
    message = prop_def(StringAttr)
    error = opt_prop_def(StringAttr)

    traits = traits_def(MayRaise())

    assembly_format = "$condition `,` custom<Text>($message) (`raises` custom<Text>($error)^)? attr-dict"
    custom_directives = (Text,)

    def __init__(self, condition: SSAValue | Operation, message: str, error: str = DEFAULT_ERROR):
        kind = None if error == DEFAULT_ERROR else StringAttr(error)
        super().__init__(operands=[condition], properties={"message": StringAttr(message), "error": kind})

    @property
    def error_kind(self) -> str:
        """The name of the error."""
        return DEFAULT_ERROR if self.error is None else self.error.data

    def verify_(self) -> None:
        if self.error_kind not in ERROR_KINDS:
            kinds = ", ".join(ERROR_KINDS)
            raise VerifyException(f"'tir.assert' op expected an error of {kinds}, got {self.error_kind}")  # C1
