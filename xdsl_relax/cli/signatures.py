"""What is known about functions before they are called: `--signature`, and arguments that are made up from it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from lowering.compiler.validation import CannotDraw, Draw
from lowering.relax_to_vm.checks import parse_type, type_text
from relax_dialect.ops.structure import FuncOp
from relax_dialect.struct_info.symbols import free_symbols
from relax_dialect.struct_info.types import StructInfo
from vm_dialect.callee import Callee
from vm_dialect.executable.model import FunctionInfo, FunctionKind, SignatureTypes
from xdsl_relax.cli.diagnostics import ToolError
from xdsl_relax.cli.values import DEFAULT_LIMIT, NamedValue

USUAL_SIZE = 4
"""What a symbol is in arguments that are made up, unless `--dim` says it, or its bounds exclude it."""

Bounds = tuple[int, int | None]


@dataclass(frozen=True)
class Signature:
    """The parameters and results of a public function."""

    name: str
    parameters: tuple[str, ...]
    types: tuple[Attribute, ...]
    """Those of the parameters."""
    result: str = ""
    result_names: tuple[str, ...] = ()
    bounds: Mapping[str, Bounds] = field(default_factory=dict[str, Bounds])
    """The least and greatest values of symbols that have some."""

    @staticmethod
    def of_func(func: FuncOp) -> Signature:
        """That of a function of a module."""
        kind = func.function_type
        names = () if func.result_names is None else tuple(name.data for name in func.result_names)
        bounds = {each.symbol.data: each.interval for each in kind.symbols}
        return Signature(
            func.sym_name.data, tuple(func.param_names), tuple(kind.params), type_text(kind.ret), names, bounds
        )

    @staticmethod
    def of_compiled(function: Callee) -> Signature:
        """That of a function of an executable or a library, as far as it says it."""
        types = function.types.parameters or ("object",) * len(function.parameters)
        parsed = tuple(map(parse_type, types))
        return Signature(
            function.__name__, function.parameters, parsed, function.types.result, tuple(function.result_names)
        )

    @property
    def symbols(self) -> tuple[str, ...]:
        """The symbols of the parameters, in order."""
        found = (name for kind in self.types if isinstance(kind, StructInfo) for name in sorted(free_symbols(kind)))
        return tuple(dict.fromkeys((*self.bounds, *found)))

    def text(self) -> str:
        """`main(x: f32[n, 4]) -> f32[n], where 1 <= n <= 128; results: y`."""
        types = SignatureTypes(tuple(map(type_text, self.types)), self.result)
        info = FunctionInfo(FunctionKind.BYTECODE, self.name, self.parameters, types=types)
        limits = [
            f"{lower} <= {name}{'' if upper is None else f' <= {upper}'}"
            for name, (lower, upper) in self.bounds.items()
            if lower > 0 or upper is not None
        ]
        where = f", where {', '.join(limits)}" if limits else ""
        names = f"; results: {', '.join(self.result_names)}" if self.result_names else ""
        return f"{self.name}{info.signature}{where}{names}"

    def sizes(self, given: Mapping[str, int]) -> dict[str, int]:
        """The values of the symbols; `ToolError` for one that there is not, or outside of its bounds."""
        given = {self._symbol(name): size for name, size in given.items()}
        found: dict[str, int] = {}
        for name in self.symbols:
            lower, upper = self.bounds.get(name, (0, None))
            usual = max(USUAL_SIZE, lower)
            found[name] = given.get(name, usual if upper is None else min(usual, upper))
            if found[name] < lower or (upper is not None and found[name] > upper):
                limit = f"at least {lower}" if found[name] < lower else f"at most {upper}"
                raise ToolError(f"--dim {name}={found[name]}: @{self.name} expected {limit}")
        return found

    def _symbol(self, name: str) -> str:
        """The symbol of a name, which a model may write with other characters: `batch.size` is `batch_size`."""
        clean = re.sub(r"\W", "_", name, flags=re.ASCII)
        if name not in self.symbols and any(re.fullmatch(rf"{clean}_\d+", each) for each in self.symbols):
            clean = name  # several names have become alike
        for symbol in (name, clean, f"n_{clean}"):
            if symbol in self.symbols:
                return symbol
        known = ", ".join(self.symbols) or "none"
        raise ToolError(f"--dim {name}: @{self.name} has no such symbol, it has {known}")

    def completed(
        self, given: Sequence[NamedValue], dims: Mapping[str, int], rng: np.random.Generator
    ) -> list[NamedValue]:
        """The arguments that are given, and random ones for the parameters without; `ToolError` where none can be made
        of the type.
        """
        sizes = self.sizes(dims)
        draw = Draw(rng, sizes, USUAL_SIZE, (0, DEFAULT_LIMIT))
        unnamed = sum(value.parameter is None for value in given)
        named = {value.parameter for value in given}
        made = list(given)
        for name, kind in list(zip(self.parameters, self.types, strict=True))[unnamed:]:
            if name in named:
                continue
            try:
                made.append(NamedValue("made up", draw.value(kind), name))
            except MemoryError as error:
                raise ToolError(f"no value can be made up for {name} of @{self.name}: {error}") from error
            except CannotDraw:
                what = f"{name}: {type_text(kind)} of @{self.name}"
                raise ToolError(f"no value can be made up for {what}: give one, --input {name}=..") from None
        return made


def signatures_in(module: ModuleOp) -> list[Signature]:
    """Those of the public functions of the graph level, or of the kernels of a module without any."""
    from xdsl.context import Context

    from lowering.relax.functions.expose_prim_funcs import ExposePrimFuncsPass

    exposed = module.clone()
    ExposePrimFuncsPass().apply(Context(), exposed)
    return [Signature.of_func(op) for op in exposed.ops if isinstance(op, FuncOp) and not op.is_private]


def signature_of(module: ModuleOp, entry: str) -> Signature | None:
    """That of one of these functions."""
    return next((each for each in signatures_in(module) if each.name == entry), None)


def given_dims(text: str) -> list[tuple[str, int]]:
    """The symbols, or the names that a model has for them, and the sizes of `batch=4,length=7`."""
    found: list[tuple[str, int]] = []
    for each in text.split(","):
        name, _, size = each.partition("=")
        if not (name and size.isdecimal()):
            raise argparse.ArgumentTypeError(f"expected symbols and sizes like batch=4,length=7, got {text}")
        found.append((name, int(size)))
    return found
