"""The page about watching programs: its commands and programs run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "watch.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
EXPECTED = {
    "profile.json": "wrote trace.json",
    "--check": "the results agree, and 2 values on the way",
    "--bisect": "no pass changes the result",
    "--debug": "the program has returned f32[12]",
    "lowered.mlir --entry": "@myfunc  native, built",
}


@pytest.mark.slow  # 20 processes; what they do has tests of its own
def test_the_commands_and_programs_of_the_page(tmp_path: Path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    seen: set[str] = set()
    for kind, text in BLOCKS:
        command = [sys.executable, "-c", text] if kind == "python" else ["bash", "-ec", text]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        seen |= {word for word, line in EXPECTED.items() if word in text and line in done.stdout}
        if kind == "python":
            assert "GFLOP/s" in done.stdout
            assert "tirexp examples/mvp.mlir:17:5 2.718" in done.stdout
    assert seen == EXPECTED.keys()
