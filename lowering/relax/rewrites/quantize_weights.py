"""`quantize-weights`: constant weights of matrix products and look-ups become blocks of small integers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, f32
from xdsl.ir import Attribute, Operation, SSAValue, Use
from xdsl.pattern_rewriter import PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.hints import isa

from lowering.registry import Pass
from lowering.relax.insert_guards import apply_graph_patterns
from lowering.relax.rewrites.fold_constants import ConstantValues, FoldConstantsPass
from lowering.rewriting import op_rewrite_pattern
from relax_dialect.interpreter.machine import Interpreter
from relax_dialect.interpreter.runtime_values import is_tensor
from relax_dialect.ops.datatype import AstypeOp, DequantizeBlocksOp
from relax_dialect.ops.indexing import TakeOp
from relax_dialect.ops.linear_algebra import MatmulOp
from relax_dialect.ops.manipulation import PermuteDimsOp, permutation
from relax_dialect.ops.structure import FuncOp
from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.block_arrays import ENCODERS, encode_rows
from tir_dialect.block_formats import FORMATS
from tir_dialect.dtypes import is_float
from tir_dialect.weights import TensorAttr, WeightAttr, tensor_attr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

REPORT = "quantized_weights"
"""The attribute of a function that says what became of its weights."""


@dataclass(frozen=True)
class QuantizeWeightsPass(Pass):
    """Packs constant weights of matrix products, and tables of which rows are taken, into blocks of small integers.

    Before:

    ```mlir
    %w = relax.constant "w" : !relax.tensor<[64, 128], f32>
    %y = relax.matmul %x, %w
    ```

    After:

    ```mlir
    %w = relax.constant "w.q8_0" : !relax.tensor<[128, 68], ui8>
    %0 = relax.dequantize_blocks %w format = "q8_0"
    %1 = relax.permute_dims %0 axes = [1, 0]
    %y = relax.matmul %x, %1
    ```

    Blocks are along the dimension that is summed, so kernels decode them in registers; `matmul(x, permute_dims(W))` and
    a table `W` that is taken from along its first dimension keep the rows of `W`. Values change by the error of the
    format. With `explain`, the attribute `quantized_weights` of a function has the root of the mean squared error of
    each weight, relative to that of its elements, and says why others are left alone. These are: weights that a pattern
    of `leave-out` matches, that are small, or that have a greater error than allowed; rows that are no whole blocks;
    weights that other ops read too, or that are read both by rows and by columns; products of other dtypes than `f32`
    and of stacked matrices; and elements that are not finite or not in this process. Refuses formats without an
    encoder. Idempotent.
    """

    name = "quantize-weights"
    requires = ("relax.matmul", "relax.take")

    format: str = "q8_0"
    """The format of blocks, one of `tir_dialect.block_arrays.ENCODERS`."""
    leave_out: tuple[str, ...] = ()
    """Names of weights that stay as they are, as patterns of a shell: `*lm_head*`."""
    min_elements: int = 4096
    """Weights of fewer elements stay as they are."""
    max_error: float = 0.5
    """Weights whose relative error would be greater stay as they are."""
    explain: bool = False
    """Whether functions say what became of their weights."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrites every function."""
        if self.format not in ENCODERS:
            raise PassFailedException(f"format expected one of {', '.join(ENCODERS)}, got '{self.format}'")
        found = quantize_weights(op, self)
        if self.explain:
            for func, weights in found.items():
                before = func.attributes.get(REPORT, ArrayAttr[Attribute](()))
                lines = list(before) if isa(before, ArrayAttr[StringAttr]) else []
                lines += [line for each in weights if (line := StringAttr(each.as_text())) not in lines]
                if lines:
                    func.attributes[REPORT] = ArrayAttr(lines)


@dataclass(frozen=True)
class WeightReport:
    """What became of a weight."""

    name: str
    shape: tuple[int, ...]
    left: str | None = None
    """Why it was left as it is."""
    bytes_before: int = 0
    bytes_after: int = 0
    error: float = 0.0
    """The root of the mean squared error, relative to that of the elements."""

    def as_text(self) -> str:
        """One line."""
        what = f"{self.name or 'a weight without a name'} {list(self.shape)}"
        if self.left is not None:
            return f"{what}: left, {self.left}"
        return f"{what}: {self.bytes_before} to {self.bytes_after} bytes, relative error {self.error:.2g}"


def quantize_weights(module: ModuleOp, options: QuantizeWeightsPass) -> dict[FuncOp, tuple[WeightReport, ...]]:
    """Rewrites every function of a module, and says of each what became of its weights."""
    found: dict[FuncOp, tuple[WeightReport, ...]] = {}
    constants: dict[WeightAttr, list[SSAValue]] = {}
    for op in module.walk():
        if isinstance(op, ConstantOp) and isinstance(op.value, WeightAttr):
            constants.setdefault(op.value, []).append(op.result)
    encoded: dict[tuple[TensorAttr, bool], _Encoded] = {}
    for func in module.ops:
        if isinstance(func, FuncOp):
            values = ConstantValues(Interpreter(module), FoldConstantsPass.most_bytes)
            weights = _Weights(options, values, constants, encoded)
            apply_graph_patterns(func, [QuantizeMatmul(weights), QuantizeTake(weights)])
            found[func] = tuple(weights.reports.values())
    return found


class QuantizeMatmul(RewritePattern):
    """A constant matrix is decoded where it is multiplied:
    `matmul(x, W)  ->  matmul(x, permute_dims(dequantize_blocks(bytes of W^T)))`.
    """

    def __init__(self, weights: _Weights):
        self._weights = weights

    @op_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter) -> None:
        packed = self._weights.packed(op.y, rewriter)
        if packed is not None:
            numbers = DequantizeBlocksOp(packed, self._weights.options.format)
            matrix = PermuteDimsOp(numbers, [1, 0])
            product = MatmulOp.create(
                operands=[op.x, matrix.result],
                result_types=op.result_types,
                properties=op.properties,
                attributes=op.attributes,
            )
            rewriter.replace(op, [numbers, matrix, product])


class QuantizeTake(RewritePattern):
    """Rows are decoded after they were taken: `take(W, indices)  ->  dequantize_blocks(take(bytes of W, indices))`."""

    def __init__(self, weights: _Weights):
        self._weights = weights

    @op_rewrite_pattern
    def match_and_rewrite(self, op: TakeOp, rewriter: PatternRewriter) -> None:
        dtype = op.result.type.dtype
        packed = None if dtype is None else self._weights.packed(op.x, rewriter)
        if packed is not None and dtype is not None:
            rows = TakeOp(packed, op.indices, 0, op.mode.data)
            numbers = DequantizeBlocksOp.create(
                operands=[rows.result],
                result_types=op.result_types,
                properties={"format": StringAttr(self._weights.options.format), "dtype": dtype},
            )
            rewriter.replace(op, [rows, numbers])


@dataclass(frozen=True, eq=False)
class _Encoded:
    """The bytes of a weight, unless its error is too large."""

    value: TensorAttr | None
    report: WeightReport


@dataclass
class _Weights:
    """The weights of a function, and what became of them."""

    options: QuantizeWeightsPass
    values: ConstantValues
    constants: dict[WeightAttr, list[SSAValue]]
    """All constants of the module with the same elements."""
    encoded: dict[tuple[TensorAttr, bool], _Encoded]
    """Those of the module whose elements were encoded, and whether by rows."""
    reports: dict[SSAValue, WeightReport] = field(default_factory=dict[SSAValue, WeightReport])
    _packed: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def packed(self, value: SSAValue, rewriter: PatternRewriter) -> SSAValue | None:
        """The bytes for a matrix that is read in this function; `None` if it stays as it is."""
        source, _ = _source(value)
        if source not in self._packed and source not in self.reports and _is_matrix(source):
            array = self.values.of(source)
            if is_tensor(array) or _is_elsewhere(source):
                self._pack(source, array if is_tensor(array) else None, rewriter)
        return self._packed.get(source)

    def _pack(self, source: SSAValue, array: Array | None, rewriter: PatternRewriter) -> None:
        name, shape = _name(source), _sizes(source)
        by_rows, left = self._reading(source)
        left = left or self._why_left(name, shape if by_rows else shape[::-1])
        if array is None or left is not None:
            left = left or "its elements are not in this process"
            self.reports[source] = WeightReport(name, shape, left)
            return
        owner = source.owner
        value = owner.value if isinstance(owner, ConstantOp) else tensor_attr(array)
        key = value, by_rows
        if key not in self.encoded:
            self.encoded[key] = _encoded(array if by_rows else array.T, value, self.options)
        found = self.encoded[key]
        self.reports[source] = replace(found.report, name=name, shape=shape)
        if found.value is not None and isinstance(owner, Operation):
            constant = ConstantOp(found.value)
            constant.result.name_hint = source.name_hint
            rewriter.insert(constant, InsertPoint.before(owner))
            self._packed[source] = constant.result

    def _reading(self, source: SSAValue) -> tuple[bool, str | None]:
        """Whether the rows of a matrix are what is summed along or taken, not its columns; or why it is left."""
        owner = source.owner
        value = owner.value if isinstance(owner, ConstantOp) else None
        same = self.constants[value] if isinstance(value, WeightAttr) and value in self.constants else [source]
        orders = set[bool]()
        for use, transposed in (found for each in same for found in _readers(each)):
            op = use.operation
            if isinstance(op, MatmulOp) and use.index == 1:
                if not all(isinstance(each.type, TensorType) and each.type.dtype == f32 for each in op.operands):
                    return True, "the product is not of f32"
                orders.add(transposed)
            elif isinstance(op, TakeOp) and use.index == 0 and op.axis is not None and op.axis.value.data in (0, -2):
                orders.add(not transposed)
            else:
                return True, f"'{op.name}' reads it too"
        return True in orders, "it is read both by rows and by columns" if len(orders) > 1 else None

    def _why_left(self, name: str, rows: tuple[int, ...]) -> str | None:
        """Why a matrix with rows of this shape is left as it is, before its elements are looked at."""
        options, size = self.options, FORMATS[self.options.format].elements
        if any(fnmatchcase(name, pattern) for pattern in options.leave_out):
            return "as its name says"
        if len(rows) != 2:
            return "it is a stack of matrices"
        if rows[0] * rows[1] < options.min_elements:
            return f"it has fewer than {options.min_elements} elements"
        return f"its rows of {rows[1]} are no multiple of {size}" if rows[1] % size else None


def _encoded(rows: Array, value: TensorAttr, options: QuantizeWeightsPass) -> _Encoded:
    """The bytes of some rows of numbers, those of a constant in one order or the other."""
    report = WeightReport("", rows.shape)
    if not np.isfinite(rows).all():
        return _Encoded(None, replace(report, left="not all of its elements are finite"))
    blocks, error = encode_rows(rows, FORMATS[options.format])
    if not error <= options.max_error:
        return _Encoded(None, replace(report, left=f"the relative error would be {error:.2g}"))
    name = f"{value.weight_name}.{options.format}" if isinstance(value, WeightAttr) else None
    report = replace(report, bytes_before=rows.nbytes, bytes_after=blocks.packed.nbytes, error=error)
    return _Encoded(tensor_attr(blocks.packed, name), report)


def _source(value: SSAValue) -> tuple[SSAValue, bool]:
    """What a matrix is in another order or precision, and whether it is that transposed."""
    transposed = False
    while isinstance(op := value.owner, PermuteDimsOp | AstypeOp) and _is_matrix(op.x):
        transposed ^= isinstance(op, PermuteDimsOp) and permutation(op) == (1, 0)
        value = op.x
    return value, transposed


def _readers(source: SSAValue, transposed: bool = False) -> Iterator[tuple[Use, bool]]:
    """What reads a matrix, or reads it in another order or precision, and whether transposed."""
    for use in source.uses:
        op = use.operation
        if isinstance(op, PermuteDimsOp | AstypeOp) and _is_matrix(op.result):
            yield from _readers(op.result, transposed ^ (isinstance(op, PermuteDimsOp) and permutation(op) == (1, 0)))
        else:
            yield use, transposed


def _is_matrix(value: SSAValue) -> bool:
    """Whether a value has floats, and two dimensions or more that are numbers."""
    info = value.type
    if not isinstance(info, TensorType) or info.dtype is None or not is_float(info.dtype):
        return False
    return info.rank is not None and info.rank >= 2 and len(_sizes(value)) == info.rank


def _sizes(value: SSAValue) -> tuple[int, ...]:
    info = value.type
    dims = info.known_dims if isinstance(info, TensorType) else None
    return tuple(size for dim in dims or () if (size := dim.constant_value) is not None)


def _is_elsewhere(source: SSAValue) -> bool:
    """Whether a value is a constant of which only the name is known here."""
    owner = source.owner
    return isinstance(owner, ConstantOp) and isinstance(owner.value, WeightAttr) and owner.value.array is None


def _name(source: SSAValue) -> str:
    """The name of a weight, or of the largest one that it is computed from."""
    owner = source.owner
    if isinstance(owner, ConstantOp):
        is_named = isinstance(owner.value, WeightAttr) and not owner.value.weight_name.startswith("const_")
        return owner.value.weight_name if is_named and isinstance(owner.value, WeightAttr) else source.name_hint or ""
    operands = owner.operands if isinstance(owner, Operation) else ()
    return _name(max(operands, key=lambda each: np.prod(_sizes(each)))) if operands else source.name_hint or ""
