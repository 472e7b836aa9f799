"""`expand-tuple-arguments`, `remove-unused-parameters` and `remove-unused-outputs`.

Private functions take what they use, field by field, and return what is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from lowering.locations import inherit_location
from lowering.relax.call_graph import (
    CallSite,
    call_sites,
    called_by_name,
    field_of,
    given_values,
    replace_result,
    replace_values,
    tuple_of,
)
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.scope import block_symbols_used, prover_at, symbols_used
from relax_dialect.struct_info.match import Mismatch, Verdict, call_result, entry_match, is_subtype, partial_application
from relax_dialect.struct_info.symbols import free_symbols, fresh_name
from relax_dialect.struct_info.types import FuncType, StructInfo, TupleType, as_struct_infos
from tir_dialect.fast_ops import erase_dead

_Fields: TypeAlias = "tuple[_Fields, ...] | None"
"""How far a parameter is taken apart: `None` not at all, else its fields, each as far."""


class ExpandTupleArgumentsPass(ModulePass):
    """Replaces tuple parameters of private functions by one parameter per field, recursively.

    Before:

    ```mlir
    relax.func private @first(%t: !relax.tuple<!relax.object, !relax.object>) -> !relax.object {
      %0 = relax.tuple_get %t[0]
      relax.return %0
    }
    relax.func @main(%x: !relax.object, %y: !relax.object) -> !relax.object {
      %0 = relax.tuple(%x, %y)
      %1 = relax.call @first(%0) : !relax.object
      relax.return %1
    }
    ```

    After:

    ```mlir
    relax.func private @first(%t: !relax.object, %t_1: !relax.object) -> !relax.object {
      relax.return %t
    }
    relax.func @main(%x: !relax.object, %y: !relax.object) -> !relax.object {
      %0 = relax.call @first(%x, %y) : !relax.object
      relax.return %0
    }
    ```

    Recursive calls are rewritten like others, and so are captured values of `relax.make_closure`. A parameter that a
    function value still takes stays as it is, and so does a tuple of which a call does not know the fields. Idempotent;
    refuses nothing.
    `remove-unused-parameters` then drops the fields that are not used.
    """

    name = "expand-tuple-arguments"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """The calls of a function, then its entry."""
        for func, sites in call_sites(op).items():
            plan = _plan(func, sites)
            if any(fields is not None for fields in plan):
                for site in sites:
                    given = given_values(site)
                    values = [
                        leaf
                        for value, fields in zip(given, plan, strict=False)
                        for leaf in _taken_apart(value, fields, site)
                    ]
                    owners = [value.owner for value in given]
                    replace_values(site, values)
                    erase_dead(owner for owner in owners if isinstance(owner, Operation))
                _expand_entry(func, plan)


def _plan(func: FuncOp, sites: Sequence[CallSite]) -> list[_Fields]:
    """How far each parameter is taken apart: as far as everything that gives it a value knows its fields."""
    given = [as_struct_infos(value.type for value in given_values(site)) for site in sites]
    params = func.function_type.params
    always = min(map(len, given), default=len(params))
    plan = [_common(param, [infos[index] for infos in given]) for index, param in enumerate(params[:always])]
    return [*plan, *(None for _ in params[always:])]


def _common(declared: StructInfo, given: Sequence[StructInfo]) -> _Fields:
    if not isinstance(declared, TupleType):
        return None
    tuples = [info for info in given if isinstance(info, TupleType)]
    if len(tuples) < len(given):
        return None
    return tuple(_common(field, [info.fields[i] for info in tuples]) for i, field in enumerate(declared.fields))


def _leaves(info: StructInfo, fields: _Fields) -> Iterator[StructInfo]:
    """The types of the parameters that replace one."""
    if fields is None or not isinstance(info, TupleType):
        yield info
        return
    for inner, deeper in zip(info.fields, fields, strict=True):
        yield from _leaves(inner, deeper)


def _taken_apart(value: SSAValue, fields: _Fields, site: CallSite) -> Iterator[SSAValue]:
    if fields is None:
        yield value
        return
    for index, deeper in enumerate(fields):
        yield from _taken_apart(field_of(value, index, site), deeper, site)


def _expand_entry(func: FuncOp, plan: Sequence[_Fields]) -> None:
    """Gives the function its new parameters, of which the old ones are made where they are still used."""
    old, names = func.function_type, _names(func, plan)
    block, position = func.body.block, len(func.symbols)
    made: list[TupleOp] = []
    for param, info, fields in zip(func.params, old.params, plan, strict=True):
        leaves = list(_leaves(info, fields))
        if fields is None:
            position += 1
            continue
        new = [block.insert_arg(leaf, position + index) for index, leaf in enumerate(leaves)]
        for each in new:
            each.name_hint = param.name_hint
        whole = _put_together(iter(new), fields, func, made)
        param.replace_all_uses_with(whole)
        block.erase_arg(param)
        position += len(new)
    params = [leaf for info, fields in zip(old.params, plan, strict=True) for leaf in _leaves(info, fields)]
    func.function_type = FuncType(params, old.ret, pure=old.pure, symbols=old.symbols)
    func.name_params(names)
    Rewriter.insert_op(made, InsertPoint.at_start(block))
    for op in reversed(made):
        for use in list(op.result.uses):
            if isinstance(use.operation, TupleGetOp):
                field = op.fields[use.operation.index.value.data]
                if field.type == use.operation.result.type:
                    Rewriter.replace_op(use.operation, [], [field])
        erase_dead((op,))


def _names(func: FuncOp, plan: Sequence[_Fields]) -> list[str]:
    """The names of the new parameters: fields are called like the tuple, with numbers."""
    names: list[str] = []
    taken = {name for name, fields in zip(func.param_names, plan, strict=True) if fields is None}
    for name, info, fields in zip(func.param_names, func.function_type.params, plan, strict=True):
        for _ in _leaves(info, fields):
            names.append(name if fields is None else fresh_name(name, taken))
            taken.add(names[-1])
    return names


def _put_together(leaves: Iterator[SSAValue], fields: _Fields, func: FuncOp, made: list[TupleOp]) -> SSAValue:
    """The value that a parameter was; the tuples on the way are added to `made`, inner ones first."""
    if fields is None:
        return next(leaves)
    op = TupleOp(*[_put_together(leaves, deeper, func, made) for deeper in fields])
    inherit_location(func, op)
    made.append(op)
    return op.result


class RemoveUnusedOutputsPass(ModulePass):
    """Removes fields that no call reads from the tuples that private functions return.

    Before:

    ```mlir
    relax.func private @f(%x: !relax.object, %y: !relax.object) -> !relax.tuple<!relax.object, !relax.object> {
      %0 = relax.tuple(%x, %y)
      relax.return %0
    }
    ...
    %1 = relax.call @f(%a, %b) : !relax.tuple<!relax.object, !relax.object>
    %2 = relax.tuple_get %1[1]
    ```

    After:

    ```mlir
    relax.func private @f(%x: !relax.object, %y: !relax.object) -> !relax.tuple<!relax.object> {
      %0 = relax.tuple(%y)
      relax.return %0
    }
    ...
    %1 = relax.call @f(%a, %b) : !relax.tuple<!relax.object>
    %2 = relax.tuple_get %1[0]
    ```

    * The result stays a tuple, also of one field or none. What only computed a removed field goes as well.
    * A function may return what a call returns, itself called again for instance; then both lose the same fields, and
      the call stays the last thing that happens.
    * A result that is used in another way than by `relax.tuple_get` is read as a whole. A function that is taken as a
      value somewhere, or that nobody calls, keeps its signature.

    Idempotent; refuses nothing.
    """

    name = "remove-unused-outputs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Again while something goes: what computed a field may have been the last read of another."""
        while _Outputs(_candidates(op)).remove():
            pass


def _candidates(module: ModuleOp) -> dict[FuncOp, list[CallOp]]:
    """The functions that return a tuple of which all fields are known, with their calls."""
    return {
        func: calls
        for func, calls in called_by_name(module).items()
        if calls and isinstance(func.function_type.ret, TupleType) and isinstance(_returned(func).type, TupleType)
    }


def _return_op(func: FuncOp) -> ReturnOp:
    terminator = func.body.block.last_op
    if not isinstance(terminator, ReturnOp):
        raise ValueError(f"'relax.func' op @{func.sym_name.data} has no 'relax.return'")
    return terminator


def _returned(func: FuncOp) -> SSAValue:
    return _return_op(func).value


def _fields(func: FuncOp) -> int:
    ret = func.function_type.ret
    return len(ret.fields) if isinstance(ret, TupleType) else 0


@dataclass
class _Outputs:
    """The functions whose results may shrink, with their calls, and which fields are read."""

    functions: dict[FuncOp, list[CallOp]]
    read: dict[FuncOp, set[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.read = {func: set() for func in self.functions}
        self._callee = {call: func for func, calls in self.functions.items() for call in calls}

    def remove(self) -> bool:
        """Finds the fields that are read and removes the others; whether there were any."""
        for func, calls in self.functions.items():
            for index in (index for call in calls for index in self._reads(func, call)):
                self._read(func, index)
        shrinking = [func for func in self.functions if len(self.read[func]) < _fields(func)]
        for func in shrinking:
            # Returns the kept fields; what a call returns as it is if that keeps the same fields.
            old, end, kept = func.function_type, _return_op(func), self._kept(func)
            value = end.value
            func.function_type = FuncType(old.params, _shrunk(old.ret, kept), pure=old.pure, symbols=old.symbols)
            if func.result_names is not None:
                func.result_names = ArrayAttr([func.result_names.data[index] for index in kept])
            callee = self._callee.get(value.owner) if isinstance(value.owner, CallOp) else None
            if not (callee is not None and self._kept(callee) == kept):
                end.operands[0] = tuple_of([field_of(value, index, end) for index in kept], end)
                if isinstance(value.owner, Operation):
                    erase_dead((value.owner,))
        for func in shrinking:
            kept = self._kept(func)
            for call in self.functions[func]:
                (result_type,) = as_struct_infos(call.result_types)
                new = replace_result(call, _shrunk(result_type, kept))
                for get in [use.operation for use in new.result.uses]:
                    if isinstance(get, TupleGetOp):
                        moved = TupleGetOp(new.result, kept.index(get.index.value.data))
                        moved.result.name_hint = get.result.name_hint
                        inherit_location(get, moved)
                        Rewriter.replace_op(get, moved)
        return bool(shrinking)

    def _reads(self, func: FuncOp, call: CallOp) -> Iterator[int]:
        for use in call.result.uses:
            if isinstance(use.operation, TupleGetOp):
                yield use.operation.index.value.data
            elif not self._returns(use.operation):
                yield from range(_fields(func))

    def _returns(self, op: Operation) -> bool:
        """Whether `op` is the return of one of the functions, whose own reads then count."""
        return isinstance(op, ReturnOp) and isinstance(func := op.parent_op(), FuncOp) and func in self.read

    def _read(self, func: FuncOp, index: int) -> None:
        """Marks a field, and that of the function whose result this one returns."""
        while index not in self.read[func]:
            self.read[func].add(index)
            owner = _returned(func).owner
            if not isinstance(owner, CallOp) or owner not in self._callee:
                return
            func = self._callee[owner]

    def _kept(self, func: FuncOp) -> list[int]:
        return sorted(self.read[func])


def _shrunk(info: StructInfo, kept: Sequence[int]) -> StructInfo:
    return TupleType(info.fields[index] for index in kept) if isinstance(info, TupleType) else info


class RemoveUnusedParametersPass(ModulePass):
    """Removes unused parameters of private functions, and symbols that become unused.

    Before:

    ```mlir
    relax.func private @f[%n, %k](%x: !relax.tensor<[n], f32>, %w: !relax.tensor<[k], f32>) -> !relax.tensor<[n], f32> {
      %0 = relax.exp %x
      relax.return %0
    }
    ...
    %1 = relax.call @f(%a, %b) : !relax.tensor<[4], f32>
    ```

    After:

    ```mlir
    relax.func private @f[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
      %0 = relax.exp %x
      relax.return %0
    }
    ...
    %1 = relax.call @f(%a) : !relax.tensor<[4], f32>
    ```

    * A parameter that is only handed on to such a parameter, of the same function or another, has no use either.
    * A parameter stays if a symbol that is still named could not be solved without it, or if a call would know less of
      its result.
    * What only computed a removed argument goes as well.
    * Of a function that is taken as a value, parameters go that every `relax.make_closure` of it captures: those before
      the smallest number of captured values. The others are given by callers of the value, whom nobody knows, and stay.

    The check of a removed argument goes: a program that failed may stop failing. Idempotent; refuses nothing. Run
    `dead-code-elimination` before.
    """

    name = "remove-unused-parameters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Again while something goes: what computed an argument may have been the last use of a parameter."""
        while _Parameters(call_sites(op)).remove():
            pass


@dataclass
class _Parameters:
    """The functions whose parameters may go, with what gives them values, and which parameters are needed."""

    functions: dict[FuncOp, list[CallSite]]
    needed: dict[FuncOp, set[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.needed = {func: set() for func in self.functions}
        self._callee = dict[Operation, FuncOp]((site, func) for func, sites in self.functions.items() for site in sites)

    def remove(self) -> bool:
        """Finds the needed parameters and removes the others; whether there were any."""
        for func, sites in self.functions.items():
            captured = min((len(given_values(site)) for site in sites), default=len(func.params))
            for index, param in enumerate(func.params):
                # What is only handed on to functions whose parameters may go is needed if they need it.
                if index >= captured or any(use.operation not in self._callee for use in param.uses):
                    self._need(func, index)
        found = -1
        while found != (found := sum(map(len, self.needed.values()))):
            for func in self.functions:
                self._need_for_signature(func)
        dropped = {func: self._dropped(func) for func in self.functions}
        for func, indices in dropped.items():
            # Sites that only computed what another function had are gone already.
            for site in self.functions[func] if indices else ():
                if site.parent is not None:
                    owners = [value.owner for value in given_values(site)]
                    replace_values(site, self._kept_values(site))
                    erase_dead(owner for owner in owners if isinstance(owner, Operation))
        for func, indices in dropped.items():
            if indices:
                block = func.body.block
                reduced, _ = self._reduced(func)
                kept = {bound.symbol.data for bound in reduced.symbols}
                names = [func.param_names[index] for index in sorted(self.needed[func])]
                gone = [func.params[index] for index in self._dropped(func)]
                gone += [
                    witness
                    for bound, witness in zip(func.symbols, func.witnesses, strict=True)
                    if bound.symbol.data not in kept
                ]
                func.function_type = reduced
                for argument in gone:
                    block.erase_arg(argument)
                func.name_params(names)
        return any(dropped.values())

    def _dropped(self, func: FuncOp) -> list[int]:
        return [index for index in range(len(func.function_type.params)) if index not in self.needed[func]]

    def _need(self, func: FuncOp, index: int) -> None:
        """Marks a parameter, and those of callers that are handed on to it."""
        pending = [(func, index)]
        while pending:
            func, index = pending.pop()
            if index not in self.needed[func]:
                self.needed[func].add(index)
                pending += self._sources(func, index)

    def _sources(self, func: FuncOp, index: int) -> Iterator[tuple[FuncOp, int]]:
        for site in self.functions[func]:
            if index >= len(given_values(site)):
                continue
            value = given_values(site)[index]
            caller = value.owner.parent_op() if isinstance(value, BlockArgument) else None
            if isinstance(caller, FuncOp) and caller in self.needed and value in caller.params:
                yield caller, caller.params.index(value)

    def _need_for_signature(self, func: FuncOp) -> None:
        """Marks more parameters until the rest of the signature can be entered and all calls know their results."""
        while dropped := self._dropped(func):
            reduced, named = self._reduced(func)
            if _can_be_entered(reduced) and all(self._knows_result(reduced, site) for site in self.functions[func]):
                return
            params = func.function_type.params
            telling = (index for index in dropped if not named.isdisjoint(free_symbols(params[index])))
            self._need(func, next(telling, dropped[0]))

    def _reduced(self, func: FuncOp) -> tuple[FuncType, set[str]]:
        """The type of the function without the parameters that are not needed, and the symbols that are named then."""
        old = func.function_type
        kept = [old.params[index] for index in sorted(self.needed[func])]
        named = {name for info in (*kept, old.ret) for name in free_symbols(info)}
        for op in func.body.walk():
            named |= self._named(op)
        witnesses = zip(func.symbols, func.witnesses, strict=True)
        used = [bound for bound, witness in witnesses if bound.symbol.data in named or witness.first_use is not None]
        named |= {bound.symbol.data for bound in used}
        return FuncType(kept, old.ret, pure=old.pure, symbols=used), named

    def _named(self, op: Operation) -> set[str]:
        """The symbols that `op` itself names, a call without the values that it will not give."""
        named = {name for region in op.regions for block in region.blocks for name in block_symbols_used(block)}
        if isinstance(op, CallOp | MakeClosureOp) and op in self._callee:
            values = [*self._kept_values(op), op.result]
            return named | {name for value in values for name in free_symbols(value.type)}
        return named | symbols_used(op)

    def _kept_values(self, site: CallSite) -> list[SSAValue]:
        needed = self.needed[self._callee[site]]
        return [value for index, value in enumerate(given_values(site)) if index in needed]

    def _knows_result(self, reduced: FuncType, site: CallSite) -> bool:
        prover = prover_at(site)
        given = as_struct_infos(value.type for value in self._kept_values(site))
        if isinstance(site, CallOp):
            result = call_result(reduced, given, prover).ret
        else:
            result = partial_application(reduced, given, prover)
        return is_subtype(result, site.result.type, prover) is Verdict.YES


def _can_be_entered(func: FuncType) -> bool:
    try:
        entry_match(func)
    except Mismatch:
        return False
    return True
