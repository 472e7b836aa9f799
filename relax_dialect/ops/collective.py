"""Collective operators: what the workers of a group exchange.

A group is all workers, or with `group = "x"` those that differ only by their index along an axis of the mesh.
"""

from __future__ import annotations

from abc import ABC

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def, var_operand_def

from relax_dialect.inference import ONE, Inference
from relax_dialect.ops.fields import dims, flag, integer
from relax_dialect.ops.operator import Operator
from relax_dialect.struct_info.types import ShapeType, TensorType
from tir_dialect.dims import Dim, DimLike, constant, floordiv
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.types import DimAttr

REDUCTIONS = ("sum", "prod", "min", "max", "avg")
"""What the workers' elements are combined by."""


class CollectiveOp(Operator, ABC):
    """An exchange of tensors between the workers of a group, all of which run the same op.

    A program that runs as one worker is a group of its own; then an exchange gives the worker's own tensor.
    """

    group = opt_prop_def(StringAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    @property
    def group_name(self) -> str:
        """The axis of the mesh along which the workers are; empty for all workers."""
        return "" if self.group is None else self.group.data


STARTED = ("allreduce", "allgather", "reduce_scatter")
"""The exchanges that may begin before they end."""

TOKEN = TensorType([0], i1)
"""What a `relax.ccl.start` gives."""


FINISH = "vm.builtin.ccl_finish_"
"""What the names of functions begin with that end an exchange which has begun: it is hidden by what comes before."""


class StartedOp(CollectiveOp, ABC):
    """An exchange that a `relax.ccl.start` may have begun, whose result is its second operand then."""

    x = operand_def(TensorType)
    started = var_operand_def(TensorType)


def _require_started(inference: Inference) -> None:
    """Fails unless the operands are a tensor and what one `relax.ccl.start` gives, if any."""
    count = len(inference.operand_types)
    if not 1 <= count <= 2:
        inference.fail(f"expected a tensor, and the result of at most one relax.ccl.start, got {count} operands")
    if count == 2 and (info := inference.tensor(1)).dims != TOKEN.dims:
        inference.fail(f"expected the result of a relax.ccl.start, {TOKEN}, got {info}")


def _name(group: str | None) -> StringAttr | None:
    return None if group is None else StringAttr(group)


def _dim(value: DimLike | None) -> DimAttr | None:
    return None if value is None else dims([value]).data[0]


class DividingOp(CollectiveOp, ABC):
    """Gives each worker its tile of a tensor that is cut along an axis.

    How large the tile is may be given, a `tile`; then the number of workers need not divide the dimension.

    C1: there is at least one worker.
    C2: the axis is within the rank.
    C3: the dimension is a multiple of the number of workers, unless the size of the tile is given.
    """

    num_workers = prop_def(IntegerAttr)
    axis = prop_def(IntegerAttr, default_value=integer(0))
    tile = opt_prop_def(DimAttr)

    def __init__(
        self,
        x: SSAValue | Operation,
        num_workers: int,
        axis: int = 0,
        group: str | None = None,
        tile: DimLike | None = None,
    ):
        super().__init__([x], self.dividing_properties(num_workers, axis, group, tile))

    @staticmethod
    def dividing_properties(
        num_workers: int, axis: int, group: str | None, tile: DimLike | None
    ) -> dict[str, Attribute | None]:
        """The properties for the arguments of the constructor."""
        return {
            "num_workers": integer(num_workers),
            "axis": integer(axis),
            "group": _name(group),
            "tile": _dim(tile),
        }

    @property
    def along(self) -> int:
        """The axis, counted from the front; the rank has to be known."""
        axis = self.axis.value.data
        return axis + (self.result.type.rank or 0) if axis < 0 else axis

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        workers, x = workers_of(inference), inference.tensor(0)  # C1
        if x.dims is None:
            return (x,)
        axis = inference.axis(inference.integer("axis"), len(x.dims))  # C2
        return (x.with_shape([_tile(inference, dim, workers) if at == axis else dim for at, dim in enumerate(x.dims)]),)


def workers_of(inference: Inference) -> int:
    """The property `num_workers`; fails if there is none."""
    found = inference.integer("num_workers")
    if found < 1:
        inference.fail(f"expected at least one worker, got {found}")
    return found


def _tile(inference: Inference, dim: Dim | None, workers: int) -> Dim | None:
    """The worker's tile of a dimension: what the op says, or one of as many as there are workers."""
    if (given := inference.get("tile", DimAttr)) is not None:
        return given.data
    return None if dim is None else divided(inference, dim, workers)  # C3


def divided(inference: Inference, dim: Dim, workers: int) -> Dim:
    """A worker's tile of a dimension, which has to be a multiple of their number."""
    inference.require_divisible(dim, workers, f"a dimension that {workers} workers divide")
    return floordiv(dim, workers)


def _whole(inference: Inference, dim: Dim | None, workers: int) -> Dim | None:
    """A dimension of which workers have tiles: what the op says, or as many as there are workers."""
    if (given := inference.get("size", DimAttr)) is not None:
        return given.data
    return None if dim is None else dim * workers


def _require_reduction(inference: Inference) -> None:
    if (given := inference.string("op_type")) not in REDUCTIONS:
        inference.fail(f"expected op_type to be one of {', '.join(REDUCTIONS)}, got {given}")


@op_definition
class StartOp(CollectiveOp):
    """Begins an exchange, which an op with the same operand and properties ends: in between, workers compute.

    ```mlir
    %t = relax.ccl.start %x collective = "allreduce" group = "x"
    %0 = relax.matmul %y, %w
    %1 = relax.ccl.allreduce %x, %t group = "x"
    ```

    Workers send what they have and go on; the result is an empty tensor, which the other op takes. The group exchanges
    nothing else in between. An `allgather` has a `num_workers`, and a `size`, if it is given there.

    C1: the exchange is `allreduce`, `allgather` or `reduce_scatter`.
    C2: the combination is `sum`, `prod`, `min`, `max` or `avg`.
    C3: the axis is within the rank, and there are workers, unless it is an `allreduce`.
    """

    name = "relax.ccl.start"

    collective = prop_def(StringAttr)
    op_type = prop_def(StringAttr, default_value=StringAttr("sum"))
    num_workers = prop_def(IntegerAttr, default_value=integer(0))
    axis = prop_def(IntegerAttr, default_value=integer(0))
    size = opt_prop_def(DimAttr)

    def __init__(
        self,
        x: SSAValue | Operation,
        collective: str,
        op_type: str = "sum",
        num_workers: int = 0,
        axis: int = 0,
        group: str | None = None,
        size: DimLike | None = None,
    ):
        properties = {
            "collective": StringAttr(collective),
            "op_type": StringAttr(op_type),
            "num_workers": integer(num_workers),
            "axis": integer(axis),
            "group": _name(group),
            "size": _dim(size),
        }
        super().__init__([x], properties)

    @classmethod
    def of(cls, op: StartedOp) -> StartOp:
        """What begins an exchange."""
        kind, group = op.name.rpartition(".")[2], None if op.group is None else op.group.data
        if isinstance(op, AllGatherOp):
            size = None if op.size is None else op.size.data
            return cls(op.x, kind, "sum", op.num_workers.value.data, op.axis.value.data, group, size)
        if isinstance(op, ReduceScatterOp):
            return cls(op.x, kind, op.op_type.data, op.num_workers.value.data, op.axis.value.data, group)
        by = op.op_type.data if isinstance(op, AllReduceOp) else "sum"
        return cls(op.x, kind, by, group=group)

    @property
    def along(self) -> int:
        """The axis, counted from the front; the rank has to be known."""
        axis = self.axis.value.data
        rank = self.x.type.rank if isinstance(self.x.type, TensorType) else None
        return axis + (rank or 0) if axis < 0 else axis

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, kind = inference.tensor(0), inference.string("collective")
        if kind not in STARTED:
            inference.fail(f"expected collective to be one of {', '.join(STARTED)}, got {kind}")  # C1
        _require_reduction(inference)  # C2
        if kind != "allreduce":  # C3
            workers_of(inference)
            if x.dims is not None:
                inference.axis(inference.integer("axis"), len(x.dims))
        return (TensorType([0], i1, x.device),)


@op_definition
class AllReduceOp(StartedOp):
    """The elements of all workers, combined.

    ```mlir
    %0 = relax.ccl.allreduce %x op_type = "max"
    ```

    With `all_groups`, those of every group's workers. After a `relax.ccl.start`, its result is the second operand.

    C1: the combination is `sum`, `prod`, `min`, `max` or `avg`.
    C2: there is one operand, and the result of one `relax.ccl.start` at most.
    """

    name = "relax.ccl.allreduce"

    op_type = prop_def(StringAttr, default_value=StringAttr("sum"))
    all_groups = opt_prop_def(UnitAttr)

    def __init__(
        self, x: SSAValue | Operation, op_type: str = "sum", all_groups: bool = False, group: str | None = None
    ):
        properties = {"op_type": StringAttr(op_type), "all_groups": flag(all_groups), "group": _name(group)}
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        _require_reduction(inference)  # C1
        _require_started(inference)  # C2
        return (inference.tensor(0),)


@op_definition
class AllGatherOp(StartedOp):
    """The tensors of all workers, joined along an axis, the first one unless given.

    ```mlir
    %0 = relax.ccl.allgather %x num_workers = 2
    %1 = relax.ccl.allgather %x num_workers = 2 axis = 1 size = n group = "x"
    ```

    How large the dimension then is may be given, a `size`; then workers may have tiles of different sizes. After a
    `relax.ccl.start`, its result is the second operand.

    C1: there is at least one worker.
    C2: the rank is at least 1.
    C3: the axis is within the rank.
    C4: there is one operand, and the result of one `relax.ccl.start` at most.
    """

    name = "relax.ccl.allgather"

    num_workers = prop_def(IntegerAttr)
    axis = prop_def(IntegerAttr, default_value=integer(0))
    size = opt_prop_def(DimAttr)
    all_groups = opt_prop_def(UnitAttr)

    def __init__(
        self,
        x: SSAValue | Operation,
        num_workers: int,
        all_groups: bool = False,
        axis: int = 0,
        group: str | None = None,
        size: DimLike | None = None,
    ):
        properties = {
            "num_workers": integer(num_workers),
            "all_groups": flag(all_groups),
            "axis": integer(axis),
            "group": _name(group),
            "size": _dim(size),
        }
        super().__init__([x], properties)

    @property
    def along(self) -> int:
        """The axis, counted from the front; the rank has to be known."""
        axis = self.axis.value.data
        return axis + (self.result.type.rank or 0) if axis < 0 else axis

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        workers, x = workers_of(inference), inference.tensor(0)  # C1
        _require_started(inference)  # C4
        if x.dims is None:
            return (x,)
        inference.require_at_most(ONE, constant(len(x.dims)), "a rank of at least 1")  # C2
        axis = inference.axis(inference.integer("axis"), len(x.dims))  # C3
        return (
            x.with_shape([_whole(inference, dim, workers) if at == axis else dim for at, dim in enumerate(x.dims)]),
        )


@op_definition
class ReduceScatterOp(StartedOp, DividingOp):
    """The worker's tile of the combined elements of all workers.

    ```mlir
    %0 = relax.ccl.reduce_scatter %x num_workers = 2 axis = 1 group = "x"
    ```

    After a `relax.ccl.start`, its result is the second operand.

    C1: there is at least one worker.
    C2: the axis is within the rank.
    C3: the dimension is a multiple of the number of workers, unless the size of the tile is given.
    C4: the combination is `sum`, `prod`, `min`, `max` or `avg`.
    C5: there is one operand, and the result of one `relax.ccl.start` at most.
    """

    name = "relax.ccl.reduce_scatter"

    op_type = prop_def(StringAttr, default_value=StringAttr("sum"))

    def __init__(
        self,
        x: SSAValue | Operation,
        num_workers: int,
        axis: int = 0,
        op_type: str = "sum",
        group: str | None = None,
        tile: DimLike | None = None,
    ):
        properties = self.dividing_properties(num_workers, axis, group, tile) | {"op_type": StringAttr(op_type)}
        Operator.__init__(self, [x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        _require_reduction(inference)  # C4
        _require_started(inference)  # C5
        return super().infer(inference)  # C1, C2, C3


@op_definition
class AllToAllOp(DividingOp):
    """Tiles along one axis become tiles along another: each worker gets its tile of every worker's tensor.

    ```mlir
    %0 = relax.ccl.all_to_all %x num_workers = 2 axis = 1 concat_axis = 0 group = "x"
    ```

    What the workers have is cut along `axis`, and what a worker gets is joined along `concat_axis`.

    C1: there is at least one worker.
    C2: the axes are within the rank, and differ.
    C3: the dimension is a multiple of the number of workers, unless the size of the tile is given.
    """

    name = "relax.ccl.all_to_all"

    concat_axis = prop_def(IntegerAttr)
    size = opt_prop_def(DimAttr)

    def __init__(
        self,
        x: SSAValue | Operation,
        num_workers: int,
        axis: int,
        concat_axis: int,
        group: str | None = None,
        tile: DimLike | None = None,
        size: DimLike | None = None,
    ):
        more = {"concat_axis": integer(concat_axis), "size": _dim(size)}
        Operator.__init__(self, [x], self.dividing_properties(num_workers, axis, group, tile) | more)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        workers, (cut,) = workers_of(inference), super().infer(inference)  # C1, C2, C3
        if cut.dims is None:
            return (cut,)
        given = [inference.integer("axis"), inference.integer("concat_axis")]
        _, joined = inference.axes(given, len(cut.dims))  # C2
        shape = [_whole(inference, dim, workers) if at == joined else dim for at, dim in enumerate(cut.dims)]
        return (cut.with_shape(shape),)


@op_definition
class BroadcastFromWorker0Op(CollectiveOp):
    """The tensor of the first worker: `%0 = relax.ccl.broadcast_from_worker0 %x`."""

    name = "relax.ccl.broadcast_from_worker0"

    def __init__(self, x: SSAValue | Operation, group: str | None = None):
        super().__init__([x], {"group": _name(group)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        return (inference.tensor(0),)


@op_definition
class ScatterFromWorker0Op(DividingOp):
    """The worker's tile of the first worker's tensor.

    ```mlir
    %0 = relax.ccl.scatter_from_worker0 %x num_workers = 2 axis = 1
    ```
    """

    name = "relax.ccl.scatter_from_worker0"


@op_definition
class SendOp(CollectiveOp):
    """Gives a tensor to the worker `to` of the group, which receives it by an op with the same `tag`.

    ```mlir
    %0 = relax.ccl.send %x to = 1 tag = 3 group = "p"
    ```

    Nobody waits for the other worker. The result is an empty tensor; what needs it, runs after the tensor is sent.

    C1: the numbers of the worker and of the tag are not negative.
    """

    name = "relax.ccl.send"

    to = prop_def(IntegerAttr)
    tag = prop_def(IntegerAttr, default_value=integer(0))

    def __init__(self, x: SSAValue | Operation, to: int, tag: int = 0, group: str | None = None):
        super().__init__([x], {"to": integer(to), "tag": integer(tag), "group": _name(group)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        _require_numbers(inference, "to", "tag")  # C1
        return (TensorType([0], i1, inference.tensor(0).device),)


@op_definition
class ReceiveOp(Operator):
    """The tensor that the worker `source` of the group sends with the same `tag`.

    ```mlir
    %0 = relax.ccl.receive %shape source = 0 tag = 3 dtype = f32 group = "p"
    ```

    C1: the numbers of the worker and of the tag are not negative.
    C2: no size is negative.
    """

    name = "relax.ccl.receive"

    source = prop_def(IntegerAttr)
    tag = prop_def(IntegerAttr, default_value=integer(0))
    dtype = prop_def(Attribute)
    group = opt_prop_def(StringAttr)
    shape = operand_def(ShapeType)
    result = result_def(TensorType)

    def __init__(
        self, shape: SSAValue | Operation, source: int, dtype: Attribute, tag: int = 0, group: str | None = None
    ):
        properties = {"source": integer(source), "tag": integer(tag), "dtype": dtype, "group": _name(group)}
        super().__init__([shape], properties)

    @property
    def group_name(self) -> str:
        """The axis of the mesh along which the workers are; empty for all workers."""
        return "" if self.group is None else self.group.data

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        _require_numbers(inference, "source", "tag")  # C1
        return (TensorType(inference.sizes(0).dims, inference.dtype("dtype")),)  # C2


def _require_numbers(inference: Inference, *names: str) -> None:
    for name in names:
        if inference.integer(name) < 0:
            inference.fail(f"{name} expected a number that is not negative, got {inference.integer(name)}")
