"""The operators of TVM 0.27: the names of their parameters, in order."""

from __future__ import annotations

from collections.abc import Mapping

_OPERATORS: Mapping[str, str] = {
    (
        "add atan2 bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater "
        "greater_equal left_shift less less_equal log_add_exp logical_and logical_or logical_xor maximum "
        "minimum mod multiply not_equal power right_shift subtract outer"
    ): "x1 x2",
    "arange": "start end step dtype",
    "argsort": "data axis descending dtype",
    "bucketize": "input_tensor boundaries out_int32 right",
    "clip": "x min max",
    "concat stack": "tensors axis",
    "cumsum cumprod": "data axis dtype exclusive",
    "dynamic_strided_slice": "x begin end strides",
    "einsum": "operands subscripts",
    "ewise_fma": "x1 x2 x3",
    "expand_dims squeeze": "x axis",
    "eye": "n m k dtype",
    "eye_like": "x k dtype",
    (
        "flatten nonzero abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp floor "
        "isfinite isinf isnan log logical_not negative round rsqrt sigmoid sign sin sinh sqrt square tan tanh "
        "trunc"
    ): "x",
    "full": "shape fill_value dtype",
    "full_like": "x fill_value dtype",
    "gather_elements": "data indices axis",
    "gather_nd": "data indices batch_dims",
    "grad.max_pool2d_backward grad.avg_pool2d_backward": (
        "output_grad data pool_size strides padding dilation ceil_mode count_include_pad layout out_layout"
    ),
    "image.resize2d": (
        "data size roi layout method coordinate_transformation_mode rounding_method cubic_alpha cubic_exclude "
        "extrapolation_value out_dtype"
    ),
    "index_put": "data indices values accumulate",
    "index_tensor": "data indices",
    "matmul": "x1 x2 out_dtype",
    "meshgrid": "tensors indexing",
    "multinomial_from_uniform": "prob uniform_sample sample_indices dtype",
    "nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d": "data output_size layout out_layout",
    "nn.attention nn.attention_bias": "query key value bias scale causal_mask window_size",
    "nn.batch_norm": "data gamma beta moving_mean moving_var axis epsilon center scale momentum training",
    "nn.conv1d nn.conv2d nn.conv3d": (
        "data weight strides padding dilation groups data_layout kernel_layout out_layout out_dtype"
    ),
    "nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose": (
        "data weight strides padding output_padding dilation groups data_layout kernel_layout out_layout out_dtype"
    ),
    "nn.dropout": "data rate",
    "nn.group_norm": "data gamma beta num_groups channel_axis axes epsilon center scale",
    "nn.instance_norm": "data gamma beta channel_axis axes epsilon center scale",
    "nn.layer_norm": "data gamma beta axes epsilon center scale",
    "nn.leakyrelu": "data alpha",
    "nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d": (
        "data pool_size strides padding dilation ceil_mode count_include_pad layout out_layout"
    ),
    "nn.pad": "data pad_width pad_mode pad_value",
    "nn.pixel_shuffle": "data upscale_factor",
    "nn.prelu": "data alpha axis",
    "nn.relu nn.gelu nn.gelu_tanh nn.silu nn.selu nn.batch_flatten": "data",
    "nn.rms_norm": "data weight axes epsilon",
    "nn.softmax nn.log_softmax flip": "data axis",
    "nn.softplus": "data beta threshold",
    "one_hot": "indices on_value off_value depth axis",
    "permute_dims": "x axes",
    "quantize dequantize": "data scale zero_point axis out_dtype",
    "repeat": "data repeats axis",
    "reshape broadcast_to": "x shape",
    "reverse_sequence": "data seq_lengths seq_axis batch_axis",
    "scatter_elements": "data indices updates axis reduction",
    "scatter_nd": "data indices updates reduction",
    "shape_of tensor_to_shape shape_to_tensor": "expr",
    "slice_scatter": "input_tensor src start end step axis",
    "sort": "x axis descending",
    "split": "x indices_or_sections axis",
    "strided_slice": "x axes begin end strides assume_inbound",
    "sum prod max min mean variance std median argmax argmin": "x axis keepdims",
    "take": "x indices axis mode",
    "tile": "data repeats",
    "topk": "data k axis ret_type largest dtype",
    "tril triu": "x k",
    "unique": "x sorted return_index return_inverse return_counts axis",
    "vision.get_valid_counts": "data score_threshold id_index score_index",
    "where": "condition x1 x2",
    "zeros ones": "shape dtype",
    "zeros_like ones_like astype": "x dtype",
}
"""The parameters of operators, of those that have the same ones together."""

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    name: tuple(parameters.split()) for names, parameters in _OPERATORS.items() for name in names.split()
}
"""The parameters of each operator."""
