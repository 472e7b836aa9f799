"""How many lanes suit some code, and whether the machine masks them well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import BFloat16Type, Float16Type, IndexType, ReducedPrecisionFloatType
from xdsl.ir import Attribute, Operation

from lowering.schedule.cpu.emit.groups import Group
from lowering.schedule.cpu.emit.kernel import Kernel
from lowering.schedule.cpu.structure.stages import Stage
from tir_dialect.dtypes import byte_size, is_dtype
from tir_dialect.ops.memory import LoadOp, StoreOp

LATENT = frozenset(
    f"math.{name}"
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp", "exp2", "expm1"),
        *("log", "log10", "log1p", "log2", "sin", "sinh", "tanh"),
    )
)
"""Functions whose instructions wait for each other, and are few enough to be written twice."""


def lane_count(
    kernel: Kernel, stages: Sequence[Stage], group: Group, left_out: AbstractSet[Operation] = frozenset()
) -> int:
    """Lanes such that the widest values along a group, without those of some ops, fill one register."""
    widest = max((bits for stage in stages for bits in _widths(stage, group, left_out)), default=32)
    return kernel.target.lanes(widest)


def _widths(stage: Stage, group: Group, left_out: AbstractSet[Operation]) -> Iterator[int]:
    for op in stage.needed - left_out:
        if isinstance(op, LoadOp | StoreOp):
            yield 8 * byte_size(op.buffer_type.dtype)
        for result in op.results:
            yield _bits(result.type, group.last in stage.pinned)


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
    sizes = (byte_size(op.buffer_type.dtype) for stage in stages for op in stage.places)
    return kernel.target.vector_bits >= 256 and min(sizes, default=4) >= 4


def registers_of_a_turn(kernel: Kernel, stages: Sequence[Stage], group: Group, lanes: int) -> int:
    """Two where an elementary function makes a register wait for itself, else one.

    The processor looks some sixty instructions ahead, which is not as far as the next turn. Registers of 512 bits have
    functions by tables, which are shorter.
    """
    chosen = kernel.target.turn_registers
    waits = chosen > 1 or any(op.name in LATENT for stage in stages for op in stage.needed)
    length = group.extent.constant_value
    is_long = lanes > 1 and (length is None or length >= 2 * lanes)
    if not waits or not is_long or not masks_are_cheap(kernel, stages):
        return 1
    return chosen or (2 if kernel.target.vector_bits < 512 else 1)


def masks_are_registers(kernel: Kernel) -> bool:
    """Whether a mask costs nothing at all: AVX-512. With AVX2 on Zen a masked store takes as long as a dozen others."""
    return kernel.target.arch.startswith("x86") and kernel.target.vector_bits >= 512
