"""`lift-transform-params`: what is computed from weights alone moves into a function that runs once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import ConstantLike, IsTerminator

from lowering.diagnostics import fail
from lowering.locations import inherit_location
from lowering.relax.functions.bind_params import find_entry
from relax_dialect.analysis.effects import is_never_written, is_returned
from relax_dialect.function_symbols import named_symbols
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.scope import find_function, symbols_used, symbols_witnessed
from relax_dialect.struct_info.match import Mismatch, entry_match
from relax_dialect.struct_info.symbols import free_symbols, fresh_name, iter_bare_symbols
from relax_dialect.struct_info.types import FuncType, StructInfo, TupleType, as_struct_infos
from relax_dialect.traits import impurity_of
from tir_dialect.fast_ops import erase_dead
from tir_dialect.types import SymbolAttr


@dataclass(frozen=True)
class LiftTransformParamsPass(ModulePass):
    """Splits what depends only on weights off a function, so that it can be computed once.

    The weights are the parameters from `num-input` on.

    Before `lift-transform-params{func=main num-input=1}`:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %w: !relax.tensor<[8, 4], f32>) -> !relax.tensor<[n, 8], f32> {
      %0 = relax.permute_dims %w
      %1 = relax.matmul %x, %0
      relax.return %1
    }
    ```

    After:

    ```mlir
    relax.func @main_transform_params(%w: !relax.tensor<[8, 4], f32>) -> !relax.tuple<!relax.tensor<[4, 8], f32>> {
      %0 = relax.permute_dims %w
      %1 = relax.tuple(%0)
      relax.return %1
    }
    relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>, %0: !relax.tensor<[4, 8], f32>) -> !relax.tensor<[n, 8], f32> {
      %1 = relax.matmul %x, %0
      relax.return %1
    }
    ```

    The new function returns, in this order, the weights that are still needed as they are and the values that have been
    computed; these are the last parameters of the old one. Ops without effects and regions move, from dataflow regions
    too, if they use weights, constants and what has moved; those that only make tuples or bind symbols do not, nor does
    what the function returns: each call gives its caller memory that no other call has.

    Where nothing moves, nothing changes, so it is idempotent. Refuses a function that the module itself uses, a
    `num-input` that is not there, and sizes that the new parameters do not tell: run `bind-symbolic-vars` before.
    """

    name = "lift-transform-params"

    func: str = "main"
    """The function."""
    num_input: int = 1
    """How many of its parameters are no weights."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Changes the one function and adds another before it."""
        func = find_entry(op, self.func)
        if not 0 <= self.num_input <= len(func.params):
            fail(func, f"@{self.func} has {len(func.params)} parameters, got {self.num_input} as number of inputs")
        lifting = _Lifting(func, func.params[self.num_input :])
        if lifting.ops:
            lifting.run(f"{self.func}_transform_params")


class _Lifting:
    """What moves out of one function."""

    def __init__(self, func: FuncOp, weights: Sequence[BlockArgument]):
        self.func = func
        self.weights = weights
        self._values: set[SSAValue] = set(weights)
        self._symbols = {name for weight in weights for name in iter_bare_symbols(weight.type)}
        self.ops: list[Operation] = []
        for op in _straight_line(func):
            if self._moves(op):
                self.ops.append(op)
                self._values.update(op.results)
        moved = set(self.ops)
        made = [result for op in self.ops for result in op.results]
        self.outputs = [value for value in (*weights, *made) if any(use.operation not in moved for use in value.uses)]

    def _moves(self, op: Operation) -> bool:
        if op.regions or op.has_trait(IsTerminator) or isinstance(op, TupleOp | CallTIRInplaceOp):
            return False
        if impurity_of(op) is not None or symbols_witnessed(op) or not symbols_used(op) <= self._symbols:
            return False
        if not all(map(is_never_written, (*op.operands, *op.results))) or any(map(is_returned, op.results)):
            return False
        others = [value.owner for value in op.operands if value not in self._values]
        constant = all(isinstance(owner, Operation) and owner.has_trait(ConstantLike) for owner in others)
        return constant and len(others) < len(op.operands)

    def run(self, name: str) -> None:
        """Makes the new function, then takes out of the old one what it computes."""
        if find_function(self.func, name) is not None:
            fail(self.func, f"expected no function @{name}, which would be made", "rename it")
        types = as_struct_infos(value.type for value in self.outputs)
        kept = self.func.function_type.params[: len(self.func.params) - len(self.weights)]
        weights = as_struct_infos(weight.type for weight in self.weights)
        new = FuncOp(name, self._type(weights, TupleType(types), set()))
        # The symbols that what stays of the function names, or whose witnesses it uses.
        moved = set(self.ops)
        named = {
            name
            for op in self.func.body.walk()
            if op not in moved
            for name in (symbols_used(op) if not op.regions else named_symbols(op))
        }
        used = zip(self.func.symbols, self.func.witnesses, strict=True)
        changed = self._type(
            [*kept, *types],
            self.func.function_type.ret,
            named | {bound.symbol.data for bound, witness in used if witness.first_use is not None},
        )
        # Copies the ops, with the constants that they use, into the new function.
        mapping: dict[SSAValue, SSAValue] = dict(zip(self.weights, new.params, strict=True))
        for weight, param in zip(self.weights, new.params, strict=True):
            param.name_hint = weight.name_hint
        new.name_params(self.func.param_names[len(self.func.params) - len(self.weights) :])
        constants = dict.fromkeys(value.owner for op in self.ops for value in op.operands if value not in self._values)
        ops = [op.clone(mapping) for op in (*constants, *self.ops) if isinstance(op, Operation)]
        result = TupleOp(*(mapping[value] for value in self.outputs))
        end = ReturnOp(result.result)
        new.body.block.add_ops([*ops, result, end])
        inherit_location(self.func, [new, result, end])
        self._take_out(changed)
        Rewriter.insert_op(new, InsertPoint.before(self.func))

    def _type(self, params: Sequence[StructInfo], ret: StructInfo, named: set[str]) -> FuncType:
        """A function type with those symbols of the function that are named; fails if it cannot be entered."""
        old = self.func.function_type
        named = {*named, *(name for info in (*params, ret) for name in free_symbols(info))}
        symbols: list[SymbolAttr] = [bound for bound in old.symbols if bound.symbol.data in named]
        info = FuncType(params, ret, pure=old.pure, symbols=symbols)
        try:
            entry_match(info)
        except Mismatch as mismatch:
            hint = "run 'bind-symbolic-vars' before"
            fail(
                self.func,
                f"@{self.func.sym_name.data} could not be entered without its weights: {mismatch.reason}",
                hint,
            )
        return info

    def _take_out(self, info: FuncType) -> None:
        func, block = self.func, self.func.body.block
        moved = set(self.ops)
        # The names of the parameters that the function will have: those there were, then those of what is computed.
        old: dict[SSAValue, str] = dict(zip(self.func.params, self.func.param_names, strict=True))
        names = [old[param] for param in self.func.params if param not in self.weights]
        taken = {*names, *(old[value] for value in self.outputs if value in old)}
        for value in self.outputs:
            name = old.get(value) or fresh_name(value.name_hint or f"arg{len(names)}", taken)
            names.append(name)
            taken.add(name)
        for value in self.outputs:
            param = block.insert_arg(value.type, len(block.args))
            param.name_hint = value.name_hint
            value.replace_uses_with_if(param, lambda use: use.operation not in moved)
        operands = [value.owner for op in self.ops for value in op.operands]
        for op in reversed(self.ops):
            Rewriter.erase_op(op)
        erase_dead(owner for owner in operands if isinstance(owner, Operation) and owner not in moved)
        kept = {bound.symbol.data for bound in info.symbols}
        witnesses = zip(func.symbols, func.witnesses, strict=True)
        gone = [witness for bound, witness in witnesses if bound.symbol.data not in kept]
        func.function_type = info
        for argument in (*self.weights, *gone):
            block.erase_arg(argument)
        func.name_params(names)


def _straight_line(func: FuncOp) -> Iterator[Operation]:
    """The ops that run whenever the function does: of its block, and of dataflow regions in it."""
    for op in func.body.block.ops:
        yield op
        if isinstance(op, DataflowOp):
            yield from op.body.block.ops
