"""Random relax programs with inputs: `programs()`.

::

    @given(programs())
    def test_pass(program: Program) -> None:
        check_pass(program.module, "my-pass", [program.inputs], entry=program.entry)

Every program is well-formed and runs without an error on its inputs. It is built through `BlockBuilder`, has functions
that call each other, and uses what `Features` allows. Programs are small, follow from the choices that are drawn alone,
and shrink to a function of one statement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import tvm_ffi
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from relax_dialect import BlockBuilder
from relax_dialect.builder import Expr, tensor
from relax_dialect.builder.emitter import as_dtype
from relax_dialect.struct_info.types import PrimType, ShapeType, StructInfo, TensorType
from tests.strategies.relax_regions import Features, Regions
from tests.strategies.relax_statements import UNARY
from tests.strategies.relax_values import DTYPES, Function, Spec, Tensor, Tuple
from tir_dialect.dims import to_dim

ENTRY = "main"
MAX_HELPERS = 2


ALL = Features()


class Program(NamedTuple):
    """A module, the name of a function in it, and arguments for that."""

    module: ModuleOp
    entry: str
    inputs: tuple[object, ...]


@st.composite
def programs(draw: st.DrawFn, features: Features = ALL, statements: int = 5) -> Program:
    """A program whose entry function has up to `statements` statements, not counting those in regions."""
    generator = _Generator(draw, BlockBuilder(), features)
    for number in range(MAX_HELPERS if features.calls else 0):
        if generator.source.flag():
            generator.helper(f"helper{number}")
    if features.recursion and generator.source.flag():
        generator.recursive("countdown")
    return Program(*generator.entry(ENTRY, statements))


class _Generator(Regions):
    """Functions of a module, one after the other."""

    def entry(self, name: str, statements: int) -> tuple[ModuleOp, str, tuple[object, ...]]:
        """The entry function, whose arguments are drawn as well."""
        specs, types = self.signature()
        arrays = [self.source.array(spec) for spec in specs]
        others = self._shape_and_number()
        self.impure = self.features.effects and self.source.flag()
        params = {**types, **{key: info for key, (info, _) in others.items()}}
        with self.bb.function(name, params, pure=not self.impure) as function:
            self.push()
            for spec, param, data in zip(specs, function.params, arrays, strict=False):
                self.add(Tensor(param, spec.dtype, spec.shape, data))
            self.statements(statements)
            self.bb.emit_func_output([item.expr for item in self._returned()])
            self.pop()
        return self.bb.finalize(), name, (*arrays, *(value for _, value in others.values()))

    def _shape_and_number(self) -> dict[str, tuple[StructInfo, object]]:
        """More parameters that bind symbols, and their values."""
        found: dict[str, tuple[StructInfo, object]] = {}
        if self.features.shapes and self.source.flag():
            self.sizes |= {"p": self.source.size(), "q": self.source.size()}
            found["shape"] = ShapeType(["p", "q"]), tvm_ffi.Shape((self.sizes["p"], self.sizes["q"]))
        if self.features.shapes and self.source.flag():
            self.sizes["r"] = self.source.size()
            found["number"] = PrimType(value="r"), self.sizes["r"]
        return found

    def _returned(self) -> Sequence[Tensor | Tuple]:
        """The latest values, a few of them."""
        return self.made()[: self.source.integer(1, 3)]

    def helper(self, name: str) -> None:
        """A function that others call."""
        outer = self.swap([], {})
        specs, types = self.signature()
        with self.bb.function(name, types, private=self.source.flag()) as function:
            self.push()
            for spec, param in zip(specs, function.params, strict=True):
                self.add(Tensor(param, spec.dtype, spec.shape))
            self.statements()
            result = self.made()[0]
            self.bb.emit_func_output(result.expr)
            self.pop()
        self.swap(*outer)
        self.functions.append(Function(self._caller(name), tuple(specs), result))

    def _caller(self, name: str) -> Callable[[Sequence[Expr]], Expr]:
        """How a function is called: directly, or as a value with its first argument captured."""

        def call(arguments: Sequence[Expr]) -> Expr:
            if self.features.closures and self.source.integer(0, 3):
                return self.bb.make_closure(name, arguments[0])(*arguments[1:])
            return self.bb.call(name, *arguments)

        return call

    def recursive(self, name: str) -> None:
        """A function that calls itself as often as its first argument says."""
        outer = self.swap([], {})
        specs, types = self.signature(count=1)
        (spec,), (info,) = specs, types.values()
        with self.bb.function(name, {"k": tensor((), "i64"), "x": info}, ret=info) as (k, x):
            with self.bb.if_(k <= 0) as branch:
                with branch.then():
                    self.bb.yield_(x)
                with branch.otherwise():
                    inner = self.source.choice(UNARY[spec.dtype])(x)
                    self.bb.yield_(self.bb.call(name, k - 1, inner))
            self.bb.emit_func_output(branch.result)
        self.swap(*outer)

        def call(arguments: Sequence[Expr]) -> Expr:
            return self.bb.call(name, self.bb.const(self.source.integer(0, 3)), *arguments)

        self.functions.append(Function(call, (spec,), Tensor(x, spec.dtype, spec.shape)))

    def signature(self, count: int = 3) -> tuple[list[Spec], dict[str, TensorType]]:
        """Tensor parameters and their types; each symbol is a dimension of the first one."""
        names = ("n", "m")[: self.source.integer(1, 2)]
        self.sizes = {name: self.source.size() for name in names}
        shapes: list[list[int | str | None]] = [list(names)]
        for _ in range(self.source.integer(0, count - 1)):
            shapes.append([self._parameter_dim() for _ in range(self.source.integer(0, 2))])
        dtypes = [self.source.choice(DTYPES) for _ in shapes]
        types = [TensorType(dims, as_dtype(dtype)) for dims, dtype in zip(shapes, dtypes, strict=True)]
        specs = [Spec(dtype, self._sizes(dims)) for dims, dtype in zip(shapes, dtypes, strict=True)]
        return specs, {f"x{index}": info for index, info in enumerate(types)}

    def _parameter_dim(self) -> int | str | None:
        options = [*self.sizes, 2, "n + 1", "2 * n", 1, None]
        return self.source.choice(options)

    def _sizes(self, dims: Sequence[int | str | None]) -> tuple[int, ...]:
        return tuple(self.source.size() if dim is None else to_dim(dim).evaluate(self.sizes) for dim in dims)
