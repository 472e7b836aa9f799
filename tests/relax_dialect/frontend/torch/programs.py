"""Exported programs of tests, and their outputs by the importer and by PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import tvm_ffi
from xdsl.dialects.builtin import ModuleOp

from lowering import build
from relax_dialect.frontend.torch import from_exported_program
from relax_dialect.interpreter import run
from vm_dialect import VirtualMachine


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def export(model: Any, args: Sequence[Any], dynamic: Any = None) -> Any:
    """A function or module as an exported program; what PyTorch warns of is its own affair."""
    if not isinstance(model, torch.nn.Module):
        model, dynamic = Function(model), None if dynamic is None else (dynamic,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.export.export(model, tuple(args), dynamic_shapes=dynamic)


def assert_same(model: Any, args: Sequence[Any], dynamic: Any = None, *others: Sequence[Any]) -> ModuleOp:
    """Compares the imported module, in all modes, with PyTorch, also on other arguments; gives it."""
    module = from_exported_program(export(model, args, dynamic))
    compiled = [VirtualMachine(build(module.clone(), mode=mode))["main"] for mode in ("bytecode", "native")]
    for given in (args, *others):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = torch.utils._pytree.tree_leaves(model(*given))
        tensors = [each for each in given if isinstance(each, torch.Tensor)]
        assert_close(run(module.clone(), "main", [each.numpy() for each in tensors]), expected)
        for main in compiled:
            assert_close(main(*tensors), expected)
    return module


def assert_close(found: Any, expected: Sequence[Any]) -> None:
    """Shapes, dtypes and elements are the same, up to rounding."""
    results = list(found) if isinstance(found, tuple | list | tvm_ffi.Array) else [found]
    assert len(results) == len(expected)
    for at, (one, other) in enumerate(zip(map(_array, results), map(_array, expected), strict=True)):
        assert (one.shape, one.dtype) == (other.shape, other.dtype), f"output {at}"
        np.testing.assert_allclose(one, other, 1e-4, 1e-5, err_msg=f"output {at}")


def _array(value: Any) -> Any:
    if isinstance(value, np.ndarray | int | float):
        return np.asarray(value)
    return (value if isinstance(value, torch.Tensor) else torch.from_dlpack(value)).detach().numpy()
