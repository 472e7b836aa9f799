"""Mixtures of experts: a router sends each token to some of many feed-forward layers, whose weights are stacked.

Tokens are grouped by expert. A loop goes over the experts that have any, so that the weights of the others are not
read. The expert of an iteration is a symbol of its kernels: they read its weights where they are in the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relax_dialect.builder import BlockBuilder, BuilderError, Expr, op
from relax_dialect.builder.block_builder import emit_te
from relax_dialect.nn.config import ExpertsConfig
from relax_dialect.nn.module import GatedMLP, Linear, Module, Parameter, current_builder, known_shape
from relax_dialect.struct_info.types import ShapeType
from tir_dialect import te
from tir_dialect.block_arrays import BlockArray
from tir_dialect.block_expressions import decoded
from tir_dialect.dims import Dim, symbol


class StackedLinear(Module):
    """`x W[expert]^T + b[expert]`: weights are `(experts, outputs, inputs)`."""

    def __init__(self, experts: int, inputs: int, outputs: int, *, bias: bool = False):
        self.weight = Parameter((experts, outputs, inputs))
        self.bias = Parameter((experts, outputs)) if bias else None

    def forward(self, x: Expr, expert: Dim) -> Expr:
        """The product of some tokens, `(tokens, inputs)`, with the weights of one expert."""
        elements = self.weight.elements
        block_format = elements.block_format if isinstance(elements, BlockArray) else None
        _, outputs, inputs = self.weight.shape

        def multiply(x: te.Tensor, weight: te.Tensor) -> te.Tensor:
            k = te.reduce_axis(inputs, "k")
            own = None if block_format is None else decoded(weight, (outputs, inputs), block_format, leading=(expert,))

            def element(i: te.Expr, j: te.Expr) -> te.Expr:
                w = te.cast(weight[expert, j, k], "f32") if own is None else own[j, k]
                return te.sum(x[i, k] * w, k)

            return te.compute((x.shape[0], outputs), element, name="matmul")

        y = _emitted(multiply, [x, self.weight.stored()], "expert_matmul")
        return y if self.bias is None else y + _row(self.bias.value(), expert)


_GATE_SLOPE = 1.702
"""With this factor `x * sigmoid(factor * x)` is near GELU."""


class _Experts(Module):
    """The weights of all experts."""

    def __init__(self, hidden: int, config: ExpertsConfig):
        count, inner, bias = config.num_experts, config.moe_intermediate_size, config.bias
        self.gate_proj, self.up_proj = (StackedLinear(count, hidden, inner, bias=bias) for _ in range(2))
        self.down_proj = StackedLinear(count, inner, hidden, bias=bias)
        self._limit = config.swiglu_limit

    def forward(self, x: Expr, expert: Dim, activation: Callable[[Expr], Expr]) -> Expr:
        """What one expert makes of some tokens."""
        gate, up = self.gate_proj(x, expert), self.up_proj(x, expert)
        if self._limit is None:
            return self.down_proj(activation(gate) * up, expert)
        gate = op.minimum(gate, current_builder().const(self._limit, "f32"))
        up = op.clip(up, -self._limit, self._limit)
        return self.down_proj(gate * op.sigmoid(gate * _GATE_SLOPE) * (up + 1.0), expert)


class MixtureOfExperts(Module):
    """The sum of the chosen experts' outputs times their probabilities (Shazeer et al., 2017), and of an expert that
    all tokens share, if there is one.
    """

    def __init__(self, hidden: int, config: ExpertsConfig, activation: Callable[[Expr], Expr] = op.nn.silu):
        self.gate = Linear(hidden, config.num_experts, bias=config.bias)
        self.experts = _Experts(hidden, config)
        if config.shared_expert_intermediate_size:
            self.shared_expert = GatedMLP(hidden, config.shared_expert_intermediate_size, activation)
            if config.has_shared_expert_gate:
                self.shared_expert_gate = Linear(hidden, 1)
        self._config, self._activation = config, activation

    def forward(self, x: Expr) -> Expr:
        """`(tokens, hidden)`."""
        routed = self._routed(x)
        if not self._config.shared_expert_intermediate_size:
            return routed
        shared = self.shared_expert(x)
        if self._config.has_shared_expert_gate:
            shared = op.sigmoid(self.shared_expert_gate(x)) * shared
        return routed + shared

    def _routed(self, x: Expr) -> Expr:
        """What the chosen experts make of each token."""
        builder, each = current_builder(), self._config.num_experts_per_tok
        if not isinstance(builder, BlockBuilder):
            raise BuilderError("a mixture of experts needs a BlockBuilder, as it is a loop")
        probabilities = op.nn.softmax(self.gate(x), axis=-1)
        shares, chosen = op.topk(probabilities, each, dtype="i64")
        if self._config.norm_topk_prob:
            shares = shares / op.sum(shares, axes=[-1], keepdims=True)
        order, groups, count = self._grouped(chosen)
        (groups_there,) = _numbers(builder, count, "groups")
        tokens, hidden = known_shape(x)
        zeros = op.zeros((tokens, hidden), "f32")
        loop = builder.for_(0, groups_there, {"total": zeros}, counter="group", symbol=builder.fresh_symbol("group"))
        with loop:
            (counter, total) = loop
            expert, first, size = _numbers(builder, _row(groups, counter.dim), "expert", "first", "size")

            def gather(x: te.Tensor, order: te.Tensor) -> te.Tensor:
                def element(i: te.Expr, j: te.Expr) -> te.Expr:
                    return x[order[first + i] // each, j]

                return te.compute((size, hidden), element, name="gather")

            own = _emitted(gather, [x, order], "tokens_of_expert")
            made = self.experts(own, expert, self._activation)
            builder.yield_(_added(total, made, shares, order, first))
        return loop.result

    def _grouped(self, chosen: Expr) -> tuple[Expr, Expr, Expr]:
        """The pairs of a token and one of its experts in the order of experts; a row `(expert, first pair, pairs)` for
        each expert that has any; and how many these are.
        """
        experts, each = self._config.num_experts, self._config.num_experts_per_tok

        def group(chosen: te.Tensor) -> Sequence[te.Tensor]:
            pairs = chosen.shape[0] * each
            made = [((pairs,), "i64"), ((experts, 3), "i64"), ((1,), "i64")]
            return te.extern(made, [chosen], lambda b, ins, outs: _group(b, ins[0], outs, experts), name="grouped")

        found = emit_te(current_builder(), group, [chosen], {}, "group_by_expert")
        assert isinstance(found, tuple)  # three tensors
        return found[0], found[1], found[2]


def _numbers(builder: BlockBuilder, tensor: Expr, *names: str) -> list[Dim]:
    """The elements of a tensor as symbols."""
    dims: list[Dim] = []
    for name in names:
        dims.append(symbol(builder.fresh_symbol(name)))
    builder.match_cast(op.tensor_to_shape(tensor), ShapeType(dims))
    return dims


def _row(tensor: Expr, row: Dim) -> Expr:
    def take(x: te.Tensor) -> te.Tensor:
        def element(j: te.Expr) -> te.Expr:
            return x[row, j]

        return te.compute((x.shape[1],), element, name="row")

    return _emitted(take, [tensor], "row")


def _emitted(function: Callable[..., te.Tensor], arguments: Sequence[Expr], name: str) -> Expr:
    found = emit_te(current_builder(), function, arguments, {}, name)
    assert isinstance(found, Expr)  # one tensor
    return found


def _group(b: te.ExternBuilder, chosen: te.Tensor, outs: Sequence[te.Tensor], experts: int) -> None:
    """Sorts pairs by counting: how many each expert has, where its pairs begin, then each pair in its turn."""
    order, groups, count = outs
    tokens, each = chosen.shape
    with b.block("group", ("spatial", 1, "once")):
        ends = b.alloc((experts,), "i64", "ends", scope="global")
        with b.for_range(0, experts, "expert") as expert:
            b.store(ends, expert, 0)
        with b.for_range(0, tokens, "token") as token, b.for_range(0, each, "choice") as choice:
            expert = b.let(te.cast(chosen[token, choice], "index"), "expert")
            b.store(ends, expert, ends[expert] + 1)
        first, there = b.alloc((), "i64", "first"), b.alloc((), "i64", "there")
        b.store(first, (), 0)
        b.store(there, (), 0)
        with b.for_range(0, experts, "expert") as expert:
            size = b.let(ends[expert], "size")
            with b.if_(size > 0):
                row = b.let(te.cast(there[()], "index"), "row")
                for column, value in enumerate((te.cast(expert, "i64"), first[()], size)):
                    b.store(groups, (row, column), value)
                b.store(there, (), there[()] + 1)
            b.store(ends, expert, first[()])
            b.store(first, (), first[()] + size)
        b.store(count, 0, there[()])
        with b.for_range(0, tokens, "token") as token, b.for_range(0, each, "choice") as choice:
            expert = b.let(te.cast(chosen[token, choice], "index"), "expert")
            b.store(order, te.cast(ends[expert], "index"), te.cast(token * each + choice, "i64"))
            b.store(ends, expert, ends[expert] + 1)


def _added(total: Expr, made: Expr, shares: Expr, order: Expr, first: Dim) -> Expr:
    """The total, in place, after what an expert made of its tokens was added, times the tokens' shares."""
    hidden, each = known_shape(made)[1], known_shape(shares)[1]
    tokens, size = te.var("tokens"), te.var("size")
    inputs = [
        te.placeholder((size, hidden), "f32", "made"),
        te.placeholder((tokens, each), "f32", "shares"),
        te.placeholder((te.var("pairs"),), "i64", "order"),
    ]

    def body(b: te.ExternBuilder, ins: Sequence[te.Tensor], outs: Sequence[te.Tensor]) -> None:
        with b.block("add", ("spatial", size, "i"), ("spatial", hidden, "j")) as (i, j):
            pair = b.let(ins[2][i + te.var("first")], "pair")
            token = b.let(pair // each, "token")
            added = ins[1][token, pair % each] * ins[0][i, j]
            b.store(outs[0], (token, j), outs[0][token, j] + added)

    (written,) = te.extern([((tokens, hidden), "f32")], inputs, body, name="total")
    func = te.create_prim_func([*inputs, written], name="add_expert")
    found = current_builder().call_tir_inplace(func, [made, shares, order, total], [3], [total.type], {"first": first})
    return found[0]
