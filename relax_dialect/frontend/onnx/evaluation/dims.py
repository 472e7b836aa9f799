"""Arithmetic and comparisons of elements that may be symbolic dimensions; `Open` where a prover cannot tell."""

from __future__ import annotations

from relax_dialect.frontend.onnx.evaluation.rule import Open
from relax_dialect.inference import DEFAULT_PROVER
from tir_dialect import dims
from tir_dialect.dims import Dim, constant

Element = Dim | int


def divide(a: Element, b: Element) -> Dim:
    """The quotient, where dividing towards zero and rounding down are the same."""
    return dims.floordiv(_at_least(0, a), _at_least(1, b))


def modulo(a: Element, b: Element) -> Dim:
    """The remainder, where `fmod` and `mod` are the same."""
    return dims.mod(_at_least(0, a), _at_least(1, b))


def minimum(a: Element, b: Element) -> Dim:
    """The lesser."""
    return dims.minimum(_dim(a), _dim(b))


def maximum(a: Element, b: Element) -> Dim:
    """The greater."""
    return dims.maximum(_dim(a), _dim(b))


def equal(a: Element, b: Element) -> bool:
    """Whether they are equal for all values of their symbols, if they are so for all or for none."""
    return _decided(DEFAULT_PROVER.equal(_dim(a), _dim(b)))


def less(a: Element, b: Element) -> bool:
    """Whether `a < b`, as `equal`."""
    return _decided(DEFAULT_PROVER.less(_dim(a), _dim(b)))


def greater(a: Element, b: Element) -> bool:
    """Whether `a > b`, as `equal`."""
    return less(b, a)


def at_least(a: Element, b: Element) -> bool:
    """Whether `a >= b`, as `equal`."""
    return not less(a, b)


def at_most(a: Element, b: Element) -> bool:
    """Whether `a <= b`, as `equal`."""
    return not less(b, a)


def _dim(value: Element) -> Dim:
    return value if isinstance(value, Dim) else constant(int(value))


def _at_least(least: int, value: Element) -> Dim:
    found = _dim(value)
    if not DEFAULT_PROVER.less_equal(least, found):
        raise Open
    return found


def _decided(verdict: bool | None) -> bool:
    if verdict is None:
        raise Open
    return bool(verdict)
