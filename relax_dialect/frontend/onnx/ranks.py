"""Ranks of inputs of which a model does not say any, from what its nodes do with them.

What stays open here is for whoever imports the model to say: MatMul, Reshape, sums and the like take any rank.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from onnx import AttributeProto, GraphProto, NodeProto, ValueInfoProto

_SAME = frozenset(
    word
    for line in (
        "Abs Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization BitwiseNot Cast CastLike Ceil",
        "Celu Clip Concat Conv ConvInteger ConvTranspose Cos Cosh CumSum CumProd DequantizeLinear",
        "DepthToSpace Dropout Elu Erf Exp Floor Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool",
        "GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN",
        "LayerNormalization LeakyRelu Log LogSoftmax LpNormalization LpPool MaxPool MeanVarianceNormalization",
        "Mish Neg Not PRelu Pad QLinearConv QuantizeLinear RMSNormalization Reciprocal Relu Resize",
        "ReverseSequence Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign SpaceToDepth Split",
        "Sqrt Swish Tan Tanh ThresholdedRelu Tile Transpose Trilu Upsample",
    )
    for word in line.split()
)
"""Operators whose results have the rank of their first operand."""

_FIXED: Mapping[str, int] = {
    "DeformConv": 4,
    "DepthToSpace": 4,
    "GRU": 3,
    "Gemm": 2,
    "LSTM": 3,
    "MaxRoiPool": 4,
    "RNN": 3,
    "RoiAlign": 4,
    "SpaceToDepth": 4,
}
"""Operators whose first operand has one rank."""

_KERNEL: Mapping[str, int] = {"Conv": 1, "ConvInteger": 1, "ConvTranspose": 1, "DeformConv": 1, "QLinearConv": 3}
"""Operands with the rank of the first one: the kernels of convolutions."""


def ranks_of_use(graph: GraphProto) -> dict[str, int]:
    """The ranks of the tensors of a graph, by name, as far as the model says them or its nodes ask for them."""
    known = _said(graph)
    for node in _to_and_fro(graph.node):
        names = _alike(node)
        rank = _asked(node, known)
        if rank is None:
            rank = next((known[name] for name in names if name in known), None)
        if rank is not None:
            for name in names:
                known.setdefault(name, rank)
    return known


def _alike(node: NodeProto) -> tuple[str, ...]:
    """The first operand, and what has its rank."""
    operands = node.input if node.op_type == "Concat" else node.input[:1]
    if node.op_type not in _SAME:
        return tuple(operands)
    return (*operands, *(node.output if node.op_type == "Split" else node.output[:1]))


def _to_and_fro(nodes: Iterable[NodeProto]) -> list[NodeProto]:
    """Against their order, so that what is asked of a result reaches operands; in order, so that this reaches the other
    results of these operands; and against it again.
    """
    forward = list(nodes)
    return [*reversed(forward), *forward, *reversed(forward)]


def _said(graph: GraphProto) -> dict[str, int]:
    """What the model says: of inputs, outputs and values between, and by the constants that it has."""
    infos: tuple[ValueInfoProto, ...] = (*graph.input, *graph.value_info, *graph.output)
    known = {
        info.name: len(info.type.tensor_type.shape.dim)
        for info in infos
        if info.type.WhichOneof("value") == "tensor_type" and info.type.tensor_type.HasField("shape")
    }
    return known | {tensor.name: len(tensor.dims) for tensor in graph.initializer}


def _asked(node: NodeProto, known: Mapping[str, int]) -> int | None:
    """The rank that a node asks of its first operand; `None` if it takes several."""
    if node.op_type in _FIXED:
        return _FIXED[node.op_type]
    kernel = _operand(node, _KERNEL.get(node.op_type))
    if kernel is not None and kernel in known:
        return known[kernel]
    lists = {each.name: each for each in node.attribute if each.type == AttributeProto.INTS}
    if node.op_type == "Transpose" and "perm" in lists:
        return len(lists["perm"].ints)
    if "kernel_shape" in lists:
        return 2 + len(lists["kernel_shape"].ints)
    return None


def _operand(node: NodeProto, index: int | None) -> str | None:
    """The name of an operand, if it is there."""
    return node.input[index] or None if index is not None and index < len(node.input) else None
