"""Look-up of the functions of a module by name, in constant time as long as the module does not change."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary, WeakValueDictionary

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Operation

_tables: WeakKeyDictionary[Operation, WeakValueDictionary[str, Operation]] = WeakKeyDictionary()
"""Tables of modules that are still there. They hold no op: an op holds its module, which would never go then."""


def enclosing_module(op: Operation) -> ModuleOp | None:
    """The innermost module that `op` is in, or that it is."""
    current: Operation | None = op
    while current is not None and not isinstance(current, ModuleOp):
        current = current.parent_op()
    return current


def symbol_name(op: Operation) -> str | None:
    """The name under which `op` is in the symbol table, if it has one."""
    name = op.properties.get("sym_name")
    return name.data if isinstance(name, StringAttr) else None


def find_function(op: Operation, name: str) -> Operation | None:
    """The op called `name` in the module around `op`; `None` if there is none, or no module.

    The table of a module is remembered; an entry counts only if it is still that module's and still has the name, and
    a name that is not found makes a new table.
    """
    module = enclosing_module(op)
    if module is None:
        return None
    table = _tables.get(module)
    found = None if table is None else table.get(name)
    if found is not None and found.parent is module.body.block and symbol_name(found) == name:
        return found
    ops = {symbol: inner for inner in module.body.block.ops if (symbol := symbol_name(inner)) is not None}
    _tables[module] = WeakValueDictionary(ops)
    return ops.get(name)


def called_functions(op: Operation) -> Iterator[str]:
    """The names of the functions that `op` refers to, if any."""
    callee = op.properties.get("callee")
    if isinstance(callee, SymbolRefAttr):
        yield callee.string_value()
