"""Rotary position embeddings."""

from __future__ import annotations

from relax_dialect.builder import op
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.contrib.scores import dims_of, split_heads
from relax_dialect.frontend.onnx.domains import MICROSOFT
from relax_dialect.frontend.onnx.errors import Refusal
from relax_dialect.frontend.onnx.node import Node, fixed
from relax_dialect.frontend.onnx.registry import Result, converts
from tir_dialect import te
from tir_dialect.dims import Dim


@converts("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(node: Node) -> Result:
    """Pairs of features turned by angles that grow with the place."""
    if node.integer("is_packed_batching"):
        raise Refusal("batches of different lengths side by side are not supported")
    interleaved, scale = bool(node.integer("interleaved")), node.number("scale", 1.0)
    half = fixed(node.shape(2)[1:], "the number of angles")[0]
    heads = _heads(node, half)
    x = node[0] if heads is None else split_heads(node[0], heads)
    batch, _, length, _ = dims_of(x, 4)
    places = _places(node, node[1], batch, length)
    turned = rotated(node, x, places, node[2], node[3], interleaved=interleaved)
    if scale != 1.0:
        turned = op.multiply(turned, node.like(scale))
    return turned if heads is None else op.reshape(op.permute_dims(turned, [0, 2, 1, 3]), node.shape())


def _heads(node: Node, half: int) -> int | None:
    """The number of heads that lie side by side; `None` if they are a dimension."""
    if node.rank() == 4:
        return None
    given = node.integer("num_heads")
    return given if given else fixed(node.shape()[2:], "the number of features")[0] // (2 * half)


def _places(node: Node, ids: Expr, batch: Dim, length: Dim) -> Expr:
    """The place of each token; one number is the place of the first."""
    if ids.ndim == 2:
        return ids

    def from_first(first: te.Tensor) -> te.Tensor:
        def place(_: te.Expr, i: te.Expr) -> te.Expr:
            return first[0] + te.cast(i, first.dtype)

        return te.compute((batch, length), place, name="places")

    return node.te(from_first, op.reshape(ids, [1]), name="places")


def rotated(node: Node, x: Expr, places: Expr, cos: Expr, sin: Expr, *, interleaved: bool) -> Expr:
    """`x` by batch, head, place and feature, with as many first features turned as twice the angles are.

    Pairs are neighbours if they are interleaved, else each of the first half with one of the second.
    """
    half = fixed([dims_of(cos, 2)[1]], "the number of angles")[0]
    features = fixed([dims_of(x, 4)[3]], "the number of features")[0]
    turned = x if 2 * half == features else op.strided_slice(x, [3], [0], [2 * half])
    if interleaved:
        a, b = (op.strided_slice(turned, [3], [at], [2 * half], [2]) for at in range(2))
    else:
        a, b = op.split(turned, sections=2, axis=3)
    c, s = (op.expand_dims(op.take(each, places, 0), [1]) for each in (cos, sin))
    real = op.subtract(op.multiply(a, c), op.multiply(b, s))
    imaginary = op.add(op.multiply(a, s), op.multiply(b, c))
    if interleaved:
        made = op.reshape(op.stack([real, imaginary], 4), dims_of(turned, 4))
    else:
        made = op.concat([real, imaginary], 3)
    return made if turned is x else op.concat([made, op.strided_slice(x, [3], [2 * half], [features])], 3)
