"""Families are loaded when an op of theirs is met; the names of their ops are those of the classes."""

import subprocess
import sys
from pathlib import Path

import pytest

from relax_dialect.index import OPERATORS
from relax_dialect.loading import FAMILIES, VALUES, OpClasses, family_ops
from relax_dialect.ops.operator import Operator
from tests.support.rules import each

ROOT = Path(__file__).parents[2]


@each(FAMILIES)
def test_a_family_has_the_ops_that_are_named(family: str):
    """In the order of their definition, which is that of the pages."""
    assert FAMILIES[family].split() == [op.name.removeprefix("relax.") for op in family_ops(family)]


@each(OPERATORS)
def test_operators_compute_on_tensors(family: str):
    assert all(issubclass(op, Operator) for op in family_ops(family))


def test_every_file_of_ops_is_a_family_or_part_of_some():
    stems = {path.stem for path in (ROOT / "relax_dialect" / "ops").glob("*.py") if path.stem != "__init__"}
    assert {stem for stem in stems if any(family_ops(stem))} == set(FAMILIES)
    assert set(VALUES) < set(FAMILIES) - set(OPERATORS)


_FRESH = """
import sys

def loaded(family):
    return f"relax_dialect.ops.{family}" in sys.modules
"""


def _fresh(script: str) -> str:
    """What a new interpreter prints."""
    result = subprocess.run([sys.executable, "-c", _FRESH + script], capture_output=True, text=True, cwd=ROOT)
    assert not result.returncode, result.stderr
    return result.stdout.strip()


def test_an_op_loads_its_family():
    script = """
from relax_dialect.index import OPERATORS
from relax_dialect.loading import OpClasses

classes = OpClasses(OPERATORS)
assert "relax.sort" in classes and "relax.func" not in classes and len(list(classes)) == len(classes)
print(loaded("sorting"), end=" ")
print(classes["relax.sort"].name, loaded("sorting"), loaded("recurrent"))
"""
    assert _fresh(script) == "False relax.sort True False"


def test_a_name_that_no_op_has():
    with pytest.raises(KeyError, match=r"relax\.sorted"):
        OpClasses(FAMILIES)["relax.sorted"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("order", ["sorted", "reversed"])
def test_rules_are_in_the_file_of_the_family(order: str):
    """A rule in another file would be found or not, depending on what was loaded before."""
    script = f"""
from lowering.relax_to_tir.kernel import KERNELS, REWRITES, SIZES
from relax_dialect.loading import FAMILIES
from relax_dialect.interpreter.frame import ENDINGS, RULES
from relax_dialect.loading import OpClasses

tables = {{"kernel": KERNELS, "sizes": SIZES, "rewrite": REWRITES, "meaning": RULES, "ending": ENDINGS}}
classes = OpClasses(FAMILIES)
found = {{(what, name): rules[classes[name]] for name in {order}(list(classes)) for what, rules in tables.items()}}
for (what, name), rule in found.items():
    if tables[what][classes[name]] is not rule:
        print(f"the {{what}} of {{name}} is not in the file of its family")
assert sum(rule is not None for rule in found.values()) > 300
"""
    assert _fresh(script) == ""


def test_a_program_loads_the_families_that_it_uses():
    script = """
from lowering import build
from relax_dialect.builder import BlockBuilder, op

bb = BlockBuilder()
with bb.function("main", {"x": ("n", 4)}) as (x,):
    bb.emit_func_output(op.exp(x) + 1)
build(bb.get(), cache=False)
packages = ("lowering.relax_to_tir", "relax_dialect.interpreter")
families = ("elementwise", "recurrent", "detection", "sorting", "vision")
print(*(f"{package}.{family}" for package in packages for family in families if f"{package}.{family}" in sys.modules))
"""
    assert _fresh(script) == "lowering.relax_to_tir.elementwise"
