"""`bind-symbolic-vars`: symbols of a function become numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from lowering.relax.functions.specialization import bind_in_kernel, bind_symbols, find_entry, find_kernel


@dataclass(frozen=True)
class BindSymbolicVarsPass(ModulePass):
    """Replaces symbols of a function by integers, throughout its signature and body.

    `BindSymbolicVarsPass("main", {"n": 4})`, in text `bind-symbolic-vars{func=main n=4}`.

    Before:

    ```mlir
    relax.func @main[%n, %k](%x: !relax.tensor<[n, k], f32>) -> !relax.tensor<[n * k], f32> {
      %0 = relax.flatten %x
      relax.return %0
    }
    ```

    After:

    ```mlir
    relax.func @main[%k](%x: !relax.tensor<[4, k], f32>) -> !relax.tensor<[4 * k], f32> {
      %0 = relax.flatten %x
      relax.return %0
    }
    ```

    Arguments of other sizes are refused when the function is called. Of a PrimFunc, scalar parameters can be bound too,
    to integers (`tir_dialect.specialize` in Python, which also takes floats, sizes over others, and shapes).

    Refuses a function that the module itself uses,
    symbols that the function does not bind, hence to bind one twice, and values that are out of bounds, that leave
    another symbol without a parameter to solve it from, or with which an op can never succeed.
    """

    name = "bind-symbolic-vars"

    func: str = "main"
    """The function."""
    values: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number for each symbol; in text, one option each. A symbol called `func` cannot be given in text."""

    @override
    @classmethod
    def from_spec(cls, spec: ArgSpec) -> Self:
        """Reads the options; every one but `func` is a symbol. Raises `ValueError` at a value that is no integer."""
        func = spec.parameters.get("func", ("main",))
        if len(func) != 1 or not isinstance(func[0], str):
            raise ValueError(f"'{cls.name}' expected one name as func")
        values: dict[str, int] = {}
        for name, given in spec.parameters.items():
            if name != "func":
                if len(given) != 1 or isinstance(given[0], bool) or not isinstance(given[0], int):
                    raise ValueError(f"'{cls.name}' expected one integer for {name}")
                values[name] = given[0]
        return cls(func[0], values)

    @override
    def spec(self, *, include_default: bool = False) -> ArgSpec:
        return ArgSpec(self.name, {"func": (self.func,), **{name: (value,) for name, value in self.values.items()}})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Changes the one function."""
        kernel = find_kernel(op, self.func)
        if kernel is None:
            bind_symbols(find_entry(op, self.func, "'relax.func' or 'tir.prim_func'"), self.values)
        else:
            bind_in_kernel(kernel, self.values)
