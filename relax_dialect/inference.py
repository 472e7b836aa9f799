"""What the inference of one op sees, and the only way in which it fails or asks for a run-time check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn, TypeVar

from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.calls import CallOutcome, call_result
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Mismatch
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dims import Dim, Prover

AttributeT = TypeVar("AttributeT", bound=Attribute)


class DimRelation(Enum):
    """What a run-time check demands of two dimensions."""

    EQUAL = "equal"
    BROADCAST = "broadcast"
    """Equal, or one of them is 1."""
    AT_MOST = "at most"


@dataclass(frozen=True)
class DimCheck:
    """A condition on dimensions that is checked when the op runs, and what it means for the user."""

    relation: DimRelation
    left: Dim
    right: Dim
    message: str
    """For example `dimension 1 of operand #0 and dimension 0 of operand #1 differ`."""


class Inference:
    """Operand types, properties and what is known of the symbols; collects the checks that remain for run time."""

    def __init__(
        self,
        op: type[IRDLOperation],
        operand_types: Sequence[Attribute],
        properties: Mapping[str, Attribute],
        prover: Prover | None = None,
    ):
        self.op = op
        self.operand_types = tuple(operand_types)
        self.properties = properties
        self.prover = prover or Prover()
        self.checks: list[DimCheck] = []

    def fail(self, message: str) -> NoReturn:
        """Raises `VerifyException`: the op can never be right."""
        raise VerifyException(f"'{self.op.name}' op {message}")

    # Operands

    def tensor(self, index: int) -> TensorType:
        """The type of operand `index`, which has to be a tensor; an object is a tensor of which nothing is known."""
        operand = self.operand_types[index]
        if not isinstance(operand, TensorType):
            self.fail(f"operand #{index} expected a tensor, got {operand}")
        return operand

    def tensors(self) -> tuple[TensorType, ...]:
        """The types of all operands, which have to be tensors."""
        return tuple(self.tensor(index) for index in range(len(self.operand_types)))

    def shape(self, index: int) -> ShapeType:
        """The type of operand `index`, which has to be a shape."""
        operand = self.operand_types[index]
        if not isinstance(operand, ShapeType):
            self.fail(f"operand #{index} expected a shape, got {operand}")
        return operand

    def prim(self, index: int) -> PrimType:
        """The type of operand `index`, which has to be a prim value."""
        operand = self.operand_types[index]
        if not isinstance(operand, PrimType):
            self.fail(f"operand #{index} expected a prim value, got {operand}")
        return operand

    def call(self, func: FuncType, arguments: Sequence[Attribute]) -> CallOutcome:
        """What calling `func` returns; fails if the arguments are wrong."""
        try:
            return call_result(func, as_struct_infos(arguments), self.prover)
        except Mismatch as mismatch:
            self.fail(f"argument {mismatch}")
        except ValueError as error:
            self.fail(str(error))

    # Properties

    def get(self, name: str, kind: type[AttributeT]) -> AttributeT | None:
        """The property `name`, or its default; `None` if it is absent."""
        found = self.properties.get(name)
        if found is None:
            definition = self.op.get_irdl_definition().properties[name]
            found = definition.default_value
        if found is not None and not isinstance(found, kind):
            self.fail(f"property {name} expected {kind.name}, got {found}")
        return found

    def require(self, name: str, kind: type[AttributeT]) -> AttributeT:
        """The property `name`, which has to be there."""
        found = self.get(name, kind)
        if found is None:
            self.fail(f"expected a property {name}")
        return found
