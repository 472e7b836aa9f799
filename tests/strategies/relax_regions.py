"""Random statements with regions: dataflow, branches, loops, closures; and calls of functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
from hypothesis import strategies as st

from relax_dialect import BlockBuilder
from relax_dialect.builder import Expr, op
from relax_dialect.builder.emitter import as_dtype
from relax_dialect.ops.effects import AssertOp
from relax_dialect.struct_info.types import PrimType, TensorType
from tests.strategies.relax_functions import halve
from tests.strategies.relax_statements import Statements
from tests.strategies.relax_values import Function, Item, Source, Spec, Tensor, with_expr

MAX_DEPTH = 2
"""Regions inside each other."""

MAX_STATEMENTS = 3
"""Statements of a region."""

MAX_TRIPS = 3
"""Iterations of a loop."""


@dataclass(frozen=True)
class Features:
    """What programs may use; all of it unless something is left out."""

    shapes: bool = True
    """Parameters that are shapes or prim values."""
    casts: bool = True
    tuples: bool = True
    kernels: bool = True
    matmul: bool = True
    reductions: bool = True
    scans: bool = True
    data_dependent: bool = True
    packed: bool = True
    in_place: bool = True
    dataflow: bool = True
    branches: bool = True
    loops: bool = True
    closures: bool = True
    calls: bool = True
    recursion: bool = True
    unknown_rank: bool = True
    """Values of which not even the rank is known may be used."""
    unknown_dtype: bool = True
    """Values whose dtype is not known may be used."""
    effects: bool = True
    """Functions that may be impure: `assert`, and PrimFuncs as values."""
    others: bool = True
    """Statements that are not about memory: without them there are only those whose results may share some."""

    def without(self, *names: str) -> Features:
        """The same without some."""
        known = {field.name for field in fields(self)}
        assert known.issuperset(names), names
        return replace(self, **dict.fromkeys(names, False))


class Regions(Statements):
    """All statements of a function."""

    def __init__(self, draw: st.DrawFn, bb: BlockBuilder, features: Features):
        super().__init__(Source(draw), bb)
        self.features = features
        self.functions: list[Function] = []
        """The functions of the module that can be called."""
        self.impure = False
        """Whether statements with effects may stand here."""
        self._depth = 0

    def statements(self, most: int = MAX_STATEMENTS) -> None:
        """Some statements, at least one."""
        for _ in self.source.repeats(most):
            kinds = (*self._simple(), *(self._compound() if self._depth < MAX_DEPTH else ()))
            self.source.choice(kinds)()

    def _simple(self) -> list[Callable[[], Item]]:
        """What may stand in a dataflow region too, the simplest first."""
        on = self.features
        if not on.others:
            made = (self.unary, self.binary, self.matmul, self.scan, self.move)
            return [*made, self.join, self.cut, self.scatter, self.two_results, self.part]
        optional: tuple[tuple[bool, tuple[Callable[[], Item], ...]], ...] = (
            (on.casts, (self.cast,)),
            (on.tuples, (self.group, self.field)),
            (on.reductions, (self.reduce,)),
            (on.matmul, (self.matmul,)),
            (on.kernels, (self.kernel, self.two_results, self.part)),
            (on.scans, (self.scan,)),
            (on.data_dependent, (self.distinct,)),
            (on.packed, (self.packed,)),
            (on.in_place, (self.in_place,)),
            (on.unknown_rank and on.unknown_dtype, (self.forget,)),
        )
        always = (self.unary, self.binary, self.fill, self.move, self.compare, self.convert, self.where)
        places = (self.join, self.cut, self.expand, self.scatter)
        return [*always, *places, *(kind for enabled, kinds in optional if enabled for kind in kinds)]

    def _compound(self) -> list[Callable[[], object]]:
        on = self.features
        optional: tuple[tuple[bool, tuple[Callable[[], object], ...]], ...] = (
            (on.dataflow, (self.dataflow,)),
            (on.branches, (self.branch, self.branch_of_lengths)),
            (on.loops, (self.loop, self.growing_loop, self.while_loop)),
            (on.closures, (self.closure,)),
            (on.calls, (self.call,)),
            (self.impure, (self.check,)),
            (self.impure and on.closures, (self.prim_func_value,)),
        )
        return [kind for enabled, kinds in optional if enabled for kind in kinds]

    def results(self, most: int = 2) -> list[Tensor]:
        """Tensors with which a region may end: the latest that it made, or others."""
        return [self.tensor() for _ in self.source.repeats(most)]

    # Regions

    def dataflow(self) -> None:
        """A dataflow region with some outputs."""
        self.push()
        with self.bb.dataflow():
            for _ in self.source.repeats(MAX_STATEMENTS):
                self.source.choice(self._simple())()
            inner = self.pop()[::-1]
            chosen = [self.source.choice(inner) for _ in self.source.repeats(2)]
            outputs = [self.bb.emit_output(item.expr) for item in chosen]
        for item, output in zip(chosen, outputs, strict=True):
            self.add(with_expr(item, output))

    def branch(self) -> None:
        """A branch; which way it goes may be known, and then the results may have any shape."""
        condition, known = self.condition()
        self._depth += 1
        with self.bb.if_(condition) as branch:
            with branch.then():
                self.push()
                self.statements()
                then = self.results()
                self.bb.yield_(*(tensor.expr for tensor in then))
                self.pop()
            with branch.otherwise():
                self.push()
                self.statements()
                other = [self._alternative(tensor, known) for tensor in then]
                self.bb.yield_(*(tensor.expr for tensor in other))
                self.pop()
        self._depth -= 1
        for tensor, expr in zip(other if known is False else then, branch.results, strict=True):
            self.add(with_expr(tensor, expr))

    def _alternative(self, tensor: Tensor, known: bool | None) -> Tensor:
        fitting = self.tensors(None if self.features.unknown_dtype else tensor.dtype)
        if not self.features.unknown_rank:
            fitting = [other for other in fitting if len(other.shape) == len(tensor.shape)]
        if known is None or not fitting:
            return self.of(Spec(tensor.dtype, tensor.shape))
        return self.source.choice(fitting)

    def branch_of_lengths(self) -> None:
        """A branch that gives a symbol the length of its result."""
        x = self.tensor()
        condition, known = self.condition()
        y = self._alternative(x, known)
        chosen = y if known is False else x
        if not x.shape or len(x.shape) != len(y.shape) or x.dtype != y.dtype:
            return self.branch()
        name = self.bb.fresh_symbol("length")
        out = TensorType([name, *[None] * (len(x.shape) - 1)], as_dtype(x.dtype))
        with self.bb.if_(condition, [out, PrimType(value=name)]) as branch:
            for scope, tensor in ((branch.then(), x), (branch.otherwise(), y)):
                with scope:
                    length = self.bb.fresh_symbol("own")
                    dims = [length, *[None] * (len(tensor.shape) - 1)]
                    named = self.bb.match_cast(tensor.expr, TensorType(dims, as_dtype(tensor.dtype)))
                    self.bb.yield_(named, self.bb.symbol(length))
        self.sizes[name] = chosen.shape[0]
        self.add(Tensor(branch.results[0], chosen.dtype, chosen.shape))

    # Effects

    def check(self) -> None:
        """An assertion that holds."""
        x = self.with_dtype(self.of(Spec("i64", ())))
        self.bb.insert(AssertOp(((x < 0) | (x >= 0)).value, "expected a number, got {}", [x.value]))

    def prim_func_value(self) -> None:
        """A PrimFunc as a value, which halves a new tensor in place."""
        function = self.bb.make_closure(self.bb.add_func(halve()))
        x = self.filled(Spec("f32", (self.source.integer(0, 3),)))
        if self.source.flag():
            function = op.tuple(function, x.expr)[0]
        function(x.expr)
        self.add(Tensor(x.expr, "f32", x.shape))

    def condition(self) -> tuple[Expr, bool | None]:
        """A truth value, and what it is if that is known."""
        numbers = [tensor for tensor in self.tensors("i64") if tensor.shape == ()]
        if numbers and self.source.flag():
            number, limit = self.source.choice(numbers), self.source.integer(-2, 2)
            return self.with_dtype(number) < limit, None if number.data is None else bool(number.data < limit)
        truths = [tensor for tensor in self.tensors("i1") if tensor.shape == ()]
        truth = self.source.choice(truths) if truths else self.constant(Spec("i1", ()))
        return truth.expr, None if truth.data is None else bool(truth.data)

    def loop(self) -> None:
        """A counted loop that carries tensors of fixed shape."""
        carried = self.results()
        _, upper = self.trips()
        inits = {f"a{index}": (x.expr, self._carried_type(x)) for index, x in enumerate(carried)}
        with self.bb.for_(0, upper, inits) as loop:
            self.push()
            self.add(Tensor(op.full([], loop.counter, "i64"), "i64", ()))
            self._body([with_expr(x, expr) for x, expr in zip(carried, loop.carried, strict=True)])
            self.bb.yield_(*(self.of(Spec(x.dtype, x.shape)).expr for x in carried))
            self.pop()
        for x, expr in zip(carried, loop.results, strict=True):
            self.add(with_expr(x, expr))

    def _body(self, items: list[Item]) -> None:
        for item in items:
            self.add(item)
        self._depth += 1
        self.statements()
        self._depth -= 1

    def _carried_type(self, x: Tensor) -> TensorType:
        """The type of a carried tensor: that of the first one, or other words for it."""
        info = x.expr.type
        return self.type_of(x) if self.source.flag() or not isinstance(info, TensorType) else info

    def trips(self) -> tuple[int, int | str]:
        """A number of iterations, and the upper bound that says it."""
        trips = self.source.integer(0, MAX_TRIPS)
        return trips, self.dim(trips)

    def growing_loop(self) -> None:
        """A loop that carries a tensor which gets longer."""
        x = self.tensor()
        if not x.shape:
            return self.loop()
        row = self.of(Spec(x.dtype, (1, *x.shape[1:])))
        trips, upper = self.trips()
        first = self.source.choice((None, self.bb.fresh_symbol("length")))
        info = TensorType([first, *(self.dim(size) for size in x.shape[1:])], as_dtype(x.dtype))
        with self.bb.for_(0, upper, {"longer": (x.expr, info)}) as loop:
            (longer,) = loop.carried
            self.bb.yield_(op.concat([longer, row.expr]))
        self.add(Tensor(loop.result, x.dtype, (x.shape[0] + trips, *x.shape[1:])))
        return None

    def while_loop(self) -> None:
        """A loop that counts by itself."""
        x = self.tensor()
        trips = self.source.integer(0, MAX_TRIPS)
        carried = {"k": self.bb.const(0), "a": (x.expr, self._carried_type(x))}
        with self.bb.while_(carried) as loop:
            with loop.condition() as (k, _):
                self.bb.yield_(k < trips)
            with loop.body() as (k, a):
                self.push()
                self._body([with_expr(x, a)])
                self.bb.yield_(k + 1, self.of(Spec(x.dtype, x.shape)).expr)
                self.pop()
        self.add(Tensor(loop.results[0], "i64", (), np.array(trips)))
        self.add(with_expr(x, loop.results[1]))

    # Calls

    def closure(self) -> None:
        """A function value that may use all that is visible, and a call of it."""
        specs = [Spec(x.dtype, x.shape) for x in self.results()]
        types = {f"p{index}": self.type_of(spec) for index, spec in enumerate(specs)}
        impure, self.impure = self.impure, False
        with self.bb.closure(types) as function:
            self.push()
            self._body([Tensor(p, s.dtype, s.shape) for p, s in zip(function.params, specs, strict=True)])
            result = self.tensor()
            self.bb.emit_func_output(result.expr)
            self.pop()
        self.impure = impure
        for _ in self.source.repeats(2):
            arguments = [self.of(spec).expr for spec in specs]
            self.add(with_expr(result, function.value(*arguments)))

    def call(self) -> Item:
        """A call of a function of the module."""
        if not self.functions:
            return self.unary()
        function = self.source.choice(self.functions)
        arguments = [self.of(spec).expr for spec in function.params]
        return self.add(with_expr(function.result, function.call(arguments)))
