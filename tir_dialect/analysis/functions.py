"""Verification of functions as a whole: their symbols, accesses and parallel loops."""

from __future__ import annotations

from xdsl.utils.exceptions import VerifyException

from tir_dialect.analysis.accesses import wrong_access
from tir_dialect.analysis.races import race_of_parallel_loop
from tir_dialect.analysis.symbols import unbound_symbol
from tir_dialect.ops.function import PrimFuncOp
from tir_dialect.ops.verifiers import VERIFIERS


@VERIFIERS.attach("tir.prim_func")
def verify_prim_func(func: PrimFuncOp) -> None:
    """Raises `VerifyException` if the body disagrees with the signature, accesses or parallel loops are wrong."""
    if (unbound := unbound_symbol(func)) is not None:
        name, user = unbound
        raise VerifyException(f"'tir.prim_func' op does not bind symbol {name}, used by {user}")  # C4
    if (wrong := wrong_access(func)) is not None:
        raise VerifyException(f"'tir.prim_func' op has {wrong}")  # C6
    if (race := race_of_parallel_loop(func)) is not None:
        raise VerifyException(f"'tir.prim_func' op has {race}")  # C7
