"""Which computations become one: by pattern, by where their uses lead, in linear time."""

import random

import pytest

from lowering.relax.fusion.fuse_ops import MOST_IN_A_GROUP, Node, group
from tir_dialect.analysis.patterns import OpPattern

E, B, J, R, P, X = (
    OpPattern.ELEMENTWISE,
    OpPattern.BROADCAST,
    OpPattern.INJECTIVE,
    OpPattern.REDUCTION,
    OpPattern.OUT_ELEMENTWISE_FUSABLE,
    OpPattern.OPAQUE,
)


def node(pattern: OpPattern, *inputs: int, edge: OpPattern | None = None, **facts: bool) -> Node:
    return Node(pattern, tuple((index, pattern if edge is None else edge) for index in inputs), **facts)


@pytest.mark.parametrize(
    ("nodes", "groups"),
    [
        pytest.param([node(E), node(E, 0), node(E, 1)], [[0, 1, 2]], id="chain"),
        pytest.param([node(E), node(E, 0), node(E, 0), node(E, 1, 2)], [[0, 1, 2, 3]], id="diamond"),
        pytest.param([node(P), node(E, 0), node(E, 1)], [[0, 1, 2]], id="epilogue"),
        pytest.param([node(P), node(B, 0)], [], id="a product is not broadcast"),
        pytest.param([node(E), node(P, 0)], [], id="a product does not compute its operand"),
        pytest.param([node(E), node(R, 0)], [[0, 1]], id="prologue of a reduction"),
        pytest.param([node(R), node(E, 0)], [[0, 1]], id="what follows a reduction"),
        pytest.param([node(R), node(R, 0)], [], id="two reductions"),
        pytest.param([node(E), node(J, 0), node(E, 1)], [[0, 1, 2]], id="rearranged"),
        pytest.param([node(J), node(R, 0)], [], id="rearranged and reduced"),
        pytest.param([node(E), node(X, 0), node(E, 1)], [], id="opaque"),
        pytest.param([node(E, escapes=True), node(E, 0)], [], id="used elsewhere"),
        pytest.param([node(E), node(P, 0), node(E, 0, 1)], [[1, 2]], id="a way through a product"),
        pytest.param([node(P), node(P), node(E, 0, 1)], [[0, 2]], id="two products meet"),
        pytest.param([node(J, moves=True), node(P, 0, contracts=True)], [[0, 1]], id="changed order"),
        pytest.param([node(E), node(J, 0, moves=True), node(P, 1, contracts=True)], [[0, 1]], id="no longer alone"),
        pytest.param([node(J, moves=True), node(P, 0)], [], id="no product"),
        pytest.param([node(J, decodes=True), node(P, 0, contracts=True)], [[0, 1]], id="decoded"),
        pytest.param(
            [node(J, decodes=True), node(J, 0, moves=True), node(P, 1, contracts=True), node(E, 2)],
            [[0, 1, 2, 3]],
            id="decoded, in another order, with an epilogue",
        ),
        pytest.param([node(J), node(J, 0, decodes=True), node(P, 1, contracts=True)], [[1, 2]], id="only decoded"),
        pytest.param([node(J, decodes=True, escapes=True), node(P, 0, contracts=True)], [], id="decoded for others"),
        pytest.param(
            [node(J, decodes=True), node(P, 0, contracts=True), node(P, 0, contracts=True)], [], id="decoded for two"
        ),
        pytest.param(
            [node(E), node(J, 0, pads=True), node(P, 1, slides=True), node(E, 2)], [[0, 1, 2, 3]], id="padded"
        ),
        pytest.param([node(J, pads=True), node(P, 0, contracts=True)], [], id="padded for a product"),
        pytest.param([node(J, pads=True, escapes=True), node(P, 0, slides=True)], [], id="padded for others"),
        pytest.param([node(J), node(E, 0), node(E, 0), node(J, 1, 2, ends=True)], [[0, 1, 2, 3]], id="joined"),
        pytest.param([node(E), node(J, 0, ends=True), node(E, 1)], [[0, 1]], id="nothing follows"),
        pytest.param([node(E), node(J, 0, ends=True), node(E, 0, 1)], [], id="a way through what ends"),
    ],
)
def test_rules(nodes: list[Node], groups: list[list[int]]):
    assert group(nodes) == groups


def test_groups_do_not_grow_without_end():
    chain = [node(E), *(node(E, index) for index in range(1_000))]
    groups = group(chain)
    assert sum(map(len, groups)) > 900
    assert max(map(len, groups)) <= MOST_IN_A_GROUP


def test_ten_thousand_nodes_take_moments():
    nodes = [node(E)]
    for index in range(1, 10_000):
        inputs = {index - 1, max(index - 7, 0)}
        nodes.append(node(P if index % 50 == 0 else E, *inputs))
    assert group(nodes)


@pytest.mark.parametrize("seed", range(200))
def test_groups_can_be_computed_where_their_last_node_stands(seed: int):
    rng = random.Random(seed)
    nodes: list[Node] = []
    for index in range(rng.randint(2, 25)):
        inputs = rng.sample(range(index), min(index, rng.randint(0, 3)))
        pattern = rng.choice([E, E, E, B, J, R, P, X])
        decodes = pattern is J and rng.random() < 0.5
        nodes.append(
            node(
                pattern,
                *inputs,
                escapes=rng.random() < 0.15,
                moves=pattern is J and not decodes,
                contracts=pattern is P,
                decodes=decodes,
            )
        )
    users = {
        index: {user for user, each in enumerate(nodes) for source, _ in each.inputs if source == index}
        for index in range(len(nodes))
    }
    seen: set[int] = set()
    for members in group(nodes):
        assert seen.isdisjoint(members)
        seen.update(members)
        assert all(nodes[member].pattern is not X for member in members)
        for member in members[:-1]:
            assert not nodes[member].escapes
            assert users[member] <= set(members)
            assert users[member]
