"""The index of converters, `relax_dialect/frontend/index.py`: collected from what they register."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pkgutil import walk_packages
from textwrap import wrap

from relax_dialect.frontend import onnx, torch
from relax_dialect.frontend.onnx.node import CONVERTERS as ONNX_CONVERTERS
from relax_dialect.frontend.torch.node import CONVERTERS as TORCH_CONVERTERS

HEAD = '''"""The modules of converters, with their operators; one is loaded when a model has an operator of it.

Generated from what the modules register by `make docs`.
"""

from __future__ import annotations

from collections.abc import Mapping

'''


def onnx_converters() -> dict[str, list[str]]:
    """The operators of ONNX by module: `Relu`, `com.microsoft.Gelu`."""
    _load_all("relax_dialect.frontend.onnx", onnx.__path__)
    return _by_module({name: {each.__module__ for each in v.values()} for name, v in ONNX_CONVERTERS.loaded().items()})


def torch_converters() -> dict[str, list[str]]:
    """The operators of PyTorch by module: `aten.add.Tensor`."""
    _load_all("relax_dialect.frontend.torch", torch.__path__)
    return _by_module({name: {each.__module__} for name, each in TORCH_CONVERTERS.loaded().items()})


def _load_all(package: str, path: Iterable[str]) -> None:
    for module in walk_packages(path, f"{package}."):
        import_module(module.name)


def _by_module(modules: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """Names by module below the frontend; `ValueError` for a name with converters in several modules."""
    found: dict[str, list[str]] = {}
    for name, where in sorted(modules.items()):
        (module,) = where
        found.setdefault(module.split(".", 3)[3], []).append(name)
    return dict(sorted(found.items()))


def converter_index() -> str:
    """The text of `relax_dialect/frontend/index.py`."""
    return formatted(f"{HEAD}{table('ONNX', onnx_converters())}\n\n{table('TORCH', torch_converters())}\n")


def formatted(text: str) -> str:
    """The text of a module, formatted as all others."""
    command = [sys.executable, "-m", "ruff", "format", "--line-length", "120", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def table(name: str, modules: Mapping[str, list[str]]) -> str:
    """The definition of an index: names by module."""
    rows = "".join(f"    {module!r}: {_names(names)},\n" for module, names in modules.items())
    return f"{name}: Mapping[str, str] = {{\n{rows}}}"


def _names(names: list[str]) -> str:
    """Names in one line, or in several."""
    text = " ".join(names)
    if len(text) <= 80:
        return repr(text)
    lines = wrap(text, 108, break_long_words=False, break_on_hyphens=False)
    return '"""\n' + "".join(f"        {line}\n" for line in lines) + '    """'
