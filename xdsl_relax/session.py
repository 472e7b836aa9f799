"""Sessions: a model as ONNX Runtime presents one, inputs and outputs by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import tvm_ffi

from vm_dialect.dtypes import ELEMENT_TYPES
from vm_dialect.executable import Executable
from vm_dialect.executable.model import split_list
from xdsl_relax.loading import Source
from xdsl_relax.model import Model, compile

_CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class ValueInfo:
    """An input or output."""

    name: str
    shape: list[int | str | None] | None
    """Numbers, and expressions of symbols (`n`, `2 * n`); `None` for a dimension of any size, or for any rank."""
    type: str
    """As ONNX Runtime says it: `tensor(float)`, `tensor(int64)`; the type of a program otherwise: `shape[n]`."""


class Session:
    """Runs a model: `Session("model.onnx").run(None, {"x": x})`."""

    def __init__(
        self,
        source: Source | Executable | Model,
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        **options: Any,
    ):
        """`source` and `options` are those of `compile`.

        Of `sess_options` of ONNX Runtime the number of threads counts (`intra_op_num_threads`). `providers` have to be
        none, or to have the CPU among them: `ValueError` otherwise. `TypeError` for options of a model that is there.
        """
        names = [each if isinstance(each, str) else each[0] for each in providers or (_CPU,)]
        if _CPU not in names:
            raise ValueError(f"sessions run on the CPU, with the provider {_CPU}, got {', '.join(names)}")
        if threads := getattr(sess_options, "intra_op_num_threads", 0):
            options.setdefault("num_threads", threads)
        if isinstance(source, Model) and options:
            raise TypeError(f"Session() takes no {' and no '.join(options)} for a model that is compiled already")
        self.model = source if isinstance(source, Model) else compile(source, **options)

    def get_providers(self) -> list[str]:
        """What ONNX Runtime calls the processor that a session runs on."""
        return [_CPU]

    def get_inputs(self) -> list[ValueInfo]:
        """The inputs, in order."""
        function = self.model.function
        types = function.types.parameters or ["object"] * len(function.parameters)
        return [_info(name, kind) for name, kind in zip(function.parameters, types, strict=True)]

    def get_outputs(self) -> list[ValueInfo]:
        """The outputs, in order; `output_0`, `output_1`, ... if the model has no names for them."""
        function = self.model.function
        result = function.types.result or "object"
        types = list(split_list(result[1:-1])) if result.startswith("(") else [result]
        return [_info(name, kind) for name, kind in zip(self._output_names(len(types)), types, strict=True)]

    def _output_names(self, count: int) -> Sequence[str]:
        names = self.model.function.result_names
        return names if len(names) == count else [f"output_{index}" for index in range(count)]

    def run(self, output_names: Sequence[str] | None, inputs: Mapping[str, Any], run_options: Any = None) -> list[Any]:
        """The outputs that are named, or all, as arrays of NumPy. Options of a run of ONNX Runtime have no effect.

        `TypeError` for inputs that are missing or unknown, or are not given by name, and for one output name instead of
        a list; `KeyError` for an output that there is not.
        """
        if isinstance(output_names, str):
            raise TypeError(f"run expected a list of output names, such as [{output_names!r}], got {output_names!r}")
        if not isinstance(cast("object", inputs), Mapping):
            raise TypeError(f"run expected inputs by name, such as {{'x': x}}, got {type(inputs).__name__}")
        found = self.model.by_name(inputs)
        for name in output_names or ():
            if name not in found:
                raise KeyError(f"no output '{name}', the outputs are {', '.join(found)}")
        return [_as_array(found[name]) for name in output_names or found]

    def __repr__(self) -> str:
        return f"<Session {self.model.function.signature}>"


def _as_array(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, tvm_ffi.Tensor) else value


_TENSOR = re.compile(r"(?P<dtype>\w+|\?)\[(?P<dims>.*)\]")
_NAMES = {"float32": "float", "float64": "double"}


def _info(name: str, kind: str) -> ValueInfo:
    match = _TENSOR.fullmatch(kind)
    element = ELEMENT_TYPES.get(kind if match is None else match["dtype"])
    if match is None or match["dtype"] == "shape":
        return ValueInfo(name, [] if element is not None else None, kind)
    dtype = "?" if element is None else _NAMES.get(element.ffi_name, element.ffi_name)
    shape = None if match["dims"] == "..." else [_dim(each) for each in split_list(match["dims"])]
    return ValueInfo(name, shape, f"tensor({dtype})")


def _dim(text: str) -> int | str | None:
    return int(text) if text.isdecimal() else None if text == "?" else text
