"""`relax-translate`, which is in `xdsl_relax.cli`."""

from __future__ import annotations

import sys

from xdsl_relax.cli.relax_translate import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
