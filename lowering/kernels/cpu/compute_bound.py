"""Kernels with contractions: products, with their elementwise prologues and epilogues."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Region, SSAValue

from lowering.kernels.cpu.attention.pattern import Attention, find_attention
from lowering.kernels.cpu.attention.streamed import emit_attention
from lowering.kernels.cpu.conv.depthwise import DepthwiseConvolution, depthwise_of, elide_padding
from lowering.kernels.cpu.conv.direct import DirectConvolution, is_direct_convolution
from lowering.kernels.cpu.emit.code import Code
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.emit.routines import routines_for
from lowering.kernels.cpu.gemm.dot.dot import DotProduct, can_dot, dots_may_pay
from lowering.kernels.cpu.gemm.dot.few_columns import FewColumnsProduct, can_have_few_columns
from lowering.kernels.cpu.gemm.dot.long_dot import LongDotProduct, can_long_dot
from lowering.kernels.cpu.gemm.dot_groups.code import WORD_BYTES
from lowering.kernels.cpu.gemm.dot_groups.contraction import find_word_contraction
from lowering.kernels.cpu.gemm.dot_groups.product import WordProduct
from lowering.kernels.cpu.gemm.gemv.vector import VectorProduct, can_be_vector
from lowering.kernels.cpu.gemm.last_columns import leaves_last, most_columns, narrow_step
from lowering.kernels.cpu.gemm.line import LineProduct, is_line_product
from lowering.kernels.cpu.gemm.packed.packed import PackedProduct
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.gemm.skinny.exchanged import ExchangedProduct, can_be_exchanged
from lowering.kernels.cpu.gemm.skinny.few_rows import FewRowsProduct
from lowering.kernels.cpu.gemm.skinny.few_rows_choice import can_have_few_rows, replaces_streams
from lowering.kernels.cpu.gemm.skinny.streamed import StreamedProduct, can_stream, partial_sums
from lowering.kernels.cpu.gemm.tiled import with_tiles
from lowering.kernels.cpu.gemm.tiling import tiling
from lowering.kernels.cpu.rewrites.axis_splitting import split_groups
from lowering.kernels.cpu.rewrites.inlining import inline_operands
from lowering.kernels.cpu.single_stage import emit_alone, is_understood
from lowering.kernels.cpu.structure.contraction import Contraction, find_contraction
from lowering.kernels.cpu.structure.epilogue import find_epilogue
from lowering.kernels.cpu.structure.padding import Padding, find_padding
from lowering.kernels.cpu.structure.reduction import reduction_of
from lowering.kernels.cpu.structure.stages import Program, Stage, find_program, find_stages
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target


def schedule_compute_bound(func: PrimFuncOp, target: Target) -> bool:
    """Rewrites a function with a contraction; says whether it is one."""
    if func.may_alias is None:
        split_groups(func)
    stages = _stages(func)
    if stages is None or not any(find_contraction(stage) is not None for stage in stages):
        return False
    while inline_operands(stages):
        stages = _stages(func)
        assert stages is not None  # inlined code is made of the same ops
    program = find_program(func)
    assert program is not None  # it has stages
    contractions = {stage: found for stage in stages if (found := find_contraction(stage)) is not None}
    _Emitter(func, program, stages, contractions, target).emit()
    return True


def _stages(func: PrimFuncOp) -> list[Stage] | None:
    program = None if func.may_alias is not None else find_program(func)
    stages = None if program is None else find_stages(program)
    return stages if stages is not None and is_understood(stages) else None


class _Emitter:
    """Emits the code of one function."""

    def __init__(
        self,
        func: PrimFuncOp,
        program: Program,
        stages: Sequence[Stage],
        contractions: dict[Stage, Contraction],
        target: Target,
    ):
        self.func, self.program, self.stages = func, program, list(stages)
        self.contractions = contractions
        self.body = Block(arg_types=func.body.block.arg_types)
        values: dict[SSAValue, SSAValue] = {}
        for old, new in zip(func.body.block.args, self.body.args, strict=True):
            values[old] = new
            new.name_hint = old.name_hint
        self.kernel = Kernel(Code(self.body, func.location), target, values, routines_for(func))

    def emit(self) -> None:
        """Replaces the body of the function."""
        kernel = self.kernel
        for op in self.program.header:
            kernel.code.emit(op.clone(value_mapper=kernel.values))
        plan = elide_padding(kernel, self._plan())
        kernel.padded |= _padded(plan)
        kernel.unread = frozenset(kernel.elided_padding).union(
            buffer for item in plan if not isinstance(item, Stage) for buffer in _unneeded(item)
        )
        touched = {op.buffer for stage in self.stages for op in stage.accesses}
        for parameter in self.func.params:
            if parameter in touched:
                kernel.make_flat(parameter)
        for alloc in self.program.buffers:
            if alloc.buffer in touched and alloc.buffer not in kernel.unread:
                kernel.allocate(alloc)
        for item in plan:
            if isinstance(item, Product):
                emit_product(item)
            elif isinstance(item, WordProduct):
                item.emit()
            elif isinstance(item, Attention):
                emit_attention(kernel, item)
            else:
                emit_alone(kernel, item, reduction_of(item))
        self.func.detach_region(self.func.body)
        self.func.add_region(Region(self.body))

    def _plan(self) -> list[Product | WordProduct | Attention | Stage]:
        """The stages in order, each contraction with those that are computed with it."""
        own = frozenset(alloc.buffer for alloc in self.program.buffers)
        plan: list[Product | WordProduct | Attention | Stage] = []
        rest = self.stages
        while rest:
            stage, *rest = rest
            what = self.contractions.get(stage)
            if what is None:
                plan.append(stage)
                continue
            attention = find_attention(self.kernel, what, rest, self.contractions, own)
            if attention is not None:
                plan.append(attention)
                rest = rest[attention.count - 1 :]
                continue
            words = find_word_contraction(what, self.kernel.target)
            tiles = tiling(self.kernel.target, WORD_BYTES)
            if words is None:
                what, tiles = with_tiles(what, self.kernel.target)
            epilogue = find_epilogue(what, rest, own)
            product = Product(self.kernel, what, epilogue, tiles)
            plan.append(product if words is None else WordProduct(product, words))
            rest = rest[len(epilogue.steps) :]
        return plan


def _padded(plan: Sequence[object]) -> dict[SSAValue, Padding]:
    """The buffers that stages of the plan fill with data and zeros around it."""
    stages = (item for item in plan if isinstance(item, Stage))
    found = (padding for stage in stages if (padding := find_padding(stage)) is not None)
    return {padding.stage.stores[0].buffer: padding for padding in found if padding.is_zero}


def _unneeded(product: Product | WordProduct | Attention) -> frozenset[SSAValue]:
    """The buffers of an epilogue that need no memory; partial sums need some."""
    if isinstance(product, Attention):
        return product.unread
    if isinstance(product, WordProduct):
        return product.product.epilogue.unread
    sums = {product.what.store.buffer} if _makes_partial_sums(product) else set[SSAValue]()
    return product.epilogue.unread - sums


def _makes_partial_sums(product: Product) -> bool:
    if is_direct_convolution(product) or is_line_product(product) or depthwise_of(product) is not None:
        return False
    few = can_stream(product) and partial_sums(product)
    return PackedProduct(product).needs_partial_sums or few


def emit_product(product: Product) -> None:
    """The code of one contraction, with its epilogue, by the way that suits the number of rows and columns."""
    if is_direct_convolution(product):
        DirectConvolution(product).emit()
        return
    lines = depthwise_of(product)
    if lines is not None:
        DepthwiseConvolution(product, lines).emit()
        return
    if is_line_product(product):
        LineProduct(product).emit()
        return
    with product.batches() as coords:
        _emit_best(product, _small_ways(product), coords)


SmallWay = (
    VectorProduct
    | FewColumnsProduct
    | ExchangedProduct
    | FewRowsProduct
    | StreamedProduct
    | LongDotProduct
    | DotProduct
)


def _small_ways(product: Product) -> list[SmallWay]:
    """Ways for few rows or columns, those for the fewest first."""
    found: list[SmallWay] = []
    if can_be_vector(product):
        found.append(VectorProduct(product))
    if can_have_few_rows(product):
        found.append(FewRowsProduct(product))
    if can_have_few_columns(product):
        found.append(FewColumnsProduct(product))
    if can_long_dot(product):
        found.append(LongDotProduct(product))
    if can_dot(product) and dots_may_pay(product):
        found.append(DotProduct(product))
    if can_be_exchanged(product):
        found.append(ExchangedProduct(product))
    if can_stream(product) and not replaces_streams(product):
        found.append(StreamedProduct(product))
    return found


def _last_step(product: Product, ways: Sequence[SmallWay]) -> SSAValue:
    """The steps of columns behind which very few are separate: narrow ones where products are streamed."""
    code, width, narrow = product.code, product.tiles.width, narrow_step(product)
    streamed = [way for way in ways if isinstance(way, StreamedProduct)]
    if not streamed:
        return code.index(width)
    is_best = streamed[0].is_best
    return code.index(narrow) if is_best is None else code.select(is_best, code.index(narrow), code.index(width))


def _emit_best(product: Product, ways: Sequence[SmallWay], coords: Coords) -> None:
    """The first of some ways that is best in a call; packed panels if there is none."""
    if not ways:
        PackedProduct(product).emit(coords)
        return
    way, *others = ways
    if isinstance(way, FewColumnsProduct) and leaves_last(product):
        way.emit_last(coords, _last_step(product, others))
        n, most = product.code.dim(product.n, "n"), product.code.dim(most_columns(product))
        with product.code.when(product.code.compare("sgt", n, most)):
            _emit_best(product, others, coords)
        return
    is_best = way.is_best
    if is_best is None:
        way.emit(coords)
        return
    with product.code.when(is_best) as branch:
        way.emit(coords)
    with product.code.otherwise(branch):
        _emit_best(product, others, coords)
