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

from relax_dialect.nn.attention import Attention
from relax_dialect.nn.decoder import Decoder, DecoderConfig
from relax_dialect.nn.decoder_program import DecoderProgram
from relax_dialect.nn.layers import MLP, Embedding, GatedMLP, LayerNorm, Linear, RMSNorm
from relax_dialect.nn.module import Module, ModuleList, Parameter, StateError, export
from relax_dialect.nn.paged_cache import CACHE_FORMATS, PAGE, Batch, CacheFormat, KVCache, OneSequence
from relax_dialect.nn.rotary import LinearScaling, Llama3Scaling, RotaryEmbedding, YarnScaling

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
    "GatedMLP",
    "KVCache",
    "LayerNorm",
    "Linear",
    "LinearScaling",
    "Llama3Scaling",
    "Module",
    "ModuleList",
    "OneSequence",
    "Parameter",
    "RMSNorm",
    "RotaryEmbedding",
    "StateError",
    "YarnScaling",
    "export",
]
