"""What `--mesh` says of a program's mesh."""

import pytest

from lowering.parsing import parse_module
from xdsl_relax.cli.diagnostics import ToolError
from xdsl_relax.cli.workers import mesh_sizes


def module(mesh: str) -> str:
    return f"""relax.func @main(%x: !relax.tensor<[4], f32{mesh}>) -> !relax.object {{
      relax.return %x
    }}"""


def test_sizes():
    one, two = (parse_module(module(f", sharding<{mesh}>")) for mesh in ("x = 2: R", "x = 2: R, y = 3: R"))
    assert mesh_sizes("4", one, "main") == {"x": 4}
    assert mesh_sizes("x=4", one, "main") == {"x": 4}
    assert list(mesh_sizes("y=5,x=4", two, "main").items()) == [("x", 4), ("y", 5)]


@pytest.mark.parametrize("text", ["", "x", "x=", "0", "x=0", "=3", "y=2", "4,4", "x=2,y=2"])
def test_wrong_sizes(text: str):
    with pytest.raises(ToolError, match="--mesh expected"):
        mesh_sizes(text, parse_module(module(", sharding<x = 2: R>")), "main")


def test_no_sharding():
    with pytest.raises(ToolError, match="@main has no sharding"):
        mesh_sizes("4", parse_module(module("")), "main")
