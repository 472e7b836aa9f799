"""The index space of the block or function in which a primitive works."""

from tests.tir_dialect.schedule.support import elementwise
from tir_dialect.dims import constant
from tir_dialect.ops.control_flow import ForOp
from tir_dialect.schedule.state import Scope


def test_the_index_space_is_made_anew_after_an_edit_or_in_another_scope() -> None:
    func, other = elementwise(), elementwise()
    scope = Scope(func)
    before = scope.space
    assert scope.space is before
    scope.enter(func)
    assert scope.space is before
    scope.changed()
    assert scope.space is not before
    before = scope.space
    scope.enter(other)
    assert scope.space is not before


def test_dimensions_are_carried_to_the_new_symbols() -> None:
    func = elementwise()
    loop = next(op for op in func.walk() if isinstance(op, ForOp))
    scope = Scope(func)
    dim = scope.space.variable(loop.induction_var).dim
    (carried,) = scope.carry([2 * dim + 1])
    assert carried == 2 * scope.space.variable(loop.induction_var).dim + constant(1)
