"""Reductions over axes, and running sums and products along one."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import I64, DenseArrayBase, IntegerAttr, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_prop_def, result_def

from relax_dialect.inference import ONE, ZERO, Inference
from relax_dialect.ops.fields import flag, integer, optional_integers
from relax_dialect.ops.operator import Operator
from relax_dialect.scalars import Domain, ufunc
from relax_dialect.struct_info.types import Shape, TensorType
from tir_dialect.dims import product
from tir_dialect.ops.assembly_format import op_definition


def reduced_shape(inference: Inference, shape: Shape, axes: Sequence[int] | None, keepdims: bool) -> Shape:
    """`shape` without the dimensions at `axes` (all of them if `None`), which become 1 if `keepdims` is set."""
    if shape is None:
        return () if axes is None and not keepdims else None
    gone = inference.axes(range(len(shape)) if axes is None else axes, len(shape))
    if keepdims:
        return tuple(ONE if axis in gone else dim for axis, dim in enumerate(shape))
    return tuple(dim for axis, dim in enumerate(shape) if axis not in gone)


def require_elements(inference: Inference, shape: Shape, axes: Sequence[int] | None) -> None:
    """Fails if a dimension at `axes` (all of them if `None`) is 0, or leaves a check for run time.

    If another dimension is 0, the result has no elements, and none is needed.
    """
    if shape is None:
        return
    reduced = range(len(shape)) if axes is None else inference.axes(axes, len(shape))
    if any(dim == ZERO for axis, dim in enumerate(shape) if axis not in reduced):
        return
    for axis, dim in enumerate(shape):
        if axis in reduced:
            inference.require_at_most(ONE, dim, "at least one element along each reduced axis")


class ReductionOp(Operator, ABC):
    """Combines the elements along axes, all of them if none are given: `%0 = relax.sum %x axes = [0, 1] keepdims`.

    With `keepdims` the reduced dimensions are 1 in the result, otherwise they are not in it.

    C1: the dtype is in the function's domain.
    C2: the axes are within the rank, each once.
    C3: the greatest and the least element need at least one, if the result has elements.
    """

    EVALUATE: ClassVar[Callable[..., Any]]
    """The NumPy function, called with the array, `axis` and `keepdims`."""

    DOMAIN: ClassVar[Domain] = Domain.NUMERIC
    NEEDS_ELEMENTS: ClassVar[bool] = False

    axes = opt_prop_def(DenseArrayBase.constr(i64))
    keepdims = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(self, x: SSAValue | Operation, axes: Sequence[int] | None = None, *, keepdims: bool = False):
        super().__init__([x], {"axes": optional_integers(axes), "keepdims": flag(keepdims)})

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x = inference.tensor(0)
        inference.require_domain(0, cls.DOMAIN)  # C1
        axes = inference.optional_integers("axes")
        shape = reduced_shape(inference, x.dims, axes, inference.flag("keepdims"))  # C2
        if cls.NEEDS_ELEMENTS:
            require_elements(inference, x.dims, axes)  # C3
        return (x.with_shape(shape),)


@op_definition
class SumOp(ReductionOp):
    """The sum; 0 of no elements."""

    name = "relax.sum"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("sum"))


@op_definition
class ProdOp(ReductionOp):
    """The product; 1 of no elements."""

    name = "relax.prod"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("prod"))


@op_definition
class MaxOp(ReductionOp):
    """The greatest element; an error of no elements."""

    name = "relax.max"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("max"))
    NEEDS_ELEMENTS: ClassVar[bool] = True


@op_definition
class MinOp(ReductionOp):
    """The least element; an error of no elements."""

    name = "relax.min"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("min"))
    NEEDS_ELEMENTS: ClassVar[bool] = True


@op_definition
class MeanOp(ReductionOp):
    """The arithmetic mean; NaN of no elements."""

    name = "relax.mean"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("mean"))
    DOMAIN: ClassVar[Domain] = Domain.FLOAT


@op_definition
class VarianceOp(ReductionOp):
    """The mean squared distance from the mean."""

    name = "relax.variance"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("var"))
    DOMAIN: ClassVar[Domain] = Domain.FLOAT


@op_definition
class StdOp(ReductionOp):
    """The square root of the variance."""

    name = "relax.std"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("std"))
    DOMAIN: ClassVar[Domain] = Domain.FLOAT


@op_definition
class MedianOp(ReductionOp):
    """The middle element of an ordering, or the mean of the two middle ones."""

    name = "relax.median"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("median"))
    DOMAIN: ClassVar[Domain] = Domain.FLOAT


class ScanOp(Operator, ABC):
    """Combines each element with those before it along an axis: `%0 = relax.cumsum %x axis = 0 exclusive`.

    Without an axis the tensor is flattened. With `dtype` the elements are converted first; with `exclusive` an
    element does not count for its own position.

    C1: the dtype, after the conversion, is numeric.
    C2: the axis is within the rank.
    """

    EVALUATE: ClassVar[Callable[..., Any]]
    """The NumPy function, called with the array and `axis`."""

    axis = opt_prop_def(IntegerAttr[I64])
    dtype = opt_prop_def(Attribute)
    exclusive = opt_prop_def(UnitAttr)
    x = operand_def(TensorType)
    result = result_def(TensorType)

    def __init__(
        self,
        x: SSAValue | Operation,
        axis: int | None = None,
        *,
        dtype: Attribute | None = None,
        exclusive: bool = False,
    ):
        properties = {
            "axis": None if axis is None else integer(axis),
            "dtype": dtype,
            "exclusive": flag(exclusive),
        }
        super().__init__([x], properties)

    @classmethod
    def infer(cls, inference: Inference) -> tuple[TensorType]:
        x, axis = inference.tensor(0), inference.optional_integer("axis")
        if inference.get("dtype", Attribute) is None:
            inference.require_domain(0, Domain.NUMERIC)  # C1
        else:
            dtype = inference.dtype("dtype")
            if not Domain.NUMERIC.admits(dtype):
                inference.fail(f"dtype expected {Domain.NUMERIC.value}, got {dtype}")  # C1
            x = x.with_dtype(dtype)
        if axis is None:
            return (x.with_shape((None if x.known_dims is None else product(x.known_dims),)),)
        if x.rank is not None:
            inference.axis(axis, x.rank)  # C2
        return (x,)


@op_definition
class CumsumOp(ScanOp):
    """Running sums."""

    name = "relax.cumsum"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("cumsum"))


@op_definition
class CumprodOp(ScanOp):
    """Running products."""

    name = "relax.cumprod"
    EVALUATE: ClassVar[Callable[..., Any]] = staticmethod(ufunc("cumprod"))
