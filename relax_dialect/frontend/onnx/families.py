"""The modules of converters with the operators that they import; one is loaded when a model has an operator of it."""

from __future__ import annotations

from collections.abc import Mapping

from relax_dialect.frontend.onnx.domains import MICROSOFT

STANDARD: Mapping[str, str] = {
    "activation": """
        Relu LeakyRelu PRelu Elu Celu Selu ThresholdedRelu HardSigmoid HardSwish Softplus Softsign Mish Swish
        Gelu Shrink Softmax LogSoftmax Hardmax
    """,
    "attention": "Attention",
    "binary": """
        Add And BitwiseAnd BitwiseOr BitwiseXor Div Greater GreaterOrEqual Less LessOrEqual Mul Or Sub Xor Equal
        Max Min Sum Mean Mod Pow BitShift Where Clip
    """,
    "control_flow": "If Loop Scan",
    "contrib.normalization": "SimplifiedLayerNormalization",
    "convolution": "Conv ConvTranspose",
    "creation": "Constant ConstantOfShape EyeLike Range OneHot Trilu",
    "datatype": "Cast CastLike",
    "gather": "Gather GatherElements GatherND Scatter ScatterElements ScatterND Compress ReverseSequence TensorScatter",
    "image": "Resize Upsample GridSample AffineGrid",
    "indexing": "Slice",
    "joining": "Concat Split Tile",
    "layers": "Dropout DepthToSpace SpaceToDepth",
    "linear_algebra": "MatMul Gemm Einsum Det",
    "manipulation": "Shape Size Reshape Flatten Transpose Squeeze Unsqueeze Expand",
    "normalization": "BatchNormalization InstanceNormalization LayerNormalization LpNormalization LRN",
    "padding": "Pad",
    "pooling": "MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool GlobalLpPool MaxUnpool",
    "quantization": "QuantizeLinear DequantizeLinear MatMulInteger ConvInteger QLinearMatMul QLinearConv",
    "random": "Bernoulli RandomUniform RandomUniformLike RandomNormal RandomNormalLike Multinomial",
    "recurrent": "RNN GRU LSTM",
    "reduction": """
        ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum
        ReduceSumSquare CumSum CumProd
    """,
    "search": "ArgMax ArgMin",
    "sequence": """
        SequenceEmpty SequenceConstruct SequenceLength SequenceAt SequenceInsert SequenceErase SplitToSequence
        ConcatFromSequence Optional OptionalGetElement OptionalHasElement
    """,
    "set": "NonZero Unique",
    "signal": "DFT STFT MelWeightMatrix TfIdfVectorizer",
    "sorting": "TopK",
    "unary": """
        Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceil Cos Cosh Erf Exp Floor IsNaN Log Neg Not Reciprocal
        Round Sigmoid Sign Sin Sinh Sqrt Tan Tanh Identity IsInf BitCast
    """,
    "vision": "NonMaxSuppression RoiAlign DeformConv Col2Im",
}
"""Operators of the standard's domain."""

CONTRIB: Mapping[str, str] = {
    "contrib.activation": "Gelu BiasGelu FastGelu QuickGelu BiasSplitGelu BiasAdd",
    "contrib.attention": "Attention MultiHeadAttention",
    "contrib.cached_attention": "GroupQueryAttention",
    "contrib.convolution": "FusedConv NhwcConv NhwcFusedConv NhwcMaxPool",
    "contrib.embedding": "EmbedLayerNormalization RelativePositionBias",
    "contrib.integer": "MatMulIntegerToFloat MatMulInteger16 DynamicQuantizeMatMul QGemm MulInteger QAttention",
    "contrib.normalization": "SkipLayerNormalization SkipSimplifiedLayerNormalization SimplifiedLayerNormalization",
    "contrib.products": "FusedMatMul TransposeMatMul FusedMatMulActivation FusedGemm GemmFastGelu",
    "contrib.quantized": """
        QLinearAdd QLinearMul QLinearSigmoid QLinearLeakyRelu QLinearSoftmax QLinearWhere QLinearConcat
        QLinearReduceMean QLinearAveragePool QLinearGlobalAveragePool QLinearConv
    """,
    "contrib.recurrent": "DynamicQuantizeLSTM",
    "contrib.rotary": "RotaryEmbedding",
    "contrib.standard": """
        DequantizeLinear GatherND GridSample Pad QuantizeLinear Range Trilu ExpandDims ComplexMul ComplexMulConj
        CDist
    """,
    "contrib.weights": "MatMulNBits MatMulBnb4 GatherBlockQuantized",
}
"""Operators that ONNX Runtime adds."""

FAMILIES: Mapping[str, Mapping[str, str]] = {"": STANDARD, MICROSOFT: CONTRIB}
"""By domain."""
