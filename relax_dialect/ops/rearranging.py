"""Operators that put elements into another order or number of dimensions, by rules of their own: padding, grids,
layouts and index maps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import I64, AffineMapAttr, DenseArrayBase, IntegerAttr, StringAttr, i64
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.irdl import operand_def, prop_def, result_def, var_operand_def, var_result_def

from relax_dialect.external import may_be_view
from relax_dialect.inference import DEFAULT_PROVER, ONE, ZERO, Inference
from relax_dialect.ops.fields import ExactNumber, exact_number, integer, integers, number
from relax_dialect.ops.layouts import BlockedLayout, parse_layout, require_blocks, require_rank, whole_dims
from relax_dialect.ops.manipulation import fold_to_same_type
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Bounds, Dim, ModAtom, ceildiv, constant, symbol
from tir_dialect.dims.expr import as_dim
from tir_dialect.ops.assembly_format import op_definition


@op_definition
class ReverseSequenceOp(Operator):
    """The first elements along an axis in reverse order, as many as the length of each batch element says.

    ```mlir
    %0 = relax.reverse_sequence %x, %lengths seq_axis = 0 batch_axis = 1
    ```

    Lengths greater than the axis count as the axis. Mirrors ONNX `ReverseSequence`.

    C1: the axes are within the rank and differ.
    C2: there is an integer length for each batch element.
    """

    name = "relax.reverse_sequence"

    seq_axis = prop_def(IntegerAttr[I64], default_value=integer(1))
    batch_axis = prop_def(IntegerAttr[I64], default_value=integer(0))
    x = operand_def(TensorType)
    lengths = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, lengths: SSAValue | Operation, seq_axis: int = 1, batch_axis: int = 0):
        super().__init__([x, lengths], {"seq_axis": integer(seq_axis), "batch_axis": integer(batch_axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, (count,) = inference.tensor(0), require_rank(inference, 1, 1)  # C2
        inference.require_domain(1, Domain.INTEGER)  # C2
        if x.dims is not None:
            given = (inference.integer("seq_axis"), inference.integer("batch_axis"))
            _, batch = inference.axes(given, len(x.dims))  # C1
            inference.require_equal(x.dims[batch], count, "a length for each batch element")  # C2
        return (x,)


@op_definition
class MeshgridOp(Operator):
    """Vectors repeated along all of their dimensions: the coordinates of a grid.

    ```mlir
    %rows, %columns = relax.meshgrid %x, %y indexing = "xy"
    ```

    With `ij` the dimensions are those of the vectors in order, with `xy` the first two are swapped. Mirrors NumPy's
    `meshgrid`.

    C1: there is at least one operand; each has rank 1, all one dtype.
    C2: the indexing is `ij` or `xy`.
    """

    name = "relax.meshgrid"

    indexing = prop_def(StringAttr, default_value=StringAttr("ij"))
    vectors = var_operand_def(TensorType)
    res = var_result_def(TensorType)

    def __init__(self, vectors: Sequence[SSAValue | Operation], indexing: str = "ij"):
        super().__init__(vectors, {"indexing": StringAttr(indexing)})

    @property
    def vectorized_axes(self) -> list[int]:
        """The dimension of the result that each vector runs along."""
        positions = list(range(len(self.vectors)))
        if self.indexing.data == "xy":
            positions[:2] = reversed(positions[:2])
        return positions

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType, ...]:
        count = len(inference.operand_types)
        if count == 0:
            inference.fail("expected at least one operand")  # C1
        inference.common_dtype(range(count))  # C1
        dims = [require_rank(inference, index, 1)[0] for index in range(count)]  # C1
        if inference.string("indexing") not in ("ij", "xy"):
            inference.fail(f"indexing expected ij or xy, got {inference.string('indexing')}")  # C2
        if inference.string("indexing") == "xy":
            dims[:2] = reversed(dims[:2])
        return (inference.tensor(0).with_shape(dims),) * count


@op_definition
class LayoutTransformOp(Operator, HasFolderInterface):
    """A tensor in another layout: dimensions in another order, and some of them cut into blocks.

    ```mlir
    %0 = relax.layout_transform %x source = "NCHW" target = "NCHW4c"
    ```

    A capital names a dimension, a number with a small letter the position within a block of it. Positions that a block
    has beyond the end of its dimension are zero; without blocks in the target, they are left in.

    C1: layouts are capitals, and blocks of some of them, each once, of the same dimensions.
    C2: the tensor has the rank of the source layout, and blocks of the sizes that it says.
    """

    name = "relax.layout_transform"

    source = prop_def(StringAttr)
    target = prop_def(StringAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, source: str, target: str):
        super().__init__([x], {"source": StringAttr(source), "target": StringAttr(target)})

    def fold(self) -> tuple[SSAValue] | None:
        """Back to what it was: `layout_transform %y, b, a  ->  %x` of `%y = layout_transform %x, a, b`, unless blocks
        have more positions, or somebody writes into one of them.
        """
        inner = self.x.owner
        if not isinstance(inner, LayoutTransformOp) or (inner.source, inner.target) != (self.target, self.source):
            return None
        unchanged = may_be_view(self.result, self.x) and may_be_view(self.result, inner.x)
        return fold_to_same_type(inner.x, self.result) if unchanged else None

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        source, target = (_layout(inference, name) for name in ("source", "target"))  # C1
        if {letter for letter, _ in source if letter.isupper()} != {letter for letter, _ in target if letter.isupper()}:
            inference.fail("expected layouts of the same dimensions")  # C1
        dims = require_rank(inference, 0, len(source))  # C2
        require_blocks(inference, dims, source)  # C2
        return (inference.tensor(0).with_shape(_arranged(whole_dims(source, dims), target)),)


def _layout(inference: Inference, name: str) -> BlockedLayout:
    found = parse_layout(inference.string(name))
    if found is None:
        inference.fail(f"{name} expected capitals and blocks of them, got {inference.string(name)}")
    return found


def _arranged(dims: dict[str, Dim | None], layout: BlockedLayout) -> list[Dim | None]:
    sizes = dict(layout)
    shape: list[Dim | None] = []
    for letter, size in layout:
        dim, block = dims[letter.upper()], sizes.get(letter.lower(), 1)
        shape.append(constant(size) if letter.islower() else None if dim is None else ceildiv(dim, max(block, 1)))
    return shape


@op_definition
class MultinomialFromUniformOp(Operator):
    """Samples from distributions, by numbers that are uniformly distributed between 0 and 1.

    ```mlir
    %0 = relax.multinomial_from_uniform %probabilities, %uniform, %rows dtype = i64
    ```

    A sample is the first position at which the sum of the probabilities of its row is greater than its number; the last
    position if there is none. Of a row that does not exist, the nearest one is meant. Mirrors TVM.

    C1: the probabilities have rank 2, numbers and rows rank 2 with one column, and there are as many of both.
    C2: probabilities and numbers are floating-point, rows integers; so is the dtype of the samples.
    C3: there is at least one position; where there is a number, a row.
    """

    name = "relax.multinomial_from_uniform"

    dtype = prop_def(Attribute, default_value=i64)
    probabilities = operand_def(TensorType)
    uniform = operand_def(TensorType)
    rows = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        probabilities: SSAValue | Operation,
        uniform: SSAValue | Operation,
        rows: SSAValue | Operation,
        dtype: Attribute = i64,
    ):
        super().__init__([probabilities, uniform, rows], {"dtype": dtype})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        (given, positions), uniform, rows = (require_rank(inference, index, 2) for index in range(3))  # C1
        for dims in (uniform, rows):
            inference.require_equal(dims[1], constant(1), "one column")  # C1
        count = inference.require_equal(uniform[0], rows[0], "a row for each number")  # C1
        inference.require_domain(0, Domain.FLOAT)  # C2
        inference.require_domain(1, Domain.FLOAT)  # C2
        inference.require_domain(2, Domain.INTEGER)  # C2
        dtype = inference.dtype("dtype")
        if not Domain.INTEGER.admits(dtype):
            inference.fail(f"dtype expected an integer dtype, got {dtype}")  # C2
        inference.require_at_most(constant(1), positions, "at least one place")  # C3
        if count is not None and given is not None:
            inference.require_at_most(count, count * given, "a row of probabilities for each number")  # C3
        return (TensorType((count, constant(1)), dtype, inference.common_device()),)


PAD_MODES = ("constant", "reflect", "replicate", "circular")


@op_definition
class PadOp(Operator):
    """More elements before and after each dimension: `pad_width` has two numbers per dimension, before and after.

    ```mlir
    %0 = relax.nn.pad %x pad_width = [0, 0, 1, 2] pad_value = 0.5
    %1 = relax.nn.pad %x pad_width = [0, 0, 1, 1] mode = "reflect"
    ```

    The new elements are `pad_value` (`constant`), mirrored without the edge (`reflect`), the edge (`replicate`), or
    those at the other end (`circular`). A negative number takes elements away, before others are mirrored or repeated.

    C1: there are two numbers per dimension.
    C2: the mode is one of the four.
    C3: no dimension becomes negative; nor does one that is mirrored or repeated where elements are taken away.
    C4: a dimension that is mirrored or repeated has an element left.
    """

    name = "relax.nn.pad"

    pad_width = prop_def(DenseArrayBase.constr(i64))
    mode = prop_def(StringAttr, default_value=StringAttr("constant"))
    pad_value = prop_def(ExactNumber, default_value=number(0.0))
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self, x: SSAValue | Operation, pad_width: Sequence[int], mode: str = "constant", pad_value: float = 0.0
    ):
        properties = {"pad_width": integers(pad_width), "mode": StringAttr(mode), "pad_value": exact_number(pad_value)}
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, widths, mode = inference.tensor(0), inference.integers("pad_width"), inference.string("mode")
        if len(widths) % 2 or (x.rank is not None and len(widths) != 2 * x.rank):
            expected = "an even number of" if x.rank is None else str(2 * x.rank)
            inference.fail(f"expected {expected} pad widths, got {len(widths)}")  # C1
        if mode not in PAD_MODES:
            inference.fail(f"mode expected one of {', '.join(PAD_MODES)}, got {mode}")  # C2
        pairs = list(zip(widths[::2], widths[1::2], strict=True))
        if x.dims is None:
            return (x.with_shape((None,) * len(pairs)),)
        shape = [None if dim is None else dim + sum(pair) for dim, pair in zip(x.dims, pairs, strict=True)]
        for old, pair in zip(x.dims, pairs, strict=True):
            cut = sum(pair) if mode == "constant" else sum(min(width, 0) for width in pair)
            left = None if old is None else old + min(cut, 0)
            if cut < 0:
                inference.require_at_most(ZERO, left, "a dimension that does not become negative")  # C3
            if max(pair) > 0 and mode != "constant" and ZERO not in shape:
                inference.require_at_most(ONE, left, "a dimension with an element to repeat")  # C4
        return (x.with_shape([None if dim is None else DEFAULT_PROVER.simplify(dim) for dim in shape]),)


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
            if not _is_injective(
                index_map, [constant(max(dim.evaluate(dict.fromkeys(dim.symbols, 1)), 1)) for dim in known]
            ):
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
    from tir_dialect.schedule.index_map import IndexDomain

    domain = IndexDomain.of(shape, Bounds())
    return domain.tells_apart([as_dim(each) for each in mapped(index_map, domain.indices)])


def _extents(index_map: AffineMap) -> list[Dim] | None:
    """The dimensions of the result by those of the operand, which are symbols here: one rule for all sizes."""
    from tir_dialect.schedule.index_map import IndexDomain

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
