"""Vector widths that suit some code, and whether the target masks vectors efficiently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float64Type, IndexType, ReducedPrecisionFloatType
from xdsl.ir import Attribute, Operation, SSAValue

from lowering.kernels.cpu.emit.groups import Group
from lowering.kernels.cpu.emit.kernel import Kernel
from lowering.kernels.cpu.structure.stages import Stage
from tir_dialect.dtypes import byte_size, is_dtype
from tir_dialect.ops.control_flow import YieldOp
from tir_dialect.ops.memory import LoadOp, StoreOp

LATENT = frozenset(
    f"math.{name}"
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "erf", "exp", "exp2", "expm1"),
        *("log", "log10", "log1p", "log2", "powf", "sin", "sinh", "tan", "tanh"),
    )
)
"""Functions whose instructions wait for each other."""

LONG_ROW = 256
"""Elements of a row, beside which those that fill no iteration of four registers do not count."""


def lane_count(
    kernel: Kernel, stages: Sequence[Stage], group: Group, left_out: AbstractSet[Operation] = frozenset()
) -> int:
    """Lanes such that the widest values along a group, without those of some ops, fill one register.

    What is the same for all lanes, as the number of a row that is gathered, does not count.
    """
    widest = max((bits for stage in stages for bits in _widths(stage, group, left_out)), default=32)
    return kernel.target.lanes(widest)


def _widths(stage: Stage, group: Group, left_out: AbstractSet[Operation]) -> Iterator[int]:
    for op in _varying(stage, group) & (stage.needed - left_out):
        if isinstance(op, LoadOp | StoreOp):
            yield 8 * byte_size(op.buffer_type.dtype)
        for result in op.results:
            yield _bits(result.type, group.last in stage.pinned)


def _varying(stage: Stage, group: Group) -> frozenset[Operation]:
    """The ops that an axis of a group, or what follows from it, is an operand of."""
    values: set[SSAValue] = {stage.axes[axis].value for axis in group.axes}
    found: set[Operation] = set()
    for op in stage.block.body.walk():
        if not values.isdisjoint(op.operands):
            found.add(op)
            values.update(op.results)
            parent = op.parent_op()
            if isinstance(op, YieldOp) and parent is not None:
                found.add(parent)
                values.update(parent.results)
    return frozenset(found)


def _bits(kind: Attribute, pinned: bool) -> int:
    if isinstance(kind, IndexType):
        return 32 if pinned else 8
    if isinstance(kind, BFloat16Type | Float16Type | ReducedPrecisionFloatType):
        return 32
    return 8 * byte_size(kind) if is_dtype(kind) else 8


def masks_are_cheap(kernel: Kernel, stages: Sequence[Stage]) -> bool:
    """Whether the machine loads and stores under masks: AVX-512 any elements, AVX2 those of four bytes and more."""
    if not kernel.target.arch.startswith("x86"):
        return False
    if masks_are_registers(kernel):
        return True
    sizes = (byte_size(op.buffer_type.dtype) for stage in stages for op in stage.accesses)
    return kernel.target.vector_bits >= 256 and min(sizes, default=4) >= 4


def registers_per_iteration(
    kernel: Kernel, stages: Sequence[Stage], group: Group, lanes: int, has_rows: bool = False
) -> int:
    """Four where functions make a register wait for itself, two if there are rows that may be short, else one; where
    there are no masks, as many as are stored together.

    The processor looks some sixty instructions ahead, which is not as far as the next iteration. Registers of 512 bits
    have functions by tables, which are shorter.
    """
    functions = [op for stage in stages for op in stage.needed if _is_latent(op)]
    length = group.extent.constant_value
    may_be_short = has_rows and (length is None or length < LONG_ROW)
    several = 2 if may_be_short or any(map(_fills_registers, functions)) else 4
    wanted = kernel.target.schedule.map_vectors or (several if functions and kernel.target.vector_bits < 512 else 1)
    if lanes == 1:
        return 1
    if not masks_are_cheap(kernel, stages):
        wanted = 1 if has_rows else _parts_of_a_result(kernel, stages, lanes)
    while wanted > 1 and length is not None and length < wanted * lanes:
        wanted //= 2
    return wanted


def _is_latent(op: Operation) -> bool:
    """Whether instructions of an op wait for each other; powers that are known are products and roots."""
    return op.name in LATENT and not (op.name == "math.powf" and isinstance(op.operands[1].owner, arith.ConstantOp))


def _parts_of_a_result(kernel: Kernel, stages: Sequence[Stage], lanes: int) -> int:
    """How many registers that are computed have room in one that is stored, at most four: they are packed together.

    AVX-512 stores parts of a register as well, and AVX2 converts f64 into halves of one, whose packing takes longer.
    """
    if not kernel.target.arch.startswith("x86") or masks_are_registers(kernel):
        return 1
    if any(isinstance(load.result.type, Float64Type) for stage in stages for load in stage.loads):
        return 1
    sizes = (byte_size(store.buffer_type.dtype) for stage in stages for store in stage.stores)
    return max(1, min(4, kernel.target.lanes(8 * max(sizes)) // lanes))


def _fills_registers(op: Operation) -> bool:
    """Whether four of a function would not fit the registers of AVX2: those with a root have two ways."""
    return op.name in ("math.asin", "math.acos")


def masks_are_registers(kernel: Kernel) -> bool:
    """Whether a mask costs nothing at all: AVX-512. With AVX2 on Zen a masked store takes as long as a dozen others."""
    return kernel.target.arch.startswith("x86") and kernel.target.vector_bits >= 512
