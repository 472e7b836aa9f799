"""Vectors: `A[i:i + 8]`, `T.Ramp`, `T.Broadcast`; what is computed of them lane by lane, loaded and stored."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, SSAValue

from relax_dialect.frontend.tvmscript.prim_func.buffers import (
    ADDRESS,
    alloc,
    bind_buffer,
    element_index,
    names_handle,
    to_address,
    view,
)
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import (
    MAX_LANES,
    converted,
    memory_dtype,
    promoted,
    split_dtype,
)
from relax_dialect.frontend.tvmscript.prim_func.scalars import (
    Axis,
    Buffer,
    Region,
    ScalarReader,
    Vector,
    known_difference,
    pointer_to,
)
from tir_dialect import te
from tir_dialect.dims import Dim, constant, product
from tir_dialect.dtypes import lookup
from tir_dialect.ops.arithmetic import RampOp
from tir_dialect.ops.blocks import FlattenOp
from tir_dialect.ops.calls import CallExternOp
from tir_dialect.ops.memory import LoadOp, StoreOp, lanes_of
from tir_dialect.ops.vectors import by_lane
from tir_dialect.te import nodes
from tir_dialect.te.emit_scalar import Names, ScalarEmitter, value_type
from tir_dialect.te.expr import INDEX, DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType

_SCALARS_ONLY = (CallExternOp, math.IPowIOp)
"""Ops that compute one scalar, by a call or by a loop."""


def cast_vector(reader: ScalarReader, node: ast.AST, vec: Vector, dtype: DType) -> Vector:
    """Every lane converted."""

    def cast(value: Scalar) -> Scalar:
        return te.cast(value, dtype)

    return vec if vec.dtype == dtype else lane_by_lane(reader, node, cast, [vec])


def spread(reader: ScalarReader, value: SSAValue, dtype: DType, lanes: int) -> Vector:
    """The same in every lane."""
    return Vector(reader.insert(vector.BroadcastOp(value, VectorType(value_type(dtype), [lanes]))), dtype)


def lane_by_lane(
    reader: ScalarReader, node: ast.AST, function: Callable[..., Scalar], operands: Sequence[object]
) -> Vector:
    """What a function of scalars gives for each lane."""
    counts = [each.lanes for each in operands if isinstance(each, Vector)]
    if len(set(counts)) != 1:
        reader.fail(node, f"expected vectors with as many lanes, got {', '.join(map(str, counts))}")
    widener = _Widener(reader, node, counts[0])
    arguments = [widener.lane_of(each) if isinstance(each, Vector) else widener.scalar(each) for each in operands]
    return widener.widen(reader.emit(node, lambda: function(*arguments)))


class _Widener:
    """Emits a function of one lane into a block of its own, then for all lanes where the reader is."""

    def __init__(self, reader: ScalarReader, node: ast.AST, lanes: int):
        self._reader = reader
        self._node = node
        self._lanes = lanes
        self._block = Block()
        self._names = Names(symbols=reader.names.symbols)
        self._values: dict[SSAValue, SSAValue] = {}

    def lane_of(self, vec: Vector) -> Scalar:
        """A lane of a vector."""
        return self._argument(vec.value, vec.dtype)

    def scalar(self, operand: object) -> Scalar | Dim | float:
        """What counts for every lane; numbers take the dtype of the others."""
        found = self._reader.scalar_operand(self._node, operand)
        if not isinstance(found, Scalar):
            return found
        return self._argument(self._reader.values(self._node, found)[0], found.dtype)

    def _argument(self, value: SSAValue, dtype: DType) -> Scalar:
        argument = self._block.insert_arg(value_type(dtype), len(self._block.args))
        self._values[argument] = value
        variable = nodes.Var("lane", dtype)
        self._names.variables[variable] = argument
        return variable

    def widen(self, scalar: Scalar) -> Vector:
        """The function of all lanes at once."""
        (result,) = self._reader.emit(self._node, lambda: ScalarEmitter(self._block, self._names).emit(scalar))
        for op in self._block.ops:
            operands = [self._values.get(operand, operand) for operand in op.operands]
            if any(lanes_of(operand.type) for operand in operands):
                if isinstance(op, _SCALARS_ONLY) or op.regions:
                    self._reader.fail(self._node, "this is not computed of vectors; write a loop, T.vectorized(lanes)")
                # a condition may be one for all lanes
                whole = isinstance(op, arith.SelectOp) and lanes_of(operands[0].type) is None
                widened = [*operands[:whole], *map(self._widened, operands[whole:])]
                made = by_lane(op, widened, self._lanes)
            else:
                made = op.clone(self._values)
            self._values[op.results[0]] = self._reader.insert(made)
        return Vector(self._widened(self._values.get(result, result)), scalar.dtype)

    def _widened(self, value: SSAValue) -> SSAValue:
        if lanes_of(value.type) is not None:
            return value
        return self._reader.insert(vector.BroadcastOp(value, VectorType(value.type, [self._lanes])))


def named_dtype(reader: ScalarReader, node: ast.AST, name: str) -> DType:
    """The dtype of a name."""
    return reader.emit(node, lambda: to_dtype(name))


def vector_indices(reader: ScalarReader, node: ast.AST, region: Region) -> tuple[list[SSAValue], int | None]:
    """The indices of a vector of elements, and how many they are if they are consecutive."""
    indices: list[SSAValue] = []
    lanes: int | None = None
    for number, axis in enumerate(region.axes):
        if isinstance(axis.lower, Vector):
            indices.append(cast_vector(reader, node, axis.lower, INDEX).value)
        elif axis.upper is None:
            indices.append(reader.index_value(node, axis.lower))
        else:
            count = _length(reader, node, axis)
            if number + 1 == len(region.axes) and axis.step == 1 and lanes is None:
                indices.append(reader.index_value(node, axis.lower))
                lanes = count
            else:
                ends = reader.index_value(node, axis.lower), reader.index_value(node, constant(axis.step))
                indices.append(reader.insert(RampOp(ends[0], ends[1], count)))
    return indices, lanes


def _length(reader: ScalarReader, node: ast.AST, axis: Axis) -> int:
    """The number of elements of a range, which has to be known."""
    if axis.upper is None or isinstance(axis.lower, Vector):
        reader.fail(node, "expected a range of indices")
    upper, lower = axis.upper, axis.lower
    difference = reader.emit(node, lambda: promoted(upper, lower))
    span = known_difference(difference[0], difference[1])
    if span is None or axis.step <= 0 or not 0 < span <= MAX_LANES:
        reader.fail(node, "expected a range of constant, positive length, as A[i:i + 8]")
    return -(-span // axis.step)


def flattened(reader: ScalarReader, node: ast.AST, region: Region) -> Region:
    """Elements that go on beyond the last dimension, in the flattened buffer; other regions as they are."""
    buffer, axes = region.buffer, region.axes
    inner = 1 if buffer.lanes is not None else 0
    index = len(axes) - 1 - inner
    axis = axes[index] if 0 <= index < len(axes) else None
    if axis is None or axis.upper is None or axis.step != 1 or any(not each.is_point for each in axes[:index]):
        return region
    vec = Region(buffer, (axis,))
    _, count = vector_indices(reader, node, vec)
    if count is None or (not inner and not _is_longer(buffer, count)):
        return region
    flat = reader.emit(node, lambda: FlattenOp(buffer.value))
    reader.emit(node, flat.verify_)
    reader.block.add_op(flat)
    first = element_index(reader, node, region)
    lanes = count * (buffer.lanes or 1)
    upper = reader.index(node, reader.apply(node, "Add", first, lanes))
    return Region(bind_buffer(reader, SSAValue.get(flat.view, type=BufferType), "row"), (Axis(first, upper),))


def _is_longer(buffer: Buffer, count: int) -> bool:
    length = buffer.type.shape[-1].constant_value
    return buffer.type.rank > 1 and length is not None and count > length


def ramp(reader: ScalarReader, node: ast.Call) -> Vector:
    """`T.Ramp(base, stride, lanes)`: indices."""
    given = reader.arguments(node, "T.Ramp", "base stride lanes span")
    base, step = given.require("base"), given.require("stride")
    lanes = _lanes(reader, given.require("lanes"))
    values = [reader.index_value(each, reader.value(each)) for each in (base, step)]
    return Vector(reader.insert(RampOp(values[0], values[1], lanes)), INDEX)


def broadcast(reader: ScalarReader, node: ast.Call) -> Vector:
    """`T.Broadcast(x, lanes)`: the same in every lane."""
    given = reader.arguments(node, "T.Broadcast", "value lanes span")
    return broadcast_value(reader, node, reader.value(given.require("value")), _lanes(reader, given.require("lanes")))


def broadcast_value(
    reader: ScalarReader, node: ast.AST, value: object, lanes: int, dtype: DType | None = None
) -> Vector:
    """A scalar in every lane, converted to a dtype if one is given."""
    operand = reader.scalar_operand(node, value)
    scalar = reader.emit(node, lambda: promoted(operand)[0] if dtype is None else converted(operand, dtype))
    return spread(reader, reader.values(node, scalar)[0], scalar.dtype, lanes)


def _lanes(reader: ScalarReader, node: ast.expr) -> int:
    lanes = reader.integer(node)
    if not 0 < lanes <= MAX_LANES:
        reader.fail(node, f"expected 1 to {MAX_LANES} lanes, got {lanes}")
    return lanes


# Memory


def load_lanes(
    reader: ScalarReader,
    node: ast.AST,
    buffer: Buffer,
    indices: Sequence[SSAValue],
    lanes: int | None,
    mask: SSAValue | None = None,
) -> Vector:
    """The elements at the indices, of which one may be a vector; lanes that the mask has not are 0."""
    if (guard := reader.mask) is not None:
        mask = guard.value if mask is None else both(reader, node, guard, Vector(mask, guard.dtype)).value
    op = reader.emit(node, lambda: LoadOp(buffer.value, indices, lanes=lanes, mask=mask))
    reader.emit(node, op.verify_)
    return Vector(reader.insert(op), lookup(buffer.type.dtype).type)


def both(reader: ScalarReader, node: ast.AST, one: Vector, other: Vector) -> Vector:
    """The lanes that two masks have."""
    if one.lanes != other.lanes:
        reader.fail(node, f"expected a mask of {one.lanes} lanes, got {other.lanes}")
    return Vector(reader.insert(arith.AndIOp(one.value, other.value)), one.dtype)


def store_lanes(
    reader: ScalarReader,
    node: ast.AST,
    buffer: Buffer,
    indices: Sequence[SSAValue],
    vec: Vector,
    mask: SSAValue | None = None,
) -> None:
    """Writes the elements at the indices, converted to the dtype of the buffer, where the mask has them."""
    vec = cast_vector(reader, node, vec, lookup(buffer.type.dtype).type)
    op = reader.emit(node, lambda: StoreOp(vec.value, buffer.value, indices, mask=mask))
    reader.emit(node, op.verify_)
    reader.block.add_op(op)


def as_vector(reader: ScalarReader, node: ast.AST, value: object) -> Vector | None:
    """A vector, or the elements of a region as one; `None` for anything else, a single element too."""
    if isinstance(value, Vector):
        return value
    if isinstance(value, Region) and value.is_vector:
        region = flattened(reader, node, value)
        indices, lanes = vector_indices(reader, node, region)
        return load_lanes(reader, node, region.buffer, indices, lanes)
    return None


def store_vector(reader: ScalarReader, node: ast.AST, region: Region, value: object) -> None:
    """`A[i:i + 8] = v`."""
    region = flattened(reader, node, region)
    indices, lanes = vector_indices(reader, node, region)
    vec = as_vector(reader, node, value)
    if vec is None:
        count = lanes or next(axis.lower.lanes for axis in region.axes if isinstance(axis.lower, Vector))
        vec = broadcast_value(reader, node, value, count, lookup(region.buffer.type.dtype).type)
    if lanes is not None and lanes != vec.lanes:
        reader.fail(node, f"expected a vector of {lanes} lanes, got {vec.lanes}")
    store_lanes(reader, node, region.buffer, indices, vec)


def in_memory(reader: ScalarReader, node: ast.AST, vecs: Sequence[Vector]) -> Buffer:
    """Vectors one after the other in memory of their own."""
    dtype = memory_dtype(vecs[0].dtype)
    total = sum(vec.lanes for vec in vecs)
    buffer = alloc(reader, node, BufferType([total], lookup(dtype).type, scope="local"), "row")
    offset = 0
    for vec in vecs:
        start = reader.dim_value(node, constant(offset))
        store_lanes(reader, node, buffer, [start], vec)
        offset += vec.lanes
    return buffer


def reinterpret(reader: ScalarReader, node: ast.Call) -> object:
    """`T.reinterpret("int32x4", v)`: the bits of a scalar or vector as another dtype, with any number of lanes."""
    given = reader.typed_arguments(node, "T.reinterpret", "value")
    if names_handle(reader, given.require("dtype")):
        # A pointer, or a number that is one.
        value = reader.value(given.require("value"))
        return to_address(
            reader,
            node,
            (te.reinterpret(value, ADDRESS) if isinstance(value, Scalar) and value.dtype != ADDRESS else value),
        )
    bare, lanes = split_dtype(reader.text(given.require("dtype")))
    value_node, target = given.require("value"), named_dtype(reader, node, bare)
    value = reader.value(value_node)
    vec = as_vector(reader, value_node, value)
    if vec is None and lanes is None:
        operand = reader.scalar_operand(value_node, value)
        return reader.emit(node, lambda: te.reinterpret(promoted(operand)[0], target))
    memory = in_memory(reader, node, [broadcast_value(reader, value_node, value, 1) if vec is None else vec])
    count = lanes or 1
    source, seen = memory.type, BufferType([count], lookup(target).type, scope="local")
    if product(source.shape) * lookup(source.dtype).bytes != constant(count * lookup(seen.dtype).bytes):
        reader.fail(node, f"expected as many bits as {bare}{'' if lanes is None else f'x{lanes}'} has, got {source}")
    other = view(reader, node, pointer_to(memory), seen)
    first = reader.dim_value(node, constant(0))
    if lanes is None:
        return reader.load(node, Region(other, (Axis(constant(0)),)))
    return load_lanes(reader, node, other, [first], lanes)


def shuffle(reader: ScalarReader, node: ast.Call) -> object:
    """`T.Shuffle([v, w], [0, 5])`: lanes of vectors or scalars; one lane is a scalar."""
    given = reader.arguments(node, "T.Shuffle", "vectors indices span")
    vectors, indices = given.require("vectors"), given.require("indices")
    if not isinstance(vectors, ast.List | ast.Tuple) or not isinstance(indices, ast.List | ast.Tuple):
        reader.fail(node, "T.Shuffle expected a list of vectors and a list of lanes")
    memory = in_memory(reader, node, _of_one_dtype(reader, node, vectors.elts))
    lanes = [Region(memory, (Axis(reader.index(each, reader.value(each))),)) for each in indices.elts]
    if len(lanes) == 1:
        return reader.load(node, lanes[0])
    chosen = alloc(reader, node, BufferType([len(lanes)], memory.type.dtype, scope="local"), "row")
    for index, lane in enumerate(lanes):
        at, value = reader.dim_value(node, constant(index)), reader.values(node, reader.load(node, lane))[0]
        reader.block.add_op(StoreOp(value, chosen.value, [at]))
    return load_lanes(reader, node, chosen, [reader.dim_value(node, constant(0))], len(lanes))


def _of_one_dtype(reader: ScalarReader, node: ast.AST, parts: Sequence[ast.expr]) -> list[Vector]:
    """Vectors, scalars as vectors of one lane, all of the dtype of the first one."""
    if not parts:
        reader.fail(node, "expected at least one vector")
    values = [(part, reader.value(part)) for part in parts]
    vecs = [as_vector(reader, part, value) or broadcast_value(reader, part, value, 1) for part, value in values]
    return [cast_vector(reader, node, vec, vecs[0].dtype) for vec in vecs]


def half(reader: ScalarReader, node: ast.Call) -> Vector:
    """`T.vectorlow(dtype, v)`, `T.vectorhigh(dtype, v)`: the first or the second half of the lanes."""
    name = (reader.aliases.name_in("tir", node.func) or "").removeprefix("vector")
    given = reader.typed_arguments(node, f"T.vector{name}", "vector")
    vec = as_vector(reader, node, reader.value(given.require("vector")))
    if vec is None or vec.lanes % 2:
        reader.fail(node, "expected a vector with an even number of lanes")
    memory, count = in_memory(reader, node, [vec]), vec.lanes // 2
    start = reader.dim_value(node, constant(count if name == "high" else 0))
    return load_lanes(reader, node, memory, [start], count)


def combined(reader: ScalarReader, node: ast.Call) -> Vector:
    """`T.vectorcombine(dtype, v, w)`: the lanes of one vector after those of another one."""
    given = reader.typed_arguments(node, "T.vectorcombine", "first second")
    vecs = _of_one_dtype(reader, node, [given.require("first"), given.require("second")])
    memory = in_memory(reader, node, vecs)
    first = reader.dim_value(node, constant(0))
    return load_lanes(reader, node, memory, [first], sum(vec.lanes for vec in vecs))
