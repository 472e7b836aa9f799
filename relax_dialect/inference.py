"""What the inference of one op sees, the only way in which it fails or asks for a run-time check; and the one method of
an op that infers its result types and is also its verifier.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn, TypeGuard, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, OptResultDef, VarResultDef
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from relax_dialect.scalars import Domain
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.match import CallOutcome, Mismatch, Verdict, call_result, is_subtype
from relax_dialect.struct_info.types import (
    FuncType,
    ObjectType,
    PrimType,
    Shape,
    ShapeType,
    StructInfo,
    TensorType,
    TupleType,
    as_struct_infos,
)
from relax_dialect.syntax import parse_optional_result_types
from tir_dialect.dims import Dim, DimSizeError, Prover, broadcast, constant
from tir_dialect.dtypes import is_dtype, parse_dtype
from tir_dialect.types import DimAttr

AttributeT = TypeVar("AttributeT", bound=Attribute)


def is_integers(attribute: Attribute) -> TypeGuard[DenseArrayBase[IntegerType]]:
    """Whether an attribute is a list of integers; `isa` would build a constraint for it on each call."""
    return isinstance(attribute, DenseArrayBase) and isinstance(attribute.parameters[0], IntegerType)


class Properties:
    """The properties that an op has or will have; one that is absent has its default."""

    def __init__(self, op: type[IRDLOperation], properties: Mapping[str, Attribute]):
        self.op = op
        self.properties = properties

    def fail(self, message: str) -> NoReturn:
        """Raises `VerifyException`: the op can never be right."""
        raise VerifyException(f"'{self.op.name}' op {message}")

    def get(self, name: str, kind: type[AttributeT]) -> AttributeT | None:
        """The property `name`, or its default; `None` if it is absent."""
        found = self.properties.get(name)
        if found is None:
            found = self.op.get_irdl_definition().properties[name].default_value
        if found is not None and not isinstance(found, kind):
            self.fail(f"property {name} expected {kind.name}, got {found}")
        return found

    def require(self, name: str, kind: type[AttributeT]) -> AttributeT:
        """The property `name`, which has to be there."""
        found = self.get(name, kind)
        if found is None:
            self.fail(f"expected a property {name}")
        return found

    def integer(self, name: str) -> int:
        """The integer property `name`."""
        return self.require(name, IntegerAttr).value.data

    def optional_integer(self, name: str) -> int | None:
        """The integer property `name`, if it is present."""
        found = self.get(name, IntegerAttr)
        return None if found is None else found.value.data

    def integers(self, name: str) -> tuple[int, ...]:
        """The property `name`, a list of integers."""
        found = self.require(name, DenseArrayBase)
        if not is_integers(found):
            self.fail(f"property {name} expected integers, got {found}")
        return tuple(found.get_values())

    def optional_integers(self, name: str) -> tuple[int, ...] | None:
        """The property `name`, a list of integers, if it is present."""
        return self.integers(name) if self.get(name, DenseArrayBase) is not None else None

    def dims(self, name: str) -> tuple[Dim, ...]:
        """The property `name`, a list of dimensions."""
        return tuple(attribute.data for attribute in self.require(name, ArrayAttr) if isinstance(attribute, DimAttr))

    def dim(self, name: str) -> Dim:
        """The property `name`, a dimension."""
        return self.require(name, DimAttr).data

    def flag(self, name: str) -> bool:
        """Whether the flag `name` is set."""
        return self.get(name, UnitAttr) is not None

    def number(self, name: str) -> float:
        """The property `name`, a number: of any dtype, or of `f64`."""
        found = self.require(name, Attribute)
        if not isinstance(found, FloatAttr | IntegerAttr):
            self.fail(f"property {name} expected a number, got {found}")
        return found.value.data

    def string(self, name: str) -> str:
        """The string property `name`."""
        return self.require(name, StringAttr).data

    def optional_string(self, name: str) -> str | None:
        """The string property `name`, if it is present."""
        found = self.get(name, StringAttr)
        return None if found is None else found.data

    def dtype(self, name: str) -> Attribute:
        """The property `name`, an element type."""
        found = self.require(name, Attribute)
        if not is_dtype(found):
            self.fail(f"property {name} expected an element type, got {found}{_element_type_meant(found)}")
        return found

    def axis(self, value: int, rank: int) -> int:
        """`value` counted from the front; negative ones count from the back. Fails if it is out of range."""
        if not -rank <= value < rank:
            self.fail(f"axis {value} is out of range for rank {rank}")
        return value % rank

    def axes(self, values: Iterable[int], rank: int) -> tuple[int, ...]:
        """The axes counted from the front; fails if one is out of range or given twice."""
        axes = tuple(self.axis(value, rank) for value in values)
        if len(set(axes)) != len(axes):
            self.fail(f"expected each axis once, got [{', '.join(map(str, axes))}]")
        return axes


ZERO = constant(0)
ONE = constant(1)
DEFAULT_PROVER = Prover()
"""A prover without bounds. Result types are simplified by it alone, so that they do not depend on where an op
stands.
"""


class DimRelation(Enum):
    """What a run-time check demands of two dimensions."""

    EQUAL = "equal"
    BROADCAST = "broadcast"
    """Equal, or one of them is 1."""
    AT_MOST = "at most"
    """The first is not greater than the second."""


@dataclass(frozen=True)
class DimCheck:
    """A condition on dimensions that is checked when the op runs, and what it means for the user."""

    relation: DimRelation
    left: Dim
    right: Dim
    message: str
    """What is expected, for example `equal contracted dimensions`."""

    @property
    def facts(self) -> tuple[str, tuple[Dim, ...]]:
        """What an error says of both dimensions, `3, n + 1 = {}`, and the dimensions that the marks stand for.

        Of dimensions that the program does not name, only numbers are said.
        """
        dims = (self.left, self.right)
        text = ", ".join(f"{dim}" if dim.is_constant else f"{_named(dim)}{{}}" for dim in dims)
        return text, tuple(dim for dim in dims if not dim.is_constant)


class Refuted(VerifyException):
    """A condition on dimensions that does not hold."""

    def __init__(self, message: str, check: DimCheck):
        super().__init__(message)
        self.check = check


_MADE = re.compile(r"s\d+(_\d+)?")
"""The symbols that passes make for what is not known (`lowering.relax.lower_shapes`)."""


def _named(dim: Dim) -> str:
    return "" if all(map(_MADE.fullmatch, dim.symbols)) else f"{dim} = "


class Inference(Properties):
    """Operand types, properties and what is known about the symbols; collects the checks that remain for run time."""

    def __init__(
        self,
        op: type[IRDLOperation],
        operand_types: Sequence[Attribute],
        properties: Mapping[str, Attribute],
        prover: Prover | None = None,
    ):
        super().__init__(op, properties)
        self.operand_types = tuple(operand_types)
        self.prover = prover or DEFAULT_PROVER
        self.checks: list[DimCheck] = []

    # Operands

    def operand(self, index: int) -> Attribute:
        """The type of operand `index`, which has to exist."""
        if index >= len(self.operand_types):
            self.fail(f"expected at least {index + 1} operands, got {len(self.operand_types)}")
        return self.operand_types[index]

    def tensor(self, index: int) -> TensorType:
        """The type of operand `index`, which has to be a tensor, without its sharding, which results do not inherit."""
        operand = self.operand(index)
        if not isinstance(operand, TensorType):
            hint = "; its elements are the operands: %x, %y" if isinstance(operand, TupleType) else ""
            self.fail(f"operand #{index} expected a tensor, got {operand}{hint}")
        return operand if operand.sharding is None else operand.with_sharding(None)

    def tensors(self) -> tuple[TensorType, ...]:
        """The types of all operands, which have to be tensors."""
        return tuple(self.tensor(index) for index in range(len(self.operand_types)))

    def shape(self, index: int) -> ShapeType:
        """The type of operand `index`, which has to be a shape."""
        operand = self.operand(index)
        if not isinstance(operand, ShapeType):
            self.fail(f"operand #{index} expected a shape, got {operand}")
        return operand

    def sizes(self, index: int) -> ShapeType:
        """The type of operand `index`, a shape that a tensor is to have: a size that may be negative is checked at
        run time, unless an operand has it already.
        """
        shape = self.shape(index)
        operands = [info.dims or () for info in self.operand_types if isinstance(info, TensorType)]
        there = {dim for dims in operands for dim in dims}
        for dim in shape.dims or ():
            if dim not in there:
                self._require_size(dim)
        return shape

    def _require_size(self, dim: Dim | None) -> None:
        self.require_at_most(ZERO, dim, "a size that is not negative")

    def prim(self, index: int) -> PrimType:
        """The type of operand `index`, which has to be a prim value."""
        operand = self.operand(index)
        if not isinstance(operand, PrimType):
            self.fail(f"operand #{index} expected a prim value, got {operand}")
        return operand

    def call(self, func: FuncType, arguments: Sequence[Attribute]) -> CallOutcome:
        """What calling `func` returns; fails if the arguments are wrong."""
        if not func.opaque and len(func.params) != len(arguments):
            plural = "" if len(func.params) == 1 else "s"
            self.fail(f"expected {len(func.params)} argument{plural}, got {len(arguments)}")
        try:
            return call_result(func, as_struct_infos(arguments), self.prover)
        except Mismatch as mismatch:
            self.fail(f"argument {mismatch}")
        except ValueError as error:
            self.fail(str(error))

    # Facts that operands share

    def require_domain(self, index: int, domain: Domain) -> None:
        """Fails if the dtype of operand `index` is known and not in the domain."""
        dtype = self.tensor(index).dtype
        if dtype is not None and not domain.admits(dtype):
            self.fail(f"operand #{index} expected {domain.value}, got {dtype}")

    def common_dtype(self, indices: Iterable[int]) -> Attribute | None:
        """The dtype of these operands; fails if two differ, `None` if none is known."""
        common: Attribute | None = None
        for index in indices:
            dtype = self.tensor(index).dtype
            if common is not None and dtype is not None and dtype != common:
                self.fail(f"expected operands of one dtype, got {common} and {dtype}; convert with 'relax.astype'")
            common = common or dtype
        return common

    def product_dtype(self) -> Attribute | None:
        """The dtype of sums of products of two operands: `out_dtype`, with which integers may differ, or their own."""
        given = None if self.get("out_dtype", Attribute) is None else self.dtype("out_dtype")
        integers = all(Domain.INTEGER.admits(self.tensor(index).dtype or i32) for index in (0, 1))
        if given is not None and integers:
            return given
        common = self.common_dtype((0, 1))
        return given or common

    def common_device(self) -> str | None:
        """The device that tensor operands name; fails if two differ."""
        devices = {info.device for info in self.operand_types if isinstance(info, TensorType)} - {None}
        if len(devices) > 1:
            self.fail(f"expected operands on one device, got {' and '.join(sorted(filter(None, devices)))}")
        return next(iter(devices), None)

    # Dimensions

    def _note(self, answer: bool | None, check: DimCheck, otherwise: str) -> None:
        """Fails with `otherwise` if a condition is known not to hold, leaves it for run time if nothing is known."""
        if answer is False:
            raise Refuted(f"'{self.op.name}' op {otherwise}", check)
        if answer is None:
            self.checks.append(check)

    def require_equal(self, left: Dim | None, right: Dim | None, what: str, message: str | None = None) -> Dim | None:
        """The dimension that both have to be; fails with `what`, or with `message`, if they are not, or leaves a check
        for run time.
        """
        if left is None or right is None or left is right:
            return left if right is None else right
        answer = self.prover.equal(left, right)
        failure = message or f"expected {what}, got {left} and {right}"
        self._note(answer, DimCheck(DimRelation.EQUAL, left, right, what), failure)
        return left if right.constant_value is None else right

    def require_divisible(self, dim: Dim | None, divisor: int, what: str) -> None:
        """Fails with `what` if `dim` is provably no multiple of `divisor`, or leaves a check for run time."""
        if dim is None:
            return
        answer = self.prover.divisible(dim, divisor)
        self._note(answer, DimCheck(DimRelation.EQUAL, dim % divisor, ZERO, what), f"expected {what}, got {dim}")

    def common_dim(self, dims: Iterable[Dim | None], what: str) -> Dim | None:
        """The dimension that all have to be; fails with `what` if they are not, or leaves checks for run time."""
        common: Dim | None = None
        for dim in dims:
            common = self.require_equal(common, dim, what)
        return common

    def require_expands(self, old: Dim | None, new: Dim | None) -> None:
        """Fails if `old` is neither 1 nor `new`, or leaves a check for run time."""
        if old is None or new is None or old is new or old is ONE:
            return
        if self.prover.equal(old, ONE) is False:
            self.require_equal(old, new, "a dimension that is 1 or the one of the shape")
        else:
            what = "a dimension that is 1 or the one of the shape"
            self.require_equal(self.broadcast_dim(old, new), new, what)

    def require_at_most(self, left: Dim | None, right: Dim | None, what: str) -> None:
        """Fails with `what` if `left` is provably greater than `right`, or leaves a check for run time."""
        if left is None or right is None:
            return
        answer = self.prover.less_equal(left, right)
        self._note(answer, DimCheck(DimRelation.AT_MOST, left, right, what), f"expected {what}, got {left} and {right}")

    def require_same_rank(self, indices: Iterable[int]) -> int | None:
        """The rank of these tensor operands; fails if two differ, `None` if none is known."""
        ranks = sorted({rank for index in indices if (rank := self.tensor(index).rank) is not None})
        if len(ranks) > 1:
            self.fail(f"expected operands of one rank, got {' and '.join(map(str, ranks))}")
        return ranks[0] if ranks else None

    def broadcast_dim(self, left: Dim | None, right: Dim | None) -> Dim | None:
        """The dimension to which both broadcast; fails if they do not, or leaves a check for run time."""
        if left is None or right is None:
            known = right if left is None else left
            return known if known is not None and known.constant_value not in (None, 1) else None
        if left is right or ONE in (left, right):
            return right if left is ONE else left
        if self.prover.equal(left, right) is not True:
            possible = (self.prover.equal(left, right), self.prover.equal(left, ONE), self.prover.equal(right, ONE))
            answer = False if possible == (False, False, False) else True if True in possible else None
            check = DimCheck(DimRelation.BROADCAST, left, right, "dimensions that broadcast")
            self._note(answer, check, f"dimensions {left} and {right} do not broadcast")
        return broadcast(left, right)

    def broadcast_shapes(self, left: Shape, right: Shape) -> Shape:
        """The shape to which both broadcast, aligned at the last dimension."""
        if left is None or right is None:
            return None
        rank = max(len(left), len(right))
        pairs = zip(_pad(left, rank), _pad(right, rank), strict=True)
        return tuple(self.broadcast_dim(*pair) for pair in pairs)

    def broadcast_all(self) -> Shape:
        """The shape to which all operands broadcast."""
        first, *rest = (tensor.dims for tensor in self.tensors())
        for shape in rest:
            first = self.broadcast_shapes(first, shape)
        return first

    # Properties

    def size(self, name: str) -> Dim:
        """The property `name`, a size that a tensor is to have, as in `sizes`."""
        found = self.dim(name)
        self._require_size(found)
        return found


def _element_type_meant(found: Attribute) -> str:
    """Advice for a string where an element type has to stand."""
    try:
        return f"; did you mean {parse_dtype(found.data)}, without quotes?" if isinstance(found, StringAttr) else ""
    except ValueError:  # no name of an element type
        return ""


def _pad(shape: tuple[Dim | None, ...], rank: int) -> tuple[Dim | None, ...]:
    return (ONE,) * (rank - len(shape)) + shape


class InfersResultTypes(IRDLOperation, ABC):
    """An op whose result types follow from its operand types and properties.

    `infer` is the one position that knows: constructors take the result types from it, the parser fills in omitted
    ones, the verifier compares with it, and run-time checks are what it could not prove. A declared result type may say
    less than the inferred one, never more: what is not provable takes a `relax.match_cast`.
    """

    @classmethod
    @abstractmethod
    def infer(cls, inference: Inference) -> Sequence[StructInfo]:
        """The result types; raises `VerifyException` through `inference.fail` if the operands are provably wrong."""

    @classmethod
    def infer_result_types(
        cls,
        operand_types: Sequence[Attribute],
        properties: Mapping[str, Attribute] | None = None,
        prover: Prover | None = None,
    ) -> tuple[StructInfo, ...]:
        """The result types for these operand types and properties; default properties may be left out."""
        return cls._infer_with(Inference(cls, operand_types, properties or {}, prover))

    @classmethod
    def _infer_with(cls, inference: Inference) -> tuple[StructInfo, ...]:
        """`infer`, for which a shape that is too large to compute with is an error of the op."""
        try:
            found: object = cls.infer(inference)
        except DimSizeError as error:
            raise VerifyException(f"'{cls.name}' op has a shape that is too large an expression: {error}") from error
        if not isinstance(found, tuple | list):
            raise TypeError(f"{cls.__name__}.infer expected to give a type for each result, as a tuple, got {found}")
        return tuple(cast("Sequence[StructInfo]", found))

    @classmethod
    def parse_result_types(
        cls,
        parser: Parser,
        operand_types: Sequence[Attribute],
        properties: Mapping[str, Attribute],
        position: int,
    ) -> Sequence[StructInfo]:
        """Parses the result types, or infers them if they are not written.

        An op whose types are wrong gets results of which nothing is known, so that the rest of the text is read and the
        verifier reports all errors. If it may have any number of results, that is a parse error at `position`, where
        the text of the op starts.
        """
        types = parse_optional_result_types(parser)
        if types is not None:
            return types
        try:
            return cls.infer_result_types(operand_types, properties)
        except VerifyException as error:
            if (unknown := unknown_results(cls)) is not None:
                return unknown
            parser.raise_error(str(error), position, position + 1)

    @classmethod
    def refuse_properties(cls, parser: Parser, attributes: Mapping[str, Attribute], start: int) -> None:
        """Raises an error for a dictionary of attributes, read from `start`, that has a property: it has no effect."""
        for name in cls.get_irdl_definition().properties:
            if name in attributes:
                message = (
                    f"'{cls.name}' op expected {name} before the dictionary of attributes, without braces: {name} = ..."
                )
                parser.raise_error(message, start, start + 1)

    def types_follow(self) -> bool:
        """Whether the result types are the inferred ones, so that the text does not say them."""
        try:
            return self.infer_result_types(self.operand_types, self.properties) == tuple(self.result_types)
        except VerifyException:
            return False

    def runtime_checks(self) -> tuple[DimCheck, ...]:
        """What has to be checked when the op runs, because it could neither be proved nor refuted here."""
        return self._inference()[1]

    def _inference(self) -> tuple[tuple[StructInfo, ...], tuple[DimCheck, ...]]:
        inference = Inference(type(self), self.operand_types, self.properties, prover_at(self))
        return self._infer_with(inference), tuple(inference.checks)

    def verify_(self) -> None:
        inferred, _ = self._inference()
        if len(inferred) != len(self.results):
            raise VerifyException(f"'{self.name}' op expected {len(inferred)} results, got {len(self.results)}")
        for index, want in enumerate(inferred):
            verify_result(self, index, want)


_UNKNOWN = (TensorType(None, None), ObjectType(), ShapeType(None), FuncType(None), PrimType(i64), TupleType(()))
"""Types that say least, of every kind."""


def unknown_results(cls: type[IRDLOperation]) -> tuple[StructInfo, ...] | None:
    """Result types of an op of which nothing is known; `None` if their number is not fixed, or none of ours fits."""
    found: list[StructInfo] = []
    for _, definition in cls.get_irdl_definition().results:
        if isinstance(definition, VarResultDef | OptResultDef):
            return None
        fitting = next((info for info in _UNKNOWN if definition.constr.verifies((info,))), None)
        if fitting is None:
            return None
        found.append(fitting)
    return tuple(found)


def verify_result(op: Operation, index: int, inferred: StructInfo) -> None:
    """Raises `VerifyException` unless the declared type of result `index` says no more than the inferred one."""
    declared = op.results[index].type
    if declared == inferred:
        return
    if isinstance(declared, TensorType) and isinstance(inferred, TensorType):
        # A sharding says where a value is, not what it is: it is decided, and need not follow.
        inferred = inferred.with_sharding(declared.sharding)
    verdict = is_subtype(inferred, declared, prover_at(op))
    if verdict is Verdict.NEVER:
        raise VerifyException(f"'{op.name}' op result #{index} expected {inferred} as inferred, got {declared}")
    if verdict is Verdict.RUNTIME:
        raise VerifyException(
            f"'{op.name}' op result #{index} declares {declared}, but only {inferred} can be inferred; "
            "refine the result with 'relax.match_cast'"
        )


def operand_error_class(
    op: type[InfersResultTypes], operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]
) -> type[ValueError | TypeError]:
    """The class of an error of `op.infer` for these operands: `TypeError` if no dimensions would make them fit, since
    ranks or dtypes are wrong, else `ValueError`.
    """
    try:
        op.infer_result_types([without_dims(info) for info in operand_types], properties)
    except VerifyException:
        return TypeError
    return ValueError


def without_dims(info: Attribute) -> Attribute:
    """The type of a tensor or shape with unknown dimensions; any other type as it is."""
    if isinstance(info, TensorType) and info.dims is not None:
        return TensorType((None,) * len(info.dims), info.dtype, info.device)
    if isinstance(info, ShapeType) and info.dims is not None:
        return ShapeType((None,) * len(info.dims))
    return info
