"""Whether two modules are the same program, whatever their values are called."""

from xdsl.dialects.builtin import ModuleOp


def unnamed(module: ModuleOp) -> str:
    """The text of a module without the names of values; names of functions and symbols stay."""
    module = module.clone()
    for op in module.walk():
        for value in (*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)):
            value.name_hint = None
    return str(module)


def assert_same_program(actual: ModuleOp, expected: ModuleOp) -> None:
    """Fails with both texts unless the modules differ in nothing but names of values."""
    assert unnamed(actual) == unnamed(expected)
