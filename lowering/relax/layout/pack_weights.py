"""`pack-weights`: constants that only matrix products read are stored in the order in which these read them.
These are packed panels of columns; which parameters of a PrimFunc can be packed is read from its loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr, i8
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.cost_model import BYTE_PAIRS_SMALL_M
from lowering.kernels.cost_model import DOT_GROUP_PANEL_VECTORS as VECTORS
from lowering.kernels.gemm.dot_group_contraction import DotGroupContraction, find_dot_group_contraction
from lowering.kernels.gemm.dot_group_micro_kernel import LARGEST
from lowering.kernels.gemm.tiling import tiling
from lowering.kernels.structure.contraction import Contraction, find_contraction
from lowering.kernels.structure.stages import find_inner_stages, find_program, find_stages
from lowering.registry import Pass, pass_target
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.call_tir import CallTIROp
from relax_dialect.ops.callees import find_prim_func
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import called_functions, symbol_name
from relax_dialect.struct_info.symbols import fresh_name
from tir_dialect.dims import constant
from tir_dialect.dtypes import byte_size
from tir_dialect.fast_ops import ops_in, walked
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.memory import LoadOp
from tir_dialect.ops.vectors import PARTS
from tir_dialect.target import Target
from tir_dialect.types import BufferType, IteratorKind, buffer_type
from tir_dialect.weights import Elements, TensorAttr, WeightAttr, array_of, computed, sources_of, tensor_attr
from vm_dialect.host_memory import aligned_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BYTES = 4
"""The size of what dot products of several numbers at once add to."""


def is_transposed(groups: DotGroupContraction, load: LoadOp) -> bool | None:
    """Whether columns come before the axes of the sum, in a buffer that has just these, or after; `None` if neither.

    Dimensions of one element do not count.
    """
    contraction, shape = groups.contraction, tuple(load.buffer_type.shape)
    pairs = zip(contraction.stage.accesses[load], shape, strict=True)
    several = [(index, dim) for index, dim in pairs if dim.constant_value != 1]
    indices, dims = [index for index, _ in several], tuple(dim for _, dim in several)
    if (
        len(contraction.column) != 1
        or len(indices) != len(groups.reduced) + 1
        or not all(dim.is_constant for dim in dims)
    ):
        return None
    for transposed, order in (
        (True, (*contraction.column, *groups.reduced)),
        (False, (*groups.reduced, *contraction.column)),
    ):
        along = all(index.is_axis(axis) for index, axis in zip(indices, order, strict=True))
        if along and dims == tuple(contraction.stage.extents[axis] for axis in order):
            return transposed
    return None


@dataclass
class Indices:
    """Emits the arithmetic of indices."""

    emitted: list[Operation]

    def emit(self, op: Operation) -> SSAValue:
        """The result of an op."""
        self.emitted.append(op)
        return op.results[0]

    def number(self, value: int) -> SSAValue:
        """A constant."""
        return self.emit(arith.ConstantOp(IntegerAttr(value, IndexType())))

    def split(self, value: SSAValue, divisor: int) -> tuple[SSAValue, SSAValue]:
        """Quotient and remainder."""
        number = self.number(divisor)
        return self.emit(arith.DivUIOp(value, number)), self.emit(arith.RemUIOp(value, number))

    def joined(self, indices: Sequence[SSAValue], sizes: Sequence[int]) -> SSAValue:
        """Several indices as one, the last changing fastest."""
        total = indices[0]
        for index, size in zip(indices[1:], sizes[1:], strict=True):
            total = self.emit(arith.AddiOp(self.emit(arith.MuliOp(total, self.number(size))), index))
        return total


def word_shape(sizes: Sequence[int], transposed: bool, width: int, parts: int) -> tuple[int, int, int, int]:
    """The shape of the panels of columns of a shape."""
    n, *along = sizes if transposed else (sizes[-1], *sizes[:-1])
    return -(-n // width), -(-prod(along) // parts), width, parts


def group_indices(
    indices: Indices, element: Sequence[SSAValue], sizes: Sequence[int], transposed: bool, width: int, parts: int
) -> list[SSAValue]:
    """Where the element with some indices, of columns of this shape, is in the panels."""
    given = list(element)
    column, along = (given[0], given[1:]) if transposed else (given[-1], given[:-1])
    panel, within = indices.split(column, width)
    group, member = indices.split(indices.joined(along, sizes[1:] if transposed else sizes[:-1]), parts)
    return [panel, group, within, member]


def pack_words(array: NDArray[Any], transposed: bool, width: int, parts: int) -> NDArray[Any]:
    """A copy in panels, aligned to a cache line; zeros past the last column and the end of a sum."""
    matrix = array.reshape(array.shape[0], -1).T if transposed else array.reshape(-1, array.shape[-1])
    panels, depth, _, _ = shape = word_shape(array.shape, transposed, width, parts)
    padded = np.zeros((depth * parts, panels * width), array.dtype)
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    packed = aligned_bytes(padded.nbytes).view(array.dtype).reshape(shape)
    packed[...] = padded.reshape(depth, parts, panels, width).transpose(2, 0, 3, 1)
    return packed


@dataclass(frozen=True)
class PanelLayout:
    """`[.., k, n]`, or `[.., n, k]` if transposed, as `[.., ceildiv(n, width), k, width]`.

    In words, of several parts, `[ceildiv(n, width), ceildiv(k, parts), width, parts]`; `k` may be several dimensions,
    and dimensions of one element are dropped.
    """

    width: int
    transposed: bool = False
    parts: int = 1
    parts_of_small: int = 0
    """The parts of a word instead, if the elements are so small that few steps of a panel saturate sums of two
    products; 0 if that makes no difference.
    """

    def for_elements(self, elements: Elements) -> PanelLayout:
        """The layout of a constant."""
        if not self.parts_of_small:
            return self
        small = replace(self, parts=self.parts_of_small, parts_of_small=0)
        packed = pack(array_of(elements), small)
        pairs = packed.reshape(*packed.shape[:-1], -1, 2).astype(np.int16)
        sums = np.maximum(pairs, 0).sum(-1), -np.minimum(pairs, 0).sum(-1)
        saturating = (np.maximum(*sums) > LARGEST).any((2, 3)).mean()
        return small if saturating <= MOST_SATURATING else replace(self, parts_of_small=0)

    @property
    def suffix(self) -> str:
        """What the name of a constant gets."""
        groups = f"x{self.parts}" if self.parts > 1 else ""
        return f".{'transposed.' if self.transposed else ''}panels{self.width}{groups}"

    def packed_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the panels of a tensor."""
        if self.parts > 1:
            return word_shape([size for size in shape if size != 1], self.transposed, self.width, self.parts)
        *batch, k, n = (*shape[:-2], shape[-1], shape[-2]) if self.transposed else shape
        return *batch, -(-n // self.width), k, self.width


def panel_parameters(func: PrimFuncOp, target: Target) -> dict[int, PanelLayout]:
    """The parameters that a PrimFunc reads as the columns of a product, and nowhere else, by their numbers."""
    if not _may_have_panels(func):
        return {}
    found: dict[BlockArgument, list[PanelLayout | None]] = {}
    # The stages of a function, and whether they are inside of loops.
    if func.may_alias is not None:
        stages, are_inner = (), False
    else:
        program = find_program(func)
        stages, are_inner = (find_inner_stages(func), True) if program is None else (find_stages(program) or (), False)
    for contraction in filter(None, map(find_contraction, stages)):
        loads = contraction.columns.loads
        if len(loads) == 1 and isinstance(loads[0].buffer, BlockArgument):
            layout = _layout(contraction, loads[0], target)
            if are_inner and layout is not None:
                # One row is multiplied faster with columns as they are, if these come from a cache.
                layout = None if layout.parts == 1 else replace(layout, parts_of_small=0)
            found.setdefault(loads[0].buffer, []).append(layout)
    return {
        parameter.index - len(func.symbols): layouts[0]
        for parameter, layouts in found.items()
        if layouts[0] is not None and layouts == [layouts[0]] * len(list(parameter.uses))
    }


def _may_have_panels(func: PrimFuncOp) -> bool:
    """Whether it adds up along one axis, or has numbers of which a word has several. Convolutions do neither, and to
    find their stages would take a hundred times as long.
    """
    kinds = [param.type for param in func.params]
    if any(isinstance(kind, BufferType) and byte_size(kind.dtype) < WORD_BYTES for kind in kinds):
        return True
    return any(isinstance(op, BlockOp) and _adds_along_one_axis(op) for op in ops_in(func.body))


def _adds_along_one_axis(block: BlockOp) -> bool:
    reduced = [axis.extent for axis in block.iterators if axis.kind is IteratorKind.REDUCE]
    return len(reduced) > 0 and sum(not _is_one(extent) for extent in reduced) <= 1


def _is_one(value: SSAValue) -> bool:
    known = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    return isinstance(known, IntegerAttr) and known.value.data == 1


def _layout(contraction: Contraction, load: LoadOp, target: Target) -> PanelLayout | None:
    """How the columns of a product should lie; `None` if they can or need not lie in panels."""
    groups = find_dot_group_contraction(contraction, target)
    if groups is not None:
        order = is_transposed(groups, load)
        known = (contraction.stage.extents[axis].constant_value for axis in contraction.row)
        has_rows = prod(extent or 1 for extent in known) > BYTE_PAIRS_SMALL_M
        small = PARTS[i8] if groups.in_int16 and groups.dtypes[1] == i8 and has_rows else 0
        return None if order is None else PanelLayout(VECTORS * target.lanes(32), order, groups.parts, small)
    indices, shape = contraction.stage.accesses[load], load.buffer_type.shape
    if len(contraction.column) != 1 or len(contraction.reduced) != 1 or contraction.outer or len(indices) < 2:
        return None
    (column,), (reduced,) = contraction.column, contraction.reduced
    transposed = indices[-1].is_axis(reduced) and indices[-2].is_axis(column)
    straight = indices[-1].is_axis(column) and indices[-2].is_axis(reduced)
    last = (column, reduced) if transposed else (reduced, column)
    whole = tuple(shape[-2:]) == tuple(contraction.stage.extents[axis] for axis in last)
    n, known = contraction.stage.extents[column].constant_value, all(dim.is_constant for dim in shape)
    width = tiling(target, byte_size(contraction.element), contraction.longest).nr
    if n is None or 2 * (-(-n // width) * width) > 3 * n or any(index.value is not None for index in indices[:-2]):
        return None
    return PanelLayout(width, transposed) if (transposed or straight) and whole and known else None


def with_panels(func: PrimFuncOp, name: str, layouts: Mapping[int, PanelLayout]) -> PrimFuncOp:
    """A copy of a function whose parameters with these numbers lie in panels."""
    copy = func.clone()
    copy.sym_name = StringAttr(name)
    for number, layout in layouts.items():
        parameter = copy.params[number]
        kind = buffer_type(parameter)
        parameter = Rewriter.replace_value_with_new_type(parameter, _panel_type(kind, layout))
        for load in [use.operation for use in parameter.uses]:
            assert isinstance(load, LoadOp)  # as was found
            # Reads from panels what was in a buffer with dimensions of these sizes.
            sizes = _sizes(kind)
            indices = Indices([])
            if layout.parts > 1:
                element = [index for index, size in zip(load.indices, sizes, strict=True) if size != 1]
                sizes = [size for size in sizes if size != 1]
                positions = group_indices(indices, element, sizes, layout.transposed, layout.width, layout.parts)
            else:
                *batch, r, j = load.indices
                r, j = (j, r) if layout.transposed else (r, j)
                panel, within = indices.split(j, layout.width)
                positions = [*batch, panel, r, within]
            new = LoadOp(load.buffer, positions)
            new.result.name_hint = load.result.name_hint
            for op in (*indices.emitted, new):
                op.location = load.location
            Rewriter.insert_op(indices.emitted, InsertPoint.before(load))
            Rewriter.replace_op(load, new)
    return copy


def _panel_type(kind: BufferType, layout: PanelLayout) -> BufferType:
    if layout.parts > 1:
        sizes = [size for size in _sizes(kind) if size != 1]
        shape = word_shape(sizes, layout.transposed, layout.width, layout.parts)
        return BufferType([*map(constant, shape)], kind.dtype, scope=kind.scope, align=kind.align)
    *batch, k, n = kind.shape
    k, n = (n, k) if layout.transposed else (k, n)
    width = constant(layout.width)
    panels = -(-(n.constant_value or 0) // layout.width)
    return BufferType([*batch, constant(panels), k, width], kind.dtype, scope=kind.scope, align=kind.align)


def _sizes(kind: BufferType) -> list[int]:
    return [dim.constant_value or 0 for dim in kind.shape]


def in_panels(value: TensorAttr, layout: PanelLayout) -> TensorAttr:
    """A constant in panels; its name says so."""
    elements = sources_of(value)
    assert elements is not None  # as was asked
    packed = computed(lambda array: pack(array, layout), elements, layout.packed_shape(elements.shape), elements.dtype)
    return tensor_attr(packed, value.weight_name + layout.suffix if isinstance(value, WeightAttr) else None)


def pack(array: NDArray[Any], layout: PanelLayout) -> NDArray[Any]:
    """A copy in panels, aligned to a cache line; columns past the last one are 0."""
    if layout.parts > 1:
        return pack_words(array.squeeze(), layout.transposed, layout.width, layout.parts)
    shape = layout.packed_shape(array.shape)
    array = np.swapaxes(array, -1, -2) if layout.transposed else array
    *batch, k, n = array.shape
    width, whole = layout.width, n // layout.width
    packed = aligned_bytes(array.dtype.itemsize * prod(shape)).view(array.dtype).reshape(shape)
    columns = array[..., : whole * width].reshape(*batch, k, whole, width)
    packed[..., :whole, :, :] = np.swapaxes(columns, -2, -3)
    if whole * width < n:
        packed[..., whole, :, : n - whole * width] = array[..., whole * width :]
        packed[..., whole, :, n - whole * width :] = 0
    return packed


MOST_SATURATING = 1 / 8
"""The part of the steps of panels that may saturate sums of two products: a step takes 0.75 of the time of one in 16
bits, and 1.5 where it may.
"""
MOST_COPIED_BYTES = 1 << 20
"""A constant that others read too is packed, and kept twice, only if it has no more bytes."""


@dataclass(frozen=True)
class PackWeightsPass(Pass):
    """Packs constant right operands of matrix products into panels at compile time.

    Before, for a machine whose tiles have 32 columns:

    ```mlir
    tir.prim_func @matmul[%m](%A: !tir.buffer<[m, 64], f32>, %B: !tir.buffer<[64, 100], f32>, ...) {
      ... tir.load %B[%r, %j]
    }
    %w = relax.constant "w" : !relax.tensor<[64, 100], f32>
    %y = relax.call_tir @matmul(%x, %w) : !relax.tensor<[m, 100], f32>
    ```

    After:

    ```mlir
    tir.prim_func @matmul_panels[%m](%A: !tir.buffer<[m, 64], f32>, %B: !tir.buffer<[4, 64, 32], f32>, ...) {
      ... tir.load %B[%j floordiv 32, %r, %j mod 32]
    }
    %w = relax.constant "w.panels32" : !relax.tensor<[4, 64, 32], f32>
    %y = relax.call_tir @matmul_panels(%x, %w) : !relax.tensor<[m, 100], f32>
    ```

    The last panel is filled up with zeros. `schedule-cpu` reads panels where they are, so that nothing is packed when
    the program runs. Equal variants of a PrimFunc are made once, and a PrimFunc that is called no more goes.

    Left alone: constants whose elements are not in this process; those that others read too and that have more than a
    MiB; those that would become half as large again; factors that are not contiguous along one column and one reduced
    axis, or that a PrimFunc reads more than once. Idempotent, as what lies in panels is no such factor any more.
    """

    name = "pack-weights"
    requires = ("relax.constant",)

    target: str = ""
    """The machine; this one if it is not named."""

    def for_target(self, target: Target) -> PackWeightsPass:
        size = f"vector-bits={target.vector_bits} vector-registers={target.vector_registers}"
        return PackWeightsPass(f"host {size} cpu={target.cpu} features={target.features}")

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites all calls of PrimFuncs with constants."""
        packing = _Packing(op, pass_target(self.target))
        for each in packing.calls:
            packing.rewrite(each)
        packing.clean()


Argument = tuple[CallTIROp, int]


@dataclass
class _Packing:
    """One run over a module."""

    module: ModuleOp
    target: Target
    calls: list[CallTIROp] = field(default_factory=list[CallTIROp])
    """Those with constants that may be packed."""
    _layouts: dict[PrimFuncOp, dict[int, PanelLayout]] = field(default_factory=dict[PrimFuncOp, dict[int, PanelLayout]])
    _variants: dict[tuple[PrimFuncOp, tuple[tuple[int, PanelLayout], ...]], str] = field(
        default_factory=dict[tuple[PrimFuncOp, tuple[tuple[int, PanelLayout], ...]], str]
    )
    _chosen: dict[tuple[object, PanelLayout], PanelLayout] = field(
        default_factory=dict[tuple[object, PanelLayout], PanelLayout]
    )
    _packed: dict[tuple[object, PanelLayout], TensorAttr] = field(
        default_factory=dict[tuple[object, PanelLayout], TensorAttr]
    )
    _made: dict[tuple[ConstantOp, PanelLayout], ConstantOp] = field(
        default_factory=dict[tuple[ConstantOp, PanelLayout], ConstantOp]
    )
    _replaced: dict[str, None] = field(default_factory=dict[str, None])
    _names: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self._names.update(name for op in self.module.ops if (name := symbol_name(op)) is not None)
        self.calls += [op for op in walked(self.module) if isinstance(op, CallTIROp) and any(_constants(op))]
        # The constants that nothing but products reads, all with one layout.
        users: dict[object, list[tuple[ConstantOp, PanelLayout | None]]] = {}
        for op in walked(self.module):
            if isinstance(op, ConstantOp):
                found = [self._layout(use.operation, use.index) for use in op.result.uses]
                users.setdefault(op.value, []).extend((op, layout) for layout in found)
        groups = [group for group in users.values() if len({layout for _, layout in group}) == 1]
        self._alone = {op for group in groups for op, layout in group if layout is not None}

    def rewrite(self, call: CallTIROp) -> None:
        """The call of a variant, if there are constants for it."""
        func = find_prim_func(call, call.callee)
        layouts = {} if func is None else self._layouts_of(func)
        chosen = {number: constant for number, constant in _constants(call) if self._suits(number, constant, layouts)}
        if func is None or not chosen:
            return
        used = {number: self._chosen_layout(weights, layouts[number]) for number, weights in chosen.items()}
        for number, weights in chosen.items():
            # A constant in panels, instead of the original.
            layout = used[number]
            if (weights, layout) not in self._made:
                key = (weights.value, layout)
                if key not in self._packed:
                    self._packed[key] = in_panels(weights.value, layout)
                new = self._made[weights, layout] = ConstantOp(self._packed[key])
                new.location, new.result.name_hint = weights.location, weights.result.name_hint
                Rewriter.insert_op(new, InsertPoint.after(weights))
            call.operands[number] = self._made[weights, layout].result
            if not weights.result.uses:
                Rewriter.erase_op(weights)
        self._replaced[func.sym_name.data] = None
        key = (func, tuple(used.items()))
        if key not in self._variants:
            name = fresh_name(f"{func.sym_name.data}_panels", self._names)
            self._names.add(name)
            self._variants[key] = name
            made = with_panels(func, name, used)
            Rewriter.insert_op(made, InsertPoint.after(func))
        call.callee = SymbolRefAttr(self._variants[key])

    def _chosen_layout(self, constant: ConstantOp, layout: PanelLayout) -> PanelLayout:
        """The layout by the elements of a constant."""
        key, elements = (constant.value, layout), constant.sources
        assert elements is not None  # as was asked
        if key not in self._chosen:
            self._chosen[key] = layout.for_elements(elements)
        return self._chosen[key]

    def _layouts_of(self, func: PrimFuncOp) -> dict[int, PanelLayout]:
        if func not in self._layouts:
            self._layouts[func] = panel_parameters(func, self.target)
        return self._layouts[func]

    def _suits(self, number: int, constant: ConstantOp, layouts: dict[int, PanelLayout]) -> bool:
        elements = constant.sources if number in layouts else None
        return elements is not None and (constant in self._alone or elements.nbytes <= MOST_COPIED_BYTES)

    def _layout(self, user: Operation, index: int) -> PanelLayout | None:
        func = find_prim_func(user, user.callee) if isinstance(user, CallTIROp) else None
        return None if func is None else self._layouts_of(func).get(index)

    def clean(self) -> None:
        """Erases the PrimFuncs that have been replaced everywhere."""
        used = {name for op in walked(self.module) for name in called_functions(op)}
        for op in list(self.module.ops):
            if isinstance(op, PrimFuncOp) and op.sym_name.data in self._replaced and op.sym_name.data not in used:
                Rewriter.erase_op(op)


def _constants(call: CallTIROp) -> Iterator[tuple[int, ConstantOp]]:
    """The arguments of a call that are constants into which nobody may write, by number."""
    for number, value in enumerate(call.arguments):
        if isinstance(value.owner, ConstantOp) and is_never_written(value):
            yield number, value.owner
