"""Calls of operators as TVM prints them: the op that they become, and its results."""

import pytest

from relax_dialect.builder.operator_functions import operator_classes
from relax_dialect.frontend.tvmscript import parse
from relax_dialect.frontend.tvmscript.relax_func.expressions import operator_class
from relax_dialect.frontend.tvmscript.relax_func.operators import OPERATOR_NAMES, SIGNATURES
from relax_dialect.ops.structure import FuncOp

PARAMS = """
    x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32"), v: R.Tensor((4,), "float32"),
    i: R.Tensor((2,), "int64"), z: R.Tensor((4,), "int8"), b: R.Tensor(("n", 4), "bool"),
    k: R.Tensor(("n", 4), "int32"), image: R.Tensor((1, 4, 8, 8), "float32"), w: R.Tensor((6, 4, 3, 3), "float32"),
    q: R.Tensor((1, 3, 2, 4), "float32")
"""

CALLS = {
    "R.abs(x)": "abs [n, 4] f32",
    "R.add(x1=x, x2=y)": "add [n, 4] f32",
    "R.arange(2, 10, 2, dtype='int64')": "arange [4] i64",
    "R.arange(R.prim_value(5), dtype='int64')": "arange [5] i64",
    "R.argmax(x, axis=1, keepdims=True)": "argmax [n, 1] i64",
    "R.argsort(x, axis=1, descending=False, dtype='int32')": "argsort [n, 4] i32",
    "R.argsort(x)": "argsort [n, 4] i32",
    "R.astype(x, dtype='float16')": "astype [n, 4] f16",
    "R.bitwise_and(k, k)": "bitwise_and [n, 4] i32",
    "R.broadcast_to(v, R.shape([3, 4]))": "broadcast_to [3, 4] f32",
    "R.bucketize(x, v, out_int32=True)": "bucketize [n, 4] i32",
    "R.clip(x, R.prim_value(0), R.prim_value(T.float32(6.0)))": "clip [n, 4] f32",
    "R.concat((x, y), axis=1)": "concat [n, 8] f32",
    "R.cumsum(x, axis=1, dtype='float64', exclusive=True)": "cumsum [n, 4] f64",
    "R.dequantize(z, v, z, out_dtype='float32', axis=0)": "dequantize [4] f32",
    "R.divide(x, R.const(2.0, 'float32'))": "divide [n, 4] f32",
    "R.dot(x, R.permute_dims(y))": "matmul [n, n] f32",
    "R.einsum((x, v), subscripts='ij,j->i')": "einsum [n] f32",
    "R.ewise_fma(x, y, y)": "ewise_fma [n, 4] f32",
    "R.expand_dims(x, axis=[0, 2])": "expand_dims [1, n, 1, 4] f32",
    "R.eye(3, dtype='float32')": "eye [3, 3] f32",
    "R.eye(3, 4, 1, dtype='int32')": "eye [3, 4] i32",
    "R.flatten(x)": "flatten [4 * n] f32",
    "R.flip(x, axis=1)": "flip [n, 4] f32",
    "R.full(R.shape([2, 3]), R.const(1.5, 'float32'), dtype='float32')": "full [2, 3] f32",
    "R.full_like(x, R.const(0, 'int32'), dtype='int32')": "full_like [n, 4] i32",
    "R.gather_elements(x, R.astype(k, 'int64'), axis=1)": "gather_elements [n, 4] f32",
    "R.greater(x, y)": "greater [n, 4] i1",
    "R.image.resize2d(image, R.shape([16, 16]), roi=[0.0, 0.0, 0.0, 0.0], layout='NCHW', method='linear', "
    "coordinate_transformation_mode='half_pixel', rounding_method='round', cubic_alpha=-0.75, cubic_exclude=0, "
    "extrapolation_value=0.0, out_dtype=None)": "image.resize2d [1, 4, 16, 16] f32",
    "R.index_tensor(x, (i,))": "index_tensor [2, 4] f32",
    "R.logical_not(b)": "logical_not [n, 4] i1",
    "R.matmul(x, R.permute_dims(y, axes=[1, 0]), out_dtype='float32')": "matmul [n, n] f32",
    "R.max(x, axis=[0], keepdims=False)": "max [4] f32",
    "R.mean(x, axis=None)": "mean [] f32",
    "R.nn.adaptive_avg_pool2d(image, output_size=[2, 2], layout='NCHW')": "nn.adaptive_avg_pool2d [1, 4, 2, 2] f32",
    "R.nn.attention(q, q, q, scale=None, causal_mask='TopLeft', window_size=None)": "nn.attention [1, 3, 2, 4] f32",
    "R.nn.avg_pool2d(image, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], dilation=[1, 1], ceil_mode=False, "
    "count_include_pad=False, layout='NCHW', out_layout='NCHW')": "nn.avg_pool2d [1, 4, 4, 4] f32",
    "R.nn.conv2d(image, w, strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1], groups=1, data_layout='NCHW', "
    "kernel_layout='OIHW', out_layout='NCHW', out_dtype=None)": "nn.conv2d [1, 6, 8, 8] f32",
    "R.nn.gelu(x)": "nn.gelu [n, 4] f32",
    "R.nn.layer_norm(x, v, v, axes=[-1], epsilon=1e-5, center=True, scale=True)": "nn.layer_norm [n, 4] f32",
    "R.nn.leakyrelu(x, alpha=0.1)": "nn.leakyrelu [n, 4] f32",
    "R.nn.max_pool2d(image, (2, 2), strides=(2, 2))": "nn.max_pool2d [1, 4, 4, 4] f32",
    "R.nn.pad(x, pad_width=[0, 0, 1, 1], pad_mode='constant', pad_value=0.0)": "nn.pad [n, 6] f32",
    "R.nn.prelu(x, v, axis=1)": "nn.prelu [n, 4] f32",
    "R.nn.relu6(x)": "clip [n, 4] f32",
    "R.nn.rms_norm(x, v, axes=[-1])": "nn.rms_norm [n, 4] f32",
    "R.nn.softmax(x, axis=-1)": "nn.softmax [n, 4] f32",
    "R.nonzero(x)": "nonzero [2, _] i64",
    "R.one_hot(i, R.prim_value(1), R.prim_value(0), depth=5, axis=-1)": "one_hot [2, 5] i64",
    "R.ones(R.shape([2]), dtype='int8')": "ones [2] i8",
    "R.permute_dims(q, axes=[0, 2, 1, 3])": "permute_dims [1, 2, 3, 4] f32",
    "R.quantize(v, v, z, out_dtype='int8', axis=0)": "quantize [4] i8",
    "R.repeat(x, repeats=2, axis=0)": "repeat [2 * n, 4] f32",
    "R.reshape(x, R.shape([2, 2]))": "reshape [2, 2] f32",
    "R.scatter_elements(x, R.astype(k, 'int64'), y, axis=1, reduction='add')": "scatter_elements [n, 4] f32",
    "R.shape_of(x)": "shape_of [n, 4]",
    "R.size(x)": "full [] i64",
    "R.sort(x, axis=1, descending=True)": "sort [n, 4] f32",
    "R.squeeze(R.expand_dims(x, 0), axis=[0])": "squeeze [n, 4] f32",
    "R.stack((x, y), axis=0)": "stack [2, n, 4] f32",
    "R.strided_slice(x, axes=[1], begin=[0], end=[4], strides=[2], assume_inbound=False)": "strided_slice [n, 2] f32",
    "R.strided_slice(x, (R.prim_value(1),), (R.prim_value(1),), (R.prim_value(3),))": "strided_slice [n, 2] f32",
    "R.take(x, i, axis=1, mode='fast')": "take [n, 2] f32",
    "R.tile(x, repeats=[2, 1])": "tile [2 * n, 4] f32",
    "R.tril(x, k=1)": "tril [n, 4] f32",
    "R.variance(x, axis=[1], keepdims=True)": "variance [n, 1] f32",
    "R.where(b, x, y)": "where [n, 4] f32",
    "R.zeros_like(x, dtype='void')": "zeros_like [n, 4] f32",
    "-x": "negative [n, 4] f32",
    "x ** 2.0": "power [n, 4] f32",
    "x // y % 2.0": "floor_mod [n, 4] f32",
    "k << 1": "left_shift [n, 4] i32",
    "k & k | ~k": "bitwise_or [n, 4] i32",
    "x >= y": "greater_equal [n, 4] i1",
    "1.0 / x": "divide [n, 4] f32",
    "x.astype('int32')": "astype [n, 4] i32",
    "x[0]": "squeeze [4] f32",
    "x[:, 1:3]": "strided_slice [n, 2] f32",
    "x[i]": "take [2, 4] f32",
    "R.wrap_param(x, dtype='float16')": "astype [n, 4] f16",
    "R.builtin.stop_lift_params(R.exp(x))": "exp [n, 4] f32",
    "R.emit(R.exp(x))": "exp [n, 4] f32",
    "R.layout_transform(x, index_map=lambda i, j: (j // 3, i, j % 3), pad_value=None)": "map_indices [2, n, 3] f32",
    "R.layout_transform(k, T.index_map(lambda i, j: i * T.int64(4) + j, index_dtype='int32'), pad_value=T.int32(1), "
    "axis_separators=[])": "map_indices [4 * n] i32",
    "R.linear(x, R.permute_dims(R.stack((v, v), axis=1)), None)": "matmul [n, 2] f32",
}


def function_of(call: str) -> FuncOp:
    (func,) = parse(f"@R.function\ndef f({PARAMS}):\n    return {call}\n").ops
    assert isinstance(func, FuncOp)
    return func


@pytest.mark.parametrize("call", CALLS)
def test_operator(call: str):
    func = function_of(call)
    returned = func.body.block.last_op
    assert returned is not None
    value = returned.operands[0]
    kind, _, rest = str(value.type).removeprefix("!relax.").rstrip(">").partition("<")
    dims, _, dtype = rest.rpartition(", ") if kind == "tensor" else (rest, "", "")
    assert f"{value.owner.name} {dims} {dtype}".strip() == f"relax.{CALLS[call]}"


TUPLES = {
    "R.split(x, indices_or_sections=2, axis=1)": ("split", 2),
    "R.split(x, indices_or_sections=[1, 3], axis=1)": ("split", 3),
    "R.topk(x, k=2, axis=1, ret_type='both', largest=True, dtype='int32')": ("topk", 2),
    "R.nn.batch_norm(x, v, v, v, v, axis=1, epsilon=1e-5, center=True, scale=True, momentum=0.1, training=False)": (
        "nn.batch_norm",
        3,
    ),
    "R.nn.dropout(x, rate=0.5)": ("nn.dropout", 2),
    "R.median(x, axis=[1], keepdims=True)": ("argsort", 2),
    "R.unique(v, R.prim_value(True), R.prim_value(True), R.prim_value(False), R.prim_value(False))": ("unique", 2),
}


@pytest.mark.parametrize("call", TUPLES)
def test_operator_with_several_results(call: str):
    name, count = TUPLES[call]
    func = function_of(call)
    returned = func.body.block.last_op
    assert returned is not None
    made = returned.operands[0].owner
    assert made.name == "relax.tuple"
    assert len(made.operands) == count
    assert name in {str(op.name).removeprefix("relax.") for op in func.body.block.ops}


@pytest.mark.parametrize("name", sorted(operator_classes()))
def test_every_operator_has_its_name(name: str):
    assert operator_class(name.removeprefix("relax.")) is operator_classes()[name]


@pytest.mark.parametrize("name", sorted({*OPERATOR_NAMES.values(), *SIGNATURES}))
def test_tables_name_operators(name: str):
    assert operator_class(name) is not None
