"""Which values may share memory, and what each use does to it.

A tensor is memory; a tuple holds that of its fields, a closure that of what it captures, and an object may hold any.
Operators, `call_tir` and destination-passing calls make new memory for their results, and so does a constant each time
that it is evaluated. Casts, guards and views, `call_tir_inplace`, tuples and their fields, regions, loops, captures and
calls pass memory on. Parameters, and what calls give back, is memory that others may have too, under any name: two
parameters of a function may be the same tensor.

Nothing is stored between two questions, so that a pass may ask while it rewrites.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from functools import cache
from typing import TypeAlias

from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue, Use

from relax_dialect.ops.call_tir import CallDPSPackedOp, CallPackedOp, CallPurePackedOp, CallTIRInplaceOp, CallTIROp
from relax_dialect.ops.callees import find_prim_func
from relax_dialect.ops.calls import CallClosureOp, CallOp, MakeClosureOp
from relax_dialect.ops.control_flow import IfOp, YieldOp, yielded
from relax_dialect.ops.dataflow import DataflowOp, FusedOp, OutputOp
from relax_dialect.ops.effects import AssertOp, PrintOp
from relax_dialect.ops.memory import AllocTensorOp, CallKernelOp, KillOp, StorageTensorOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import TupleGetOp, TupleOp
from relax_dialect.ops.signature import LoopOp
from relax_dialect.ops.structure import ClosureOp, FuncOp, ReturnOp
from relax_dialect.scope import find_function
from relax_dialect.struct_info.types import PrimType, ShapeType
from relax_dialect.traits import AliasesOperand, MayBeImpure, OnlyReadsTensors
from tir_dialect.analysis.structure import is_written

_READERS = (Operator, CallTIROp, CallDPSPackedOp, AssertOp, PrintOp)
"""Ops that look at elements and keep nothing, and whose results are new memory unless they are views."""

_CALLS = (CallOp, CallClosureOp, CallPackedOp, CallPurePackedOp)
"""Ops that run code that is elsewhere: it may give back what it gets, or what others have."""


class Access(Enum):
    """What a use does to the memory of a value."""

    READ = auto()
    """It looks at elements or at the type, or ends the life of the value."""
    WRITE = auto()
    """It writes into the memory."""
    PASS = auto()
    """Other values have the memory too: those of `derived`."""
    RETURN = auto()
    """The function returns it: what the caller does then comes after all that the function does."""
    KEEP = auto()
    """Code that is not here gets it, and may write into it now or whenever other such code runs."""


def holds_memory(value: SSAValue) -> bool:
    """Whether a value is or holds memory that can be written; shapes and numbers are not."""
    return not isinstance(value.type, ShapeType | PrimType)


def only_reads(op: Operation) -> bool:
    """Whether an op looks at its operands, keeps nothing of them, and makes new memory for its results."""
    return _is_reader(type(op))


@cache
def _is_reader(kind: type[Operation]) -> bool:
    return issubclass(kind, _READERS) and not kind.has_trait(AliasesOperand)


def access_of(use: Use, summaries: Summaries | None = None) -> Access:
    """What a use does; `summaries` are those of functions, kept if one program is analysed many times."""
    op = use.operation
    if op.has_trait(AliasesOperand):
        return Access.PASS if use.index == 0 else Access.READ
    if isinstance(op, _READERS):
        return Access.READ
    if isinstance(op, CallTIRInplaceOp):
        return Access.WRITE if use.index in op.targets else Access.READ
    if isinstance(op, CallKernelOp):
        func = find_prim_func(op, op.callee)
        is_read = func is not None and not is_written(func.params[use.index])
        return Access.READ if is_read else Access.WRITE
    if isinstance(op, ReturnOp):
        return Access.PASS if isinstance(op.parent_op(), ClosureOp) else Access.RETURN
    if isinstance(op, IfOp | KillOp) or op.has_trait(OnlyReadsTensors):
        return Access.READ
    if isinstance(op, CallOp | MakeClosureOp):
        return _access_of_callee(op, use.index, summaries or Summaries())
    if isinstance(op, MayBeImpure) and op.impurity is not None:
        return Access.KEEP
    if isinstance(op, _PASSES):
        return Access.PASS
    return Access.KEEP


def _access_of_callee(op: CallOp | MakeClosureOp, index: int, summaries: Summaries) -> Access:
    """What a function of the module does with an argument, or with what a closure holds for it, for as long as there
    is one.
    """
    func = find_function(op, op.callee.string_value())
    if not isinstance(func, FuncOp):  # a PrimFunc, or what is not there yet
        return Access.PASS if isinstance(op, CallOp) and op.impurity is None else Access.KEEP
    access = summaries.access(func, index)
    return Access.KEEP if isinstance(op, MakeClosureOp) and access is Access.WRITE else access


_PASSES = (
    *_CALLS,
    TupleOp,
    TupleGetOp,
    MakeClosureOp,
    StorageTensorOp,
    LoopOp,
    OutputOp,
    YieldOp,
)


def derived(use: Use) -> Sequence[SSAValue]:
    """The values that may have the memory of an operand because of this use."""
    op = use.operation
    match op:
        case CallTIRInplaceOp():
            return [result for result, target in zip(op.res, op.targets, strict=True) if target == use.index]
        case LoopOp():
            return [*op.res, *_carried(op)]
        case OutputOp() | YieldOp():
            # What the value with which a region ends becomes.
            parent = op.parent_op()
            if isinstance(parent, LoopOp):
                return [*parent.res, *_carried(parent)]
            return parent.results[use.index : use.index + 1] if parent is not None else ()
        case ReturnOp():
            parent = op.parent_op()
            return parent.results if isinstance(parent, ClosureOp) else ()
        case _ if op.has_trait(AliasesOperand):
            return op.results[:1] if use.index == 0 else ()
        case _ if isinstance(op, _READERS):
            return ()
        case _:
            return op.results


def _carried(loop: LoopOp) -> Iterator[BlockArgument]:
    for region in loop.regions:
        yield from region.block.args


def sources(value: SSAValue) -> Sequence[SSAValue]:
    """The values whose memory a value may have; none if it is new memory, or if it comes from outside."""
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        return _into_loop(loop) if isinstance(loop, LoopOp) else ()
    if not isinstance(value, OpResult):
        return ()
    op = value.op
    match op:
        case CallTIRInplaceOp():
            target = op.targets[value.index]
            return () if target < 0 else (op.arguments[target],)
        case LoopOp():
            return _into_loop(op)
        case DataflowOp() | FusedOp() | IfOp():
            ends = (region.block.last_op for region in op.regions)
            return [each for end in ends if end is not None for each in end.operands[value.index : value.index + 1]]
        case ClosureOp():
            end = op.body.block.last_op
            return () if end is None else end.operands
        case TupleGetOp() if isinstance(made := op.tuple.owner, TupleOp):
            return (made.operands[op.index.value.data],)
        case _ if op.has_trait(AliasesOperand):
            return op.operands[:1] if value.index == 0 else ()
        case _ if isinstance(op, _READERS):
            return ()
        case _:
            return op.operands


def _into_loop(loop: LoopOp) -> Sequence[SSAValue]:
    return [*loop.inits, *(value for region in loop.regions for value in yielded(region))]


def comes_from_outside(value: SSAValue) -> bool:
    """Whether others may have the memory of a value that has no, or not only, `sources`: parameters and results."""
    if isinstance(value, BlockArgument):
        return not isinstance(value.block.parent_op(), LoopOp)
    owner = value.owner
    return isinstance(owner, _CALLS) or (not isinstance(owner, _KNOWN) and not _passes_on(owner))


_KNOWN = (
    *_READERS,
    *_PASSES,
    AllocTensorOp,
    CallTIRInplaceOp,
    ClosureOp,
    DataflowOp,
    FusedOp,
    IfOp,
)


def _passes_on(owner: object) -> bool:
    return isinstance(owner, Operation) and (owner.has_trait(AliasesOperand) or not owner.operands)


def origins(value: SSAValue) -> Iterator[SSAValue]:
    """The values as which the memory of a value may have been made or got into the function; others lead to it."""
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        before = [each for each in sources(current) if holds_memory(each)]
        if not before or comes_from_outside(current):
            yield current
        new = [each for each in before if each not in seen]
        seen.update(new)
        pending += new


def aliases(value: SSAValue) -> Iterator[SSAValue]:
    """All values that may share memory with a value, itself among them."""
    yield from (each for each, _ in _forward([(each, None) for each in origins(value)], Summaries()))


def accesses(value: SSAValue) -> Iterator[tuple[Use, Access]]:
    """All uses of the memory of a value, under whatever name, and what they do."""
    return _accesses([(each, None) for each in origins(value)], Summaries())


_Held: TypeAlias = tuple[SSAValue, int | None]
"""A value that may have some memory; of a tuple that was just made, the field that has it."""


def _accesses(held: Iterable[_Held], summaries: Summaries) -> Iterator[tuple[Use, Access]]:
    """The uses of the memory that some values have, from these on."""
    for each, field in _forward(held, summaries):
        for use in each.uses:
            if may_take(use, field):
                yield use, access_of(use, summaries)


def _forward(held: Iterable[_Held], summaries: Summaries) -> Iterator[_Held]:
    """The values that may have the memory of some values, these among them."""
    pending = list(held)
    seen = set(pending)
    while pending:
        value, field = pending.pop()
        yield value, field
        for use in value.uses:
            if only_reads(use.operation) or not may_take(use, field):
                continue
            if access_of(use, summaries) in (Access.READ, Access.RETURN):
                continue
            index = use.index if isinstance(use.operation, TupleOp) else None
            for each in derived(use):
                if holds_memory(each) and (each, index) not in seen:
                    seen.add((each, index))
                    pending.append((each, index))


def may_take(use: Use, field: int | None) -> bool:
    """Whether a use of a tuple may be one of a field."""
    return field is None or not isinstance(use.operation, TupleGetOp) or use.operation.index.value.data == field


# What functions do


class Summaries:
    """What the functions of a module do with the memory of their parameters, each looked at when it is first asked for.

    Functions that call each other are looked at until nothing changes: each does the least that agrees with the others.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[FuncOp, int], Access] = {}
        self._is_settling = False

    def access(self, func: FuncOp, index: int) -> Access:
        """What a call does with an argument: `PASS` if only the result may have its memory afterwards, `WRITE` if it is
        written until then, `KEEP` if other code has it.
        """
        if (func, index) not in self._known:
            self._known[func, index] = Access.READ
            if not self._is_settling:
                self._settle()
        return self._known[func, index]

    def _settle(self) -> None:
        self._is_settling, before = True, dict[tuple[FuncOp, int], Access]()
        while before != self._known:
            before = dict(self._known)
            for func, index in before:
                found = {access for _, access in _accesses([(func.params[index], None)], self)}
                if Access.RETURN in found:
                    found.add(Access.PASS)
                self._known[func, index] = next((access for access in _MOST_FIRST if access in found), Access.READ)
        self._is_settling = False


_MOST_FIRST = (Access.KEEP, Access.WRITE, Access.PASS)


def leaking_uses(value: SSAValue, summaries: Summaries) -> Iterator[Use]:
    """The uses of a value by which others get its memory: the caller, other code, or what writes into it."""
    for use in value.uses:
        index = use.index if isinstance(use.operation, TupleOp) else None
        first, after = access_of(use, summaries), _accesses([(each, index) for each in derived(use)], summaries)
        found = (first, *(access for _, access in after)) if first is Access.PASS else (first,)
        if not {Access.WRITE, Access.RETURN, Access.KEEP}.isdisjoint(found):
            yield use


# Memory under one name after the other


def views(value: SSAValue) -> Iterator[SSAValue]:
    """The value, and every value that is certain to have its memory: views, casts and tensors in a storage."""
    pending = [value]
    while pending:
        current = pending.pop()
        yield current
        for use in current.uses:
            if _makes_view(use):
                pending += derived(use)


def _makes_view(use: Use) -> bool:
    op = use.operation
    return isinstance(op, StorageTensorOp) or (use.index == 0 and op.has_trait(AliasesOperand))


def origin(value: SSAValue) -> SSAValue:
    """The value of which a value is certain to be a view, under the type with which it was made or came in."""
    while isinstance(value, OpResult) and value.index == 0 and value.op.has_trait(AliasesOperand):
        value = value.op.operands[0]
    return value


def leaves(tensor: SSAValue, *, past_branches: bool = False) -> bool:
    """Whether a tensor goes where more is needed than where its elements are: to the caller, to other code, into a
    tuple, or to the next iteration; with `past_branches`, not only to where the result of a branch goes.

    Kernels need no more, nor do ops that look at elements or at the type; other operators are code that is elsewhere.
    """
    for view in views(tensor):
        for use in view.uses:
            user = use.operation
            if _makes_view(use) or isinstance(user, CallKernelOp | KillOp) or user.has_trait(OnlyReadsTensors):
                continue
            branch = user.parent_op() if past_branches and isinstance(user, YieldOp) else None
            if not isinstance(branch, IfOp) or leaves(branch.res[use.index], past_branches=True):
                return True
    return False


def who_else_sees(value: SSAValue) -> str | None:
    """Why a write into `value` by its user may be seen by others, or `None` if nobody else can have the memory."""
    pending, seen = [value], {value}
    while pending:
        current = pending.pop()
        if not current.has_one_use():
            return "which is used elsewhere"
        owner = current.owner
        if comes_from_outside(current):
            is_result = isinstance(owner, Operation)
            return f"the result of '{owner.name}', {_OTHERS}" if is_result else "a parameter, which the caller can see"
        if isinstance(owner, CallTIRInplaceOp):
            continue  # which has said so of its target
        new = [each for each in sources(current) if holds_memory(each) and each not in seen]
        seen.update(new)
        pending += new
    return None


_OTHERS = "whose memory others may have"
