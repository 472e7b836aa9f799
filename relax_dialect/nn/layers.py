"""Layers without state: products with weights, look-up, normalisation, feed-forward."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relax_dialect.builder import Expr, op
from relax_dialect.nn.module import Module, Parameter

ACTIVATIONS: Mapping[str, Callable[[Expr], Expr]] = {
    "silu": op.nn.silu,
    "gelu": op.nn.gelu,
    "gelu_new": op.nn.gelu_tanh,
    "gelu_pytorch_tanh": op.nn.gelu_tanh,
    "relu": op.nn.relu,
}
"""Activations by the names that `config.json` of Hugging Face has."""


class Linear(Module):
    """`x W^T + b`: weights are `(outputs, inputs)`, as in checkpoints."""

    def __init__(self, inputs: int, outputs: int, *, bias: bool = False):
        self.weight = Parameter((outputs, inputs))
        self.bias = Parameter((outputs,)) if bias else None

    def forward(self, x: Expr) -> Expr:
        """The product with each row of the weights."""
        return applied(self.weight, x, self.bias)


def applied(weight: Parameter, x: Expr, bias: Parameter | None = None) -> Expr:
    """`x W^T + b`."""
    y = x @ op.permute_dims(weight.value())
    return y if bias is None else y + bias.value()


class Embedding(Module):
    """Rows of a table at indices; packed rows are taken before they are decoded."""

    def __init__(self, count: int, features: int):
        self.weight = Parameter((count, features))

    def forward(self, indices: Expr) -> Expr:
        """The rows."""
        return self.weight.decoded(op.take(self.weight.stored(), indices, axis=0))

    def logits(self, x: Expr) -> Expr:
        """Products with all rows: the output head of a model that shares its table."""
        return applied(self.weight, x)


class RMSNorm(Module):
    """Division by the root of the mean square, then weights (Zhang and Sennrich, 2019)."""

    def __init__(self, features: int, epsilon: float = 1e-5):
        self.weight = Parameter((features,))
        self._epsilon = epsilon

    def forward(self, x: Expr) -> Expr:
        """The last axis normalised."""
        return op.nn.rms_norm(x, self.weight.value(), axes=[-1], epsilon=self._epsilon)


class LayerNorm(Module):
    """Division of what deviates from the mean by the standard deviation, then weights and bias (Ba et al., 2016)."""

    def __init__(self, features: int, epsilon: float = 1e-5, *, bias: bool = True):
        self.weight = Parameter((features,))
        self.bias = Parameter((features,)) if bias else None
        self._features, self._epsilon = features, epsilon

    def forward(self, x: Expr) -> Expr:
        """The last axis normalised."""
        bias = op.zeros((self._features,), "f32") if self.bias is None else self.bias.value()
        return op.nn.layer_norm(x, self.weight.value(), bias, axes=[-1], epsilon=self._epsilon)


class HeadLayerNorm(Module):
    """The layer norm of each head, with weights of its own and no bias; of `(tokens, heads, features)`."""

    def __init__(self, heads: int, features: int, epsilon: float = 1e-5):
        self.weight = Parameter((heads, features))
        self._features, self._epsilon = features, epsilon

    def forward(self, x: Expr) -> Expr:
        """The last axis normalised."""
        one, zero = op.ones((self._features,), "f32"), op.zeros((self._features,), "f32")
        return op.nn.layer_norm(x, one, zero, axes=[-1], epsilon=self._epsilon) * self.weight.value()


class MLP(Module):
    """`down(activation(up(x)))`."""

    def __init__(
        self, features: int, inner: int, activation: Callable[[Expr], Expr] = op.nn.gelu, *, bias: bool = True
    ):
        self.up_proj, self.down_proj = Linear(features, inner, bias=bias), Linear(inner, features, bias=bias)
        self._activation = activation

    def forward(self, x: Expr) -> Expr:
        """The same shape."""
        return self.down_proj(self._activation(self.up_proj(x)))


class GatedMLP(Module):
    """`down(activation(gate(x)) * up(x))` (Shazeer, 2020)."""

    def __init__(
        self, features: int, inner: int, activation: Callable[[Expr], Expr] = op.nn.silu, *, bias: bool = False
    ):
        self.gate_proj, self.up_proj = (Linear(features, inner, bias=bias) for _ in range(2))
        self.down_proj = Linear(inner, features, bias=bias)
        self._activation = activation

    def forward(self, x: Expr) -> Expr:
        """The same shape."""
        return self.down_proj(self._activation(self.gate_proj(x)) * self.up_proj(x))
