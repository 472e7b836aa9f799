"""Architectures of other packages: those that are right stay so. See `architectures` for what has to be installed."""

from __future__ import annotations

import pytest

from tests.relax_dialect.frontend.torch.architectures.__main__ import tried
from tests.relax_dialect.frontend.torch.architectures.attempt import names
from tests.relax_dialect.frontend.torch.architectures.known import NOT_RIGHT
from tests.relax_dialect.frontend.torch.architectures.page import PAGE, recorded, right


@pytest.mark.slow
@pytest.mark.parametrize("package", ["by-hand", "timm", "torchvision", "diffusers", "transformers"])
def test_architectures(package: str):
    outcomes = {name: tried(name) for name in names() if name.startswith(f"{package}/")}
    wrong = {name: outcome for name, outcome in outcomes.items() if outcome != "right" and name not in NOT_RIGHT}
    assert not wrong


def test_the_page_has_the_reasons():
    text = PAGE.read_text(encoding="utf-8")
    assert recorded(text, {}) == text
    assert not right(text) & NOT_RIGHT.keys()
    assert right(recorded(text, {"timm/new": "right", "timm/test_vit": "wrong"})) - right(text) == {"timm/new"}
