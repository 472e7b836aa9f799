"""Mutation testing: `python -m tests.fuzz.mutate_passes [FILE ...] [--tests PATH ...] [--count N] [--first SEED]`.

Plants small faults into source files, one at a time: a comparison turned round, a condition dropped, an analysis that
always says yes, a number off by one, another operator, the wrong operand. Runs the targeted tests, of pytest and of
FileCheck, against each in a process of its own, then those that are about the file otherwise, and says which faults
they let pass. Without files, those of `SUBJECTS`
are meant. A seed chooses the same faults each time: `--count 200 --skip 60` goes on after the first 60 of 200. The
files themselves are never changed: the process compiles the mutated source.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[2]

_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

_OTHER: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
}
_PAIRS = {"x": "y", "y": "x", "lhs": "rhs", "rhs": "lhs", "left": "right", "right": "left", "q": "k", "k": "v"}
"""Names of operands, and which is taken for each."""

_ASKED = ("is_", "may_", "has_", "_is_", "_may_", "_has_", "unchanged_", "only_", "leaves")
"""How the names of functions begin that answer yes or no."""

SUBJECTS = (
    "lowering/relax/*.py",
    "lowering/relax/fusion/*.py",
    "lowering/relax/functions/*.py",
    "lowering/relax/layout/*.py",
    "lowering/relax/memory/*.py",
    "lowering/relax/rewrites/*.py",
    "lowering/tir/*.py",
    "lowering/kernels/scan.py",
    "lowering/kernels/reduce/*.py",
    "lowering/kernels/row/*.py",
    "relax_dialect/analysis/*.py",
)
"""Passes and kernels."""

_LOADER = """
import importlib.machinery, sys
path, number = {path!r}, {number}
sys.path.insert(0, {root!r})
try:
    import lit.main
    import pytest
    from tests.fuzz.mutate_passes import mutant
    from xdsl_relax import testing
    in_a_fork = testing._pass_in_a_fork
except BaseException as error:
    print(error, file=sys.stderr)
    sys.exit({broken})
def pass_in_a_fork(pipes, test):
    # What fails in a fork would be tried again in a shell, which knows nothing of the fault.
    if not in_a_fork(pipes, test):
        raise AssertionError("failed with the fault")
    return True
testing._pass_in_a_fork = pass_in_a_fork
source = open(path).read()
code = compile(mutant(source, number)[1], path, "exec")
plain = importlib.machinery.SourceFileLoader.get_code
def get_code(self, name):
    return code if self.path == path else plain(self, name)
importlib.machinery.SourceFileLoader.get_code = get_code
tests = {tests!r}
of_filecheck = [test for test in tests if "filecheck" in test]
of_pytest = [test for test in tests if test not in of_filecheck]
if of_filecheck:
    try:
        sys.argv = ["lit", "-q", "-j1", *of_filecheck]
        lit.main.main()
    except SystemExit as end:
        if end.code:
            sys.exit(1)
if of_pytest:
    sys.exit(pytest.main(["-x", "-q", "-m", "not slow", "--no-header", "-p", "no:cacheprovider", *of_pytest]))
"""

_BROKEN = 70
"""The exit status of a process whose own tools fail, which says nothing about a fault."""


def mutants(source: str) -> list[tuple[str, ast.Module]]:
    """Every fault that can be planted, with its line in words, and the module that has it."""
    return [mutant(source, number) for number in range(sum(1 for _ in _places(ast.parse(source))))]


def mutant(source: str, number: int) -> tuple[str, ast.Module]:
    """One of these faults."""
    tree = ast.parse(source)
    node, way = next(islice(_places(tree), number, None))
    before = ast.unparse(node)
    after = _plant(node, way)
    return f"line {getattr(node, 'lineno', 0)}: {before} -> {after}", ast.fix_missing_locations(tree)


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Where faults can be: in the code of functions, not in annotations or docstrings."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node in ast.walk(statement):
                    yield from ((node, way) for way in _ways(node))


def _ways(node: ast.AST) -> tuple[str, ...]:
    """The faults that an expression or statement can have."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _TURNED:
            return ("turn",)
        case ast.BoolOp():
            return ("swap", "drop", "drop first")
        case ast.BinOp(op=op) if type(op) in _OTHER and not isinstance(node.left, ast.Constant):
            return ("other",)
        case ast.UnaryOp(op=ast.Not()):
            return ("not",)
        case ast.Attribute(attr=name) if name in _PAIRS:
            return ("operand",)
        case ast.Call(func=ast.Name(id=name)) if name.startswith(_ASKED):
            return ("yes", "no")
        case ast.If():
            return ("always",)
        case ast.Constant(value=int()) if not isinstance(node.value, bool):
            return ("next",)
        case _:
            return ()


def _plant(node: ast.AST, way: str) -> str:
    """Changes a node in place; what it is then."""
    match node, way:
        case ast.Compare(), _:
            node.ops = [_TURNED[type(node.ops[0])]()]
        case ast.BoolOp(), "swap":
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.BoolOp(), _:
            kept = node.values[1:] if way == "drop first" else node.values[:-1]
            node.values = kept if len(kept) > 1 else [*kept, *kept]
        case ast.BinOp(), _:
            node.op = _OTHER[type(node.op)]()
        case ast.UnaryOp(), _:
            node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), node.operand)
        case ast.Attribute(), _:
            node.attr = _PAIRS[node.attr]
        case ast.Call(), _:
            node.func, node.args, node.keywords = ast.Name("bool"), [ast.Constant(int(way == "yes"))], []
        case ast.If(), _:
            node.test = ast.Constant(True)
            return "if True"
        case ast.Constant(value=int() as value), _:
            node.value = value + 1
        case _:
            raise ValueError(f"no fault of the kind {way} for {type(node).__name__}")
    return ast.unparse(node)


def is_caught(path: Path, number: int, tests: list[str], limit: float) -> bool:
    """Whether a test fails, or the tests take too long, with a fault planted.

    Raises a `RuntimeError` where the tools of testing themselves cannot be loaded.
    """
    script = _LOADER.format(path=str(path), number=number, root=str(ROOT), tests=tests, broken=_BROKEN)
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            _, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            # Forks that a fault holds up are stopped, too.
            os.killpg(process.pid, signal.SIGKILL)
            return True
    if process.returncode == _BROKEN:
        raise RuntimeError(f"the tests were not run: {said.decode(errors='replace')}")
    return process.returncode != 0


def own_tests(path: Path) -> list[str]:
    """The tests of a source file: those of its name, or else of its folder in the trees of tests."""
    inner = Path(*(part for part in path.relative_to(ROOT).parts if part != "cpu"))
    found = [
        ROOT / "tests" / "filecheck" / inner.with_suffix(".mlir"),
        ROOT / "tests" / inner.parent / f"test_{path.stem}.py",
    ]
    named = [str(test) for test in found if test.exists()]
    if named:
        return named
    folder = ROOT / "tests" / inner.parent
    while not list(folder.glob("test_*.py")):
        folder = folder.parent
    checked = ROOT / "tests" / "filecheck" / inner.parent
    return [str(folder), *([str(checked)] if checked != folder and checked.exists() else [])]


_NAMES = re.compile(r'^    name = "([a-z0-9-]+)"$|\.attach\("([\w.]+)"', re.MULTILINE)
"""How a source says the passes that it has, and the ops whose interfaces it implements."""

MOST_RELATED = 12
"""So many tests that have names of a file are run against a fault that the own ones let pass."""

LONGER = 4
"""They have so many times as long."""


def related_tests(path: Path) -> list[str]:
    """Other tests that are about a source file: those of its folder; those that import it, or have a pass or an op of
    it in their text, first those that have most of the names; and those of kernels for a kernel, as each is part of
    others.
    """
    own = [Path(test) for test in own_tests(path)]
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    names = {module, *(each for found in _NAMES.findall(path.read_text()) for each in found if each)}
    is_kernel = module.startswith("lowering.kernels.")
    folders = [ROOT / "tests" / tree / path.relative_to(ROOT).parent for tree in ("", "filecheck")]
    found: list[tuple[int, int, str]] = []
    for test in [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "tests" / "filecheck").rglob("*.mlir")]:
        if any(test == each or each in test.parents for each in own):
            continue
        text = test.read_text()
        if test.parent in folders or (is_kernel and "lowering/kernels" in str(test)):
            found.append((0, len(text), str(test)))
        elif count := sum(name in text for name in names):
            found.append((-count, len(text), str(test)))
    near = [test for count, _, test in sorted(found) if count == 0]
    return near + [test for count, _, test in sorted(found) if count < 0][:MOST_RELATED]


def chosen(files: list[Path], count: int, seed: int) -> list[tuple[Path, int]]:
    """Some of the faults that can be planted into files."""
    every = [(path, number) for path in files for number in range(sum(1 for _ in _places(ast.parse(path.read_text()))))]
    return random.Random(seed).sample(every, min(count, len(every)))


def main() -> int:
    """The exit status: 0 if every fault is caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutate_passes", description=__doc__)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="default: passes and kernels")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="default: those of each file")
    parser.add_argument("--count", type=int, default=20, metavar="N", help="how many faults, by chance")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="how many of them were tried before")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for the tests, each time")
    args = parser.parse_args()
    files = [path.resolve() for path in args.files] or sorted(path for each in SUBJECTS for path in ROOT.glob(each))
    faults, missed = chosen(files, args.count, args.first)[args.skip :], 0
    for tried, (path, number) in enumerate(faults):
        if tried and tried % 10 == 0:
            print(f"{tried - missed} of {tried} so far", file=sys.stderr, flush=True)
        groups = [args.tests] if args.tests else [own_tests(path), related_tests(path)]
        limits = (args.limit, LONGER * args.limit)
        if not any(is_caught(path, number, *each) for each in zip(groups, limits, strict=False) if each[0]):
            missed += 1
            print(f"{path.relative_to(ROOT)} {number}: {mutant(path.read_text(), number)[0]}", flush=True)
    print(f"{len(faults) - missed} of {len(faults)} faults are caught")
    return min(1, missed)


if __name__ == "__main__":
    sys.exit(main())
