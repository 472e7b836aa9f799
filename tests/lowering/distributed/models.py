"""Small networks with random weights."""

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from examples.models.bert import BertConfig
from examples.models.llama import LlamaConfig
from relax_dialect.builder import BlockBuilder, op, tensor
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


def mixture_of_experts(experts: int = 4, features: int = 6, hidden: int = 8) -> ModuleOp:
    """A layer in which the two best experts of each token compute; a constant has the matrices of all experts."""
    rng = np.random.default_rng(2)

    def weight(name: str, *shape: int) -> np.ndarray:
        return bb.const((rng.standard_normal(shape) / 2).astype(np.float32), name=name)

    bb = BlockBuilder()
    with bb.function("main", {"x": tensor(("tokens", features))}) as (x,):
        scores = op.nn.softmax(x @ weight("gate.weight", features, experts), axis=-1)
        values, indices = op.topk(scores, 2, axis=-1)
        one, zero = bb.prim(1.0, "f32"), bb.prim(0.0, "f32")
        gates = op.sum(op.one_hot(indices, one, zero, depth=experts) * op.expand_dims(values, [-1]), [1])
        tokens = op.expand_dims(x, [0])
        inner = op.nn.silu(op.matmul(tokens, weight("experts.up.weight", experts, features, hidden)))
        outer = op.matmul(inner, weight("experts.down.weight", experts, hidden, features))
        said = op.sum(outer * op.expand_dims(op.permute_dims(gates, [1, 0]), [-1]), [0])
        bb.emit_func_output(said + x)
    return bb.get()


def residual_network(channels: int = 4) -> ModuleOp:
    """Two residual blocks of convolutions and batch normalisation, between a first convolution and a linear layer."""
    rng = np.random.default_rng(3)
    bb = BlockBuilder()

    def weight(*shape: int) -> np.ndarray:
        return bb.const((rng.uniform(0.2, 1, shape) * rng.choice([-1, 1], shape) / 2).astype(np.float32))

    def normalised(x: object, count: int) -> object:
        statistics = [bb.const(rng.uniform(0.5, 1, count).astype(np.float32)) for _ in range(4)]
        return op.nn.batch_norm(x, *statistics, axis=1)

    with bb.function("main", {"images": tensor(("n", 3, 8, 8))}) as (images,):
        x = op.nn.relu(normalised(op.nn.conv2d(images, weight(channels, 3, 3, 3), padding=[1]), channels))
        for stride in (1, 2):
            inner = op.nn.conv2d(x, weight(channels, channels, 3, 3), padding=[1], strides=[stride])
            inner = op.nn.conv2d(op.nn.relu(normalised(inner, channels)), weight(channels, channels, 3, 3), padding=[1])
            shortcut = x if stride == 1 else op.nn.conv2d(x, weight(channels, channels, 1, 1), strides=[stride])
            x = op.nn.relu(normalised(inner, channels) + shortcut)
        pooled = op.mean(op.nn.max_pool2d(x, [2, 2], strides=[2, 2]), [2, 3])
        bb.emit_func_output(op.nn.softmax(pooled @ weight(channels, 5), axis=-1))
    return bb.get()
