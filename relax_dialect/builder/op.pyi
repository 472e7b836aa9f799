# Written by `make docs` from the op classes; see op.py.

import builtins
from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from relax_dialect.builder.emitter import DTypeLike, Operand, Value
from relax_dialect.builder.expr import Expr
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dims import DimLike
from tir_dialect.types import DimAttr
from tir_dialect.weights import WeightAttr

def abs(x: Operand) -> Expr: ...
def acos(x: Operand) -> Expr: ...
def acosh(x: Operand) -> Expr: ...
def add(x: Operand, y: Operand) -> Expr: ...
def arange(
    start: Value | DimLike | float,
    stop: Value | DimLike | float,
    step: Value | DimLike | float,
    dtype: DTypeLike | None = ...,
) -> Expr: ...
def argmax(x: Operand, axis: int | None = ..., *, keepdims: bool = ...) -> Expr: ...
def argmin(x: Operand, axis: int | None = ..., *, keepdims: bool = ...) -> Expr: ...
def argsort(x: Operand, axis: int = ..., *, descending: bool = ..., dtype: DTypeLike = ...) -> Expr: ...
def asin(x: Operand) -> Expr: ...
def asinh(x: Operand) -> Expr: ...
def assert_(condition: Value, format: str, values: Sequence[Value] = ...) -> None: ...
def astype(x: Operand, dtype: DTypeLike) -> Expr: ...
def atan(x: Operand) -> Expr: ...
def atan2(x: Operand, y: Operand) -> Expr: ...
def atanh(x: Operand) -> Expr: ...
def bitwise_and(x: Operand, y: Operand) -> Expr: ...
def bitwise_not(x: Operand) -> Expr: ...
def bitwise_or(x: Operand, y: Operand) -> Expr: ...
def bitwise_xor(x: Operand, y: Operand) -> Expr: ...
def broadcast_to(x: Operand, shape: Value | Sequence[DimLike]) -> Expr: ...
def bucketize(x: Operand, boundaries: Operand, *, out_int32: bool = ..., right: bool = ...) -> Expr: ...
def ceil(x: Operand) -> Expr: ...
def clip(x: Operand, min: float, max: float) -> Expr: ...
def concat(inputs: Sequence[Operand], axis: int = ...) -> Expr: ...
def constant(value: DenseIntOrFPElementsAttr | WeightAttr | str, result_type: TensorType | None = ...) -> Expr: ...
def cos(x: Operand) -> Expr: ...
def cosh(x: Operand) -> Expr: ...
def cosine_window(
    length: DimLike, coefficients: Sequence[float], *, periodic: bool = ..., dtype: DTypeLike = ...
) -> Expr: ...
def cumprod(x: Operand, axis: int | None = ..., *, dtype: DTypeLike | None = ..., exclusive: bool = ...) -> Expr: ...
def cumsum(x: Operand, axis: int | None = ..., *, dtype: DTypeLike | None = ..., exclusive: bool = ...) -> Expr: ...
def dequantize(x: Operand, scale: Operand, zero_point: Operand, dtype: DTypeLike, axis: int = ...) -> Expr: ...
def dequantize_blocks(packed: Operand, format: str, dtype: DTypeLike = ...) -> Expr: ...
def divide(x: Operand, y: Operand) -> Expr: ...
def dtype(value: DTypeLike) -> Expr: ...
def dynamic_strided_slice(x: Operand, begin: Operand, end: Operand, strides: Operand) -> Expr: ...
def einsum(inputs: Sequence[Operand], subscripts: str) -> Expr: ...
def equal(x: Operand, y: Operand) -> Expr: ...
def erf(x: Operand) -> Expr: ...
def ewise_fma(x: Operand, y: Operand, z: Operand) -> Expr: ...
def exp(x: Operand) -> Expr: ...
def expand_dims(x: Operand, axes: int | Sequence[int], *, axis: int | Sequence[int] | None = ...) -> Expr: ...
def eye(rows: DimLike, columns: DimLike, k: int = ..., *, dtype: DTypeLike) -> Expr: ...
def eye_like(x: Operand, k: int = ..., dtype: DTypeLike | None = ...) -> Expr: ...
def flatten(x: Operand) -> Expr: ...
def flip(x: Operand, axis: int) -> Expr: ...
def floor(x: Operand) -> Expr: ...
def floor_divide(x: Operand, y: Operand) -> Expr: ...
def floor_mod(x: Operand, y: Operand) -> Expr: ...
def full(shape: Value | Sequence[DimLike], value: Value | DimLike | float, dtype: DTypeLike | None = ...) -> Expr: ...
def full_like(x: Operand, value: Value | DimLike | float, dtype: DTypeLike | None = ...) -> Expr: ...
def gather_elements(x: Operand, indices: Operand, axis: int = ...) -> Expr: ...
def gather_nd(x: Operand, indices: Operand, batch_dims: int = ...) -> Expr: ...
def greater(x: Operand, y: Operand) -> Expr: ...
def greater_equal(x: Operand, y: Operand) -> Expr: ...
def index_put(x: Operand, values: Operand, indices: Sequence[Operand], *, accumulate: bool = ...) -> Expr: ...
def index_tensor(x: Operand, indices: Sequence[Operand]) -> Expr: ...
def isfinite(x: Operand) -> Expr: ...
def isinf(x: Operand) -> Expr: ...
def isnan(x: Operand) -> Expr: ...
def layout_transform(x: Operand, source: str, target: str) -> Expr: ...
def left_shift(x: Operand, y: Operand) -> Expr: ...
def less(x: Operand, y: Operand) -> Expr: ...
def less_equal(x: Operand, y: Operand) -> Expr: ...
def log(x: Operand) -> Expr: ...
def log_add_exp(x: Operand, y: Operand) -> Expr: ...
def logical_and(x: Operand, y: Operand) -> Expr: ...
def logical_not(x: Operand) -> Expr: ...
def logical_or(x: Operand, y: Operand) -> Expr: ...
def logical_xor(x: Operand, y: Operand) -> Expr: ...
def map_indices(x: Operand, index_map: AffineMap, pad_value: float = ...) -> Expr: ...
def matmul(x: Operand, y: Operand, out_dtype: DTypeLike | None = ...) -> Expr: ...
def max(
    x: Operand, axes: int | Sequence[int] | None = ..., *, keepdims: bool = ..., axis: int | Sequence[int] | None = ...
) -> Expr: ...
def maximum(x: Operand, y: Operand) -> Expr: ...
def mean(
    x: Operand, axes: int | Sequence[int] | None = ..., *, keepdims: bool = ..., axis: int | Sequence[int] | None = ...
) -> Expr: ...
def median(
    x: Operand, axes: int | Sequence[int] | None = ..., *, keepdims: bool = ..., axis: int | Sequence[int] | None = ...
) -> Expr: ...
def meshgrid(vectors: Sequence[Operand], indexing: str = ...) -> builtins.tuple[Expr, ...]: ...
def min(
    x: Operand, axes: int | Sequence[int] | None = ..., *, keepdims: bool = ..., axis: int | Sequence[int] | None = ...
) -> Expr: ...
def minimum(x: Operand, y: Operand) -> Expr: ...
def mod(x: Operand, y: Operand) -> Expr: ...
def multinomial_from_uniform(
    probabilities: Operand, uniform: Operand, rows: Operand, dtype: DTypeLike = ...
) -> Expr: ...
def multiply(x: Operand, y: Operand) -> Expr: ...
def negative(x: Operand) -> Expr: ...
def nonzero(x: Operand) -> Expr: ...
def not_equal(x: Operand, y: Operand) -> Expr: ...
def null() -> Expr: ...
def one_hot(
    indices: Operand, on: Value | DimLike | float, off: Value | DimLike | float, depth: DimLike, axis: int = ...
) -> Expr: ...
def ones(shape: Value | Sequence[DimLike], dtype: DTypeLike) -> Expr: ...
def ones_like(x: Operand, dtype: DTypeLike | None = ...) -> Expr: ...
def outer(x: Operand, y: Operand) -> Expr: ...
def permute_dims(
    x: Operand, axes: int | Sequence[int] | None = ..., *, axis: int | Sequence[int] | None = ...
) -> Expr: ...
def power(x: Operand, y: Operand) -> Expr: ...
def prim(value: DimLike | DimAttr | IntegerAttr | FloatAttr) -> Expr: ...
def print(format: str, values: Sequence[Value] = ...) -> None: ...
def prod(
    x: Operand, axes: int | Sequence[int] | None = ..., *, keepdims: bool = ..., axis: int | Sequence[int] | None = ...
) -> Expr: ...
def quantize(x: Operand, scale: Operand, zero_point: Operand, dtype: DTypeLike, axis: int = ...) -> Expr: ...
def reciprocal(x: Operand) -> Expr: ...
def reinterpret(
    x: Operand, shape: Value | Sequence[DimLike], dtype: DTypeLike | None = ..., *, offset: DimLike = ...
) -> Expr: ...
def repeat(x: Operand, repeats: int, axis: int | None = ...) -> Expr: ...
def reshape(x: Operand, shape: Value | Sequence[DimLike]) -> Expr: ...
def reverse_sequence(x: Operand, lengths: Operand, seq_axis: int = ..., batch_axis: int = ...) -> Expr: ...
def right_shift(x: Operand, y: Operand) -> Expr: ...
def round(x: Operand) -> Expr: ...
def rsqrt(x: Operand) -> Expr: ...
def scatter_elements(x: Operand, indices: Operand, updates: Operand, axis: int = ..., reduction: str = ...) -> Expr: ...
def scatter_nd(x: Operand, indices: Operand, updates: Operand, reduction: str = ...) -> Expr: ...
def shape(values: DimLike | Sequence[DimLike]) -> Expr: ...
def shape_get(shape: Value | Sequence[DimLike], index: int) -> Expr: ...
def shape_of(x: Operand) -> Expr: ...
def shape_to_tensor(shape: Value | Sequence[DimLike]) -> Expr: ...
def sigmoid(x: Operand) -> Expr: ...
def sign(x: Operand) -> Expr: ...
def sin(x: Operand) -> Expr: ...
def sinh(x: Operand) -> Expr: ...
def size(x: Operand) -> Expr: ...
def slice_scatter(
    x: Operand, source: Operand, start: DimLike, end: DimLike, step: int = ..., axis: int = ...
) -> Expr: ...
def sort(x: Operand, axis: int = ..., *, descending: bool = ...) -> Expr: ...
def split(
    x: Operand, *, sections: int | None = ..., indices: DimLike | Sequence[DimLike] | None = ..., axis: int = ...
) -> builtins.tuple[Expr, ...]: ...
def sqrt(x: Operand) -> Expr: ...
def square(x: Operand) -> Expr: ...
def squeeze(x: Operand, axes: int | Sequence[int] | None = ..., *, axis: int | Sequence[int] | None = ...) -> Expr: ...
def stack(inputs: Sequence[Operand], axis: int = ...) -> Expr: ...
def std(
    x: Operand, axes: int | Sequence[int] | None = ..., *, keepdims: bool = ..., axis: int | Sequence[int] | None = ...
) -> Expr: ...
def strided_slice(
    x: Operand,
    axes: int | Sequence[int],
    begin: DimLike | Sequence[DimLike],
    end: DimLike | Sequence[DimLike],
    strides: int | Sequence[int] | None = ...,
    *,
    assume_inbound: bool = ...,
    axis: int | Sequence[int] | None = ...,
) -> Expr: ...
def string(value: str | StringAttr) -> Expr: ...
def subtract(x: Operand, y: Operand) -> Expr: ...
def sum(
    x: Operand, axes: int | Sequence[int] | None = ..., *, keepdims: bool = ..., axis: int | Sequence[int] | None = ...
) -> Expr: ...
def take(x: Operand, indices: Operand, axis: int | None = ..., mode: str = ...) -> Expr: ...
def tan(x: Operand) -> Expr: ...
def tanh(x: Operand) -> Expr: ...
def tensor_to_shape(x: Operand) -> Expr: ...
def tile(x: Operand, repeats: int | Sequence[int]) -> Expr: ...
def topk(
    x: Operand, k: DimLike, axis: int = ..., *, ret_type: str = ..., smallest: bool = ..., dtype: DTypeLike = ...
) -> builtins.tuple[Expr, ...]: ...
def tril(x: Operand, k: DimLike = ...) -> Expr: ...
def triu(x: Operand, k: DimLike = ...) -> Expr: ...
def trunc(x: Operand) -> Expr: ...
def tuple(*fields: Value) -> Expr: ...
def tuple_get(tuple: Value, index: int) -> Expr: ...
def unique(
    x: Operand,
    axis: int | None = ...,
    *,
    sorted: bool = ...,
    return_index: bool = ...,
    return_inverse: bool = ...,
    return_counts: bool = ...,
) -> builtins.tuple[Expr, ...]: ...
def variance(
    x: Operand, axes: int | Sequence[int] | None = ..., *, keepdims: bool = ..., axis: int | Sequence[int] | None = ...
) -> Expr: ...
def where(condition: Operand, x: Operand, y: Operand) -> Expr: ...
def zeros(shape: Value | Sequence[DimLike], dtype: DTypeLike) -> Expr: ...
def zeros_like(x: Operand, dtype: DTypeLike | None = ...) -> Expr: ...

class ccl:
    @staticmethod
    def all_to_all(
        x: Operand,
        num_workers: int,
        axis: int,
        concat_axis: int,
        group: str | None = ...,
        tile: DimLike | None = ...,
        size: DimLike | None = ...,
    ) -> Expr: ...
    @staticmethod
    def allgather(
        x: Operand,
        num_workers: int,
        all_groups: bool = ...,
        axis: int = ...,
        group: str | None = ...,
        size: DimLike | None = ...,
    ) -> Expr: ...
    @staticmethod
    def allreduce(x: Operand, op_type: str = ..., all_groups: bool = ..., group: str | None = ...) -> Expr: ...
    @staticmethod
    def broadcast_from_worker0(x: Operand, group: str | None = ...) -> Expr: ...
    @staticmethod
    def receive(
        shape: Value | Sequence[DimLike], source: int, dtype: DTypeLike, tag: int = ..., group: str | None = ...
    ) -> Expr: ...
    @staticmethod
    def reduce_scatter(
        x: Operand,
        num_workers: int,
        axis: int = ...,
        op_type: str = ...,
        group: str | None = ...,
        tile: DimLike | None = ...,
    ) -> Expr: ...
    @staticmethod
    def scatter_from_worker0(
        x: Operand, num_workers: int, axis: int = ..., group: str | None = ..., tile: DimLike | None = ...
    ) -> Expr: ...
    @staticmethod
    def send(x: Operand, to: int, tag: int = ..., group: str | None = ...) -> Expr: ...
    @staticmethod
    def start(
        x: Operand,
        collective: str,
        op_type: str = ...,
        num_workers: int = ...,
        axis: int = ...,
        group: str | None = ...,
        size: DimLike | None = ...,
    ) -> Expr: ...

class dist:
    @staticmethod
    def annotate_sharding(
        x: Operand, mesh: DimLike | Sequence[DimLike], placement: str, axes: str | None = ...
    ) -> Expr: ...
    @staticmethod
    def global_view(x: Operand, mesh: DimLike | Sequence[DimLike], placement: str, axes: str | None = ...) -> Expr: ...
    @staticmethod
    def local_view(x: Operand, mesh: DimLike | Sequence[DimLike], placement: str, axes: str | None = ...) -> Expr: ...
    @staticmethod
    def redistribute(x: Operand, mesh: DimLike | Sequence[DimLike], placement: str, axes: str | None = ...) -> Expr: ...
    @staticmethod
    def redistribute_replica_to_shard(
        x: Operand,
        num_workers: int,
        axis: int = ...,
        group: str | None = ...,
        tile: DimLike | None = ...,
        index: DimLike | None = ...,
    ) -> Expr: ...

class grad:
    @staticmethod
    def avg_pool2d_backward(
        x: Operand,
        gradient: Operand,
        pool_size: DimLike | Sequence[DimLike],
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...
    @staticmethod
    def max_pool2d_backward(
        x: Operand,
        gradient: Operand,
        pool_size: DimLike | Sequence[DimLike],
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...

class image:
    @staticmethod
    def affine_grid(theta: Operand, size: Value | Sequence[DimLike], *, align_corners: bool = ...) -> Expr: ...
    @staticmethod
    def grid_sample(
        x: Operand,
        grid: Operand,
        *,
        method: str = ...,
        padding_mode: str = ...,
        cubic_alpha: float = ...,
        align_corners: bool = ...,
    ) -> Expr: ...
    @staticmethod
    def resize1d(
        x: Operand,
        length: DimLike,
        axis: int = ...,
        *,
        scale: float | None = ...,
        method: str = ...,
        coordinates: str = ...,
        rounding: str = ...,
        cubic_alpha: float = ...,
        exclude_outside: bool = ...,
        antialias: bool = ...,
        extrapolation_value: float = ...,
        roi: Sequence[float] | None = ...,
    ) -> Expr: ...
    @staticmethod
    def resize2d(
        x: Operand,
        size: Value | Sequence[DimLike],
        *,
        method: str = ...,
        coordinates: str = ...,
        rounding: str = ...,
        cubic_alpha: float = ...,
        cubic_exclude: bool = ...,
        extrapolation_value: float = ...,
        roi: Sequence[float] | None = ...,
        layout: str | None = ...,
        out_dtype: DTypeLike | None = ...,
    ) -> Expr: ...

class nn:
    @staticmethod
    def adaptive_avg_pool1d(
        x: Operand, output_size: DimLike | Sequence[DimLike], *, layout: str | None = ..., out_layout: str | None = ...
    ) -> Expr: ...
    @staticmethod
    def adaptive_avg_pool2d(
        x: Operand, output_size: DimLike | Sequence[DimLike], *, layout: str | None = ..., out_layout: str | None = ...
    ) -> Expr: ...
    @staticmethod
    def adaptive_avg_pool3d(
        x: Operand, output_size: DimLike | Sequence[DimLike], *, layout: str | None = ..., out_layout: str | None = ...
    ) -> Expr: ...
    @staticmethod
    def attention(
        q: Operand,
        k: Operand,
        v: Operand,
        sinks: Sequence[Operand] = ...,
        *,
        scale: float | None = ...,
        softcap: float | None = ...,
        causal_mask: str | None = ...,
        window_size: int | None = ...,
        q_layout: str | None = ...,
        k_layout: str | None = ...,
        v_layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...
    @staticmethod
    def attention_bias(
        q: Operand,
        k: Operand,
        v: Operand,
        bias: Operand,
        sinks: Sequence[Operand] = ...,
        *,
        scale: float | None = ...,
        softcap: float | None = ...,
        causal_mask: str | None = ...,
        window_size: int | None = ...,
        masked_score: float | None = ...,
        q_layout: str | None = ...,
        k_layout: str | None = ...,
        v_layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...
    @staticmethod
    def avg_pool1d(
        x: Operand,
        pool_size: DimLike | Sequence[DimLike],
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...
    @staticmethod
    def avg_pool2d(
        x: Operand,
        pool_size: DimLike | Sequence[DimLike],
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...
    @staticmethod
    def avg_pool3d(
        x: Operand,
        pool_size: DimLike | Sequence[DimLike],
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...
    @staticmethod
    def batch_flatten(x: Operand) -> Expr: ...
    @staticmethod
    def batch_norm(
        x: Operand,
        gamma: Operand,
        beta: Operand,
        mean: Operand,
        variance: Operand,
        axis: int = ...,
        epsilon: float = ...,
        *,
        center: bool = ...,
        scale: bool = ...,
    ) -> Expr: ...
    @staticmethod
    def col2im(
        x: Operand,
        size: Value | Sequence[DimLike],
        window: int | Sequence[int],
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
    ) -> Expr: ...
    @staticmethod
    def conv1d(
        x: Operand,
        w: Operand,
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        groups: int = ...,
        data_layout: str | None = ...,
        kernel_layout: str | None = ...,
        out_layout: str | None = ...,
        out_dtype: DTypeLike | None = ...,
    ) -> Expr: ...
    @staticmethod
    def conv1d_transpose(
        x: Operand,
        w: Operand,
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        output_padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        groups: int = ...,
        data_layout: str | None = ...,
        kernel_layout: str | None = ...,
        out_layout: str | None = ...,
        out_dtype: DTypeLike | None = ...,
    ) -> Expr: ...
    @staticmethod
    def conv2d(
        x: Operand,
        w: Operand,
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        groups: int = ...,
        data_layout: str | None = ...,
        kernel_layout: str | None = ...,
        out_layout: str | None = ...,
        out_dtype: DTypeLike | None = ...,
    ) -> Expr: ...
    @staticmethod
    def conv2d_transpose(
        x: Operand,
        w: Operand,
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        output_padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        groups: int = ...,
        data_layout: str | None = ...,
        kernel_layout: str | None = ...,
        out_layout: str | None = ...,
        out_dtype: DTypeLike | None = ...,
    ) -> Expr: ...
    @staticmethod
    def conv3d(
        x: Operand,
        w: Operand,
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        groups: int = ...,
        data_layout: str | None = ...,
        kernel_layout: str | None = ...,
        out_layout: str | None = ...,
        out_dtype: DTypeLike | None = ...,
    ) -> Expr: ...
    @staticmethod
    def conv3d_transpose(
        x: Operand,
        w: Operand,
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        output_padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        groups: int = ...,
        data_layout: str | None = ...,
        kernel_layout: str | None = ...,
        out_layout: str | None = ...,
        out_dtype: DTypeLike | None = ...,
    ) -> Expr: ...
    @staticmethod
    def deform_conv2d(
        x: Operand,
        w: Operand,
        offsets: Operand,
        mask: Operand,
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        groups: int = ...,
        offset_groups: int = ...,
    ) -> Expr: ...
    @staticmethod
    def dropout(x: Operand, rate: float = ...) -> Expr: ...
    @staticmethod
    def gelu(x: Operand) -> Expr: ...
    @staticmethod
    def gelu_tanh(x: Operand) -> Expr: ...
    @staticmethod
    def group_norm(
        x: Operand,
        gamma: Operand,
        beta: Operand,
        num_groups: int,
        channel_axis: int,
        axes: int | Sequence[int],
        epsilon: float = ...,
        *,
        axis: int | Sequence[int] | None = ...,
    ) -> Expr: ...
    @staticmethod
    def gru(
        x: Operand,
        w: Operand,
        r: Operand,
        b: Operand,
        lengths: Operand,
        states: Sequence[Operand],
        *,
        direction: str = ...,
        activations: str | None = ...,
        alphas: Sequence[float] | None = ...,
        betas: Sequence[float] | None = ...,
        clip: float | None = ...,
        input_forget: bool = ...,
        linear_before_reset: bool = ...,
        batch_first: bool = ...,
    ) -> builtins.tuple[Expr, ...]: ...
    @staticmethod
    def instance_norm(
        x: Operand,
        gamma: Operand,
        beta: Operand,
        channel_axis: int,
        axes: int | Sequence[int],
        epsilon: float = ...,
        *,
        axis: int | Sequence[int] | None = ...,
    ) -> Expr: ...
    @staticmethod
    def layer_norm(
        x: Operand,
        gamma: Operand,
        beta: Operand,
        axes: int | Sequence[int],
        epsilon: float = ...,
        *,
        center: bool = ...,
        scale: bool = ...,
        axis: int | Sequence[int] | None = ...,
    ) -> Expr: ...
    @staticmethod
    def leakyrelu(x: Operand, alpha: float = ...) -> Expr: ...
    @staticmethod
    def log_softmax(x: Operand, axis: int = ...) -> Expr: ...
    @staticmethod
    def lstm(
        x: Operand,
        w: Operand,
        r: Operand,
        b: Operand,
        lengths: Operand,
        states: Sequence[Operand],
        *,
        direction: str = ...,
        activations: str | None = ...,
        alphas: Sequence[float] | None = ...,
        betas: Sequence[float] | None = ...,
        clip: float | None = ...,
        input_forget: bool = ...,
        linear_before_reset: bool = ...,
        batch_first: bool = ...,
    ) -> builtins.tuple[Expr, ...]: ...
    @staticmethod
    def max_pool1d(
        x: Operand,
        pool_size: DimLike | Sequence[DimLike],
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...
    @staticmethod
    def max_pool2d(
        x: Operand,
        pool_size: DimLike | Sequence[DimLike],
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...
    @staticmethod
    def max_pool3d(
        x: Operand,
        pool_size: DimLike | Sequence[DimLike],
        *,
        strides: int | Sequence[int] | None = ...,
        padding: int | Sequence[int] | None = ...,
        dilation: int | Sequence[int] | None = ...,
        ceil_mode: bool = ...,
        count_include_pad: bool = ...,
        layout: str | None = ...,
        out_layout: str | None = ...,
    ) -> Expr: ...
    @staticmethod
    def pad(x: Operand, pad_width: int | Sequence[int], mode: str = ..., pad_value: float = ...) -> Expr: ...
    @staticmethod
    def pixel_shuffle(x: Operand, upscale_factor: int) -> Expr: ...
    @staticmethod
    def prelu(x: Operand, slope: Operand, axis: int = ...) -> Expr: ...
    @staticmethod
    def quantized_recurrence(
        x: Operand,
        r: Operand,
        scale: Operand,
        zero: Operand,
        sums: Operand,
        b: Operand,
        lengths: Operand,
        states: Sequence[Operand],
        cell: str,
        *,
        direction: str = ...,
        activations: str | None = ...,
        alphas: Sequence[float] | None = ...,
        betas: Sequence[float] | None = ...,
        clip: float | None = ...,
        input_forget: bool = ...,
        linear_before_reset: bool = ...,
    ) -> builtins.tuple[Expr, ...]: ...
    @staticmethod
    def recurrence(
        x: Operand,
        r: Operand,
        b: Operand,
        lengths: Operand,
        states: Sequence[Operand],
        cell: str,
        properties: Mapping[str, Attribute] | None = ...,
    ) -> builtins.tuple[Expr, ...]: ...
    @staticmethod
    def relu(x: Operand) -> Expr: ...
    @staticmethod
    def rms_norm(
        x: Operand,
        weight: Operand,
        axes: int | Sequence[int],
        epsilon: float = ...,
        *,
        axis: int | Sequence[int] | None = ...,
    ) -> Expr: ...
    @staticmethod
    def rnn(
        x: Operand,
        w: Operand,
        r: Operand,
        b: Operand,
        lengths: Operand,
        states: Sequence[Operand],
        *,
        direction: str = ...,
        activations: str | None = ...,
        alphas: Sequence[float] | None = ...,
        betas: Sequence[float] | None = ...,
        clip: float | None = ...,
        input_forget: bool = ...,
        linear_before_reset: bool = ...,
        batch_first: bool = ...,
    ) -> builtins.tuple[Expr, ...]: ...
    @staticmethod
    def selu(x: Operand) -> Expr: ...
    @staticmethod
    def silu(x: Operand) -> Expr: ...
    @staticmethod
    def softmax(x: Operand, axis: int = ...) -> Expr: ...
    @staticmethod
    def softplus(x: Operand, beta: float = ..., threshold: float = ...) -> Expr: ...

class random:
    @staticmethod
    def normal(
        seed: Value | DimLike | float,
        shape: Value | Sequence[DimLike],
        *,
        mean: float = ...,
        scale: float = ...,
        dtype: DTypeLike = ...,
        stream: int = ...,
    ) -> Expr: ...
    @staticmethod
    def uniform(
        seed: Value | DimLike | float,
        shape: Value | Sequence[DimLike],
        *,
        low: float = ...,
        high: float = ...,
        dtype: DTypeLike = ...,
        stream: int = ...,
    ) -> Expr: ...

class vision:
    @staticmethod
    def box_nms(
        x: Operand,
        count: Operand,
        indices: Operand,
        *,
        max_output_size: int = ...,
        iou_threshold: float = ...,
        force_suppress: bool = ...,
        top_k: int = ...,
        coord_start: int = ...,
        score_index: int = ...,
        id_index: int = ...,
        invalid_to_bottom: bool = ...,
        soft_nms_sigma: float = ...,
        score_threshold: float = ...,
    ) -> builtins.tuple[Expr, ...]: ...
    @staticmethod
    def get_valid_counts(
        x: Operand, *, score_threshold: float = ..., id_index: int = ..., score_index: int = ...
    ) -> builtins.tuple[Expr, ...]: ...
    @staticmethod
    def non_max_suppression(
        boxes: Operand, scores: Operand, max: Operand, iou: Operand, least: Operand, *, center_point_box: bool = ...
    ) -> Expr: ...
    @staticmethod
    def roi_align(
        x: Operand,
        rois: Operand,
        batches: Operand,
        height: int,
        width: int,
        *,
        sampling_ratio: int = ...,
        spatial_scale: float = ...,
        mode: str = ...,
        aligned: bool = ...,
        offset: float = ...,
    ) -> Expr: ...
    @staticmethod
    def roi_pool(
        x: Operand, rois: Operand, batches: Operand, height: int, width: int, *, spatial_scale: float = ...
    ) -> Expr: ...
