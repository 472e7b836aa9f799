"""The pages on sharded programs show what the passes give, and their program runs."""

import re
import subprocess
import sys
from pathlib import Path

from lowering.parsing import parse_module
from tests.support.programs import run_pipeline

ROOT = Path(__file__).parents[3]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_a_layer_at_every_stage():
    given, propagated, lowered = blocks("explanation/distributed.md", "mlir")
    module = parse_module(given)
    run_pipeline(module, "propagate-sharding")
    assert str(module) == str(parse_module(propagated))
    run_pipeline(module, "lower-distributed")
    assert str(module) == str(parse_module(lowered))


def test_the_program_of_the_how_to_page_runs():
    (program,) = blocks("howto/distributed.md", "python")
    output = subprocess.check_output([sys.executable, "-c", program], text=True, cwd=ROOT)
    assert f"```\n{output}```" in (ROOT / "docs/howto/distributed.md").read_text()
