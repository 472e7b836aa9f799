"""What a folder of Hugging Face holds: a configuration, and tensors by name in one or several files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vm_dialect.files import open_regular, read_limited

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_JSON = 1 << 26
"""The bytes of a configuration or an index of tensors."""


class HuggingFaceImportError(ValueError):
    """The folder is damaged, or has something that is not supported; the message says what, and where."""


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """A configuration and tensors."""

    path: Path
    config: Mapping[str, Any]
    tensors: Mapping[str, NDArray[Any]]

    def error(self, message: str) -> HuggingFaceImportError:
        """What is wrong in this folder."""
        return HuggingFaceImportError(f"{self.path}: {message}")

    def integer(self, key: str, otherwise: int | None = None, least: int = 1, most: int = 1 << 31) -> int:
        """An integer of the configuration between two limits; `HuggingFaceImportError` if it is none."""
        value = self.config.get(key)
        value = otherwise if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.error(f"'{key}' of config.json expected an integer from {least} to {most}, got {value!r}")
        return value

    def number(self, key: str, otherwise: float | None = None) -> float:
        """A number of the configuration; `HuggingFaceImportError` if it is none."""
        return number(self, self.config, key, otherwise)

    def optional(self, key: str) -> float | None:
        """A number of the configuration, if it is there."""
        return None if self.config.get(key) is None else self.number(key)

    def flag(self, key: str, otherwise: bool = False) -> bool:
        """Whether something is so; `HuggingFaceImportError` if that is not said by a truth value."""
        value = self.config.get(key, otherwise)
        if not isinstance(value, bool):
            raise self.error(f"'{key}' of config.json expected true or false, got {value!r}")
        return value

    def text(self, key: str, otherwise: str | None = None) -> str:
        """A text of the configuration; `HuggingFaceImportError` if it is none."""
        value = self.config.get(key, otherwise)
        if not isinstance(value, str):
            raise self.error(f"'{key}' of config.json expected a text, got {value!r}")
        return value

    def table(self, key: str) -> Mapping[str, Any]:
        """A table of the configuration, empty if there is none; `HuggingFaceImportError` for anything else."""
        value = self.config.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(f"'{key}' of config.json expected a table, got {value!r}")
        return cast("Mapping[str, Any]", value)

    def values(self, key: str, count: int) -> Sequence[Any] | None:
        """So many values of the configuration, if they are there; `HuggingFaceImportError` for anything else."""
        value: Any = self.config.get(key)
        if value is None:
            return None
        found = cast("list[Any]", value) if isinstance(value, list) else []
        if len(found) != count:
            raise self.error(f"'{key}' of config.json expected {count} values, got {value!r}")
        return found


def number(folder: ModelFolder, table: Mapping[str, Any], key: str, otherwise: float | None = None) -> float:
    """A number of a table of the configuration; `HuggingFaceImportError` if it is none."""
    value = table.get(key)
    value = otherwise if value is None else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise folder.error(f"'{key}' of config.json expected a number, got {value!r}")
    return value


def positive(folder: ModelFolder, table: Mapping[str, Any], key: str, otherwise: float | None = None) -> float:
    """A positive number of a table of the configuration; `HuggingFaceImportError` if it is none."""
    value = number(folder, table, key, otherwise)
    if value <= 0:
        raise folder.error(f"'{key}' of config.json expected a positive number, got {value}")
    return value


def read_folder(path: str | PathLike[str]) -> ModelFolder:
    """Reads a folder with `config.json` and safetensors; `HuggingFaceImportError` if it is damaged."""
    folder = Path(path)
    tensors: dict[str, NDArray[Any]] = {}
    for file in _weight_files(folder):
        for name, array in _tensors(file).items():
            if name in tensors:
                raise HuggingFaceImportError(f"{file}: the tensor '{name}' is in two files")
            tensors[name] = array
    return ModelFolder(folder, read_json(folder / "config.json"), tensors)


def read_json(path: Path) -> Mapping[str, Any]:
    """The table in a JSON file; `HuggingFaceImportError` if there is none."""
    try:
        with open_regular(path) as file:
            text = read_limited(file, LARGEST_JSON)
        if len(text) > LARGEST_JSON:
            raise HuggingFaceImportError(f"{path}: expected at most {LARGEST_JSON} bytes")
        found: Any = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise HuggingFaceImportError(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise HuggingFaceImportError(f"{path}: expected a table, got {type(found).__name__}")
    return cast("Mapping[str, Any]", found)


def _weight_files(folder: Path) -> list[Path]:
    """The files of weights: those of an index, or the only one. Names of an index stay in the folder."""
    index = folder / "model.safetensors.index.json"
    if not index.exists():
        return [folder / "model.safetensors"]
    names: Any = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise HuggingFaceImportError(f"{index}: expected a table 'weight_map'")
    files = sorted({str(name) for name in cast("Mapping[str, Any]", names).values()})
    for name in files:
        if Path(name).name != name:
            raise HuggingFaceImportError(f"{index}: expected names of files in the folder, got {name!r}")
    return [folder / name for name in files]


def _tensors(path: Path) -> Mapping[str, NDArray[Any]]:
    try:
        import_module("safetensors.numpy")
        library: Any = import_module("safetensors")
    except ModuleNotFoundError as error:
        advice = "pip install xdsl-relax[weights]"
        raise HuggingFaceImportError(f"{path} needs the package safetensors: {advice} ({error})") from error
    try:
        open_regular(path).close()
        with library.safe_open(path, framework="np") as file:
            names: list[str] = file.keys()
            found: dict[str, NDArray[Any]] = {name: file.get_tensor(name) for name in names}
    except (library.SafetensorError, OSError, TypeError, ValueError) as error:
        raise HuggingFaceImportError(f"cannot read {path}: {error}") from error
    for array in found.values():
        array.flags.writeable = False
    return found
