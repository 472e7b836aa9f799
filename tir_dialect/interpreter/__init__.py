"""Reference semantics of the tir dialect on NumPy arrays."""

from tir_dialect.interpreter.numerics import OutOfRangeError, UnsupportedOpError
from tir_dialect.interpreter.run import Run, compile_prim_func, run_prim_func, source_of

__all__ = ["OutOfRangeError", "Run", "UnsupportedOpError", "compile_prim_func", "run_prim_func", "source_of"]
