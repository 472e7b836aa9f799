"""Operators of users, as the documentation says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim

from relax_dialect.frontend.torch import TorchImportError, from_exported_program
from relax_dialect.frontend.torch.node import CONVERTERS
from tests.relax_dialect.frontend.torch.programs import assert_same, export

PAGE = Path(__file__).parents[4] / "docs/howto/torch.md"


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Any:
        return torch.ops.mylib.scaled(x, 2.5) + 1


def test_the_page_shows_how_a_converter_is_registered(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(CONVERTERS, "_entries", dict(CONVERTERS.loaded()))
    section = PAGE.read_text().partition("## Operators of your own")[2]
    block = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert block is not None
    definition, mark, converter = block[1].partition("@converts")
    exec(definition, names := {"__name__": "page"})
    with pytest.raises(TorchImportError) as caught:
        from_exported_program(export(Scaled(), (torch.randn(3),)))
    (operator,) = caught.value.operators
    line = Scaled.forward.__code__.co_firstlineno + 1
    assert operator.source == f'File "{__file__}", line {line}, in forward: return torch.ops.mylib.scaled(x, 2.5) + 1'
    assert f'{mark}("{operator.name}")' in str(caught.value).replace("relax_dialect.frontend.torch.", "")
    exec(mark + converter, names)
    assert_same(Scaled(), (torch.randn(3),), ({0: Dim.AUTO},), (torch.randn(1),))
