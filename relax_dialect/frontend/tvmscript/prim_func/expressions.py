"""Expressions of PrimFuncs: elements and regions of buffers, choices, masked accesses, pointers into buffers."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.dialects.builtin import IndexType, VectorType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir import Region as IRRegion

from relax_dialect.frontend.tvmscript import evaluator
from relax_dialect.frontend.tvmscript.prim_func.buffers import element_address, element_dtype, moved, to_address
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import (
    DIVISIONS,
    FUNCTIONS,
    MAX_LANES,
    called,
    common_dtype,
    converted,
    logical_not,
    memory_dtype,
    scalar_function,
    split_dtype,
)
from relax_dialect.frontend.tvmscript.prim_func.scalars import (
    Axis,
    Buffer,
    Index,
    Pointer,
    Region,
    ScalarReader,
    Vector,
    data_of,
    pointer_to,
)
from relax_dialect.frontend.tvmscript.prim_func.vectors import (
    as_vector,
    both,
    broadcast_value,
    cast_vector,
    flattened,
    in_memory,
    lane_by_lane,
    load_lanes,
    named_dtype,
    store_lanes,
    vector_indices,
)
from relax_dialect.frontend.tvmscript.scopes import describe
from relax_dialect.frontend.tvmscript.static import choice, is_of_dimensions, is_python, python_value
from tir_dialect import te
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import byte_size, lookup
from tir_dialect.ops.arithmetic import RampOp
from tir_dialect.ops.control_flow import IfOp, YieldOp
from tir_dialect.ops.memory import StoreOp
from tir_dialect.te.emit_scalar import value_type
from tir_dialect.te.expr import INDEX, DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype


class TirExpressionReader(ScalarReader):
    """Reads expressions of one PrimFunc and emits them at the end of the current block."""

    def value(self, node: ast.expr) -> object:
        if not isinstance(node, ast.IfExp):
            return super().value(node)
        return choose(self, node, node.test, node.body, node.orelse)

    def apply(self, node: ast.AST, name: str, *operands: object) -> object:
        if self.mask is not None and name in DIVISIONS:
            operands = (operands[0], divisor_of(self, node, self.mask, operands[1]))
        vecs = [as_vector(self, node, each) for each in operands]
        if any(vec is not None for vec in vecs):
            lanes = [each if vec is None else vec for vec, each in zip(vecs, operands, strict=True)]
            return lane_by_lane(self, node, scalar_function(name), lanes)
        scalars = [self.scalar_operand(node, each) for each in operands]
        return self.emit(node, lambda: called(name, scalars))

    # Buffers

    def subscript(self, node: ast.Subscript) -> object:
        owner = self.value(node.value)
        if isinstance(owner, Buffer):
            region = self.region(node, owner)
            return region if region.is_vector else self.load(node, region)
        if isinstance(owner, Pointer):
            self.fail(node, "memory without a shape cannot be indexed; give it one by T.decl_buffer")
        return super().subscript(node)

    def region(self, node: ast.Subscript, buffer: Buffer) -> Region:
        """`A[i, lo:hi]`."""
        # The indices in brackets, each with its value unless it is a range; a tuple stands for its items.
        parts: list[tuple[ast.expr, object]] = []
        for part in node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]:
            if isinstance(part, ast.Slice):
                parts.append((part, None))
                continue
            value = self.value(part.value if isinstance(part, ast.Starred) else part)
            items = evaluator.items_of(value)
            parts += [(part, value)] if items is None else [(part, item) for item in items]
        if len(parts) != buffer.rank:
            noun = "index" if buffer.rank == 1 else "indices"
            self.fail(node, f"expected {buffer.rank} {noun}, got {len(parts)}")
        if buffer.extents is not None:
            return Region(buffer, (self._linear(node, buffer, parts),))
        axes = [self._axis(part, dim) for part, dim in zip(parts, buffer.type.shape, strict=False)]
        if buffer.lanes is not None:
            axes.append(Axis(constant(0), constant(buffer.lanes)))
        return Region(buffer, tuple(axes))

    def _linear(self, node: ast.AST, buffer: Buffer, parts: Sequence[tuple[ast.expr, object]]) -> Axis:
        """Where an element lies, or a range of the last dimension, in memory whose strides the program computes."""
        axes = [self._axis(part, constant(1)) for part in parts]
        sum_: object = 0
        for axis, step in zip(axes, buffer.steps, strict=True):
            sum_ = self.apply(node, "Add", sum_, self.apply(node, "Mul", axis.lower, step))
        lower = sum_ if isinstance(sum_, Vector) else self.index(node, sum_)
        if all(axis.upper is None for axis in axes):
            return Axis(lower)
        last, is_dense = axes[-1], buffer.steps[-1] == constant(1)
        if any(axis.upper is not None for axis in axes[:-1]) or not is_dense or isinstance(lower, Vector):
            self.fail(node, "expected a range of the last dimension, which has the stride 1")
        length = self.apply(node, "Sub", last.upper, last.lower)
        return Axis(lower, self.index(node, self.apply(node, "Add", lower, length)), last.step)

    def _axis(self, part: tuple[ast.expr, object], length: Dim) -> Axis:
        node, value = part
        if not isinstance(node, ast.Slice):
            vec = as_vector(self, node, value)
            return Axis(self.index(node, value) if vec is None else vec)
        lower = constant(0) if node.lower is None else self.index(node.lower, self.value(node.lower))
        upper = length if node.upper is None else self.index(node.upper, self.value(node.upper))
        step = 1 if node.step is None else self.integer(node.step)
        return Axis(lower, upper, step)

    def load(self, node: ast.AST, region: Region) -> Scalar:
        """The element at a point."""
        indices = tuple(axis.lower for axis in region.axes if not isinstance(axis.lower, Vector))
        element = self.emit(node, lambda: region.buffer.tensor[indices])
        if self.mask is None:
            return element
        return element_of(self, node, self.mask, element)

    def store(self, node: ast.AST, region: Region, value: object) -> None:
        """Writes one element."""
        if as_vector(self, node, value) is not None:
            self.fail(node, "expected as many elements as the vector has lanes, as A[i:i + 8]")
        operand, owner = self.scalar_operand(node, value), region.buffer
        scalar = self.emit(node, lambda: converted(operand, owner.tensor.dtype))
        element = self.load(node, region)
        *indices, stored = self.values(node, *element.operands, scalar)
        self.block.add_op(self.emit(node, lambda: StoreOp(stored, owner.value, indices)))

    def attribute(self, node: ast.Attribute) -> object:
        if is_python(self.aliases, self.scope, node):
            return python_value(self, node)
        owner = self.value(node.value)
        if isinstance(owner, Buffer):
            match node.attr:
                case "data":
                    return data_of(owner)
                case "shape" | "strides" if owner.extents is not None:
                    return owner.extents if node.attr == "shape" else owner.steps
                case "shape" | "strides":
                    return tuple(owner.type.shape if node.attr == "shape" else owner.type.strides)[: owner.rank]
                case "elem_offset":
                    return owner.type.offset if owner.base is None else owner.start
                case "dtype":
                    return f"{_name_of(owner.type.dtype)}{'' if owner.lanes is None else f'x{owner.lanes}'}"
                case "ty":
                    return owner
                case _:
                    self.fail(node, f"a buffer has no {node.attr}; it has data, shape, strides, elem_offset and dtype")
        dtype = _dtype_of(owner)
        if dtype is None or node.attr not in ("dtype", "ty"):
            self.fail(node, f"{describe(owner)} has no {node.attr}")
        return owner if node.attr == "ty" else _name_of(dtype)


def _dtype_of(value: object) -> Attribute | None:
    """The dtype of a scalar; `None` for anything else."""
    if isinstance(value, Region):
        return None if value.is_vector else value.buffer.type.dtype
    return value.dtype if isinstance(value, Scalar) else None


def _name_of(dtype: Attribute) -> str:
    """A dtype as texts call it; an index is an `int32` for them."""
    return "int32" if isinstance(dtype, IndexType) else lookup(dtype).numpy_name


def if_then_else(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.if_then_else(condition, then, otherwise)`."""
    if is_of_dimensions(reader, node) and (dim := choice(reader, node)) is not None:
        return dim
    given = reader.arguments(node, "T.if_then_else", "cond t f span", {}, ("dtype",))
    return choose(reader, node, *(given.require(name) for name in ("cond", "t", "f")))


def choose(reader: TirExpressionReader, node: ast.AST, test: ast.expr, then: ast.expr, otherwise: ast.expr) -> object:
    """One of two expressions."""
    condition = reader.value(test)
    if isinstance(condition, bool):
        return reader.value(then if condition else otherwise)
    if (mask := as_vector(reader, test, condition)) is not None:
        # A choice in every lane, of sides that are computed for all of them, but read memory for those that are
        # chosen.
        chosen = cast_vector(reader, node, mask, to_dtype("bool"))
        others = lane_by_lane(reader, node, logical_not, [chosen])
        vecs = [_guarded(reader, side, lanes) for side, lanes in ((then, chosen), (otherwise, others))]
        return reader.apply(node, "Select", chosen, *vecs)
    sides = [_read(reader, each) for each in (then, otherwise)]
    vecs = [value for _, value in sides if isinstance(value, Vector)]
    if vecs:
        # The dtype and the lanes of the result; indices have no vectors that branches give, and become 64
        # bits.
        dtype = reader.emit(node, lambda: common_dtype(vecs[0].dtype, vecs[-1].dtype))
        return _vector(reader, node, test, condition, sides, (memory_dtype(dtype), vecs[0].lanes))
    for block, _ in sides:
        for op in list(block.ops):
            op.detach()
            reader.block.add_op(op)
    scalars = [reader.scalar_operand(node, value) for value in (condition, *(value for _, value in sides))]
    return reader.emit(node, lambda: FUNCTIONS["if_then_else"](*scalars))


def _read(reader: TirExpressionReader, node: ast.expr) -> tuple[Block, object]:
    """An expression, and the ops that it takes."""
    outer, block = reader.block, Block()
    reader.block = block
    try:
        value = reader.value(node)
        return block, as_vector(reader, node, value) or value
    finally:
        reader.block = outer


def _vector(
    reader: TirExpressionReader,
    node: ast.AST,
    test: ast.expr,
    condition: object,
    sides: list[tuple[Block, object]],
    result: tuple[DType, int],
) -> Vector:
    """A branch that gives a vector."""
    dtype, lanes = result
    truth = reader.scalar_value(test, condition, to_dtype("bool"))
    outer = reader.block
    for block, value in sides:
        reader.block = block
        vec = value if isinstance(value, Vector) else broadcast_value(reader, node, value, lanes, dtype)
        if vec.lanes != lanes:
            reader.fail(node, f"expected vectors of {lanes} lanes, got {vec.lanes}")
        block.add_op(YieldOp(cast_vector(reader, node, vec, dtype).value))
    reader.block = outer
    op = IfOp(truth, IRRegion(sides[0][0]), IRRegion(sides[1][0]), [VectorType(value_type(dtype), [lanes])])
    return Vector(reader.insert(op), dtype)


def _guarded(reader: TirExpressionReader, side: ast.expr, lanes: Vector) -> object:
    """A side that counts for some lanes: the others neither read memory nor divide."""
    outer = reader.mask
    reader.mask = lanes if outer is None else both(reader, side, outer, lanes)
    try:
        value = reader.value(side)
        return as_vector(reader, side, value) or value
    finally:
        reader.mask = outer


# Inside of a side that counts for some lanes


def divisor_of(reader: TirExpressionReader, node: ast.AST, mask: Vector, divisor: object) -> object:
    """A divisor that is 1 in the lanes that do not count."""
    if (vec := as_vector(reader, node, divisor)) is not None:
        return reader.apply(node, "Select", mask, vec, 1)
    operand = reader.scalar_operand(node, divisor)
    if isinstance(operand, int | float):
        return operand
    return reader.emit(node, lambda: FUNCTIONS["if_then_else"](_any_of(reader, node, mask), operand, 1))


def element_of(reader: TirExpressionReader, node: ast.AST, mask: Vector, element: Scalar) -> Scalar:
    """An element that all lanes share, read if one of them counts; else 0."""
    return reader.emit(node, lambda: FUNCTIONS["if_then_else"](_any_of(reader, node, mask), element, 0))


def _any_of(reader: TirExpressionReader, node: ast.AST, mask: Vector) -> Scalar:
    """Whether a mask has any lane."""
    memory = in_memory(reader, node, [mask])
    lanes = [memory.tensor[(constant(index),)] for index in range(mask.lanes)]
    found = functools.reduce(te.logical_or, lanes)
    return reader.variable(reader.values(node, found)[0], found.dtype, "any")


def load_vector(reader: TirExpressionReader, node: ast.Call, buffer: Buffer) -> object:
    """`A.vload([i, j], "float32x4", predicate=mask)`."""
    given = reader.arguments(node, "vload", "begin dtype predicate")
    return load_at(reader, node, buffer, given.require("begin"), given.get("dtype"), given.get("predicate"))


def load_at(
    reader: TirExpressionReader,
    node: ast.AST,
    buffer: Buffer,
    begin: ast.expr,
    dtype: ast.expr | None,
    predicate: ast.expr | None,
) -> object:
    """As many elements as a dtype has lanes, or as the index has; without lanes, one."""
    bare, lanes = (None, None) if dtype is None else split_dtype(reader.text(dtype))
    if bare is not None and named_dtype(reader, node, bare) != buffer.tensor.dtype:
        reader.fail(node, f"expected the dtype of the buffer, {buffer.tensor.dtype}, got {bare}; use T.reinterpret")
    region = _region(reader, node, buffer, begin, lanes)
    if not region.is_vector:
        return reader.load(node, region)
    indices, count = vector_indices(reader, node, region)
    mask = _mask(reader, predicate, count or _lanes(region))
    return load_lanes(reader, node, region.buffer, indices, count, mask)


def store_vector_at(reader: TirExpressionReader, node: ast.Call, owner: ast.expr) -> None:
    """`A.vstore([i, j], value, predicate=mask)`."""
    buffer = reader.value(owner)
    if not isinstance(buffer, Buffer):
        reader.fail(owner, "expected a buffer to store to")
    given = reader.arguments(node, "vstore", "begin value predicate")
    value = reader.value(given.require("value"))
    store_at(reader, node, buffer, given.require("begin"), value, given.get("predicate"))


def store_at(
    reader: TirExpressionReader,
    node: ast.AST,
    buffer: Buffer,
    begin: ast.expr,
    value: object,
    predicate: ast.expr | None,
) -> None:
    """Writes a scalar or a vector from an index on."""
    vec = as_vector(reader, node, value)
    region = _region(reader, node, buffer, begin, None if vec is None else vec.lanes)
    if not region.is_vector:
        reader.store(node, region, value)
        return
    indices, count = vector_indices(reader, node, region)
    lanes = count or _lanes(region)
    if vec is None:
        vec = broadcast_value(reader, node, value, lanes, buffer.tensor.dtype)
    store_lanes(reader, node, region.buffer, indices, vec, _mask(reader, predicate, lanes))


def _lanes(region: Region) -> int:
    """The lanes of the vector among the indices."""
    return next(axis.lower.lanes for axis in region.axes if isinstance(axis.lower, Vector))


def _region(reader: TirExpressionReader, node: ast.AST, buffer: Buffer, begin: ast.expr, lanes: int | None) -> Region:
    """The elements at indices of which one is a vector, or so many from an index on."""
    positions = begin.elts if isinstance(begin, ast.List | ast.Tuple) else [begin]
    indices = ast.copy_location(ast.Tuple(list(positions), ast.Load()), begin)
    region = reader.region(ast.copy_location(ast.Subscript(begin, indices, ast.Load()), begin), buffer)
    if lanes is None or lanes == 1 or region.is_vector:
        return region
    if not region.axes or lanes > MAX_LANES:
        reader.fail(node, f"expected 1 to {MAX_LANES} lanes along a dimension, got {lanes}")
    last = region.axes[-1].lower
    upper = reader.index(node, reader.apply(node, "Add", last, lanes))
    return flattened(reader, node, Region(buffer, (*region.axes[:-1], Axis(last, upper))))


def _mask(reader: TirExpressionReader, node: ast.expr | None, lanes: int) -> SSAValue | None:
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    value = reader.value(node)
    vec = as_vector(reader, node, value)
    truth = named_dtype(reader, node, "bool")
    vec = broadcast_value(reader, node, value, lanes, truth) if vec is None else cast_vector(reader, node, vec, truth)
    if vec.lanes != lanes:
        reader.fail(node, f"expected a mask of {lanes} lanes, got {vec.lanes}")
    return vec.value


def active_lanes(reader: TirExpressionReader, node: ast.Call) -> object:
    """`T.get_active_lane_mask("uint1x4", base, limit)`: the lanes `i` with `base + i < limit`."""
    given = reader.arguments(node, "T.get_active_lane_mask", "dtype base limit")
    _, lanes = split_dtype(reader.text(given.require("dtype")))
    if lanes is None:
        reader.fail(given.require("dtype"), "expected a dtype with lanes, as boolx4")
    base, limit = (given.require(name) for name in ("base", "limit"))
    first, one = reader.index_value(base, reader.value(base)), reader.dim_value(node, constant(1))
    indices = Vector(reader.insert(RampOp(first, one, lanes)), INDEX)
    return reader.apply(node, "LT", indices, reader.value(limit))


def address_of(reader: TirExpressionReader, node: ast.Call) -> Pointer:
    """`T.address_of(A[i])`: the memory from an element on."""
    target = reader.arguments(node, "T.address_of", "element", {}, ("dtype",)).require("element")
    owner = reader.value(target.value if isinstance(target, ast.Subscript) else target)
    if not isinstance(owner, Buffer):
        reader.fail(node, "expected the address of a buffer or of one of its elements, as A[0]")
    if not isinstance(target, ast.Subscript):
        return pointer_to(owner)
    return element_address(reader, node, reader.region(target, owner))


def access_pointer(reader: TirExpressionReader, node: ast.Call, buffer: Buffer) -> Pointer:
    """`A.access_ptr("r", offset=i)`: the memory of a buffer; what is done with it need not be said."""
    names = "access_mask ptr_type content_lanes offset extent"
    offset = reader.arguments(node, "access_ptr", names).get("offset")
    return replace(pointer_to(buffer), start=_offset(reader, offset))


def access_data(reader: TirExpressionReader, node: ast.Call) -> Pointer | Scalar:
    """`T.tvm_access_ptr(T.type_annotation("float32"), A.data, offset, extent, rw_mask)`."""
    given = reader.arguments(node, "T.tvm_access_ptr", "ptype data offset extent rw_mask")
    found, offset = reader.value(given.require("data")), given.get("offset")
    if isinstance(found, Scalar):
        size = reader.apply(node, "Mul", _offset(reader, offset), _typed_bytes(reader, given.require("ptype")))
        return moved(reader, node, found, size)
    memory = _as_memory(reader, given.require("data"), found)
    return replace(memory, start=_sum(reader, node, memory.start, _offset(reader, offset)))


def further_bytes(reader: TirExpressionReader, node: ast.Call) -> Pointer | Scalar:
    """`T.handle_add_byte_offset(p, n)`, `T.ptr_byte_offset(p, n, dtype)`: an offset in bytes."""
    given = reader.arguments(node, "the call", "handle offset dtype", {"data": "handle", "byte_offset": "offset"})
    memory, offset = reader.value(given.require("handle")), given.require("offset")
    if isinstance(memory, Scalar | int):
        return moved(reader, node, to_address(reader, node, memory), reader.value(offset))
    memory = _as_memory(reader, given.require("handle"), memory)
    size = byte_size(memory.dtype)
    steps = reader.apply(node, "floordiv", reader.value(offset), size) if size > 1 else reader.value(offset)
    return replace(memory, start=_sum(reader, node, memory.start, reader.index(offset, steps)))


def _typed_bytes(reader: TirExpressionReader, node: ast.expr) -> int:
    """The size of an element by `T.type_annotation("float32")`."""
    arguments = node.args if isinstance(node, ast.Call) else [node]
    dtype, lanes = element_dtype(reader, arguments[0])
    return byte_size(dtype) * (lanes or 1)


def _as_memory(reader: TirExpressionReader, node: ast.expr, found: object) -> Pointer:
    if isinstance(found, Buffer):
        return pointer_to(found)
    if not isinstance(found, Pointer):
        reader.fail(node, "expected the memory of a buffer, as A.data")
    return found


def _offset(reader: TirExpressionReader, node: ast.expr | None) -> Index:
    return constant(0) if node is None else reader.index(node, reader.value(node))


def _sum(reader: TirExpressionReader, node: ast.AST, one: Index, other: Index) -> Index:
    return reader.index(node, reader.apply(node, "Add", one, other))


Form: TypeAlias = "Callable[[TirExpressionReader, ast.Call], object]"
"""Reads a call of `T.<name>` that takes more than scalars."""
