"""Calls of operators with the names and the order of parameters that TVM's have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from relax_dialect.builder.operator_functions import Kind, Parameter, parameters_of
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.types import PrimType, TensorType
from relax_dialect.tvmscript.parameters import PARAMETERS
from relax_dialect.tvmscript.types import attribute_text
from tir_dialect.attributes import DimAttr
from tir_dialect.tvmscript.errors import refuse
from tir_dialect.tvmscript.text import dtype_text

SYMBOLIC = frozenset({"relax.strided_slice"})
"""Operators of which TVM takes expressions of symbols as properties."""

NUMBERS = frozenset({"relax.one_hot", "relax.topk"})
"""Operators of which TVM has numbers where ours take values."""

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
    "shape": ("newshape", "dst_shape"),
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
    if value is None:
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
