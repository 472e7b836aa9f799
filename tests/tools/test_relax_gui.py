"""The viewer in the terminal, without a terminal."""

import asyncio
from pathlib import Path

import pytest

from xdsl_relax.cli.relax_gui import main, make_app

TEXT = """// kept
relax.func @main[%n](%x: !relax.tensor<[n], f32>) -> !relax.tensor<[n], f32> {
  %0 = relax.exp %x
  relax.return %0
}
"""


def test_our_dialects_and_passes_are_there(tmp_path: Path):
    (tmp_path / "m.mlir").write_text(TEXT)
    app = make_app([str(tmp_path / "m.mlir"), "-p", "legalize-ops"])

    async def look() -> None:
        async with app.run_test(size=(160, 60)) as pilot:
            await pilot.pause()
            assert app.input_text_area.text == TEXT
            assert "relax.call_tir @exp" in app.output_text_area.text
            offered = [str(node.label) for node in app.passes_tree.root.children]
            assert {"fuse-ops", "relax-to-vm", "canonicalize"} <= set(offered)

    asyncio.run(look())


def test_what_is_wrong_is_said(capsys: pytest.CaptureFixture[str]):
    assert main(["none.txt"]) == 1
    assert "relax-gui: error: expected a file that ends in one of .mlir" in capsys.readouterr().err
    assert main(["-p", "no-pass"]) == 1
    assert "unknown pass 'no-pass'" in capsys.readouterr().err
