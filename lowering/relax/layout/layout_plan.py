"""Where data is blocked: operators that pass blocked data to each other are converted together or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Operation, SSAValue, Use
from xdsl.utils.exceptions import VerifyException

from lowering.relax.layout.blocked_steps import Known, Role, Step, step_of
from lowering.relax.layout.blocking import Blocking, dims_of, is_one_position
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.inference import ONE
from relax_dialect.ops.convolution import Conv2dOp
from relax_dialect.ops.dataflow import DataflowOp, OutputOp
from relax_dialect.ops.operator import Operator
from relax_dialect.ops.shapes import TupleOp
from relax_dialect.ops.structure import FuncOp, ReturnOp
from relax_dialect.ops.values import ConstantOp

LONG_SUM = 25
"""Products for each result from which a window gains more than two changes of layout cost."""
LONGER_SUM = 64
"""The same for what three changes cost, such as that of weights which are not constant."""
FULL = 0.8
"""So much of the work in blocks has to be for results and channels that there are."""


WEIGHT_ROLES = (Role.INNER_WEIGHTS, Role.OUTER_WEIGHTS)


@dataclass
class _Group:
    """Operators connected by values in blocks."""

    gain: int = 0
    """What its convolutions gain, in changes of layout."""
    moved: set[SSAValue] = field(default_factory=set[SSAValue])
    """The values with more than one position that are in blocks for some and without for others."""

    @property
    def is_profitable(self) -> bool:
        return self.gain > len(self.moved)


def plan(func: FuncOp, blocking: Blocking) -> tuple[Mapping[Operation, Step], Known]:
    """The steps of a function in program order, and the channels of what they make."""
    known, steps = Known(blocking), dict[Operation, Step]()
    for op in func.walk():
        step = _step(op, known)
        if step is not None:
            steps[op] = step
            pairs = zip(op.results, step.channels, strict=True)
            known.channels.update((result, count) for result, count in pairs if count is not None)
    groups = _groups(steps, known)
    return {op: step for op, step in steps.items() if groups[op].is_profitable}, known


def _step(op: Operation, known: Known) -> Step | None:
    """The step of an op whose results have the types that can be inferred and are written into by nobody."""
    step = step_of(op, known)
    if step is None or not isinstance(op, Operator) or not all(map(_stays, op.results)):
        return None
    try:
        inferred = op.infer_result_types(op.operand_types, op.properties)
    except VerifyException:
        return None
    return step if inferred == tuple(op.result_types) and all(map(dims_of, op.results)) else None


def _stays(value: SSAValue) -> bool:
    """Whether nobody writes into a value while the function runs; the caller may get it in a tuple."""
    return is_never_written(value) or all(_is_result(use) or _reads(value, use) for use in value.uses)


def _is_result(use: Use) -> bool:
    """Whether a use is nothing but returning the value."""
    op = use.operation
    if isinstance(op, ReturnOp):
        return True
    if isinstance(op, OutputOp):
        dataflow = op.parent_op()
        return isinstance(dataflow, DataflowOp) and _stays(dataflow.results[use.index])
    return isinstance(op, TupleOp) and all(map(_is_result, op.result.uses))


def _reads(value: SSAValue, use: Use) -> bool:
    return isinstance(use.operation, Operator) and is_never_written(use.operation.results[0])


def _groups(steps: Mapping[Operation, Step], known: Known) -> Mapping[Operation, _Group]:
    """The group of each op."""
    leaders = {op: op for op in steps}

    def leader(op: Operation) -> Operation:
        while leaders[op] is not op:
            leaders[op] = leaders[leaders[op]]
            op = leaders[op]
        return op

    for op in steps:
        for maker in _makers(op, known):
            leaders[leader(maker)] = leader(op)
    groups = {op: _Group() for op in steps if leaders[op] is op}
    found = {op: groups[leader(op)] for op in steps}
    for op, step in steps.items():
        found[op].gain += _gain(op, known.blocking) if isinstance(op, Conv2dOp) else 0
        found[op].moved.update(_moved(op, step, steps, known))
    return found


def _gain(op: Conv2dOp, blocking: Blocking) -> int:
    """How many changes of layout a convolution pays for: without blocks its window is gathered position by position.

    Where blocks are not filled, what is beyond their end takes that gain away. The fewer filters share a window, the
    longer it takes to gather it: those of a group.
    """
    filters, inner, *window = (dim.constant_value or 1 for dim in dims_of(op.w) or ())
    in_blocks = blocking.padded(filters) * (inner if inner < blocking.size else blocking.padded(inner))
    if FULL * in_blocks > filters * inner or prod(window) == 1:
        return 1
    if inner * prod(window) >= LONGER_SUM or (op.groups.value.data > 1 and inner > 1):
        return 4
    return 3 if inner * prod(window) >= LONG_SUM else 1


def _makers(op: Operation, known: Known) -> Iterator[Operation]:
    """The ops that make what an op reads in blocks."""
    for operand in op.operands:
        if known.of(operand) is not None and isinstance(operand.owner, Operation):
            yield operand.owner


def _moved(op: Operation, step: Step, steps: Mapping[Operation, Step], known: Known) -> Iterator[SSAValue]:
    """The values at an op that are needed in both layouts, but for small ones."""
    for operand, role in zip(op.operands, step.roles, strict=True):
        moves = role is not Role.AS_IT_IS and known.of(operand) is None
        if moves and not isinstance(operand.owner, ConstantOp) and (role in WEIGHT_ROLES or _is_large(operand)):
            yield operand
    for result, channels in zip(op.results, step.channels, strict=True):
        if (
            channels is not None
            and not is_one_position(result)
            and any(use.operation not in steps for use in result.uses)
        ):
            yield result


def _is_large(value: SSAValue) -> bool:
    """Whether a value has channels and positions."""
    dims = dims_of(value) or ()
    if len(dims) < 3:
        return False
    return dims[-3] is not ONE and (dims[-1] is not ONE or dims[-2] is not ONE)
