"""Collective operators: what the workers of a group exchange. A process is one worker, and its group has no other."""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import ONE, Inference
from relax_dialect.ops.fields import flag, integer
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim, constant, floordiv
from tir_dialect.ops.assembly_format import op_definition

REDUCTIONS = ("sum", "prod", "min", "max", "avg")
"""What `relax.ccl.allreduce` combines the workers' elements by."""


class CollectiveOp(Operator, ABC):
    """An exchange of tensors between workers.

    A program runs as one worker whose group is itself, so an exchange gives the worker's own tensor. One between
    several workers is read, inferred and printed, and an error when it is built or interpreted.
    """

    x = operand_def(TensorType)
    result = result_def(TensorType)


class DividingOp(CollectiveOp, ABC):
    """Gives each worker its part of a tensor that is cut along an axis.

    C1: there is at least one worker.
    C2: the axis is within the rank.
    C3: the dimension is a multiple of the number of workers.
    """

    num_workers = prop_def(IntegerAttr)
    axis = prop_def(IntegerAttr, default_value=integer(0))

    def __init__(self, x: SSAValue | Operation, num_workers: int, axis: int = 0):
        super().__init__([x], {"num_workers": integer(num_workers), "axis": integer(axis)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        workers, x = workers_of(inference), inference.tensor(0)  # C1
        if x.dims is None:
            return (x,)
        axis = inference.axis(inference.integer("axis"), len(x.dims))  # C2
        dims = [_part(inference, dim, workers) if at == axis else dim for at, dim in enumerate(x.dims)]  # C3
        return (x.with_shape(dims),)


def workers_of(inference: Inference) -> int:
    """The property `num_workers`; fails if there is none."""
    found = inference.integer("num_workers")
    if found < 1:
        inference.fail(f"expected at least one worker, got {found}")
    return found


def _part(inference: Inference, dim: Dim | None, workers: int) -> Dim | None:
    return None if dim is None else divided(inference, dim, workers)


def divided(inference: Inference, dim: Dim, workers: int) -> Dim:
    """A worker's part of a dimension, which has to be a multiple of their number."""
    inference.require_divisible(dim, workers, f"a dimension that {workers} workers divide")
    return floordiv(dim, workers)


@op_definition
class AllReduceOp(CollectiveOp):
    """The elements of all workers, combined.

    ```mlir
    %0 = relax.ccl.allreduce %x op_type = "max"
    ```

    With `all_groups`, those of every group's workers.

    C1: the combination is `sum`, `prod`, `min`, `max` or `avg`.
    """

    name = "relax.ccl.allreduce"

    op_type = prop_def(StringAttr, default_value=StringAttr("sum"))
    all_groups = opt_prop_def(UnitAttr)

    def __init__(self, x: SSAValue | Operation, op_type: str = "sum", all_groups: bool = False):
        super().__init__([x], {"op_type": StringAttr(op_type), "all_groups": flag(all_groups)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        if (given := inference.string("op_type")) not in REDUCTIONS:
            inference.fail(f"expected op_type to be one of {', '.join(REDUCTIONS)}, got {given}")  # C1
        return (inference.tensor(0),)


@op_definition
class AllGatherOp(CollectiveOp):
    """The tensors of all workers, joined along the first dimension.

    ```mlir
    %0 = relax.ccl.allgather %x num_workers = 2
    ```

    C1: there is at least one worker.
    C2: the rank is at least 1.
    """

    name = "relax.ccl.allgather"

    num_workers = prop_def(IntegerAttr)
    all_groups = opt_prop_def(UnitAttr)

    def __init__(self, x: SSAValue | Operation, num_workers: int, all_groups: bool = False):
        super().__init__([x], {"num_workers": integer(num_workers), "all_groups": flag(all_groups)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        workers, x = workers_of(inference), inference.tensor(0)  # C1
        if x.dims is None:
            return (x,)
        inference.require_at_most(ONE, constant(len(x.dims)), "a rank of at least 1")  # C2
        first, *rest = x.dims
        return (x.with_shape([None if first is None else first * workers, *rest]),)


@op_definition
class BroadcastFromWorker0Op(CollectiveOp):
    """The tensor of the first worker: `%0 = relax.ccl.broadcast_from_worker0 %x`."""

    name = "relax.ccl.broadcast_from_worker0"

    def __init__(self, x: SSAValue | Operation):
        super().__init__([x])

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        return (inference.tensor(0),)


@op_definition
class ScatterFromWorker0Op(DividingOp):
    """The worker's part of the first worker's tensor.

    ```mlir
    %0 = relax.ccl.scatter_from_worker0 %x num_workers = 2 axis = 1
    ```
    """

    name = "relax.ccl.scatter_from_worker0"


def several_workers(op: CollectiveOp) -> str | None:
    """Why an exchange cannot be made: it is one between several workers; nothing where it can."""
    workers = op.num_workers.value.data if isinstance(op, AllGatherOp | DividingOp) else 1
    return None if workers == 1 else f"exchanges between {workers} workers, but a program runs as one"
