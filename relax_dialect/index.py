"""The modules of `relax_dialect.ops`, with the names of their ops. A program loads the modules of its ops.

Generated from the classes of ops by `make docs`. Modules of the same stem, but where a table names others, say what the
ops mean (`interpreter/frame.py`) and, of operators, which kernels they become (`lowering/relax_to_tir/kernel.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

OPERATORS: Mapping[str, str] = {
    "activation": """
        nn.relu nn.gelu nn.gelu_tanh nn.silu nn.selu nn.leakyrelu nn.softplus nn.prelu clip nn.softmax
        nn.log_softmax
    """,
    "binary": """
        add atan2 bitwise_and bitwise_or bitwise_xor divide equal floor_divide floor_mod greater greater_equal
        left_shift less less_equal log_add_exp logical_and logical_or logical_xor maximum minimum mod multiply
        not_equal power right_shift subtract ewise_fma
    """,
    "collective": """
        ccl.start ccl.allreduce ccl.allgather ccl.reduce_scatter ccl.all_to_all ccl.broadcast_from_worker0
        ccl.scatter_from_worker0 ccl.send ccl.receive
    """,
    "convolution": """
        nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose nn.deform_conv2d
        nn.col2im
    """,
    "creation": """
        full full_like zeros ones zeros_like ones_like arange tril triu eye eye_like cosine_window random.uniform
        random.normal
    """,
    "datatype": "astype reinterpret quantize dequantize dequantize_blocks",
    "distributed": """
        dist.annotate_sharding dist.redistribute dist.local_view dist.global_view dist.redistribute_replica_to_shard
    """,
    "gather": """
        gather_elements gather_nd scatter_elements scatter_nd one_hot index_tensor index_put slice_scatter
    """,
    "image": "image.resize2d image.resize1d image.grid_sample image.affine_grid",
    "indexing": "take strided_slice dynamic_strided_slice",
    "joining": "concat split stack repeat tile",
    "linear_algebra": "matmul outer einsum nn.attention nn.attention_bias",
    "manipulation": """
        reshape flatten permute_dims expand_dims squeeze broadcast_to flip nn.dropout nn.batch_flatten
        nn.pixel_shuffle
    """,
    "normalization": "nn.layer_norm nn.rms_norm nn.group_norm nn.instance_norm nn.batch_norm",
    "pooling": """
        nn.max_pool1d nn.max_pool2d nn.max_pool3d nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d nn.adaptive_avg_pool1d
        nn.adaptive_avg_pool2d nn.adaptive_avg_pool3d grad.max_pool2d_backward grad.avg_pool2d_backward
    """,
    "rearranging": """
        reverse_sequence meshgrid layout_transform multinomial_from_uniform nn.pad map_indices
    """,
    "recurrent": "nn.rnn nn.gru nn.lstm nn.recurrence nn.quantized_recurrence",
    "reduction": "sum prod max min mean variance std median cumsum cumprod",
    "sorting": "sort argsort topk where argmax argmin bucketize unique nonzero",
    "unary": """
        abs acos acosh asin asinh atan atanh bitwise_not ceil cos cosh erf exp floor isfinite isinf isnan log
        logical_not negative reciprocal round rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc
    """,
    "vision": """
        vision.non_max_suppression vision.roi_align vision.roi_pool vision.get_valid_counts vision.box_nms
    """,
}

OTHER_OPS: Mapping[str, str] = {
    "binding": "match_cast check_args guard",
    "call_tir": "call_tir call_tir_inplace call_packed call_pure_packed call_dps_packed",
    "calls": "call call_closure make_closure extern_func",
    "control_flow": "if yield while for",
    "dataflow": "dataflow output fused",
    "effects": "assert print",
    "memory": "alloc_tensor alloc_storage storage_tensor call_kernel check_apart kill",
    "shapes": "shape shape_of shape_get tensor_to_shape shape_to_tensor size tuple tuple_get",
    "structure": "func closure return",
    "values": "constant prim string dtype null",
}
