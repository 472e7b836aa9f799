"""The last panel of columns, which one vector may hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.ir import SSAValue

from lowering.kernels.cpu.gemm.last_columns import leaves_last
from lowering.kernels.cpu.gemm.product import Product


def in_one_vector(product: Product, left: SSAValue, emit: Callable[[Product], None]) -> None:
    """What is done with the panel whose first column is `left`: in tiles of one vector if that has all its columns."""
    if not _may_be_narrow(product):
        emit(product)
        return
    code, lanes = product.code, product.tiles.lanes
    with code.when(code.compare("sle", code.sub(code.dim(product.n), left), lanes)) as branch:
        emit(replace(product, tiles=replace(product.tiles, vectors=1)))
    with code.otherwise(branch):
        emit(product)


def _may_be_narrow(product: Product) -> bool:
    """Whether one vector may hold the columns of the last panel."""
    known = product.n.constant_value
    if known is not None and leaves_last(product, product.tiles.width):
        return False
    return product.tiles.vectors > 1 and (known is None or 0 < known % product.tiles.width <= product.tiles.lanes)
