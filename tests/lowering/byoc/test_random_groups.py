"""Groups that patterns make in random programs mean what their ops mean, and are put back as they were."""

import pytest
from hypothesis import given
from xdsl.dialects.builtin import ModuleOp

from lowering.byoc.backends import Backend, FusionPattern, register_backend
from relax_dialect.ops.dataflow import FusedOp
from relax_dialect.patterns import Pattern, is_op, is_tuple, is_tuple_get, wildcard
from tests.strategies.relax_programs import Program, programs
from tests.support.programs import check_pass
from tests.support.sweeps import examples

BINARY = is_op(
    *(f"relax.{name}" for name in ("add", "subtract", "multiply", "maximum", "less", "less_equal", "equal", "matmul"))
)
UNARY = is_op(
    *(f"relax.{name}" for name in ("negative", "abs", "tanh", "sigmoid", "nn.relu", "flatten", "logical_not", "astype"))
)
ANY = is_op("relax.concat", "relax.stack", "relax.reshape", "relax.full", "relax.constant", "relax.strided_slice")


def patterns() -> dict[str, Pattern]:
    """One op; chains; one operand twice; values that others see; tuples; alternatives."""
    x, y = wildcard(), wildcard()
    seen = (BINARY | UNARY | ANY).may_be_used_outside()
    return {
        "a chain": UNARY(BINARY | UNARY) | BINARY(UNARY(x), y).in_any_order(),
        "one that others see": BINARY(seen, y).in_any_order() | UNARY(seen),
        "a tuple": is_tuple_get(is_tuple(seen, y) | is_tuple(x, seen)) | is_tuple(seen, y),
        "twice": BINARY(x, x),
        "optional": BINARY(x, y).optional(lambda inner: UNARY(inner)),
        "one": UNARY | ANY,
    }


def register(name: str, names: tuple[str, ...]) -> None:
    """A backend that declines whatever it is asked for, so that `run-codegen` puts it back."""
    found = [FusionPattern(f"{name}.{each}", patterns()[each]) for each in names]
    register_backend(Backend(name, found, lambda group: None))


def groups(module: ModuleOp) -> list[FusedOp]:
    return [op for op in module.walk() if isinstance(op, FusedOp)]


@pytest.mark.slow
@given(program=programs())
@examples(4)
def test_groups_mean_the_same(program: Program):
    register("each", tuple(patterns()))
    register("others", tuple(reversed(patterns())))
    for backend in ("each", "others"):
        fuse = f"fuse-ops-by-pattern{{backend={backend}}}"
        for passes in (fuse, f"{fuse},merge-composites"):
            check_pass(program.module, passes, [program.inputs], entry=program.entry)
    back = f"{fuse},merge-composites,run-codegen"
    assert not groups(check_pass(program.module, back, [program.inputs], entry=program.entry))
