"""Former names of passes still work, and say what the pass is called now."""

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline

from lowering.context import make_context
from lowering.registry import ALIASES, PASSES, load_pass, pass_factories


@pytest.mark.parametrize(("old", "new"), ALIASES.items())
def test_a_former_name_warns_and_is_the_same_pass(old: str, new: str):
    assert old not in PASSES
    with pytest.warns(DeprecationWarning, match=f"the pass '{old}' is called '{new}' now"):
        found = load_pass(old)
    assert issubclass(found, load_pass(new))
    with pytest.warns(DeprecationWarning, match=new):
        (each,) = PassPipeline.parse_spec(pass_factories(), old).passes
    each.apply(make_context(), ModuleOp([]))


def test_options_are_those_of_the_pass():
    with pytest.warns(DeprecationWarning, match="convert-layout"):
        (each,) = PassPipeline.parse_spec(pass_factories(), "volumes-in-blocks{block=16}").passes
    (new,) = PassPipeline.parse_spec(pass_factories(), "convert-layout{block=16}").passes
    assert isinstance(each, type(new))
    assert vars(each) == vars(new)
