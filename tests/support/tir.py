"""Prim_funcs as text: parsed, verified and run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lowering.parsing import parse_module
from tir_dialect.interpreter import run_prim_func
from tir_dialect.ops.function import PrimFuncOp


def parse_prim_func(text: str, name: str | None = None) -> PrimFuncOp:
    """The first function of a module, or the one called `name`; the module is verified."""
    module = parse_module(text)
    module.verify()
    funcs = [op for op in module.body.block.ops if isinstance(op, PrimFuncOp)]
    return next(func for func in funcs if name in (None, func.sym_name.data))


def run_text(text: str, *args: Any, symbols: Mapping[str, int] | None = None, **options: Any) -> None:
    """Runs the first function of a module; arrays are changed in place."""
    with np.errstate(all="ignore"):
        run_prim_func(parse_prim_func(text), args, symbols, **options)
