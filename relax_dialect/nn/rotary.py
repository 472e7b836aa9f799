"""Rotary position embeddings: pairs of features are rotated by angles that grow with the position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from relax_dialect.builder import Expr, op
from relax_dialect.builder.tensor_expressions import emit_te
from relax_dialect.nn.config import RopeScaling
from relax_dialect.nn.module import Module, current_builder, known_shape
from tir_dialect import te

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RotaryEmbedding(Module):
    """Rotation of pairs of features by angles that grow with the position (Su et al., 2021).

    Pairs are the halves of a head, or features side by side if it is `interleaved`, as in GGUF files of Llama. If only
    the first `rotated` features are, the others stay as they are.
    """

    def __init__(
        self,
        features: int,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
        scale: float = 1.0,
        scaling: RopeScaling | None = None,
        rotated: int | None = None,
    ):
        self._features, self._rotated_features = features, features if rotated is None else rotated
        if not 0 < self._rotated_features <= features or self._rotated_features % 2:
            raise ValueError(f"expected an even number of at most {features} rotated features, got {rotated}")
        self._interleaved = interleaved
        self._magnitude = 1.0 if scaling is None else scaling.magnitude
        self._frequencies = scale * frequencies(self._rotated_features, base, scaling)

    @property
    def pairs(self) -> int:
        """The number of angles at a position."""
        return self._rotated_features // 2

    def angles(self, positions: Expr) -> tuple[Expr, Expr]:
        """Cosine and sine at positions, `(new,)` of `i64`: `(new, 1, pairs)`, times the magnitude of scaled ones."""
        steps = current_builder().const(self._frequencies.astype(np.float32))
        angle = op.reshape(positions.astype("f32"), (known_shape(positions)[0], 1, 1)) * steps
        cos, sin = op.cos(angle), op.sin(angle)
        return (cos, sin) if self._magnitude == 1 else (cos * self._magnitude, sin * self._magnitude)

    def forward(self, x: Expr, cos: Expr, sin: Expr) -> Expr:
        """`(new, heads, features)` rotated."""
        rotated = emit_te(current_builder(), self._rotated, [x, cos, sin], {}, "rotate")
        assert isinstance(rotated, Expr)  # one tensor
        return rotated

    def _rotated(self, x: te.Tensor, cos: te.Tensor, sin: te.Tensor) -> te.Tensor:
        size, half = self._rotated_features, self._rotated_features // 2

        def element(i: te.Expr, h: te.Expr, d: te.Expr) -> te.Expr:
            first, pair = (d % 2 == 0, d // 2) if self._interleaved else (d < half, d % half)
            step = 1 if self._interleaved else half
            partner = te.select(first, d + step, d - step)
            turned = te.select(first, -x[i, h, partner], x[i, h, partner])
            return x[i, h, d] * cos[i, 0, pair] + turned * sin[i, 0, pair]

        def kept(i: te.Expr, h: te.Expr, d: te.Expr) -> te.Expr:
            # The angles of features that stay would be out of bounds.
            return te.if_then_else(d < size, element(i, h, d), x[i, h, d])

        return te.compute(x.shape, element if size == self._features else kept, name="rotate")


def frequencies(features: int, base: float, scaling: RopeScaling | None = None) -> NDArray[Any]:
    """By which angle each pair of features is rotated from one position to the next; `f64`, `features / 2` of them."""
    half = features // 2
    plain = base ** (-np.arange(half) / half)
    return plain if scaling is None else plain / scaling.divisors(plain, base)
