"""Devices in functions: programs are compiled for the CPU, and moving a tensor there gives the tensor."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from relax_dialect.frontend.tvmscript.text.arguments import Arguments
from relax_dialect.frontend.tvmscript.text.devices import CPU_KINDS, read_device
from relax_dialect.frontend.tvmscript.text.names import dotted

if TYPE_CHECKING:
    from relax_dialect.frontend.tvmscript.relax_func.expressions import ExpressionReader

_KINDS = ("cpu", "cuda", "rocm", "opencl", "metal", "vpi", "vulkan", "ext_dev", "hexagon", "webgpu")


def _moved(reader: ExpressionReader, node: ast.Call, name: str, parameters: str) -> object:
    names = {"vdevice": "device", "dst_vdevice": "device", "data": "x"}
    given = Arguments(reader.source, node, f"R.{name}", parameters, names)
    device = given.require("device")
    text = _made_by_python(reader, device) or read_device(reader, device)
    if text.partition(":")[0] not in CPU_KINDS:
        reader.fail(
            device, f"R.{name} expected a CPU, got {text}: programs are compiled for the CPU; leave R.{name} out"
        )
    return reader.read(given.require("x"))


def _made_by_python(reader: ExpressionReader, node: ast.expr) -> str | None:
    """The device of `tvm.cpu(0)`, which is no name of `R`."""
    kind = (dotted(node.func) or ("",))[-1] if isinstance(node, ast.Call) else ""
    if not isinstance(node, ast.Call) or kind not in _KINDS or reader.aliases.name_in("relax", node.func) is not None:
        return None
    return _named(reader, kind, node.args[0] if node.args else None)


def _device(reader: ExpressionReader, node: ast.Call) -> object:
    """`R.device("cuda", 1)`, a string here."""
    given = Arguments(reader.source, node, "R.device", "dev dev_id", {"device_type": "dev", "device_id": "dev_id"})
    return _named(reader, reader.text(given.require("dev")), given.get("dev_id"))


def _of_kind(kind: str) -> Callable[[ExpressionReader, ast.Call], object]:
    def read(reader: ExpressionReader, node: ast.Call) -> object:
        return _named(reader, kind, Arguments(reader.source, node, f"R.{kind}", "dev_id").get("dev_id"))

    return read


def _named(reader: ExpressionReader, kind: str, number: ast.expr | None) -> str:
    return kind if ":" in kind else f"{kind}:{0 if number is None else reader.integer(number)}"


DEVICE_FORMS: Mapping[str, Callable[[ExpressionReader, ast.Call], object]] = {
    "to_vdevice": lambda reader, node: _moved(reader, node, "to_vdevice", "x device"),
    "hint_on_device": lambda reader, node: _moved(reader, node, "hint_on_device", "x device memory_scope"),
    "device": _device,
    **{kind: _of_kind(kind) for kind in _KINDS},
}
