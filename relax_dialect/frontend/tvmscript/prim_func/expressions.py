"""Expressions of PrimFuncs: scalars, vectors, and elements and regions of buffers."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import Attribute, SSAValue

from relax_dialect.frontend.tvmscript.prim_func.lanes import lane_by_lane
from relax_dialect.frontend.tvmscript.prim_func.operators import DIVISIONS, called, scalar_function
from relax_dialect.frontend.tvmscript.prim_func.promotion import converted, promoted
from relax_dialect.frontend.tvmscript.prim_func.scalars import ScalarReader
from relax_dialect.frontend.tvmscript.prim_func.values import Axis, Buffer, Pointer, Region, Vector, data_of
from relax_dialect.frontend.tvmscript.prim_func.vectors import as_vector
from relax_dialect.frontend.tvmscript.text import evaluator
from relax_dialect.frontend.tvmscript.text.captured import is_python
from relax_dialect.frontend.tvmscript.text.python_values import python_value
from relax_dialect.frontend.tvmscript.text.static import describe
from tir_dialect import te
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import lookup
from tir_dialect.ops.memory import StoreOp
from tir_dialect.te import nodes
from tir_dialect.te.coerce import is_float
from tir_dialect.te.emit.scalar import emit_dim
from tir_dialect.te.expr import INDEX, DType
from tir_dialect.te.expr import Expr as Scalar


class TirExpressionReader(ScalarReader):
    """Reads expressions of one PrimFunc and emits them at the end of the current block."""

    @staticmethod
    def is_dim(value: object) -> bool:
        """Whether a value is a dimension that is not constant, or an integer."""
        return isinstance(value, Dim)

    def static_function(self, node: ast.Call, name: str, operands: Sequence[object]) -> object | None:
        """A function of two dimensions, as one; `None` if it is none of those that dimensions have."""
        function = evaluator.DIM_FUNCTIONS.get(name)
        dims = [evaluator.as_dim(each) for each in operands]
        one, other = dims[0], dims[1]
        if function is None or one is None or other is None:
            return None
        return self.emit(node, lambda: evaluator.simplest(function(one, other)))

    def value(self, node: ast.expr) -> object:
        if not isinstance(node, ast.IfExp):
            return super().value(node)
        from relax_dialect.frontend.tvmscript.prim_func.choice import choose

        return choose(self, node, node.test, node.body, node.orelse)

    def apply(self, node: ast.AST, name: str, *operands: object) -> object:
        if self.mask is not None and name in DIVISIONS:
            from relax_dialect.frontend.tvmscript.prim_func.choice import divisor_of

            operands = (operands[0], divisor_of(self, node, self.mask, operands[1]))
        rows = [as_vector(self, node, each) for each in operands]
        if any(row is not None for row in rows):
            lanes = [each if row is None else row for row, each in zip(rows, operands, strict=True)]
            return lane_by_lane(self, node, scalar_function(name), lanes)
        scalars = [self.scalar_operand(node, each) for each in operands]
        return self.emit(node, lambda: called(name, scalars))

    # Buffers

    def subscript(self, node: ast.Subscript) -> object:
        owner = self.value(node.value)
        if isinstance(owner, Buffer):
            region = self.region(node, owner)
            return region if region.is_vector else self.load(node, region)
        if isinstance(owner, Pointer):
            self.fail(node, "memory without a shape cannot be indexed; give it one by T.decl_buffer")
        return super().subscript(node)

    def region(self, node: ast.Subscript, buffer: Buffer) -> Region:
        """`A[i, lo:hi]`."""
        parts = self._places(node.slice)
        if len(parts) != buffer.rank:
            self.fail(node, f"expected {buffer.rank} indices, got {len(parts)}")
        if buffer.extents is not None:
            return Region(buffer, (self._linear(node, buffer, parts),))
        axes = [self._axis(part, dim) for part, dim in zip(parts, buffer.type.shape, strict=False)]
        if buffer.lanes is not None:
            axes.append(Axis(constant(0), constant(buffer.lanes)))
        return Region(buffer, tuple(axes))

    def _linear(self, node: ast.AST, buffer: Buffer, parts: Sequence[tuple[ast.expr, object]]) -> Axis:
        """Where an element lies, or a range of the last dimension, in memory whose strides the program computes."""
        axes = [self._axis(part, constant(1)) for part in parts]
        sum_: object = 0
        for axis, step in zip(axes, buffer.steps, strict=True):
            sum_ = self.apply(node, "Add", sum_, self.apply(node, "Mul", axis.lower, step))
        lower = sum_ if isinstance(sum_, Vector) else self.index(node, sum_)
        if all(axis.upper is None for axis in axes):
            return Axis(lower)
        last, is_dense = axes[-1], buffer.steps[-1] == constant(1)
        if any(axis.upper is not None for axis in axes[:-1]) or not is_dense or isinstance(lower, Vector):
            self.fail(node, "expected a range of the last dimension, which has the stride 1")
        length = self.apply(node, "Sub", last.upper, last.lower)
        return Axis(lower, self.index(node, self.apply(node, "Add", lower, length)), last.step)

    def _places(self, node: ast.expr) -> list[tuple[ast.expr, object]]:
        """The indices in brackets, each with its value unless it is a range; a tuple stands for its items."""
        found: list[tuple[ast.expr, object]] = []
        for part in node.elts if isinstance(node, ast.Tuple) else [node]:
            if isinstance(part, ast.Slice):
                found.append((part, None))
                continue
            value = self.value(part.value if isinstance(part, ast.Starred) else part)
            items = evaluator.items_of(value)
            found += [(part, value)] if items is None else [(part, item) for item in items]
        return found

    def _axis(self, part: tuple[ast.expr, object], length: Dim) -> Axis:
        node, value = part
        if not isinstance(node, ast.Slice):
            row = as_vector(self, node, value)
            return Axis(self.index(node, value) if row is None else row)
        lower = constant(0) if node.lower is None else self.index(node.lower, self.value(node.lower))
        upper = length if node.upper is None else self.index(node.upper, self.value(node.upper))
        step = 1 if node.step is None else self.integer(node.step)
        return Axis(lower, upper, step)

    def index(self, node: ast.AST, value: object) -> Scalar | Dim:
        """A value as an index."""
        operand = self.scalar_operand(node, value)
        if isinstance(operand, bool | float):
            self.fail(node, f"expected an integer as index, got {operand}")
        if isinstance(operand, Scalar) and is_float(operand.dtype):
            self.fail(node, f"expected an integer as index, got a scalar of {operand.dtype}")
        if isinstance(operand, int):
            return constant(operand)
        return operand if isinstance(operand, Dim) else self.emit(node, lambda: converted(operand, INDEX))

    def load(self, node: ast.AST, region: Region) -> Scalar:
        """The element at a point."""
        indices = tuple(axis.lower for axis in region.axes if not isinstance(axis.lower, Vector))
        element = self.emit(node, lambda: region.buffer.tensor[indices])
        if self.mask is None:
            return element
        from relax_dialect.frontend.tvmscript.prim_func.choice import element_of

        return element_of(self, node, self.mask, element)

    def store(self, node: ast.AST, region: Region, value: object) -> None:
        """Writes one element."""
        if as_vector(self, node, value) is not None:
            self.fail(node, "expected as many elements as the vector has lanes, as A[i:i + 8]")
        operand, owner = self.scalar_operand(node, value), region.buffer
        scalar = self.emit(node, lambda: converted(operand, owner.tensor.dtype))
        place = self.load(node, region)
        *indices, stored = self.values(node, *place.operands, scalar)
        self.block.add_op(self.emit(node, lambda: StoreOp(stored, owner.value, indices)))

    # Emission

    def index_value(self, node: ast.AST, value: object) -> SSAValue:
        """An index as a value of the program."""
        index = self.index(node, value)
        if isinstance(index, Dim):
            return self.dim_value(node, index)
        return self.values(node, index)[0]

    def dim_value(self, node: ast.AST, dim: Dim) -> SSAValue:
        """A dimension as a value of the program."""
        known = dim.constant_value
        if known is not None:
            return self.insert(arith.ConstantOp(IntegerAttr(known, IndexType())))
        return self.emit(node, lambda: emit_dim(self.insert, dim, self.names))

    def scalar_value(self, node: ast.AST, value: object, dtype: DType | None = None) -> SSAValue:
        """A scalar, of `dtype` if that is given, as a value of the program."""
        operand = self.scalar_operand(node, value)
        scalar = self.emit(node, lambda: promoted(operand)[0] if dtype is None else converted(operand, dtype))
        return self.values(node, scalar)[0]

    def condition(self, node: ast.expr) -> SSAValue:
        """An expression as a truth value of the program."""
        operand = self.scalar_operand(node, self.value(node))
        if isinstance(operand, bool):
            return self.values(node, te.const(operand, "i1"))[0]
        return self.values(node, self.emit(node, lambda: te.cast(promoted(operand)[0], "i1")))[0]

    def call(self, node: ast.Call) -> object:
        from relax_dialect.frontend.tvmscript.prim_func.intrinsics import call_in_prim_func

        return call_in_prim_func(self, node)

    def attribute(self, node: ast.Attribute) -> object:
        if is_python(self.aliases, self.scope, node):
            return python_value(self, node)
        owner = self.value(node.value)
        if isinstance(owner, Buffer):
            match node.attr:
                case "data":
                    return data_of(owner)
                case "shape" | "strides" if owner.extents is not None:
                    return owner.extents if node.attr == "shape" else owner.steps
                case "shape" | "strides":
                    return tuple(owner.type.shape if node.attr == "shape" else owner.type.strides)[: owner.rank]
                case "elem_offset":
                    return owner.type.offset if owner.base is None else owner.start
                case "dtype":
                    return f"{_name_of(owner.type.dtype)}{'' if owner.lanes is None else f'x{owner.lanes}'}"
                case "ty":
                    return owner
                case _:
                    self.fail(node, f"a buffer has no {node.attr}; it has data, shape, strides, elem_offset and dtype")
        dtype = _dtype_of(owner)
        if dtype is None or node.attr not in ("dtype", "ty"):
            self.fail(node, f"{describe(owner)} has no {node.attr}")
        return owner if node.attr == "ty" else _name_of(dtype)

    def to_dim(self, node: ast.AST, value: object) -> Dim:
        return super().to_dim(node, value.dim if isinstance(value, nodes.Size) else value)


def _dtype_of(value: object) -> Attribute | None:
    """The dtype of a scalar; `None` for anything else."""
    if isinstance(value, Region):
        return None if value.is_vector else value.buffer.type.dtype
    return value.dtype if isinstance(value, Scalar) else None


def _name_of(dtype: Attribute) -> str:
    """A dtype as texts call it; an index is an `int32` for them."""
    return "int32" if isinstance(dtype, IndexType) else lookup(dtype).numpy_name
