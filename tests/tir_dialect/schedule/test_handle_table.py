"""Handles, apart from any schedule: blocks that are in no function."""

from tests.tir_dialect.schedule.support import elementwise
from tir_dialect.ops.blocks import BlockOp
from tir_dialect.schedule.handles import HandleTable


def test_an_op_has_one_handle_until_that_is_removed() -> None:
    table, op = HandleTable(), BlockOp("b")
    handle = table.block(op)
    assert table.block(op) is handle
    assert not table.is_removed(handle)
    table.remove(handle)
    assert table.is_removed(handle)
    assert table.block(op) is not handle


def test_a_redirected_handle_stands_for_the_other_block_only() -> None:
    table, before, after = HandleTable(), BlockOp("b"), BlockOp("c")
    handle = table.block(before)
    table.redirect(handle, after)
    assert handle.op is after
    assert table.block(after) is handle
    assert table.block(before) is not handle


def test_functions_have_handles_as_root_blocks() -> None:
    table, func = HandleTable(), elementwise()
    root = table.root(func)
    assert table.root(func) is root
    assert table.function_of(root) is func
    assert table.is_root(root)
    assert not table.is_root(table.block(BlockOp("root")))


def test_a_copy_knows_the_handles_of_all_tables_before_it() -> None:
    table, func, ops = HandleTable(), elementwise(), [BlockOp("b") for _ in range(3)]
    handle, root, lost = table.block(ops[0]), table.root(func), table.block(BlockOp("d"))
    functions = [func, func.clone(), func.clone()]
    second = table.copy({ops[0]: ops[1], functions[0]: functions[1]})
    third = second.copy({ops[1]: ops[2], functions[1]: functions[2]})
    for known, op, function in ((second, ops[1], functions[1]), (third, ops[2], functions[2])):
        assert known.own(handle) is known.block(op)
        assert known.function_of(known.own(root)) is function
        assert known.own(lost) is lost
    assert third.own(second.block(ops[1])) is third.block(ops[2])
    assert table.own(handle) is handle
