"""The example of `docs/howto/extend.md` as an installed package outside of this repository, in processes of its own."""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "examples" / "extension"

MODEL = """
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = smooth.softsign %x bias = 3.0
  relax.return %0
}
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the package, with what an installer writes beside it."""
    folder = tmp_path_factory.mktemp("outside") / "extension"
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    facts = folder / f"{project['name']}-{project['version']}.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in groups[group].items()) for group in groups
    ]
    (facts / "entry_points.txt").write_text("\n".join(lines))
    (folder / "m.mlir").write_text(MODEL)
    return folder


def _run(package: Path, *command: str, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command,
        cwd=package,
        env={**os.environ, "PYTHONPATH": f"{package}{os.pathsep}{ROOT}", **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_its_own_tests_pass(package: Path):
    """Texts, by lit: the substitutions and the runner come with this package."""
    report = _run(package, str(Path(sys.executable).with_name("lit")), "-v", "tests")
    assert "Passed: 4 (100.00%)" in report


EVERYTHING = """
import numpy as np
import xdsl_relax as xr
from onnx import TensorProto, helper

x = np.array([-3, 0, 1], np.float32)
half = x / (1 + abs(x))

# A dialect, and an operator with its meaning and its kernel: nothing is imported for them.
module = xr.load("m.mlir")
for mode in ("native", "bytecode"):
    np.testing.assert_allclose(xr.compile(module, mode=mode)(x), x / (3 + abs(x)), rtol=1e-6)
np.testing.assert_allclose(xr.interpret(module, x), x / (3 + abs(x)), rtol=1e-6)

# A converter of ONNX.
info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy"]
node = helper.make_node("SmoothSign", ["x"], ["y"], domain="smooth", bias=2.0)
graph = helper.make_graph([node], "g", info[:1], info[1:])
sets = [helper.make_opsetid("", 17), helper.make_opsetid("smooth", 1)]
model = helper.make_model(graph, opset_imports=sets, ir_version=10)
np.testing.assert_allclose(xr.compile(model)(x), x / (2 + abs(x)), rtol=1e-6)

# A pass, by name and in builds.
spelt = xr.load("tests/find_softsign.mlir")
assert "smooth.softsign" in str(xr.run_passes(spelt, "find-softsign"))
with xr.PassContext([timing := xr.PassTiming()]):
    xr.run_passes(spelt, "relax-to-vm")
assert "find-softsign" in [name for name, _ in timing.seconds]
np.testing.assert_allclose(xr.compile(spelt)(x), half, rtol=1e-6)

# A backend.
offloaded = xr.run_passes(module, "fuse-ops-by-pattern{backend=smooth},run-codegen")
assert 'call_dps_packed "smooth.softsign"' in str(offloaded)
np.testing.assert_allclose(xr.compile(offloaded)(x), x / (3 + abs(x)), rtol=1e-6)
print("done")
"""


def test_all_that_it_registers_is_known(package: Path):
    assert _run(package, sys.executable, "-c", EVERYTHING) == "done\n"


@pytest.mark.slow
def test_a_pass_alone_is_found(package: Path):
    """By tools that have met nothing else of the extension."""
    tool = str(Path(sys.executable).with_name("relax-opt"))
    assert "smooth.softsign" in _run(package, tool, "tests/find_softsign.mlir", "-p", "find-softsign")
    listing = _run(package, tool, "--list-passes", "--show-dialects")
    assert "  find-softsign" in listing.split("passes of xDSL:")[0]
    assert "  smooth    1 ops\n" in listing


@pytest.mark.slow
def test_code_of_an_edited_extension_is_made_anew(package: Path, tmp_path: Path):
    """What is kept on disk is that of its sources, too."""
    command = (sys.executable, "-c", "import numpy, xdsl_relax as xr; print(xr.compile('m.mlir')(numpy.ones(1, 'f4')))")
    environment = {"RELAX_CACHE_DIR": str(tmp_path)}
    assert _run(package, *command, environment=environment) == "[0.25]\n"
    rules = package / "smooth" / "rules.py"
    original = rules.read_text()
    rules.write_text(original.replace("te.abs(x[i]) + bias", "te.abs(x[i]) + bias + 4.0"))
    assert _run(package, *command, environment=environment) == "[0.125]\n"
    rules.write_text(original)


def test_an_extension_that_fails_is_named(package: Path, tmp_path: Path):
    broken = tmp_path / "smooth-0.1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (broken / "entry_points.txt").write_text("[xdsl_relax.extensions]\nbroken = no_such_module.here\n")
    done = subprocess.run(
        [sys.executable, "-m", "xdsl_relax.cli.relax_opt", str(package / "m.mlir")],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert "no_such_module.here: ModuleNotFoundError: No module named 'no_such_module'" in done.stderr


OPERATOR = """
import numpy as np
from xdsl.ir import Dialect
from xdsl.irdl import operand_def, result_def
from xdsl_relax import te
from xdsl_relax.extend import Operator, TensorType, legalizes, op_definition, register_dialect

@op_definition
class HalfOp(Operator):
    "Half of it."
    name = "half.half"
    x = operand_def(TensorType)
    result = result_def(TensorType)

    @classmethod
    def infer(cls, inference):
        return (inference.tensor(0),)

register_dialect(Dialect("half", [HalfOp]))

@legalizes(HalfOp)
def half(kernel, op):
    x = kernel.tensor(op.x)
    return te.compute(kernel.shape(op.result), lambda *i: x[i] * 0.5)
"""

MISTAKES = {
    "return (inference.tensor(0),)": (
        "return inference.tensor(0)",
        "HalfOp.infer expected to give a type for each result, as a tuple, got !relax.tensor<[n], f32>",
    ),
    "x[i] * 0.5": ("np.log(x[i])", "has no callable log method (at half.py:24 in <lambda>)"),
    "kernel.shape(op.result), ": ("", "missing 1 required positional argument: 'fcompute' (at half.py:24 in half)"),
    "@legalizes(HalfOp)": (
        "",
        "hint: an extension registers its kernel by legalizes, or what it is made of by rewrites, for legalize-ops",
    ),
}


def test_mistakes_of_an_extension_are_told_by_its_lines(tmp_path: Path):
    (tmp_path / "m.mlir").write_text(MODEL.replace("smooth.softsign %x bias = 3.0", "half.half %x"))
    for original, (mistake, expected) in MISTAKES.items():
        (tmp_path / "half.py").write_text(OPERATOR.replace(original, mistake))
        done = subprocess.run(
            [sys.executable, "-m", "xdsl_relax.cli.relax_opt", "m.mlir", "-p", "relax-to-vm", "--load", "half.py"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert (done.returncode, expected in done.stderr) == (1, True), done.stderr
