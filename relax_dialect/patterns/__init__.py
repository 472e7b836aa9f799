"""Patterns of relax values: what a value is made by, as data.

::

    from relax_dialect.patterns import is_const, is_op, wildcard

    x, w, b = wildcard(), is_const(), wildcard()
    product = is_op("relax.matmul")(x, w)
    layer = is_op("relax.nn.relu")(product + b) | product + b
    found = layer.match(value)
    if found is not None:
        found[x], found.ops, found.inputs

A pattern that occurs several times in another stands for one value each time: patterns are graphs, not only trees.
`lowering.relax.dataflow_patterns.RewriteMatch` is the rewrite pattern that replaces what fits.
Mirrors TVM's `relax.dpl`.
"""

from relax_dialect.patterns.match import Match
from relax_dialect.patterns.nodes import (
    Pattern,
    is_call_tir,
    is_const,
    is_op,
    is_packed,
    is_tuple,
    is_tuple_get,
    wildcard,
)

__all__ = [
    "Match",
    "Pattern",
    "is_call_tir",
    "is_const",
    "is_op",
    "is_packed",
    "is_tuple",
    "is_tuple_get",
    "wildcard",
]
