"""Weights of a module in a file beside its text: safetensors."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.builtin import TensorType as BuiltinTensorType

from relax_dialect.ops.values import ConstantOp
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import from_numpy
from tir_dialect.weights import Weight, WeightAttr
from vm_dialect.ops.constants import ConstantSymbolOp

if TYPE_CHECKING:
    from numpy.typing import NDArray


class WeightFileError(ValueError):
    """A file of weights cannot be read or written, or does not fit the module; the message says why."""


def save_weights(module: ModuleOp, path: str | Path) -> int:
    """Writes the weights that `module` names, and gives their number.

    Raises `WeightFileError` for a weight of which only the name is here.
    """
    import numpy as np

    library, arrays = _library(), dict[str, Any]()
    for op, weight in _weights(module):
        array = weight.array
        if array is None:
            raise WeightFileError(f"the elements of weight '{weight.name}' are not here; give them with --weights")
        if arrays.setdefault(weight.name, array) is not array:
            raise WeightFileError(f"expected one tensor of each name, got two of '{weight.name}' ('{op.name}' op)")
    try:
        library.numpy.save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    except (library.SafetensorError, OSError) as error:
        raise WeightFileError(f"cannot write weights to {path}: {error}") from error
    return len(arrays)


def load_weights(module: ModuleOp, path: str | Path) -> None:
    """Gives the weights that `module` names, and of which it has no elements, those of a file.

    Raises `WeightFileError` if the file cannot be read, lacks weights (all of them are named), or has one of another
    shape or dtype than the module declares.
    """
    library = _library()
    try:
        with library.safe_open(path, framework="np") as file:
            _attach(module, file, path)
    except (library.SafetensorError, OSError) as error:
        raise WeightFileError(f"cannot read weights from {path}: {error}") from error


def _library() -> Any:
    """safetensors, which nothing else of the compiler needs."""
    try:
        import_module("safetensors.numpy")
    except ModuleNotFoundError as error:
        advice = "pip install xdsl-relax[weights]"
        raise WeightFileError(f"files of weights need the package safetensors: {advice} ({error})") from error
    return import_module("safetensors")


def _attach(module: ModuleOp, file: Any, path: str | Path) -> None:
    wanted = [(op, weight.name) for op, weight in _weights(module) if weight.array is None]
    if missing := sorted({name for _, name in wanted}.difference(file.keys())):
        raise WeightFileError(f"{path} has no weight {', '.join(repr(name) for name in missing)}")
    arrays = {name: _read(file, name) for name in dict.fromkeys(name for _, name in wanted)}
    for op, name in wanted:
        _verify(op, name, arrays[name])
        op.properties["value"] = WeightAttr(name, arrays[name])


def _read(file: Any, name: str) -> NDArray[Any]:
    kind = file.get_slice(name).get_dtype()
    if kind.startswith(("F8", "F4")):
        raise WeightFileError(f"weight '{name}' has the dtype {kind}, which is not read from a file")
    array = file.get_tensor(name)
    array.flags.writeable = False
    return array


def _weights(module: ModuleOp) -> Iterator[tuple[ConstantOp | ConstantSymbolOp, Weight]]:
    for op in module.walk():
        if isinstance(op, ConstantOp | ConstantSymbolOp) and isinstance(op.value, WeightAttr):
            yield op, op.value.data


def _verify(op: ConstantOp | ConstantSymbolOp, name: str, array: NDArray[Any]) -> None:
    shape, dtype = array.shape, from_numpy(array.dtype)
    if isinstance(op, ConstantOp):
        declared, got = op.result.type, TensorType(shape, dtype, op.result.type.device)
    else:
        declared, got = op.tensor_type, BuiltinTensorType(dtype, shape)
    if declared != got:
        raise WeightFileError(f"weight '{name}' expected {declared}, got {got}")
