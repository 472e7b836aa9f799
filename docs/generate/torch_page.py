"""The list of PyTorch operators that can be imported, made from the registry."""

from __future__ import annotations

from index_of_converters import torch_converters

MARK = "<!-- generated: operators -->\n"


def with_operators(page: str) -> str:
    """The page with the list behind its mark brought up to date."""
    written, mark, _ = page.partition(MARK)
    return f"{written}{mark}{operators()}"


def operators() -> str:
    """A table: the operators of each family, without overloads."""
    rows = [f"| {family} | {_names(names)} |" for family, names in torch_converters().items()]
    return "\n".join(["\n| | |", "|---|---|", *rows]) + "\n"


def _names(operators: list[str]) -> str:
    """Operators without the namespace that nearly all have, and without overloads."""
    shown = {name.rpartition(".")[2 if name.startswith("torch.ops") else 0].removeprefix("aten.") for name in operators}
    return " ".join(f"`{name}`" for name in sorted(shown))
