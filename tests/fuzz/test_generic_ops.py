"""Every op with parts left out, doubled or of a wrong kind: accepted, or refused with a message."""

import pytest
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from lowering.diagnostics import InvalidModule
from lowering.parsing import parse_module
from lowering.verify import verify_module
from tests.fuzz.generic_ops import DIALECTS, failures, samples

SHARE = 0.1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_share_of_all_changes(dialect: str):
    _all_are_refused(samples(dialect, 1), SHARE)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_changes(dialect: str):
    _all_are_refused(samples(dialect, 3), 1.0)


def _all_are_refused(found: dict[str, list[Operation]], share: float) -> None:
    assert len(found) > 30
    wrong: list[str] = []
    for op in (op for ops in found.values() for op in ops):
        before = op.properties.copy(), op.attributes.copy(), tuple(op.operands), tuple(op.results), tuple(op.regions)
        wrong += failures(op, share)
        assert before == (op.properties, op.attributes, tuple(op.operands), tuple(op.results), tuple(op.regions))
    assert not wrong, f"{len(wrong)} changes end in an internal error, among them\n" + "\n".join(wrong[:20])


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("relax.func @f[%n](%x: !relax.tensor<[n], f32>) { %0 = relax.add %x, %x relax.return %0 }", "function_type"),
        ("tir.prim_func @f[%n](%x: !tir.buffer<[n], f32>) { }", "symbols"),
        ("vm.func @f(%x: !vm.object) -> !vm.object { vm.ret %x }", "function_type"),
    ],
)
@pytest.mark.parametrize("is_missing", [True, False])
def test_what_nested_ops_rely_on_is_verified_before_them(text: str, part: str, is_missing: bool):
    """One error, of the function: nobody can say what its ops should be."""
    module = parse_module(text)
    func = next(iter(module.ops))
    del func.properties[part]
    if not is_missing:
        func.properties[part] = UnitAttr()
    with pytest.raises(InvalidModule) as caught:
        verify_module(module)
    assert part in str(caught.value)
    assert str(caught.value).count("error:") == 1
