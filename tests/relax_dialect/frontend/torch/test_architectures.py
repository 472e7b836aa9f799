"""Architectures of other packages: those that are right stay so. See `architectures` for what has to be installed."""

from __future__ import annotations

import pytest

from tests.relax_dialect.frontend.torch.architectures.__main__ import tried
from tests.relax_dialect.frontend.torch.architectures.attempt import names
from tests.relax_dialect.frontend.torch.architectures.known import NOT_RIGHT


@pytest.mark.slow
@pytest.mark.parametrize("package", ["by-hand", "timm", "torchvision", "diffusers", "transformers"])
def test_architectures(package: str):
    outcomes = {name: tried(name) for name in names() if name.startswith(f"{package}/")}
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome != "right" and name not in NOT_RIGHT}
    assert not wrong
