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

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from relax_dialect.nn.attention import Attention, Batch, KVCache, OneSequence, RotaryEmbedding, pool_types
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
    from relax_dialect.nn.decoder import Decoder, DecoderProgram
    from relax_dialect.nn.experts import MixtureOfExperts, StackedLinear
    from relax_dialect.nn.module import (
        MLP,
        Embedding,
        GatedMLP,
        LayerNorm,
        Linear,
        Module,
        ModuleList,
        Parameter,
        RMSNorm,
        StateError,
        export,
    )

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
    "pool_types",
]

# Loaded on first use: a configuration needs no layers.
_NAMES = LazyNames(
    __name__,
    {
        "CACHE_FORMATS": "relax_dialect.nn.config:CACHE_FORMATS",
        "MLP": "relax_dialect.nn.module:MLP",
        "PAGE": "relax_dialect.nn.config:PAGE",
        "Attention": "relax_dialect.nn.attention:Attention",
        "Batch": "relax_dialect.nn.attention:Batch",
        "CacheFormat": "relax_dialect.nn.config:CacheFormat",
        "Decoder": "relax_dialect.nn.decoder:Decoder",
        "DecoderConfig": "relax_dialect.nn.config:DecoderConfig",
        "DecoderProgram": "relax_dialect.nn.decoder:DecoderProgram",
        "Embedding": "relax_dialect.nn.module:Embedding",
        "ExpertsConfig": "relax_dialect.nn.config:ExpertsConfig",
        "GatedMLP": "relax_dialect.nn.module:GatedMLP",
        "KVCache": "relax_dialect.nn.attention:KVCache",
        "LayerNorm": "relax_dialect.nn.module:LayerNorm",
        "Linear": "relax_dialect.nn.module:Linear",
        "LinearScaling": "relax_dialect.nn.config:LinearScaling",
        "Llama3Scaling": "relax_dialect.nn.config:Llama3Scaling",
        "MixtureOfExperts": "relax_dialect.nn.experts:MixtureOfExperts",
        "Module": "relax_dialect.nn.module:Module",
        "ModuleList": "relax_dialect.nn.module:ModuleList",
        "OneSequence": "relax_dialect.nn.attention:OneSequence",
        "Parameter": "relax_dialect.nn.module:Parameter",
        "RMSNorm": "relax_dialect.nn.module:RMSNorm",
        "RotaryEmbedding": "relax_dialect.nn.attention:RotaryEmbedding",
        "StackedLinear": "relax_dialect.nn.experts:StackedLinear",
        "StateError": "relax_dialect.nn.module:StateError",
        "YarnScaling": "relax_dialect.nn.config:YarnScaling",
        "export": "relax_dialect.nn.module:export",
        "pool_types": "relax_dialect.nn.attention:pool_types",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed
