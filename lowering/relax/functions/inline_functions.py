"""`inline-functions`: the body of a private function replaces its calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from lowering.relax.convert_dataflow import SymbolScopes, dissolve
from lowering.relax.functions.bind_params import settle
from relax_dialect.function_symbols import all_symbols, bound_symbols, substitute_in
from relax_dialect.ops.binding import MatchCastOp
from relax_dialect.ops.calls import CallOp
from relax_dialect.ops.dataflow import DataflowOp
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.ops.values import PrimOp
from relax_dialect.scope import called_functions, prover_at
from relax_dialect.struct_info.match import Verdict, is_subtype, match_types
from relax_dialect.struct_info.symbols import fresh_name, substitute
from relax_dialect.struct_info.types import StructInfo, TupleType, as_struct_infos
from relax_dialect.traits import ControlFlow
from tir_dialect.dims import CheckKind, Dim, symbol
from tir_dialect.types import SymbolAttr

OpT = TypeVar("OpT", bound=Operation)


def can_inline(callee: FuncOp, call: CallOp) -> bool:
    """Whether the body of `callee` may stand where `call` stands; recursion is the caller's business."""
    if not callee.is_private or callee.force_pure is not None:
        return False
    in_dataflow = isinstance(call.parent_op(), DataflowOp)
    for op in callee.body.walk():
        if isinstance(op, ClosureOp) and (in_dataflow or op.symbols):
            return False
        if in_dataflow and op.has_trait(ControlFlow):
            return False
    return True


def inline_call(call: CallOp, callee: FuncOp, taken: set[str]) -> bool:
    """Replaces `call` by a copy of the body of `callee`; gives whether it did.

    `taken` are the symbols of the calling function; those that come with the body are added. What inference left open
    about the arguments and the result is checked by `relax.match_cast`, as the call would have done. A call that is
    bound to fail when it runs stays, since its body would not be valid.
    """
    return _Inlining(call, callee, taken).run()


class _Inlining:
    """The state of one replacement."""

    def __init__(self, call: CallOp, callee: FuncOp, taken: set[str]):
        self.call = call
        self.callee = callee
        self.taken = taken
        self.prover = prover_at(call)
        match = match_types(
            callee.function_type.params,
            as_struct_infos(argument.type for argument in call.arguments),
            callee.symbols,
            self.prover,
        )
        # The symbols of the callee that are read from a value, or whose value has to be checked when it is known.
        if any(inserted.check.kind is CheckKind.NON_NEGATIVE for inserted in match.dim_checks):
            self.checked = callee.symbols
        else:
            within = {check.symbol.symbol.data for check in match.bound_checks}
            self.checked = [
                bound
                for bound in callee.symbols
                if bound.symbol.data in within
                or not match.slots.keys().isdisjoint(match.bindings[bound.symbol.data].symbols)
            ]
        # New names, which become taken, for all symbols that the callee binds.
        own = all_symbols(callee)
        renamed: dict[str, Dim] = {}
        for name in bound_symbols(callee):
            new = fresh_name(name, taken | own) if name in taken else name
            taken.add(new)
            renamed[name] = symbol(new)
        checked = {bound.symbol.data for bound in self.checked}
        known = {name: dim for name, dim in match.bindings.items() if name not in checked}
        self.mapping: dict[str, Dim] = {**renamed, **known}

    def run(self) -> bool:
        """Arguments, body, result."""
        before = self.call.prev_op
        arguments, bound = self._arguments()
        block = self.callee.body.clone().block
        substitute_in(block.ops, self.mapping)
        witnesses = self._witnesses(block, bound)
        if isinstance(self.call.parent_op(), DataflowOp):
            scopes = SymbolScopes(block.ops, self.taken)
            for region in [op for op in block.ops if isinstance(op, DataflowOp)]:
                dissolve(region, scopes)
        self._set_location(block.ops)
        terminator = block.last_op
        Rewriter.inline_block(block, InsertPoint.before(self.call), [*witnesses, *arguments])
        value = self._result(terminator)
        try:
            settle(self._inserted(before))
        except VerifyException:
            for op in reversed(self._inserted(before)):
                Rewriter.erase_op(op)
            return False
        value.name_hint = value.name_hint or self.call.result.name_hint
        self.call.result.replace_all_uses_with(value)
        Rewriter.erase_op(self.call)
        return True

    def _inserted(self, before: Operation | None) -> list[Operation]:
        """The ops between `before` and the call."""
        ops: list[Operation] = []
        op = self.call.prev_op
        while op is not None and op is not before:
            ops.append(op)
            op = op.prev_op
        return ops[::-1]

    def _arguments(self) -> tuple[list[SSAValue], dict[str, SSAValue]]:
        """The arguments with the types of the parameters, and the witnesses of the symbols bound from them."""
        infos = [substitute(info, self.mapping) for info in self.callee.function_type.params]
        values = list(self.call.arguments)
        cast = [index for index, (value, info) in enumerate(zip(values, infos, strict=True)) if value.type != info]
        if not self.checked:
            for index in cast:
                values[index] = self._cast(values[index], infos[index], f"argument #{index}").result
            return values, {}
        symbols = [SymbolAttr(self._new_name(old), *old.interval) for old in self.checked]
        if len(cast) == 1:
            op = self._cast(values[cast[0]], infos[cast[0]], f"argument #{cast[0]}", symbols)
            values[cast[0]] = op.result
        else:  # together, since a symbol may be solved from one and used in another
            given = self._insert(TupleOp(*(values[i] for i in cast))).result
            op = self._cast(given, TupleType(infos[index] for index in cast), "arguments", symbols)
            for field, index in enumerate(cast):
                values[index] = self._insert(TupleGetOp(op.result, field)).result
        return values, {old.symbol.data: new for old, new in zip(self.checked, op.witnesses, strict=True)}

    def _new_name(self, bound: SymbolAttr) -> str:
        return self.mapping[bound.symbol.data].as_symbol or bound.symbol.data

    def _witnesses(self, block: Block, known: Mapping[str, SSAValue]) -> list[SSAValue]:
        """The values of the leading arguments of the copied block; those without uses are erased."""
        values: list[SSAValue] = []
        for argument, bound in zip(block.args[: len(self.callee.symbols)], self.callee.symbols, strict=True):
            name = bound.symbol.data
            if argument.uses.get_length() == 0:
                block.erase_arg(argument)
            else:
                values.append(known[name] if name in known else self._insert(PrimOp(self.mapping[name])).result)
        return values

    def _result(self, terminator: Operation | None) -> SSAValue:
        """The value that the body returns, with the type of the call's result; erases the terminator."""
        if not isinstance(terminator, ReturnOp):
            raise ValueError(f"'relax.func' op @{self.callee.sym_name.data} has no 'relax.return'")
        value = terminator.value
        Rewriter.erase_op(terminator)
        (actual,) = as_struct_infos((value.type,))
        (wanted,) = as_struct_infos((self.call.result.type,))
        declared = substitute(self.callee.function_type.ret, self.mapping)
        if is_subtype(actual, declared, self.prover) is not Verdict.YES:
            value = self._cast(value, declared, "result").result
        return value if value.type == wanted else self._cast(value, wanted, "result").result

    def _cast(self, value: SSAValue, info: StructInfo, what: str, binds: Sequence[SymbolAttr] = ()) -> MatchCastOp:
        op = self._insert(MatchCastOp(value, info, binds, f"{what} of @{self.callee.sym_name.data}"))
        op.result.name_hint = value.name_hint
        return op

    def _insert(self, op: OpT) -> OpT:
        Rewriter.insert_op(op, InsertPoint.before(self.call))
        self._set_location((op,))
        return op

    def _set_location(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            for inner in op.walk():
                inner.location = self.call.location


class InlineFunctionsPass(ModulePass):
    """Inlines calls of private functions, and removes the functions that become unused.

    Before:

    ```mlir
    relax.func private @twice[%m](%y: !relax.tensor<[m], f32>) -> !relax.tensor<[m], f32> {
      %0 = relax.add %y, %y
      relax.return %0
    }
    relax.func @main[%n](%x: !relax.tensor<[4 * n], f32>) -> !relax.tensor<[4 * n], f32> {
      %0 = relax.call @twice(%x) : !relax.tensor<[4 * n], f32>
      relax.return %0
    }
    ```

    After:

    ```mlir
    relax.func @main[%n](%x: !relax.tensor<[4 * n], f32>) -> !relax.tensor<[4 * n], f32> {
      %0 = relax.add %x, %x
      relax.return %0
    }
    ```

    Symbols of the callee become what the arguments say; where only the run time knows, a `relax.match_cast` binds and
    checks them. Inlined ops have the location of the call. These stay calls: recursion, functions between two
    recursions, `force_pure` functions, functions with a closure that binds symbols, calls bound to
    fail at run time, and inside a dataflow region functions with control flow or closures. Idempotent.
    """

    name = "inline-functions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Visits callees before callers, so that every body is copied in its final form."""
        functions = {func.sym_name.data: func for func in op.ops if isinstance(func, FuncOp)}
        order, recursive = _callees_first(functions)
        candidates = {name: func for name, func in functions.items() if name not in recursive}
        inlined: set[str] = set()
        for name in order:
            inlined |= _inline_into(functions[name], candidates)
        _remove_unused(op, [functions[name] for name in reversed(order) if name in inlined])


def _inline_into(func: FuncOp, candidates: Mapping[str, FuncOp]) -> set[str]:
    """Inlines the calls in one function; gives the names of the callees."""
    taken: set[str] | None = None
    inlined: set[str] = set()
    for call in [inner for inner in func.walk() if isinstance(inner, CallOp)]:
        name = call.callee.string_value()
        callee = candidates.get(name)
        if callee is not None and can_inline(callee, call):
            taken = all_symbols(func) if taken is None else taken
            if inline_call(call, callee, taken):
                inlined.add(name)
    return inlined


def _remove_unused(module: ModuleOp, functions: Iterable[FuncOp]) -> None:
    """Erases those functions, callers first, that nothing in the module refers to."""
    uses: dict[str, int] = {}
    for op in module.walk():
        for name in called_functions(op):
            uses[name] = uses.get(name, 0) + 1
    for func in functions:
        if not uses.get(func.sym_name.data):
            for op in func.walk():
                for name in called_functions(op):
                    uses[name] -= 1
            Rewriter.erase_op(func)


def _callees_first(functions: Mapping[str, FuncOp]) -> tuple[list[str], set[str]]:
    """All names, each after those that it calls as far as recursion lets, and the names in or between recursions."""
    calls = {
        name: {callee for op in func.walk() for callee in called_functions(op) if callee in functions}
        for name, func in functions.items()
    }
    leaves = _peel(calls)
    left = dict.fromkeys(name for name in functions if name not in set(leaves))
    callers: dict[str, set[str]] = {name: set() for name in left}
    for name in left:
        for callee in calls[name] & left.keys():
            callers[callee].add(name)
    roots = _peel(callers)
    recursive = set(left).difference(roots)
    return [*leaves, *(name for name in left if name in recursive), *reversed(roots)], recursive


def _peel(edges: Mapping[str, set[str]]) -> list[str]:
    """The nodes from which no cycle is reached, each after all that its edges lead to."""
    sources: dict[str, list[str]] = {name: [] for name in edges}
    for name, targets in edges.items():
        for target in targets:
            sources[target].append(name)
    missing = {name: len(targets) for name, targets in edges.items()}
    order = [name for name, count in missing.items() if count == 0]
    for name in order:
        for source in sources[name]:
            missing[source] -= 1
            if missing[source] == 0:
                order.append(source)
    return order
