"""Passes that are left out where a module has nothing that they are about."""

import os
import subprocess
import sys
from pathlib import Path

from xdsl.utils.exceptions import ParseError

from lowering.context import make_context
from lowering.index import INDEX
from lowering.parsing import parse_module
from lowering.pipelines import Contents, RelaxToVMPass
from lowering.registry import load_pass
from relax_dialect.analysis.shape_rules import FUNCTIONS, RULES
from relax_dialect.loading import FAMILIES, family_ops, names_in
from tests.fuzz.texts import NEEDS_OPTIONS
from tests.support.rules import each

ROOT = Path(__file__).parents[2]
FILECHECK = ROOT / "tests" / "filecheck"
PROGRAMS = sorted(
    path for folder in ("relax_dialect", "lowering/relax/memory") for path in (FILECHECK / folder).glob("*.mlir")
)
"""Most ops; the tests of passes have the passes' own."""


REQUIRES = {name: entry.requires for name, entry in INDEX.items() if entry.requires}


@each(REQUIRES)
def test_what_a_pass_requires_are_ops(name: str):
    assert set(REQUIRES[name]) <= names_in(FAMILIES).keys()


def test_passes_that_are_left_out_would_change_nothing():
    """Each pass on each program that has none of its ops: it is the same as before."""
    asked = {name: 0 for name in REQUIRES if name not in NEEDS_OPTIONS}
    for path in PROGRAMS:
        try:
            module = parse_module(path.read_text(), path.name)
        except ParseError:  # of a file that is about errors, or has several modules
            continue
        contents, before, ctx = Contents(module), str(module), make_context()
        idle = [name for name in asked if not contents.concern(name)]
        for name in idle:
            load_pass(name)().apply(ctx, module)
            asked[name] += 1
        assert str(module) == before, f"{path.name}: one of {', '.join(idle)}"
    assert min(asked.values()) > 5, asked


ONE, OTHER = (
    """
relax.func @one(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
  relax.return %x
}
""",
    """
relax.func @other(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[], f32> {
  %0 = relax.mean %x
  relax.return %0
}
""",
)


def test_a_module_that_has_changed():
    module, other = parse_module(ONE), parse_module(OTHER)
    contents = Contents(module)
    assert contents.concern("eliminate-common-subexpr")
    assert not contents.concern("rewrite-normalization")
    module.body.block.add_ops(func.clone() for func in other.ops)
    contents.forget()
    assert contents.concern("rewrite-normalization")


def test_operators_on_what_is_known_are_folded():
    folded = parse_module("""
relax.func @main(%x: !relax.tensor<[4], f32>) -> !relax.tensor<[4], f32> {
  %0 = relax.constant dense<2.0> : tensor<f32>
  %1 = relax.multiply %0, %0
  %2 = relax.add %x, %1
  relax.return %2
}
""")
    given = parse_module(str(folded).replace("relax.multiply %0, %0", "relax.multiply %0, %x"))
    for name in ("fold-constants", "fold-shape-computations"):
        assert [Contents(module).concern(name) for module in (folded, given)] == [True, False]


def test_shapes_are_computed_by_the_ops_that_are_named():
    """The others compute what is known only if all their operands are."""
    for family in FAMILIES:
        list(family_ops(family))
    known = {"relax.constant", "relax.prim", "relax.shape", "relax.tuple"}
    elementwise = {op.name for op in FUNCTIONS} | {"relax.astype"}
    named = set(REQUIRES["fold-shape-computations"])
    assert {op.name for op in RULES} == known | elementwise | named


def test_what_a_program_has_nothing_of_is_not_loaded(tmp_path: Path):
    graph = ("convert_layout", "recurrent", "fold_constants", "rewrite_convolution", "fold_batch_norm")
    names = (*graph, "fuse_ops", "compute_bound", "scan", "tuning_database")
    assert not [name for name in names if not list(ROOT.glob(f"lowering/**/{name}.py"))], "modules with these names"
    script = f"""
import sys
from lowering import build
from relax_dialect.builder import BlockBuilder, op

bb = BlockBuilder()
with bb.function("main", {{"x": ("n", 4)}}) as (x,):
    bb.emit_func_output(op.exp(x) + x)
build(bb.get(), cache=False)
loaded = {{name.rpartition(".")[2] for name in sys.modules if name.startswith("lowering.")}}
print(*(name for name in {names} if name in loaded))
print("relax_dialect.ops.convolution" in sys.modules)
"""
    environment = {**os.environ, "RELAX_TUNING_FILE": str(tmp_path / "nothing is tuned")}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert (result.returncode, result.stdout) == (0, "fuse_ops\nFalse\n"), result.stderr


def test_all_steps_are_in_the_list_of_passes():
    """What a pipeline leaves out for one module is there for all."""
    assert {"rewrite-attention", "convert-layout"} <= {step.name for step in RelaxToVMPass.passes()}
