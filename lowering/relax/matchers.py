"""What rewrite patterns ask of values: dimensions, dtypes, elements of constants, whether an operator is elementwise,
and who uses what; and dataflow patterns (`relax_dialect.patterns`) as rewrite patterns of the driver.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeGuard, get_args

from numpy.typing import NDArray
from typing_extensions import override
from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import InsertPoint

from lowering.rewriting import IndexedPattern
from relax_dialect.analysis.effects import is_never_written
from relax_dialect.ops.activation import ClipOp, LeakyReluOp, SoftplusOp
from relax_dialect.ops.datatype import AstypeOp
from relax_dialect.ops.manipulation import ReshapeOp
from relax_dialect.ops.operator import ElementwiseOp
from relax_dialect.ops.shapes import ShapeOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.patterns import Match, Pattern
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import Dim

Elementwise: TypeAlias = ElementwiseOp | AstypeOp | ClipOp | LeakyReluOp | SoftplusOp
"""The operators that compute an element of the result from the elements at its index, after broadcasting."""


_ELEMENTWISE = get_args(Elementwise)


def is_elementwise(op: object) -> TypeGuard[Elementwise]:
    """Whether an element of the result is computed from the elements at its index, after broadcasting."""
    return isinstance(op, _ELEMENTWISE)


def dims_of(value: SSAValue) -> tuple[Dim, ...] | None:
    """The dimensions of a tensor, if all are known."""
    info = value.type
    return info.known_dims if isinstance(info, TensorType) else None


def dtype_of(value: SSAValue) -> Attribute | None:
    """The dtype of a tensor, if it is known."""
    return value.type.dtype if isinstance(value.type, TensorType) else None


def is_single_element(value: SSAValue) -> bool:
    """Whether a tensor has one element, so that it is broadcast wherever it stands."""
    dims = dims_of(value)
    return dims is not None and all(dim.constant_value == 1 for dim in dims)


def used_only_by(value: SSAValue, op: Operation) -> bool:
    """Whether `op` alone uses a value, once or several times."""
    return all(use.operation is op for use in value.uses)


def shape_of(value: SSAValue) -> tuple[Dim, ...]:
    """The dimensions of a tensor all of whose dimensions have a name; `ValueError` for others."""
    dims = dims_of(value)
    if dims is None:
        raise ValueError(f"expected a tensor of known dimensions, got {value.type}")
    return dims


def array_of(value: SSAValue) -> NDArray[Any] | None:
    """The elements of a constant that are in this process, if nobody may write into it."""
    return value.owner.array if isinstance(value.owner, ConstantOp) and is_never_written(value) else None


def number_of(value: SSAValue) -> float | None:
    """The number that a constant of one element is."""
    array = array_of(value)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def is_number(value: SSAValue) -> bool:
    """Whether a value is a constant of one element, which need not be in this process, and nobody may write into it."""
    return isinstance(value.owner, ConstantOp) and is_single_element(value) and is_never_written(value)


def reshaped(value: SSAValue, dims: list[Dim]) -> list[Operation]:
    """The ops that give a value another shape."""
    shape = ShapeOp(dims)
    return [shape, ReshapeOp(value, shape)]


class RewriteMatch(IndexedPattern):
    """A value that matches a dataflow pattern is made by other ops.

    The new ops are inserted before the last matched op, with its location and the names of the outputs. Their results
    need types that the uses accept. Apply it in reverse order: a match contains the ops before its last one, which may
    match alone, too.
    """

    def __init__(self, pattern: Pattern):
        self._pattern = pattern
        self._names = pattern.op_names

    @abstractmethod
    def replacement(self, found: Match) -> Sequence[Operation] | None:
        """The ops that replace a match, the last of which has one result for each output; `None` to leave it."""

    @override
    def may_match(self, op_class: type[Operation]) -> bool:
        return self._names is None or op_class.name in self._names

    @override
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter) -> None:
        for result in op.results:
            found = self._pattern.match(result)
            made = self.replacement(found) if found is not None and found.ops else None
            if found is not None and made is not None:
                _replace_match(found, made, rewriter)
                return


def _replace_match(found: Match, made: Sequence[Operation], rewriter: PatternRewriter) -> None:
    last = found.ops[-1]
    for op in made:
        if isinstance(op.location, UnknownLoc):
            op.location = last.location
    rewriter.insert(made, InsertPoint.before(last))
    for output, new in zip(found.outputs, made[-1].results, strict=True):
        if isinstance(output, OpResult):
            new.name_hint = output.name_hint
            rewriter.handle_operation_replacement(
                output.op, [new if each is output else None for each in output.op.results]
            )
            rewriter.replace_all_uses_with(output, new)
    for op in reversed(found.ops):
        rewriter.erase(op)
