"""Tensors whose elements go where an index map says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.irdl import operand_def, prop_def, result_def

from relax_dialect.inference import DEFAULT_PROVER, ZERO, Inference
from relax_dialect.ops.fields import ExactNumber, exact_number, number
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Bounds, Dim, ModAtom, constant, symbol
from tir_dialect.dims.expr import as_dim
from tir_dialect.ops.assembly_format import op_definition


@op_definition
class MapIndicesOp(Operator):
    """A tensor in another layout: each element goes where a map of indices says.

    ```mlir
    %0 = relax.map_indices %x index_map = affine_map<(d0, d1) -> (d0 floordiv 4, d1, d0 mod 4)> pad_value = 1.0
    ```

    A dimension of the result is as long as the greatest index needs; a quotient is rounded up, and a remainder has the
    length of its divisor, so that blocks are whole. Positions where no element goes have the `pad_value`. Mirrors TVM's
    `layout_transform`.

    C1: the map has an index for each dimension, and no symbols.
    C2: no two elements go to one position. Where only numbers for dimensions show that, the op waits for them.
    C3: indices are at least 0 and bounded; the dimensions of the result are not negative.
    """

    name = "relax.map_indices"

    index_map = prop_def(AffineMapAttr)
    pad_value = prop_def(ExactNumber, default_value=number(0.0))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, index_map: AffineMap, pad_value: float = 0.0):
        super().__init__([x], {"index_map": AffineMapAttr(index_map), "pad_value": exact_number(pad_value)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, index_map = inference.tensor(0), inference.require("index_map", AffineMapAttr).data
        if index_map.num_symbols:
            inference.fail(f"index_map expected no symbols, got {index_map}")  # C1
        if x.rank not in (None, index_map.num_dims):
            inference.fail(f"index_map expected {x.rank} indices, got {index_map}")  # C1
        known = x.known_dims
        if known is not None and not _is_injective(index_map, known):
            if not _is_injective(index_map, [_least(dim) for dim in known]):
                inference.fail(f"expected an index_map that sends no two elements to one place, got {index_map}")  # C2
            known = None  # numbers may show what symbols do not
        extents = _extents(index_map)
        if extents is None:
            inference.fail(f"expected an index_map whose indices are at least 0 and bounded, got {index_map}")  # C3
        if known is None:
            return (x.with_shape((None,) * len(extents)),)
        shape = _in_sizes(extents, known)
        for dim in shape:
            inference.require_at_most(ZERO, dim, "dimensions that are not negative")  # C3
        return (x.with_shape(shape),)


def mapped_shape(index_map: AffineMap, shape: Sequence[Dim]) -> list[Dim]:
    """The shape of the result for one of the operand; ValueError for a map that has none."""
    extents = _extents(index_map)
    if extents is None:
        raise ValueError(f"expected an index map whose indices are at least 0 and bounded, got {index_map}")
    return _in_sizes(extents, shape)


def mapped(index_map: AffineMap, indices: Sequence[Any]) -> tuple[Any, ...]:
    """The new indices, of whatever has Python's arithmetic: dimensions, scalars of `te`, arrays of NumPy."""
    return tuple(_value(result, indices) for result in index_map.results)


def _value(expr: AffineExpr, indices: Sequence[Any]) -> Any:
    match expr:
        case AffineDimExpr(position):
            return indices[position]
        case AffineConstantExpr(value):
            return value
        case AffineBinaryOpExpr(kind, lhs, rhs):
            return _apply(kind, _value(lhs, indices), _value(rhs, indices))
        case _:
            raise ValueError(f"expected an index map without symbols, got {expr}")


def _apply(kind: AffineBinaryOpKind, lhs: Any, rhs: Any) -> Any:
    match kind:
        case AffineBinaryOpKind.Add:
            return lhs + rhs
        case AffineBinaryOpKind.Mul:
            return lhs * rhs
        case AffineBinaryOpKind.FloorDiv:
            return lhs // rhs
        case AffineBinaryOpKind.CeilDiv:
            return -(-lhs // rhs)
        case AffineBinaryOpKind.Mod:
            return lhs % rhs


def _is_injective(index_map: AffineMap, shape: Sequence[Dim]) -> bool:
    from tir_dialect.schedule.index_domain import IndexDomain

    domain = IndexDomain.of(shape, Bounds())
    return domain.tells_apart([as_dim(each) for each in mapped(index_map, domain.indices)])


def _least(dim: Dim) -> Dim:
    """The dimension at sizes of one: a map that does not suit these suits no greater ones either."""
    return constant(max(dim.evaluate(dict.fromkeys(dim.symbols, 1)), 1))


def _extents(index_map: AffineMap) -> list[Dim] | None:
    """The dimensions of the result by those of the operand, which are symbols here: one rule for all sizes."""
    from tir_dialect.schedule.index_domain import IndexDomain

    domain = IndexDomain.of([symbol(_size(index)) for index in range(index_map.num_dims)], Bounds())
    extents: list[Dim] = []
    for output in map(as_dim, mapped(index_map, domain.indices)):
        atom = output.as_atom
        block = atom.denominator.constant_value if isinstance(atom, ModAtom) else None
        extent = domain.extent(output) if block is None else constant(block)
        if extent is None:
            return None
        extents.append(extent)
    return extents


def _in_sizes(extents: Sequence[Dim], shape: Sequence[Dim]) -> list[Dim]:
    sizes = {_size(index): dim for index, dim in enumerate(shape)}
    return [DEFAULT_PROVER.simplify(extent.substitute(sizes)) for extent in extents]


def _size(index: int) -> str:
    return f"size${index}"
