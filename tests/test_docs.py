"""Generated pages are what the code gives."""

import os
import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import xdsl_relax

ROOT = Path(__file__).parents[1]


def test_generated_pages_are_current() -> None:
    subprocess.run([sys.executable, ROOT / "docs" / "generate", "--check"], check=True)


def test_demo_runs() -> None:
    output = subprocess.check_output([sys.executable, ROOT / "examples" / "demo.py"], text=True)
    assert "One artefact served" in output


def test_the_programs_of_the_kernels_page_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorials" / "kernels.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    shown = re.findall(r"^```mlir\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-c", "".join(blocks)]
    output = subprocess.check_output(command, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert output.startswith(shown[0])


def test_the_programs_of_the_page_on_layers_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "tutorials" / "llama.md").read_text()
    program = "".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
    assert program.count("\n") <= 100  # as the page says
    output = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=tmp_path)
    assert "<Model main(ids: i64[new], past: i64, table: i64[pages], keys0: f16[pool, 2, 32, 16]," in output
    assert "[5, 40, 3, 7, " in output
    assert "matrices, the largest error 0.0" in output


def test_the_page_of_the_package_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "xdsl_relax.md").read_text()
    program = "".join(re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL))
    output = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=tmp_path)
    assert "<main(x: f32[n, 4], y: f32[n, 4]) -> (f32[n, 4], f32[n, 4])>" in output
    assert "relax.call_tir @" in output


def test_the_program_of_the_onnx_page_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "onnx.md").read_text()
    program = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)[0]
    given, wanted = (onnx.helper.make_tensor_value_info(name, 1, ["n", 4]) for name in ("input.1", "out"))
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["input.1"], ["out"])], "g", [given], [wanted])
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "model.onnx")
    example = "import numpy as np\nx = np.float32([[-1, 0, 1, 2]])\n"
    command = [sys.executable, "-c", f"{example}{program}\nprint(result, model({{'input.1': x}}))"]
    assert subprocess.check_output(command, text=True, cwd=tmp_path) == "[[0. 0. 1. 2.]] [[0. 0. 1. 2.]]\n"


def test_the_page_of_the_package_has_every_name() -> None:
    page = (ROOT / "docs" / "reference" / "xdsl_relax.md").read_text()
    missing = [name for name in xdsl_relax.__all__ if f"`{name}`" not in page and name != "__version__"]
    assert not missing


def test_the_backend_of_the_byoc_page_runs() -> None:
    (program,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "docs" / "howto" / "byoc.md").read_text(), re.MULTILINE | re.DOTALL
    )
    output = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT)
    left = re.findall(r"= relax\.(call_dps_packed|matmul|sigmoid|cos|exp|sum)\b", output)
    assert left == ["call_dps_packed", "cos", "exp", "sum"]


def test_the_programs_of_the_pages_on_language_models_and_quantisation_run() -> None:
    """The last program of the first page, as the one before needs a trained model, and that of the second one."""
    pages = [(ROOT / "docs" / "howto" / name).read_text() for name in ("language-models.md", "quantize.md")]
    programs = [re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[-1] for page in pages]
    output = subprocess.check_output([sys.executable, "-c", "".join(programs)], text=True, cwd=ROOT)
    assert output.startswith("(3, 64)\n")
    assert '"up [256, 512]: 524288 to 139264 bytes, relative error 0.0054"' in output


@pytest.mark.slow  # 20 processes; `tests/tools` has the options
def test_the_commands_of_the_page_on_the_shell_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "howto" / "shell.md").read_text()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    script = "".join(re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    output = subprocess.check_output(["bash", "-ec", f"set -o pipefail\n{script}"], text=True, cwd=tmp_path)
    assert output.startswith("@myfunc(x: f32[n, m]) -> f32[m * n]\n")
    assert "[2.7182817, 2.7182817" in output or "f32[6]  min 2.71828" in output
    (text,) = re.findall(r"^```mlir\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    subprocess.run(["relax-opt", "-", "--verify-diagnostics"], input=text, text=True, check=True)


def test_the_program_of_the_page_for_users_of_tvm_runs() -> None:
    page = (ROOT / "docs" / "howto" / "from-tvm.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    output = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT)
    assert output.startswith("[[4. 4.]\n [4. 4.]\n [4. 4.]]\n")
    assert "R.call_tir(cls.fused_matmul" in output
    names = set(re.findall(r"`xr\.(\w+)", page))
    assert names <= {*dir(xdsl_relax)}


def test_the_programs_of_the_page_on_extensions_are_those_of_the_example() -> None:
    """Which `tests/xdsl_relax/test_extension.py` runs."""
    page = (ROOT / "docs" / "howto" / "extend.md").read_text()
    folder = ROOT / "examples" / "extension"
    files = [path.read_text() for path in (*folder.rglob("*.py"), folder / "pyproject.toml")]
    for block in re.findall(r"^```(?:python|toml)\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        assert any(block in text for text in files), block


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_files_that_pages_name_exist() -> None:
    """By the end of the path, as far as it is given."""
    files = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*"))
    paths = {f"/{path.relative_to(ROOT).as_posix()}" for path in files}
    ends = {path[index:] for path in paths for index in range(len(path)) if path[index] == "/"}
    missing = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in PAGES
        for name in re.findall(r"`([\w/]+\.(?:py|ll))`", page.read_text())
        if f"/{name}" not in ends and name not in OF_THE_READER
    ]
    assert not missing


FOLDERS = (
    "xdsl_relax",
    "relax_dialect",
    "tir_dialect",
    "vm_dialect",
    "lowering",
    "tools",
    "examples",
    "tests",
    "benchmarks",
    "docs",
)
OF_THE_READER = {"model.py", "lowering.py", "rules.py"}
"""Files of the reader, in examples."""


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in PAGES
        for target, path, anchor in re.findall(r"\]\((([\w./-]+\.\w+)(?:#([\w-]*))?)\)", page.read_text())
        if not (page.parent / path).is_file() or (anchor and anchor not in _anchors(page.parent / path))
    ]
    assert not broken


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
