"""Matrix products by NumPy, which calls the BLAS it was built with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tvm_ffi
from numpy.typing import NDArray

from lowering.byoc.backends import Backend, FusionPattern, Handoff
from lowering.byoc.run_codegen import Program, program_of
from relax_dialect.ops.dataflow import FusedOp
from relax_dialect.patterns import Match, is_op, wildcard
from relax_dialect.struct_info.types import TensorType
from tir_dialect.dtypes import dtype_name
from vm_dialect.tensors import to_numpy

FUNCTION = "relax.blas"
"""The packed function that computes groups: the text of a group, its inputs, its results."""

Array = NDArray[Any]


def _relu(x: Array, out: Array | None) -> Array:
    return np.maximum(x, 0, out=out)


_FUNCTIONS: Mapping[str, Callable[..., Array]] = {
    "relax.matmul": np.matmul,
    "relax.add": np.add,
    "relax.nn.relu": _relu,
}


def _patterns() -> list[FusionPattern]:
    product = is_op("relax.matmul").has_attr(out_dtype=None)(wildcard(), wildcard())
    biased = product + wildcard()
    relu = is_op("relax.nn.relu")
    return [
        FusionPattern("blas.matmul_bias_relu", relu(biased), _is_supported),
        FusionPattern("blas.matmul_bias", biased, _is_supported),
        FusionPattern("blas.matmul", product, _is_supported),
    ]


def _is_supported(match: Match) -> bool:
    """BLAS knows `f32` and `f64`; a bias must not make the product larger."""
    info, product = match.value.type, match.ops[0].results[0].type
    if not isinstance(info, TensorType) or not isinstance(product, TensorType) or info.dtype is None:
        return False
    return dtype_name(info.dtype) in ("f32", "f64") and info.known_dims == product.known_dims is not None


def codegen(group: FusedOp) -> Handoff | None:
    """All groups of this backend's ops; others are declined."""
    program = program_of(group)
    if program is None or any(step.op not in _FUNCTIONS for step in program.steps):
        return None
    return Handoff(FUNCTION, (program.text(),))


def run(text: str, *tensors: tvm_ffi.Tensor) -> None:
    """Computes a group on tensors: its inputs, then its results, which are written in place."""
    program = Program.parse(str(text))
    arrays = [to_numpy(tensor) for tensor in tensors]
    values: list[Array] = arrays[: program.inputs]
    results = dict(zip(program.outputs, arrays[program.inputs :], strict=True))
    for step in program.steps:
        out = results.get(len(values))
        operands = [values[number] for number in step.operands]
        # what is no result of the group is overwritten by the step that uses it, if that has its shape
        if out is None:
            out = next(iter(results.values())) if _fits(step.op, operands, results) else None
        values.append(_FUNCTIONS[step.op](*operands, out=out))


def _fits(op: str, operands: list[Array], results: Mapping[int, Array]) -> bool:
    if len(results) != 1 or op != "relax.matmul" or min(each.ndim for each in operands) < 2:
        return False
    (result,) = results.values()
    batch = np.broadcast_shapes(operands[0].shape[:-2], operands[1].shape[:-2])
    return result.shape == (*batch, operands[0].shape[-2], operands[1].shape[-1])


tvm_ffi.register_global_func(FUNCTION, run, override=True)

BACKEND = Backend("blas", _patterns(), codegen)
