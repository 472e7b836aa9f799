"""What the inference of one op sees, and the only way in which it fails or asks for a run-time check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from relax_dialect.ops.scalars import Domain
from relax_dialect.properties import Properties
from relax_dialect.struct_info.base import Shape, as_struct_infos
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import CallOutcome, Mismatch, call_result
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dims import Dim, Prover, broadcast, constant

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
"""The symbols that passes make for what is not known (`lowering.relax.shapes.lower_shapes`)."""


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
            self.fail(f"operand #{index} expected a tensor, got {operand}")
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
            self.fail(f"expected {len(func.params)} arguments, got {len(arguments)}")
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


def _pad(shape: tuple[Dim | None, ...], rank: int) -> tuple[Dim | None, ...]:
    return (ONE,) * (rank - len(shape)) + shape
