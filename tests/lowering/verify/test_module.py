"""What is required of a whole module."""

import pytest

from lowering import build
from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.verify import verify_module, verify_program

PRIVATE = """
relax.func private @f(%x: !relax.object) -> !relax.object {
  relax.return %x
}
"""


def test_a_program_has_an_entry_point():
    module = parse_module(PRIVATE)
    verify_module(module)
    for check in (verify_program, build):
        with pytest.raises(InvalidModule, match="expected a function that is not private, as entry point"):
            check(module)
    verify_program(parse_module(PRIVATE + "relax.func @g(%x: !relax.object) -> !relax.object { relax.return %x }"))
    verify_program(parse_module("builtin.module {\n}"))
