"""TVM Relax's operators (0.27: 230 of them), each with what stands for it here, or why nothing does.

An entry is the name of an op of ours, or names with a word on how, or `-` and a reason.
"""

from __future__ import annotations

_SAME = """
abs acos acosh add arange argmax argmin argsort asin asinh astype atan atan2 atanh bitwise_and bitwise_not bitwise_or
bitwise_xor broadcast_to bucketize call_dps_packed call_pure_packed call_tir call_tir_inplace ccl.allgather
ccl.allreduce ccl.broadcast_from_worker0 ccl.scatter_from_worker0 ceil clip concat cos cosh cumprod cumsum dequantize
dist.annotate_sharding dist.redistribute dist.redistribute_replica_to_shard divide dynamic_strided_slice einsum equal
erf ewise_fma exp expand_dims eye eye_like flatten flip floor floor_divide floor_mod full full_like gather_elements
gather_nd grad.avg_pool2d_backward grad.max_pool2d_backward greater greater_equal image.affine_grid image.grid_sample
image.resize2d index_put index_tensor isfinite isinf isnan left_shift less less_equal log log_add_exp logical_and
logical_not logical_or logical_xor make_closure matmul max maximum mean median min minimum mod multiply negative
nn.adaptive_avg_pool1d nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d nn.attention nn.attention_bias nn.avg_pool1d
nn.avg_pool2d nn.avg_pool3d nn.batch_flatten nn.batch_norm nn.conv1d nn.conv1d_transpose nn.conv2d nn.conv2d_transpose
nn.conv3d nn.conv3d_transpose nn.dropout nn.gelu nn.gelu_tanh nn.group_norm nn.instance_norm nn.layer_norm
nn.leakyrelu nn.log_softmax nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.pad nn.pixel_shuffle nn.prelu nn.relu
nn.rms_norm nn.selu nn.silu nn.softmax nn.softplus nonzero not_equal one_hot ones ones_like outer permute_dims power
print prod quantize repeat reshape right_shift round rsqrt scatter_elements scatter_nd shape_of shape_to_tensor
sigmoid sign sin sinh size slice_scatter sort split sqrt square squeeze stack std strided_slice subtract sum take tan
tanh tensor_to_shape tile topk tril triu trunc unique variance vision.get_valid_counts vision.roi_align where zeros
zeros_like
"""
SAME = tuple(_SAME.split())
"""Operators that have the same name, without `relax.`."""

_VIEW = "views are tensor types with strides and offsets, or the ops that make them"
_PLACEMENT = "- devices other than the CPU are out of scope"
_MARK = "- says something to the pass that makes gradients; the tensor itself stands for it"
_TRAINING = "- training is out of scope"
_INSPECT = "- types say it at compile time; what they leave open, `relax.shape_of` and `relax.shape_get` read"

OTHERS = {
    "assert_op": "`relax.assert`",
    "builtin.alloc_tensor": "`relax.alloc_tensor`",
    "builtin.stop_lift_params": "- `bind-params` binds weights and `fold-constants` folds them; nothing is lifted",
    "call_builtin_with_ctx": "`relax.call_packed`; the machine's own functions are typed ops of `vm`",
    "call_inplace_packed": "`relax.call_packed`, which may write its arguments",
    "call_py_func": "`relax.call_packed` of a function that Python registers",
    "call_tir_with_grad": _TRAINING,
    "collapse_sum_like": "`relax.sum` over the dimensions that differ, as the TVMScript reader writes it",
    "collapse_sum_to": "`relax.sum` over the dimensions that differ, as the TVMScript reader writes it",
    "dist.call_tir_local_view": "`relax.call_tir` between `relax.dist.local_view` and `relax.dist.global_view`",
    "grad.end_checkpoint": _MARK,
    "grad.nll_loss_backward": "`relax.scatter_elements` of `relax.zeros_like` and `relax.negative`",
    "grad.no_grad": _MARK,
    "grad.start_checkpoint": _MARK,
    "grad.take_backward": '`relax.scatter_nd` of `relax.zeros_like`, with `reduction = "add"`',
    "hamming_window": "`relax.cosine_window`, of which Hamming, Hann and Blackman windows are cases",
    "hint_on_device": _PLACEMENT,
    "image.resize3d": "`relax.image.resize1d` along each axis",
    "inspect.tensor_byte_offset": _INSPECT,
    "inspect.tensor_dtype_bits": _INSPECT,
    "inspect.tensor_dtype_code": _INSPECT,
    "inspect.tensor_dtype_lanes": _INSPECT,
    "inspect.tensor_elem_offset": _INSPECT,
    "inspect.tensor_ndim": _INSPECT,
    "inspect.tensor_shape_i": "`relax.shape_get` of `relax.shape_of`",
    "inspect.tensor_stride_i": _INSPECT,
    "invoke_closure": "`relax.call_closure`",
    "invoke_pure_closure": "`relax.call_closure`; the closure's type says whether it is pure",
    "layout_transform": "`relax.layout_transform`, with layouts by name",
    "memory.alloc_storage": "`relax.alloc_storage`",
    "memory.alloc_tensor": "`relax.storage_tensor`",
    "memory.ensure_zero_offset": "- kernels take any offset",
    "memory.kill_storage": "`relax.kill`",
    "memory.kill_tensor": "`relax.kill`",
    "memory.view": "`relax.reshape`, or `relax.reinterpret`, which copies; other " + _VIEW,
    "meshgrid": "`relax.meshgrid`",
    "multinomial_from_uniform": "`relax.multinomial_from_uniform`",
    "nn.attention_var_len": "- packed sequences are an optimisation for GPUs; `relax.nn.attention_bias` has masks",
    "nn.cross_entropy_with_logits": _TRAINING,
    "nn.nll_loss": _TRAINING + "; inference of it is `relax.gather_elements` and `relax.mean`",
    "null_value": "`relax.null`",
    "reverse_sequence": "`relax.reverse_sequence`",
    "to_vdevice": _PLACEMENT,
    "vision.all_class_non_max_suppression": "`relax.vision.non_max_suppression`, which goes through all classes",
    "vision.multibox_transform_loc": "`relax.exp` and arithmetic, as the TVMScript reader writes it",
    "vision.non_max_suppression": "`relax.vision.box_nms`; `relax.vision.non_max_suppression` is ONNX's",
    "vision.roi_pool": "`relax.vision.roi_pool`",
    "vm.alloc_storage": "`vm.alloc_storage`",
    "vm.alloc_tensor": "`vm.alloc_tensor`",
    "vm.call_tir_dyn": "`relax.call_kernel` with sizes",
    "vm.kill_object": "`vm.kill`",
    "wrap_param": "`relax.constant` by reference, and `relax.astype`",
}
"""All others, without `relax.`."""

TVM = {f"relax.{name}": f"`relax.{name}`" for name in SAME} | {f"relax.{name}": text for name, text in OTHERS.items()}
"""What stands for each operator of TVM."""
