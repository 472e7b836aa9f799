"""PrimFuncs as TVMScript, the Python text of Apache TVM."""

from tir_dialect.tvmscript.functions import as_tvmscript
from tir_dialect.tvmscript.text import ScriptError

__all__ = ["ScriptError", "as_tvmscript"]
