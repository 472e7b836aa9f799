"""Small transformers with random weights."""

import numpy as np

from examples.models.bert import BertConfig
from examples.models.llama import LlamaConfig
from tests.support.programs import Tolerance

CLOSE = Tolerance(1e-4, 1e-4)

LLAMA_SIZES = LlamaConfig(
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=176,
    vocab_size=40,
)
BERT_SIZES = BertConfig(
    hidden_size=24,
    num_hidden_layers=1,
    num_attention_heads=4,
    intermediate_size=144,
    vocab_size=50,
    max_position_embeddings=16,
)


def bert_weights(config: BertConfig) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    hidden, wide = config.hidden_size, config.intermediate_size
    shapes = {
        "embeddings.word_embeddings.weight": (config.vocab_size, hidden),
        "embeddings.position_embeddings.weight": (config.max_position_embeddings, hidden),
        "embeddings.token_type_embeddings.weight": (2, hidden),
    }
    norms = ["embeddings.LayerNorm"]
    name = "encoder.layer.0"
    for part in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        shapes |= {f"{name}.{part}.weight": (hidden, hidden), f"{name}.{part}.bias": (hidden,)}
    shapes |= {f"{name}.intermediate.dense.weight": (wide, hidden), f"{name}.intermediate.dense.bias": (wide,)}
    shapes |= {f"{name}.output.dense.weight": (hidden, wide), f"{name}.output.dense.bias": (hidden,)}
    norms += [f"{name}.attention.output.LayerNorm", f"{name}.output.LayerNorm"]
    shapes |= {f"{norm}.{part}": (hidden,) for norm in norms for part in ("weight", "bias")}
    return {key: (rng.standard_normal(shape) / 4).astype(np.float32) for key, shape in shapes.items()}


def llama_inputs(past: int, length: int) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    cache = [rng.uniform(-1, 1, (2, past, 2, 8)).astype(np.float32) for _ in range(2)]
    return [rng.integers(0, 40, (2, length)), *cache]
