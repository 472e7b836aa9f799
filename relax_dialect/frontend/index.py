"""The modules of converters, with their operators; one is loaded when a model has an operator of it.

Generated from what the modules register by `make docs`.
"""

from __future__ import annotations

from collections.abc import Mapping

ONNX: Mapping[str, str] = {
    "contrib.attention": """
        CausalConvWithState LinearAttention com.microsoft.Attention com.microsoft.CausalConvWithState
        com.microsoft.LinearAttention com.microsoft.LinearAttentionGate com.microsoft.MRotaryEmbedding
        com.microsoft.MultiHeadAttention com.microsoft.RotaryEmbedding
    """,
    "contrib.caches": """
        com.microsoft.DecoderMaskedMultiHeadAttention com.microsoft.GroupQueryAttention
        com.microsoft.NGramRepeatBlock com.microsoft.SparseAttention
    """,
    "contrib.experts": "com.microsoft.MoE com.microsoft.MoEGroupRouter com.microsoft.QMoE",
    "contrib.fused": """
        com.microsoft.BiasAdd com.microsoft.BiasGelu com.microsoft.BiasSplitGelu com.microsoft.CDist
        com.microsoft.ComplexMul com.microsoft.ComplexMulConj com.microsoft.DequantizeLinear
        com.microsoft.ExpandDims com.microsoft.FastGelu com.microsoft.FusedConv com.microsoft.FusedGemm
        com.microsoft.FusedMatMul com.microsoft.FusedMatMulActivation com.microsoft.GatedAdd com.microsoft.GatherND
        com.microsoft.Gelu com.microsoft.GemmFastGelu com.microsoft.GridSample com.microsoft.Inverse
        com.microsoft.NhwcConv com.microsoft.NhwcFusedConv com.microsoft.NhwcMaxPool com.microsoft.Pad
        com.microsoft.QuantizeLinear com.microsoft.QuickGelu com.microsoft.Range com.microsoft.ScaledSiLU
        com.microsoft.TransposeMatMul com.microsoft.Trilu com.microsoft.Unique
    """,
    "contrib.layers": """
        SimplifiedLayerNormalization com.microsoft.BiasDropout com.microsoft.BiasSoftmax
        com.microsoft.BranchwiseRMSNorm com.microsoft.ConvTransposeWithDynamicPads com.microsoft.CropAndResize
        com.microsoft.EmbedLayerNormalization com.microsoft.EngramGate com.microsoft.GatedDeltaNet
        com.microsoft.GatedRMSNorm com.microsoft.GemmaRotaryEmbedding com.microsoft.GroupNorm
        com.microsoft.HyperConnectionPostMix com.microsoft.HyperConnectionPreMix com.microsoft.IsAllFinite
        com.microsoft.QEmbedLayerNormalization com.microsoft.RelativePositionBias com.microsoft.SampleOp
        com.microsoft.SimplifiedLayerNormalization com.microsoft.SkipGroupNorm com.microsoft.SkipLayerNormalization
        com.microsoft.SkipSimplifiedLayerNormalization com.microsoft.TorchEmbedding com.microsoft.UnfoldTensor
    """,
    "contrib.quantized": """
        com.microsoft.DynamicQuantizeLSTM com.microsoft.DynamicQuantizeMatMul com.microsoft.GatherBlockQuantized
        com.microsoft.MatMulBnb4 com.microsoft.MatMulInteger16 com.microsoft.MatMulIntegerToFloat
        com.microsoft.MatMulNBits com.microsoft.MulInteger com.microsoft.QAttention com.microsoft.QGemm
        com.microsoft.QLinearAdd com.microsoft.QLinearAveragePool com.microsoft.QLinearConcat
        com.microsoft.QLinearConv com.microsoft.QLinearGlobalAveragePool com.microsoft.QLinearLeakyRelu
        com.microsoft.QLinearMul com.microsoft.QLinearReduceMean com.microsoft.QLinearSigmoid
        com.microsoft.QLinearSoftmax com.microsoft.QLinearWhere
    """,
    "control_flow": "If Loop Scan",
    "convolution": "Conv ConvTranspose",
    "creation": """
        Bernoulli Constant ConstantOfShape EyeLike Multinomial OneHot RandomNormal RandomNormalLike RandomUniform
        RandomUniformLike Range Trilu
    """,
    "elementwise": """
        Abs Acos Acosh Add And Asin Asinh Atan Atanh BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor
        Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish
        Hardmax Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log LogSoftmax Max Mean Min Mish Mod Mul Neg Not Or
        PRelu Pow Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softmax Softplus Softsign Sqrt Sub Sum
        Swish Tan Tanh ThresholdedRelu Where Xor
    """,
    "gather": """
        Compress Gather GatherElements GatherND ReverseSequence Scatter ScatterElements ScatterND Slice
        TensorScatter
    """,
    "image": "AffineGrid GridSample Resize Upsample",
    "layers": """
        BatchNormalization DepthToSpace Dropout GRU InstanceNormalization LRN LSTM LayerNormalization
        LpNormalization MeanVarianceNormalization RNN SpaceToDepth
    """,
    "linear_algebra": "Attention Det Einsum Gemm MatMul",
    "manipulation": """
        Concat Expand Flatten Pad Reshape Shape Size Split Squeeze Tile Transpose Unsqueeze
    """,
    "ml_linear": """
        ai.onnx.ml.ArrayFeatureExtractor ai.onnx.ml.Binarizer ai.onnx.ml.CategoryMapper ai.onnx.ml.FeatureVectorizer
        ai.onnx.ml.Imputer ai.onnx.ml.LabelEncoder ai.onnx.ml.LinearClassifier ai.onnx.ml.LinearRegressor
        ai.onnx.ml.Normalizer ai.onnx.ml.OneHotEncoder ai.onnx.ml.SVMClassifier ai.onnx.ml.SVMRegressor
        ai.onnx.ml.Scaler ai.onnx.ml.ZipMap
    """,
    "ml_trees": """
        ai.onnx.ml.TreeEnsemble ai.onnx.ml.TreeEnsembleClassifier ai.onnx.ml.TreeEnsembleRegressor
    """,
    "quantization": """
        Cast CastLike ConvInteger DequantizeLinear MatMulInteger QLinearConv QLinearMatMul QuantizeLinear
    """,
    "reduction": """
        ArgMax ArgMin CumProd CumSum NonZero ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean
        ReduceMin ReduceProd ReduceSum ReduceSumSquare TopK Unique
    """,
    "sequence": """
        ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty
        SequenceErase SequenceInsert SequenceLength SplitToSequence
    """,
    "signal": "DFT MelWeightMatrix STFT TfIdfVectorizer",
    "strings": "RegexFullMatch StringConcat StringNormalizer StringSplit com.microsoft.Tokenizer",
    "training": """
        Affine Crop ImageScaler ParametricSoftplus Scale ScaledTanh ai.onnx.preview.training.Adagrad
        ai.onnx.preview.training.Adam ai.onnx.preview.training.Momentum
    """,
    "vision": "Col2Im DeformConv MaxRoiPool NonMaxSuppression RoiAlign",
    "windows": """
        AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxUnpool
    """,
}

TORCH: Mapping[str, str] = {
    "bessel": """
        aten.erfinv.default aten.special_airy_ai.default aten.special_bessel_j0.default
        aten.special_bessel_j1.default aten.special_bessel_y0.default aten.special_bessel_y1.default
        aten.special_modified_bessel_k0.default aten.special_modified_bessel_k1.default aten.special_ndtri.default
        aten.special_scaled_modified_bessel_k0.default aten.special_scaled_modified_bessel_k1.default
        aten.special_spherical_bessel_j0.default
    """,
    "binary": """
        aten.__and__.Scalar aten.__and__.Tensor aten.__lshift__.Scalar aten.__lshift__.Tensor aten.__or__.Scalar
        aten.__or__.Tensor aten.__rshift__.Scalar aten.__rshift__.Tensor aten.__xor__.Scalar aten.__xor__.Tensor
        aten.add.Scalar aten.add.Tensor aten.arctan2.default aten.atan2.default aten.bitwise_and.Scalar
        aten.bitwise_and.Scalar_Tensor aten.bitwise_and.Tensor aten.bitwise_left_shift.Scalar_Tensor
        aten.bitwise_left_shift.Tensor aten.bitwise_left_shift.Tensor_Scalar aten.bitwise_or.Scalar
        aten.bitwise_or.Scalar_Tensor aten.bitwise_or.Tensor aten.bitwise_right_shift.Scalar_Tensor
        aten.bitwise_right_shift.Tensor aten.bitwise_right_shift.Tensor_Scalar aten.bitwise_xor.Scalar
        aten.bitwise_xor.Scalar_Tensor aten.bitwise_xor.Tensor aten.copysign.Scalar aten.copysign.Tensor
        aten.div.Scalar aten.div.Scalar_mode aten.div.Tensor aten.div.Tensor_mode aten.divide.Scalar
        aten.divide.Tensor aten.eq.Scalar aten.eq.Tensor aten.floor_divide.Scalar aten.floor_divide.default
        aten.fmax.default aten.fmin.default aten.fmod.Scalar aten.fmod.Tensor aten.ge.Scalar aten.ge.Tensor
        aten.gt.Scalar aten.gt.Tensor aten.hypot.default aten.ldexp.Tensor aten.le.Scalar aten.le.Tensor
        aten.logaddexp.default aten.logical_and.default aten.logical_or.default aten.logical_xor.default
        aten.lt.Scalar aten.lt.Tensor aten.max.other aten.maximum.default aten.min.other aten.minimum.default
        aten.mul.Scalar aten.mul.Tensor aten.ne.Scalar aten.ne.Tensor aten.nextafter.default aten.pow.Scalar
        aten.pow.Tensor_Scalar aten.pow.Tensor_Tensor aten.remainder.Scalar aten.remainder.Scalar_Tensor
        aten.remainder.Tensor aten.rsub.Scalar aten.rsub.Tensor aten.sub.Scalar aten.sub.Tensor aten.subtract.Scalar
        aten.subtract.Tensor aten.true_divide.Scalar aten.true_divide.Tensor
    """,
    "control_flow": """
        torch.ops.higher_order.associative_scan torch.ops.higher_order.cond torch.ops.higher_order.map_impl
        torch.ops.higher_order.scan torch.ops.higher_order.while_loop torch.ops.higher_order.with_effects
        torch.ops.higher_order.wrap_with_set_grad_enabled
    """,
    "convolution": """
        aten._adaptive_avg_pool2d.default aten._adaptive_avg_pool2d_backward.default
        aten._adaptive_avg_pool3d.default aten._adaptive_avg_pool3d_backward.default
        aten.adaptive_avg_pool1d.default aten.adaptive_avg_pool2d.default aten.adaptive_avg_pool3d.default
        aten.adaptive_max_pool1d.default aten.adaptive_max_pool2d.default aten.adaptive_max_pool2d_backward.default
        aten.adaptive_max_pool3d.default aten.adaptive_max_pool3d_backward.default aten.avg_pool1d.default
        aten.avg_pool2d.default aten.avg_pool2d_backward.default aten.avg_pool3d.default
        aten.avg_pool3d_backward.default aten.conv1d.default aten.conv1d.padding aten.conv2d.default
        aten.conv2d.padding aten.conv3d.default aten.conv3d.padding aten.conv_transpose1d.default
        aten.conv_transpose2d.input aten.conv_transpose3d.input aten.convolution.default
        aten.fractional_max_pool2d.default aten.fractional_max_pool3d.default aten.max_pool1d.default
        aten.max_pool2d.default aten.max_pool2d_with_indices.default aten.max_pool2d_with_indices_backward.default
        aten.max_pool3d.default aten.max_pool3d_with_indices.default aten.max_pool3d_with_indices_backward.default
        aten.max_unpool2d.default aten.max_unpool3d.default
    """,
    "creation": """
        aten.arange.default aten.arange.start aten.arange.start_step aten.bernoulli.Tensor aten.bernoulli.default
        aten.bernoulli.p aten.blackman_window.default aten.blackman_window.periodic aten.cauchy.default
        aten.empty.memory_format aten.empty_like.default aten.empty_permuted.default aten.empty_strided.default
        aten.exponential.default aten.eye.default aten.eye.m aten.fft_fftfreq.default aten.fft_rfftfreq.default
        aten.fill.Scalar aten.fill.Tensor aten.full.default aten.full_like.default aten.geometric.default
        aten.hamming_window.default aten.hamming_window.periodic aten.hamming_window.periodic_alpha
        aten.hamming_window.periodic_alpha_beta aten.hann_window.default aten.hann_window.periodic
        aten.linspace.default aten.log_normal.default aten.multinomial.default aten.native_dropout.default
        aten.new_empty.default aten.new_empty_strided.default aten.new_full.default aten.new_ones.default
        aten.new_zeros.default aten.normal.Tensor_Tensor aten.normal.Tensor_float aten.normal.float_Tensor
        aten.normal.float_float aten.normal_functional.default aten.one_hot.default aten.ones.default
        aten.ones_like.default aten.rand.default aten.rand_like.default aten.randint.default aten.randint.low
        aten.randint_like.default aten.randint_like.low_dtype aten.randn.default aten.randn_like.default
        aten.randperm.default aten.rrelu_with_noise_functional.default aten.tril.default aten.tril_indices.default
        aten.triu.default aten.triu_indices.default aten.uniform.default aten.zero.default aten.zeros.default
        aten.zeros_like.default
    """,
    "datatype": """
        aten._assert_async.default aten._assert_async.msg aten._assert_scalar.default
        aten._assert_tensor_metadata.default aten._local_scalar_dense.default aten._to_copy.default
        aten.alias.default aten.clone.default aten.contiguous.default aten.copy.default aten.detach.default
        aten.detach_copy.default aten.item.default aten.lift.default aten.lift_fresh_copy.default
        aten.positive.default aten.scalar_tensor.default aten.sym_constrain_range.default
        aten.sym_constrain_range_for_size.default aten.to.device aten.to.dtype aten.to.dtype_layout aten.to.other
        aten.type_as.default prims.convert_element_type.default quantized_decomposed.choose_qparams.tensor
        quantized_decomposed.choose_qparams_symmetric.tensor quantized_decomposed.dequantize_per_channel.default
        quantized_decomposed.dequantize_per_tensor.default quantized_decomposed.dequantize_per_tensor.tensor
        quantized_decomposed.dequantize_per_token.default quantized_decomposed.quantize_per_channel.default
        quantized_decomposed.quantize_per_tensor.default quantized_decomposed.quantize_per_tensor.tensor
        quantized_decomposed.quantize_per_token.default
    """,
    "decompositions": """
        aten._linalg_det.default aten._linalg_eigh.default aten._linalg_slogdet.default
        aten._linalg_solve_ex.default aten._linalg_svd.default aten.cholesky.default aten.cholesky_inverse.default
        aten.cholesky_solve.default aten.geqrf.default aten.linalg_cholesky_ex.default
        aten.linalg_householder_product.default aten.linalg_inv_ex.default aten.linalg_lu.default
        aten.linalg_lu_factor_ex.default aten.linalg_lu_solve.default aten.linalg_matrix_exp.default
        aten.linalg_matrix_sqrth.default aten.linalg_pinv.atol_rtol_tensor aten.linalg_polar.default
        aten.linalg_qr.default aten.linalg_solve_triangular.default aten.lu_unpack.default aten.ormqr.default
        aten.triangular_solve.default
    """,
    "gather": """
        aten._unsafe_index.Tensor aten._unsafe_index_put.default aten.diagonal_scatter.default
        aten.embedding_renorm.default aten.gather.default aten.index.Tensor aten.index_add.default
        aten.index_copy.default aten.index_fill.int_Scalar aten.index_put.default aten.index_reduce.default
        aten.masked_scatter.default aten.put.default aten.scatter.reduce aten.scatter.src aten.scatter.value
        aten.scatter.value_reduce aten.scatter_add.default aten.scatter_reduce.two aten.segment_reduce.default
        aten.select_scatter.default aten.slice_scatter.default
    """,
    "gradients": "aten.convolution_backward.default",
    "image": """
        aten._upsample_bicubic2d_aa.default aten._upsample_bicubic2d_aa.vec aten._upsample_bilinear2d_aa.default
        aten._upsample_bilinear2d_aa.vec aten._upsample_nearest_exact1d.default aten._upsample_nearest_exact1d.vec
        aten._upsample_nearest_exact2d.default aten._upsample_nearest_exact2d.vec
        aten._upsample_nearest_exact3d.default aten._upsample_nearest_exact3d.vec aten.affine_grid_generator.default
        aten.grid_sampler.default aten.grid_sampler_2d.default aten.grid_sampler_3d.default
        aten.upsample_bicubic2d.default aten.upsample_bicubic2d.vec aten.upsample_bilinear2d.default
        aten.upsample_bilinear2d.vec aten.upsample_linear1d.default aten.upsample_linear1d.vec
        aten.upsample_nearest1d.default aten.upsample_nearest1d.vec aten.upsample_nearest2d.default
        aten.upsample_nearest2d.vec aten.upsample_nearest3d.default aten.upsample_nearest3d.vec
        aten.upsample_trilinear3d.default aten.upsample_trilinear3d.vec torchvision.deform_conv2d.default
        torchvision.nms.default torchvision.roi_align.default torchvision.roi_pool.default
    """,
    "layers": """
        aten._embedding_bag.default aten._embedding_bag_forward_only.default aten._native_batch_norm_legit.no_stats
        aten._native_batch_norm_legit_functional.default aten._native_batch_norm_legit_no_training.default
        aten.channel_shuffle.default aten.embedding.default aten.group_norm.default aten.gru.input
        aten.instance_norm.default aten.layer_norm.default aten.lstm.input aten.native_group_norm.default
        aten.native_layer_norm.default aten.pixel_shuffle.default aten.pixel_unshuffle.default aten.rms_norm.default
        aten.rnn_relu.input aten.rnn_tanh.input xdsl_relax.gru.default xdsl_relax.lstm.default
        xdsl_relax.rnn_relu.default xdsl_relax.rnn_tanh.default
    """,
    "linear_algebra": """
        aten._cdist_forward.default aten._grouped_mm.default aten._int_mm.default aten._pdist_forward.default
        aten._scaled_dot_product_flash_attention_for_cpu.default
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default aten.addbmm.default aten.addmm.default
        aten.addmv.default aten.baddbmm.default aten.bilinear.default aten.bmm.default aten.diagonal.default
        aten.diagonal_copy.default aten.dot.default aten.einsum.default aten.ger.default aten.linalg_matmul.default
        aten.linear.default aten.matmul.default aten.mm.default aten.mv.default aten.outer.default
        aten.scaled_dot_product_attention.default aten.vdot.default torch.ops.higher_order.flex_attention
        transformers.grouped_mm_fallback.default
    """,
    "manipulation": """
        aten._reshape_copy.default aten._unsafe_view.default aten.as_strided.default aten.as_strided_copy.default
        aten.as_strided_scatter.default aten.broadcast_to.default aten.cat.default aten.chunk.default
        aten.concat.default aten.concatenate.default aten.constant_pad_nd.default aten.expand.default
        aten.expand_as.default aten.expand_copy.default aten.flatten.using_ints aten.flip.default
        aten.fliplr.default aten.flipud.default aten.index_select.default aten.mT.default aten.meshgrid.default
        aten.meshgrid.indexing aten.movedim.int aten.movedim.intlist aten.narrow.default aten.narrow_copy.default
        aten.numpy_T.default aten.pad.default aten.permute.default aten.permute_copy.default
        aten.reflection_pad1d.default aten.reflection_pad2d.default aten.reflection_pad3d.default
        aten.repeat.default aten.repeat_interleave.Tensor aten.repeat_interleave.self_int
        aten.replication_pad1d.default aten.replication_pad2d.default aten.replication_pad3d.default
        aten.reshape.default aten.reshape_as.default aten.resize.default aten.roll.default aten.select.int
        aten.select_copy.int aten.slice.Tensor aten.slice_copy.Tensor aten.split.Tensor aten.split.sizes
        aten.split_copy.Tensor aten.split_with_sizes.default aten.split_with_sizes_copy.default aten.squeeze.default
        aten.squeeze.dim aten.squeeze.dims aten.squeeze_copy.default aten.squeeze_copy.dim aten.squeeze_copy.dims
        aten.stack.default aten.swapaxes.default aten.swapdims.default aten.t.default aten.t_copy.default
        aten.take.default aten.tensor_split.indices aten.tensor_split.sections aten.tile.default aten.transpose.int
        aten.transpose_copy.int aten.unbind.int aten.unbind_copy.int aten.unflatten.int aten.unfold.default
        aten.unfold_copy.default aten.unsqueeze.default aten.unsqueeze_copy.default aten.view.default
        aten.view_as.default aten.view_copy.default
    """,
    "reduction": """
        aten._is_all_true.default aten._is_any_true.default aten.all.default aten.all.dim aten.all.dims
        aten.amax.default aten.amin.default aten.any.default aten.any.dim aten.any.dims aten.cummax.default
        aten.cummin.default aten.cumprod.default aten.cumsum.default aten.dist.default
        aten.linalg_vector_norm.default aten.logcumsumexp.default aten.logsumexp.default aten.max.default
        aten.max.dim aten.mean.default aten.mean.dim aten.min.default aten.min.dim aten.norm.Scalar
        aten.norm.ScalarOpt_dim aten.prod.default aten.prod.dim_int aten.std.correction aten.std.default
        aten.std.dim aten.std_mean.correction aten.sum.default aten.sum.dim_IntList aten.var.correction
        aten.var.default aten.var.dim aten.var_mean.correction
    """,
    "search": """
        aten._histogramdd_bin_edges.default aten._histogramdd_from_bin_cts.default
        aten._histogramdd_from_bin_tensors.default aten._unique2.default aten.argmax.default aten.argmin.default
        aten.argsort.default aten.argsort.stable aten.bincount.default aten.bucketize.Scalar aten.bucketize.Tensor
        aten.histc.default aten.histogram.bin_ct aten.histogram.bins_tensor aten.isin.Tensor_Tensor
        aten.kthvalue.default aten.masked_select.default aten.median.default aten.median.dim aten.mode.default
        aten.msort.default aten.nanmedian.default aten.nanmedian.dim aten.nonzero.default
        aten.nonzero_static.default aten.searchsorted.Scalar aten.searchsorted.Tensor aten.sort.default
        aten.sort.stable aten.topk.default aten.unique_consecutive.default aten.unique_dim.default
    """,
    "special": """
        aten.digamma.default aten.frexp.Tensor aten.gcd.default aten.i0.default aten.igamma.default
        aten.igammac.default aten.lcm.default aten.lgamma.default aten.polygamma.default
        aten.special_chebyshev_polynomial_t.default aten.special_chebyshev_polynomial_t.n_scalar
        aten.special_chebyshev_polynomial_t.x_scalar aten.special_chebyshev_polynomial_u.default
        aten.special_chebyshev_polynomial_u.n_scalar aten.special_chebyshev_polynomial_u.x_scalar
        aten.special_chebyshev_polynomial_v.default aten.special_chebyshev_polynomial_v.n_scalar
        aten.special_chebyshev_polynomial_v.x_scalar aten.special_chebyshev_polynomial_w.default
        aten.special_chebyshev_polynomial_w.n_scalar aten.special_chebyshev_polynomial_w.x_scalar
        aten.special_erfcx.default aten.special_hermite_polynomial_h.default
        aten.special_hermite_polynomial_h.n_scalar aten.special_hermite_polynomial_h.x_scalar
        aten.special_hermite_polynomial_he.default aten.special_hermite_polynomial_he.n_scalar
        aten.special_hermite_polynomial_he.x_scalar aten.special_i0e.default aten.special_i1.default
        aten.special_i1e.default aten.special_laguerre_polynomial_l.default
        aten.special_laguerre_polynomial_l.n_scalar aten.special_laguerre_polynomial_l.x_scalar
        aten.special_legendre_polynomial_p.default aten.special_legendre_polynomial_p.n_scalar
        aten.special_legendre_polynomial_p.x_scalar aten.special_modified_bessel_i0.default
        aten.special_modified_bessel_i1.default aten.special_shifted_chebyshev_polynomial_t.default
        aten.special_shifted_chebyshev_polynomial_t.n_scalar aten.special_shifted_chebyshev_polynomial_t.x_scalar
        aten.special_shifted_chebyshev_polynomial_u.default aten.special_shifted_chebyshev_polynomial_u.n_scalar
        aten.special_shifted_chebyshev_polynomial_u.x_scalar aten.special_shifted_chebyshev_polynomial_v.default
        aten.special_shifted_chebyshev_polynomial_v.n_scalar aten.special_shifted_chebyshev_polynomial_v.x_scalar
        aten.special_shifted_chebyshev_polynomial_w.default aten.special_shifted_chebyshev_polynomial_w.n_scalar
        aten.special_shifted_chebyshev_polynomial_w.x_scalar aten.special_zeta.default
        aten.special_zeta.other_scalar aten.special_zeta.self_scalar
    """,
    "unary": """
        aten._log_softmax.default aten._prelu_kernel.default aten._safe_softmax.default aten._softmax.default
        aten.abs.default aten.acos.default aten.acosh.default aten.addcdiv.default aten.addcmul.default
        aten.angle.default aten.asin.default aten.asinh.default aten.atan.default aten.atanh.default
        aten.bitwise_not.default aten.ceil.default aten.celu.default aten.clamp.Tensor aten.clamp.default
        aten.clamp_max.Tensor aten.clamp_max.default aten.clamp_min.Tensor aten.clamp_min.default aten.clip.Tensor
        aten.clip.default aten.cos.default aten.cosh.default aten.deg2rad.default aten.elu.default aten.erf.default
        aten.erfc.default aten.exp.default aten.exp2.default aten.expm1.default aten.fix.default aten.floor.default
        aten.frac.default aten.gelu.default aten.glu.default aten.hardshrink.default aten.hardsigmoid.default
        aten.hardswish.default aten.hardtanh.default aten.isfinite.default aten.isinf.default aten.isnan.default
        aten.leaky_relu.default aten.lerp.Scalar aten.lerp.Tensor aten.log.default aten.log10.default
        aten.log1p.default aten.log2.default aten.log_sigmoid.default aten.log_softmax.int aten.logical_not.default
        aten.masked_fill.Scalar aten.masked_fill.Tensor aten.mish.default aten.neg.default aten.prelu.default
        aten.rad2deg.default aten.reciprocal.default aten.relu.default aten.relu6.default aten.round.decimals
        aten.round.default aten.rsqrt.default aten.selu.default aten.sgn.default aten.sigmoid.default
        aten.sign.default aten.signbit.default aten.silu.default aten.sin.default aten.sinc.default
        aten.sinh.default aten.softmax.int aten.softplus.default aten.softshrink.default aten.sqrt.default
        aten.square.default aten.tan.default aten.tanh.default aten.threshold.default aten.trunc.default
        aten.where.Scalar aten.where.ScalarOther aten.where.ScalarSelf aten.where.self
    """,
}
