"""`relax-gui`: xDSL's viewer in the terminal, with our dialects and passes and those of extensions; a pipeline is put
together step by step, beside what it makes of a module.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lowering.registry import ALIASES, available_passes, installed_dialects
from xdsl_relax.cli.diagnostics import ToolError, run_tool
from xdsl_relax.cli.parser import ToolParser, add_load_option, comma_separated
from xdsl_relax.cli.programs import load_python_files
from xdsl_relax.file_kinds import STDIN, Holds, read_module, require_module, source_of, suffixes
from xdsl_relax.passes import parsed_passes

if TYPE_CHECKING:
    from xdsl.interactive.app import InputApp

INITIAL_TEXT = """\
relax.func @main[%n](%x: !relax.tensor<[n, 4], f32>) -> !relax.tensor<[n, 4], f32> {
  %0 = relax.exp %x
  %1 = relax.nn.softmax %0
  relax.return %1
}
"""
"""What is shown without a file."""


def make_app(argv: Sequence[str] | None) -> InputApp:
    """The application that a command line describes; `ToolError` if what it needs is not installed."""
    parser = ToolParser("relax-gui", __doc__)
    parser.add_argument("file", nargs="?", help=f"a file of a module ({', '.join(suffixes(Holds.MODULE))}), or -")
    parser.add_argument("-p", "--passes", metavar="PASSES", default="", help="the passes to begin with")
    parser.completers["passes"] = comma_separated(available_passes)
    add_load_option(parser, "register dialects and passes")
    args = parser.read(argv)
    load_python_files(args.load)
    try:
        from xdsl.interactive.app import InputApp
        from xdsl.universe import XDSL_UNIVERSE
    except ModuleNotFoundError as error:
        raise ToolError(f"the viewer needs more: pip install xdsl-relax[gui] ({error})") from error
    text = _text(args.file)
    pipeline = tuple(parsed_passes(args.passes)) if args.passes else ()
    found = sorted(available_passes(installed=True).items())
    passes = [(name, make()) for name, make in found if name not in ALIASES]
    dialects = XDSL_UNIVERSE.all_dialects | installed_dialects()
    path = None if args.file in (None, STDIN) else str(args.file)
    return InputApp(tuple(dialects.items()), tuple(passes), path, text, pipeline)


def _text(path: str | None) -> str:
    """The text to begin with: that of the file if it is of MLIR, so that comments are kept."""
    if path is None:
        return INITIAL_TEXT
    return source_of(path).text() if require_module(path).suffix == ".mlir" else str(read_module(path))


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; 0 on success, 1 after a diagnostic on stderr."""
    return run_tool("relax-gui", lambda: make_app(argv).run(), own_process=argv is None)


if __name__ == "__main__":
    sys.exit(main())
