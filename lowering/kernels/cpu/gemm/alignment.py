"""The alignment of an operand, in elements modulo a vector."""

from __future__ import annotations

from xdsl.ir import SSAValue

from lowering.kernels.cpu.emit.shuffles import is_power_of_two
from lowering.kernels.cpu.gemm.product import Coords, Product
from lowering.kernels.cpu.structure.contraction import Factor


def head_of(product: Product, factor: Factor, coords: Coords) -> SSAValue:
    """How many elements from an element of a factor on lie before the next one where a vector of its memory may begin.

    0 where it is not loaded from one buffer, so that no two loads would have to agree.
    """
    code, lanes = product.code, product.tiles.lanes
    buffer = product.kernel.flat.get(factor.loads[0].buffer) if len(factor.loads) == 1 else None
    if buffer is None or not factor.is_linear or not is_power_of_two(lanes):
        return code.index(0)
    late = code.misalignment(buffer, [product.offset(factor.accesses[0], coords)], lanes)
    return code.remainder(code.sub(code.index(lanes), late), lanes)
