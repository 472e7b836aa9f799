"""Contractions: stages that accumulate products of two operands, the roles of their axes, and the elementwise stages
that can be computed on their register tile, the epilogue.

`C[i, j] += A[i, r] * B[r, j]` and its relatives: batched, transposed, with several row, column or reduced axes, with
windows (convolutions), with operands that are converted or scaled. They are recognised by structure; names play no
role.

An operand may be in panels: `B[r, j]` at `[j floordiv w, r, j mod w]`, as `pack-weights` arranges constants. A panel
has `w` columns, those of a register tile, one step of the reduction after the other. Within a panel addresses are
linear.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type, FloatAttr, IntegerAttr, f32, i8, i32
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cost_model import MANY_COLUMNS
from lowering.kernels.structure.stages import AffineAccess, Index, Stage, affine_access, only_stage
from tir_dialect.analysis.dims import dim_of
from tir_dialect.dims import Dim, constant
from tir_dialect.dims import product as product_of
from tir_dialect.dtypes import byte_size
from tir_dialect.ops.control_flow import IfOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp, StoreOp
from tir_dialect.types import BufferType, IteratorKind


@dataclass(frozen=True)
class Panels:
    """The one load of a stage that is from panels, as if all columns were in the first panel."""

    stage: Stage
    load: LoadOp
    column: int
    """The axis of the columns."""
    reduced: int
    """The reduced axis."""
    width: int
    """Columns in a panel."""


def find_panels(stage: Stage) -> Panels | None:
    """The load of a stage from panels; `None` if there is none, or more than one."""
    found = [panels for load in stage.loads if (panels := _panels(stage, load)) is not None]
    return found[0] if len(found) == 1 else None


def _panels(stage: Stage, load: LoadOp) -> Panels | None:
    shape, indices = load.buffer_type.shape, stage.accesses[load]
    if not reads_panels(load) or any(index.value is not None for index in (*indices[:-3], indices[-2])):
        return None
    axes = range(len(stage.axes))
    column = next((axis for axis in axes if stage.axes[axis].value is _column(load)), None)
    reduced = next((axis for axis in axes if indices[-2].is_axis(axis)), None)
    width = shape[-1].constant_value
    if column is None or reduced is None or width is None or stage.extents[reduced] is not shape[-2]:
        return None
    zeros = (constant(0),) * len(axes)
    last = tuple(constant(int(axis == column)) for axis in axes)
    near = (*indices[:-3], Index(constant(0), zeros), indices[-2], Index(constant(0), last))
    return Panels(replace(stage, accesses={**stage.accesses, load: near}), load, column, reduced, width)


def reads_panels(load: LoadOp) -> bool:
    """Whether a load is at `[.., j floordiv w, r, j mod w]` of a buffer whose last dimension is `w`."""
    if len(load.indices) < 3:
        return False
    width, within = load.buffer_type.shape[-1], load.indices[-1].owner
    quotient, column = load.indices[-3].owner, _column(load)
    if column is None or not isinstance(within, arith.RemUIOp) or not isinstance(quotient, _QUOTIENTS):
        return False
    return quotient.lhs is column and dim_of(quotient.rhs) is width and dim_of(within.rhs) is width


_QUOTIENTS = (arith.DivUIOp, arith.FloorDivSIOp)


def _column(load: LoadOp) -> SSAValue | None:
    """The index of which the last index of a load is a remainder."""
    within = load.indices[-1].owner
    return within.lhs if isinstance(within, arith.RemUIOp) else None


@dataclass(frozen=True)
class Factor:
    """One of the two operands of the multiplication, and the code that computes it."""

    stage: Stage
    value: SSAValue
    element: AnyFloat
    """The type in which it is multiplied."""
    panels: int | None = None
    """If the operand is in panels, their number of columns; the accesses are those of the first panel."""

    @cached_property
    def ops(self) -> tuple[Operation, ...]:
        """The ops of the stage that compute the value, in order."""
        wanted: set[Operation] = set()
        pending = [self.value]
        while pending:
            op = pending.pop().owner
            if isinstance(op, Operation) and op not in wanted:
                wanted.add(op)
                pending += self._inputs(op)
        return tuple(op for op in self.stage.body if op in wanted)

    def _inputs(self, op: Operation) -> list[SSAValue]:
        if isinstance(op, LoadOp):
            return [index.value for index in self.stage.accesses[op] if index.value is not None]
        nested = [operand for inner in op.walk() if inner is not op for operand in inner.operands]
        return [*op.operands, *nested]

    @property
    def loads(self) -> tuple[LoadOp, ...]:
        """Its loads, those in branches included."""
        return tuple(inner for op in self.ops for inner in op.walk() if isinstance(inner, LoadOp))

    @cached_property
    def accesses(self) -> tuple[AffineAccess, ...]:
        """The addresses of its loads."""
        return tuple(access_of(self.stage, load) for load in self.loads)

    @cached_property
    def pinned(self) -> frozenset[int]:
        """The axes that it uses outside of addresses."""
        return self._used_by(())

    def _used_by(self, others: Container[Operation]) -> frozenset[int]:
        """The axes that it uses outside of addresses, by ops that are not among `others`."""
        used = {
            operand
            for op in self.ops
            if op not in others
            for inner in op.walk()
            if _uses_values(inner)
            for operand in inner.operands
        }
        return frozenset(number for number, axis in enumerate(self.stage.axes) if axis.value in used)

    def _is_uniform(self, op: Operation, axis: int, lanes: int) -> bool:
        """Whether an op is the quotient of an axis by a multiple of some lanes."""
        if not isinstance(op, _QUOTIENTS) or op.lhs is not self.stage.axes[axis].value:
            return False
        size = dim_of(op.rhs)
        return size is not None and (size.constant_value or 1) % lanes == 0

    @cached_property
    def axes(self) -> frozenset[int]:
        """The axes that it depends on."""
        count = len(self.stage.axes)
        strides = {number for each in self.accesses for number in range(count) if each.strides[number].terms}
        computed = {number for number in range(count) if self._is_computed_from(number)}
        return frozenset(strides | computed | self.pinned)

    def _is_computed_from(self, number: int) -> bool:
        value = self.stage.axes[number].value
        return any(value is operand for op in self.ops if not isinstance(op, LoadOp) for operand in op.operands)

    @property
    def is_linear(self) -> bool:
        """Whether all its accesses are linear in the axes, and it has no branches."""
        return not self.pinned and not any(isinstance(op, IfOp) for op in self.ops) and self._is_affine

    @property
    def _is_affine(self) -> bool:
        return all(not each.computed for each in self.accesses)

    def is_linear_along(self, axes: Sequence[int], lanes: int) -> bool:
        """Whether the last of some axes moves its data by one element, or not at all, and nothing that is computed
        depends on them: neither values nor the indices of other axes. Quotients of an axis may be computed that are the
        same for so many lanes, of which the first is a multiple: those of scales that blocks of elements share.
        """
        uniform = {op for op in self.ops if len(axes) == 1 and self._is_uniform(op, axes[0], lanes)}
        if any(isinstance(op, IfOp) for op in self.ops) or self._used_by(uniform).intersection(axes):
            return False
        # The loads on which indices of other loads depend.
        indices = set[LoadOp]()
        pending = [value for access in self.accesses for value, _ in access.computed]
        while pending:
            op = pending.pop().owner
            if isinstance(op, LoadOp):
                indices.add(op)
            if isinstance(op, Operation) and op in self.ops:
                pending += self._inputs(op)
        steps = {access_of(self.stage, load).strides[axes[-1]] for load in self.loads if load not in indices}
        fixed = [access_of(self.stage, load) for load in indices]
        if {step.constant_value for step in steps if step.terms} != {1}:
            return False
        return not any(each.strides[axis].terms for each in fixed for axis in axes)

    def stride(self, axis: int) -> int | None:
        """The stride of an axis in all loads that it moves; 0 if it moves none, `None` if strides differ or are
        symbolic.
        """
        steps = {each.strides[axis] for each in self.accesses if each.strides[axis].terms}
        if not self.is_linear or len(steps) > 1:
            return None
        return steps.pop().constant_value if steps else 0


def _uses_values(op: Operation) -> bool:
    return not isinstance(op, LoadOp | StoreOp) and bool(op.operands)


def access_of(stage: Stage, op: LoadOp | StoreOp) -> AffineAccess:
    """The address of an access, in its buffer as one row."""
    whole = stage.wholes.get(op)
    return affine_access(stage.accesses[op], op.buffer_type.strides, len(stage.axes)) if whole is None else whole


EXACT_PRODUCTS = 256
"""A sum of so many products of two bytes is exact in `f32`."""


@dataclass(frozen=True)
class Contraction:
    """`output[spatial] = sum over reduced of rows[...] * columns[...]`.

    Axes are numbers of iterators; those of extent 1 are left out. `row` axes (M) move only `rows`; `column` axes (N)
    and `outer` axes move only `columns`; the output is contiguous along all `column` axes together; `batch` axes move
    both, or only `columns` if there are many.
    """

    stage: Stage
    store: StoreOp
    rows: Factor
    columns: Factor
    batch: tuple[int, ...]
    row: tuple[int, ...]
    outer: tuple[int, ...]
    column: tuple[int, ...]
    reduced: tuple[int, ...]
    tested: SSAValue | None = None
    """The operand whose zeros are left out, so that 0 times infinity is not NaN; `None` if all products count."""

    @property
    def along(self) -> tuple[int, ...]:
        """The axes along which the output is contiguous: the columns, or else its last axis, if it has one."""
        if self.column:
            return self.column
        return tuple(axis for axis in self.batch if self.output.strides[axis].constant_value == 1)

    @property
    def element(self) -> AnyFloat:
        """The type of the accumulation; sums of byte products are exact in it up to `longest`."""
        return self.rows.element

    @property
    def is_integer(self) -> bool:
        """Whether the output is of integers."""
        return self.store.value.type == i32

    @property
    def longest(self) -> int | None:
        """How many products are accumulated before the sum has to be converted; `None` if rounding is allowed."""
        return EXACT_PRODUCTS if self.is_integer else None

    @property
    def output(self) -> AffineAccess:
        """The address of the output."""
        return access_of(self.stage, self.store)


def find_contraction(stage: Stage) -> Contraction | None:
    """The contraction that a stage is, or `None`."""
    stores = stage.stores
    if len(stores) != 1 or any(axis.kind not in _KINDS for axis in stage.axes):
        return None
    (store,) = stores
    # The two factors of `C[..] = C[..] + (0 if a == 0 else a * b)`, and that of them which is tested.
    chosen = _added(stage, store)
    test = chosen.cond.owner if isinstance(chosen, arith.SelectOp) else None
    product = chosen.rhs.owner if isinstance(chosen, arith.SelectOp) else None
    if (
        not isinstance(chosen, arith.SelectOp)
        or not is_zero(chosen.lhs)
        or not isinstance(test, arith.CmpfOp)
        or test.predicate.value.data != EQUAL
        or not is_zero(test.rhs)
        or not isinstance(product, arith.MulfOp)
        or test.lhs not in product.operands
    ):
        found = None
    else:
        found = (product.lhs, product.rhs), test.lhs
    values, tested = factors_of(stage, store), None
    if found is not None:
        values, tested = found
    if values is None or not starts_at_zero(stage, store) or not _writes_each_element_once(stage, store):
        return None
    elements = [_element_of(value) for value in values]
    if elements[0] is None or elements[0] != elements[1]:
        return None
    left, right = (Factor(stage, value, elements[0]) for value in values)
    buffers = {inner.buffer for op in (*left.ops, *right.ops) for inner in op.walk() if isinstance(inner, LoadOp)}
    if store.buffer in buffers:
        return None
    contraction = _classify(stage, store, left, right)
    return None if contraction is None else replace(contraction, tested=tested)


def is_byte_depthwise(func: PrimFuncOp) -> bool:
    """Whether a function sums products of bytes whose last axis both operands have, as a depthwise convolution does."""
    buffers = [param.type for param in func.params]
    if not any(isinstance(kind, BufferType) and byte_size(kind.dtype) == 1 for kind in buffers):
        return False
    stage = only_stage(func)
    found = None if stage is None else find_contraction(stage)
    return found is not None and found.is_integer and not found.column and bool(found.along)


def from_panels(contraction: Contraction, width: int) -> Contraction:
    """The contraction with its columns in panels, if they are and the width divides that of the panels."""
    panels = find_panels(contraction.stage)
    found = None if panels is None or panels.width % width else find_contraction(panels.stage)
    if panels is None or found is None:
        return contraction
    along = found.column == (panels.column,) and found.reduced == (panels.reduced,) and not found.outer
    if not along or found.columns.loads != (panels.load,):
        return contraction
    return replace(found, columns=replace(found.columns, panels=panels.width))


_KINDS = (IteratorKind.SPATIAL, IteratorKind.REDUCE)


def factors_of(stage: Stage, store: StoreOp) -> tuple[SSAValue, SSAValue] | None:
    """The two factors of `C[..] = C[..] + a * b`."""
    product = _added(stage, store)
    return (product.lhs, product.rhs) if isinstance(product, arith.MulfOp | arith.MuliOp) else None


EQUAL = arith.CMPF_COMPARISON_OPERATIONS.index("oeq")


def is_zero(value: SSAValue) -> bool:
    """Whether a value is the constant 0."""
    op = value.owner
    constant = op.value if isinstance(op, arith.ConstantOp) else None
    return isinstance(constant, FloatAttr | IntegerAttr) and constant.value.data == 0


def _added(stage: Stage, store: StoreOp) -> Operation | None:
    """What `C[..] = C[..] + a` adds."""
    total = store.value.owner
    if not isinstance(total, arith.AddfOp | arith.AddiOp):
        return None
    for old, new in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
        load, added = old.owner, new.owner
        earlier = (
            isinstance(load, LoadOp) and load.buffer is store.buffer and stage.accesses[load] == stage.accesses[store]
        )
        if earlier and isinstance(added, Operation):
            return added
    return None


def starts_at_zero(stage: Stage, store: StoreOp) -> bool:
    """Whether the accumulator that is stored is 0 before the first product."""
    firsts = [op for op in stage.init if isinstance(op, StoreOp)]
    if len(firsts) != 1 or firsts[0].buffer is not store.buffer or stage.accesses[firsts[0]] != stage.accesses[store]:
        return False
    return is_zero(firsts[0].value)


def _writes_each_element_once(stage: Stage, store: StoreOp) -> bool:
    """Whether each output has its own element: each spatial axis moves an index, or they fill the buffer."""
    spatial = [axis for axis in stage.of_kind(IteratorKind.SPATIAL) if stage.extents[axis].constant_value != 1]
    indices = stage.accesses[store]
    found = [axis for index in indices for axis in spatial if index.follows(axis)]
    if len(found) == len(spatial) and set(found) == set(spatial):
        return True
    strides, step = access_of(stage, store).strides, constant(1)
    while spatial:
        axis = next((axis for axis in spatial if strides[axis] is step), None)
        if axis is None:
            return False
        spatial.remove(axis)
        step = step * stage.extents[axis]
    return True


def _element_of(value: SSAValue) -> AnyFloat | None:
    """The type of an operand: its own, or `f32` for bytes, whose products are exact there."""
    if isinstance(value.type, Float32Type | Float64Type):
        return value.type
    op = value.owner
    is_byte = value.type == i32 and isinstance(op, arith.ExtSIOp | arith.ExtUIOp) and op.input.type == i8
    return f32 if is_byte else None


def _classify(stage: Stage, store: StoreOp, left: Factor, right: Factor) -> Contraction | None:
    spatial, reduced = (
        tuple(axis for axis in stage.of_kind(kind) if stage.extents[axis].constant_value != 1) for kind in _KINDS
    )
    target = access_of(stage, store)
    if not reduced or not any((axis in left.axes) != (axis in right.axes) for axis in spatial):
        return None  # one product for each output, or a reduction without reuse of operands
    last = next((axis for axis in spatial if target.strides[axis].constant_value == 1), None)
    if last is not None and last in left.axes and last not in right.axes:
        left, right = right, left
    batch = tuple(axis for axis in spatial if (axis in left.axes) == (axis in right.axes))
    row = tuple(axis for axis in spatial if axis in left.axes and axis not in right.axes)
    free = [axis for axis in spatial if axis in right.axes and axis not in left.axes]
    column = () if last is None or last not in free else _contiguous(stage, target, free, last)
    outer = tuple(axis for axis in free if axis not in column)
    columns = product_of(stage.extents[axis] for axis in column).constant_value
    if outer and column and (columns is None or columns >= MANY_COLUMNS):
        # Matrices that are multiplied with the same rows, one by one, such as those of experts.
        batch, outer = tuple(sorted((*batch, *outer))), ()
    return Contraction(stage, store, left, right, batch, row, outer, column, reduced)


def _contiguous(stage: Stage, target: AffineAccess, axes: Sequence[int], last: int) -> tuple[int, ...]:
    """The axes up to `last` along which the output is contiguous."""
    found = [last]
    while True:
        length = stage.extents[found[0]] * target.strides[found[0]]
        before = next((axis for axis in axes if axis not in found and target.strides[axis] is length), None)
        if before is None:
            return tuple(found)
        found.insert(0, before)


def is_chain(accesses: Iterable[AffineAccess], extents: Sequence[Dim], axes: Sequence[int]) -> bool:
    """Whether some axes collapse into one: each stride is that of the next axis times its extent."""
    return all(each.strides[a] is each.strides[b] * extents[b] for each in accesses for a, b in pairwise(axes))


@dataclass(frozen=True)
class Step:
    """A stage of an epilogue, with its axes as axes of the contraction."""

    stage: Stage
    axes: Mapping[int, int]
    """The axis of the contraction for each of the stage, except those of extent 1."""

    def access(self, op: LoadOp | StoreOp, count: int) -> AffineAccess:
        """The address of an access, by the `count` axes of the contraction."""
        own = access_of(self.stage, op)
        strides = [constant(0)] * count
        for axis, target in self.axes.items():
            strides[target] = own.strides[axis]
        return AffineAccess(own.base, tuple(strides), own.computed)


@dataclass(frozen=True)
class Epilogue:
    """The stages that are computed with a contraction, in order."""

    steps: tuple[Step, ...] = ()
    unread: frozenset[SSAValue] = frozenset()
    """Buffers that need no memory: their values stay in registers."""

    @cached_property
    def accesses(self) -> tuple[tuple[Step, LoadOp | StoreOp], ...]:
        """All accesses."""
        return tuple((step, op) for step in self.steps for op in step.stage.accesses)


def find_epilogue(contraction: Contraction, following: Sequence[Stage], own: frozenset[SSAValue]) -> Epilogue:
    """As many of the following stages as can be fused; `own` are the buffers of the function."""
    # An access without strides along axes of extent 1, which epilogue accesses do not have either.
    pairs = zip(contraction.output.strides, contraction.stage.extents, strict=True)
    produced: dict[SSAValue, AffineAccess] = {
        contraction.store.buffer: replace(
            contraction.output,
            strides=tuple(constant(0) if extent.constant_value == 1 else each for each, extent in pairs),
        )
    }
    steps: list[Step] = []
    for stage in following:
        step = _step(contraction, stage, produced)
        if step is None:
            break
        steps.append(step)
        produced |= {store.buffer: step.access(store, len(contraction.stage.axes)) for store in stage.stores}
    later = {inner.buffer for stage in following[len(steps) :] for inner in stage.loads}
    unread = own.intersection(produced) - later
    return Epilogue(tuple(steps), unread if steps else frozenset())


def _step(contraction: Contraction, stage: Stage, produced: Mapping[SSAValue, AffineAccess]) -> Step | None:
    """A stage as a step; `None` if it reads other elements than its own, or is not vectorisable along the output."""
    if any(axis.kind is not IteratorKind.SPATIAL for axis in stage.axes) or stage.pinned or not contraction.along:
        return None
    axes = _axes(contraction, stage, produced)
    if axes is None or any(isinstance(op, IfOp) for op in stage.body) or not all(not op.regions for op in stage.body):
        return None
    step = Step(stage, axes)
    count, extents = len(contraction.stage.axes), contraction.stage.extents
    accesses = {op: step.access(op, count) for op in stage.accesses}
    joined = all(produced[op.buffer] == each for op, each in accesses.items() if _is_read(op, produced))
    suited = is_chain(accesses.values(), extents, contraction.along) and not any(
        each.computed for each in accesses.values()
    )
    written = all(op.buffer not in produced for op in accesses if isinstance(op, StoreOp))
    return step if joined and suited and written else None


def _is_read(op: Operation, produced: Mapping[SSAValue, AffineAccess]) -> bool:
    return isinstance(op, LoadOp) and op.buffer in produced


def _axes(contraction: Contraction, stage: Stage, produced: Mapping[SSAValue, AffineAccess]) -> dict[int, int] | None:
    """The axes of the contraction for those of a stage: each moves the input of the stage in the same way."""
    load = next((op for op in stage.loads if op.buffer in produced), None)
    if load is None or access_of(stage, load).base.terms:
        return None
    own, target = access_of(stage, load), produced[load.buffer]
    spatial = [axis for axis in (*contraction.batch, *contraction.row, *contraction.outer, *contraction.column)]
    found: dict[int, int] = {}
    for number, extent in enumerate(stage.extents):
        if extent.constant_value == 1:
            continue
        same = [
            a for a in spatial if target.strides[a] is own.strides[number] and contraction.stage.extents[a] is extent
        ]
        same = [a for a in same if a not in found.values()]
        if len(same) != 1:
            return None
        found[number] = same[0]
    return found if len(found) == len(spatial) else None
