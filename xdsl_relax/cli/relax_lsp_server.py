"""`relax-lsp-server`: an editor starts it for files of MLIR text, and talks to it by its standard input and output.

`editors/vscode` has the extension for Visual Studio Code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from xdsl_relax.cli.diagnostics import ToolError, run_tool
from xdsl_relax.cli.parser import ToolParser


def _serve(argv: Sequence[str] | None) -> None:
    parser = ToolParser("relax-lsp-server", __doc__)
    parser.add_argument("--stdio", action="store_true", help="as editors say it; there is no other way")
    parser.read(argv)
    try:
        from xdsl_relax.language_server import SERVER
    except ModuleNotFoundError as error:
        raise ToolError(f"the server needs more: pip install xdsl-relax[lsp] ({error})") from error
    SERVER.start_io()


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script: serves until the editor ends it; 1 after a diagnostic on stderr."""
    return run_tool("relax-lsp-server", lambda: _serve(argv), own_process=argv is None)


if __name__ == "__main__":
    sys.exit(main())
