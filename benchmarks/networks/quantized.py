"""Networks of bytes, as ONNX Runtime's quantiser makes them of those of `f32`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onnx import ModelProto


def with_dynamic_scales(make: Callable[[], ModelProto], operators: Sequence[str] | None = None) -> ModelProto:
    """Weights of bytes; data are quantised while the program runs. Of all operators, or of some."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        source, target = (Path(folder, name) for name in ("source.onnx", "target.onnx"))
        onnx.save(make(), source)
        quantize_dynamic(source, target, weight_type=QuantType.QInt8, op_types_to_quantize=operators)
        return onnx.load(target)


def with_known_scales(make: Callable[[], ModelProto], shape: Sequence[int]) -> ModelProto:
    """Data and weights of bytes, these with a scale for each filter; quantised by operators before and after others."""
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Images(CalibrationDataReader):
        """Two random inputs."""

        def __init__(self) -> None:
            rng = np.random.default_rng(7)
            self.left = [{"x": rng.standard_normal(shape, dtype=np.float32)} for _ in range(2)]

        def get_next(self) -> dict[str, np.ndarray] | None:
            """The next one, if there is one."""
            return self.left.pop() if self.left else None

    with tempfile.TemporaryDirectory() as folder:
        source, folded, target = (str(Path(folder, f"{name}.onnx")) for name in ("source", "folded", "target"))
        onnx.save(make(), source)
        quant_pre_process(source, folded, skip_symbolic_shape=True)
        quantize_static(
            folded,
            target,
            Images(),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return onnx.load(target)
