"""Builds and times programs with the packages of one source tree, for `benchmarks.gate`.

A script that imports nothing of `benchmarks`: the tree may be of another version. Requests and answers are pickled on
the standard streams: `("build", program, arrays)` gives the results as NumPy arrays, or a string that says why there
are none; `("time", seconds)` gives the seconds of processor time that one call took during so many seconds.
"""

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def build(program: str | bytes, arrays: Sequence[np.ndarray]) -> Callable[[], Any]:
    """A call of the function `main` of a text, or of an ONNX model."""
    from lowering import build as compile_module
    from lowering.parsing import parse_module
    from vm_dialect import VirtualMachine
    from vm_dialect.tensors import from_numpy

    if isinstance(program, str):
        module = parse_module(program)
    else:
        import onnx

        from relax_dialect.frontend.onnx import import_model

        module = import_model(onnx.load_model_from_string(program))
    function = VirtualMachine(compile_module(module))["main"]
    tensors = [from_numpy(array) for array in arrays]
    return lambda: function(*tensors)


def results_of(call: Callable[[], Any]) -> list[np.ndarray]:
    """Its results."""
    import tvm_ffi

    from vm_dialect.tensors import to_numpy

    found = call()
    several = isinstance(found, list | tuple | tvm_ffi.Array)
    return [np.array(to_numpy(each)) for each in (found if several else [found])]


def seconds_of(call: Callable[[], Any], seconds: float) -> float:
    """Processor time of one call, of as many as fit into so many seconds."""
    begin = time.process_time()
    call()
    count = max(1, int(seconds / max(time.process_time() - begin, 1e-7)))
    begin = time.process_time()
    for _ in range(count):
        call()
    return (time.process_time() - begin) / count


def serve() -> None:
    """Answers until there are no requests."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a tree prints is no answer
    call: Callable[[], Any] | None = None
    while True:
        try:
            request, *given = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer: object
        if request == "build":
            try:
                call = build(*given)
                answer = results_of(call)
            except Exception as error:  # any error of a tree is a row of the report
                answer = f"{type(error).__name__}: {error}"
        else:
            assert call is not None  # only what was built is timed
            answer = seconds_of(call, *given)
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve()
