"""`remove-unused-outputs`: private functions return what is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from lowering.locations import inherit_location
from lowering.relax.call_graph import called_by_name
from lowering.relax.functions.signatures import field_of, replace_result, tuple_of
from relax_dialect.ops.calls import CallOp
from relax_dialect.ops.shapes import TupleGetOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.struct_info.base import StructInfo, as_struct_infos
from relax_dialect.struct_info.functions import FuncType
from relax_dialect.struct_info.types import TupleType
from tir_dialect.dead_code import erase_dead


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
            self._rewrite_return(func)
        for func in shrinking:
            for call in self.functions[func]:
                self._rewrite_call(func, call)
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

    def _rewrite_return(self, func: FuncOp) -> None:
        """Returns the kept fields; what a call returns as it is if that keeps the same fields."""
        old, end, kept = func.function_type, _return_op(func), self._kept(func)
        value = end.value
        func.function_type = FuncType(old.params, _shrunk(old.ret, kept), pure=old.pure, symbols=old.symbols)
        if func.result_names is not None:
            func.result_names = ArrayAttr([func.result_names.data[index] for index in kept])
        callee = self._callee.get(value.owner) if isinstance(value.owner, CallOp) else None
        if callee is not None and self._kept(callee) == kept:
            return
        end.operands[0] = tuple_of([field_of(value, index, end) for index in kept], end)
        if isinstance(value.owner, Operation):
            erase_dead((value.owner,))

    def _rewrite_call(self, func: FuncOp, call: CallOp) -> None:
        kept = self._kept(func)
        (result_type,) = as_struct_infos(call.result_types)
        new = replace_result(call, _shrunk(result_type, kept))
        for get in [use.operation for use in new.result.uses]:
            if isinstance(get, TupleGetOp):
                moved = TupleGetOp(new.result, kept.index(get.index.value.data))
                moved.result.name_hint = get.result.name_hint
                inherit_location(get, moved)
                Rewriter.replace_op(get, moved)


def _shrunk(info: StructInfo, kept: Sequence[int]) -> StructInfo:
    return TupleType(info.fields[index] for index in kept) if isinstance(info, TupleType) else info
