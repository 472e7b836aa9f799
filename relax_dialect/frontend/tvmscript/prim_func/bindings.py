"""Names of PrimFuncs: what assignments bind and store, checked by annotations; macros, expanded."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from xdsl.ir import Block

from relax_dialect.frontend.tvmscript.evaluator import items_of
from relax_dialect.frontend.tvmscript.functions import Inline, arguments_of
from relax_dialect.frontend.tvmscript.prim_func.buffers import (
    ADDRESS,
    DECLARATIONS,
    alloc,
    allocate,
    allocate_pointer,
    declare,
    declare_at,
    match_region,
    names_handle,
    read_annotation,
    read_dims,
    read_scalar_type,
    to_address,
)
from relax_dialect.frontend.tvmscript.prim_func.intrinsics import TirCallReader
from relax_dialect.frontend.tvmscript.prim_func.scalar_functions import converted, memory_dtype, promoted
from relax_dialect.frontend.tvmscript.prim_func.scalars import (
    Axis,
    Buffer,
    Handle,
    Index,
    MutableVariable,
    Pointer,
    Region,
    Vector,
    whole,
)
from relax_dialect.frontend.tvmscript.prim_func.vectors import as_vector, store_vector
from relax_dialect.frontend.tvmscript.program import Program
from relax_dialect.frontend.tvmscript.scopes import Scope, Unbound, declarations, describe, is_dtype_name
from relax_dialect.frontend.tvmscript.source import Aliases, Source, dotted
from tir_dialect.dims import Dim, constant
from tir_dialect.dtypes import dtype_name, lookup
from tir_dialect.te.coerce import is_bool, is_float, is_integer
from tir_dialect.te.expr import DType
from tir_dialect.te.expr import Expr as Scalar
from tir_dialect.te.operators import to_dtype
from tir_dialect.types import BufferType, as_name_hint


def assigned_often(functions: Iterable[ast.AST]) -> frozenset[str]:
    """The names that functions assign more than once, together."""
    counts: Counter[str] = Counter()
    for node in (each for function in functions for each in ast.walk(function)):
        match node:
            case ast.Assign(targets=[*targets]):
                names = [each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
                counts.update(each.id for each in names if isinstance(each.ctx, ast.Store))
            case ast.AnnAssign(target=ast.Name(id=name)):
                counts[name] += 1
            case ast.AugAssign(target=ast.Name(id=name)):
                counts[name] += 2  # there is an assignment before it, if only at the call of a macro
            case _:
                pass
    return frozenset(name for name, count in counts.items() if count > 1)


def new_variable(
    reader: TirBindingReader, node: ast.AST, name: str, dtype: DType, lanes: int | None = None
) -> MutableVariable:
    """Memory for a name, with no value yet; indices are kept as 64 bits."""
    kept = memory_dtype(dtype)
    kind = BufferType([] if lanes is None else [lanes], lookup(kept).type, scope="local")
    return MutableVariable(alloc(reader, node, kind, name, lanes))


def declare_name(reader: TirBindingReader, node: ast.AnnAssign, name: str) -> bool:
    """`x: T.int32`, which is assigned later, or `v: T.float32[4]`, memory; false for a name that may be a dimension."""
    annotation = node.annotation
    if isinstance(annotation, ast.Subscript):
        shape = read_dims(reader, annotation.slice, implicit=False)
        kind = BufferType(shape, reader.dtype(annotation.value), scope="local")
        reader.scope.bind(name, alloc(reader, node, kind, name))
        return True
    if name in reader.rebound:
        reader.scope.bind(name, new_variable(reader, node, name, lookup(reader.dtype(annotation)).type))
        return True
    return False


def whole_of(cell: MutableVariable) -> Region:
    """The scalar or vector that a name stands for."""
    lanes = cell.buffer.lanes
    return Region(cell.buffer, () if lanes is None else (Axis(constant(0), constant(lanes)),))


def assign_variable(reader: TirBindingReader, node: ast.AST, name: str, value: object) -> bool:
    """Writes a scalar or vector to the memory of a name; false if the name has none and is to be bound."""
    if not isinstance(value, Scalar | Dim | bool | int | float | Vector):
        return False
    held = reader.scope.find(name)
    if isinstance(held, Buffer) and held.type.shape == (constant(1),):
        reader.store(node, Region(held, (Axis(constant(0)),)), value)
        return True
    if not isinstance(held, MutableVariable):
        if name not in reader.rebound:
            return False
        if isinstance(value, Vector):
            held = new_variable(reader, node, name, value.dtype, value.lanes)
        elif isinstance(value, bool):
            held = new_variable(reader, node, name, to_dtype("bool"))
        else:
            held = new_variable(reader, node, name, reader.emit(node, lambda: promoted(value)[0]).dtype)
        reader.scope.bind(name, held)
    region = whole_of(held)
    if region.is_vector:
        store_vector(reader, node, region, value)
    else:
        reader.store(node, region, value)
    return True


_EXPECTED = "expected a dtype such as T.int32, T.let, T.Buffer(...) or T.handle"


def annotated_value(reader: TirBindingReader, node: ast.AnnAssign, value: ast.expr, found: object) -> object:
    """What a name with an annotation is bound to: the value, a number or scalar as one of the dtype that is said.

    An error at the annotation if it is none, at the value if that is of another kind. Integers and floats become those
    of other widths, integers floats; nothing else is converted.
    """
    annotation = _meant(reader, node.annotation)
    if annotation is None:
        return found
    if (dtype := _dtype(reader, annotation)) is not None:
        return _scalar(reader, value, found, *dtype)
    declared = read_annotation(reader, annotation)
    if declared is not None:
        wanted = declared.type
        if not isinstance(found, Buffer) or (found.type.shape, found.type.dtype) != (wanted.shape, wanted.dtype):
            reader.fail(value, f"expected {wanted}, got {_described(found)}")
        return found
    head = annotation.func if isinstance(annotation, ast.Call) else annotation
    if reader.aliases.name_in("tir", head) not in ("handle", "Ptr"):
        reader.fail(annotation, _EXPECTED)
    if (isinstance(found, Scalar) and found.dtype == ADDRESS) or (isinstance(found, int) and found == 0):
        return to_address(reader, value, found)
    if not isinstance(found, Buffer | Pointer | Handle):
        reader.fail(value, f"expected a handle, got {_described(found)}")
    return found


def says_pointer(reader: TirBindingReader, annotation: ast.expr) -> bool:
    """Whether an annotation is `T.handle`, or `T.let` of it."""
    meant = _meant(reader, annotation)
    return meant is not None and names_handle(reader, meant)


def _meant(reader: TirBindingReader, annotation: ast.expr) -> ast.expr | None:
    """The annotation in `T.let[...]`; `None` for `T.let` alone, which says nothing."""
    if reader.aliases.name_in("tir", annotation) == "let":
        return None
    if isinstance(annotation, ast.Subscript) and reader.aliases.name_in("tir", annotation.value) == "let":
        return annotation.slice
    return annotation


def _dtype(reader: TirBindingReader, annotation: ast.expr) -> tuple[DType, int | None] | None:
    """The dtype, and the lanes of `T.int8x4`; `None` for an annotation that is no dtype."""
    head = annotation.func if isinstance(annotation, ast.Call) and not annotation.args else annotation
    lanes = re.fullmatch(r"(\w*\d)x(\d+)", reader.aliases.name_in("tir", head) or "")
    if lanes is not None and is_dtype_name(lanes[1]):
        return to_dtype(lanes[1]), int(lanes[2])
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return lookup(reader.dtype(annotation)).type, None
    found = read_scalar_type(reader, annotation)
    return None if found is None else (lookup(found).type, None)


def _scalar(reader: TirBindingReader, node: ast.expr, found: object, dtype: DType, lanes: int | None) -> object:
    wanted = dtype_name(dtype) if lanes is None else f"{lanes} lanes of {dtype_name(dtype)}"
    if isinstance(found, Vector) and (found.dtype, found.lanes) == (dtype, lanes):
        return found
    if lanes is not None or not isinstance(found, Scalar | Dim | bool | int | float):
        reader.fail(node, f"expected a value of {wanted}, got {_described(found)}")
    # Whether nothing is lost but width: no fraction, and no number that stands for a truth value.
    if isinstance(found, Scalar):
        kind = found.dtype
        given_float, given_bool = is_float(kind), is_bool(kind)
    else:
        given_float, given_bool = isinstance(found, float), isinstance(found, bool) or found in (0, 1)
    if not (given_bool if is_bool(dtype) else is_float(dtype) or not given_float):
        reader.fail(node, f"expected a value of {wanted}, got {_described(found)}; T.cast converts it")
    if isinstance(found, Dim) and is_integer(dtype):
        return found
    operand: Scalar | Dim | float = found
    return reader.emit(node, lambda: converted(operand, dtype))


def _described(found: object) -> str:
    match found:
        case Vector():
            return f"{found.lanes} lanes of {found.dtype}"
        case Scalar():
            return f"one of {found.dtype}"
        case Buffer():
            return f"{found.type}"
        case _:
            return describe(found)


CONTINUE, BREAK, RETURN = 1, 2, 3
"""What has been left: the round of a loop, the loop, the function."""

_NAMES = {
    "continue_loop": CONTINUE,
    "Continue": CONTINUE,
    "break_loop": BREAK,
    "Break": BREAK,
    "ret": RETURN,
    "Return": RETURN,
}


def jump_of(aliases: Aliases, statement: ast.AST) -> int | None:
    """What a statement leaves, if it is a jump."""
    match statement:
        case ast.Continue():
            return CONTINUE
        case ast.Break():
            return BREAK
        case ast.Return():
            return RETURN
        case ast.Expr(value=ast.Call() as call):
            return _NAMES.get(aliases.name_in("tir", _evaluated(call).func) or "")
        case _:
            return None


def _evaluated(call: ast.Call) -> ast.Call:
    """The call in `T.evaluate(T.ret(x))`, or the call itself."""
    match call:
        case ast.Call(func=ast.Attribute(attr="evaluate"), args=[ast.Call() as inner]):
            return inner
        case _:
            return call


def jumps_of(aliases: Aliases, statements: Iterable[ast.stmt]) -> frozenset[int]:
    """What may be left by statements, beyond loops among them."""
    found: set[int] = set()
    for statement in statements:
        if (own := jump_of(aliases, statement)) is not None:
            found.add(own)
        inner = [each for each in ast.iter_child_nodes(statement) if isinstance(each, ast.stmt)]
        nested = jumps_of(aliases, inner)
        found |= nested - {CONTINUE, BREAK} if isinstance(statement, ast.For | ast.While) else nested
    return frozenset(found)


def returned_value(statement: ast.AST) -> ast.expr | None:
    """The expression that a `return`, `T.ret` or `T.Return` gives; `None` if it gives nothing."""
    match statement:
        case ast.Return(value=value):
            found = value
        case ast.Expr(value=ast.Call() as call):
            found = next(iter(_evaluated(call).args), None)
        case _:
            found = None
    return None if isinstance(found, ast.Constant) and found.value is None else found


class ScopedStatements(ast.stmt):
    """Statements whose names are looked up in another scope: the body of a macro beside those of its caller."""

    _fields = ("body",)

    def __init__(self, scope: Scope, body: Sequence[ast.stmt], node: ast.AST):
        super().__init__()
        self.scope = scope
        self.body = list(body)
        ast.copy_location(self, node)

    def of(self, body: Sequence[ast.stmt]) -> ScopedStatements:
        """Other statements of the same scope."""
        return ScopedStatements(self.scope, body, self)


def walk_own_scope(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it, but no statements of another scope."""
    if isinstance(node, ScopedStatements):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from walk_own_scope(child)


def loop_variable_name(name: str, index: int) -> str:
    """What a loop variable is called that is one of several under `name`."""
    return f"{name}.{index}"


_HEAD = frozenset({"where", "reads", "writes", "sblock_attr", "block_attr"})
"""What a block says of itself besides its iterators."""


@contextmanager
def standing_for(reader: TirBindingReader, node: ast.Call, inline: Inline) -> Generator[Sequence[ast.stmt]]:
    """The body of a function, to be read instead of its call; parameters stand for the arguments."""
    definition = inline.node
    if jumps_of(reader.aliases, definition.body):
        reader.fail(node, f"{definition.name} leaves its body early, which the place of a call cannot")
    if inline.of_relax:
        reader.fail(node, f"{definition.name} belongs into a function of relax; PrimFuncs call T.inline or T.macro")
    values = arguments_of(reader, node, definition)
    # a parameter that stands for a loop variable has its domain
    domains = {id(reader.scope.find(name)): domain for name, domain in reader.extents.items() if name in reader.scope}
    scope = reader.scope if inline.scope is None else inline.scope.shared()
    with reader.reading_in(scope), reader.inside():
        for name, value in values.items():
            reader.scope.bind(name, value)
            items = items_of(value) or ()
            for position, item in (
                (name, value),
                *((loop_variable_name(name, index), item) for index, item in enumerate(items)),
            ):
                if (domain := domains.get(id(item))) is not None:
                    reader.scope.bind(position, item)
                    reader.extents[position] = domain
        yield definition.body


@contextmanager
def block_body(reader: TirBindingReader, statements: Sequence[ast.stmt]) -> Generator[Sequence[ast.stmt]]:
    """What a block consists of: if that is one call of a function that begins with the head of a block, its body.

    The function may also call another one that does, and other statements may stand beside the call.
    """
    match statements:
        case [ast.Expr(value=ast.Call() as call)] if (inline := reader.inline_of(call.func)) is not None:
            if _stands_for_head(reader, inline, ()):
                with standing_for(reader, call, inline) as body, block_body(reader, body) as inner:
                    yield inner
                return
        case _:
            pass
    with ExitStack() as stack:
        yield [_opened(reader, each, stack) for each in statements]


def _opened(reader: TirBindingReader, statement: ast.stmt, stack: ExitStack) -> ast.stmt:
    """The body of a function that begins with the head of a block, for its call among other statements of the block."""
    match statement:
        case ast.Expr(value=ast.Call() as call) if (inline := reader.inline_of(call.func)) is not None:
            if not _stands_for_head(reader, inline, ()):
                return statement
            around = reader.scope
            body = stack.enter_context(standing_for(reader, call, inline))
            inner = [_opened(reader, each, stack) for each in body]
            there, reader.scope = reader.scope, around
            return ScopedStatements(there, inner, statement)
        case _:
            return statement


def _stands_for_head(reader: TirBindingReader, inline: Inline, callers: tuple[Inline, ...]) -> bool:
    """Whether the body of a function begins with the head of a block, or is one call of a function whose body does."""
    match inline.node.body:
        case [ast.Expr(value=ast.Call(func=ast.Name(id=name)))] if inline not in callers:
            called = (inline.scope or reader.scope).find(name)
            if isinstance(called, Inline):
                return _stands_for_head(reader, called, (*callers, inline))
        case _:
            pass
    match inline.node.body[0]:
        case ast.Assign(value=ast.Tuple(elts=[ast.Call(func=func), *_])):
            pass
        case ast.Assign(value=ast.Call(func=func)) | ast.Expr(value=ast.Call(func=func)):
            pass
        case _:
            return False
    name = reader.aliases.name_in("tir", func) or ""
    return name.startswith("axis.") or name in _HEAD


_ALLOCATIONS = frozenset({"alloc_buffer", "sblock_alloc_buffer", "alloc_local", "alloc_shared", "block_alloc_buffer"})

_SCALARS = frozenset({"local_scalar", "alloc_scalar", "shared_scalar"})


class TirBindingReader(TirCallReader):
    """Reads statements that bind names of one PrimFunc, or store to buffers."""

    def __init__(self, source: Source, aliases: Aliases, scope: Scope, program: Program):
        super().__init__(source, aliases, scope)
        self.program = program
        self.threads: dict[str, Scalar] = {}
        """The variables of loops that would be threads of a GPU."""
        self.rebound: frozenset[str] = frozenset()
        """The names that are assigned more than once."""
        self.extents: dict[str, tuple[Index, Index]] = {}
        """First value and number of values of the loop variables that are visible."""

    @contextmanager
    def inside(self, block: Block | None = None) -> Generator[None]:
        """Reads into another block for a while; names and axes that are new end with it."""
        saved = self.block, self.axes, dict(self.extents), dict(self.threads)
        self.block = self.block if block is None else block
        try:
            with self.scope.inner():
                yield
        finally:
            self.block, self.axes, self.extents, self.threads = saved

    def assign(self, node: ast.AST, target: ast.expr, value: ast.expr) -> None:
        if found := declarations(self.aliases, target, value):
            for _, name, _ in found:
                if not isinstance(self.scope.find(name), Dim):
                    self.scope.bind(name, Unbound(f"{name} occurs in no shape of a parameter, and is not bound before"))
            return
        match target:
            case ast.Subscript():
                self._store(target, self.value(value))
            case ast.Name():
                self.bind(node, target.id, self.named(target.id, value))
            case ast.Tuple() | ast.List():
                self._unpack(node, target.elts, value)
            case _:
                self.fail(target, "expected a name, or an element of a buffer")

    def _unpack(self, node: ast.AST, targets: Sequence[ast.expr], value: ast.expr) -> None:
        """`a, b = x, y`, or the elements of a tuple such as a shape; all are evaluated before one is assigned."""
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(targets) == len(names):
            found = [self.named(name, other) for name, other in zip(names, value.elts, strict=True)]
            for name, each in zip(names, found, strict=True):
                self.bind(node, name, each)
            return
        items = items_of(self.value(value))
        if items is None or len(items) != len(targets):
            self.fail(value, f"expected {len(targets)} values")
        for target, item in zip(targets, items, strict=True):
            if not isinstance(target, ast.Name):
                self.fail(target, "expected a name")
            self.bind(node, target.id, item)

    def bind(self, node: ast.AST, name: str, value: object) -> None:
        """Gives a name a value, or writes the value to the memory that the name stands for."""
        if not assign_variable(self, node, name, value):
            self.scope.bind(name, value)

    def named(self, name: str, node: ast.expr) -> object:
        """What a name is bound to: a buffer, memory, or a scalar that is evaluated here."""
        node = self.meant_call(node) if isinstance(node, ast.Call) else node
        call = self.aliases.name_in("tir", node.func) if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and call is not None:
            if call in _ALLOCATIONS:
                return allocate(self, node, name, f"T.{call}")
            if call in DECLARATIONS:
                return declare(self, node, name, f"T.{call}")
            if call in _SCALARS:
                dtype = self.arguments(node, f"T.{call}", "dtype scope").get("dtype")
                return new_variable(self, node, name, to_dtype("float32" if dtype is None else self.text(dtype)))
            if call == "allocate":
                return allocate_pointer(self, node)
            if call == "match_buffer":
                return self._match_buffer(name, node)
            if call == "bind":
                node = self.arguments(node, "T.bind", "value type_annotation var").require("value")
        return self._kept(node, self.value(node), name)

    def _kept(self, node: ast.AST, value: object, name: str) -> object:
        """A scalar or vector, evaluated once where it is bound."""
        if isinstance(value, Region):
            value = as_vector(self, node, value) or self.load(node, value)
        if not isinstance(value, Scalar):
            return value
        (made,) = self.values(node, value)
        made.name_hint = made.name_hint or as_name_hint(name)
        return self.variable(made, value.dtype, name)

    def _match_buffer(self, name: str, node: ast.Call) -> object:
        source = node.args[0] if node.args else None
        if isinstance(source, ast.Subscript):
            owner = self.value(source.value)
            if isinstance(owner, Buffer):
                return match_region(self, node, name, self.region(source, owner))
        value = None if source is None else self.value(source)
        if isinstance(value, Buffer):
            region = whole(value)
            return match_region(self, node, name, region)
        if isinstance(value, Scalar):
            # `T.match_buffer(pointer, shape, dtype)` of a parameter that is an address.
            others = [keyword for keyword in node.keywords if keyword.arg not in ("var", "param")]
            call = ast.copy_location(ast.Call(node.func, node.args[1:], others), node)
            return declare_at(self, call, name, "T.match_buffer", value)
        if isinstance(value, Handle):
            self.fail(node, "T.match_buffer of a parameter belongs to the top of the function")
        self.fail(node, "T.match_buffer expected a parameter, or a region of a buffer")

    def annotated(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            self.fail(node.target, "expected a name")
        if node.value is None:
            if not declare_name(self, node, node.target.id):
                self.assign(node, node.target, ast.copy_location(ast.Call(node.annotation, [], []), node))
            return
        if declarations(self.aliases, node.target, node.value):
            self.assign(node, node.target, node.value)
            return
        name = node.target.id
        found = annotated_value(self, node, node.value, self.named(name, node.value))
        kept = self._kept(node, found, name)
        if isinstance(kept, Scalar) and says_pointer(self, node.annotation):
            self.pointers.add(kept)
        self.bind(node, name, kept)

    def augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        operation = ast.copy_location(ast.BinOp(target, node.op, node.value), node)
        result = self.binary(operation, self.value(target), self.value(node.value))
        if isinstance(target, ast.Subscript):
            self._store(target, result)
        elif isinstance(target, ast.Name):
            self.bind(node, target.id, self._kept(node, result, target.id))
        else:
            self.fail(target, "expected a name, or an element of a buffer")

    def _store(self, target: ast.Subscript, value: object) -> None:
        owner = self.value(target.value)
        if not isinstance(owner, Buffer):
            self.fail(target.value, "expected a buffer to store to")
        region = self.region(target, owner)
        if region.is_vector:
            store_vector(self, target, region, value)
        else:
            self.store(target, region, value)

    def name(self, node: ast.Name) -> object:
        found = super().name(node)
        if not isinstance(found, MutableVariable):
            return found
        region = whole_of(found)
        return region if region.is_vector else self.load(node, region)

    def inline_of(self, node: ast.expr) -> Inline | None:
        """The function that a name stands for, alone or as one of the module."""
        match dotted(node):
            case (name,):
                found = self.scope.find(name)
            case (module, name) if self.program.is_module(module):
                found = self.scope.find(name)
            case _:
                return None
        return found if isinstance(found, Inline) else None
