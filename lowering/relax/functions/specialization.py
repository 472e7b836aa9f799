"""Functions made for fixed values of some of their symbols."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.relax.substitution import settle, substitute_in, substitute_in_value
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Mismatch, entry_match
from relax_dialect.struct_info.symbols import substitute
from relax_dialect.symbols import called_functions, find_function
from tir_dialect.dims import Dim, constant
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.specialization import specialize


def find_entry(module: ModuleOp, name: str, expected: str = "'relax.func'") -> FuncOp:
    """The function `name`, whose signature may change since nothing in the module refers to it; `expected` says what
    the module may have under this name.

    Raises `InvalidModule` if there is none, or if it is used.
    """
    func = find_function(module, name)
    if not isinstance(func, FuncOp):
        fail(module, f"expected a {expected} @{name}, but the module has none")
    _check_unused(module, name)
    return func


def find_kernel(module: ModuleOp, name: str) -> PrimFuncOp | None:
    """The PrimFunc `name`, if there is one; raises `InvalidModule` if it is used."""
    func = find_function(module, name)
    if not isinstance(func, PrimFuncOp):
        return None
    _check_unused(module, name)
    return func


def _check_unused(module: ModuleOp, name: str) -> None:
    func = find_function(module, name)
    can_inline = isinstance(func, FuncOp) and func.is_private
    for op in module.walk():
        if name in called_functions(op):
            hint = "run 'inline-functions' first" if can_inline else "change a copy that nothing refers to"
            fail(op, f"refers to @{name}, whose signature would change", hint)


def bind_symbols(func: FuncOp, values: Mapping[str, int]) -> None:
    """Replaces symbols that `func` binds by numbers, in the signature and the body.

    Raises `InvalidModule` if there is no such symbol, a value is out of its bounds, another symbol cannot be solved
    any more, or an op can never succeed for these values.
    """
    _check_values(func, values)
    mapping = {name: constant(value) for name, value in values.items()}
    old, names = func.function_type, func.param_names
    witnesses = dict(zip(old.symbol_names, func.witnesses, strict=True))
    func.function_type = FuncType(
        [substitute(param, mapping) for param in old.params],
        substitute(old.ret, mapping),
        pure=old.pure,
        symbols=[bound for bound in old.symbols if bound.symbol.data not in mapping],
    )
    for name, dim in mapping.items():
        _replace_witness(func, witnesses[name], dim)
    for argument in func.body.block.args:
        substitute_in_value(argument, mapping)
    substitute_in(func.body.block.ops, mapping)
    func.name_params(names)
    settle_function(func)


def bind_in_kernel(func: PrimFuncOp, values: Mapping[str, int]) -> None:
    """Replaces sizes and scalar parameters of a kernel by numbers; raises `InvalidModule` where that cannot be."""
    try:
        made = specialize(func, values)
    except ValueError as error:
        fail(func, str(error).removeprefix("specialize: "))
    Rewriter.replace_op(func, made)


def settle_function(func: FuncOp) -> None:
    """Makes a function whose signature has changed valid again; raises `InvalidModule` if that cannot be."""
    try:
        entry_match(func.function_type)
    except Mismatch as mismatch:
        fail(func, f"@{func.sym_name.data} cannot be entered any more: {mismatch.reason}", "bind that symbol as well")
    for op in list(func.body.block.ops):
        try:
            settle((op,))
        except VerifyException as error:
            fail(op, f"'{op.name}' op can never succeed then: {error}", "bind other values")


def _check_values(func: FuncOp, values: Mapping[str, int]) -> None:
    bounds = {bound.symbol.data: bound.interval for bound in func.symbols}
    for name, value in values.items():
        if name not in bounds:
            known = f"binds {', '.join(bounds)}" if bounds else "binds no symbols"
            fail(func, f"@{func.sym_name.data} {known}, got a value for {name}")
        low, high = bounds[name]
        if value < low or (high is not None and value > high):
            fail(
                func, f"@{func.sym_name.data} expected {name} in [{low}, {'_' if high is None else high}], got {value}"
            )


def _replace_witness(func: FuncOp, witness: BlockArgument, value: Dim) -> None:
    if witness.uses.get_length():
        op = PrimOp(value)
        op.result.name_hint = witness.name_hint
        inherit_location(func, op)
        Rewriter.insert_op(op, InsertPoint.at_start(func.body.block))
        witness.replace_all_uses_with(op.result)
    func.body.block.erase_arg(witness)
