"""A library that computes the operator: here NumPy, called by name at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm_ffi

from relax_dialect.patterns import is_op, wildcard
from smooth.ops import SoftSignOp
from vm_dialect.tensors import to_numpy
from xdsl_relax.extend import Backend, FusionPattern, Handoff, register_backend


def codegen(group: Any) -> Handoff | None:
    """The call for a group of ops; it has the constant as a text."""
    found = [op for op in group.walk() if isinstance(op, SoftSignOp)]
    return Handoff("smooth.softsign", (str(found[0].bias.value.data),)) if len(found) == 1 else None


def softsign(bias: str, x: tvm_ffi.Tensor, result: tvm_ffi.Tensor) -> None:
    """Fills the result."""
    given = to_numpy(x)
    np.divide(given, float(bias) + np.abs(given), out=to_numpy(result))


tvm_ffi.register_global_func("smooth.softsign", softsign, override=True)
register_backend(Backend("smooth", [FusionPattern("smooth.softsign", is_op("smooth.softsign")(wildcard()))], codegen))
