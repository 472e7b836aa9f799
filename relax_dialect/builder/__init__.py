"""Building programs from Python: `BlockBuilder`, values with operators, operators as functions.

::

    from relax_dialect.builder import BlockBuilder, op, tensor
"""

from relax_dialect.builder import op
from relax_dialect.builder.block_builder import BlockBuilder
from relax_dialect.builder.emitter import BuilderError, tensor
from relax_dialect.builder.expr import Expr

__all__ = ["BlockBuilder", "BuilderError", "Expr", "op", "tensor"]
