"""Families of ops and of what is said about them, imported when one of their ops is met.

A program has a few of the two hundred ops. Importing the files of all of them, and those with their meaning and their
kernels, takes longer than to compile a small network.

And the operators that somebody may mean who writes a name that is none.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from inspect import isclass
from typing import TypeVar

from typing_extensions import override
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation

from relax_dialect.index import OPERATORS, OTHER_OPS
from tir_dialect.extensions import is_foreign, load_extensions

_OPS = "relax_dialect.ops"

FAMILIES: Mapping[str, str] = dict(sorted({**OPERATORS, **OTHER_OPS}.items()))
"""The modules of ops, with the names of their ops, in the order of the alphabet."""

ATTRIBUTES: Mapping[str, str] = {
    "relax.func": "struct_info.types:FuncType",
    "relax.object": "struct_info.types:ObjectType",
    "relax.partial_shape": "struct_info.types:PartialShapeAttr",
    "relax.prim": "struct_info.types:PrimType",
    "relax.relation": "ops.binding:RelationAttr",
    "relax.shape": "struct_info.types:ShapeType",
    "relax.sharding": "struct_info.sharding:ShardingAttr",
    "relax.tensor": "struct_info.types:TensorType",
    "relax.tuple": "struct_info.types:TupleType",
}
"""From the names of attributes and types to `module:Class` in this package."""

VALUES: Mapping[str, str] = {family: OTHER_OPS[family] for family in ("effects", "shapes", "values")}
"""Those of ops that are made from values and properties like operators, and have no kernels."""

RuleT = TypeVar("RuleT")
ValueT = TypeVar("ValueT")


def names_in(families: Mapping[str, str], prefix: str = "relax.") -> dict[str, str]:
    """The families of ops by the ops' names, `"relax.add": "binary"`; or of other things, with another prefix."""
    return {f"{prefix}{name}": family for family, names in families.items() for name in names.split()}


def family_ops(family: str) -> Iterator[type[IRDLOperation]]:
    """The ops that a module of `relax_dialect.ops` defines, in the order of their definition."""
    module = import_module(f"{_OPS}.{family}")
    members: Iterable[object] = vars(module).values()
    for member in members:
        if isclass(member) and _is_defined_in(member, module.__name__) and issubclass(member, IRDLOperation):
            yield member


def _is_defined_in(cls: type, module: str) -> bool:
    """Whether the module defines the class itself and gives it a name, rather than importing it or deriving from it."""
    return cls.__module__ == module and "name" in cls.__dict__


class LazyTable(Mapping[str, ValueT]):
    """Values by name, which modules of a package enter as they are loaded: one is when a name that it has is looked up.

    An index, name to module, says which. Modules outside of the package may enter values too: the last one counts. A
    name that nobody has entered is looked for in installed extensions.
    """

    def __init__(self, package: str, index: Mapping[str, str]):
        self._package = package
        self._index = index
        self._loaded = set[str]()
        self._entries: dict[str, ValueT] = {}

    def enter(self, name: str, module: str, update: Callable[[ValueT | None], ValueT]) -> None:
        """Enters what `update` makes of the value that is there already, or of `None`; called by a module."""
        if not module.startswith(f"{self._package}."):
            self._load(name)
        self._entries[name] = update(self._entries.get(name))

    def loaded(self) -> Mapping[str, ValueT]:
        """The values of the modules that have been loaded."""
        return self._entries

    def _load(self, name: str) -> None:
        module = self._index.get(name)
        if module is not None and module not in self._loaded:
            self._import(module)
            self._loaded.add(module)

    def _import(self, module: str) -> None:
        import_module(f"{self._package}.{module}")

    @override
    def __getitem__(self, name: str) -> ValueT:
        self._load(name)
        if name not in self._entries:
            load_extensions()
        return self._entries[name]

    @override
    def __contains__(self, name: object) -> bool:
        return name in self._index or name in self._entries or (load_extensions() and name in self._entries)

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._index, *self._entries)))

    @override
    def __len__(self) -> int:
        return len(self._index.keys() | self._entries.keys())


class OpClasses(LazyTable[type[IRDLOperation]]):
    """The classes of the ops of some families, by the ops' names."""

    def __init__(self, families: Mapping[str, str]):
        super().__init__(_OPS, names_in(families, "relax."))

    @override
    def _import(self, module: str) -> None:
        self._entries.update((each.name, each) for each in family_ops(module))


@cache
def operator_classes() -> Mapping[str, type[IRDLOperation]]:
    """The operators and the ops that make values, by name: what the builder has functions for."""
    return OpClasses({**OPERATORS, **VALUES})


@cache
def op_classes() -> Mapping[str, type[IRDLOperation]]:
    """All ops of the dialect, by name."""
    return OpClasses(FAMILIES)


def attribute_class(name: str) -> type[Attribute]:
    """The attribute or type of the dialect with this name; `KeyError` if there is none."""
    module, _, attribute = ATTRIBUTES[name].partition(":")
    return getattr(import_module(f"{__package__}.{module}"), attribute)


class FamilyRules(dict[type[Operation], RuleT | None]):
    """What a package says about ops: the file of an op's family has entered it here when it is loaded.

    `rules[op_type]` imports that file first. What is said about a class of ops goes for its subclasses about which
    nothing else is said; `None` if nothing is said about the op.
    """

    def __init__(self, package: str, families: Iterable[str], files: Mapping[str, str] | None = None):
        """The file of a family has its name, or the one that `files` gives: names of families by file."""
        super().__init__()
        self._package = package
        self._files = {family: family for family in families} | names_in(files or {}, "")

    def __missing__(self, op_type: type[Operation]) -> RuleT | None:
        package, _, family = op_type.__module__.rpartition(".")
        if package == _OPS and family in self._files:
            import_module(f"{self._package}.{self._files[family]}")
        elif is_foreign(op_type.__module__):  # its rules may be in another module than its class
            load_extensions()
        if op_type not in self:
            bases = (self[base] for base in op_type.__mro__[1:] if issubclass(base, Operation))
            self[op_type] = next((rule for rule in bases if rule is not None), None)
        return self[op_type]


_ELSEWHERE = {
    "transpose": "permute_dims",
    "permute": "permute_dims",
    "cast": "astype",
    "to": "astype",
    "dense": "matmul",
    "linear": "matmul",
    "dot": "matmul",
    "bmm": "matmul",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "neg": "negative",
    "amax": "max",
    "amin": "min",
    "unsqueeze": "expand_dims",
    "view": "reshape",
    "expand": "broadcast_to",
    "cat": "concat",
    "concatenate": "concat",
    "gather": "take",
    "slice": "strided_slice",
    "clamp": "clip",
    "swish": "nn.silu",
    "const": "constant",
    "def": "func",
    "function": "func",
}
"""What other libraries call an operator, by its name there."""


def scalar_operations(word: str) -> list[str]:
    """What the dialects of arithmetic may call an operation on numbers, those of floats first."""
    stem = {"multiply": "mul", "divide": "div", "subtract": "sub", "mod": "rem", "min": "minimum", "max": "maximum"}
    word = stem.get(word, word)
    return [f"math.{word}", *(f"arith.{word}{end}" for end in ("f", "i", "si", "ui"))]


def same_operators(word: str, known: Collection[str]) -> list[str]:
    """The operators of relax among `known` that are called `word` in any namespace, or by other libraries."""
    same = [each for each in sorted(known) if each.startswith("relax.") and each.rpartition(".")[2] == word]
    return same or [each for each in (f"relax.{_ELSEWHERE.get(word, word)}",) if each in known]


def near_operators(name: str, known: Collection[str], count: int = 2) -> list[str]:
    """Names among `known` for `name`, all of them with their dialect: the same in another namespace, what other
    libraries call so, or else names that are spelt alike.
    """
    dialect, last = name.partition(".")[0], name.rpartition(".")[2]
    if dialect in ("tir", "T", "arith", "math"):
        found = [each for each in scalar_operations(last) if each in known]
        found += [each for each in sorted(known) if each.startswith(f"tir.{last}_")]
    else:
        found = same_operators(last, known) if dialect in ("relax", "R", last) else []
    ours = {"R": "relax", "T": "tir"}.get(dialect)
    spelt = name if ours is None else f"{ours}.{name.partition('.')[2]}"
    return found[:count] or get_close_matches(spelt, sorted(known), n=count)
