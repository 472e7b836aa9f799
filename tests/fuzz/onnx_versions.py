"""Random nodes of old versions of ONNX's operators, against ONNX Runtime.

What is an input today was an attribute once, broadcasting had rules of its own, and defaults were others. Shapes have
symbolic dimensions, sizes of 0 and 1 and rank 0 among them, axes are counted from either end. ::

    pip install onnxruntime
    python -m tests.fuzz.onnx_versions [--mode native] [--first 0] [--count 2000] [KIND ...]

A value has to be what ONNX Runtime, the reference of the onnx package, or either of them computes from the model that
the package's version converter makes of it. A node that none of them computes is left out.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, helper, version_converter

from relax_dialect.frontend.onnx import OnnxImportError
from tests.fuzz import old_attributes, old_rules
from tests.fuzz.isolation import outcome
from tests.fuzz.old_attributes import Old
from tests.fuzz.onnx_variants import computed, of_reference, same, short
from tests.support.onnx_runtime import of_onnx_runtime

NAME = "onnx_versions"

Array = np.ndarray[Any, Any]

NEWEST = 21
"""The version to which old models are converted."""


KINDS: Mapping[str, Callable[[Old], None]] = {
    each.__name__: each
    for each in (
        *(
            old_attributes.squeeze,
            old_attributes.reduction,
            old_attributes.slicing,
            old_attributes.padding,
            old_attributes.clipping,
            old_attributes.dropping,
            old_attributes.top,
            old_attributes.splitting,
            old_attributes.scaling,
        ),
        *(
            old_rules.broadcasting,
            old_rules.products,
            old_rules.batches,
            old_rules.flattening,
            old_rules.reshaping,
            old_rules.gathering,
            old_rules.windows,
            old_rules.variadic,
            old_rules.casting,
            old_rules.slopes,
            old_rules.moving,
            old_rules.scanning,
        ),
    )
}


def made(seed: int, kinds: Sequence[str] = tuple(KINDS)) -> Old:
    """The graph of a seed."""
    g = Old(seed)
    KINDS[kinds[seed % len(kinds)]](g)
    return g


def answers(proto: ModelProto, feeds: dict[str, Array]) -> dict[str, list[Array]]:
    """What others compute, of the model and of the one in a newer version."""
    models = {"": proto}
    if all(node.op_type != "Scan" for node in proto.graph.node):  # The converter forgets the batch of version 8.
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                models[" converted"] = version_converter.convert_version(proto, NEWEST)
        except Exception:  # The converter fails in any way.
            models.pop(" converted", None)
    found = {
        f"{name}{said}": function(each, feeds)
        for said, each in models.items()
        for name, function in (("ONNX Runtime", of_onnx_runtime), ("reference", of_reference))
    }
    return {name: each for name, each in found.items() if each is not None}


def checked(seed: int, mode: str = "interpret", kinds: Sequence[str] = tuple(KINDS)) -> str:
    """What becomes of the graph of a seed; `AssertionError` if it is wrong."""
    g = made(seed, kinds)
    proto = g.model()
    said = f"version {g.opset} {helper.printable_node(g.nodes[0])} of "
    said += f"{ {name: (each.dtype.name, each.shape) for name, each in g.feeds.items()} } symbolic={g.is_symbolic} "
    said += f"{ {name: each.tolist() for name, each in g.constants.items() if each.size < 20} }"
    known = answers(proto, g.feeds)
    if not known:
        return "left out"
    try:
        found = computed(proto, g.feeds, mode)
    except OnnxImportError as error:
        return f"refused: {' '.join(str(error).split())[:300]}: {said}"
    except Exception as error:
        raise AssertionError(f"{type(error).__name__}: {error}: {said}: {[*known]}") from error
    if not any(len(found) == len(answer) and all(map(same, found, answer)) for answer in known.values()):
        others = {name: short(answer) for name, answer in known.items()}
        raise AssertionError(f"WRONG: {said}: {short(found)} for {others}")
    return "right"


def run(seed: int) -> None:
    """A graph of the seed, in every mode."""
    for mode in ("interpret", "bytecode", "native"):
        checked(seed, mode)


def main(kinds: Sequence[str], mode: str, first: int, count: int) -> int:
    """Tries some seeds; 1 if one is wrong."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):

        def one(seed: int = seed) -> None:
            text = checked(seed, mode, kinds)
            if text != "right":
                raise AssertionError(text)

        text = (outcome(one, 120) or "right").removeprefix("AssertionError: ")
        kind = next((each for each in ("right", "left out", "refused") if text.startswith(each)), "wrong")
        seen[f"{kinds[seed % len(kinds)]} {kind}"] += 1
        if kind not in ("right", "left out"):
            print(f"{seed} {kinds[seed % len(kinds)]}: {text[:900]}", flush=True)
    print(*(f"{kind}: {times}" for kind, times in sorted(seen.items())), sep=", ")
    return int(any(each.endswith("wrong") for each in seen))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--mode", choices=("interpret", "bytecode", "native"), default="interpret")
    parser.add_argument("--first", type=int, default=0, metavar="SEED")
    parser.add_argument("--count", type=int, default=2000)
    args = parser.parse_args()
    sys.exit(main(args.kinds or tuple(KINDS), args.mode, args.first, args.count))
