"""Imports point one way, and what is not needed is not loaded."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from relax_dialect import external
from tests.support.rules import each
from tir_dialect.extensions import ExternalModels
from tir_dialect.ops.effects import VERIFIERS

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "vm_dialect": set[str](),
    "tir_dialect": {"vm_dialect"},
    "relax_dialect": {"tir_dialect", "vm_dialect"},
    "lowering": {"relax_dialect", "tir_dialect", "vm_dialect"},
    "xdsl_relax": {"lowering", "relax_dialect", "tir_dialect", "vm_dialect"},
    "tools": {"xdsl_relax"},
}
"""What each package may import of the others; `xdsl_relax -> lowering -> relax_dialect -> tir_dialect -> vm_dialect`.

The dialects share no ops: their interpreters call packed functions by the rules of the virtual machine."""

EXTERNAL_MODELS = (VERIFIERS, external.VERIFIERS, external.IMPURITY, external.EFFECTS, external.PATTERNS)

FILES = sorted(path.relative_to(ROOT) for package in ALLOWED for path in (ROOT / package).rglob("*.py"))


def _imports(path: Path) -> Iterator[tuple[str, str | None]]:
    """The modules that a file imports, also inside of functions, with the name that it takes out of each."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import in full"
            yield from ((node.module or "", alias.name) for alias in node.names)


@each(FILES)
def test_imports_point_one_way(path: Path):
    package = path.parts[0]
    foreign = {name.partition(".")[0] for name, _ in _imports(path)} & ALLOWED.keys() - {package}
    assert foreign <= ALLOWED[package], f"{package} must not import {', '.join(sorted(foreign - ALLOWED[package]))}"


@cache
def _graph() -> dict[Path, set[Path]]:
    """Which file imports which; what the face of a package hands on is imported from where the face has it."""
    modules = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
    faces = {
        name: {taken: module for module, taken in _imports(path) if taken}
        for name, path in modules.items()
        if path.name == "__init__.py"
    }

    def source(module: str, name: str | None) -> Path | None:
        inner = f"{module}.{name}"
        if inner in modules:
            return None if inner in faces else modules[inner]
        if module in faces:
            origin = faces[module].get(name or "")
            return None if origin is None else source(origin, name)
        return modules.get(module)

    files = [path for path in modules.values() if path.name != "__init__.py"]
    found = {path: {source(*imported) for imported in _imports(path)} - {path, None} for path in files}
    return {path: {each for each in sources if each is not None} for path, sources in found.items()}


def _reachable(graph: dict[Path, set[Path]], start: Path) -> set[Path]:
    found, pending = set[Path](), [start]
    while pending:
        new = graph[pending.pop()] - found
        found |= new
        pending += new
    return found


def _knots(graph: dict[Path, set[Path]]) -> list[set[Path]]:
    """The strongly connected components of several files."""
    reachable = {path: _reachable(graph, path) for path in graph}
    together = {path: {other for other in reachable[path] if path in reachable[other]} for path in graph}
    return [set(files) for files in {frozenset(files) for files in together.values()} if len(files) > 1]


def test_no_import_knots():
    """Files import one way, late and type-only imports included, so that each can be read after those that it imports;
    what is needed mutually is one file, a method that a subclass has, or an external model."""
    tied = [", ".join(sorted(map(str, knot))) for knot in _knots(_graph())]
    assert not tied, f"expected no files that import each other, got {'; '.join(tied)}"


def _entries(graph: dict[Path, set[Path]], folder: Path) -> dict[Path, set[Path]]:
    """Which files, and folders with all that is in them, right in a folder import which others."""
    found = dict[Path, set[Path]]()
    for path, sources in graph.items():
        if folder in path.parents:
            own = folder / path.relative_to(folder).parts[0]
            others = {folder / each.relative_to(folder).parts[0] for each in sources if folder in each.parents}
            found.setdefault(own, set()).update(others - {own})
    return found


@each(sorted({folder for path in FILES for folder in path.parents}))
def test_folders_import_one_way(folder: Path):
    """So that a folder, too, can be read after those that it imports. What two folders share is in one that both
    import."""
    tied = [", ".join(sorted(map(str, knot))) for knot in _knots(_entries(_graph(), folder))]
    assert not tied, f"expected no files and folders that import each other, got {'; '.join(tied)}"


@each([models for models in EXTERNAL_MODELS], lambda models: ", ".join(models.names()))
def test_external_models_are_where_the_index_says(models: ExternalModels[Any]):
    for name in models.names():
        assert callable(models.of(name))


def _loaded_by(statement: str) -> set[str]:
    """The modules in memory after a fresh interpreter has run `statement`."""
    script = f"{statement}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(result.stdout.split())


@pytest.mark.parametrize("package", ALLOWED)
def test_importing_a_package_loads_nothing_else(package: str):
    """But the lazy names of the lowest one, which loads nothing itself."""
    own = _loaded_by(f"import {package}") - {"vm_dialect.lazy_names"}
    assert not own & {"xdsl", "numpy", "llvmlite", "tvm_ffi", *ALLOWED} - {package, "vm_dialect"}
    assert not {name for name in own if name.startswith("vm_dialect.")}


def test_dimensions_are_plain_python():
    assert not _loaded_by("import tir_dialect.dims") & {"xdsl", "numpy"}


def test_the_virtual_machine_needs_no_compiler():
    assert not _loaded_by("from vm_dialect import VirtualMachine, Executable") & {
        "xdsl",
        "llvmlite",
        "relax_dialect",
        "lowering",
    }


def test_the_universe_is_a_list_of_names():
    dialects = {f"{package}.dialect" for package in ALLOWED}
    assert not _loaded_by("import xdsl_relax.universe") & {"numpy", "llvmlite", "tvm_ffi", *dialects}


def test_an_onnx_model_is_loaded_without_the_values_of_the_machine():
    """These are objects of tvm-ffi, which imports PyTorch where it is installed."""
    model = "h.make_model(h.make_graph([h.make_node('Relu', ['x'], ['y'])], 'g', [x], [y]))"
    values = "x, y = (h.make_tensor_value_info(each, 1, ['n', 4]) for each in 'xy')"
    load = f"import xdsl_relax, onnx.helper as h; {values}; xdsl_relax.load({model})"
    assert not _loaded_by(load) & {"tvm_ffi", "torch"}


def test_the_driver_starts_without_numerics():
    loaded = _loaded_by("import xdsl_relax.cli.relax_opt")
    assert not loaded & {"numpy", "llvmlite", "tvm_ffi", "vm_dialect.machine", "lowering.pipelines"}


def test_the_worker_process_loads_what_makes_kernels():
    """No graphs, no executables, no arrays: it would take longer than most kernels until it is there."""
    target = "from tir_dialect.target import Target"
    loaded = _loaded_by(f"from lowering.compiler.kernel_maker import load; {target}; load(Target.host())")
    assert {"lowering.kernels.compute_bound", "lowering.kernels.memory_bound", "llvmlite"} <= loaded
    assert not loaded & {"numpy", "tvm_ffi", "importlib.metadata", "relax_dialect.ops.operator", "tir_dialect.te"}
    assert "vm_dialect.executable.executable" not in loaded
