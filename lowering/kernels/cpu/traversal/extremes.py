"""The maximum or minimum f32 of a vector, by integers of the same order.

The maximum of two floats where NaN wins and 0 is above -0 is several dependent instructions on x86; that of integers is
one. Every NaN is mapped to the one that wins.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, IntegerAttr, f32, i32
from xdsl.ir import Operation, SSAValue

from lowering.kernels.cpu.emit.kernel import Kernel, buffer_type
from tir_dialect.ops.memory import AllocBufferOp
from tir_dialect.types import BufferType, LoopKind

_DIGITS = 0x7FFFFFFF
_GREATEST_NAN, _LEAST_NAN = _DIGITS, -1


def folds_as_integers(kernel: Kernel, combine: Sequence[Operation]) -> bool:
    """Whether parts are combined by the greatest or the least of f32, on a machine where integers are faster."""
    if len(combine) != 1 or not isinstance(combine[0], arith.MaximumfOp | arith.MinimumfOp):
        return False
    return isinstance(combine[0].result.type, Float32Type) and kernel.target.arch.startswith("x86")


def extreme_of(kernel: Kernel, buffer: SSAValue, kind: type[Operation]) -> SSAValue:
    """The greatest (`arith.MaximumfOp`) or least element of a local buffer of f32, whose length is a power of 2."""
    code = kernel.code
    length = buffer_type(buffer).shape[0].constant_value
    assert length is not None  # a vector's
    keys = _keys(kernel, length)
    with code.loop(code.index(length), "lane", kind=LoopKind.VECTORIZED) as lane:
        code.store(key_of(kernel, code.load(buffer, [lane]), kind), keys, [lane])
    while length > 1:
        length //= 2
        half = _keys(kernel, length)
        with code.loop(code.index(length), "lane", kind=LoopKind.VECTORIZED) as lane:
            pair = code.load(keys, [lane]), code.load(keys, [code.add(lane, length)])
            code.store(better_key(kernel, kind, *pair), half, [lane])
        keys = half
    return number_of(kernel, code.load(keys, [code.index(0)]))


def _keys(kernel: Kernel, length: int) -> SSAValue:
    return kernel.code.value(AllocBufferOp(BufferType([length], i32, scope="local", align=64)), "keys")


def key_of(kernel: Kernel, value: SSAValue, kind: type[Operation]) -> SSAValue:
    """The integer for a float."""
    code, nan = kernel.code, _GREATEST_NAN if kind is arith.MaximumfOp else _LEAST_NAN
    is_nan = code.value(arith.CmpfOp(value, value, "uno"))
    return _swapped(kernel, code.select(is_nan, _integer(kernel, nan), code.value(arith.BitcastOp(value, i32))))


def better_key(kernel: Kernel, kind: type[Operation], left: SSAValue, right: SSAValue) -> SSAValue:
    """The greater, or the less, of two integers for floats."""
    return kernel.code.value((arith.MaxSIOp if kind is arith.MaximumfOp else arith.MinSIOp)(left, right))


def number_of(kernel: Kernel, key: SSAValue) -> SSAValue:
    """The float for an integer."""
    return kernel.code.value(arith.BitcastOp(_swapped(kernel, key), f32))


def _swapped(kernel: Kernel, bits: SSAValue) -> SSAValue:
    """The bits of a float as an integer of the same order, or back: digits of negative numbers are inverted."""
    code = kernel.code
    signs = code.value(arith.ShRSIOp(bits, _integer(kernel, 31)))
    digits = code.value(arith.AndIOp(signs, _integer(kernel, _DIGITS)))
    return code.value(arith.XOrIOp(bits, digits))


def _integer(kernel: Kernel, value: int) -> SSAValue:
    return kernel.code.value(arith.ConstantOp(IntegerAttr(value, i32)))
