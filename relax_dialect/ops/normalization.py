"""Normalisation: a tensor brought to a mean and a variance, or to a root mean square."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import I64, DenseArrayBase, Float64Type, FloatAttr, IntegerAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, prop_def, result_def

from relax_dialect.inference import Inference
from relax_dialect.ops.fields import flag, integer, integers, number
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain
from relax_dialect.struct_info.types import Shape, TensorType
from tir_dialect.ops.assembly_format import op_definition


def _require_weights(inference: Inference, indices: Sequence[int], shape: Shape) -> None:
    """Fails unless the tensors at `indices` have `shape` and the dtype of operand 0."""
    inference.require_domain(0, Domain.FLOAT)
    inference.common_dtype((0, *indices))
    for index in indices:
        weight = inference.tensor(index)
        if shape is None or weight.dims is None:
            continue
        if len(weight.dims) != len(shape):
            inference.fail(f"operand #{index} expected rank {len(shape)}, got {weight}")
        for pair in zip(weight.dims, shape, strict=True):
            inference.require_equal(*pair, f"operand #{index} to have the normalised dimensions")


def _at(inference: Inference, axes: Sequence[int]) -> Shape:
    """The dimensions of operand 0 at `axes`; fails if one is out of range."""
    x = inference.tensor(0)
    return None if x.dims is None else tuple(x.dims[axis] for axis in inference.axes(axes, len(x.dims)))


@op_definition
class LayerNormOp(Operator):
    """`(x - mean) / sqrt(variance + epsilon) * gamma + beta`, mean and variance taken over the axes.

    ```mlir
    %0 = relax.nn.layer_norm %x, %gamma, %beta axes = [-1] epsilon = 1.0e-05
    ```

    With `no_center` nothing is added, with `no_scale` nothing is multiplied.

    C1: the dtypes are equal and floating-point.
    C2: the axes are within the rank, each once.
    C3: `gamma` and `beta` have the dimensions at the axes.
    """

    name = "relax.nn.layer_norm"

    axes = prop_def(DenseArrayBase.constr(i64))
    epsilon = prop_def(FloatAttr[Float64Type], default_value=number(1e-5))
    no_center = opt_prop_def(UnitAttr)
    no_scale = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    gamma = operand_def(TensorType)
    beta = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        gamma: SSAValue | Operation,
        beta: SSAValue | Operation,
        axes: Sequence[int],
        epsilon: float = 1e-5,
        *,
        center: bool = True,
        scale: bool = True,
    ):
        properties = {
            "axes": integers(axes),
            "epsilon": number(epsilon),
            "no_center": flag(not center),
            "no_scale": flag(not scale),
        }
        super().__init__([x, gamma, beta], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        _require_weights(inference, (1, 2), _at(inference, inference.integers("axes")))  # C1, C2, C3
        return (inference.tensor(0),)


@op_definition
class RMSNormOp(Operator):
    """`x / sqrt(mean(x * x) + epsilon) * weight`, the mean taken over the axes.

    ```mlir
    %0 = relax.nn.rms_norm %x, %weight axes = [-1] epsilon = 1.0e-06
    ```

    C1: the dtypes are equal and floating-point.
    C2: the axes are within the rank, each once.
    C3: the weight has the dimensions at the axes.
    """

    name = "relax.nn.rms_norm"

    axes = prop_def(DenseArrayBase.constr(i64))
    epsilon = prop_def(FloatAttr[Float64Type], default_value=number(1e-5))
    x = operand_def(TensorType)
    weight = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        weight: SSAValue | Operation,
        axes: Sequence[int],
        epsilon: float = 1e-5,
    ):
        super().__init__([x, weight], {"axes": integers(axes), "epsilon": number(epsilon)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        _require_weights(inference, (1,), _at(inference, inference.integers("axes")))  # C1, C2, C3
        return (inference.tensor(0),)


@op_definition
class GroupNormOp(Operator):
    """The channels cut into groups, each normalised together with the axes like `layer_norm`.

    ```mlir
    %0 = relax.nn.group_norm %x, %gamma, %beta num_groups = 8 channel_axis = 1 axes = [2, 3]
    ```

    C1: the dtypes are equal and floating-point.
    C2: the axes and the channel axis are within the rank, each once.
    C3: `gamma` and `beta` have one element per channel.
    C4: there is at least one group, and the groups are of one size.
    """

    name = "relax.nn.group_norm"

    num_groups = prop_def(IntegerAttr[I64])
    channel_axis = prop_def(IntegerAttr[I64])
    axes = prop_def(DenseArrayBase.constr(i64))
    epsilon = prop_def(FloatAttr[Float64Type], default_value=number(1e-5))
    x = operand_def(TensorType)
    gamma = operand_def(TensorType)
    beta = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        gamma: SSAValue | Operation,
        beta: SSAValue | Operation,
        num_groups: int,
        channel_axis: int,
        axes: Sequence[int],
        epsilon: float = 1e-5,
    ):
        properties = {
            "num_groups": integer(num_groups),
            "channel_axis": integer(channel_axis),
            "axes": integers(axes),
            "epsilon": number(epsilon),
        }
        super().__init__([x, gamma, beta], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        groups, axis = inference.integer("num_groups"), inference.integer("channel_axis")
        _at(inference, (axis, *inference.integers("axes")))  # C2
        channels = _at(inference, (axis,))
        _require_weights(inference, (1, 2), channels)  # C1, C3
        if groups < 1:
            inference.fail(f"expected at least one group, got {groups}")  # C4
        if channels is not None:
            inference.require_divisible(channels[0], groups, f"a multiple of {groups} channels")  # C4
        return (inference.tensor(0),)


@op_definition
class InstanceNormOp(Operator):
    """Every channel of every instance normalised over the axes like `layer_norm`.

    ```mlir
    %0 = relax.nn.instance_norm %x, %gamma, %beta channel_axis = 1 axes = [2, 3]
    ```

    C1: the dtypes are equal and floating-point.
    C2: the axes and the channel axis are within the rank, each once.
    C3: `gamma` and `beta` have one element per channel.
    """

    name = "relax.nn.instance_norm"

    channel_axis = prop_def(IntegerAttr[I64])
    axes = prop_def(DenseArrayBase.constr(i64))
    epsilon = prop_def(FloatAttr[Float64Type], default_value=number(1e-5))
    x = operand_def(TensorType)
    gamma = operand_def(TensorType)
    beta = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        gamma: SSAValue | Operation,
        beta: SSAValue | Operation,
        channel_axis: int,
        axes: Sequence[int],
        epsilon: float = 1e-5,
    ):
        properties = {"channel_axis": integer(channel_axis), "axes": integers(axes), "epsilon": number(epsilon)}
        super().__init__([x, gamma, beta], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        axis = inference.integer("channel_axis")
        _at(inference, (axis, *inference.integers("axes")))  # C2
        _require_weights(inference, (1, 2), _at(inference, (axis,)))  # C1, C3
        return (inference.tensor(0),)


@op_definition
class BatchNormOp(Operator):
    """Every channel normalised with a given mean and variance, as when a model is used and not trained.

    ```mlir
    %0 = relax.nn.batch_norm %x, %gamma, %beta, %mean, %variance axis = 1 epsilon = 1.0e-05
    ```

    `(x - mean) / sqrt(variance + epsilon) * gamma + beta`. With `no_center` nothing is added, with `no_scale` nothing
    is multiplied.

    C1: the dtypes are equal and floating-point.
    C2: the axis is within the rank.
    C3: the other operands have one element per channel.
    """

    name = "relax.nn.batch_norm"

    axis = prop_def(IntegerAttr[I64], default_value=integer(1))
    epsilon = prop_def(FloatAttr[Float64Type], default_value=number(1e-5))
    no_center = opt_prop_def(UnitAttr)
    no_scale = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    gamma = operand_def(TensorType)
    beta = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        gamma: SSAValue | Operation,
        beta: SSAValue | Operation,
        mean: SSAValue | Operation,
        variance: SSAValue | Operation,
        axis: int = 1,
        epsilon: float = 1e-5,
        *,
        center: bool = True,
        scale: bool = True,
    ):
        properties = {
            "axis": integer(axis),
            "epsilon": number(epsilon),
            "no_center": flag(not center),
            "no_scale": flag(not scale),
        }
        super().__init__([x, gamma, beta, mean, variance], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        channels = _at(inference, (inference.integer("axis"),))  # C2
        _require_weights(inference, (1, 2, 3, 4), channels)  # C1, C3
        return (inference.tensor(0),)
