"""Functions that emit one op each, made from the op classes: the parameters are those of the constructor.

Where the constructor takes a value, the function takes what stands for one: numbers and arrays for tensors, dimensions
for prim values, sequences of dimensions for shapes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, cast

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, OpDef, RangeLengthConstraint, RangeOf, VariadicDef

from relax_dialect.builder.emitter import BuilderError, Emitter, as_dtype, as_prim, as_shape, as_tensor, as_value
from relax_dialect.builder.expr import Expr
from relax_dialect.loading import operator_classes
from relax_dialect.struct_info.types import PrimType, ShapeType, TensorType
from tir_dialect.dims import product, to_dim

__all__ = [
    "Kind",
    "Parameter",
    "function_of",
    "has_no_result",
    "has_one_result",
    "operator_classes",
    "parameters_of",
    "takes_axis",
]


class Kind(Enum):
    """What a parameter stands for."""

    TENSOR = "tensor"
    SHAPE = "shape"
    PRIM = "prim"
    SCALAR = "tensor or prim"
    VALUE = "any value"
    DTYPE = "dtype"
    DATA = "a property, as the constructor takes it"


@dataclass(frozen=True)
class Parameter:
    """One parameter of an op's constructor."""

    source: inspect.Parameter
    kind: Kind
    several: bool
    """Whether it is a sequence of values."""
    is_list: bool = False
    """Whether it is a property that is a list of numbers or dimensions, for which one may stand."""


@cache
def parameters_of(cls: type[IRDLOperation]) -> tuple[Parameter, ...]:
    """The parameters of the constructor, without `self`."""
    definition = cls.get_irdl_definition()
    _, *sources = inspect.signature(cls.__init__).parameters.values()
    return tuple(_parameter(source, definition) for source in sources)


def _parameter(source: inspect.Parameter, definition: OpDef) -> Parameter:
    operand = dict(definition.operands).get(source.name)
    if operand is not None:
        constraint = operand.constr
        if isinstance(constraint, RangeLengthConstraint):
            constraint = constraint.constraint
        bases = constraint.constr.get_bases() if isinstance(constraint, RangeOf) else None
        return Parameter(source, _KINDS.get(frozenset(bases or ()), Kind.VALUE), isinstance(operand, VariadicDef))
    if source.annotation in ("Attribute", "Attribute | None"):
        return Parameter(source, Kind.DTYPE, False)
    is_list = source.annotation.removesuffix(" | None") in ("Sequence[int]", "Sequence[DimLike]")
    return Parameter(source, Kind.DATA, False, is_list)


_KINDS: dict[frozenset[type[Attribute]], Kind] = {
    frozenset({TensorType}): Kind.TENSOR,
    frozenset({ShapeType}): Kind.SHAPE,
    frozenset({PrimType}): Kind.PRIM,
    frozenset({TensorType, PrimType}): Kind.SCALAR,
}


def has_one_result(cls: type[IRDLOperation]) -> bool:
    """Whether the op always has exactly one result."""
    results = cls.get_irdl_definition().results
    return len(results) == 1 and not isinstance(results[0][1], VariadicDef)


def has_no_result(cls: type[IRDLOperation]) -> bool:
    """Whether the op never has a result."""
    return not cls.get_irdl_definition().results


def takes_axis(parameters: Sequence[Parameter]) -> bool:
    """Whether a list of axes may be called `axis`, as in NumPy."""
    return any(each.source.name == "axes" and each.is_list for each in parameters) and not any(
        each.source.name == "axis" for each in parameters
    )


def function_of(cls: type[IRDLOperation]) -> Callable[..., Any]:
    """The function that emits an op of the class; gives its result, or a tuple of its results."""
    parameters = parameters_of(cls)
    signature = inspect.Signature([parameter.source for parameter in parameters])
    shown = inspect.Signature([each.source.replace(annotation=inspect.Parameter.empty) for each in parameters])

    shown_name = cls.name.replace("relax", "op", 1)
    may_take_axis = takes_axis(parameters)

    def emit(*args: Any, **kwargs: Any) -> Any:
        if may_take_axis and "axis" in kwargs and "axes" not in kwargs:  # as in NumPy, and in texts
            kwargs["axes"] = kwargs.pop("axis")
        try:
            given = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{shown_name}{shown}: {error}") from error
        if cls.name == "relax.reshape":
            given.arguments["shape"] = filled_in(given.arguments["x"], given.arguments["shape"])
        builder = builder_of(given.arguments.values())
        dtype = _dtype_of_numbers(given.arguments)
        for parameter in parameters:
            if parameter.source.name in given.arguments:
                value = given.arguments[parameter.source.name]
                try:
                    given.arguments[parameter.source.name] = _convert(builder, parameter, value, dtype)
                except _NotAList as error:
                    raise TypeError(f"{shown_name}: {parameter.source.name} expected {error}") from None
        made = builder.insert(cls(*given.args, **given.kwargs))
        if has_no_result(cls):
            return None
        return (
            Expr(builder, made.results[0])
            if has_one_result(cls)
            else tuple(Expr(builder, each) for each in made.results)
        )

    emit.__name__ = emit.__qualname__ = cls.name.rpartition(".")[2]
    emit.__doc__ = cls.__doc__
    return emit


def builder_of(arguments: Any) -> Emitter:
    """The builder of the first expression among the arguments, else the one whose function is open."""
    for expr in _expressions(arguments):
        return expr.builder
    return Emitter.current()


def _expressions(arguments: Any) -> Iterator[Expr]:
    for argument in arguments:
        if isinstance(argument, Expr):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from _expressions(cast("Sequence[Any]", argument))


class _NotAList(Exception):
    """What a list was expected to be, and what was given."""


def _convert(builder: Emitter, parameter: Parameter, argument: Any, dtype: Attribute | None) -> Any:
    if parameter.is_list and argument is not None:
        if isinstance(argument, str):
            raise _NotAList(f"a number or a list of numbers, got {argument!r}")
        return argument if hasattr(argument, "__iter__") else [argument]
    if parameter.kind is Kind.DATA or argument is None:
        return argument
    if parameter.kind is Kind.DTYPE:
        return as_dtype(argument)
    if parameter.several:
        if isinstance(argument, Expr) and isinstance(argument.type, TensorType):
            raise _NotAList(f"a list of values, such as [x, y], got one of {argument.type}")
        return [_value(builder, parameter.kind, each, dtype) for each in argument]
    return _value(builder, parameter.kind, argument, dtype)


def _value(builder: Emitter, kind: Kind, argument: Any, dtype: Attribute | None) -> SSAValue:
    if kind is Kind.TENSOR:
        return as_tensor(builder, argument, dtype)
    if kind is Kind.SHAPE:
        return as_shape(builder, argument)
    if kind is Kind.PRIM:
        return as_prim(builder, argument)
    return as_prim(builder, argument, dtype) if kind is Kind.SCALAR else as_value(builder, argument)


def _dtype_of_numbers(arguments: Mapping[str, Any]) -> Attribute | None:
    """The dtype that numbers take: the one asked for, that of `x` or `y`, or that of any other tensor."""
    if (asked := arguments.get("dtype")) is not None:
        return as_dtype(asked)
    ordered = (arguments.get("x"), arguments.get("y"), *arguments.values())
    dtypes = (expr.type.dtype for expr in _expressions(ordered) if isinstance(expr.type, TensorType))
    return next((dtype for dtype in dtypes if dtype is not None), None)


def filled_in(tensor: object, shape: object) -> object:
    """The new shape of a tensor, in which a -1 is what the other lengths leave; any other shape as it is.

    `BuilderError` for a second -1, or for a tensor with a dimension of which nothing is known.
    """
    if not isinstance(shape, list | tuple):
        return shape
    lengths = list(cast("Sequence[Any]", shape))
    positions = [index for index, length in enumerate(lengths) if isinstance(length, int) and length == -1]
    if not positions:
        return lengths
    if len(positions) > 1:
        raise BuilderError(f"reshape: expected at most one -1, got {len(positions)}")
    info = tensor.type if isinstance(tensor, Expr) else None
    known = info.known_dims if isinstance(info, TensorType) else None
    if known is None:
        raise BuilderError(f"reshape: -1 needs a tensor of known dimensions, got {info}: use match_cast first")
    rest = product(to_dim(length) for index, length in enumerate(lengths) if index != positions[0])
    if rest.constant_value == 0:
        raise BuilderError("reshape: -1 beside a length of 0 may be anything")
    lengths[positions[0]] = product(known) // rest
    return lengths
