"""What the ways have in common that make every sum in one turn."""

from __future__ import annotations

from lowering.schedule.cpu.products.finish import Finish
from lowering.schedule.cpu.products.product import Product


class WholeSums:
    """The code of one contraction at a place of its batch axes; vectors of sums are finished as they are made."""

    def __init__(self, product: Product):
        self.product = product
        self.code = product.code
        self.lanes = product.tiles.lanes
        self.finish = Finish(product, None, None)
