"""`te.extern_primfunc`: tensors computed by an existing PrimFunc."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from tir_dialect.dims import Dim, constant
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.schedule.legality.accesses import written_buffers
from tir_dialect.te.nodes import Operation, Tensor
from tir_dialect.types import BufferType


@dataclass(frozen=True, eq=False)
class Inlined(Operation):
    """An inlined function body, with tensors in place of its parameters and dimensions in place of its symbols."""

    func: PrimFuncOp
    symbols: Mapping[str, Dim]
    inputs: tuple[Tensor, ...]
    arguments: tuple[Tensor, ...] = field(init=False)
    """One per parameter of the function."""


def extern_primfunc(inputs: Sequence[Tensor], primfunc: PrimFuncOp | ModuleOp) -> Tensor | tuple[Tensor, ...]:
    """The tensors that a PrimFunc, or a module of one, computes from tensors for the buffers that it does not write.

    Its loops and blocks become part of the function that is made, with their names, and can be scheduled there. The
    values of its symbols follow from the shapes of the inputs.

    Raises ValueError where shapes or dtypes do not fit, and for a function with scalars or without outputs; TypeError
    for what is no function.
    """
    func = _the_function(primfunc)
    name = func.sym_name.data
    if len(func.buffer_params) != len(func.params):
        raise ValueError(f'te: "{name}" has parameters that are no buffers, expected buffers only')
    written = written_buffers(func)
    expected = [param for param in func.buffer_params if param not in written]
    if len(expected) != len(inputs) or len(expected) == len(func.params):
        made = len(func.params) - len(expected)
        raise ValueError(f'te: "{name}" reads {len(expected)} buffers and writes {made}, got {len(inputs)} inputs')
    symbols = _symbols(func, expected, inputs)
    source = Inlined(name, func, symbols, tuple(inputs))
    outputs: list[Tensor] = []
    arguments: list[Tensor] = []
    given = iter(inputs)
    for param in func.buffer_params:
        if param in written:
            kind = param.type.substitute(symbols)
            outputs.append(Tensor(param.name_hint or name, kind.shape, kind.element_type, source, len(outputs)))
        arguments.append(outputs[-1] if param in written else next(given))
    object.__setattr__(source, "arguments", tuple(arguments))
    object.__setattr__(source, "outputs", tuple(outputs))
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def _the_function(given: PrimFuncOp | ModuleOp) -> PrimFuncOp:
    if isinstance(given, PrimFuncOp):
        return given
    if not isinstance(cast("object", given), ModuleOp):
        raise TypeError(f"te: extern_primfunc expected a tir.prim_func or a module, got {type(given).__name__}")
    funcs = [op for op in given.body.block.ops if isinstance(op, PrimFuncOp)]
    if len(funcs) != 1:
        raise ValueError(f"te: extern_primfunc expected a module of one function, got {len(funcs)}")
    return funcs[0]


def _symbols(func: PrimFuncOp, params: Sequence[SSAValue[BufferType]], inputs: Sequence[Tensor]) -> dict[str, Dim]:
    """The values of the function's symbols, solved from the shapes of the inputs."""
    found: dict[str, Dim] = {}
    for param, tensor in zip(params, inputs, strict=True):
        for dim, extent in zip(param.type.shape, tensor.shape, strict=False):
            if dim.as_symbol is not None:
                found.setdefault(dim.as_symbol, extent)
    name = func.sym_name.data
    if missing := [symbol for symbol in func.symbol_names if symbol not in found]:
        raise ValueError(f'te: the shapes of the inputs of "{name}" do not say what "{missing[0]}" is')
    for param, tensor in zip(params, inputs, strict=True):
        kind = BufferType(tensor.shape, tensor.dtype, scope=param.type.scope, align=param.type.align)
        if not param.type.has_default_strides or param.type.offset != constant(0):
            raise ValueError(f'te: parameter "{param.name_hint}" of "{name}" has a layout of its own')
        wanted = param.type.substitute(found)
        if kind != wanted:
            raise ValueError(f'te: parameter "{param.name_hint}" of "{name}" expected {wanted}, got {tensor}')
    return found
