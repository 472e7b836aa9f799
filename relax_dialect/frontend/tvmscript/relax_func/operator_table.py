"""Where TVM's operators and ours differ: names, orders and defaults of arguments. All else follows from our classes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

OPERATOR_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "dot": "matmul",
        "ewise_add": "add",
        "ewise_mul": "multiply",
        "ewise_sub": "subtract",
        "ewise_div": "divide",
        "nn.dense": "matmul",
        "nn.matmul": "matmul",
        "nn.leaky_relu": "nn.leakyrelu",
        "nn.flatten": "flatten",
        "transpose": "permute_dims",
        "concatenate": "concat",
        "var": "variance",
        "sub": "subtract",
        "mul": "multiply",
        "div": "divide",
        "pow": "power",
    }
)
"""Other names of operators, as older texts have them."""

SYNONYMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "alpha": ("slope",),
        "axes": ("axis",),
        "axis": ("axes",),
        "bins": ("boundaries",),
        "boundaries": ("boundaries",),
        "coordinate_transformation_mode": ("coordinates",),
        "data": ("x", "indices"),
        "dst_shape": ("shape",),
        "end": ("stop",),
        "expr": ("x", "shape"),
        "fill_value": ("value",),
        "input": ("x",),
        "input_tensor": ("x",),
        "key": ("k",),
        "lhs": ("x",),
        "m": ("columns",),
        "moving_mean": ("mean",),
        "moving_var": ("variance",),
        "n": ("rows",),
        "newshape": ("shape",),
        "off_value": ("off",),
        "on_value": ("on",),
        "operands": ("inputs",),
        "out_dtype": ("dtype",),
        "pad_mode": ("mode",),
        "prob": ("probabilities",),
        "query": ("q",),
        "rhs": ("y",),
        "output_grad": ("gradient",),
        "rounding_method": ("rounding",),
        "sample_indices": ("rows",),
        "seq_lengths": ("lengths",),
        "src": ("source",),
        "tensors": ("inputs", "vectors"),
        "uniform_sample": ("uniform",),
        "value": ("v",),
        "weight": ("w", "weight"),
        "x1": ("x",),
        "x2": ("y",),
        "x3": ("z",),
    }
)
"""What our parameters are called for a name of TVM's, in order of preference."""

_POOL = "x pool_size=1 strides padding dilation ceil_mode count_include_pad layout out_layout"

_ADAPTIVE = "x output_size=None layout out_layout"

SIGNATURES: Mapping[str, str] = MappingProxyType(
    {
        "argsort": "x axis descending dtype=i32",
        "ccl.allgather": "x num_workers in_group",
        "ccl.allreduce": "x op_type in_group",
        "dequantize": "x scale zero_point axis dtype=f32",
        "eye": "rows columns k dtype=f32",
        **{f"grad.{kind}_pool2d_backward": f"gradient {_POOL}" for kind in ("avg", "max")},
        "image.resize2d": "x size roi layout method coordinates rounding cubic_alpha=-0.75 cubic_exclude "
        "extrapolation_value out_dtype",
        "index_put": "x indices values accumulate",
        "nn.adaptive_avg_pool1d": _ADAPTIVE,
        "nn.adaptive_avg_pool2d": _ADAPTIVE,
        "nn.adaptive_avg_pool3d": _ADAPTIVE,
        "nn.attention": "q k v bias scale causal_mask window_size",
        "nn.attention_bias": "q k v bias scale causal_mask window_size",
        **{f"nn.max_pool{count}d": _POOL for count in (1, 2, 3)},
        "nn.avg_pool2d": _POOL,
        "nn.avg_pool1d": _POOL.replace("count_include_pad", "count_include_pad=True"),
        "nn.avg_pool3d": _POOL.replace("count_include_pad", "count_include_pad=True"),
        "nn.batch_norm": "x gamma beta mean variance axis epsilon center scale momentum training",
        "nn.group_norm": "x gamma beta num_groups channel_axis axes epsilon center scale",
        "nn.instance_norm": "x gamma beta channel_axis axes epsilon center scale",
        "nn.rms_norm": "x weight axes=-1 epsilon",
        "quantize": "x scale zero_point axis dtype=i8",
        "split": "x indices_or_sections axis",
        "topk": "x k=1 axis ret_type largest dtype=i32",
        "unique": "x sorted return_index return_inverse return_counts axis",
    }
)
"""TVM's parameters in its order, by our names where we have them, with TVM's defaults where ours are others."""
