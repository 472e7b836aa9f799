"""Types, dimensions and plain values as text, and calls of operators.

Names and the order of parameters are those that TVM's operators have, by a table of the operators of TVM 0.27.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from relax_dialect.builder.operator_functions import Kind, Parameter, parameters_of
from relax_dialect.ops.control_flow import ForOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.types import FuncType, ObjectType, PrimType, Shape, ShapeType, TensorType, TupleType
from tir_dialect.dtypes import is_dtype
from tir_dialect.tvmscript.text import dim_text, dtype_text, refuse, tuple_of
from tir_dialect.types import DimAttr


def type_text(info: Attribute, op: Operation) -> str:
    """A type, in an annotation or an argument; `ScriptError` at the op for one that TVM has not."""
    match info:
        case TensorType():
            return _tensor(info, op)
        case ShapeType():
            if info.dims is None:
                return "R.Shape(ndim=-1)" if info.rank is None else f"R.Shape(ndim={info.rank})"
            return f"R.Shape([{', '.join(_dims(info.dims, op))}])"
        case PrimType():
            return f"T.{dtype_text(info.dtype)}"
        case TupleType():
            return f"R.Tuple({', '.join(type_text(field, op) for field in info.fields)})"
        case FuncType() if not info.opaque and not info.symbols:
            params = ", ".join(type_text(param, op) for param in info.params)
            return (
                f"R.Callable(({params}{',' if len(info.params) == 1 else ''}), {type_text(info.ret, op)}, {info.pure})"
            )
        case ObjectType():
            return "R.Object"
        case _:
            raise refuse(op, f"TVM has no type {info}")


def _tensor(info: TensorType, op: Operation) -> str:
    if info.sharding is not None:
        raise refuse(op, "the sharding of a type is not written")
    parts: list[str] = []
    if info.dims is not None and None not in info.dims:
        parts.append(tuple_of(_dims(info.dims, op)) if info.dims else "()")
    dtype = [] if info.dtype is None else [f'dtype="{dtype_text(info.dtype)}"']
    if not parts and info.rank is not None:
        if info.dims is not None and any(dim is not None for dim in info.dims):
            raise refuse(op, f"TVM has no type with known dimensions beside unknown ones: {info}")
        return f"R.Tensor({', '.join([*dtype, f'ndim={info.rank}'])})"
    return f"R.Tensor({', '.join([*parts, *dtype])})"


def _dims(dims: Shape, op: Operation) -> list[str]:
    found = [] if dims is None else [None if dim is None else dim_text(dim).text for dim in dims]
    known = [text for text in found if text is not None]
    if len(known) != len(found):
        raise refuse(op, "TVM has no shape with unknown dimensions beside known ones")
    return known


def attribute_text(attribute: Attribute, op: Operation) -> str:
    """A property as an argument."""
    match attribute:
        case IntegerAttr():
            return (
                str(bool(attribute.value.data)) if dtype_text(attribute.type) == "bool" else str(attribute.value.data)
            )
        case FloatAttr():
            return float_text(attribute.value.data)
        case StringAttr():
            return quoted(attribute.data)
        case UnitAttr():
            return "True"
        case DimAttr():
            return dim_text(attribute.data).text
        case ArrayAttr():
            items: Sequence[Any] = attribute.data
            return f"[{', '.join(attribute_text(each, op) for each in items)}]"
        case _ if is_dtype(attribute):
            return f'"{dtype_text(attribute)}"'
        case _:
            values = getattr(attribute, "get_values", None)
            if values is None:
                raise refuse(op, f"there is no text for {attribute}")
            return str(list(values()))


def float_text(value: float) -> str:
    """A float, also one that Python has no literal for."""
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def quoted(text: str) -> str:
    """A string of Python, in double quotes as TVM writes them."""
    return json.dumps(text, ensure_ascii=False)


_OPERATORS: Mapping[str, str] = {
    (
        "add atan2 bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater "
        "greater_equal left_shift less less_equal log_add_exp logical_and logical_or logical_xor maximum "
        "minimum mod multiply not_equal power right_shift subtract outer"
    ): "x1 x2",
    "arange": "start end step dtype",
    "argsort": "data axis descending dtype",
    "bucketize": "input_tensor boundaries out_int32 right",
    "clip": "x min max",
    "concat stack": "tensors axis",
    "cumsum cumprod": "data axis dtype exclusive",
    "dynamic_strided_slice": "x begin end strides",
    "einsum": "operands subscripts",
    "ewise_fma": "x1 x2 x3",
    "expand_dims squeeze": "x axis",
    "eye": "n m k dtype",
    "eye_like": "x k dtype",
    (
        "flatten nonzero abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp floor "
        "isfinite isinf isnan log logical_not negative round rsqrt sigmoid sign sin sinh sqrt square tan tanh "
        "trunc"
    ): "x",
    "full": "shape fill_value dtype",
    "full_like": "x fill_value dtype",
    "gather_elements": "data indices axis",
    "gather_nd": "data indices batch_dims",
    "grad.max_pool2d_backward grad.avg_pool2d_backward": (
        "output_grad data pool_size strides padding dilation ceil_mode count_include_pad layout out_layout"
    ),
    "image.resize2d": (
        "data size roi layout method coordinate_transformation_mode rounding_method cubic_alpha cubic_exclude "
        "extrapolation_value out_dtype"
    ),
    "index_put": "data indices values accumulate",
    "index_tensor": "data indices",
    "matmul": "x1 x2 out_dtype",
    "meshgrid": "tensors indexing",
    "multinomial_from_uniform": "prob uniform_sample sample_indices dtype",
    "nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d": "data output_size layout out_layout",
    "nn.attention nn.attention_bias": "query key value bias scale causal_mask window_size",
    "nn.batch_norm": "data gamma beta moving_mean moving_var axis epsilon center scale momentum training",
    "nn.conv1d nn.conv2d nn.conv3d": (
        "data weight strides padding dilation groups data_layout kernel_layout out_layout out_dtype"
    ),
    "nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose": (
        "data weight strides padding output_padding dilation groups data_layout kernel_layout out_layout out_dtype"
    ),
    "nn.dropout": "data rate",
    "nn.group_norm": "data gamma beta num_groups channel_axis axes epsilon center scale",
    "nn.instance_norm": "data gamma beta channel_axis axes epsilon center scale",
    "nn.layer_norm": "data gamma beta axes epsilon center scale",
    "nn.leakyrelu": "data alpha",
    "nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d": (
        "data pool_size strides padding dilation ceil_mode count_include_pad layout out_layout"
    ),
    "nn.pad": "data pad_width pad_mode pad_value",
    "nn.pixel_shuffle": "data upscale_factor",
    "nn.prelu": "data alpha axis",
    "nn.relu nn.gelu nn.gelu_tanh nn.silu nn.selu nn.batch_flatten": "data",
    "nn.rms_norm": "data weight axes epsilon",
    "nn.softmax nn.log_softmax flip": "data axis",
    "nn.softplus": "data beta threshold",
    "one_hot": "indices on_value off_value depth axis",
    "permute_dims": "x axes",
    "quantize dequantize": "data scale zero_point axis out_dtype",
    "repeat": "data repeats axis",
    "reshape broadcast_to": "x shape",
    "reverse_sequence": "data seq_lengths seq_axis batch_axis",
    "scatter_elements": "data indices updates axis reduction",
    "scatter_nd": "data indices updates reduction",
    "shape_of tensor_to_shape shape_to_tensor": "expr",
    "slice_scatter": "input_tensor src start end step axis",
    "sort": "x axis descending",
    "split": "x indices_or_sections axis",
    "strided_slice": "x axes begin end strides assume_inbound",
    "sum prod max min mean variance std median argmax argmin": "x axis keepdims",
    "take": "x indices axis mode",
    "tile": "data repeats",
    "topk": "data k axis ret_type largest dtype",
    "tril triu": "x k",
    "unique": "x sorted return_index return_inverse return_counts axis",
    "vision.get_valid_counts": "data score_threshold id_index score_index",
    "where": "condition x1 x2",
    "zeros ones": "shape dtype",
    "zeros_like ones_like astype": "x dtype",
}
"""The parameters of operators, of those that have the same ones together."""

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    name: tuple(parameters.split()) for names, parameters in _OPERATORS.items() for name in names.split()
}
"""The parameters of each operator."""


SYMBOLIC = frozenset({"relax.strided_slice"})
"""Operators of which TVM takes expressions of symbols as properties."""

NUMBERS = frozenset({"relax.one_hot", "relax.topk"})
"""Operators of which TVM has numbers where ours take values."""

TENSORS = frozenset({"relax.full", "relax.full_like"})
"""Operators of which TVM has tensors of rank 0 where ours take numbers."""

ValueText = Callable[[SSAValue], str]

RENAMED: Mapping[str, Sequence[str]] = {
    "x": ("data", "x1", "lhs", "input", "input_tensor", "expr"),
    "y": ("x2", "rhs"),
    "z": ("x3",),
    "w": ("weight",),
    "q": ("query",),
    "k": ("key",),
    "v": ("value",),
    "axes": ("axis",),
    "axis": ("axes",),
    "value": ("fill_value",),
    "stop": ("end",),
    "slope": ("alpha",),
    "shape": ("newshape", "dst_shape", "expr"),
    "mean": ("moving_mean",),
    "variance": ("moving_var",),
    "rows": ("n", "sample_indices"),
    "columns": ("m",),
    "off": ("off_value",),
    "on": ("on_value",),
    "inputs": ("operands", "tensors"),
    "vectors": ("tensors",),
    "dtype": ("out_dtype",),
    "mode": ("pad_mode",),
    "probabilities": ("prob",),
    "gradient": ("output_grad",),
    "rounding": ("rounding_method",),
    "lengths": ("seq_lengths",),
    "source": ("src",),
    "uniform": ("uniform_sample",),
    "coordinates": ("coordinate_transformation_mode",),
    "indices": ("data",),
}
"""What TVM calls a parameter that it does not call as we do, in order of preference."""

FIRST_OF: Mapping[str, Sequence[str]] = {"relax.nn.batch_norm": ["training=False"], "relax.nn.dropout": []}
"""Operators of which TVM's has more results than ours, the first, with the arguments that make it so."""


def operator_text(op: IRDLOperation, name: Callable[[SSAValue], str]) -> str:
    """The call that makes an operator; `ScriptError` for one that TVM has not, or not with these properties.

    `name` is the text of a value.
    """
    operator = op.name.removeprefix("relax.")
    special = _SPECIAL.get(operator)
    if special is not None:
        return special(op, name)
    if operator not in PARAMETERS:
        raise refuse(op, "TVM 0.27 has no such operator")
    arguments = _arguments(op, PARAMETERS[operator], name)
    return f"R.{operator}({', '.join([*arguments, *FIRST_OF.get(op.name, ())])})"


def _arguments(op: IRDLOperation, theirs: Sequence[str], name: ValueText, without: Sequence[str] = ()) -> list[str]:
    """Our arguments by their parameters: those at the beginning by position, then by keyword."""
    found: dict[str, str] = {}
    for parameter in parameters_of(type(op)):
        own = parameter.source.name
        text = None if own in without else _argument(op, parameter, name)
        if text is None:
            continue
        called = next((each for each in (own, *RENAMED.get(own, ())) if each in theirs and each not in found), None)
        if called is not None:
            found[called] = text
        elif not _is_default(op, parameter):
            raise refuse(op, f"TVM's operator has no parameter for {own} = {text}")
    positional = 0
    while positional < len(theirs) and theirs[positional] in found:
        positional += 1
    first = [found.pop(each) for each in theirs[:positional]]
    return [*first, *(f"{called}={text}" for called, text in found.items())]


def _argument(op: IRDLOperation, parameter: Parameter, name: ValueText) -> str | None:
    """The text of an operand or property; `None` if it has none. What is only present says itself if it is not."""
    own = parameter.source.name
    opposite = next((each for each in (f"no_{own}", f"un{own}") if hasattr(op, each)), None)
    if opposite is not None:
        return str(getattr(op, opposite) is None)
    value = getattr(op, own)
    if value is None:
        return "False" if parameter.source.default is False else None
    if parameter.kind in (Kind.DTYPE, Kind.DATA):
        if op.name not in SYMBOLIC and _is_symbolic(value):
            raise refuse(op, f"TVM's {own} is a number, which is known when the program is compiled")
        return attribute_text(cast("Attribute", value), op)
    if parameter.several:
        items = [name(each) for each in cast("Sequence[SSAValue]", value)]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    operand = cast("SSAValue", value)
    if op.name in NUMBERS and isinstance(operand.type, PrimType) and not isinstance(operand.owner, PrimOp):
        raise refuse(op, f"TVM's {own} is a number, which is known when the program is compiled")
    if op.name in NUMBERS and isinstance(operand.owner, PrimOp) and _is_symbolic(operand.owner.value):
        raise refuse(op, f"TVM's {own} is a number, which is known when the program is compiled")
    if op.name in TENSORS and isinstance(operand.type, PrimType):
        # A number where TVM takes nothing but a tensor of rank 0.
        if isinstance(operand.owner, PrimOp) and not isinstance(operand.owner.value, DimAttr):
            return _tensor_text(operand, name)
        counts = isinstance(operand.owner, Block) and isinstance(operand.owner.parent_op(), ForOp)
        if not counts and operand.type.value is None:
            raise refuse(op, "it takes a number that no dimension says, where TVM's operator takes a tensor")
        return f"R.reshape(R.shape_to_tensor(R.shape([{name(operand)}])), R.shape([]))"
    return name(operand) if parameter.kind in (Kind.PRIM, Kind.SHAPE) else _tensor_text(operand, name)


def _is_symbolic(value: object) -> bool:
    """Whether a property has a dimension that is no number."""
    if isinstance(value, ArrayAttr):
        return any(map(_is_symbolic, cast("ArrayAttr[Attribute]", value)))
    return isinstance(value, DimAttr) and not value.data.is_constant


def _tensor_text(value: SSAValue, name: ValueText) -> str:
    """A tensor, or a number where TVM has a tensor of rank 0."""
    number = value.owner.value if isinstance(value.owner, PrimOp) else None
    if isinstance(number, IntegerAttr | FloatAttr):
        return f'R.const({attribute_text(number, cast("PrimOp", value.owner))}, "{dtype_text(number.type)}")'
    return name(value)


def _is_default(op: IRDLOperation, parameter: Parameter) -> bool:
    """Whether a property has the value that the constructor gives it."""
    value = getattr(op, parameter.source.name, None)
    default = parameter.source.default
    if value is None or (parameter.several and not value):
        return True
    if not isinstance(value, Attribute) or default is parameter.source.empty:
        return False
    text = attribute_text(value, op)
    wanted: Any = list(cast("tuple[Any, ...]", default)) if isinstance(default, tuple) else default
    return text in (repr(wanted), str(wanted), repr(float(wanted)) if isinstance(wanted, int) else "")


def _split(op: IRDLOperation, name: ValueText) -> str:
    """By the number of parts, or by where they begin."""
    sections = op.properties.get("sections")
    where = (
        str(sections.value.data) if isinstance(sections, IntegerAttr) else attribute_text(op.properties["indices"], op)
    )
    return f"R.split({name(op.operands[0])}, {where}, axis={_property(op, 'axis')})"


def _index_put(op: IRDLOperation, name: ValueText) -> str:
    """With an index for each dimension."""
    x, *rest = op.operands
    if isinstance(x.type, TensorType) and len(rest) - 1 != x.type.rank:
        raise refuse(op, "TVM's operator has an index for each dimension")
    return f"R.index_put({', '.join(_arguments(op, PARAMETERS['index_put'], name))})"


def _topk(op: IRDLOperation, name: ValueText) -> str:
    arguments = _arguments(op, PARAMETERS["topk"], name, without=("smallest", "ret_type"))
    kind = "both" if len(op.results) > 1 else _property(op, "ret_type").strip('"')
    largest = _property(op, "smallest") != "True"
    return f'R.topk({", ".join(arguments)}, ret_type="{kind}", largest={largest})'


def _size(op: IRDLOperation, name: ValueText) -> str:
    raise refuse(op, "TVM's operator gives a tensor where this one gives a number")


def _property(op: Operation, key: str) -> str:
    value = op.properties.get(key)
    return "None" if value is None else attribute_text(value, op)


_SPECIAL: Mapping[str, Callable[[IRDLOperation, ValueText], str]] = {
    "index_put": _index_put,
    "size": _size,
    "split": _split,
    "topk": _topk,
}
