"""`update-param-struct-info`: parameters of a function get types that say more; and edits that every change of a
signature needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.exceptions import ParseError

from lowering.diagnostics import fail, refuse
from lowering.locations import inherit_location
from lowering.relax.call_graph import CallSite
from lowering.relax.functions.bind_params import find_entry
from lowering.relax.infer_struct_info import StructInfoInference
from relax_dialect.function_symbols import bindings, substitute_in
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.struct_info.match import Match, Mismatch, Verdict, is_subtype, match_types
from relax_dialect.struct_info.symbols import iter_symbols, substitute
from relax_dialect.struct_info.types import FuncType, PrimType, StructInfo, TupleType
from tir_dialect.dims import Dim, symbol
from tir_dialect.types import SymbolAttr


@dataclass(frozen=True)
class UpdateParamStructInfoPass(ModulePass):
    """Changes parameter types of a function, and infers the types of its body anew.

    `UpdateParamStructInfoPass("main", {"x": tensor((4, "m"))})` takes types by the name of the parameter; in text
    `update-param-struct-info{func=main x="!relax.tensor<[4, m], f32>"}`.

    Before:

    ```mlir
    relax.func @main[%n, %k](%x: !relax.tensor<[n, k], f32>) -> !relax.tensor<[n * k], f32> {
      %0 = relax.flatten %x
      relax.return %0
    }
    ```

    After:

    ```mlir
    relax.func @main[%m](%x: !relax.tensor<[4, m], f32>) -> !relax.tensor<[4 * m], f32> {
      %0 = relax.flatten %x
      relax.return %0
    }
    ```

    Symbols of the old types become what the new ones say, in the types of other parameters too; symbols of the new
    types are bound by the call, and keep their bounds if they have the name of an old one. What an old type demands
    and a new one does not show is checked by a `relax.match_cast`.

    Refuses a function that the module itself uses, parameters that it does not have, types that can never be right or
    that do not tell a symbol, and names that the body binds itself.
    """

    name = "update-param-struct-info"

    func: str = "main"
    """The function."""
    params: Mapping[str, StructInfo | str] = field(default_factory=dict[str, StructInfo | str])
    """A type, or its text, by the name of a parameter."""

    @override
    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """Reads the options; every one but `func` is a parameter. Raises `ValueError` at a value that is no text."""
        texts: dict[str, StructInfo | str] = {}
        for name, given in spec.parameters.items():
            if len(given) != 1 or not isinstance(given[0], str):
                raise ValueError(f"'{cls.name}' expected one text for {name}")
            texts[name] = given[0]
        func = texts.pop("func", "main")
        return cls(str(func), texts)

    @override
    def spec(self, *, include_default: bool = False) -> ArgSpec:
        return ArgSpec(self.name, {"func": (self.func,), **{name: (str(info),) for name, info in self.params.items()}})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Changes the one function."""
        func = find_entry(op, self.func)
        names = func.param_names
        types: dict[int, StructInfo] = {}
        for name, given in self.params.items():
            if name not in names:
                listed = ", ".join(names) or "none"
                fail(func, f"@{self.func} has the parameters {listed}, got a type for {name}")
            types[names.index(name)] = _parsed(ctx, func, name, given) if isinstance(given, str) else given
        if any(func.function_type.params[index] != info for index, info in types.items()):
            _update(func, types)


def _parsed(ctx: Context, func: FuncOp, name: str, text: str) -> StructInfo:
    try:
        info = Parser(ctx, text).parse_type()
    except ParseError as error:
        fail(func, f"@{func.sym_name.data} parameter {name} expected a type: {error}")
    if not isinstance(info, StructInfo):
        fail(func, f"@{func.sym_name.data} parameter {name} expected a relax type, got {info}")
    return info


def _update(func: FuncOp, given: Mapping[int, StructInfo]) -> None:
    match = _match(func, given)
    old, called = func.function_type, func.param_names
    demanded = [substitute(info, match.bindings) for info in old.params]
    types = [given.get(index, info) for index, info in enumerate(demanded)]
    bounds = {bound.symbol.data: bound for bound in old.symbols}
    names = dict.fromkeys(name for info in types for name in iter_symbols(info))
    inner = set(bindings(func.body.block.parent_op() or func)) - bounds.keys()
    for name in names:
        if name in inner:
            fail(func, f"@{func.sym_name.data} binds the symbol {name} itself", "choose another name")
    symbols = [bounds.get(name) or SymbolAttr(name) for name in names]
    _replace_entry(func, types, symbols, match.bindings)
    func.function_type = FuncType(types, substitute(old.ret, match.bindings), pure=old.pure, symbols=symbols)
    func.name_params(called)
    for param, info, wanted in zip(func.params, types, demanded, strict=True):
        if is_subtype(info, wanted) is not Verdict.YES:
            cast = MatchCastOp(param, wanted)
            cast.result.name_hint = param.name_hint
            inherit_location(func, cast)
            param.replace_all_uses_with(cast.result)
            cast.operands[0] = param
            Rewriter.insert_op(cast, InsertPoint.at_start(func.body.block))
    inference = StructInfoInference()
    inference.function(func)
    refuse(inference.findings)


def _match(func: FuncOp, given: Mapping[int, StructInfo]) -> Match:
    """What the symbols of the old types become; fails if the new types do not tell."""
    name = func.sym_name.data
    old = [func.function_type.params[index] for index in given]
    named = {each for info in old for each in iter_symbols(info)}
    try:
        match = match_types(old, list(given.values()), [each for each in func.symbols if each.symbol.data in named])
    except Mismatch as mismatch:
        where = f" {mismatch.path.text}" if mismatch.path.text else ""
        fail(func, f"@{name} parameter #{list(given)[mismatch.path.root]}{where}: {mismatch.reason}")
    for known, dim in match.bindings.items():
        if not match.slots.keys().isdisjoint(dim.symbols):
            fail(func, f"@{name} expected types that tell the symbol {known}", "name that dimension")
    for check in match.bound_checks:
        if check.value.as_symbol != check.symbol.symbol.data:
            fail(
                func,
                f"@{name} expected {check.symbol.symbol.data} within its bounds, got {check.value}",
                "keep its name",
            )
    return match


def _replace_entry(
    func: FuncOp, types: Sequence[StructInfo], symbols: Sequence[SymbolAttr], values: Mapping[str, Dim]
) -> None:
    """New witnesses and types of parameters; in the body, values for the symbols that there were."""
    block, witnesses = func.body.block, dict(zip(func.function_type.symbol_names, func.witnesses, strict=True))
    params = func.params
    # Before anything new is inserted, whose symbols are the new ones.
    substitute_in(block.ops, {name: dim for name, dim in values.items() if dim.as_symbol != name})
    for index, bound in enumerate(symbols):
        name = bound.symbol.data
        block.insert_arg(PrimType(value=name), index).name_hint = name
    for name, witness in witnesses.items():
        if witness.first_use is not None:
            number = PrimOp(values.get(name, symbol(name)))
            number.result.name_hint = witness.name_hint
            inherit_location(func, number)
            Rewriter.insert_op(number, InsertPoint.at_start(block))
            witness.replace_all_uses_with(number.result)
        block.erase_arg(witness)
    for param, info in zip(params, types, strict=True):
        Rewriter.replace_value_with_new_type(param, info)


def given_values(site: CallSite) -> Sequence[SSAValue]:
    """What a call or a function value gives to the first parameters: all of them, or those that it captures."""
    return site.arguments if isinstance(site, CallOp) else site.captured


def replace_values(site: CallSite, values: Sequence[SSAValue]) -> None:
    """Puts an op that gives the function other values, and has a result of the same type, instead of `site`."""
    if isinstance(site, CallOp):
        new = CallOp(site.callee, values, site.result.type, pure=site.impure is None)
    else:
        new = MakeClosureOp(site.callee, values, site.result.type)
    _replace(site, new)


def replace_result(call: CallOp, result_type: StructInfo) -> CallOp:
    """Puts a call with another result type instead of `call`; the uses move to the new result as they are."""
    new = CallOp(call.callee, call.arguments, result_type, pure=call.impure is None)
    _replace(call, new)
    return new


def _replace(old: CallSite, new: CallSite) -> None:
    new.attributes |= old.attributes
    new.result.name_hint = old.result.name_hint
    inherit_location(old, new)
    Rewriter.replace_op(old, new)


def field_of(value: SSAValue, index: int, user: Operation) -> SSAValue:
    """Field `index` of a tuple: the value that it was made of, or a `relax.tuple_get` before `user`."""
    if isinstance(value.owner, TupleOp) and value.owner.fields[index].type == _field_types(value)[index]:
        return value.owner.fields[index]
    op = TupleGetOp(value, index)
    op.result.name_hint = value.name_hint
    inherit_location(user, op)
    Rewriter.insert_op(op, InsertPoint.before(user))
    return op.result


def tuple_of(fields: Sequence[SSAValue], user: Operation) -> SSAValue:
    """A tuple of the fields, made before `user`."""
    op = TupleOp(*fields)
    inherit_location(user, op)
    Rewriter.insert_op(op, InsertPoint.before(user))
    return op.result


def _field_types(value: SSAValue) -> tuple[StructInfo, ...]:
    return value.type.fields if isinstance(value.type, TupleType) else ()
