"""Variants of the onnx package's tests of single operators, against ONNX Runtime or the package's reference.

A test is a node with inputs. Its variants have other dtypes that the schema allows, sizes of 0 and 1, special values,
and neither some optional input nor some attribute; axes are counted from the end. ::

    pip install onnxruntime
    python -m tests.fuzz.onnx_variants [--mode native] [--kind dtype] [OPERATOR ...]

Prints what is wrong, and how often each outcome was seen. A variant that neither of the two computes is left out;
where they differ, either is right.
"""

from __future__ import annotations

import argparse
import pkgutil
import random
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import IO, Any

import numpy as np
import onnx
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper
from onnx.backend.test.case import node as node_tests
from onnx.reference import ReferenceEvaluator

from lowering import build
from relax_dialect.frontend.onnx import OnnxImportError, import_model
from relax_dialect.interpreter import run as interpret
from tests.fuzz.isolation import outcome
from tests.support.onnx_runtime import of_onnx_runtime
from vm_dialect import VirtualMachine
from vm_dialect.tensors import to_numpy

NAME = "onnx_variants"

Array = np.ndarray[Any, Any]

KINDS = ("same", "dtype", "size", "axis", "attribute", "input", "special")

RANDOM = {"Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}

OUTPUT_ONLY = {"tensor(string)", "tensor(complex64)", "tensor(complex128)"}

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38, -1.0, 0.5)


@dataclass(frozen=True)
class Variant:
    """A node with its inputs; `None` for those that it leaves out."""

    said: str
    node: NodeProto
    opset: int
    inputs: tuple[Array | None, ...]


def modules() -> list[str]:
    """The modules of the package's tests, some one for each operator."""
    return [each.name for each in pkgutil.iter_modules(node_tests.__path__) if not each.ispkg]


@cache
def bases(module: str | None = None) -> list[Variant]:
    """The tests of single nodes whose inputs are tensors: of a module, which takes no time, or all, which takes 5 s."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if module is None:
            cases = node_tests.collect_testcases(None)
        else:
            before = len(node_tests._NodeTestCases)
            import_module(f"{node_tests.__name__}.{module}")
            cases = node_tests._NodeTestCases[before:]
    found: list[Variant] = []
    for case in cases:
        graph, sets = case.model.graph, case.data_sets
        if len(graph.node) != 1 or not sets or graph.node[0].op_type in RANDOM:
            continue
        node = graph.node[0]
        if any(attribute.type == AttributeProto.GRAPH for attribute in node.attribute):
            continue
        feeds = dict(zip((each.name for each in graph.input), sets[0][0], strict=False))
        arrays = tuple(feeds.get(name) for name in node.input)
        if all(each is None or isinstance(each, np.ndarray | np.generic) for each in arrays):
            opset = next(each.version for each in case.model.opset_import if each.domain == node.domain)
            taken = tuple(None if each is None else np.asarray(each) for each in arrays)
            found.append(Variant(case.name, node, opset, taken))
    return found


def _schema(base: Variant) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(base.node.op_type, base.opset, base.node.domain)


def _parameters(base: Variant) -> list[str]:
    """What the schema calls the type of each input."""
    formal = _schema(base).inputs
    return [formal[min(at, len(formal) - 1)].type_str for at in range(len(base.inputs))]


def _changed(base: Variant, said: str, inputs: Any = None, **node: Any) -> Variant:
    copy = NodeProto()
    copy.CopyFrom(base.node)
    if "attributes" in node:
        del copy.attribute[:]
        copy.attribute.extend(node["attributes"])
    taken = base.inputs if inputs is None else tuple(inputs)
    for at, each in enumerate(taken):
        if each is None:
            copy.input[at] = ""
    return Variant(f"{base.said} {said}", copy, base.opset, taken)


def _dtypes(base: Variant) -> Iterator[Variant]:
    """Each dtype that the schema allows."""
    used = _parameters(base)
    allowed = {each.type_param_str: each.allowed_type_strs for each in _schema(base).type_constraints}
    for parameter in dict.fromkeys(used):
        for text in sorted(allowed.get(parameter, [])):
            if not text.startswith("tensor(") or text in OUTPUT_ONLY:
                continue
            kind = text[len("tensor(") : -1].upper()
            dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, {"FLOAT": "FLOAT"}.get(kind, kind)))
            inputs = list(base.inputs)
            for at, (each, name) in enumerate(zip(inputs, used, strict=True)):
                if name == parameter and each is not None and each.dtype.kind not in "OU":
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        inputs[at] = each.astype(dtype)
            if any(
                a is not None and a.dtype != b.dtype for a, b in zip(inputs, base.inputs, strict=True) if b is not None
            ):
                yield _changed(base, f"{parameter}={kind.lower()}", inputs)


def _sizes(base: Variant) -> Iterator[Variant]:
    """Each size as 0 and as 1, wherever it occurs, and each dimension alone."""
    sizes = sorted({size for each in base.inputs if each is not None for size in each.shape if size > 1})
    for size in sizes:
        for new in (0, 1):
            taken = [each if each is None else _cut(each, size, new) for each in base.inputs]
            yield _changed(base, f"{size}->{new}", taken)
    first = base.inputs[0] if base.inputs else None
    for axis in range(first.ndim if first is not None else 0):
        cut = np.take(first, range(0), axis) if first is not None else None
        yield _changed(base, f"dimension {axis} of the first input = 0", [cut, *base.inputs[1:]])


def _cut(array: Array, size: int, new: int) -> Array:
    for axis, each in enumerate(array.shape):
        if each == size:
            array = np.take(array, range(new), axis)
    return array


def _axes(base: Variant) -> Iterator[Variant]:
    """Axes counted from the other end."""
    rank = base.inputs[0].ndim if base.inputs and base.inputs[0] is not None else 0
    for at, attribute in enumerate(base.node.attribute):
        if attribute.name in ("axis", "axes") and rank:
            value = helper.get_attribute_value(attribute)
            values = [value] if isinstance(value, int) else value
            turned = [each - rank if each >= 0 else each + rank for each in values]
            new = helper.make_attribute(attribute.name, turned[0] if isinstance(value, int) else turned)
            kept = [each for other, each in enumerate(base.node.attribute) if other != at]
            yield _changed(base, f"{attribute.name}={turned}", attributes=[*kept, new])
    for at, formal in enumerate(_schema(base).inputs[: len(base.inputs)]):
        each = base.inputs[at]
        if formal.name in ("axis", "axes") and each is not None and rank:
            turned = np.where(each >= 0, each - rank, each + rank).astype(each.dtype)
            yield _changed(base, f"{formal.name}={turned}", [*base.inputs[:at], turned, *base.inputs[at + 1 :]])


def _attributes(base: Variant) -> Iterator[Variant]:
    """Without each attribute, and with other values of those that are numbers of a few choices."""
    for at, attribute in enumerate(base.node.attribute):
        kept = [each for other, each in enumerate(base.node.attribute) if other != at]
        yield _changed(base, f"no {attribute.name}", attributes=kept)
        if attribute.type == AttributeProto.INT and attribute.name not in ("to", "dtype"):
            for value in {0, 1, 2, -1} - {attribute.i}:
                new = helper.make_attribute(attribute.name, value)
                yield _changed(base, f"{attribute.name}={value}", attributes=[*kept, new])


def _optional(base: Variant) -> Iterator[Variant]:
    """Without each optional input."""
    formal = _schema(base).inputs
    for at in range(min(len(base.inputs), len(formal))):
        if formal[at].option == onnx.defs.OpSchema.FormalParameterOption.Optional and base.inputs[at] is not None:
            yield _changed(base, f"no {formal[at].name}", [*base.inputs[:at], None, *base.inputs[at + 1 :]])


def _specials(base: Variant) -> Iterator[Variant]:
    """Infinities, NaN, signed zeros and extremes among the elements of the first input, and extremes of integers."""
    first = base.inputs[0] if base.inputs else None
    if first is None or first.size == 0 or first.dtype.kind not in "fiu":
        return
    rng = random.Random(base.said)
    new = first.copy().reshape(-1)
    ends = [np.iinfo(first.dtype).min, np.iinfo(first.dtype).max, 0, 1] if first.dtype.kind in "iu" else SPECIAL
    for at in range(new.size):
        if rng.randrange(2):
            with np.errstate(all="ignore"):
                new[at] = np.array(rng.choice(ends)).astype(first.dtype)
    yield _changed(base, "special values", [new.reshape(first.shape), *base.inputs[1:]])


MAKERS = {
    "same": lambda base: iter([base]),
    "dtype": _dtypes,
    "size": _sizes,
    "axis": _axes,
    "attribute": _attributes,
    "input": _optional,
    "special": _specials,
}


def variants(base: Variant, kind: str) -> list[Variant]:
    """The variants of one kind."""
    return list(MAKERS[kind](base))


def model(variant: Variant) -> tuple[ModelProto, dict[str, Array]]:
    """The model of a node, and its inputs by name."""
    node = NodeProto()
    node.CopyFrom(variant.node)
    while node.input and not node.input[-1]:
        del node.input[-1]
    feeds = {name: each for name, each in zip(node.input, variant.inputs, strict=False) if name and each is not None}
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
        for name, each in feeds.items()
    ]
    outputs = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in node.output if name]
    graph = helper.make_graph([node], "graph", inputs, outputs)
    opsets = [helper.make_opsetid(node.domain, variant.opset)]
    if node.domain:
        opsets.append(helper.make_opsetid("", 21))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds


def of_reference(proto: ModelProto, feeds: dict[str, Array]) -> list[Array] | None:
    """What the reference of the onnx package computes; `None` if it fails."""
    try:
        inferred = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found: Any = ReferenceEvaluator(proto).run(None, feeds)
        arrays = [np.asarray(each) for each in found]
        kinds = [each.type.tensor_type.elem_type for each in inferred.graph.output]
        is_typed = [
            kind in (0, helper.np_dtype_to_tensor_dtype(each.dtype)) for kind, each in zip(kinds, arrays, strict=True)
        ]
        return arrays if all(is_typed) else None
    except Exception:  # It fails in any way.
        return None


def computed(proto: ModelProto, feeds: dict[str, Array], mode: str) -> list[Array]:
    """What ours computes."""
    module = import_model(proto)
    values = list(feeds.values())
    found: Any = interpret(module, "main", values) if mode == "interpret" else None
    if mode != "interpret":
        found = VirtualMachine(build(module, mode="native" if mode == "native" else "bytecode"))["main"](*values)
    results = list(found) if isinstance(found, tuple | list) or not hasattr(found, "shape") else [found]
    return [each if isinstance(each, np.ndarray) else np.asarray(to_numpy(each)) for each in results]


TOLERANCES = {"float16": 5e-3, "bfloat16": 4e-2, "float64": 1e-6}


def same(ours: Array, theirs: Array) -> bool:
    """Whether two results are equal, up to rounding."""
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return False
    if ours.dtype.kind in "iub":
        return np.array_equal(ours, theirs)
    tolerance = TOLERANCES.get(ours.dtype.name, 1e-4)
    with np.errstate(all="ignore"):
        return np.allclose(ours.astype(np.float64), theirs.astype(np.float64), tolerance, tolerance, equal_nan=True)


def checked(variant: Variant, mode: str, ours_is_done: Callable[[], object] = lambda: None) -> str:
    """What becomes of a variant; `AssertionError` if it is wrong.

    ONNX Runtime is asked last, as it crashes for some.
    """
    if any(each is not None and each.dtype.kind in "OU" for each in variant.inputs):
        return "left out"
    proto, feeds = model(variant)
    reference = of_reference(proto, feeds)
    found, refusal, failure = list[Array](), "", None
    try:
        found = computed(proto, feeds, mode)
    except OnnxImportError as error:
        refusal = f"refused: {' '.join(str(error).split())[:300]}"
    except Exception as error:  # Raised again if another computes it.
        failure = error
    ours_is_done()
    answers = {"ONNX Runtime": of_onnx_runtime(proto, feeds), "reference": reference}
    known = {name: each for name, each in answers.items() if each is not None}
    if not known or any(each.dtype.kind in "OUc" for answer in known.values() for each in answer):
        return "left out"
    if failure is not None:
        raise failure
    if refusal:
        raise AssertionError(refusal)
    if any(len(found) == len(answer) and all(map(same, found, answer)) for answer in known.values()):
        return "right"
    raise AssertionError(f"WRONG: {short(found)} for { {name: short(answer) for name, answer in known.items()} }")


def short(arrays: list[Array]) -> list[str]:
    """Dtypes, shapes and first elements."""
    return [f"{each.dtype}{list(each.shape)} {each.ravel()[:6]}" for each in arrays]


def run(seed: int) -> None:
    """A variant of the seed, in every mode."""
    rng = random.Random(seed)
    found = list[Variant]()
    while not found:
        if chosen := bases(rng.choice(modules())):
            found = variants(rng.choice(chosen), rng.choice(KINDS))
    variant = rng.choice(found)
    for mode in ("interpret", "bytecode", "native"):
        try:
            checked(variant, mode)
        except AssertionError as error:
            if "refused" not in str(error):
                raise AssertionError(f"{variant.said}, {mode}: {error}") from None


def main(names: list[str], mode: str, kinds: list[str]) -> int:
    """Tries all variants of operators; 1 if one is wrong."""
    if find_spec("onnxruntime") is not None:
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
    seen: Counter[str] = Counter()
    for base in bases():
        if names and base.node.op_type not in names:
            continue
        chosen = [each for kind in kinds for each in variants(base, kind)]
        texts = _outcomes(chosen, mode)
        for variant, text in zip(chosen, texts, strict=True):
            seen[text.partition(":")[0]] += 1
            if text not in ("right", "left out"):
                print(f"{variant.node.op_type}: {variant.said}: {text[:700]}", flush=True)
    print(*(f"{kind}: {times}" for kind, times in seen.most_common()), sep=", ")
    return int(bool(set(seen) - {"right", "left out", "refused"}))


_OURS_IS_DONE = "ours is done: "


def _outcomes(chosen: list[Variant], mode: str) -> list[str]:
    """The outcome of each variant, in a process for all, and in one of its own for what ends that."""
    texts: list[str] = []
    while len(texts) < len(chosen):
        with tempfile.TemporaryFile("w+") as file:
            rest = chosen[len(texts) :]
            said = outcome(lambda file=file, rest=rest: _write(file, rest, mode), 120)
            file.seek(0)
            *lines, unfinished = file.read().split("\n")
        texts += [line.removeprefix(_OURS_IS_DONE) for line in lines]
        if said is not None:
            texts.append("left out" if unfinished else f"CRASH: {said}")
    return texts


def _write(file: IO[str], chosen: list[Variant], mode: str) -> None:
    """Writes the outcome of each variant to a file."""

    def ours_is_done() -> None:
        file.write(_OURS_IS_DONE)
        file.flush()

    for variant in chosen:
        try:
            text = checked(variant, mode, ours_is_done)
        except AssertionError as error:
            text = str(error)
        except Exception as error:  # What is not expected is what is looked for.
            *_, last = traceback.extract_tb(error.__traceback__)
            text = f"{type(error).__name__}: {error} ({last.filename.rpartition('/')[2]}:{last.lineno})"
        file.write(" ".join(text.split()) + "\n")
        file.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--mode", choices=("interpret", "bytecode", "native"), default="interpret")
    parser.add_argument("--kind", choices=KINDS, action="append", help="all kinds unless given")
    args = parser.parse_args()
    sys.exit(main(args.operators, args.mode, args.kind or list(KINDS)))
