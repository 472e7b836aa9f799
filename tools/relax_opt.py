"""`relax-opt`: parse, rewrite by named passes, verify and print."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from xdsl.utils.exceptions import DiagnosticException, ParseError
from xdsl.xdsl_opt_main import xDSLOptMain


class RelaxOptMain(xDSLOptMain):
    """`xdsl-opt` with our dialects and passes, which arrive through the universe entry point."""


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the console script; 0 on success, 1 after a diagnostic on stderr."""
    try:
        RelaxOptMain("the optimizer driver of xdsl-relax", args=argv).run()
    except (ParseError, DiagnosticException, ValueError, OSError) as error:
        print(f"relax-opt: error: {error}", *getattr(error, "__notes__", ()), sep="\n", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
