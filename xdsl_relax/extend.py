"""What an extension registers with: `docs/howto/extend.md` shows a package that uses all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vm_dialect.lazy_names import LazyNames

if TYPE_CHECKING:
    from lowering.byoc.backends import Backend, FusionPattern, Handoff, register_backend
    from lowering.registry import register_dialect, register_pass
    from lowering.relax.matchers import RewriteMatch
    from lowering.relax_to_tir.kernel import Kernel, legalizes, rewrites, sizes
    from lowering.rewriting import apply_patterns
    from relax_dialect.builder.operator_functions import function_of
    from relax_dialect.frontend.onnx.node import converts as onnx_converter
    from relax_dialect.frontend.torch.node import converts as torch_converter
    from relax_dialect.inference import Inference
    from relax_dialect.interpreter.operators import computes
    from relax_dialect.ops.operator import Operator
    from relax_dialect.struct_info.types import TensorType
    from tir_dialect.ops.assembly_format import op_definition

__all__ = [
    "Backend",
    "FusionPattern",
    "Handoff",
    "Inference",
    "Kernel",
    "Operator",
    "RewriteMatch",
    "TensorType",
    "apply_patterns",
    "computes",
    "function_of",
    "legalizes",
    "onnx_converter",
    "op_definition",
    "register_backend",
    "register_dialect",
    "register_pass",
    "rewrites",
    "sizes",
    "torch_converter",
]

_NAMES = LazyNames(
    __name__,
    {
        "Backend": "lowering.byoc.backends:Backend",
        "FusionPattern": "lowering.byoc.backends:FusionPattern",
        "Handoff": "lowering.byoc.backends:Handoff",
        "Inference": "relax_dialect.inference:Inference",
        "Kernel": "lowering.relax_to_tir.kernel:Kernel",
        "Operator": "relax_dialect.ops.operator:Operator",
        "RewriteMatch": "lowering.relax.matchers:RewriteMatch",
        "TensorType": "relax_dialect.struct_info.types:TensorType",
        "apply_patterns": "lowering.rewriting:apply_patterns",
        "computes": "relax_dialect.interpreter.operators:computes",
        "function_of": "relax_dialect.builder.operator_functions:function_of",
        "legalizes": "lowering.relax_to_tir.kernel:legalizes",
        "onnx_converter": "relax_dialect.frontend.onnx.node:converts",
        "op_definition": "tir_dialect.ops.assembly_format:op_definition",
        "register_backend": "lowering.byoc.backends:register_backend",
        "register_dialect": "lowering.registry:register_dialect",
        "register_pass": "lowering.registry:register_pass",
        "rewrites": "lowering.relax_to_tir.kernel:rewrites",
        "sizes": "lowering.relax_to_tir.kernel:sizes",
        "torch_converter": "relax_dialect.frontend.torch.node:converts",
    },
)

__getattr__ = _NAMES.get
__dir__ = _NAMES.listed
