"""What every op, type, attribute, pass and file of ours has, required of each."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest
from xdsl.ir import Attribute, Operation, TypeAttribute
from xdsl.traits import MemoryEffect

from lowering.registry import DIALECTS, PASSES, load_dialect, load_pass
from relax_dialect.external import VERIFIERS as relax_verifiers
from tests.support.rules import each
from tir_dialect.ops.effects import VERIFIERS as tir_verifiers

ROOT = Path(__file__).parents[1]
FILECHECK = ROOT / "tests" / "filecheck"
PACKAGES = ("xdsl_relax", "relax_dialect", "tir_dialect", "vm_dialect", "lowering", "tools")
MAX_FILE_LINES = 600
MAX_TEST_LINES = 600
MAX_FUNCTION_LINES = 60

OPS = [op for name in DIALECTS for op in load_dialect(name).operations]
ATTRIBUTES = [attribute for name in DIALECTS for attribute in load_dialect(name).attributes]
SOURCES = sorted(path.relative_to(ROOT) for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted(path.relative_to(ROOT) for path in (ROOT / "tests").rglob("*.py"))

EXTERNAL_VERIFIERS = (relax_verifiers, tir_verifiers)
each_op = each(OPS, lambda op: op.name)
each_attribute = each(ATTRIBUTES, lambda attribute: attribute.name)
each_pass = each(PASSES)
each_source = each(SOURCES)


@cache
def _lit_files(folder: str) -> dict[Path, str]:
    return {path: path.read_text() for path in (FILECHECK / folder).rglob("*.mlir")}


def _folder(op: type[Operation]) -> str:
    """Where the lit tests of an op are: beside the source, in the tree of tests."""
    package, _, rest = op.__module__.partition(".")
    return f"lowering/{rest.partition('.')[0]}" if package == "lowering" else package


def _constraints(cls: type[Operation]) -> list[str]:
    """The labels of the constraints in the docstring of the class itself: `C1`, `C2`, ..."""
    return re.findall(r"^ *(C\d+): ", cls.__dict__["__doc__"] or "", flags=re.MULTILINE)


def _classes(op: type[Operation]) -> list[type[Operation]]:
    """The class and the families that it belongs to."""
    return [cls for cls in op.__mro__ if issubclass(cls, Operation) and _is_ours(cls)]


def _is_ours(subject: type | FunctionType) -> bool:
    return subject.__module__.partition(".")[0] in PACKAGES


def _label(cls: type[Operation]) -> str:
    """The name of the op, or of the class if it is a family."""
    return cls.__dict__.get("name", cls.__qualname__)


def _bare(op: type[Operation]) -> str:
    return op.name.partition(".")[2].replace(".", "_")


CLASSES = list(dict.fromkeys(cls for op in OPS for cls in _classes(op)))
CONSTRAINTS = [(cls, label) for cls in CLASSES for label in _constraints(cls)]
each_class = each(CLASSES, _label)
each_constraint = each(CONSTRAINTS, lambda pair: f"{_label(pair[0])} {pair[1]}")


@each_op
def test_op_class_name(op: type[Operation]):
    assert op.__name__.endswith("Op")


@each_op
def test_op_docstring_has_an_example(op: type[Operation]):
    assert op.__dict__["__doc__"], "no docstring"
    docs = "\n".join(cls.__dict__["__doc__"] or "" for cls in _classes(op))
    examples = re.findall(r"```mlir\n(.*?)```|`([^`]*)`", docs, flags=re.DOTALL)
    dialect = f"{op.dialect_name()}."
    assert any(dialect in example for pair in examples for example in pair), "no example, here or in the family"


@each_op
def test_op_effects_are_declared(op: type[Operation]):
    assert any(isinstance(trait, MemoryEffect) for trait in op.traits), "neither Pure nor a memory effect"


@each_op
def test_op_round_trips(op: type[Operation]):
    shown = re.compile(rf"(?<![\w.]){re.escape(op.name)}(?![\w.])")
    for text in _lit_files(_folder(op)).values():
        if "RUN: RELAX_ROUNDTRIP" in text and "RUN: RELAX_GENERIC_ROUNDTRIP" in text and shown.search(text):
            return
    pytest.fail(f"no round-trip test in tests/filecheck/{_folder(op)} shows {op.name}")


@each_class
def test_constraints_are_numbered(cls: type[Operation]):
    labels = _constraints(cls)
    assert labels == [f"C{number + 1}" for number in range(len(labels))]


@each_constraint
def test_constraint_is_raised(cls: type[Operation], label: str):
    comment = re.compile(rf"#.*\b{label}\b")
    assert any(comment.search(line) for source in _verifier_sources(cls) for line in source.splitlines()), (
        f"no line says # {label}"
    )


def _verifier_sources(cls: type[Operation]) -> Iterator[str]:
    """The source of the class, its bases, traits and external verifier, and what they call of ours, at two removes."""
    traits = cls.traits if hasattr(cls, "traits") else ()
    classes = [*cls.__mro__, *(type(trait) for trait in traits)]
    todo: list[tuple[object, int]] = [(each, 0) for each in classes if _is_ours(each)]
    name = cls.__dict__.get("name", "")
    todo += [(models.of(name), 0) for models in EXTERNAL_VERIFIERS if name in models.names()]
    seen: set[object] = set()
    while todo:
        subject, depth = todo.pop()
        if subject in seen:
            continue
        seen.add(subject)
        assert isinstance(subject, type | FunctionType)
        source = _source(subject)
        yield source
        if depth < 2:
            scope = vars(sys.modules[subject.__module__]) | _local_imports(source)
            called = [scope.get(name) for name in re.findall(r"\b(\w+)\(", source)]
            todo += [(each, depth + 1) for each in called if isinstance(each, FunctionType) and _is_ours(each)]


_source = cache(inspect.getsource)
"""Finding a class reads its whole file."""


def _local_imports(source: str) -> dict[str, object]:
    """What the imports inside of a function or class bind."""
    return {
        name: getattr(import_module(module), name)
        for module, names in re.findall(r"^ +from (\S+) import (.*)$", source, flags=re.MULTILINE)
        for name in names.split(", ")
    }


@each_constraint
def test_constraint_has_a_test(cls: type[Operation], label: str):
    """One of the ops of a family stands for all."""
    members = [op for op in OPS if issubclass(op, cls)]
    folder = _folder(members[0])
    names = "|".join(_bare(op) for op in members)
    pattern = re.compile(rf"@(?:{names})_{label.lower()}(?!\d)")
    assert any(pattern.search(text) for text in _lit_files(folder).values()), (
        f"no test in tests/filecheck/{folder} is called @<op>_{label.lower()}"
    )


@each_attribute
def test_attribute_class_name(attribute: type[Attribute]):
    assert attribute.__name__.endswith("Type" if issubclass(attribute, TypeAttribute) else "Attr")


@each_attribute
def test_attribute_docstring(attribute: type[Attribute]):
    assert attribute.__doc__, "no docstring"
    assert attribute.name.partition(".")[2] in attribute.__doc__ or "`" in attribute.__doc__, "no example of its text"


@each_pass
def test_pass_is_called_as_it_is_registered(name: str):
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name), "not kebab-case"
    cls = load_pass(name)
    assert cls.name == name
    assert cls.__name__.endswith("Pass")


@each_pass
def test_pass_docstring_shows_ir(name: str):
    assert "```mlir" in (inspect.getdoc(load_pass(name)) or ""), "the docstring shows no IR"


@each_pass
def test_pass_has_a_lit_test(name: str):
    pipeline = re.compile(rf"-p [\"']?(?:[^\"'\n]*,)?{re.escape(name)}(?![\w-])")
    assert any(pipeline.search(text) for text in _lit_files("lowering").values()), f"no lit test runs {name}"


def test_each_pass_is_registered_once():
    assert len(set(PASSES.values())) == len(PASSES)


@each([*SOURCES, *TESTS])
def test_file_is_short(path: Path):
    lines = len((ROOT / path).read_text().splitlines())
    most = MAX_TEST_LINES if path.parts[0] == "tests" else MAX_FILE_LINES
    assert lines <= most, f"{lines} lines; split it"


@each_source
def test_functions_are_short(path: Path):
    for function in _functions(path):
        text = ast.get_docstring(function, clean=False)
        described = 0 if text is None else text.count("\n") + 1
        lines = (function.end_lineno or function.lineno) - function.lineno + 1 - described
        assert lines <= MAX_FUNCTION_LINES, f"{path}:{function.lineno}: {function.name} has {lines} lines"


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@each_source
def test_nothing_is_left_for_later(path: Path):
    for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
        assert not re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line), f"{path}:{number}: {line.strip()}"
        assert "# type: ignore" not in line, f"{path}:{number}: type checks are not switched off"
        assert "# pyright:" not in line, f"{path}:{number}: type checks are not switched off"
