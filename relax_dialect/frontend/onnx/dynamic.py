"""Which dimensions of inputs have to stay constants where all others become symbols.

The length of a list of axes or of a shape says a rank, and the shape of a kernel how data are padded.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

_ALL: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "Expand": (1,),
    "MaxUnpool": (2,),
    "Pad": (1, 3),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
    **{
        f"Reduce{kind}": (1,)
        for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    },
}
"""Operands that are lists whose length says a rank, or how many things there are."""

_KERNELS: dict[str, int] = {
    "CausalConvWithState": 1,
    "Conv": 1,
    "ConvInteger": 1,
    "ConvTranspose": 1,
    "DeformConv": 1,
    "QLinearConv": 3,
}
"""Operands that are kernels: the dimensions after the first two say the padding."""

_LAST: dict[str, int] = {"DFT": 0, "GatherND": 1, "STFT": 0, "ScatterND": 1}
"""Operands whose last dimension says a rank, or whether numbers are real or complex."""

_CHANNELS: dict[str, int] = {"CausalConvWithState": 0}
"""Operands whose second dimension says the number of groups."""


def fixed_dimensions(nodes: Iterable[NodeProto]) -> dict[str, frozenset[int] | None]:
    """The dimensions of tensors, by name, that have to be constants; negative ones count from the back, `None` stands
    for all.
    """
    found: dict[str, frozenset[int] | None] = {}

    def fix(node: NodeProto, index: int, dims: frozenset[int] | None) -> None:
        if index < len(node.input) and node.input[index]:
            name = node.input[index]
            before = found.get(name, frozenset())
            found[name] = None if dims is None or before is None else before | dims

    for node in nodes:
        for index in _ALL.get(node.op_type, ()):
            fix(node, index, None)
        if node.op_type in _KERNELS:
            fix(node, _KERNELS[node.op_type], frozenset({2, 3, 4}))
        if node.op_type in _LAST:
            fix(node, _LAST[node.op_type], frozenset({-1}))
        if node.op_type in _CHANNELS:
            fix(node, _CHANNELS[node.op_type], frozenset({1}))
    return found
