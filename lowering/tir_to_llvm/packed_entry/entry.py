"""The tvm-ffi entry of a kernel: everything about its arguments is checked here, once, before native code runs.

`f(tensors and scalars...)` binds the symbols from the shapes, and those of layouts alone from the strides;
`f(sizes..., tensors and scalars...)` takes them from the caller. A wrong kind, rank or dtype raises `TypeError`; a
wrong size, layout or alignment, or memory that overlaps, `ValueError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, i1, i8, i32, i64
from xdsl.ir import Attribute, Block, SSAValue

from lowering.llvm.builder.llvm_builder import POINTER, LLVMBuilder
from lowering.llvm.builder.module_builder import ModuleBuilder
from lowering.tir_to_llvm.arithmetic.dim_values import CheckedDimValues, DimValues
from lowering.tir_to_llvm.packed_entry.arguments import (
    ANY_BYTES,
    ArgumentReader,
    TensorArgument,
    byte_range,
    check_layout,
)
from lowering.tir_to_llvm.packed_entry.errors import PackedErrors
from lowering.tir_to_llvm.signature import KernelSignature
from tir_dialect.analysis.layout_symbols import layout_symbols
from tir_dialect.dims import Check, CheckKind, Dim, MatchError, Solution, solve, symbol
from tir_dialect.symbols import Interval
from tir_dialect.types import BufferType
from vm_dialect import messages


def entry_symbol(kernel: str) -> str:
    """The symbol of the entry of a kernel."""
    return f"{kernel}.packed"


def packed_entry(signature: KernelSignature, kernel: str) -> ModuleOp:
    """An llvm module with `i32 <kernel>.packed(ptr self, ptr args, i32 count, ptr result)`, which calls `kernel`."""
    return _PackedEntry(signature, kernel).build()


class _PackedEntry:
    def __init__(self, signature: KernelSignature, kernel: str) -> None:
        self.signature = signature
        self.kernel = kernel
        self.module = ModuleBuilder()
        self.b = LLVMBuilder(self.module, [POINTER, POINTER, i32, POINTER])
        self.errors = PackedErrors(self.b)
        self.reader = ArgumentReader(self.b, self.errors)
        self.subjects = [messages.describe_argument(index, param.name) for index, param in enumerate(signature.params)]
        self.values: list[SSAValue | TensorArgument] = []
        self.patterns = list(signature.dimensions())
        self.layouts = layout_symbols([param.type for param in signature.params])

    def build(self) -> ModuleOp:
        b = self.b
        start = b.new_block()
        b.start(start)
        _, arguments, count, result = b.entry.args
        given = b.make(llvm.SExtOp, (count,), i64)
        skipped = b.sub(given, b.integer(len(self.signature.params)))
        with_sizes = self._check_count(given, skipped)
        self._read(arguments, skipped)
        symbols = self._bind(arguments, with_sizes)
        self._call(symbols)
        for offset, type_ in ((0, i32), (4, i32), (8, i64)):
            b.store(b.integer(0, type_), b.element(result, b.integer(offset), i8), 1)
        b.insert(llvm.ReturnOp(b.integer(0, i32)))
        b.block = b.entry
        b.branch(start)
        types: list[Attribute] = [POINTER, POINTER, i32, POINTER]
        self.module.define(entry_symbol(self.kernel), types, i32, b.finish(), internal=False, properties={})
        return self.module.finish()

    def _subject(self, index: int) -> str:
        return f"{self.signature.name}: {self.subjects[index]}"

    def _check_count(self, given: SSAValue, skipped: SSAValue) -> SSAValue:
        """Whether the sizes come first; an error for any other number of arguments."""
        b = self.b
        with_sizes = b.compare("eq", skipped, b.integer(len(self.signature.symbols)))
        valid = b.make(llvm.OrOp, (with_sizes, b.compare("eq", skipped, b.integer(0))), i1)
        names = [param.name for param in self.signature.params]
        self.errors.require(valid, "TypeError", messages.wrong_arity(self.signature.name, names), [given])
        return with_sizes

    def _read(self, arguments: SSAValue, skipped: SSAValue) -> None:
        b = self.b
        for index, param in enumerate(self.signature.params):
            offset = b.mul(b.add(skipped, b.integer(index)), b.integer(ANY_BYTES))
            argument = b.element(arguments, offset, i8)
            if isinstance(param.type, BufferType):
                self.values.append(self.reader.tensor(argument, self._subject(index), param.type))
            else:
                self.values.append(self.reader.scalar(argument, self._subject(index), param.type))

    def _extent(self, pattern: int) -> SSAValue:
        index, axis, _ = self.patterns[pattern]
        return self._tensor(index).shape[axis]

    def _tensor(self, index: int) -> TensorArgument:
        tensor = self.values[index]
        assert isinstance(tensor, TensorArgument)  # only buffers have dimensions and layouts
        return tensor

    def _got(self, source: int) -> SSAValue:
        """What binds a symbol: an extent, or behind these what `layouts` names."""
        if source < len(self.patterns):
            return self._extent(source)
        layout = self.layouts[source - len(self.patterns)]
        return self.b.integer(0) if layout.axis is None else self._tensor(layout.param).strides[layout.axis]

    def _described(self, source: int) -> str:
        if source < len(self.patterns):
            index, axis, _ = self.patterns[source]
            return messages.describe_dimension(self.subjects[index], axis)
        layout = self.layouts[source - len(self.patterns)]
        return f"{self.subjects[layout.param]} {'offset' if layout.axis is None else f'stride {layout.axis}'}"

    # Symbols.

    def _bind(self, arguments: SSAValue, with_sizes: SSAValue) -> dict[str, SSAValue]:
        """The values of the symbols, from the caller or from the shapes; every dimension is checked against them."""
        b, names = self.b, self.signature.symbol_names
        if not names:
            self._check_dims({}, {})
            return {}
        told, derived, bound = b.new_block(), b.new_block(), b.new_block([i64] * len(names))
        b.branch_if(with_sizes, told, derived)
        b.start(told)
        sizes: list[SSAValue] = []
        for index, name in enumerate(names):
            argument = b.element(arguments, b.integer(ANY_BYTES * index), i8)
            sizes.append(self.reader.integer(argument, f"{self.signature.name}: size {name}"))
        for (name, interval), size in zip(self.signature.symbols, sizes, strict=True):
            self._check_interval(f"{self.signature.name}: size {name}", name, interval, size)
        told_symbols = dict(zip(names, sizes, strict=True))
        self._check_dims(told_symbols, dict.fromkeys(names))
        b.branch(bound, *sizes)
        b.start(derived)
        self._derive(bound)
        b.start(bound)
        return dict(zip(names, bound.args, strict=True))

    def _derive(self, bound: Block) -> None:
        b, names = self.b, self.signature.symbol_names
        bound_by = [*(dim for _, _, dim in self.patterns), *(symbol(layout.name) for layout in self.layouts)]
        patterns = [(dim, symbol(f"relax$d{source}")) for source, dim in enumerate(bound_by)]
        try:
            solution = solve(patterns, names, bounds=self.signature.bounds)
        except MatchError as error:
            message = f"{self.signature.name}: the sizes do not follow from the shapes, pass them first: {error}"
            self.errors.fail("TypeError", message)
            return
        dims = CheckedDimValues(b, {f"relax$d{source}": self._got(source) for source in range(len(patterns))})
        for check in solution.checks:
            self._check(check, bound_by[check.source], dims, solution)
        self._check_strides()
        self._require_no_overflow(dims)
        b.branch(bound, *[dims(solution.bindings[name]) for name in names])

    def _check_strides(self) -> None:
        """Unlike extents, strides that bind a symbol may be negative, where kernels rely on what a symbol is."""
        intervals = dict(self.signature.symbols)
        for source, layout in enumerate(self.layouts, len(self.patterns)):
            subject = f"{self.signature.name}: {self._described(source)}"
            self._check_interval(subject, layout.name, intervals[layout.name], self._got(source))

    def _check(self, check: Check, pattern: Dim, dims: DimValues, solution: Solution) -> None:
        b, got = self.b, self._got(check.source)
        subject = f"{self.signature.name}: {self._described(check.source)}"
        match check.kind:
            case CheckKind.EQUAL:
                self._require_equal(subject, pattern, dims(check.lhs), got, solution.sources)
            case CheckKind.DIVISIBLE:
                divisor = check.rhs.constant_term
                rest = b.make(llvm.SRemOp, (dims(check.lhs), dims(check.rhs)), i64)
                message = messages.wrong_multiple(subject, str(pattern), divisor)
                self.errors.require(b.compare("eq", rest, b.integer(0)), "ValueError", message, [got])
            case CheckKind.NON_NEGATIVE:
                fine = b.compare("sge", dims(check.lhs), b.integer(0))
                self.errors.require(fine, "ValueError", self._out_of_bounds(subject, pattern), [got])

    def _out_of_bounds(self, subject: str, pattern: Dim) -> str:
        intervals = dict(self.signature.symbols)
        name = pattern.as_symbol
        if name in intervals:
            return messages.out_of_bounds(subject, name, *intervals[name])
        bounds = ", ".join(f"{symbol} >= {low}" for symbol, (low, _) in intervals.items() if symbol in pattern.symbols)
        return f"{subject}: expected {pattern} with {bounds}, got {{}}"

    def _check_interval(self, subject: str, name: str, interval: Interval, value: SSAValue) -> None:
        b, (low, high) = self.b, interval
        fine = b.compare("sge", value, b.integer(low))
        if high is not None:
            fine = b.make(llvm.AndOp, (fine, b.compare("sle", value, b.integer(high))), i1)
        self.errors.require(fine, "ValueError", messages.out_of_bounds(subject, name, low, high), [value])

    def _check_dims(self, symbols: Mapping[str, SSAValue], sources: Mapping[str, int | None]) -> None:
        """Checks every dimension against known symbols."""
        dims = CheckedDimValues(self.b, symbols)
        expected = [dims(dim) for _, _, dim in self.patterns]
        self._require_no_overflow(dims)
        for index, (_, _, dim) in enumerate(self.patterns):
            subject = f"{self.signature.name}: {self._described(index)}"
            self._require_equal(subject, dim, expected[index], self._extent(index), sources)

    def _require_no_overflow(self, dims: CheckedDimValues) -> None:
        fits = self.b.compare("eq", dims.overflows, self.b.false())
        self.errors.require(fits, "ValueError", f"{self.signature.name}: the sizes are too large")

    def _require_equal(
        self, subject: str, dim: Dim, expected: SSAValue, got: SSAValue, sources: Mapping[str, int | None]
    ) -> None:
        fine = self.b.compare("eq", expected, got)
        if dim.constant_value is not None:
            message = messages.wrong_constant(subject, dim.constant_value)
            self.errors.require(fine, "ValueError", message, [got])
            return
        source = sources.get(dim.as_symbol or "")
        origin = None if source is None else self._described(source)
        message = messages.wrong_value(subject, str(dim), origin=origin)
        self.errors.require(fine, "ValueError", message, [expected, got])

    # The call.

    def _call(self, symbols: Mapping[str, SSAValue]) -> None:
        b = self.b
        dims = DimValues(b, symbols)
        bases: dict[int, SSAValue] = {}
        for index, value in enumerate(self.values):
            if isinstance(value, TensorArgument):
                bases[index] = check_layout(b, self.errors, value, dims)
        if not self.signature.may_alias:
            self._check_overlap(bases, dims)
        arguments = [
            b.make(llvm.IntToPtrOp, (bases[index],), POINTER) if isinstance(value, TensorArgument) else value
            for index, value in enumerate(self.values)
        ]
        types: Sequence[Attribute] = [i64] * len(symbols) + [argument.type for argument in arguments]
        self.module.declare(self.kernel, types, i32)
        status = b.call(self.kernel, [*symbols.values(), *arguments], i32)
        failed, passed = b.new_block(), b.new_block()
        b.branch_if(b.compare("eq", status, b.integer(0, i32)), passed, failed)
        b.start(failed)
        b.insert(llvm.ReturnOp(b.integer(-1, i32)))
        b.start(passed)

    def _check_overlap(self, bases: Mapping[int, SSAValue], dims: DimValues) -> None:
        """Memory that is written must not be part of another argument: native code relies on it."""
        b = self.b
        ranges = {
            index: byte_range(b, value, bases[index], dims)
            for index, value in enumerate(self.values)
            if isinstance(value, TensorArgument)
        }
        for index in bases:
            for other in bases:
                written = self.signature.params[index].is_written or self.signature.params[other].is_written
                if other < index and written:
                    (first, last), (other_first, other_last) = ranges[index], ranges[other]
                    tests = b.compare("ule", last, other_first), b.compare("ule", other_last, first)
                    apart = b.make(llvm.OrOp, tests, i1)
                    message = messages.overlapping(self._subject(index), self.subjects[other])
                    self.errors.require(apart, "ValueError", message)
