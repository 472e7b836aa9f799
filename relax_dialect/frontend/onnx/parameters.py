"""The types of a model's inputs: from what the model says, what whoever imports it says, and what its nodes ask for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property
from operator import index
from typing import TypeAlias

from onnx import (
    AttributeProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
    ValueInfoProto,
)
from xdsl.dialects.builtin import i64

from relax_dialect.frontend.onnx.values import Refusal, element_type
from relax_dialect.struct_info.types import ObjectType, TensorType
from tir_dialect.dims import Dim, constant, is_symbol_name, symbol

_SAME = frozenset(
    word
    for line in (
        "Abs Acos Acosh Asin Asinh Atan Atanh AveragePool BatchNormalization BitwiseNot Cast CastLike Ceil",
        "Celu Clip Concat Conv ConvInteger ConvTranspose Cos Cosh CumSum CumProd DequantizeLinear",
        "DepthToSpace Dropout Elu Erf Exp Floor Gelu GlobalAveragePool GlobalLpPool GlobalMaxPool",
        "GroupNormalization HardSigmoid HardSwish Hardmax Identity InstanceNormalization IsInf IsNaN LRN",
        "LayerNormalization LeakyRelu Log LogSoftmax LpNormalization LpPool MaxPool MeanVarianceNormalization",
        "Mish Neg Not PRelu Pad QLinearConv QuantizeLinear RMSNormalization Reciprocal Relu Resize",
        "ReverseSequence Round Selu Shrink Sigmoid Sign Sin Sinh Slice Softmax Softplus Softsign SpaceToDepth Split",
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
    # Against their order, so that what is required of a result reaches operands; in order, so that
    # this reaches the other results of these operands; and against it again.
    forward = list(graph.node)
    for node in [*reversed(forward), *forward, *reversed(forward)]:
        # The first operand, and what has its rank.
        operands = node.input if node.op_type == "Concat" else node.input[:1]
        if node.op_type not in _SAME:
            names = tuple(operands)
        else:
            names = (*operands, *(node.output if node.op_type == "Split" else node.output[:1]))
        rank = _asked(node, known)
        if rank is None:
            rank = next((known[name] for name in names if name in known), None)
        if rank is not None:
            for name in names:
                known.setdefault(name, rank)
    return known


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


def _operand(node: NodeProto, at: int | None) -> str | None:
    """The name of an operand, if it is there."""
    return node.input[at] or None if at is not None and at < len(node.input) else None


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

_LISTS = frozenset(
    word
    for line in (
        "Abs Add Cast CastLike Ceil Clip Concat Div Equal Expand Floor Gather Greater Identity Less Max Min Mod Mul",
        "Neg Pow Reshape Round ScatterElements ScatterND Slice Sqrt Squeeze Sub Transpose Unsqueeze Where",
    )
    for word in line.split()
)
"""Operators of which such a list is made: as many numbers as in their operands."""

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

    def fix(node: NodeProto, operand: int, dims: frozenset[int] | None) -> None:
        if operand < len(node.input) and node.input[operand]:
            name = node.input[operand]
            before = found.get(name, frozenset())
            found[name] = None if dims is None or before is None else before | dims

    for node in reversed(list(nodes)):  # what lists are made of is met after them
        for operand in _ALL.get(node.op_type, ()):
            fix(node, operand, None)
        if node.op_type in _LISTS and any(name and found.get(name, frozenset()) is None for name in node.output):
            for operand in range(len(node.input)):
                fix(node, operand, None)
        if node.op_type in _KERNELS:
            fix(node, _KERNELS[node.op_type], frozenset({2, 3, 4}))
        if node.op_type in _LAST:
            fix(node, _LAST[node.op_type], frozenset({-1}))
        if node.op_type in _CHANNELS:
            fix(node, _CHANNELS[node.op_type], frozenset({1}))
    return found


UNKNOWN = -1
"""What some exporters write for a dimension that they do not know."""

MAX_INPUT = 1 << 40
"""No input has so many elements along a dimension."""

GivenShape: TypeAlias = "Sequence[int | str | None]"
"""A number or the name of a symbol for each dimension; `None` for what the model says, or a symbol."""

GivenShapes: TypeAlias = "Mapping[str, GivenShape] | Sequence[GivenShape | None]"
"""Shapes of inputs, by name or in their order."""


@dataclass
class Parameters:
    """The inputs of a graph that have no initializer, and their types."""

    graph: GraphProto
    dynamic: bool = False
    """Whether every dimension of an input that the graph leaves open is a symbol."""
    given: GivenShapes = ()
    """What whoever imports the model says of the shapes."""
    encoded: AbstractSet[str] = frozenset()
    """Inputs of strings of which a program has the positions in a list."""
    _names: dict[str, str] = field(default_factory=dict[str, str])
    """Symbols by `dim_param`."""

    def types(self) -> dict[str, TensorType | ObjectType]:
        """The types by name; raises `Refusal`.

        A sequence is one tensor of all items along its first axis; of an optional value only one that is there is
        given; strings are objects, or `i64` where they are positions in a list.
        """
        with_elements = {tensor.name for tensor in self.graph.initializer}
        inputs = [each for each in self.graph.input if each.name not in with_elements]
        fixed = fixed_dimensions(self.graph.node) if self.dynamic else {}
        # The shapes that are given, by name.
        names = [each.name for each in inputs]
        if not isinstance(self.given, Mapping):
            given = {name: shape for name, shape in zip(names, self.given, strict=False) if shape is not None}
        else:
            for name in self.given:
                if name not in names:
                    raise Refusal(f"a shape is given for {name}, but the inputs are {', '.join(names)}")
            given = dict(self.given)
        unknown = [each.name for each in inputs if self._rank(each, given.get(each.name)) is None]
        if unknown:
            raise Refusal(_no_rank(unknown))
        return {each.name: self._type(each, given.get(each.name), fixed.get(each.name, frozenset())) for each in inputs}

    def _rank(self, info: ValueInfoProto, given: GivenShape | None) -> int | None:
        """How many dimensions an input has."""
        kind, depth = _without_wrappers(info.type)
        if kind.WhichOneof("value") != "tensor_type" or kind.tensor_type.HasField("shape"):
            return len(kind.tensor_type.shape.dim) + depth
        if kind.tensor_type.elem_type == TensorProto.STRING and info.name not in self.encoded:
            return 0
        return len(given) if given is not None else None if depth else self._ranks_of_use.get(info.name)

    @cached_property
    def _ranks_of_use(self) -> dict[str, int]:
        return ranks_of_use(self.graph)

    def _type(
        self, info: ValueInfoProto, given: GivenShape | None, fixed: frozenset[int] | None
    ) -> TensorType | ObjectType:
        kind, depth = _without_wrappers(info.type)
        name = kind.WhichOneof("value")
        if name != "tensor_type" or depth > 1:
            what = "sequence of sequences" if depth > 1 else (name or "value").removesuffix("_type")
            raise Refusal(f"the input {info.name} is a {what}; tensors and sequences of them are supported")
        if kind.tensor_type.elem_type == TensorProto.STRING and info.name not in self.encoded:
            return ObjectType()
        rank = self._rank(info, given) or 0
        open_ = TensorShapeProto.Dimension()
        said = [*[open_] * depth, *kind.tensor_type.shape.dim] if kind.tensor_type.HasField("shape") else [open_] * rank
        if given is not None and len(given) != rank:
            raise Refusal(f"the input {info.name} has rank {rank}, but a shape of rank {len(given)} is given")
        dims = [
            self._dim(dim, info.name, at, fixed is None or at in fixed or at - rank in fixed)
            if given is None or (wanted := given[at]) is None
            else self._wanted(wanted, info.name, at)
            for at, dim in enumerate(said)
        ]
        return TensorType(dims, i64 if info.name in self.encoded else element_type(kind.tensor_type.elem_type))

    def _dim(self, dim: TensorShapeProto.Dimension, name: str, at: int, fixed: bool) -> Dim:
        if dim.HasField("dim_value") and dim.dim_value != UNKNOWN:
            known = self._number(dim.dim_value, name, at)
            if not self.dynamic or fixed:
                return known
        # Some exporters write "?" for every dimension that they do not know; that is no name.
        named = any(letter.isalnum() for letter in dim.dim_param)
        return self._symbol(dim.dim_param if named else f"{name}_{at}")

    def _wanted(self, dim: int | str, name: str, at: int) -> Dim:
        return self._symbol(dim) if isinstance(dim, str) else self._number(index(dim), name, at)

    def _number(self, value: int, name: str, at: int) -> Dim:
        if not 0 <= value < MAX_INPUT:
            raise Refusal(f"dimension {at} of the input {name} is {value}")
        return constant(value)

    def _symbol(self, key: str) -> Dim:
        if key not in self._names:
            clean = re.sub(r"\W", "_", key, flags=re.ASCII)
            name = clean if is_symbol_name(clean) else f"n_{clean}"
            used = set(self._names.values())
            self._names[key] = name if name not in used else next(made for made in _numbered(name) if made not in used)
        return symbol(self._names[key])


def is_sequence(info: ValueInfoProto) -> bool:
    """Whether an input is a sequence of tensors, perhaps an optional one."""
    return _without_wrappers(info.type)[1] == 1


def _without_wrappers(kind: TypeProto) -> tuple[TypeProto, int]:
    """The type of the tensors of an input, and how many sequences are around them."""
    depth = 0
    while (wrapper := kind.WhichOneof("value")) in ("sequence_type", "optional_type"):
        depth += wrapper == "sequence_type"
        kind = kind.sequence_type.elem_type if wrapper == "sequence_type" else kind.optional_type.elem_type
    return kind, depth


def _no_rank(names: Sequence[str]) -> str:
    """What is missing, and how to say it."""
    inputs = f"the input {names[0]} is" if len(names) == 1 else f"the inputs {', '.join(names)} are"
    return (
        f"the rank of {inputs} not known, and the nodes that use it take any: give a shape with "
        f"import_model(..., shapes={{{names[0]!r}: ['n', 4]}}) or --shape '{names[0]}=[n, 4]'"
    )


def _numbered(name: str) -> Iterator[str]:
    index = 1
    while True:
        yield f"{name}_{index}"
        index += 1
