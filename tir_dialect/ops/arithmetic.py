"""Dimensions and index ramps as values, assertions, and arithmetic that xDSL's `arith` lacks: remainders of floats,
floating-point ops with relaxed semantics, which take fewer instructions, and conversion of vectors.

The ops with relaxed semantics serve softmax and other row-wise reductions: a NaN in a row makes the whole row NaN in
any case, and a common factor of the exponentials and their sum cancels in the quotient.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType, UnionType
from typing import TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    VectorType,
)
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, prop_def, result_def, traits_def
from xdsl.irdl.declarative_assembly_format import ParsingState, PrintingState, TypeDirective
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from tir_dialect.dims import Dim, DimLike
from tir_dialect.fast_ops import fill_op
from tir_dialect.ops.assembly_format import DimExpr, Directive, SameType, Text, TypeOf, Word, op_definition
from tir_dialect.ops.effects import MayRaise
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import lanes_of, number_type
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


class BinaryOp(IRDLOperation):
    """An op on two numbers, or on two vectors of numbers element by element: `%r = tir.name %x, %y : type`."""

    lhs = operand_def()
    rhs = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    assembly_format = "$lhs `,` $rhs attr-dict `:` custom<TypeOf>(ref($rhs)) custom<SameType>(type($result), ref($lhs))"
    custom_directives = (TypeOf, SameType)

    def __init__(self, lhs: SSAValue | Operation, rhs: SSAValue | Operation):
        super().__init__(operands=[lhs, rhs], result_types=[SSAValue.get(lhs).type])

    def verify_types(self, kinds: UnionType, named: str) -> None:
        """VerifyException if operands and result are not of one type, numbers of these kinds or vectors of them."""
        same = self.lhs.type == self.rhs.type == self.result.type
        if not same or not isinstance(number_type(self.result.type), kinds):
            raise VerifyException(
                f"'{self.name}' op expected {named} or vectors of one type, got {self.lhs.type} and {self.rhs.type}"
            )


@op_definition
class FmodOp(BinaryOp):
    """The remainder of the division rounded towards zero, exact, with the sign of the dividend: C's `fmod`.

    ```mlir
    %r = tir.fmod %x, %y : f32
    ```

    It is NaN if the dividend is infinite or the divisor is zero, and the dividend if only the divisor is infinite.

    C1: operands and result are `f32` or `f64`, or vectors of these with one fixed dimension, of one type.
    """

    name = "tir.fmod"

    def verify_(self) -> None:
        self.verify_types(Float32Type | Float64Type, "f32 or f64")  # C1


SCALE = 2.0**64
"""The factor of `tir.scaled_exp`."""


@op_definition
class GreaterOp(BinaryOp):
    """The first operand if it is greater than the second one, else the second: x86's `maxps`.

    ```mlir
    %top = tir.greater %x, %old : f32
    ```

    If either operand is NaN, or both are zeros of any sign, the result is the second operand.

    C1: operands and result are floats, or vectors of floats with one fixed dimension, of one type.
    """

    name = "tir.greater"

    def verify_(self) -> None:
        self.verify_types(AnyFloat, "floats")  # C1


@op_definition
class ScaledExpOp(IRDLOperation):
    """`e**x * 2**64` for `x <= 0`: a normal number, so that no lane needs the special case for subnormal results.

    ```mlir
    %y = tir.scaled_exp %x : f32
    ```

    An `x` below -104, for which `e**x` is 0 in `f32`, counts as -104. For positive `x` the result is undefined.

    C1: operand and result are `f32`, or vectors of it with one fixed dimension, of one type.
    """

    name = "tir.scaled_exp"

    operand = operand_def()
    result = result_def()

    traits = traits_def(Pure())

    assembly_format = (
        "$operand attr-dict `:` custom<TypeOf>(ref($operand)) custom<SameType>(type($result), ref($operand))"
    )
    custom_directives = (TypeOf, SameType)

    def __init__(self, operand: SSAValue | Operation):
        super().__init__(operands=[operand], result_types=[SSAValue.get(operand).type])

    def verify_(self) -> None:
        if self.operand.type != self.result.type or not isinstance(number_type(self.result.type), Float32Type):
            raise VerifyException(f"'tir.scaled_exp' op expected f32 or a vector of it, got {self.operand.type}")  # C1


CONVERSIONS: Mapping[str, type[Operation]] = MappingProxyType(
    {
        "extf": arith.ExtFOp,
        "truncf": arith.TruncFOp,
        "sitofp": arith.SIToFPOp,
        "uitofp": arith.UIToFPOp,
        "fptosi": arith.FPToSIOp,
        "fptoui": arith.FPToUIOp,
        "extsi": arith.ExtSIOp,
        "extui": arith.ExtUIOp,
        "trunci": arith.TruncIOp,
        "index_cast": arith.IndexCastOp,
        "bitcast": arith.BitcastOp,
    }
)
"""What `tir.convert` does with each lane: the op of `arith` of that name."""

KIND_OF: Mapping[type[Operation], str] = MappingProxyType({op: name for name, op in CONVERSIONS.items()})
"""The kind of `tir.convert` that stands for an op on scalars."""

_BITS = 64
"""The width of `index`."""


@op_definition
class ConvertOp(IRDLOperation):
    """Converts each lane of a vector, as the `arith` op of that name converts a scalar.

    ```mlir
    %f = tir.convert sitofp %v : vector<8xi32> to vector<8xf32>
    ```

    C1: the kind is one of `extf`, `truncf`, `sitofp`, `uitofp`, `fptosi`, `fptoui`, `extsi`, `extui`, `trunci`,
    `index_cast` and `bitcast`.
    C2: operand and result are vectors with one fixed dimension and as many lanes.
    C3: the kind converts such elements.
    """

    name = "tir.convert"

    kind = prop_def(StringAttr)
    operand = operand_def(VectorType)
    result = result_def(VectorType)

    traits = traits_def(Pure())

    assembly_format = "custom<Word>($kind) $operand attr-dict `:` custom<TypeOf>(ref($operand)) `to` type($result)"
    custom_directives = (Word, TypeOf)

    def __init__(self, kind: str, operand: SSAValue | Operation, result_type: Attribute):
        super().__init__(operands=[operand], properties={"kind": StringAttr(kind)}, result_types=[result_type])

    @property
    def scalar_op(self) -> type[Operation]:
        """The op that converts one lane."""
        return CONVERSIONS[self.kind.data]

    def verify_(self) -> None:
        kind, source, target = self.kind.data, self.operand.type, self.result.type
        if kind not in CONVERSIONS:
            raise VerifyException(f"'tir.convert' op expected one of {', '.join(CONVERSIONS)}, got {kind}")  # C1
        lanes = lanes_of(source)
        if lanes is None or lanes != lanes_of(target):
            raise VerifyException(
                f"'tir.convert' op expected vectors with one dimension of one length, got {source} and {target}"
            )  # C2
        if not _converts(kind, _element(source), _element(target)):
            raise VerifyException(f"'tir.convert' op {kind} does not convert {source} to {target}")  # C3


_Number: TypeAlias = AnyFloat | IntegerType | IndexType


def _element(type: Attribute) -> _Number | None:
    """The type of the lanes of a vector of numbers."""
    element = type.element_type if isa(type, VectorType) else type
    return cast("_Number", element) if isinstance(element, AnyFloat | IntegerType | IndexType) else None


def _converts(kind: str, source: _Number | None, target: _Number | None) -> bool:
    """Whether elements are of the types that a conversion takes and gives."""
    if source is None or target is None:
        return False
    from_float, to_float = isinstance(source, AnyFloat), isinstance(target, AnyFloat)
    indices = isinstance(source, IndexType) + isinstance(target, IndexType)
    if kind == "index_cast":
        return indices == 1 and not from_float and not to_float
    if kind == "bitcast":
        return _width(source) == _width(target)
    if indices:
        return False
    if kind in ("sitofp", "uitofp", "fptosi", "fptoui"):
        return from_float != to_float and to_float == kind.endswith("fp")
    narrow, wide = (source, target) if kind.startswith("ext") else (target, source)
    return from_float == to_float == kind.endswith("f") and _width(narrow) < _width(wide)


def _width(type: _Number) -> int:
    return _BITS if isinstance(type, IndexType) else type.bitwidth
