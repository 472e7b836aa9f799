"""Mutation testing: `python -m tests.fuzz.mutate_passes FILE [--tests PATH ...] [--count N] [--first SEED]`.

Plants small faults into a source file, one at a time: a comparison turned round, a condition dropped, a number off by
one, `and` for `or`. Runs the targeted tests against each in a process of its own and says which faults they let pass.
The file itself is never changed: the process compiles the mutated source in its place.
"""

from __future__ import annotations

import argparse
import ast
import random
import subprocess
import sys
from collections.abc import Iterator
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

_LOADER = """
import importlib.machinery, sys
path, number = {path!r}, {number}
sys.path.insert(0, {root!r})
from tests.fuzz.mutate_passes import mutants
source = open(path).read()
code = compile(mutants(source)[number][1], path, "exec")
plain = importlib.machinery.SourceFileLoader.get_code
def get_code(self, name):
    return code if self.path == path else plain(self, name)
importlib.machinery.SourceFileLoader.get_code = get_code
import pytest
sys.exit(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", *{tests!r}]))
"""


def mutants(source: str) -> list[tuple[str, ast.Module]]:
    """Every fault that can be planted, with its line in words, and the module that has it."""
    count = sum(1 for _ in _places(ast.parse(source)))
    made: list[tuple[str, ast.Module]] = []
    for number in range(count):
        tree = ast.parse(source)
        node, way = list(_places(tree))[number]
        before = ast.unparse(node)
        after = _plant(node, way)
        made.append((f"line {getattr(node, 'lineno', 0)}: {before} -> {after}", ast.fix_missing_locations(tree)))
    return made


def _places(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Where faults can be: in the code of functions, not in annotations or docstrings."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node in ast.walk(statement):
                    match node:
                        case ast.Compare(ops=[op]) if type(op) in _TURNED:
                            yield node, "turn"
                        case ast.BoolOp():
                            yield node, "swap"
                            yield node, "drop"
                        case ast.If():
                            yield node, "always"
                        case ast.Constant(value=int()) if not isinstance(node.value, bool):
                            yield node, "next"
                        case _:
                            continue


def _plant(node: ast.AST, way: str) -> str:
    """Changes a node in place; what it is then."""
    match node, way:
        case ast.Compare(), _:
            node.ops = [_TURNED[type(node.ops[0])]()]
        case ast.BoolOp(), "swap":
            node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        case ast.BoolOp(), _:
            node.values = node.values[:-1] if len(node.values) > 2 else [node.values[0], node.values[0]]
        case ast.If(), _:
            node.test = ast.Constant(True)
            return "if True"
        case ast.Constant(value=int() as value), _:
            node.value = value + 1
        case _:
            raise ValueError(f"no fault of the kind {way} for {type(node).__name__}")
    return ast.unparse(node)


def is_caught(path: Path, number: int, tests: list[str], limit: float) -> bool:
    """Whether a test fails, or the tests take too long, with a fault planted."""
    script = _LOADER.format(path=str(path), number=number, root=str(ROOT), tests=tests)
    try:
        done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def own_tests(path: Path) -> list[str]:
    """The tests of a source file: those of its folder in the tree of tests."""
    folder = ROOT / "tests" / path.relative_to(ROOT).parent
    while not list(folder.glob("test_*.py")):
        folder = folder.parent
    named = folder / f"test_{path.stem}.py"
    return [str(named if named.exists() else folder)]


def main() -> int:
    """The exit status: 0 if every fault is caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutate_passes", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="default: those of the file's folder")
    parser.add_argument("--count", type=int, default=20, metavar="N", help="how many faults, by chance")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for the tests, each time")
    args = parser.parse_args()
    path = args.file.resolve()
    tests = args.tests or own_tests(path)
    every = mutants(path.read_text())
    chosen = random.Random(args.first).sample(range(len(every)), min(args.count, len(every)))
    missed = [every[number][0] for number in chosen if not is_caught(path, number, tests, args.limit)]
    print(f"{len(chosen) - len(missed)} of {len(chosen)} faults are caught by {' '.join(tests)}", *missed, sep="\n  ")
    return min(1, len(missed))


if __name__ == "__main__":
    sys.exit(main())
