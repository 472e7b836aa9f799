"""Generated pages are what the code gives."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_generated_pages_are_current() -> None:
    subprocess.run([sys.executable, ROOT / "docs" / "generate.py", "--check"], check=True)


def test_demo_runs() -> None:
    output = subprocess.check_output([sys.executable, ROOT / "examples" / "demo.py"], text=True)
    assert "One artefact served" in output
