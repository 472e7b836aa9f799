"""Parts of a program computed by PyTorch, on the same memory through DLPack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import tvm_ffi

from lowering.byoc.backends import Backend, FusionPattern, Handoff
from lowering.byoc.run_codegen import Program, program_of
from relax_dialect.ops.dataflow import FusedOp
from relax_dialect.patterns import is_op

FUNCTION = "relax.torch"
"""The packed function that computes groups: the text of a group, its inputs, its results."""

Properties = Mapping[str, Any]


def _conv2d(torch: Any, properties: Properties, x: Any, w: Any) -> Any:
    top, left, _, _ = _padding(properties)
    return torch.nn.functional.conv2d(
        x,
        w,
        stride=tuple(properties.get("strides") or (1, 1)),
        padding=(top, left),
        dilation=tuple(properties.get("dilation") or (1, 1)),
        groups=properties.get("groups", 1),
    )


def _padding(properties: Properties) -> Sequence[int]:
    """Top, left, bottom, right."""
    given: list[int] = list(properties.get("padding") or [0])
    return given * (4 // len(given))


def _can_conv2d(properties: Properties) -> bool:
    """PyTorch pads both sides alike, and has one layout."""
    top, left, bottom, right = _padding(properties)
    layouts = [properties.get(name) for name in ("data_layout", "kernel_layout", "out_layout")]
    usual = all(layout in (None, wanted) for layout, wanted in zip(layouts, ("NCHW", "OIHW", "NCHW"), strict=True))
    return usual and (top, left) == (bottom, right) and properties.get("out_dtype") is None


def _softmax(torch: Any, properties: Properties, x: Any) -> Any:
    return torch.softmax(x, properties.get("axis", -1))


def _plain(name: str) -> Callable[..., Any]:
    def call(torch: Any, properties: Properties, *operands: Any) -> Any:
        function = torch
        for part in name.split("."):
            function = getattr(function, part)
        return function(*operands)

    return call


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "relax.nn.conv2d": _conv2d,
    "relax.nn.softmax": _softmax,
    "relax.nn.relu": _plain("relu"),
    "relax.nn.gelu": _plain("nn.functional.gelu"),
    "relax.matmul": _plain("matmul"),
    "relax.add": _plain("add"),
    "relax.multiply": _plain("mul"),
}
_CONDITIONS: Mapping[str, Callable[[Properties], bool]] = {
    "relax.nn.conv2d": _can_conv2d,
    "relax.matmul": lambda properties: properties.get("out_dtype") is None,
}


def codegen(group: FusedOp) -> Handoff | None:
    """Groups of which PyTorch has every op with these properties; others are declined."""
    program = program_of(group)
    if program is None:
        return None
    for step in program.steps:
        if step.op not in _FUNCTIONS or not _CONDITIONS.get(step.op, lambda _: True)(step.properties):
            return None
    return Handoff(FUNCTION, (program.text(),))


def run(text: str, *tensors: tvm_ffi.Tensor) -> None:
    """Computes a group on tensors: its inputs, then its results. `ImportError` if PyTorch is not installed."""
    torch: Any = import_module("torch")
    program = Program.parse(str(text))
    given = [torch.from_dlpack(tensor) for tensor in tensors]
    values = given[: program.inputs]
    with torch.inference_mode():
        for step in program.steps:
            operands = [values[number] for number in step.operands]
            values.append(_FUNCTIONS[step.op](torch, step.properties, *operands))
        for number, result in zip(program.outputs, given[program.inputs :], strict=True):
            result.copy_(values[number])


tvm_ffi.register_global_func(FUNCTION, run, override=True)

BACKEND = Backend("torch", [FusionPattern(f"torch.{name[6:]}", is_op(name)) for name in _FUNCTIONS], codegen)
