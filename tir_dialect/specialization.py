"""Specialisation of PrimFuncs for known sizes and scalars: TVM's `PrimFunc.specialize`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, ArrayAttr, FloatAttr, IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from tir_dialect.analysis.fingerprint import rename_symbols
from tir_dialect.dims import Dim, DimLike, MatchError, constant, match, to_dim
from tir_dialect.dtypes import scalar_type
from tir_dialect.ops.arithmetic import DimOp
from tir_dialect.ops.function import PrimFuncOp, require_prim_func
from tir_dialect.types import BufferType, SymbolAttr

Known: TypeAlias = "DimLike | float | Sequence[DimLike]"
"""A size: a number, or a dimension over the other sizes; the number of a scalar parameter; the shape of a buffer."""


def specialize(func: PrimFuncOp, values: Mapping[str, Known]) -> PrimFuncOp:
    """A copy of `func` for known values of sizes and scalar parameters, by name.

    ```python
    specialize(matmul, {"n": 128})            # @matmul[%k, %m](%A: !tir.buffer<[128, k], f32>, ...)
    specialize(matmul, {"n": "4 * k"})        # a size as a dimension over the others
    specialize(matmul, {"A": [128, 64]})      # the shape of a buffer says what n and k are
    specialize(scale, {"factor": 2.0})        # a number instead of a parameter
    ```

    Known sizes and scalars are no longer parameters. Loops over them have constant extents, so that more can be proved,
    unrolled and vectorised. The new function has the same name and is in no module.

    Raises `ValueError` for unknown names, sizes out of their bounds, scalars that the parameter's type cannot hold,
    shapes that contradict each other or do not determine a size, and values with which an access would be out of
    bounds; `TypeError` for values without names.
    """
    require_prim_func("specialize", func)
    if not isinstance(cast("object", values), Mapping):
        raise TypeError(f"specialize: expected values by name, got {values!r}")
    made = func.clone()
    sizes = {name: to_dim(value) for name, value in values.items() if name in func.symbol_names and _is_dim(value)}
    others = {name: value for name, value in values.items() if name not in sizes}
    params = {param.name_hint or "": param for param in made.params}
    for name, value in others.items():
        if name in func.symbol_names:
            raise _error(func, f"expected a number or a dimension for the size {name}, got {value}")
        if (param := params.get(name)) is None:
            known = ", ".join([*func.symbol_names, *params])
            raise _error(func, f"has the sizes and parameters {known}, got a value for {name}")
        if not isinstance(param.type, BufferType):
            _replace_param(func, made, param, value)
    sizes |= _told_by(func, others, sizes)
    left = [name for name in func.symbol_names if name not in sizes]
    for symbol in func.symbols:
        if (value := sizes.get(symbol.symbol.data)) is None:
            continue
        if unknown := value.symbols.difference(left):
            raise _error(func, f"expected a size over {', '.join(left) or 'nothing'}, got {value} with {min(unknown)}")
        low, high = symbol.interval
        number = value.constant_value
        if number is not None and (number < low or (high is not None and number > high)):
            end = "_" if high is None else high
            raise _error(func, f"expected {symbol.symbol.data} in [{low}, {end}], got {number}")
    _replace_sizes(made, sizes)
    try:
        made.verify()
    except VerifyException as error:
        raise _error(func, f"cannot be for {_text(sizes)}: {error}") from error
    return made


def _is_dim(value: Known) -> TypeGuard[DimLike]:
    return isinstance(value, Dim | int | str) and not isinstance(value, bool)


def _told_by(func: PrimFuncOp, shapes: Mapping[str, Known], sizes: Mapping[str, Dim]) -> dict[str, Dim]:
    """The sizes determined by the shapes of buffers."""
    patterns: list[Dim] = []
    numbers: list[int] = []
    for param in func.buffer_params:
        if (shape := shapes.get(param.name_hint or "")) is None:
            continue
        rank = param.type.rank
        given = [] if isinstance(shape, Dim | int | float | str) else [each for each in shape if isinstance(each, int)]
        if len(given) != rank or isinstance(shape, Dim | int | float | str) or len(shape) != rank:
            raise _error(func, f"expected {rank} numbers as the shape of {param.name_hint}, got {shape}")
        patterns += param.type.shape
        numbers += given
    known = {name: dim.constant_value for name, dim in sizes.items()}
    try:
        found = match(patterns, numbers, {name: value for name, value in known.items() if value is not None})
    except MatchError as error:
        raise _error(func, f"cannot have these shapes: {error}") from error
    return {name: constant(value) for name, value in found.items()}


def _replace_sizes(func: PrimFuncOp, sizes: Mapping[str, Dim]) -> None:
    if not sizes:
        return
    witnesses = dict(zip(func.symbol_names, func.symbol_args, strict=True))
    func.symbols = ArrayAttr([each for each in func.symbols if each.symbol.data not in sizes])
    for name, value in sizes.items():
        _replace(func, witnesses[name], _size(value))
    for op in func.walk():
        if op is not func:
            op.properties = {key: _renamed(value, sizes) for key, value in op.properties.items()}
        arguments = [arg for region in op.regions for block in region.blocks for arg in block.args]
        for value in (*op.results, *arguments):
            if isinstance(value.type, BufferType) and (kind := value.type.substitute(sizes)) != value.type:
                Rewriter.replace_value_with_new_type(value, kind)
    for op in list(func.walk()):
        if isinstance(op, DimOp) and op.dim.constant_value is not None:
            Rewriter.replace_op(op, _size(op.dim))


def _renamed(attribute: Attribute, sizes: Mapping[str, Dim]) -> Attribute:
    """Symbols inside a function are bound by it alone, so none is declared here."""
    return attribute if isinstance(attribute, SymbolAttr) else rename_symbols(attribute, sizes)


def _size(dim: Dim) -> Operation:
    value = dim.constant_value
    op = DimOp(dim) if value is None else arith.ConstantOp(IntegerAttr(value, IndexType()))
    if value is not None:
        op.results[0].name_hint = f"c{value}"
    return op


def _replace_param(func: PrimFuncOp, made: PrimFuncOp, param: BlockArgument, value: Known) -> None:
    kind, number = scalar_type(param.type), value
    is_float = isinstance(kind, AnyFloat)
    if not isinstance(number, int | float) or (isinstance(number, float) and not is_float):
        raise _error(func, f"expected a number of {param.type} for {param.name_hint}, got {value}")
    if isinstance(kind, AnyFloat):
        _replace(made, param, arith.ConstantOp(FloatAttr(float(number), kind)))
    elif isa(kind, IntegerType):
        try:
            _replace(made, param, arith.ConstantOp(IntegerAttr(int(number), kind)))
        except VerifyException as error:
            raise _error(func, f"expected a number of {param.type} for {param.name_hint}, got {value}") from error


def _replace(func: PrimFuncOp, argument: BlockArgument, op: Operation) -> None:
    """Replaces a parameter by the result of an op."""
    body = func.body.block
    if argument.uses:
        Rewriter.insert_op(op, InsertPoint.at_start(body))
        op.results[0].name_hint = op.results[0].name_hint or argument.name_hint
        op.location = func.location
        argument.replace_all_uses_with(SSAValue.get(op.results[0]))
    body.erase_arg(argument)


def _error(func: PrimFuncOp, message: str) -> ValueError:
    return ValueError(f"specialize: @{func.sym_name.data} {message}")


def _text(sizes: Mapping[str, Dim]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())
