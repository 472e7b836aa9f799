"""Layers of neural networks as Python objects that emit themselves into a `BlockBuilder`.

::

    class Block(nn.Module):
        def __init__(self):
            self.norm, self.mlp = nn.RMSNorm(64), nn.GatedMLP(64, 256)

        def forward(self, x: Expr) -> Expr:
            return x + self.mlp(self.norm(x))

    block = Block()
    block.load_state_dict(weights)  # "norm.weight", "mlp.gate_proj.weight", ...
    module = nn.export(block, {"x": tensor(("n", 64))})
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relax_dialect.nn.attention import Attention
    from relax_dialect.nn.config import (
        CACHE_FORMATS,
        PAGE,
        CacheFormat,
        DecoderConfig,
        ExpertsConfig,
        LinearScaling,
        Llama3Scaling,
        YarnScaling,
    )
    from relax_dialect.nn.decoder import Decoder
    from relax_dialect.nn.decoder_program import DecoderProgram
    from relax_dialect.nn.experts import MixtureOfExperts, StackedLinear
    from relax_dialect.nn.layers import MLP, Embedding, GatedMLP, LayerNorm, Linear, RMSNorm
    from relax_dialect.nn.module import Module, ModuleList, Parameter, StateError, export
    from relax_dialect.nn.paged_cache import Batch, KVCache, OneSequence
    from relax_dialect.nn.rotary import RotaryEmbedding

__all__ = [
    "CACHE_FORMATS",
    "MLP",
    "PAGE",
    "Attention",
    "Batch",
    "CacheFormat",
    "Decoder",
    "DecoderConfig",
    "DecoderProgram",
    "Embedding",
    "ExpertsConfig",
    "GatedMLP",
    "KVCache",
    "LayerNorm",
    "Linear",
    "LinearScaling",
    "Llama3Scaling",
    "MixtureOfExperts",
    "Module",
    "ModuleList",
    "OneSequence",
    "Parameter",
    "RMSNorm",
    "RotaryEmbedding",
    "StackedLinear",
    "StateError",
    "YarnScaling",
    "export",
]

_MODULES = (
    "config",
    "module",
    "layers",
    "experts",
    "rotary",
    "paged_cache",
    "attention",
    "decoder",
    "decoder_program",
)


def __getattr__(name: str) -> object:
    """A name of `__all__`, from the first module that has it: a configuration needs no layers."""
    if name in __all__:
        for each in _MODULES:
            found = vars(import_module(f"{__name__}.{each}")).get(name)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
