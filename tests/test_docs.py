"""Generated pages are what the code gives."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_generated_pages_are_current() -> None:
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], check=True)


def test_demo_runs() -> None:
    output = subprocess.check_output([sys.executable, ROOT / "examples" / "demo.py"], text=True)
    assert "One artefact served" in output


def test_the_programs_of_the_kernels_page_run(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "kernels.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    shown = re.findall(r"^```mlir\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-c", "".join(blocks)]
    output = subprocess.check_output(command, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert output.startswith(shown[0])


def test_the_backend_of_the_byoc_page_runs() -> None:
    (program,) = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / "byoc.md").read_text(), re.MULTILINE | re.DOTALL)
    output = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT)
    left = re.findall(r"= relax\.(call_dps_packed|matmul|sigmoid|cos|exp|sum)\b", output)
    assert left == ["call_dps_packed", "cos", "exp", "sum"]
