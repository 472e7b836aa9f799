"""What the passes on permutations and reshapes ask of operators, and how they rebuild them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard, get_args

from xdsl.ir import Operation, SSAValue

from relax_dialect.ops.activation import ClipOp, LeakyReluOp, SoftplusOp
from relax_dialect.ops.binary import BroadcastOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.unary import UnaryOp
from relax_dialect.scope import prover_at
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim

ElementwiseOp: TypeAlias = UnaryOp | BroadcastOp | AstypeOp | ClipOp | LeakyReluOp | SoftplusOp
"""The operators that compute an element of the result from the elements at its index, after broadcasting."""


_ELEMENTWISE = get_args(ElementwiseOp)


def is_elementwise(op: object) -> TypeGuard[ElementwiseOp]:
    """Whether an element of the result is computed from the elements at its index, after broadcasting."""
    return isinstance(op, _ELEMENTWISE)


def dims_of(value: SSAValue) -> tuple[Dim, ...] | None:
    """The dimensions of a tensor, if all are known."""
    info = value.type
    return info.known_dims if isinstance(info, TensorType) else None


def is_single_element(value: SSAValue) -> bool:
    """Whether a tensor has one element, so that it is broadcast wherever it stands."""
    dims = dims_of(value)
    return dims is not None and all(dim.constant_value == 1 for dim in dims)


def used_only_by(value: SSAValue, op: Operation) -> bool:
    """Whether `op` alone uses a value, once or several times."""
    return all(use.operation is op for use in value.uses)


def with_operands(op: Operator, operands: Sequence[SSAValue]) -> Operator:
    """The same operator on other operands, with the types that follow; it is in no block.

    Raises `VerifyException` if the operands are wrong.
    """
    types = op.infer_result_types([operand.type for operand in operands], op.properties, prover_at(op))
    made = type(op).create(operands=operands, result_types=types, properties=op.properties)
    made.location = op.location
    return made
