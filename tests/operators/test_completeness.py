"""What every operator has, required of each; and that none of TVM's was forgotten."""

import re
import runpy
from functools import cache
from pathlib import Path

from lowering.relax_to_tir.kernel import KERNELS, REWRITES
from relax_dialect.index import OPERATORS as OPERATOR_FAMILIES
from relax_dialect.interpreter.frame import RULES
from relax_dialect.loading import FAMILIES, family_ops
from relax_dialect.ops.operator import Operator
from relax_dialect.traits import AliasesOperand
from tests.operators.erasure import LEVELS
from tests.support.rules import each

ROOT = Path(__file__).parents[2]
OPERATORS = [op for family in OPERATOR_FAMILIES for op in family_ops(family) if issubclass(op, Operator)]
"""What has kernels; the operators on shapes become instructions of the machine (`tests/lowering`)."""

each_operator = each(OPERATORS, lambda op: op.name)


@cache
def _tvm() -> dict[str, str]:
    return runpy.run_path(str(ROOT / "docs" / "generate" / "tvm_operators.py"))["TVM"]


@cache
def _values_tests() -> str:
    return "\n".join(path.read_text() for path in (ROOT / "tests" / "operators").glob("test_*.py"))


@each_operator
def test_operator_has_semantics(op: type[Operator]):
    assert RULES[op] is not None, "the interpreter does not know it"


@each_operator
def test_operator_has_a_kernel(op: type[Operator]):
    """Or becomes other operators, or is a view of memory, which needs none."""
    rules = KERNELS[op], REWRITES[op]
    assert any(rules) or any(isinstance(trait, AliasesOperand) for trait in op.traits)


@each_operator
def test_operator_has_a_test_of_values(op: type[Operator]):
    """A test in `tests/operators`, which runs all modes, says its name, whole or put together."""
    module = op.__module__.rpartition(".")[2]
    own = ROOT / "tests" / "operators" / f"test_{module}.py"
    assert own.exists(), f"no {own.name}"
    bare = op.name.removeprefix("relax.")
    stem = re.sub(r"(\d)d", r"{rank}d", bare)
    last = bare.rpartition(".")[2]
    found = f"relax.{bare}" in _values_tests() or stem in _values_tests() or f'"{last}"' in own.read_text()
    parts = [part for part in re.split(r"[._]|\dd", last) if part]
    assert found or all(part in own.read_text() for part in parts), f"no test of {op.name} in {own.name}"


def test_every_file_runs_at_every_level_of_knowledge():
    """Sizes known, symbols, only ranks, nothing: what a file's `PROGRAMS` hold is asked at all of them."""
    files = {op.__module__.rpartition(".")[2] for op in OPERATORS}
    without = [name for name in files if "\nPROGRAMS = Programs(" not in _file(name)]
    assert not without
    assert set(LEVELS) == {"known", "written", "sharded", "ranked", "typed", "unknown"}


def _file(family: str) -> str:
    return (ROOT / "tests" / "operators" / f"test_{family}.py").read_text()


@each_operator
def test_operator_infers_and_says_what_it_demands(op: type[Operator]):
    docs = "\n".join(cls.__doc__ or "" for cls in op.__mro__ if issubclass(cls, Operator))
    assert "infer" in {name for cls in op.__mro__ for name in vars(cls)}
    assert op.get_irdl_definition().results, "no results"
    assert re.search(r"^ *C1: ", docs, re.M) or op.name in WITHOUT_CONSTRAINTS, "no constraints"


WITHOUT_CONSTRAINTS = {
    "relax.ccl.broadcast_from_worker0",
    "relax.eye",
    "relax.flatten",
    "relax.nonzero",
    "relax.ones",
    "relax.ones_like",
    "relax.zeros",
    "relax.zeros_like",
}
"""Operators that take every tensor or shape."""


def test_every_operator_of_tvm_has_an_answer():
    """0.27 registers 230; what is said to stand for one exists."""
    table = _tvm()
    assert len(table) == 230
    names = {op.name for family in FAMILIES for op in family_ops(family)}
    for tvm, text in table.items():
        assert text.startswith("- ") or text.startswith("`"), f"{tvm}: {text}"
        for name in re.findall(r"`(relax\.[\w.]+)`", text):
            assert name in names, f"{tvm} names {name}, which is no op"
    assert sum(text.startswith("- ") for text in table.values()) < 40
