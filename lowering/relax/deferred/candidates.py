"""Which ops cannot be compiled before their operands are known, and which of them are outlined together."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.hints import isa

from lowering.verify.stages import RELAX_CALLS, RELAX_CORE
from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.ops.gather import ScatterNDOp
from relax_dialect.ops.index_maps import MapIndicesOp
from relax_dialect.ops.manipulation import ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp
from relax_dialect.ops.shapes import ShapeGetOp, ShapeOfOp, ShapeToTensorOp, SizeOp, TupleGetOp, TupleOp
from relax_dialect.ops.values import OpaqueValue
from relax_dialect.struct_info.types import ShapeType, TensorType, TupleType

_VIEWS = (ExpandDimsOp, FlattenOp, ReshapeOp, SqueezeOp, SizeOp)
"""Ops that have a form in the machine if the rank is known."""

_COMPANIONS = (ShapeGetOp, ShapeOfOp, ShapeToTensorOp, TupleGetOp, TupleOp)
"""Ops that need not be deferred, but may be, so that what follows them can be in the same group."""


def is_unknown(info: Attribute) -> bool:
    """Whether the rank or the dtype of a value is not known."""
    if isinstance(info, TensorType):
        return info.dims is None or info.dtype is None
    if isinstance(info, TupleType):
        return any(map(is_unknown, info.fields))
    return isinstance(info, ShapeType) and info.dims is None


def is_static(info: Attribute) -> bool:
    """Whether everything is known about a value that inference may look at."""
    if isinstance(info, TensorType | ShapeType):
        dims = info.known_dims
        known = dims is not None and all(dim.constant_value is not None for dim in dims)
        return known and not is_unknown(info)
    return not isinstance(info, TupleType) or all(map(is_static, info.fields))


def is_operator(op: Operation) -> bool:
    """Whether an op is computed by a kernel, or is a view of its operand."""
    if isinstance(op, _VIEWS):
        return True
    return isinstance(op, InfersResultTypes) and op.name not in RELAX_CORE and op.name not in RELAX_CALLS


def is_deferred(op: Operation) -> bool:
    """Whether an op can only be compiled when its operands are there."""
    if not is_operator(op):
        return False
    return any(map(is_unknown, (*op.operand_types, *op.result_types))) or _needs_number(op)


def _needs_number(op: Operation) -> bool:
    """Whether the kernel of an op is made for a number where there is a dimension."""
    if isinstance(op, MapIndicesOp):
        return op.result.type.known_dims is None
    if not isinstance(op, ScatterNDOp):
        return False
    info: Attribute = op.indices.type
    dims = info.dims if isinstance(info, TensorType) else None
    return not dims or dims[-1] is None or dims[-1].constant_value is None


def groups(block: Block) -> Iterator[list[Operation]]:
    """The deferred ops of a block, in order; ops of one group can be moved to where the last of them stands."""
    group: list[Operation] = []
    made: set[SSAValue] = set()
    for op in list(block.ops):
        joins = bool(group) and isinstance(op, _COMPANIONS) and not made.isdisjoint(op.operands)
        if joins or is_deferred(op):
            group.append(op)
            made.update(op.results)
        elif group and _uses(op, made):
            yield group
            group, made = [], set()
    if group:
        yield group


def _uses(op: Operation, values: set[SSAValue]) -> bool:
    return any(not values.isdisjoint(inner.operands) for inner in op.walk())


def is_literal(value: SSAValue) -> bool:
    """Whether a value is written in the program: it goes into a group, where inference can see it."""
    return isa(value.owner, OpaqueValue) or (isinstance(value.owner, Operation) and value.owner.name in _LITERALS)


_LITERALS = frozenset({"relax.prim", "relax.shape"})
