"""What ops read and write, whether memory holds at one op what it holds at another, and what calls write into their
arguments.

Operators, and other ops without effects of their own, read the memory of their operands when they are executed: a write
between two evaluations of equal ops makes them different, and what is read after a write is what was written. So an op
may move, merge with an equal one, or be computed from the operands of another, if the memory that it reads is
`unchanged_between` the two positions; it may be left out in favour of a value that `may_be_view`.

In a pure function nothing that is read is ever written: the only writes are those of `relax.call_tir_inplace` into
memory that nothing else uses. That is known from the function's type, so that most questions cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import EffectInstance, MemoryEffectKind, get_effects
from xdsl.utils.exceptions import VerifyException

from relax_dialect.analysis.aliases import (
    Access,
    accesses,
    comes_from_outside,
    holds_memory,
    only_reads,
    origin,
    origins,
    who_else_sees,
)
from relax_dialect.external import EFFECTS, IMPURITY, VERIFIERS, VIEWS
from relax_dialect.ops.call_tir import CallTIRInplaceOp
from relax_dialect.ops.callees import find_prim_func
from relax_dialect.ops.calls import CallOp
from relax_dialect.ops.dataflow import DataflowOp, FusedOp
from relax_dialect.ops.structure import ClosureOp, FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.scope import find_function
from relax_dialect.struct_info.types import TensorType
from relax_dialect.traits import AliasesOperand, Loop, MayBeImpure, OnlyReadsTensors

_READ = EffectInstance(MemoryEffectKind.READ)
_NO_EFFECT: frozenset[EffectInstance] = frozenset()


@EFFECTS.attach("ReadsTensors")
def reading_effects(op: Operation) -> AbstractSet[EffectInstance]:
    """The effects of an op that reads its operands and makes its results, for xDSL.

    It reads where somebody may write, and it makes something that is its own where somebody may write into a result, as
    a caller may into what it gets: then it is not the same as an equal op, and may be removed all the same.
    """
    effects = set[EffectInstance]()
    if any(map(holds_memory, op.operands)) and not runs_in_pure_code(op):
        effects.add(_READ)
    if not op.has_trait(AliasesOperand):
        written = (each for each in op.results if holds_memory(each) and (may_be_written(each) or is_returned(each)))
        effects.update(EffectInstance(MemoryEffectKind.ALLOC, result) for result in written)
    return effects or _NO_EFFECT


def may_write(op: Operation) -> bool:
    """Whether an op, one in its regions, or one of a function that it calls, may write into memory that others read."""
    return _may_write(op, set())


def _may_write(op: Operation, seen: set[FuncOp]) -> bool:
    """`may_write`, for what the functions do not say `seen`."""
    if op.has_trait(AliasesOperand) or only_reads(op) or (op.has_trait(OnlyReadsTensors) and not op.regions):
        return False
    if isinstance(op, MayBeImpure):
        return op.impurity is not None and (not isinstance(op, CallOp) or _callee_may_write(op, seen))
    if op.regions:
        blocks = (block for region in op.regions for block in region.blocks)
        return not isinstance(op, ClosureOp) and any(_may_write(inner, seen) for block in blocks for inner in block.ops)
    return may_be_observed(op)


def _callee_may_write(op: CallOp, seen: set[FuncOp]) -> bool:
    func = find_function(op, op.callee.string_value())
    if not isinstance(func, FuncOp):
        return True
    is_new = func not in seen
    seen.add(func)
    return is_new and any(_may_write(inner, seen) for inner in func.body.block.ops)


def may_be_observed(op: Operation) -> bool:
    """Whether an op, or one in its regions, does more than to read and to make new values: it writes, prints or ends
    the program.
    """
    effects = get_effects(op)
    return effects is None or any(e.kind in (MemoryEffectKind.WRITE, MemoryEffectKind.FREE) for e in effects)


def runs_in_pure_code(op: Operation | Block) -> bool:
    """Whether the function, and closures, around an op are pure: what it reads is never written."""
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, FuncOp):
            return parent.function_type.pure
        if isinstance(parent, ClosureOp) and not parent.result.type.pure:
            return False
        parent = parent.parent_op()
    return False


def may_be_written(value: SSAValue) -> bool:
    """Whether the function, or code that it calls, may write into the memory of a value at some time."""
    owner = value.owner
    is_new = isinstance(owner, ConstantOp) or (isinstance(owner, Operation) and only_reads(owner))
    if is_new and all(only_reads(use.operation) for use in value.uses):
        return False  # new memory that is only looked at, as most is
    pure = runs_in_pure_code(owner)
    if not pure and any(map(comes_from_outside, origins(value))):
        return True
    return any(access in (Access.WRITE, Access.KEEP) for _, access in accesses(value))


def written_parameters(func: FuncOp) -> frozenset[int]:
    """The parameters of a function whose memory it, or code that it calls, may write into."""
    if func.function_type.pure:
        return frozenset()
    return frozenset(
        index
        for index, param in enumerate(func.params)
        if holds_memory(param) and any(access in (Access.WRITE, Access.KEEP) for _, access in accesses(param))
    )


def is_never_written(value: SSAValue) -> bool:
    """Whether a value may be read at any other position, or be replaced by another one with the same elements."""
    return not may_be_written(value)


@VIEWS.attach("may_be_view")
def may_be_view(copy: SSAValue, source: SSAValue) -> bool:
    """Whether a copy may share the memory of its source.

    Nobody writes into either of them in the function, and its caller, who may write into what it gets, does not get
    memory that somebody else has too: an argument, or another result. Constants are copied where they leave
    (`copy-constants`).
    """
    if may_be_written(copy) or may_be_written(source):
        return False
    if not is_returned(copy):
        return True
    return not any(map(comes_from_outside, origins(source))) and not is_returned(source)


def is_returned(value: SSAValue) -> bool:
    """Whether the caller of the function may get the memory of a value: of two results, each has its own."""
    if (
        isinstance(value.owner, Operation)
        and only_reads(value.owner)
        and all(only_reads(u.operation) for u in value.uses)
    ):
        return False
    return any(access is Access.RETURN for _, access in accesses(value))


def unchanged_between(values: Iterable[SSAValue], early: Operation, late: Operation) -> bool:
    """Whether values that an op uses have the same elements when a later one is executed."""
    if runs_in_pure_code(late):
        return True
    return not _may_write_between(early, late) or not any(holds_memory(v) and may_be_written(v) for v in values)


def _may_write_between(early: Operation, late: Operation) -> bool:
    """Whether an op that may write is executed after an op and before another, as far as can be seen."""
    while early.parent is not late.parent and not _is_around(early.parent, late):
        parent = early.parent_op()
        if not isinstance(parent, DataflowOp | FusedOp) or _any_writes(early.next_op, None):
            return True
        early = parent
    while late.parent is not early.parent:
        block, parent = late.parent, late.parent_op()
        if block is None or parent is None or isinstance(parent, ClosureOp) or _any_writes(block.first_op, late):
            return True
        if parent.has_trait(Loop) and may_write(parent):
            return True
        late = parent
    return _any_writes(early.next_op, late)


def _is_around(block: Block | None, op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None:
        if parent.parent is block:
            return True
        parent = parent.parent_op()
    return False


def _any_writes(op: Operation | None, end: Operation | None) -> bool:
    """Whether one of the ops of a block from one on, up to another, may write; so it is if that other is not met."""
    while op is not end:
        if op is None or may_write(op):
            return True
        op = op.next_op
    return False


@IMPURITY.attach("relax.call_tir_inplace")
def inplace_impurity(op: CallTIRInplaceOp) -> str | None:
    """Why a call in place has a visible effect: somebody else sees an argument that it writes."""
    for index in op.targets:
        if 0 <= index < len(op.arguments):
            reason = who_else_sees(op.arguments[index])
            if reason is not None:
                return f"writes its argument #{index}, {reason}"
    return None


@VERIFIERS.attach("relax.call_tir_inplace")
def verify_inplace(op: CallTIRInplaceOp) -> None:
    """Raises `VerifyException` for a call that writes into a constant, or into what another argument is part of."""
    memory = [origin(argument) if isinstance(argument.type, TensorType) else None for argument in op.arguments]
    for target, result in zip(op.targets, op.res, strict=True):
        source = memory[target] if target >= 0 else None
        if source is not None and isinstance(source.owner, ConstantOp):
            raise VerifyException(
                f"'relax.call_tir_inplace' op writes result #{result.index} into a constant, argument #{target}"
            )  # C6
    func = find_prim_func(op, op.callee)
    if func is not None and func.may_alias is not None:
        return
    for target in op.targets:
        for index, other in enumerate(memory):
            if target >= 0 and index != target and other is memory[target]:
                raise VerifyException(
                    f"'relax.call_tir_inplace' op writes its argument #{target}, which argument #{index} is part "
                    "of too: pass a copy, or let the PrimFunc say 'may_alias'"
                )  # C7
