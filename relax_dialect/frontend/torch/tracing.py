"""Tracing by `torch.export` in which recurrent layers stay whole, so that their length can stay open.

PyTorch traces an LSTM, GRU or RNN by unrolling it over time, which fixes the length. `whole_recurrent_layers` puts an
operator of our own, with the same arguments and values, for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache, partial
from importlib import import_module
from typing import Any

from relax_dialect.frontend.torch.program import torch

NAMESPACE = "xdsl_relax"
LAYERS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
"""The recurrent layers, as PyTorch calls their functions and we our operators."""

_OPTIONS = (
    "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional, bool batch_first"
)


def whole_recurrent_layers() -> AbstractContextManager[Any]:
    """A context in which `torch.export.export` keeps LSTM, GRU and RNN layers whole.

    With it the length of sequences can be dynamic. Packed sequences are as without it.
    """
    return _mode()()


@cache
def recurrent_operators() -> Mapping[str, Callable[..., Any]]:
    """Our operators by the names of PyTorch's functions. They are known to PyTorch from the first call on."""
    return {name: _operator(name) for name in LAYERS}


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(import_module("torch._VF"), name)
    layer: Any = getattr(torch().ops.aten, name).input
    lstm = name == "lstm"
    state, results = ("Tensor[] hx", "(Tensor, Tensor, Tensor)") if lstm else ("Tensor hx", "(Tensor, Tensor)")
    made = torch().library.custom_op(
        f"{NAMESPACE}::{name}",
        function,
        mutates_args=(),
        schema=f"(Tensor input, {state}, {_OPTIONS}) -> {results}",
        tags=layer.tags,
    )
    made.register_fake(partial(_shapes, lstm))
    return made


def _shapes(
    lstm: bool,
    input: Any,
    hx: Any,
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, ...]:
    """Results without elements: the outputs, and the last states, which are like those given."""
    states = hx if lstm else [hx]
    units = states[0].shape[-1] * (2 if bidirectional else 1)
    return input.new_empty([*input.shape[:-1], units]), *(each.new_empty(each.shape) for each in states)


@cache
def _mode() -> type[AbstractContextManager[Any]]:
    base = import_module("torch.overrides").TorchFunctionMode
    functions = {getattr(import_module("torch._VF"), name): made for name, made in recurrent_operators().items()}

    class WholeRecurrentLayers(base):
        """Calls our operators instead of PyTorch's functions."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named: dict[str, Any] = kwargs or {}
            whole = functions.get(func) if not named and len(args) == 9 and isinstance(args[3], bool) else None
            return func(*args, **named) if whole is None else whole(*args)

    return WholeRecurrentLayers
