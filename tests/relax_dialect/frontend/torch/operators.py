"""The samples that PyTorch tests its operators with, imported, run and compared with PyTorch.

::

    pip install torch expecttest
    python -m tests.relax_dialect.frontend.torch.operators [--mode native] [--dtype int64] [--samples 5] [NAME ...]

With `--onnx` (`pip install onnxscript`) PyTorch writes each as an ONNX model, which the ONNX importer reads.

Prints each operator with what became of its samples, and how many there were of each. Those that `torch.export` does
not export, that write into their inputs, draw random numbers or leave memory unset, and whose results are no dense
tensors, are left out, which is said with the reason. Each operator has a process of its own.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from relax_dialect.frontend.torch import TorchImportError, from_exported_program
from relax_dialect.interpreter import run
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy

SECONDS = 300
"""For the samples of an operator."""

TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 6e-2, torch.float64: 1e-6, torch.complex128: 1e-6}
"""Relative errors of results by dtype."""

TOLERANCE = 5e-4
"""The relative error of all other results."""

UNSET = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_"}
"""Operators whose results are memory that is not set."""


class Call(torch.nn.Module):
    """An operator applied to its arguments, of which the tensors are inputs."""

    def __init__(self, function: Callable[..., Any], arguments: Any):
        super().__init__()
        leaves, self._structure = pytree.tree_flatten(arguments)
        self.tensors = [each.detach().clone() for each in leaves if isinstance(each, torch.Tensor)]
        self._leaves = [None if isinstance(each, torch.Tensor) else each for each in leaves]
        self._positions = [at for at, each in enumerate(leaves) if isinstance(each, torch.Tensor)]
        self._function = function

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self._leaves)
        for at, tensor in zip(self._positions, tensors, strict=True):
            leaves[at] = tensor
        arguments, keywords = pytree.tree_unflatten(leaves, self._structure)
        return self._function(*arguments, **keywords)


def outcome(function: Callable[..., Any], sample: Any, mode: str, *, onnx: bool = False) -> str:
    """`right`, why the sample is left out, or what went wrong."""
    call = Call(function, ((sample.input, *sample.args), sample.kwargs))
    try:
        torch.manual_seed(0)
        given = tuple(each.clone() for each in call.tensors)
        expected = [each for each in pytree.tree_leaves(call(*given)) if isinstance(each, torch.Tensor)]
        program = torch.export.export(call, tuple(each.clone() for each in call.tensors))
        is_changed = bool(program.run_decompositions({}).graph_signature.user_inputs_to_mutate)
    except Exception as error:  # PyTorch's own operators fail in any way.
        return f"left out: not exported: {_said(error)}"
    if is_changed:
        return "left out: writes into inputs"
    if not expected or any(each.layout != torch.strided for each in (*expected, *given)):
        return "left out: no dense tensors"
    try:
        proto = _as_onnx(program) if onnx else None
        if isinstance(proto, str):
            return f"left out: {proto}"
        module = from_exported_program(program) if proto is None else import_model(proto)
        main = module.body.block.ops
        if any("%seed" in str(op).splitlines()[0] for op in main):
            return "left out: random numbers"
        inputs = [_array(each) for each in call.tensors]
        if mode == "interpret":
            made = run(module, "main", inputs)
        else:
            made = VirtualMachine(build(module, mode="native" if mode == "native" else "bytecode"))["main"](*inputs)
        results = list(made) if not hasattr(made, "shape") else [made]
    except (TorchImportError, OnnxImportError) as error:
        return f"refused: {_said(error)}"
    except Exception as error:
        return f"{type(error).__name__}: {_said(error)}"
    arrays = [each if isinstance(each, np.ndarray) else np.asarray(to_numpy(each)) for each in results]
    return _difference(arrays, expected)


def _as_onnx(program: Any) -> Any:
    """The ONNX model that PyTorch makes of a program, or why it makes none."""
    try:
        return torch.onnx.export(program, (), dynamo=True, verbose=False).model_proto
    except Exception as error:  # PyTorch's exporter fails in any way.
        return f"no ONNX model: {_said(error)}"


def _said(error: Exception) -> str:
    """The start of an error's message, in one line."""
    return f"{' '.join(str(error).split())[:300]}" or type(error).__name__


def _array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor as programs take and return it: pairs of reals for complex numbers."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.is_complex():
        return torch.view_as_real(plain).numpy()
    if plain.dtype == torch.bfloat16:
        return plain.contiguous().view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def _difference(results: Sequence[np.ndarray], expected: Sequence[torch.Tensor]) -> str:
    if len(results) != len(expected):
        return f"WRONG: {len(results)} results for {len(expected)}"
    for found, tensor in zip(results, expected, strict=True):
        wanted = _array(tensor)
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            return f"WRONG: {found.dtype} {list(found.shape)} for {wanted.dtype} {list(wanted.shape)}"
        if tensor.is_floating_point() or tensor.is_complex():
            found, wanted = found.astype(np.float64), wanted.astype(np.float64)
        tolerance = TOLERANCES.get(tensor.dtype, TOLERANCE) if wanted.dtype.kind == "f" else 0
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=0) if wanted.dtype.kind == "f" else 0
        if not np.allclose(found, wanted, tolerance, tolerance * max(1, min(float(scale), 1e3)), equal_nan=True):
            return f"WRONG: values {found.ravel()[:4]} for {wanted.ravel()[:4]}"
    return "right"


def name_of(operator: Any) -> str:
    """The name of an operator of the database, with that of its variant."""
    return ".".join(each for each in (operator.name, operator.variant_test_name) if each)


def _samples(index: int, dtype: torch.dtype, count: int, mode: str, onnx: bool, pipe: Connection) -> None:
    """Sends the outcomes for some samples of an operator."""
    operator = op_db[index]
    if operator.name in UNSET:
        pipe.send(["left out: memory that is not set"])
        return
    try:
        samples = list(operator.sample_inputs("cpu", dtype))
    except Exception as error:  # A package that PyTorch's samples need, or samples that it does not make.
        pipe.send([f"left out: no samples: {_said(error)}"])
        return
    chosen = samples[:: max(1, len(samples) // count)][:count]
    pipe.send([outcome(operator.op, sample, mode, onnx=onnx) for sample in chosen])


def outcomes(index: int, dtype: torch.dtype, count: int, mode: str, onnx: bool) -> list[str]:
    """What became of some samples of an operator, in a process of its own."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    arguments = (index, dtype, count, mode, onnx, sender)
    process = multiprocessing.get_context("fork").Process(target=_samples, args=arguments)
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(SECONDS) else ["takes too long"]
    except EOFError:
        process.join()
        return [f"CRASH: exit {process.exitcode}"]
    finally:
        process.kill()
        process.join()


def main(names: Iterable[str], dtype: torch.dtype, count: int, mode: str, onnx: bool) -> int:
    """Tries the operators of these names, or all; 1 if a value is wrong or a process ended."""
    wanted, seen = set(names), Counter[str]()
    first = op_db[0]
    # Loads PyTorch's exporter and this compiler here, once for all processes.
    outcome(first.op, next(iter(first.sample_inputs("cpu", torch.float32))), mode, onnx=onnx)
    for index, operator in enumerate(op_db):
        name = name_of(operator)
        if dtype not in operator.dtypes or (wanted and name not in wanted):
            continue
        for text, times in Counter(outcomes(index, dtype, count, mode, onnx)).items():
            print(f"{name:50} {times} {text}", flush=True)
            seen[text.partition(":")[0]] += times
    print(*(f"{kind}: {times}" for kind, times in seen.most_common()), sep=", ")
    return int(bool(seen["WRONG"] or seen["CRASH"]))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--mode", choices=("interpret", "bytecode", "native"), default="interpret")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--samples", type=int, default=5, help="at most so many of each operator")
    parser.add_argument("--onnx", action="store_true", help="by way of ONNX models that PyTorch writes")
    args = parser.parse_args()
    sys.exit(main(args.names, getattr(torch, args.dtype), args.samples, args.mode, args.onnx))
