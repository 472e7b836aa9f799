"""Errors of packed entries: messages with numbers and names that are only known at run time.

`f(tensors and scalars...)` binds the symbols from the shapes, and those of layouts alone from the strides;
`f(sizes..., tensors and scalars...)` takes them from the caller. A wrong kind, rank or dtype raises `TypeError`; a
wrong size, layout or alignment, or memory that overlaps, `ValueError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr, f64, i1, i8, i16, i32, i64
from xdsl.ir import Attribute, Block, SSAValue

from lowering.llvm import llvm_ext
from lowering.llvm.function_builder import call_op
from lowering.llvm.llvm_builder import POINTER, LLVMBuilder, ModuleBuilder
from lowering.tir_to_llvm.arithmetic.division import CheckedDimValues, DimValues, multiply_checked
from lowering.tir_to_llvm.arithmetic.scalars import convert_float, llvm_type
from lowering.tir_to_llvm.emitter import KernelSignature
from tir_dialect.analysis.dims import layout_symbols
from tir_dialect.dims import Check, CheckKind, Dim, MatchError, Solution, solve, symbol
from tir_dialect.dtypes import byte_size, is_float, lookup
from tir_dialect.types import BufferType, Interval
from vm_dialect import messages

_TEXT_BYTES = 1024
_KIND_NAME = "relax.kind_name"
_DTYPE_NAMES: Mapping[int, str] = {0: "int%lld", 1: "uint%lld", 2: "float%lld", 4: "bfloat%lld", 6: "bool"}
_PRINTF = llvm.LLVMFunctionType([POINTER, i64, POINTER], i32, is_variadic=True)
_FAILED = -1


def text_address(b: LLVMBuilder, text: str) -> SSAValue:
    """The address of a text constant that ends in a zero byte."""
    return b.make(llvm.AddressOfOp, (), POINTER, {"global_name": SymbolRefAttr(b.module.text(text))})


class PackedErrors:
    """Leaves a packed entry with an error where a condition fails."""

    def __init__(self, b: LLVMBuilder) -> None:
        self._b = b
        self._buffers: dict[str, SSAValue] = {}

    def require(self, condition: SSAValue, kind: str, template: str, integers: Sequence[SSAValue] = ()) -> None:
        """Goes on where the condition holds; else raises `template`, filled with the integers."""
        b = self._b
        passed, failed = b.new_block(), b.new_block()
        b.branch_if(condition, passed, failed)
        b.start(failed)
        self.fail(kind, template, integers)
        b.start(passed)

    def fail(self, kind: str, template: str, integers: Sequence[SSAValue] = (), name: SSAValue | None = None) -> None:
        """Raises the error and leaves; ends the block."""
        b = self._b
        pattern = template.replace("%", "%%").replace("{}", "%lld").replace("{name}", "%s")
        # What fills the marks, in order of the marks.
        values: list[SSAValue] = []
        rest = iter(integers)
        for position in range(len(template)):
            if template.startswith("{}", position):
                values.append(next(rest))
            elif template.startswith("{name}", position) and name is not None:
                values.append(name)
        text = self._format_by("text", _TEXT_BYTES, text_address(self._b, pattern), values)
        b.module.declare("TVMFFIErrorSetRaisedFromCStr", [POINTER, POINTER], None)
        b.insert(call_op("TVMFFIErrorSetRaisedFromCStr", (text_address(b, kind), text), None))
        b.insert(llvm.ReturnOp(b.integer(_FAILED, i32)))

    def require_kind(self, condition: SSAValue, subject: str, expected: str, type_index: SSAValue) -> None:
        """Raises `TypeError` for a value of another kind than `expected`."""
        b = self._b
        passed, failed = b.new_block(), b.new_block()
        b.branch_if(condition, passed, failed)
        b.start(failed)
        self.fail("TypeError", messages.wrong_kind(subject, expected), name=self.kind_name(type_index))
        b.start(passed)

    def require_dtype(self, condition: SSAValue, template: str, code: SSAValue, bits: SSAValue) -> None:
        """Raises `TypeError` for a tensor of another dtype; code and bits are i64."""
        b = self._b
        passed, failed = b.new_block(), b.new_block()
        b.branch_if(condition, passed, failed)
        b.start(failed)
        self.fail("TypeError", template, name=self.dtype_name(code, bits))
        b.start(passed)

    def dtype_name(self, code: SSAValue, bits: SSAValue) -> SSAValue:
        """The name of a DLPack type, as `float32`; code and bits are i64."""
        b = self._b
        pattern = text_address(b, "type%lld")
        for number, name in _DTYPE_NAMES.items():
            pattern = b.select(b.compare("eq", code, b.integer(number)), text_address(b, name), pattern)
        return self._format_by("dtype", 64, pattern, [bits])

    def kind_name(self, type_index: SSAValue) -> SSAValue:
        """The name of a tvm-ffi type index, an i32."""
        return self._b.call(_kind_name_function(self._b.module), [type_index], POINTER)

    def _format_by(self, buffer: str, size: int, pattern: SSAValue, values: Sequence[SSAValue]) -> SSAValue:
        b = self._b
        text = self._buffer(buffer, size)
        b.module.declare_variadic("snprintf", _PRINTF)
        arguments = [text, b.integer(size), pattern, *values]
        b.insert(llvm.CallOp("snprintf", *arguments, return_type=i32, var_callee_type=_PRINTF))
        return text

    def _buffer(self, name: str, size: int) -> SSAValue:
        if name not in self._buffers:
            b = self._b
            block, b.block = b.block, b.entry
            self._buffers[name] = b.insert(llvm.AllocaOp(b.integer(1), llvm.LLVMArrayType(size, i8), 16)).results[0]
            b.block = block
        return self._buffers[name]


def _kind_name_function(module: ModuleBuilder) -> str:
    """`ptr kind_name(i32 type_index)`, added to the module once."""
    if _KIND_NAME in module.defined:
        return _KIND_NAME
    b = LLVMBuilder(module, [i32])
    done = b.new_block([POINTER])
    default = text_address(b, "object")
    cases = [(index, done, [text_address(b, name)]) for index, name in messages.KINDS.items()]
    b.insert(llvm_ext.SwitchOp(b.entry.args[0], (done, [default]), cases))
    b.start(done)
    b.insert(llvm.ReturnOp(done.args[0]))
    module.define(_KIND_NAME, [i32], POINTER, b.finish(), internal=True, properties={})
    return _KIND_NAME


ANY_BYTES = 16
OBJECT_BYTES = 24
_TYPE_INDEX, _PAYLOAD = 0, 8
_DATA, _DEVICE, _RANK, _CODE, _BITS, _LANES, _SHAPE, _STRIDES, _OFFSET = 0, 8, 16, 20, 21, 22, 24, 32, 40
_INT, _BOOL, _FLOAT, _DL_TENSOR, _TENSOR = 1, 2, 3, 7, 70
_CPU = 1


@dataclass(frozen=True)
class TensorArgument:
    """A tensor whose kind, device, rank and dtype have been checked."""

    subject: str
    type: BufferType
    data: SSAValue
    """Address of the first element, as an i64."""
    shape: tuple[SSAValue, ...]
    strides: tuple[SSAValue, ...]
    """In elements."""


def field(b: LLVMBuilder, base: SSAValue, offset: int, type_: Attribute) -> SSAValue:
    """Loads a value `offset` bytes after an address."""
    return b.load(b.element(base, b.integer(offset), i8), type_, 1)


class ArgumentReader:
    """Reads arguments out of the array of `TVMFFIAny`."""

    def __init__(self, b: LLVMBuilder, errors: PackedErrors) -> None:
        self._b = b
        self._errors = errors

    def tensor(self, argument: SSAValue, subject: str, type_: BufferType) -> TensorArgument:
        """A tensor of the rank and dtype of a buffer type, in the memory of the CPU."""
        b, errors = self._b, self._errors
        kind = field(b, argument, _TYPE_INDEX, i32)
        is_object = b.compare("eq", kind, b.integer(_TENSOR, i32))
        is_pointer = b.compare("eq", kind, b.integer(_DL_TENSOR, i32))
        is_tensor = b.make(llvm.OrOp, (is_object, is_pointer), i1)
        errors.require_kind(is_tensor, subject, "tensor", kind)
        payload = field(b, argument, _PAYLOAD, POINTER)
        tensor = b.select(is_object, b.element(payload, b.integer(OBJECT_BYTES), i8), payload)
        self._check_type(tensor, subject, type_)
        shape = self._integers(field(b, tensor, _SHAPE, POINTER), type_.rank)
        self._check_size(subject, type_, shape)
        strides = self._strides(tensor, shape)
        address = b.make(llvm.PtrToIntOp, (field(b, tensor, _DATA, POINTER),), i64)
        data = b.add(address, field(b, tensor, _OFFSET, i64))
        return TensorArgument(subject, type_, data, shape, strides)

    def _check_type(self, tensor: SSAValue, subject: str, type_: BufferType) -> None:
        b, errors = self._b, self._errors
        device = b.make(llvm.ZExtOp, (field(b, tensor, _DEVICE, i32),), i64)
        errors.require(b.compare("eq", device, b.integer(_CPU)), "ValueError", messages.wrong_device(subject), [device])
        rank = b.make(llvm.SExtOp, (field(b, tensor, _RANK, i32),), i64)
        message = messages.wrong_rank(subject, type_.rank)
        errors.require(b.compare("eq", rank, b.integer(type_.rank)), "TypeError", message, [rank])
        dtype = lookup(type_.dtype)
        code, bits = (b.make(llvm.ZExtOp, (field(b, tensor, offset, i8),), i64) for offset in (_CODE, _BITS))
        expected = dtype.dlpack
        parts = [b.compare("eq", code, b.integer(expected[0])), b.compare("eq", bits, b.integer(expected[1]))]
        parts.append(b.compare("eq", field(b, tensor, _LANES, i16), b.integer(1, i16)))
        same = b.make(llvm.AndOp, (b.make(llvm.AndOp, (parts[0], parts[1]), i1), parts[2]), i1)
        errors.require_dtype(same, messages.wrong_dtype(subject, dtype.numpy_name), code, bits)

    def _check_size(self, subject: str, type_: BufferType, shape: Sequence[SSAValue]) -> None:
        """No extent is negative, and the others are not too large, also where one is 0."""
        b = self._b
        size, valid = b.integer(byte_size(type_.dtype)), b.integer(1, i1)
        for extent in shape:
            size, overflow = multiply_checked(b, size, b.overloaded("llvm.smax", (extent, b.integer(1)), i64))
            good = b.make(llvm.XOrOp, (overflow, b.integer(1, i1)), i1)
            good = b.make(llvm.AndOp, (good, b.compare("sle", size, b.integer(messages.MOST_BYTES))), i1)
            good = b.make(llvm.AndOp, (good, b.compare("sge", extent, b.integer(0))), i1)
            valid = b.make(llvm.AndOp, (valid, good), i1)
        self._errors.require(valid, "ValueError", messages.too_large_argument(subject))

    def _integers(self, array: SSAValue, count: int) -> tuple[SSAValue, ...]:
        return tuple(field(self._b, array, 8 * index, i64) for index in range(count))

    def _strides(self, tensor: SSAValue, shape: Sequence[SSAValue]) -> tuple[SSAValue, ...]:
        """The strides; where there are none, those of contiguous memory."""
        b = self._b
        if not shape:
            return ()
        contiguous: list[SSAValue] = [b.integer(1)]
        for extent in reversed(shape[1:]):
            contiguous.insert(0, b.mul(contiguous[0], extent))
        array = field(b, tensor, _STRIDES, POINTER)
        given, after = b.new_block(), b.new_block([i64] * len(shape))
        absent = b.new_block()
        is_null = b.compare("eq", b.make(llvm.PtrToIntOp, (array,), i64), b.integer(0))
        b.branch_if(is_null, absent, given)
        b.start(given)
        b.branch(after, *self._integers(array, len(shape)))
        b.start(absent)
        b.branch(after, *contiguous)
        b.start(after)
        return tuple(after.args)

    def integer(self, argument: SSAValue, subject: str) -> SSAValue:
        """An int or bool, as an i64."""
        b = self._b
        kind = field(b, argument, _TYPE_INDEX, i32)
        self._errors.require_kind(self._is_one_of(kind, _INT, _BOOL), subject, "int", kind)
        return field(b, argument, _PAYLOAD, i64)

    def scalar(self, argument: SSAValue, subject: str, type_: Attribute) -> SSAValue:
        """A number of a scalar type; one that does not fit raises `ValueError`."""
        if is_float(type_):
            b = self._b
            kind = field(b, argument, _TYPE_INDEX, i32)
            self._errors.require_kind(self._is_one_of(kind, _FLOAT, _INT), subject, "float", kind)
            number = field(b, argument, _PAYLOAD, f64)
            integer = b.make(llvm.SIToFPOp, (field(b, argument, _PAYLOAD, i64),), f64)
            value = b.select(b.compare("eq", kind, b.integer(_FLOAT, i32)), number, integer)
            return convert_float(b, value, f64, type_)
        b = self._b
        value = self.integer(argument, subject)
        if type_ == i1:
            return b.compare("ne", value, b.integer(0))
        target = llvm_type(type_)
        if target == i64:
            return value
        bits = lookup(type_).bits
        low, high = b.integer(-(1 << (bits - 1))), b.integer((1 << bits) - 1)
        fits = b.make(llvm.AndOp, (b.compare("sge", value, low), b.compare("sle", value, high)), i1)
        message = f"{subject}: expected a number of {bits} bits, got {{}}"
        self._errors.require(fits, "ValueError", message, [value])
        return b.make(llvm.TruncOp, (value,), target)

    def _is_one_of(self, kind: SSAValue, first: int, second: int) -> SSAValue:
        b = self._b
        tests = (b.compare("eq", kind, b.integer(first, i32)), b.compare("eq", kind, b.integer(second, i32)))
        return b.make(llvm.OrOp, tests, i1)


def check_layout(b: LLVMBuilder, errors: PackedErrors, tensor: TensorArgument, dims: DimValues) -> SSAValue:
    """Checks strides and alignment; gives the base address of the buffer, as an i64."""
    expected = [dims(stride) for stride in tensor.type.strides]
    is_empty = b.integer(0, i1)
    for extent in tensor.shape:
        is_empty = b.make(llvm.OrOp, (is_empty, b.compare("eq", extent, b.integer(0))), i1)
    wrong_axis = b.integer(-1)
    for axis in range(tensor.type.rank):
        differs = b.compare("ne", tensor.strides[axis], expected[axis])
        matters = b.compare("ne", tensor.shape[axis], b.integer(1))
        wrong_axis = b.select(b.make(llvm.AndOp, (differs, matters), i1), b.integer(axis), wrong_axis)
    fine = b.make(llvm.OrOp, (is_empty, b.compare("slt", wrong_axis, b.integer(0))), i1)
    if tensor.type.has_default_strides:
        message = messages.not_contiguous(tensor.subject)
    else:
        strides = ", ".join(map(str, tensor.type.strides))
        message = f"{tensor.subject}: expected strides [{strides}], got another one along axis {{}}"
    errors.require(fine, "ValueError", message, [wrong_axis])
    offset = b.mul(dims(tensor.type.offset), b.integer(byte_size(tensor.type.dtype)))
    base = b.sub(tensor.data, offset)
    alignment = byte_size(tensor.type.dtype)
    remainder = b.make(llvm.AndOp, (base, b.integer(alignment - 1)), i64)
    aligned = b.make(llvm.OrOp, (is_empty, b.compare("eq", remainder, b.integer(0))), i1)
    errors.require(aligned, "ValueError", messages.not_aligned(tensor.subject, alignment), [remainder])
    return base


def byte_range(b: LLVMBuilder, tensor: TensorArgument, base: SSAValue, dims: DimValues) -> tuple[SSAValue, SSAValue]:
    """The addresses of the first byte and after the last one, as i64; both 0 if there are no elements.

    A negative stride moves the first byte, any other one the last.
    """
    size, zero = b.integer(byte_size(tensor.type.dtype)), b.integer(0)
    low = dims(tensor.type.offset)
    high, is_empty = b.add(low, b.integer(1)), b.integer(0, i1)
    for extent, stride in zip(tensor.shape, tensor.type.strides, strict=True):
        steps = b.mul(b.sub(extent, b.integer(1)), dims(stride))
        is_empty = b.make(llvm.OrOp, (is_empty, b.compare("eq", extent, zero)), i1)
        if tensor.type.has_default_strides:
            high = b.add(high, steps)
            continue
        backwards = b.compare("slt", steps, zero)
        low = b.add(low, b.select(backwards, steps, zero))
        high = b.add(high, b.select(backwards, zero, steps))
    first, last = (b.add(base, b.mul(end, size)) for end in (low, high))
    return b.select(is_empty, zero, first), b.select(is_empty, zero, last)


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
        # Unlike extents, strides that bind a symbol may be negative, where kernels rely on what a symbol
        # is.
        intervals = dict(self.signature.symbols)
        for source, layout in enumerate(self.layouts, len(self.patterns)):
            subject = f"{self.signature.name}: {self._described(source)}"
            self._check_interval(subject, layout.name, intervals[layout.name], self._got(source))
        self._require_no_overflow(dims)
        b.branch(bound, *[dims(solution.bindings[name]) for name in names])

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
