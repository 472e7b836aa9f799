"""The image models that the onnx package carries, with their published outputs."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from lowering import build
from relax_dialect.frontend.onnx import import_model
from vm_dialect import VirtualMachine

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
FAST = {("squeezenet", False), ("shufflenet", True)}
NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
MODELS = [
    pytest.param(name, dynamic, marks=() if (name, dynamic) in FAST else pytest.mark.slow)
    for name in NAMES
    for dynamic in (False, True)
]


def image(model: onnx.ModelProto) -> np.ndarray:
    """What the published output is for: numbers from 0 to 1 in the shape of the input."""
    weights = {each.name for each in model.graph.initializer}
    (given,) = [each for each in model.graph.input if each.name not in weights]
    shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    size = int(np.prod(shape))
    return (np.arange(size).reshape(shape) / size).astype(np.float32)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("name", "dynamic"), MODELS)
def test_published_output(name: str, dynamic: bool):
    path = FOLDER / f"light_{name}.onnx"
    main = VirtualMachine(build(import_model(path, dynamic=dynamic)))["main"]
    (expected,) = (
        numpy_helper.to_array(onnx.load_tensor(str(each))) for each in FOLDER.glob(f"light_{name}_output_*.pb")
    )
    result = main(image(onnx.load(path)))
    result = result if hasattr(result, "shape") else result[0]
    np.testing.assert_allclose(np.from_dlpack(result), expected, rtol=1e-3, atol=1e-6)
