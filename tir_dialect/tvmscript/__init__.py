"""PrimFuncs as TVMScript, the Python text of Apache TVM."""

from tir_dialect.tvmscript.errors import ScriptError
from tir_dialect.tvmscript.functions import as_tvmscript

__all__ = ["ScriptError", "as_tvmscript"]
