"""Kernels with contractions: GEMM, convolution and attention, with their elementwise prologues and epilogues; and
stages inside of other loops, as the products of a recurrence with its state.

Generators that few programs need are loaded by the first kernel that has such code.

The loops around them stay as they are: the code of a stage replaces its nest alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.kernels.attention.pattern import Attention, find_attention
from lowering.kernels.conv.depthwise import DepthwiseConvolution, depthwise_of, elide_padding
from lowering.kernels.conv.depthwise_bytes import ByteDepthwiseConvolution, byte_depthwise_of
from lowering.kernels.conv.direct import DirectConvolution, is_direct_convolution
from lowering.kernels.cost_model import (
    BLOCK_DOT_MAX_M,
    BLOCK_INT16_BITS,
    BLOCK_INT16_DOT_MAX_M,
    BLOCK_TILE_MIN_M,
    TILE_REGISTERS,
)
from lowering.kernels.emit.code import Code
from lowering.kernels.emit.kernel import Kernel, routines_for
from lowering.kernels.gemm.block_int16 import BlockInt16Gemm, BlockInt16PanelGemm, suits_int16, suits_int16_panels
from lowering.kernels.gemm.block_tiles import emit_tile_gemm, tile_parts
from lowering.kernels.gemm.block_weights import (
    BlockDotGemm,
    BlockGemm,
    BlockIntegerGemm,
    BlockPanelGemm,
    can_decode_in_registers,
    columns_left,
    row_planes,
)
from lowering.kernels.gemm.direct import DirectContraction, is_direct
from lowering.kernels.gemm.dot_group_contraction import find_dot_group_contraction
from lowering.kernels.gemm.dot_group_micro_kernel import GROUP_BYTES
from lowering.kernels.gemm.dot_groups import DotGroupGemm
from lowering.kernels.gemm.packed import PackedGemm
from lowering.kernels.gemm.problem import Gemm
from lowering.kernels.gemm.quantized_rows import INT16_PLANES, multiplies_int16
from lowering.kernels.gemm.skinny import can_be_skinny, has_partial_sums
from lowering.kernels.gemm.strategy import emit_best, generators
from lowering.kernels.gemm.tiling import Tiling, tiling, with_tiles
from lowering.kernels.gemm.zero_products import restore_output
from lowering.kernels.memory_bound import emit_alone, is_understood
from lowering.kernels.stage_rewrites import inline_operands, split_groups
from lowering.kernels.structure.contraction import Contraction, Epilogue, find_contraction, find_epilogue
from lowering.kernels.structure.decoding import Decoding, find_decoding
from lowering.kernels.structure.padding import find_padding
from lowering.kernels.structure.reduction import find_reduction, reduction_of
from lowering.kernels.structure.stages import Program, Stage, find_inner_stages, find_program, find_stages
from lowering.kernels.structure.winograd import Winograd, find_int16_products, find_winograd
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.target import Target
from tir_dialect.types import IteratorKind

Item: TypeAlias = Gemm | BlockGemm | DotGroupGemm | Attention | Winograd | Stage
"""What code is generated for at once."""


def schedule_compute_bound(func: PrimFuncOp, target: Target) -> str | None:
    """Rewrites a function with a contraction; says which generators made its code and why, `None` if it has none."""
    if func.may_alias is None:
        split_groups(func)
    stages = _stages(func)
    if stages is None or not any(map(_has_products, stages)):
        return None
    while inline_operands(stages):
        stages = _stages(func)
        assert stages is not None  # inlined code is made of the same ops
    program = find_program(func)
    assert program is not None  # it has stages
    contractions = {stage: found for stage in stages if (found := find_contraction(stage)) is not None}
    return _Emitter(func, program, stages, contractions, target).emit()


def _has_products(stage: Stage) -> bool:
    return find_contraction(stage) is not None or find_int16_products(stage) is not None


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

    def emit(self) -> str:
        """Replaces the body of the function; says which generators made it and why."""
        kernel = self.kernel
        for op in self.program.header:
            kernel.code.emit(op.clone(value_mapper=kernel.values))
        plan = elide_padding(kernel, self._plan())
        # The buffers that stages of the plan fill with data and zeros around it.
        stages = (item for item in plan if isinstance(item, Stage))
        found = (padding for stage in stages if (padding := find_padding(stage)) is not None)
        kernel.padded |= {padding.stage.stores[0].buffer: padding for padding in found if padding.is_zero}
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
        explained: list[str] = []
        for item in plan:
            if isinstance(item, Gemm | DotGroupGemm):
                explained.append(emit_contraction(item))
            elif isinstance(item, BlockGemm):
                explained.append(emit_block_gemm(item))
            elif isinstance(item, Winograd):
                from lowering.kernels.conv.winograd import WinogradConvolution

                WinogradConvolution(kernel, item, self._winograd_tiles(item)).emit()
                explained.append("Winograd since transforms are around products of the same points")
            elif isinstance(item, Attention):
                from lowering.kernels.attention.tiles import emit_attention

                emit_attention(kernel, item)
                explained.append("attention since a GEMM takes the rows of another one after reductions along them")
            else:
                emit_alone(kernel, item, reduction_of(item))
        self.func.detach_region(self.func.body)
        self.func.add_region(Region(self.body))
        return "; ".join(explained)

    def _plan(self) -> list[Item]:
        """The stages in order, each contraction with those that are computed with it."""
        own = frozenset(alloc.buffer for alloc in self.program.buffers)
        plan: list[Item] = []
        rest = self.stages
        while rest:
            winograd = self._winograd(rest, own)
            if winograd is not None:
                plan.append(winograd)
                rest = rest[winograd.count :]
                continue
            stage, rest = rest[0], rest[1:]
            contraction = self.contractions.get(stage)
            block_gemm = None if contraction is not None or not rest else self._block_gemm(stage, rest, own)
            if block_gemm is not None:
                plan.append(block_gemm)
                rest = rest[1 + len(block_gemm.gemm.epilogue.steps) :]
                continue
            if contraction is None:
                plan.append(stage)
                continue
            attention = find_attention(self.kernel, contraction, rest, self.contractions, own)
            if attention is not None:
                plan.append(attention)
                rest = rest[attention.count - 1 :]
                continue
            gemm = gemm_of(self.kernel, contraction, rest, own)
            plan.append(gemm)
            rest = rest[len((gemm if isinstance(gemm, Gemm) else gemm.gemm).epilogue.steps) :]
        return plan

    def _winograd(self, stages: Sequence[Stage], own: frozenset[SSAValue]) -> Winograd | None:
        """The Winograd convolution that begins with the first stage."""
        if len(stages) < 3:
            return None
        # Weights of `f32` are in panels if these are as wide as a tile.
        panels = {
            stage: with_tiles(self.contractions[stage], self.kernel.target)[0]
            for stage in stages[1:3]
            if stage in self.contractions
        }
        found = find_winograd(stages, panels, own)
        if found is None:
            return None
        from lowering.kernels.conv.winograd import suits

        return found if suits(found, self._winograd_tiles(found)) else None

    def _winograd_tiles(self, winograd: Winograd) -> Tiling:
        """The register tiles of a Winograd convolution."""
        contraction, target = self.contractions.get(winograd.products.stage), self.kernel.target
        return tiling(target, GROUP_BYTES) if contraction is None else with_tiles(contraction, target)[1]

    def _block_gemm(self, stage: Stage, rest: Sequence[Stage], own: frozenset[SSAValue]) -> BlockGemm | None:
        """The contraction after a stage that decodes weights for it, if these can be decoded in registers."""
        decoding, contraction = find_decoding(stage.block), self.contractions.get(rest[0])
        if decoding is None or contraction is None or contraction.tested is not None or decoding.numbers not in own:
            return None
        if any(load.buffer is decoding.numbers for other in rest[1:] for load in other.loads):
            return None
        contraction, tiles = with_tiles(contraction, self.kernel.target)
        gemm = Gemm(self.kernel, contraction, find_epilogue(contraction, rest[1:], own), tiles)
        return BlockGemm(stage, decoding, gemm) if can_decode_in_registers(gemm, decoding) else None


def gemm_of(
    kernel: Kernel, contraction: Contraction, following: Sequence[Stage], own: frozenset[SSAValue]
) -> Gemm | DotGroupGemm:
    """A contraction with those of the following stages that are its epilogue; `own` are the buffers of the function."""
    groups = find_dot_group_contraction(contraction, kernel.target)
    tiles = tiling(kernel.target, GROUP_BYTES, tile=TILE_REGISTERS if groups is not None and groups.in_tiles else None)
    if groups is None:
        contraction, tiles = with_tiles(contraction, kernel.target)
    # Sums that are made once more have to be in memory before the epilogue.
    epilogue = Epilogue() if contraction.tested is not None else find_epilogue(contraction, following, own)
    gemm = Gemm(kernel, contraction, epilogue, tiles)
    return gemm if groups is None else DotGroupGemm(gemm, groups)


def emit_contraction(item: Gemm | DotGroupGemm) -> str:
    """The code of a contraction; says which generators made it, and why."""
    if isinstance(item, Gemm):
        explanation = emit_gemm(item)
        if item.contraction.tested is not None:
            restore_output(item)
        return explanation
    item.emit()
    groups = item.groups
    where = " in tile registers" if groups.in_tiles else " of 16 bits" if groups.in_int16 else ""
    pairs = ", pairs saturating where none can" if groups.in_byte_pairs else ""
    return f"dot-product groups{where} since {groups.parts} numbers make one of 32 bits{pairs}"


def _unneeded(gemm: Gemm | BlockGemm | DotGroupGemm | Attention | Winograd) -> frozenset[SSAValue]:
    """The buffers of an epilogue that need no memory; partial sums need some."""
    if isinstance(gemm, BlockGemm):
        return gemm.gemm.epilogue.unread | {gemm.decoding.numbers}
    if isinstance(gemm, Attention | Winograd):
        return gemm.unread
    if isinstance(gemm, DotGroupGemm):
        return gemm.gemm.epilogue.unread
    accumulators = {gemm.contraction.store.buffer} if _makes_partial_sums(gemm) else set[SSAValue]()
    return gemm.epilogue.unread - accumulators


def _makes_partial_sums(gemm: Gemm) -> bool:
    if byte_depthwise_of(gemm) is not None or is_direct_convolution(gemm) or is_direct(gemm):
        return False
    if depthwise_of(gemm) is not None:
        return False
    few = can_be_skinny(gemm) and has_partial_sums(gemm)
    return PackedGemm(gemm).needs_partial_sums or few


def _emit_few_rows(gemm: Gemm, decoding: Decoding) -> str:
    """The code of a GEMM with small M and block-quantised weights; says what it is."""
    name, planes = decoding.block_format.name, row_planes(gemm, decoding)
    if planes is None:
        BlockDotGemm(gemm, decoding).emit()
        return f"dot products with {name} blocks decoded in registers"
    in_int16 = planes == INT16_PLANES and suits_int16(gemm, decoding)
    if in_int16:
        BlockInt16Gemm(gemm, decoding).emit()
    else:
        BlockIntegerGemm(gemm, decoding, planes).emit()
    if columns_left(gemm):
        BlockDotGemm(gemm, decoding).emit(whole=False)
    along = ", lanes along K" if in_int16 else ""
    return f"integer dot products of {name} blocks with rows of {8 * planes} bits{along}"


def _emit_in_vectors(gemm: Gemm, decoding: Decoding) -> str:
    """The code of a GEMM with block-quantised weights that are decoded before; says what it is."""
    if suits_int16_panels(gemm, decoding):
        BlockInt16PanelGemm(gemm, decoding).emit()
        return f"panels of blocks that are decoded before, with rows of {BLOCK_INT16_BITS} bits"
    BlockPanelGemm(gemm, decoding).emit({})
    return "dot products of blocks that are decoded before"


def _emit_many_rows(gemm: Gemm, decoding: Decoding) -> str:
    """The same, in tile registers where that is profitable."""
    parts = tile_parts(gemm, decoding)
    if parts is None:
        return _emit_in_vectors(gemm, decoding)
    how = f"tile registers with numbers in {parts} parts of bf16"
    if gemm.m.constant_value is not None:
        emit_tile_gemm(gemm, decoding, parts)
        return how
    code = gemm.code
    with code.when(code.compare("slt", code.dim(gemm.m, "m"), BLOCK_TILE_MIN_M)) as branch:
        few = _emit_in_vectors(gemm, decoding)
    with code.otherwise(branch):
        emit_tile_gemm(gemm, decoding, parts)
    return f"{few} where M < {BLOCK_TILE_MIN_M}, else {how}"


def emit_block_gemm(item: BlockGemm) -> str:
    """The code of a GEMM with block-quantised weights; says which generators made it, and why."""
    gemm, decoding = item.gemm, item.decoding
    in_panels = multiplies_int16(gemm.kernel.target) and suits_int16_panels(gemm, decoding)
    m, most = gemm.m.constant_value, BLOCK_DOT_MAX_M
    if in_panels and not suits_int16(gemm, decoding):
        most = BLOCK_INT16_DOT_MAX_M
    if m is not None and m <= most:
        return f"{_emit_few_rows(gemm, decoding)} since M <= {most}"
    if m is not None:
        return f"{_emit_many_rows(gemm, decoding)} since M > {most}"
    code = gemm.code
    with code.when(code.compare("sle", code.dim(gemm.m, "m"), most)) as branch:
        few = _emit_few_rows(gemm, decoding)
    with code.otherwise(branch):
        many = _emit_many_rows(gemm, decoding)
    return f"{few} where M <= {most}, else {many}"


def emit_gemm(gemm: Gemm) -> str:
    """The code of one contraction, with its epilogue, by the generator that suits its accesses and its sizes.

    Says which generators those are, and why.
    """
    byte_rows = byte_depthwise_of(gemm)
    if byte_rows is not None:
        ByteDepthwiseConvolution(gemm, byte_rows).emit()
        return "depthwise convolution of bytes by groups of four rows"
    if is_direct_convolution(gemm):
        DirectConvolution(gemm).emit()
        return "blocked convolution since channels are in blocks"
    rows = depthwise_of(gemm)
    if rows is not None:
        DepthwiseConvolution(gemm, rows).emit()
        return "blocked depthwise convolution since groups of channels are in blocks"
    if is_direct(gemm):
        DirectContraction(gemm).emit()
        return "direct since windows overlap or K is short"
    with gemm.batches() as coords:
        return ", else ".join(emit_best(gemm, generators(gemm), coords))


def schedule_inner_stages(func: PrimFuncOp, target: Target) -> str | None:
    """Rewrites reductions and elementwise stages inside of loops of a function; says which generators made the code of
    contractions, and why, if there are any. A function that is a list of stages is not concerned.
    """
    if func.may_alias is not None or find_program(func) is not None:
        return None
    routines, explained = routines_for(func), list[str]()
    for stage in find_inner_stages(func):
        if not is_understood([stage]) or stage.of_kind(IteratorKind.SCAN) or not _is_worth_compiling(stage):
            continue
        block = Block()
        values = {value: value for op in stage.nest.walk() for value in op.operands if _is_outside(value, stage.nest)}
        kernel = Kernel(Code(block, stage.nest.location), target, values, routines)
        # The code of a stage; of a contraction says which generator made it, and why.
        for buffer in dict.fromkeys(access.buffer for access in stage.accesses):
            kernel.make_flat(buffer)
        contraction = find_contraction(stage)
        if contraction is not None:
            explanation = emit_contraction(gemm_of(kernel, contraction, (), frozenset()))
        else:
            emit_alone(kernel, stage, find_reduction(stage))
            explanation = None
        explained += [] if explanation is None else [explanation]
        Rewriter.inline_block(block, InsertPoint.before(stage.nest))
        Rewriter.erase_op(stage.nest)
    return "; ".join(explained) or None


def _is_worth_compiling(stage: Stage) -> bool:
    """Whether a stage is no contraction, or the matrix of its columns has known sizes, as weights have.

    The code for matrices of any size takes several times as long to compile.
    """
    contraction = find_contraction(stage)
    axes = () if contraction is None else (*contraction.column, *contraction.outer, *contraction.reduced)
    return all(stage.extents[axis].constant_value is not None for axis in axes)


def _is_outside(value: SSAValue, nest: Operation) -> bool:
    owner = value.owner
    op = owner if isinstance(owner, Operation) else owner.parent_op()
    return op is None or not nest.is_ancestor(op)
