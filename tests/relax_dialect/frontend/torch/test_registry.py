"""Converters are loaded by the names of their operators, and users may register their own."""

from importlib import import_module

import pytest

from relax_dialect.frontend.index import TORCH
from relax_dialect.frontend.torch.node import CONVERTERS, converts, find
from relax_dialect.loading import names_in

PACKAGE = "relax_dialect.frontend.torch"


def test_modules_have_the_converters_that_are_indexed():
    for module in TORCH:
        import_module(f"{PACKAGE}.{module}")
    found = {name: each.__module__ for name, each in CONVERTERS.loaded().items()}
    assert found == {name: f"{PACKAGE}.{module}" for name, module in names_in(TORCH, "").items()}


def test_a_registered_converter_takes_the_place_of_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CONVERTERS, "_entries", dict(CONVERTERS.loaded()))
    own = converts("aten.relu.default", "ours.add.default")(lambda node: node.tensor("self"))
    assert find("aten.relu.default") is own
    assert find("ours.add.default") is own
    assert "ours.add.default" in CONVERTERS
    assert find("ours.mul.default") is None
