"""`remove-unused-parameters`: private functions take what they use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from lowering.relax.call_graph import CallSite, call_sites
from lowering.relax.functions.signatures import given_values, replace_values
from relax_dialect.ops.calls import CallOp, MakeClosureOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import block_symbols_used, prover_at, symbols_used
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Mismatch, Verdict, call_result, entry_match, is_subtype, partial_application
from relax_dialect.struct_info.symbols import free_symbols
from tir_dialect.dead_code import erase_dead


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
        self._callee = {site: func for func, sites in self.functions.items() for site in sites}

    def remove(self) -> bool:
        """Finds the needed parameters and removes the others; whether there were any."""
        for func, sites in self.functions.items():
            captured = min((len(given_values(site)) for site in sites), default=len(func.params))
            for index, param in enumerate(func.params):
                if index >= captured or any(not self._hands_on(use.operation) for use in param.uses):
                    self._need(func, index)
        found = -1
        while found != (found := sum(map(len, self.needed.values()))):
            for func in self.functions:
                self._need_for_signature(func)
        dropped = {func: self._dropped(func) for func in self.functions}
        for func, indices in dropped.items():
            if indices:
                self._rewrite_sites(func)
        for func, indices in dropped.items():
            if indices:
                self._rewrite_entry(func)
        return any(dropped.values())

    def _dropped(self, func: FuncOp) -> list[int]:
        return [index for index in range(len(func.function_type.params)) if index not in self.needed[func]]

    def _hands_on(self, op: Operation) -> bool:
        return isinstance(op, CallOp | MakeClosureOp) and op in self._callee

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

    def _rewrite_sites(self, func: FuncOp) -> None:
        """Gives the function less; sites that only computed what another function had are gone already."""
        for site in self.functions[func]:
            if site.parent is None:
                continue
            owners = [value.owner for value in given_values(site)]
            replace_values(site, self._kept_values(site))
            erase_dead(owner for owner in owners if isinstance(owner, Operation))

    def _rewrite_entry(self, func: FuncOp) -> None:
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


def _can_be_entered(func: FuncType) -> bool:
    try:
        entry_match(func)
    except Mismatch:
        return False
    return True
