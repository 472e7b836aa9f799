"""Sizes that are rounded numbers, and conditions on sizes for which a program was exported."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim
from torch.nn import functional as F

from lowering import build
from relax_dialect.frontend.torch import from_exported_program
from relax_dialect.frontend.torch.guards import size_guards
from relax_dialect.frontend.torch.program import load_program
from tests.relax_dialect.frontend.torch.programs import assert_close, assert_same, export
from vm_dialect import VirtualMachine

Tensor = torch.Tensor
SIZES = [torch.randn(n) for n in (7, 1, 2, 8, 10)]


def rounded(x: Tensor) -> list[Tensor]:
    n = x.shape[0]
    return [
        *(torch.arange(n, -n, -1.0), torch.arange(0, n, 2.0), torch.arange(0, 3 * n, 0.5), torch.linspace(-n, n, 5)),
        *(x.new_zeros(math.ceil(n / 2)), x.new_zeros(math.floor(n * 1.5)), x.new_zeros(round(n / 2))),
        *(x.new_zeros(math.ceil(n / 3.0)), x.new_zeros(math.floor(n / 2 + 0.5))),
        F.interpolate(x[None, None], scale_factor=1.5, mode="linear"),
    ]


def test_sizes_that_are_rounded():
    assert_same(rounded, SIZES[:1], ({0: Dim.AUTO},), *([each] for each in SIZES[1:]))


def test_sizes_that_are_computed_may_be_1():
    """PyTorch takes them to be at least 2, which would leave few sizes of the input."""

    def function(x: Tensor) -> list[Tensor]:
        n = x.shape[0]
        return [x[1:] * 2, x.new_zeros(n // 2), x[::2], x.new_zeros(-(-n // 2)), F.pad(x, (0, 1))[2:]]

    assert_same(function, SIZES[:1], ({0: Dim.AUTO},), *([each] for each in SIZES[1:]))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x.new_zeros(int(x.shape[0] / 2)), "trunc"),
        (lambda x: x[: int(x.shape[0] * 0.3)] + 1, "0.3"),
        (lambda x: x.new_zeros(int(x.shape[0] ** 0.5 * 2)), "0.5"),
        (lambda x: x + 1 if x.shape[0] % 4 == 0 else x - 1, "% 4"),
        (lambda x: x + 1 if x.shape[0] % 5 else x - 1, "% 5"),
        (lambda x: x + 1 if x.shape[0] % 7 > 0 else x - 1, "% 7"),
        (lambda x: x + 1 if x.shape[0] ** 2 > 3 * x.shape[0] + 1 else x - 1, "3"),
    ],
)
def test_sizes_that_go_another_way_are_errors(function: Callable[[Tensor], Tensor], text: str, tmp_path: Path):
    program = export(function, SIZES[3:4], ({0: Dim.AUTO},))
    torch.export.save(program, tmp_path / "program.pt2")
    for each in (program, load_program(tmp_path / "program.pt2")):
        main = VirtualMachine(build(from_exported_program(each), mode="bytecode"))["main"]
        assert_close(main(SIZES[3]), [function(SIZES[3])])
        found = 0
        for x in SIZES:
            try:
                assert_close(main(x), [function(x)])  # right, or an error
            except ValueError as error:
                found += re.search(text, str(error)) is not None
        assert found


def test_conditions_that_hold_for_all_sizes_from_2_on_are_none():
    program = export(lambda x, y: x, (torch.ones(5), torch.ones(3)), ({0: Dim.AUTO}, {0: Dim.AUTO}))
    sizes = [f"L['args'][{at}].size()[0]" for at in range(2)]
    text = f"({sizes[0]} % ({sizes[1]} * {sizes[0]})) != 0"
    assert [guard.is_mark for guard in size_guards(program, [text, f"{sizes[0]} > {sizes[1]}"])] == [True, False]


def test_conditions_may_have_divisors_that_are_0():
    """As of a length less what convolutions take away, which is 0 for a size that the program is not for."""
    program = export(lambda x: x, (torch.ones(9),), ({0: Dim.AUTO},))
    size = "L['args'][0].size()[0]"
    texts = [f"({size} % ({size} - 4)) != 0", f"{size} // ({size} - 2) <= 3"]
    assert [guard.is_mark for guard in size_guards(program, texts)] == [False, False]


def test_two_inputs_by_nested_names():
    class Model(torch.nn.Module):
        def forward(self, pair: dict[str, Any], y: Tensor) -> Tensor:
            longer = pair["x"][0].shape[0] > y.shape[0]
            return y.sum() + (pair["x"][0].sum() if longer else 0)

    given = ({"x": [torch.ones(5)]}, torch.ones(3))
    dynamic = ({"x": [{0: Dim.AUTO}]}, {0: Dim.AUTO})
    program = export(Model(), given, dynamic)
    (guard,) = size_guards(program, program._guards_code)
    assert guard.text == "pair['x'][0].size()[0] > y.size()[0]"
    main = VirtualMachine(build(from_exported_program(program)))["main"]
    assert float(main(torch.ones(7), torch.ones(3))) == 10
    with pytest.raises(ValueError, match=r"exported for sizes with pair\['x'\]\[0\].size\(\)\[0\] > y.size"):
        main(torch.ones(3), torch.ones(7))
