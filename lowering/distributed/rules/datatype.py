"""How conversions may be shared.

D1: `astype` along every dimension.
"""

from __future__ import annotations

from lowering.distributed.factors import shards
from lowering.distributed.rules.unary import elementwise
from relax_dialect.ops.datatype import AstypeOp

shards(AstypeOp)(elementwise)  # D1
