"""Control flow: If, Loop and Scan, and the inner graphs that are their bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onnx import GraphProto, NodeProto
from xdsl.dialects.builtin import f32, i1, i64
from xdsl.ir import Block, SSAValue

from relax_dialect.builder import op
from relax_dialect.builder.emitter import Frame
from relax_dialect.builder.expr import Expr
from relax_dialect.frontend.onnx.node import Node, Result, converts, from_front
from relax_dialect.frontend.onnx.quantization import converted
from relax_dialect.frontend.onnx.values import Absent, Perhaps, Refusal, TensorList, Value, element_type, like
from relax_dialect.struct_info.types import PrimType, StructInfo, TensorType
from tir_dialect import te
from tir_dialect.dims import Dim, constant, symbol, to_dim

MAX_ROUNDS = 4
"""After so many rounds the types that a loop carries have to be stable."""


def run_body(node: Node, body: GraphProto, arguments: Sequence[Value], turn: Dim | Value | None = None) -> list[Value]:
    """Imports an inner graph here; it sees the names around it. Gives its outputs.

    `turn` is the number of the iteration, if this is one of a loop.
    """
    graph = node.graph
    if len(arguments) != len(body.input):
        raise Refusal(f"the inner graph takes {len(body.input)} inputs, but gets {len(arguments)}")
    environment = dict(graph.environment)
    for formal, actual in zip(body.input, arguments, strict=True):
        environment[formal.name] = actual
    hints = {**graph.hints, **declared_hints(body)}
    name = graph.prefix + next(filter(None, node.outputs), "")
    inner = graph.within(environment, hints=hints, turn=None if turn is None else (name, turn))
    inner.initialize(body)
    before = len(graph.problems.nodes)
    inner.run(body.node, [output.name for output in body.output])
    outputs = [inner.value(output.name) for output in body.output]
    if len(graph.problems.nodes) > before:
        raise Refusal("its inner graph has nodes that are not supported")
    return [
        graph.refined(value, inner.hints.get(name.name))
        for name, value in zip(body.output, outputs, strict=True)
        if value is not None
    ]


def declared_hints(body: GraphProto) -> dict[str, TensorType]:
    """What an inner graph says of the shapes of its values."""
    found: dict[str, TensorType] = {}
    for info in (*body.value_info, *body.output):
        tensor = info.type.tensor_type
        if info.type.WhichOneof("value") == "tensor_type" and tensor.HasField("shape"):
            dims = [
                constant(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else None
                for dim in tensor.shape.dim
            ]
            found[info.name] = TensorType(dims, None)
    return found


def carried_types(node: Node, body: GraphProto, starts: Sequence[Value]) -> tuple[list[TensorType], list[TensorType]]:
    """The types of what a loop carries, and of the other outputs of its body: found by importing the body for trial.

    Dimensions that an iteration changes become symbols.
    """
    types = [tensor_type(start.expr(node.bb)) for start in starts]
    for _ in range(MAX_ROUNDS):
        made = _trial(node, body, types, starts)
        count = len(types) - 1
        found = [*types[:2], *made[1:count]]  # the condition becomes a scalar, whatever its rank
        merged = [_merged(node, old, new) for old, new in zip(types, found, strict=True)]
        if merged == types:
            return types, made[count:]
        types = merged
    raise Refusal("the types of what the loop carries change with each iteration")


def scan_types(node: Node, body: GraphProto, arguments: Sequence[TensorType]) -> list[TensorType]:
    """The types of the outputs of a graph for inputs of these types."""
    return _trial(node, body, arguments, [None] * len(arguments))


def with_types_of_lists(node: Node, body: GraphProto, starts: Sequence[Value]) -> list[Value]:
    """What a loop starts with, where empty sequences become tensors of no items: the body says of what shape those are
    that it adds.
    """
    if not any(isinstance(start, TensorList) and start.is_empty for start in starts):
        return list(starts)
    types = [
        None if isinstance(start, TensorList) and start.is_empty else tensor_type(start.expr(node.bb))
        for start in starts
    ]
    made = _trial(node, body, types, starts)
    return [
        starts[0],
        *(
            start if before is not None else _no_items(node, after)
            for start, before, after in zip(starts[1:], types[1:], made, strict=False)
        ),
    ]


def _no_items(node: Node, info: TensorType) -> TensorList:
    items = (info.dims or ())[1:]
    if any(dim is None for dim in items) or info.dtype is None:
        raise Refusal("the shape of what a loop adds to a sequence is not known while importing")
    return TensorList.of_stack(op.full([constant(0), *filter(None, items)], node.bb.const(0, info.dtype)))


def tensor_type(value: Expr) -> TensorType:
    """The type of a value that a loop carries; `Refusal` if it is no tensor."""
    info = value.type
    if not isinstance(info, TensorType):
        raise Refusal("a loop carries something that is no tensor")
    return info


def _trial(
    node: Node, body: GraphProto, types: Sequence[TensorType | None], models: Sequence[Value | None]
) -> list[TensorType]:
    """The types of a body's outputs; what is emitted for that is thrown away.

    Inputs are like their models, and the models themselves where no type is given.
    """
    bb, given = node.bb, [info for info in types if info is not None]
    new = sorted({name for info in given for dim in info.known_dims or () for name in dim.symbols} - set(bb.symbols))
    leading: list[StructInfo] = [PrimType(value=name) for name in new]
    block = Block(arg_types=[*leading, *given])
    witnesses: dict[str, SSAValue] = dict(zip(new, block.args, strict=False))
    with bb.open_frame(Frame(block, "loop", symbols=witnesses)):
        arguments = iter(bb.exprs(block.args[len(new) :]))
        values = [
            model if info is None and model is not None else like(model, next(arguments))
            for info, model in zip(types, models, strict=True)
        ]
        turn = values[0] if node.op_type == "Loop" else constant(0)
        found = [_type(node, each) for each in run_body(node, body, values, turn)]
        inside = set(bb.frame.symbols) - set(new)
    for each in reversed(list(block.ops)):
        each.detach()
        each.erase(safe_erase=False)
    return [_visible(info, inside) for info in found]


def _type(node: Node, value: Value) -> TensorType:
    """The type of a tensor, or of all items of a sequence as one."""
    if not isinstance(value, TensorList) or not value.items:
        return tensor_type(value.expr(node.bb))
    item = tensor_type(value.items[-1].expr(node.bb))
    return item.with_shape(None if item.dims is None else [None, *item.dims])


def _visible(info: TensorType, inside: set[str]) -> TensorType:
    """A type without symbols that are bound in the body."""
    if info.dims is None:
        return info
    return info.with_shape([None if dim is None or dim.symbols & inside else dim for dim in info.dims])


def _merged(node: Node, old: TensorType, new: TensorType) -> TensorType:
    """A type for both: symbols where dimensions differ."""
    if old == new:
        return old
    if old.dims is None or new.dims is None or len(old.dims) != len(new.dims) or old.dtype != new.dtype:
        raise Refusal(f"the loop carries {old} into an iteration and {new} out of it")
    dims: list[Dim | None] = []
    for before, after in zip(old.dims, new.dims, strict=True):
        is_own = before is not None and before.as_symbol is not None and before.as_symbol not in node.bb.symbols
        dims.append(before if before is after or is_own else symbol(node.fresh()))
    return old.with_shape(dims)


MAX_UNROLLED = 8
"""Loops of up to so many iterations, if that is known while importing, are written out."""


@converts("If")
def if_(node: Node) -> Result:
    """One of two graphs; which one may be known while importing."""
    branches: tuple[GraphProto, GraphProto] = (node.attribute("then_branch"), node.attribute("else_branch"))
    known = node.known(0)
    if known is not None and known.dtype != object:
        return run_body(node, branches[0 if bool(known.reshape(-1)[0]) else 1], ())
    node.graph.require_control_flow()
    condition = converted(node[0], i1)
    optional = _optional_outputs(*branches)
    with node.bb.if_(condition if condition.ndim == 0 else op.reshape(condition, [])) as branch:
        with branch.then():
            values = run_body(node, branches[0], ())
            first = _yielded(node, values, optional)
            node.bb.yield_(*first)
        with branch.otherwise():
            others = run_body(node, branches[1], ())
            node.bb.yield_(*_yielded(node, others, optional))
    if _is_squeeze(*branches):
        return [
            _ranked(node, at, each, of.type) for at, (each, of) in enumerate(zip(branch.results, first, strict=True))
        ]
    models = [
        value.value if isinstance(value, Perhaps) else other if isinstance(value, Absent) else value
        for value, other in zip(values, others, strict=True)
    ]
    found = _like(node, models, branch.results)
    for (at, _), there in zip(optional.items(), branch.results[len(models) :], strict=True):
        value = found[at]
        found[at] = Perhaps(value if isinstance(value, Value) else Value(node.graph.settled(value, None)), there)
    return found


def continued(node: Node, rest: Sequence[NodeProto], wanted: Sequence[str]) -> list[Expr]:
    """A branch that goes on in both of its graphs with the nodes that use its outputs, as these have several ranks.

    Gives the values of the names that are wanted after it.
    """
    condition = converted(node[0], i1)
    with node.bb.if_(condition if condition.ndim == 0 else op.reshape(condition, [])) as branch:
        for name, part in (("then_branch", branch.then), ("else_branch", branch.otherwise)):
            with part():
                inner = node.graph.within({**node.graph.environment}, hints=node.graph.hints)
                before = len(inner.problems.nodes)
                inner.environment.update(zip(node.outputs, run_body(node, node.attribute(name), ()), strict=False))
                inner.run(rest, wanted)
                if len(inner.problems.nodes) > before:
                    raise Refusal("what follows it has nodes that are not supported")
                node.bb.yield_(*(value.expr(node.bb) for each in wanted if (value := inner.environment[each])))
    return list(branch.results)


def _optional_outputs(then: GraphProto, otherwise: GraphProto) -> dict[int, TensorType | None]:
    """The outputs that are optional in a branch, with the type of tensors that a branch says, if it does."""
    found: dict[int, TensorType | None] = {}
    for at, outputs in enumerate(zip(then.output, otherwise.output, strict=True)):
        for info in outputs:
            if info.type.WhichOneof("value") == "optional_type":
                tensor = info.type.optional_type.elem_type.tensor_type
                found.setdefault(at, None)
                if tensor.HasField("shape"):
                    dims = [constant(max(dim.dim_value, 0)) for dim in tensor.shape.dim]
                    found[at] = TensorType(dims, element_type(tensor.elem_type))
    return found


def _yielded(node: Node, values: Sequence[Value], optional: Mapping[int, TensorType | None]) -> list[Expr]:
    """The results of a branch, then which of the optional ones are there; for those that are not something is."""
    made: list[Expr] = []
    for at, value in enumerate(values):
        kind = optional.get(at)
        if at in optional and isinstance(value, Absent):
            if kind is None or kind.dtype is None:
                raise Refusal("the shape of an optional tensor that one branch leaves out is not known while importing")
            made.append(op.full(list(kind.known_dims or ()), node.bb.const(0, kind.dtype)))
        else:
            made.append((value.value if isinstance(value, Perhaps) else value).expr(node.bb))
    for at in optional:
        value = values[at]
        made.append(value.there if isinstance(value, Perhaps) else node.bb.const(not isinstance(value, Absent)))
    return made


def _is_squeeze(then: GraphProto, otherwise: GraphProto) -> bool:
    """Whether this is `if x.shape[-1] == 1: squeeze(x)`, as PyTorch exports a squeeze."""
    ends = [body.node[-1].op_type if body.node else "" for body in (then, otherwise)]
    return ends == ["Squeeze", "Identity"]


def _ranked(node: Node, output: int, result: Expr, first: StructInfo) -> Expr:
    """A result that has been squeezed or not, with the rank that the model says, or else that of the squeezed one.

    It is checked when the program runs.
    """
    bb, kind, hint = node.bb, result.type, node.hint(output)
    if not isinstance(kind, TensorType) or not isinstance(first, TensorType):
        return result
    if kind.dims is not None or first.dims is None:
        return result
    if hint is not None and hint.dims is not None and len(hint.dims) != len(first.dims):
        return result
    visible = set(bb.symbols)
    dims = [dim if dim is not None and dim.symbols <= visible else symbol(node.fresh()) for dim in first.dims]
    return bb.match_cast(result, TensorType(dims, kind.dtype))


@converts("Loop")
def loop(node: Node) -> Result:
    """A graph as long as a condition holds, at most a number of times."""
    body: GraphProto = node.attribute("body")
    carried = [node.value(index) for index in range(2, len(node.inputs))]
    trips, condition = node.ints(0) if node.has(0) else None, node.known(1) if node.has(1) else None
    always = not node.has(1) or (condition is not None and bool(condition.reshape(-1)[0]))
    if trips is not None and always and trips[0] <= MAX_UNROLLED:
        written = _unrolled(node, body, trips[0], carried)
        if written is not None:
            return written
    node.graph.require_control_flow()
    bb = node.bb
    zero, true = bb.const(0, i64), bb.const(True)
    first = _scalar(converted(node[1], i1)) if node.has(1) else true
    limit = _scalar(node[0]) if node.has(0) else None
    begin = with_types_of_lists(node, body, [Value(zero), Value(first), *carried])
    types, elements = carried_types(node, body, begin)
    grown = [_grown(node, element) for element in elements]
    # What symbols that a loop carries are when it begins.
    begins: dict[str, Dim] = {}
    for info, value in zip(types, begin, strict=True):
        firsts = tensor_type(value.expr(node.bb)).dims or ()
        for dim, first in zip(info.dims or (), firsts, strict=True):
            name = None if dim is None else dim.as_symbol
            if name is not None and first is not None and name not in node.bb.symbols:
                begins.setdefault(name, first)
    starts = [
        op.full([0, *(dim.substitute(begins) for dim in _known(each))], bb.const(0, each.dtype)) for each in elements
    ]
    names = [f"v{index}" for index in range(len(types) + len(grown))]
    given = [*(value.expr(bb) for value in begin), *starts]
    values = dict(zip(names, zip(given, [*types, *grown], strict=True), strict=True))
    with bb.while_(values) as scope:
        with scope.condition() as (trip, more, *_):
            bb.yield_(more if limit is None else op.logical_and(more, op.less(trip, limit)))
        with scope.body() as (trip, more, *rest):
            inner = [Value(trip), Value(more), *map(like, carried, rest)]
            again, *results = run_body(node, body, inner, inner[0])
            made = [value.expr(bb) for value in results]
            added = [
                op.concat([_of_items(node, old, new), op.expand_dims(new, [0])], 0)
                for old, new in zip(rest[len(carried) :], made[len(carried) :], strict=True)
            ]
            bb.yield_(op.add(trip, 1), _scalar(again.expr(bb)), *made[: len(carried)], *added)
    return [*_like(node, carried, scope.results[2:]), *scope.results[2 + len(carried) :]]


def _unrolled(node: Node, body: GraphProto, trips: int, carried: list[Value]) -> Sequence[Value] | None:
    """The iterations one after the other; `None` if the condition is not known to hold in each."""
    import numpy as np

    count = len(body.output) - 1 - len(carried)
    collected: list[list[Expr]] = [[] for _ in range(count)]
    if trips == 0 and count:
        return None
    for trip in range(trips):
        start = [Value.of(np.array(trip, np.int64)), Value.of(np.array(True)), *carried]
        more, *results = run_body(node, body, start, constant(trip))
        if more.elements is None or not bool(more.elements.reshape(-1)[0]):
            return None
        carried = results[: len(carried)]
        for position, value in zip(collected, results[len(carried) :], strict=True):
            position.append(value.expr(node.bb))
    return [*carried, *(Value(op.stack(each, 0)) for each in collected)]


def _like(node: Node, models: Sequence[Value], results: Sequence[Expr]) -> list[Expr | Value]:
    """Results as what other values are: tensors, or sequences."""
    return [
        like(model, node.graph.settled(each, None)) if isinstance(model, TensorList) else each
        for model, each in zip(models, results, strict=False)
    ]


def _grown(node: Node, element: TensorType) -> TensorType:
    """The type of what an output has gathered so far: items of one shape, of which a symbol that the loop carries says
    nothing.
    """
    bb, outside = node.bb, set(node.bb.symbols)
    dims = [dim if dim.symbols <= outside else symbol(bb.fresh_symbol("d")) for dim in _known(element)]
    return TensorType([symbol(bb.fresh_symbol("k")), *dims], element.dtype)


def _of_items(node: Node, gathered: Expr, item: Expr) -> Expr:
    """What an output has gathered so far; if it is not known whether its items have the shape of the next one, it is
    checked.
    """
    before, after = tensor_type(gathered).dims or (None,), tensor_type(item).known_dims
    if after is None or before[1:] == tuple(after):
        return gathered
    return node.bb.match_cast(gathered, TensorType([before[0], *after], gathered.dtype))


def _known(info: TensorType) -> Sequence[Dim]:
    if info.known_dims is None:
        raise Refusal("the shape of what a loop gathers is not known while importing")
    return info.known_dims


def _scalar(x: Expr) -> Expr:
    return x if x.ndim == 0 else op.reshape(x, [])


@converts("Scan", since=9)
def scan(node: Node) -> Result:
    """A graph over the slices of tensors along an axis."""
    return Scan.of(node).results()


@converts("Scan")
def scan_batched(node: Node) -> Result:
    """Before version 9: for each item of a batch by itself."""
    return batched(node)


@dataclass(frozen=True)
class Scan:
    """What a node says: states, and tensors whose slices are seen one after the other."""

    node: Node
    body: GraphProto
    states: Sequence[Expr]
    inputs: Sequence[Expr]
    axes: Sequence[int]
    reverse: Sequence[bool]
    output_axes: Sequence[int]
    output_reverse: Sequence[bool]
    iterations: Expr | None = None
    """How many iterations count, an `i64` of rank 0: later ones leave the states as they are, and give zeros."""

    @staticmethod
    def of(node: Node) -> Scan:
        """The scan that a node describes."""
        body: GraphProto = node.attribute("body")
        count, values = node.integer("num_scan_inputs"), [node[index] for index in range(len(node.inputs))]
        states, inputs = values[: len(values) - count], values[len(values) - count :]
        outputs = len(body.output) - len(states)
        given = node.integers("scan_input_axes") or (0,) * count
        axes = [from_front(axis, each.ndim or 0) for axis, each in zip(given, inputs, strict=True)]
        return Scan(
            node,
            body,
            states,
            inputs,
            axes,
            [bool(each) for each in node.integers("scan_input_directions") or (0,) * count],
            node.integers("scan_output_axes") or (0,) * outputs,
            [bool(each) for each in node.integers("scan_output_directions") or (0,) * outputs],
        )

    @property
    def length(self) -> Dim:
        """The number of iterations."""
        shape = self.inputs[0].shape if self.inputs else None
        if not shape or shape[self.axes[0]] is None:
            raise Refusal("the number of iterations is not known while importing")
        length = shape[self.axes[0]]
        assert length is not None
        return length

    def results(self) -> list[Expr]:
        """The last states, and what the iterations gave."""
        known = self.length.constant_value
        if known is not None and 0 < known <= MAX_UNROLLED:
            states, gathered = self._unrolled(known)
        else:
            states, gathered = self._loop()
        turned = [
            op.flip(each, 0) if reverse else each for each, reverse in zip(gathered, self.output_reverse, strict=True)
        ]
        return [
            *states,
            *(
                _moved(each, from_front(axis, each.ndim or 0))
                for each, axis in zip(turned, self.output_axes, strict=True)
            ),
        ]

    def _slice(self, index: int, at: Dim | int) -> Expr:
        """What iteration `at` sees of an input."""
        x, axis = self.inputs[index], self.axes[index]
        position = self.length - 1 - at if self.reverse[index] else at
        return op.squeeze(op.strided_slice(x, [axis], [position], [position + 1], assume_inbound=True), [axis])

    def _body(self, states: Sequence[Expr], at: Dim | int) -> tuple[list[Expr], list[Expr]]:
        slices = [self._slice(index, at) for index in range(len(self.inputs))]
        made = [
            each.expr(self.node.bb)
            for each in run_body(self.node, self.body, [*map(Value, states), *map(Value, slices)], to_dim(at))
        ]
        after, row = made[: len(states)], made[len(states) :]
        if self.iterations is None:
            return after, row
        here = op.reshape(op.shape_to_tensor([to_dim(at)]), [])
        counts = op.less(here, self.iterations)
        after = [op.where(counts, new, old) for new, old in zip(after, states, strict=True)]
        return after, [op.where(counts, each, self.node.const(0, tensor_type(each).dtype or f32)) for each in row]

    def _unrolled(self, count: int) -> tuple[Sequence[Expr], list[Expr]]:
        states, rows = self.states, list[list[Expr]]()
        for trip in range(count):
            states, row = self._body(states, trip)
            rows.append(row)
        return states, [op.stack(list(column), 0) for column in zip(*rows, strict=True)]

    def _loop(self) -> tuple[Sequence[Expr], list[Expr]]:
        node, bb, length = self.node, self.node.bb, self.length
        node.graph.require_control_flow()
        slices = [_without(each, axis) for each, axis in zip(self.inputs, self.axes, strict=True)]
        types = scan_types(node, self.body, [*map(tensor_type, self.states), *slices])[len(self.states) :]
        starts = [op.full([length, *(each.known_dims or ())], bb.const(0, each.dtype)) for each in types]
        if length.constant_value == 0:
            return self.states, starts
        values = dict(
            zip((f"v{at}" for at in range(len(self.states) + len(starts))), [*self.states, *starts], strict=True)
        )
        counter = node.fresh()
        with bb.for_(0, length, values, symbol=counter) as loop:
            _, *carried = loop
            at = symbol(counter)
            states, row = self._body(carried[: len(self.states)], at)
            gathered = [
                op.slice_scatter(old, op.expand_dims(new, [0]), at, at + 1)
                for old, new in zip(carried[len(self.states) :], row, strict=True)
            ]
            bb.yield_(*states, *gathered)
        return loop.results[: len(self.states)], list(loop.results[len(self.states) :])


def _moved(x: Expr, axis: int) -> Expr:
    """The first dimension at another position."""
    if axis == 0:
        return x
    rest = list(range(1, x.ndim or 0))
    return op.permute_dims(x, [*rest[:axis], 0, *rest[axis:]])


def _without(value: Expr, axis: int) -> TensorType:
    """The type of a slice."""
    info = tensor_type(value)
    dims = info.dims or ()
    return info.with_shape([*dims[:axis], *dims[axis + 1 :]])


def batched(node: Node) -> list[Expr]:
    """The scan of version 8: each item of a batch by itself, up to a length of its own."""
    values = [node[index] for index in range(1, len(node.inputs))]
    batch = (values[0].shape or (None,))[0]
    if batch is None:
        raise Refusal("the size of the batch is not known while importing")
    size = batch.constant_value
    if size is not None and 1 <= size <= MAX_UNROLLED:
        items = [_item(node, values, at).results() for at in range(size)]
        return [op.stack(list(each), 0) for each in zip(*items, strict=True)]
    return _items_in_loop(node, values, batch)


def _item(node: Node, values: Sequence[Expr], at: Dim | int) -> Scan:
    """The scan of an item of the batch."""
    body: GraphProto = node.attribute("body")
    count = node.integer("num_scan_inputs")
    own = [op.squeeze(op.strided_slice(each, [0], [at], [at + 1], assume_inbound=True), [0]) for each in values]
    states, inputs = own[: len(own) - count], own[len(own) - count :]
    outputs = len(body.output) - len(states)
    reverse = [bool(each) for each in node.integers("directions") or (0,) * count]
    iterations = None
    if node.has(0):
        iterations = op.reshape(op.strided_slice(node[0], [0], [at], [at + 1], assume_inbound=True), [])
        iterations = op.astype(iterations, i64)
        inputs = [
            node.te(_reversed, each, iterations) if turned else each
            for each, turned in zip(inputs, reverse, strict=True)
        ]
        reverse = [False] * count
    turned = replace(node, graph=replace(node.graph, turns=(*node.graph.turns, ("item", to_dim(at)))))
    return Scan(turned, body, states, inputs, (0,) * count, reverse, (0,) * outputs, (False,) * outputs, iterations)


def _reversed(x: te.Tensor, length: te.Tensor) -> te.Tensor:
    """The first so many slices in the other order."""

    def element(*i: te.Expr) -> te.Expr:
        end = te.cast(length[()], "index")
        return x[(te.select(i[0] < end, end - 1 - i[0], i[0]), *i[1:])]

    return te.compute(x.shape, element, name="reversed")


def _items_in_loop(node: Node, values: Sequence[Expr], batch: Dim) -> list[Expr]:
    """The results of every item of a batch of any size."""
    node.graph.require_control_flow()
    body: GraphProto = node.attribute("body")
    bb, count = node.bb, node.integer("num_scan_inputs")
    states = [_without(each, 0) for each in values[: len(values) - count]]
    inputs = [_without(each, 0) for each in values[len(values) - count :]]
    length = (inputs[0].dims or (None,))[0]
    types = scan_types(node, body, [*states, *(each.with_shape((each.dims or ())[1:]) for each in inputs)])
    rows = [each.with_shape([length, *(each.known_dims or ())]) for each in types[len(states) :]]
    starts = [op.full([batch, *(each.known_dims or ())], bb.const(0, each.dtype or f32)) for each in (*states, *rows)]
    counter = node.fresh()
    with bb.for_(0, batch, {f"v{at}": each for at, each in enumerate(starts)}, symbol=counter) as loop:
        _, *carried = loop
        at = symbol(counter)
        made = _item(node, values, at).results()
        bb.yield_(
            *(
                op.slice_scatter(old, op.expand_dims(new, [0]), at, at + 1)
                for old, new in zip(carried, made, strict=True)
            )
        )
    return list(loop.results)
