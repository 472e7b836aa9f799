"""Modules of Relax functions and PrimFuncs as TVMScript, the Python text of Apache TVM."""

from relax_dialect.tvmscript.module import as_tvmscript
from tir_dialect.tvmscript.text import ScriptError

__all__ = ["ScriptError", "as_tvmscript"]
