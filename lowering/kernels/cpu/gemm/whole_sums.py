"""What the strategies that complete every reduction in one go have in common."""

from __future__ import annotations

from lowering.kernels.cpu.gemm.finish import Finish
from lowering.kernels.cpu.gemm.product import Product


class WholeSums:
    """The code of one contraction at given values of its batch axes; accumulators are finished as soon as they are
    computed.
    """

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.lanes = product.tiles.lanes
        self.finish = Finish(product, None, None)
