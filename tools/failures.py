"""How tools begin and end, which is in `xdsl_relax.cli`."""

from __future__ import annotations

from xdsl_relax.cli.diagnostics import ToolError, run_tool

__all__ = ["ToolError", "run_tool"]
