"""`remove-unused-parameters`: private functions take what they use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from lowering.graph.call_graph import rewritable_functions
from lowering.graph.dead import erase_dead
from lowering.graph.signatures import replace_call
from relax_dialect.ops.calls import CallOp
from relax_dialect.ops.structure import FuncOp
from relax_dialect.scope import block_symbols_used, prover_at, symbols_used
from relax_dialect.struct_info.base import as_struct_infos
from relax_dialect.struct_info.calls import call_result
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.match import Mismatch, entry_match
from relax_dialect.struct_info.subtype import Verdict, is_subtype
from relax_dialect.struct_info.symbols import free_symbols


@dataclass(frozen=True)
class RemoveUnusedParametersPass(ModulePass):
    """Removes parameters of private functions that have no use, and symbols that nothing names then.

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
    * A function that is taken as a value somewhere keeps its signature.

    The check of a removed argument goes: a program that failed may stop failing. Idempotent; refuses nothing. Run
    `dead-code-elimination` before.
    """

    name = "remove-unused-parameters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Again while something goes: what computed an argument may have been the last use of a parameter."""
        while _Parameters(rewritable_functions(op)).remove():
            pass


@dataclass
class _Parameters:
    """The functions whose parameters may go, with their calls, and which parameters are needed."""

    functions: dict[FuncOp, list[CallOp]]
    needed: dict[FuncOp, set[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.needed = {func: set() for func in self.functions}
        self._callee = {call: func for func, calls in self.functions.items() for call in calls}

    def remove(self) -> bool:
        """Finds the needed parameters and removes the others; whether there were any."""
        for func in self.functions:
            for index, param in enumerate(func.params):
                if any(not self._hands_on(use.operation) for use in param.uses):
                    self._need(func, index)
        found = -1
        while found != (found := sum(map(len, self.needed.values()))):
            for func in self.functions:
                self._need_for_signature(func)
        dropped = {func: self._dropped(func) for func in self.functions}
        for func, indices in dropped.items():
            if indices:
                self._rewrite_calls(func)
        for func, indices in dropped.items():
            if indices:
                self._rewrite_entry(func)
        return any(dropped.values())

    def _dropped(self, func: FuncOp) -> list[int]:
        return [index for index in range(len(func.function_type.params)) if index not in self.needed[func]]

    def _hands_on(self, op: Operation) -> bool:
        return isinstance(op, CallOp) and op in self._callee

    def _need(self, func: FuncOp, index: int) -> None:
        """Marks a parameter, and those of callers that are handed on to it."""
        pending = [(func, index)]
        while pending:
            func, index = pending.pop()
            if index not in self.needed[func]:
                self.needed[func].add(index)
                pending += self._sources(func, index)

    def _sources(self, func: FuncOp, index: int) -> Iterator[tuple[FuncOp, int]]:
        for call in self.functions[func]:
            value = call.arguments[index]
            caller = value.owner.parent_op() if isinstance(value, BlockArgument) else None
            if isinstance(caller, FuncOp) and caller in self.needed and value in caller.params:
                yield caller, caller.params.index(value)

    def _need_for_signature(self, func: FuncOp) -> None:
        """Marks more parameters until the rest of the signature can be entered and all calls know their results."""
        while dropped := self._dropped(func):
            reduced, named = self._reduced(func)
            if _can_be_entered(reduced) and all(
                self._knows_result(func, reduced, call) for call in self.functions[func]
            ):
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
        """The symbols that `op` itself names, a call without the arguments that it will not have."""
        named = {name for region in op.regions for block in region.blocks for name in block_symbols_used(block)}
        if isinstance(op, CallOp) and (callee := self._callee.get(op)) is not None:
            values = [*self._arguments(callee, op), op.result]
            return named | {name for value in values for name in free_symbols(value.type)}
        return named | symbols_used(op)

    def _arguments(self, func: FuncOp, call: CallOp) -> list[SSAValue]:
        return [call.arguments[index] for index in sorted(self.needed[func])]

    def _knows_result(self, func: FuncOp, reduced: FuncType, call: CallOp) -> bool:
        prover = prover_at(call)
        given = as_struct_infos(value.type for value in self._arguments(func, call))
        return is_subtype(call_result(reduced, given, prover).ret, call.result.type, prover) is Verdict.YES

    def _rewrite_calls(self, func: FuncOp) -> None:
        for call in self.functions[func]:
            owners = [value.owner for value in call.arguments]
            (result_type,) = as_struct_infos(call.result_types)
            replace_call(call, self._arguments(func, call), result_type)
            erase_dead(owner for owner in owners if isinstance(owner, Operation))

    def _rewrite_entry(self, func: FuncOp) -> None:
        block = func.body.block
        reduced, _ = self._reduced(func)
        kept = {bound.symbol.data for bound in reduced.symbols}
        gone = [func.params[index] for index in self._dropped(func)]
        gone += [
            witness
            for bound, witness in zip(func.symbols, func.witnesses, strict=True)
            if bound.symbol.data not in kept
        ]
        func.function_type = reduced
        for argument in gone:
            block.erase_arg(argument)


def _can_be_entered(func: FuncType) -> bool:
    try:
        entry_match(func)
    except Mismatch:
        return False
    return True
