"""A deferred function with the types that its arguments turn out to have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import InvalidModule
from lowering.locations import source_position
from lowering.relax.deferred.candidates import is_deferred
from lowering.relax.deferred.signature import TypesOfValues, bindings
from lowering.relax.functions.specialization import bind_symbols
from lowering.relax.result_types import ResultTypes
from lowering.relax.substitution import all_symbols
from relax_dialect.inference import Refuted
from relax_dialect.interfaces import InfersResultTypes
from relax_dialect.misfit import kind_of_misfit
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.functions import FuncType


def for_kinds(template: FuncOp, arguments: Sequence[Any]) -> FuncOp:
    """The function for the ranks and dtypes of the arguments; its dimensions are symbols.

    `TypeError` if an op cannot take these, `ValueError` if only dimensions are wrong.
    """
    func = _with_types(template, arguments, static=False)
    _infer(func)
    return func


def for_values(template: FuncOp, arguments: Sequence[Any]) -> FuncOp:
    """The function for the shapes of the arguments; raises as `for_kinds`."""
    func = _with_types(template, arguments, static=True)
    values: dict[str, int] = {}
    for argument, info in zip(arguments, func.function_type.params, strict=True):
        values |= bindings(argument, info)
    try:
        if func.symbols:
            bind_symbols(func, {name: values[name] for name in func.function_type.symbol_names})
    except InvalidModule as error:
        raise misfit(error) from error
    _infer(func)
    return func


def needs_values(func: FuncOp) -> bool:
    """Whether ranks are left that follow from dimensions."""
    return any(is_deferred(op) for op in func.body.block.ops)


def misfit(error: InvalidModule) -> ValueError | TypeError:
    """The first finding of a report, as an error at run time."""
    found = error.findings[0]
    return _kind(found.op)(_at(found.op, found.message))


def _kind(op: Operation) -> type[ValueError | TypeError]:
    return kind_of_misfit(type(op), op.operand_types, op.properties) if isinstance(op, InfersResultTypes) else TypeError


def _at(op: Operation, message: str) -> str:
    parent = op.parent_op()
    function = op if isinstance(op, FuncOp) else parent
    name = f"{function.sym_name.data}: " if isinstance(function, FuncOp) else ""
    where = str(source_position(op.location))
    return f"{name}{message}{f' at {where}' if where else ''}"


def _with_types(template: FuncOp, arguments: Sequence[Any], *, static: bool) -> FuncOp:
    old = template.function_type
    types = TypesOfValues(all_symbols(template), static=static)
    params = [types.of(*pair) for pair in zip(arguments, old.params, strict=True)]
    func = FuncOp(template.sym_name.data, FuncType(params, old.ret, symbols=[*old.symbols, *types.symbols]))
    func.location = template.location
    values: dict[SSAValue, SSAValue] = dict(zip(template.params, func.params, strict=True))
    values |= zip(template.witnesses, func.witnesses[: len(old.symbols)], strict=True)
    for before, after in values.items():
        after.name_hint = before.name_hint
    func.name_params(template.param_names)
    for op in template.body.block.ops:
        func.body.block.add_op(op.clone(values))
    ModuleOp([func])
    return func


def _infer(func: FuncOp) -> None:
    """Infers all types anew; errors name the function and the op."""
    types = ResultTypes()
    for op in func.body.block.ops:
        try:
            types.infer(op)
        except Refuted as error:
            facts, dims = error.check.facts
            raise _kind(op)(f"{_at(op, error.check.message)}: {facts.format(*dims)}") from error
        except (VerifyException, ValueError) as error:
            raise _kind(op)(_at(op, str(error))) from error
