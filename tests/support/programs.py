"""Programs in every way that they can run, and passes between two runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tvm_ffi
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass, PassPipeline, PassPipelineCallbackType

from lowering.context import make_context
from lowering.parsing import parse_module
from lowering.registry import pass_factories
from lowering.verify import verify_module
from tests.support.sweeps import compiled_modes, lesser_machines
from vm_dialect.strings import StringArray
from vm_dialect.tensors import from_numpy, to_numpy

MODES = ("interpret", "bytecode", "native")

EVERY = 97
"""A quick run runs native code of one program in so many as on each of `LESSER` machines."""


@dataclass(frozen=True)
class Tolerance:
    """How much two results may differ: `|a - b| <= absolute + relative * |b|`."""

    relative: float = 1e-5
    absolute: float = 1e-6


EXACT = Tolerance(0, 0)
IDENTICAL = Tolerance(-1, -1)
"""Even -0 differs from 0; all NaN are one."""


def runner(module: ModuleOp, entry: str, mode: str, target: str | None = None) -> Callable[..., object]:
    """The function `entry` of a module, in one of `MODES`; it takes and gives NumPy arrays and plain values.

    The module is left as it is. Code is for this machine, or for another one that this machine can be taken for.
    """
    if mode == "interpret":
        from relax_dialect.interpreter import run

        return lambda *args: as_plain(run(module, entry, as_arguments(args)))
    from lowering import build
    from vm_dialect import VirtualMachine

    function = VirtualMachine(build(module.clone(), mode=mode, target=target))[entry]
    return lambda *args: as_plain(function(*as_arguments(args)))


def run_everywhere(
    program: str | ModuleOp, entry: str, args: Sequence[object], tolerance: Tolerance = Tolerance()
) -> object:
    """Runs `entry` in all `MODES`, each with its own copies of the arguments, and gives the interpreter's result.

    Fails if the results differ, or if what was done to the arguments differs. Native code of some programs also runs as
    on machines with fewer instructions (`lesser_machines`).
    """
    return _run(program, entry, args, tolerance, lambda _: MODES[1:])


def run_in_turn(
    program: str | ModuleOp, entry: str, args: Sequence[object], tolerance: Tolerance = Tolerance()
) -> object:
    """As `run_everywhere`, but a quick run compiles the program in one mode: for tests of what all modes share."""
    return _run(program, entry, args, tolerance, compiled_modes)


def _run(
    program: str | ModuleOp,
    entry: str,
    args: Sequence[object],
    tolerance: Tolerance,
    modes: Callable[[str], Sequence[str]],
) -> object:
    module = parse_module(program) if isinstance(program, str) else program
    verify_module(module)
    text = str(module)
    outcomes = {mode: run_with_copies(runner(module, entry, mode), args) for mode in ("interpret", *modes(text))}
    reference = outcomes.pop("interpret")
    for mode, outcome in outcomes.items():
        assert_same(outcome, reference, tolerance, mode)
    for machine in lesser_machines(text, EVERY):
        made = run_with_copies(runner(module, entry, "native", machine), args)
        assert_same(made, reference, tolerance, f"native for {machine}")
    return reference[0]


def check_pass(
    program: str | ModuleOp,
    pipeline: str,
    inputs: Sequence[Sequence[object]],
    *,
    entry: str = "main",
    tolerance: Tolerance = EXACT,
) -> ModuleOp:
    """Interprets `entry` on each of the inputs before and after `pipeline`; gives the rewritten module.

    Also checks that the result is valid, that the pipeline changes nothing when it runs again, and that the text of the
    result is read back as the same module.
    """
    module = parse_module(program) if isinstance(program, str) else program.clone()
    verify_module(module)
    before = [run_with_copies(runner(module, entry, "interpret"), args) for args in inputs]
    run_pipeline(module, pipeline)
    after = [run_with_copies(runner(module, entry, "interpret"), args) for args in inputs]
    for was, now in zip(before, after, strict=True):
        assert_same(now, was, tolerance, f"after {pipeline}")
    text = str(module)
    assert str(parse_module(text)) == text, f"the text after {pipeline} is read as another module"
    _pipeline(pipeline).apply(make_context(), module)
    assert str(module) == text, f"{pipeline} is not idempotent"
    return module


def run_pipeline(module: ModuleOp, pipeline: str) -> None:
    """Rewrites `module` by named passes, written as for `relax-opt -p`, and verifies it after each."""

    def verify(before: ModulePass | None, result: ModuleOp, _: ModulePass | None) -> None:
        if before is not None:
            verify_module(result)

    _pipeline(pipeline, verify).apply(make_context(), module)


def _pipeline(text: str, callback: PassPipelineCallbackType | None = None) -> PassPipeline:
    from xdsl.transforms import get_all_passes

    return PassPipeline.parse_spec(get_all_passes() | pass_factories(), text, callback)


Outcome = tuple[object, tuple[object, ...]]
"""What a call returned, and its arguments afterwards."""


def run_with_copies(function: Callable[..., object], args: Sequence[object]) -> Outcome:
    """Calls `function` on copies of the arrays among the arguments."""
    copies = tuple(arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args)
    return function(*copies), copies


def assert_same(got: object, expected: object, tolerance: Tolerance, what: str) -> None:
    """Fails unless both have the same structure, shapes and dtypes, and values within the tolerance; NaN equals NaN."""
    if isinstance(expected, tuple):
        assert isinstance(got, tuple), f"{what}: expected a tuple, got {type(got).__name__}"
        assert len(got) == len(expected), f"{what}: expected {len(expected)} fields, got {len(got)}"
        for index, pair in enumerate(zip(got, expected, strict=True)):
            assert_same(*pair, tolerance, f"{what}[{index}]")
    elif isinstance(expected, np.ndarray):
        assert isinstance(got, np.ndarray), f"{what}: expected a tensor, got {type(got).__name__}"
        assert (got.dtype, got.shape) == (expected.dtype, expected.shape), what
        if tolerance == IDENTICAL:
            np.testing.assert_array_equal(_with_signs(got), _with_signs(expected), err_msg=what)
        elif tolerance.absolute < 1 and expected.dtype.kind in "iub":
            np.testing.assert_array_equal(got, expected, err_msg=what)
        else:
            np.testing.assert_allclose(
                _widened(got), _widened(expected), tolerance.relative, tolerance.absolute, err_msg=what
            )
    else:
        assert type(got) is type(expected), (
            f"{what}: expected {expected!r} of {type(expected)}, got {got!r} of {type(got)}"
        )
        assert got == expected, what


def as_arguments(args: Sequence[object]) -> tuple[object, ...]:
    """Arguments for any mode: tensors on the memory of the arrays, and arrays of strings."""
    return tuple(from_numpy(arg) if isinstance(arg, np.ndarray) and arg.dtype.kind not in "OU" else arg for arg in args)


def as_plain(result: object) -> object:
    """A result with tensors as arrays and sequences as tuples, whatever mode it comes from."""
    if isinstance(result, tvm_ffi.Tensor):
        return to_numpy(result)
    if isinstance(result, StringArray):
        return result.array
    if isinstance(result, tuple | list | tvm_ffi.Array):
        return tuple(as_plain(field) for field in result)
    return result


def _with_signs(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The bits of floats as integers, those of one NaN for all of them."""
    if array.dtype.kind in "iub":
        return array
    kind = np.dtype(f"u{array.dtype.itemsize}")
    return np.where(np.isnan(array), kind.type(-1 & ((1 << 8 * kind.itemsize) - 1)), array.view(kind))


def _widened(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """`bfloat16` and `float16` as `float32`, with which NumPy's comparison can do arithmetic."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind not in "iu" else array
