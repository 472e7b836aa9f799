"""Which computations of a graph are fused, by their patterns and post-dominators.

The algorithm is that of Apache TVM (`src/relax/transform/fuse_ops.cc`, `GraphPartitioner`): a computation joins its
immediate post-dominator, if everything on the paths in between can be fused too. The graph is plain data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tir_dialect.analysis.patterns import OpPattern

MOST_IN_A_GROUP = 256
"""Larger kernels take long to compile and gain nothing."""

FARTHEST = 512
"""How many computations are looked at to find where uses meet; beyond, they count as not meeting."""


@dataclass(frozen=True)
class Node:
    """One computation. Nodes stand in program order."""

    pattern: OpPattern
    """What may follow it."""
    inputs: tuple[tuple[int, OpPattern], ...]
    """The nodes whose results it uses, and how: elementwise, broadcast, or as hard as it is itself."""
    escapes: bool = False
    """Whether somebody who is no node uses a result."""
    moves: bool = False
    """Whether it only gives dimensions another order."""
    contracts: bool = False
    """Whether it sums products, and can read its operands in any order of dimensions."""
    ends: bool = False
    """Whether nothing may follow it: it writes its result part by part."""
    decodes: bool = False
    """Whether it only decodes weights: a contraction decodes them as it reads them."""


def group(nodes: Sequence[Node]) -> list[list[int]]:
    """The nodes of each group of at least two, in order; the last one is the only one that is used outside."""
    partition = _Partition(nodes)
    partition.join_decoded_operands()
    for phase in (0, 1):
        for index in range(len(nodes)):
            partition.join_successor(index, phase)
    partition.join_moved_operands()
    return partition.groups()


@dataclass(frozen=True)
class _Meeting:
    """Where all uses of a node lead to first, and the hardest use on the way."""

    node: int
    pattern: OpPattern
    depth: int


class _Partition:
    def __init__(self, nodes: Sequence[Node]):
        self._nodes = nodes
        self._users: list[list[tuple[int, OpPattern]]] = [[] for _ in nodes]
        for index, node in enumerate(nodes):
            for source, pattern in node.inputs:
                self._users[source].append((index, pattern))
        self._meetings: list[_Meeting | None] = [None] * len(nodes)
        for index in reversed(range(len(nodes))):
            self._meetings[index] = self._meeting(index)
        self._parents = list(range(len(nodes)))
        self._patterns = [node.pattern for node in nodes]
        self._sizes = [1] * len(nodes)

    def groups(self) -> list[list[int]]:
        """The members of each group with more than one."""
        members: dict[int, list[int]] = {}
        for index in range(len(self._nodes)):
            members.setdefault(self._root(index), []).append(index)
        return [each for each in members.values() if len(each) > 1]

    # Post-dominators

    def _depth(self, index: int) -> int:
        meeting = self._meetings[index]
        return 0 if meeting is None else meeting.depth

    def _meeting(self, index: int) -> _Meeting | None:
        users = self._users[index]
        if self._nodes[index].escapes or not users:
            return None
        (position, pattern), *rest = users
        for user, edge in rest:
            found = self._meet(position, user)
            if found is None:
                return None
            position, pattern = found[0], max(pattern, edge, found[1])
        return _Meeting(position, pattern, self._depth(position) + 1)

    def _meet(self, left: int, right: int) -> tuple[int, OpPattern] | None:
        """The first node that both lead to, and the hardest use on the ways."""
        pattern = OpPattern.ELEMENTWISE
        for _ in range(FARTHEST):
            if left == right:
                return left, pattern
            if self._depth(left) < self._depth(right):
                left, right = right, left
            step = self._meetings[left]
            if step is None:
                return None
            left, pattern = step.node, max(pattern, step.pattern)
        return None

    # Groups

    def _root(self, index: int) -> int:
        while self._parents[index] != index:
            self._parents[index] = self._parents[self._parents[index]]
            index = self._parents[index]
        return index

    def join_successor(self, index: int, phase: int) -> None:
        """Joins a node with the one that all its uses lead to, if what is between can be computed in place."""
        meeting = self._meetings[index]
        if meeting is None or self._nodes[index].ends or self._root(index) == self._root(meeting.node):
            return
        pattern = self._patterns[self._root(index)]
        if pattern in (OpPattern.OUT_ELEMENTWISE_FUSABLE, OpPattern.REDUCTION):
            allowed = phase == 0 and meeting.pattern is OpPattern.ELEMENTWISE
            between, last = OpPattern.BROADCAST, OpPattern.BROADCAST
        elif pattern <= OpPattern.BROADCAST:
            allowed = meeting.pattern <= OpPattern.REDUCTION
            between, last = OpPattern.INJECTIVE, OpPattern.OUT_ELEMENTWISE_FUSABLE
        elif pattern is OpPattern.INJECTIVE:
            allowed, between, last = phase == 1, OpPattern.INJECTIVE, OpPattern.INJECTIVE
        else:
            return
        way = self._way(index, meeting.node, between) if allowed else None
        if way is not None and self._patterns[self._root(meeting.node)] <= last:
            self._join([index, *way], meeting.node)

    def _way(self, first: int, last: int, hardest: OpPattern) -> list[int] | None:
        """The nodes between two nodes; `None` if one of them is in a group that is harder."""
        found: dict[int, None] = {}
        pending = [user for user, _ in self._users[first]]
        while pending:
            index = pending.pop()
            if index == last or index in found:
                continue
            if self._patterns[self._root(index)] > hardest or len(found) > MOST_IN_A_GROUP or self._nodes[index].ends:
                return None
            found[index] = None
            pending += [user for user, _ in self._users[index]]
        return list(found)

    def _join(self, indices: Sequence[int], target: int) -> None:
        roots = {self._root(index) for index in (*indices, target)}
        if sum(self._sizes[root] for root in roots) > MOST_IN_A_GROUP:
            return
        into = self._root(target)
        for root in roots - {into}:
            self._parents[root] = into
            self._patterns[into] = max(self._patterns[into], self._patterns[root])
            self._sizes[into] += self._sizes[root]

    def join_decoded_operands(self) -> None:
        """Weights are decoded by the contraction that reads them, also if their dimensions get another order."""
        for index, node in enumerate(self._nodes):
            if not node.decodes:
                continue
            chain = [index]
            while (user := self._only_user(chain[-1])) is not None and self._nodes[user].moves:
                chain.append(user)
            if user is not None and self._nodes[user].contracts:
                self._join(chain, user)

    def _only_user(self, index: int) -> int | None:
        """The only node that uses a node, if there is one."""
        users = {user for user, _ in self._users[index]}
        return users.pop() if len(users) == 1 and not self._nodes[index].escapes else None

    def join_moved_operands(self) -> None:
        """A contraction reads an operand where it was before its dimensions got another order."""
        for index, node in enumerate(self._nodes):
            users = [user for user, _ in self._users[index]]
            alone = self._sizes[self._root(index)] == 1 and not node.escapes
            if node.moves and alone and len(users) == 1 and self._nodes[users[0]].contracts:
                self._join([index], users[0])
