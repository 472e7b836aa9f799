"""Ops as their generic form can spell them: each part left out, doubled or of a wrong kind.

The generic form of MLIR checks nothing, so a verifier meets anything. It may accept it, or raise one of `REFUSALS`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FlatSymbolRefAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from lowering.parsing import parse_module
from relax_dialect.struct_info.types import FuncType, ObjectType, PrimType, ShapeType, TupleType
from relax_dialect.struct_info.types import TensorType as RelaxTensorType
from tir_dialect.types import BufferType
from vm_dialect import types as vm

ROOT = Path(__file__).parents[1] / "filecheck"
REFUSALS = (VerifyException, ParseError, DiagnosticException)
DIALECTS = ("relax", "tir", "vm")

TYPES: Sequence[Attribute] = (
    i1,
    i32,
    f32,
    RelaxTensorType(("n", 3), f32),
    RelaxTensorType((), i64),
    RelaxTensorType(None, None),
    ObjectType(),
    ShapeType(("n",)),
    PrimType(i64),
    TupleType(()),
    FuncType((), ObjectType()),
    BufferType(("n",), f32),
    vm.TensorType(2, f32),
    vm.ShapeType(1),
    vm.OBJECT,
    vm.STORAGE,
    TensorType(f32, [2]),
)
ATTRIBUTES: Sequence[Attribute] = (
    UnitAttr(),
    IntegerAttr(-1, i64),
    IntegerAttr(0, i32),
    IntegerAttr((1 << 62), i64),
    BoolAttr.from_bool(True),
    FloatAttr(float("nan"), f32),
    StringAttr(""),
    StringAttr("no such thing"),
    ArrayAttr([]),
    ArrayAttr([UnitAttr()]),
    ArrayAttr([IntegerAttr(-7, i64)] * 9),
    ArrayAttr([StringAttr("n"), StringAttr("n")]),
    DenseArrayBase.from_list(i64, [-1, 1 << 60]),
    DenseArrayBase.from_list(i32, []),
    DenseIntOrFPElementsAttr.from_list(TensorType(i64, [2]), [1, 2]),
    DictionaryAttr({}),
    FlatSymbolRefAttr("nobody"),
    SymbolRefAttr("a", ["b"]),
    AffineMapAttr(AffineMap.identity(2)),
    i32,
    RelaxTensorType(("n",), f32),
)


def samples(dialect: str, most: int) -> dict[str, list[Operation]]:
    """Ops of a dialect in the texts of its tests, by name, at most so many of each."""
    found: dict[str, list[Operation]] = {}
    for path in sorted((ROOT / f"{dialect}_dialect").rglob("*.mlir")):
        text = path.read_text()
        if "RELAX_GENERIC_ROUNDTRIP" not in text:
            continue
        module = parse_module(text, str(path))
        for op in module.walk():
            if op.name.startswith(f"{dialect}.") and len(known := found.setdefault(op.name, [])) < most:
                known.append(op)
    return found


Mutation = tuple[str, Callable[[], None], Callable[[], None]]
"""What is changed, the change, and what undoes it."""


def mutations(op: Operation) -> Iterator[Mutation]:
    """Every change of one part of an op, in its place."""
    yield from _of_attributes(op, "property", op.properties, op.get_irdl_definition().properties)
    yield from _of_attributes(op, "attribute", op.attributes, ())
    yield from _of_operands(op)
    yield from _of_results(op)
    yield from _of_regions(op)


def _of_attributes(
    op: Operation, kind: str, held: dict[str, Attribute], declared: Sequence[str] | dict[str, object]
) -> Iterator[Mutation]:
    for name in (*held, *(name for name in declared if name not in held), "stranger"):
        old = held.get(name)

        def undo(name: str = name, old: Attribute | None = old) -> None:
            held.pop(name, None)
            if old is not None:
                held[name] = old

        if old is not None:
            yield f"without {kind} {name}", lambda name=name: held.__delitem__(name), undo
        for value in ATTRIBUTES:
            yield f"{kind} {name} = {value}", lambda name=name, value=value: held.__setitem__(name, value), undo


def _of_operands(op: Operation) -> Iterator[Mutation]:
    old = tuple(op.operands)

    def undo() -> None:
        op.operands = old

    def become(new: Sequence[SSAValue]) -> Callable[[], None]:
        return lambda: setattr(op, "operands", new)

    wrong = TestOp(result_types=TYPES).results
    for index, operand in enumerate(old):
        yield f"without operand {index}", become((*old[:index], *old[index + 1 :])), undo
        yield f"operand {index} twice", become((*old[:index], operand, *old[index:])), undo
        for value in wrong:
            yield f"operand {index}: {value.type}", become((*old[:index], value, *old[index + 1 :])), undo
    yield "no operands", become(()), undo
    for value in wrong:
        yield f"another operand: {value.type}", become((*old, value)), undo


def _of_results(op: Operation) -> Iterator[Mutation]:
    old = op.results

    def undo() -> None:
        op.results = old

    def become(new: Sequence[SSAValue]) -> Callable[[], None]:
        return lambda: setattr(op, "results", type(old)(new))

    wrong = TestOp(result_types=TYPES).results
    for index in range(len(old)):
        yield f"without result {index}", become((*old[:index], *old[index + 1 :])), undo
        for value in wrong:
            yield f"result {index}: {value.type}", become((*old[:index], value, *old[index + 1 :])), undo
    for value in wrong:
        yield f"another result: {value.type}", become((*old, value)), undo


def _of_regions(op: Operation) -> Iterator[Mutation]:
    old = op.regions

    def undo() -> None:
        for region in op.regions:
            region.parent = None
        op.regions = old
        for region in old:
            region.parent = op

    def become(make: Callable[[], Sequence[Region]]) -> Callable[[], None]:
        def change() -> None:
            for region in old:
                region.parent = None
            op.regions = tuple(make())
            for region in op.regions:
                region.parent = op

        return change

    def with_argument() -> Sequence[Region]:
        return [Region(Block(arg_types=[i32])) for _ in old]

    yield "another region", become(lambda: [*old, Region(Block())]), undo
    if old:
        yield "without its regions", become(list), undo
        yield "regions without a block", become(lambda: [Region() for _ in old]), undo
        yield "regions of an empty block", become(lambda: [Region(Block()) for _ in old]), undo
        yield "regions of two blocks", become(lambda: [Region([Block(), Block()]) for _ in old]), undo
        yield "regions with an argument", become(with_argument), undo
        yield "regions that end in another op", become(lambda: [Region(Block([TestOp()])) for _ in old]), undo


def failures(op: Operation, share: float = 1.0, seed: int = 0) -> Iterator[str]:
    """What is neither accepted nor refused with a message, of a random share of all changes."""
    source = random.Random(f"{seed} {op.name}")
    for what, change, undo in mutations(op):
        if source.random() >= share:
            continue
        change()
        try:
            _verify(op)
        except REFUSALS as error:
            if not str(error).strip():
                yield f"{op.name}, {what}: {type(error).__name__} without a message"
        except Exception as error:
            yield f"{op.name}, {what}: {type(error).__name__}: {error}"
        finally:
            undo()


def _verify(op: Operation) -> None:
    """The op, and what looks into it: its parent."""
    if not op.regions:
        op.verify_()  # raises what `verify` wraps into a print of the whole module
    op.verify()
    parent = op.parent_op()
    if parent is not None and not isinstance(parent, ModuleOp):
        parent.verify_()
