"""Buffer regions: views, and the regions that a block declares to read and write."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, i1
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import HasParent
from xdsl.utils.exceptions import VerifyException

from tir_dialect.dims import Dim
from tir_dialect.ops.accesses import BufferRegion, BufferResult, RegionAxis, axes_of, ranges, starts_and_ends
from tir_dialect.ops.assembly_format import op_definition
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.ops.effects import Declares
from tir_dialect.ops.verifiers import VERIFIERS
from tir_dialect.ops.view import BufferViewOp
from tir_dialect.types import BufferType, buffer_type


class RegionOp(IRDLOperation, ABC):
    """An op on a region of a buffer: in each dimension a point, or a half-open range.

    `lower` has the points and the starts of the ranges, one per dimension; `upper` the ends of the ranges, and
    `is_range` tells which dimensions have one.
    """

    buffer = operand_def(BufferType)
    lower = var_operand_def(IndexType)
    upper = var_operand_def(IndexType)
    is_range = prop_def(DenseArrayBase.constr(i1))

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def buffer_type(self) -> BufferType:
        """The type of the buffer."""
        return buffer_type(self.buffer)

    @property
    def axes(self) -> tuple[RegionAxis, ...]:
        """The region, one entry per dimension."""
        return tuple(axes_of(self.lower, self.upper, self.is_range.get_values()))

    def verify_region(self) -> None:
        """Checks the number of points and ranges; `VerifyException` if the buffer has another rank."""
        ranges = [bool(value) for value in self.is_range.get_values()]
        rank = self.buffer_type.rank
        if len(self.lower) != rank or len(ranges) != rank or len(self.upper) != sum(ranges):
            raise VerifyException(
                f"'{self.name}' op expected {rank} dimensions, got {len(self.lower)} starts, {len(self.upper)} ends "
                f"and {len(ranges)} flags"
            )  # C1


def _operands(buffer: SSAValue | Operation, axes: Sequence[RegionAxis]) -> list[SSAValue | Sequence[SSAValue]]:
    return [SSAValue.get(buffer), *starts_and_ends(axes)]


@op_definition
class MatchBufferOp(RegionOp, BufferViewOp):
    """A view of a buffer region. Dimensions in which the region is a single point are dropped.

    ```mlir
    %T = tir.match_buffer %A[%b, %i0 to %i1, %j0 to %j1] : !tir.buffer<[16, 16], f32, strides = [m, 1]>
    ```

    Element `[i, j]` of the view is element `[%b, %i0 + i, %j0 + j]` of the buffer. The length of each range is the
    extent in the result type; the base address of the view is that of its first element.

    C1: there is one point or range per dimension of the buffer.
    C2: the view has one dimension per range, and the buffer's dtype and scope.
    C3: its strides are those of the buffer in these dimensions, its offset is 0.
    C4: no extent of the view is provably different from the length of its range.
    """

    name = "tir.match_buffer"

    assembly_format = (
        "custom<BufferRegion>($buffer, $lower, $upper, $is_range) attr-dict `:` custom<BufferResult>(type($view))"
    )
    custom_directives = (BufferRegion, BufferResult)

    def __init__(self, buffer: SSAValue | Operation, axes: Sequence[RegionAxis], type: BufferType):
        super().__init__(operands=_operands(buffer, axes), properties={"is_range": ranges(axes)}, result_types=[type])

    def verify_(self) -> None:
        self.verify_region()
        source, view = self.buffer_type, self.view_type
        if view.rank != len(self.upper) or view.dtype != source.dtype or view.scope != source.scope:
            raise VerifyException(
                f"'tir.match_buffer' op expected {len(self.upper)} dimensions of {source.dtype} in scope "
                f'"{source.scope}", got {view.rank} of {view.dtype} in "{view.scope}"'
            )  # C2
        strides = [stride for stride, ranged in zip(source.strides, self.is_range.get_values(), strict=True) if ranged]
        if list(view.strides) != strides or view.offset.terms:
            raise VerifyException(
                f"'tir.match_buffer' op expected strides {_list(strides)} and offset 0, got {_list(view.strides)} and "
                f"{view.offset}"
            )  # C3
        VERIFIERS.of(self.name)(self)  # C4


def _list(dims: Sequence[Dim]) -> str:
    return f"[{', '.join(map(str, dims))}]"


class DeclarationOp(RegionOp, ABC):
    """Base class of `tir.reads` and `tir.writes`."""

    assembly_format = "custom<BufferRegion>($buffer, $lower, $upper, $is_range) attr-dict"
    custom_directives = (BufferRegion,)

    def __init__(self, buffer: SSAValue | Operation, axes: Sequence[RegionAxis]):
        super().__init__(operands=_operands(buffer, axes), properties={"is_range": ranges(axes)})

    def verify_(self) -> None:
        self.verify_region()


@op_definition
class ReadsOp(DeclarationOp):
    """Declares that its block reads a region: `tir.reads %A[%vi, %lo to %hi]`.

    A block with such declarations reads the declared regions and nothing else.

    C1: there is one point or range per dimension of the buffer.
    C2: it stands directly in a `tir.block`.
    """

    name = "tir.reads"

    traits = traits_def(Declares(), HasParent(BlockOp))  # C2


@op_definition
class WritesOp(DeclarationOp):
    """Declares that its block writes a region: `tir.writes %A[%vi, %lo to %hi]`.

    A block with such declarations writes the declared regions and nothing else.

    C1: there is one point or range per dimension of the buffer.
    C2: it stands directly in a `tir.block`.
    """

    name = "tir.writes"

    traits = traits_def(Declares(), HasParent(BlockOp))  # C2
