"""The families of ops: files of one stem in `ops`, in `interpreter` and, for operators, in `lowering/legalize`."""

from __future__ import annotations

OPERATORS: tuple[str, ...] = (
    "activation",
    "advanced_indexing",
    "attention",
    "binary",
    "convolution",
    "creation",
    "datatype",
    "deformable",
    "detection",
    "gather",
    "image",
    "index_maps",
    "indexing",
    "joining",
    "layers",
    "linear_algebra",
    "manipulation",
    "normalization",
    "padding",
    "pooling",
    "quantization",
    "rearranging",
    "recurrent",
    "reduction",
    "resizing",
    "sampling",
    "search",
    "set",
    "signal",
    "sorting",
    "unary",
    "vision",
)
"""Families that compute on tensors: `legalize-ops` makes kernels of them."""

LANGUAGE: tuple[str, ...] = (
    "binding",
    "call_packed",
    "call_tir",
    "calls",
    "control_flow",
    "dataflow",
    "effects",
    "fused",
    "guard",
    "loops",
    "memory",
    "shapes",
    "structure",
    "values",
)
"""Families of which programs are made: functions, values, control flow, memory."""

FAMILIES = tuple(sorted((*OPERATORS, *LANGUAGE)))
"""All of them."""
