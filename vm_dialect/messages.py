"""The wording of run-time errors, one for bytecode and native code.

Each function returns a template. In it `{}` stands for an integer and `{name}` for the name of a kind or dtype, both
known only at run time; everything else is text, so that native code can bake a template as a C format string
(`%lld`, `%s`). `render` fills one in. A wrong kind, rank or dtype is a `TypeError`, a wrong value a `ValueError`.
"""

from __future__ import annotations

from collections.abc import Sequence

KINDS: dict[int, str] = {
    0: "null",
    1: "int",
    2: "bool",
    3: "float",
    4: "pointer",
    5: "dtype",
    6: "device",
    7: "tensor",
    8: "string",
    9: "bytes",
    11: "string",
    12: "bytes",
    65: "string",
    66: "bytes",
    67: "error",
    68: "function",
    69: "shape",
    70: "tensor",
    71: "tuple",
    72: "map",
    73: "module",
}
"""Names of kinds by tvm-ffi type index; anything else is an `object`."""

_ARTICLES = {"int": "an int", "object": "an object", "error": "an error"}


def kind_name(type_index: int) -> str:
    """The name of a tvm-ffi type index, as errors print it."""
    return KINDS.get(type_index, "object")


def render(template: str, *integers: int, name: str = "") -> str:
    """The template with its `{}` replaced by `integers`, in order, and `{name}` by `name`.

    `ValueError` if there are not as many integers as marks.
    """
    parts = template.split("{}")
    if len(parts) != len(integers) + 1:
        raise ValueError(f"template has {len(parts) - 1} marks for {len(integers)} integers: {template}")
    text = parts[0]
    for integer, part in zip(integers, parts[1:], strict=True):
        text += f"{integer}{part}"
    return text.replace("{name}", name)


def argument(function: str, index: int, name: str) -> str:
    """What an error about an argument begins with: `main: argument #1 (w)`."""
    return f"{function}: {describe_argument(index, name)}"


def _without_marks(name: str) -> str:
    """A name of a model inside of a template, where braces would be marks."""
    return name.replace("{", "(").replace("}", ")")


def describe_argument(index: int, name: str) -> str:
    """An argument, without its function: `argument #1 (w)`."""
    return f"argument #{index} ({_without_marks(name)})"


def describe_captured(index: int, name: str) -> str:
    """A value that a closure captures, without its function: `captured value #0 (x)`."""
    return f"captured value #{index} ({_without_marks(name)})"


def describe_parameters(names: Sequence[str], captured: int = 0) -> list[str]:
    """The parameters of a function of which the first `captured` are given by the closures that are made of it."""
    return [
        describe_captured(index, name) if index < captured else describe_argument(index - captured, name)
        for index, name in enumerate(names)
    ]


def describe_dimension(subject: str, axis: int) -> str:
    """A dimension of what `subject` names: `argument #1 (w) dimension 0`."""
    return f"{subject} dimension {axis}"


def describe_field(subject: str, index: int) -> str:
    """A field of the tuple that `position` names: `argument #1 (state) field 0`."""
    return f"{subject} field {index}"


def wrong_arity(function: str, parameters: Sequence[str]) -> str:
    """`TypeError`: the number of arguments. One integer: how many there are."""
    plural = "" if len(parameters) == 1 else "s"
    names = f" ({', '.join(map(_without_marks, parameters))})" if parameters else ""
    return f"{function}: expected {len(parameters)} argument{plural}{names}, got {{}}"


def wrong_kind(subject: str, expected: str) -> str:
    """`TypeError`: not the kind `expected`, one of `KINDS`. The name: the kind that it is."""
    return f"{subject}: expected {_ARTICLES.get(expected, f'a {expected}')}, got {{name}}"


def wrong_rank(subject: str, expected: int) -> str:
    """`TypeError`: a tensor or shape of another rank. One integer: its rank."""
    return f"{subject}: expected rank {expected}, got {{}}"


def wrong_dtype(subject: str, expected: str) -> str:
    """`TypeError`: a tensor of another element type; names as in tvm-ffi (`float32`). The name: its dtype."""
    return f"{subject}: expected dtype {expected}, got {{name}}"


def wrong_device(subject: str) -> str:
    """`ValueError`: a tensor that is not in the memory of the CPU. One integer: its DLPack device type."""
    return f"{subject}: expected a tensor on the CPU, got DLPack device type {{}}"


def not_contiguous(subject: str) -> str:
    """`ValueError`: the elements are not one after the other, last axis fastest. One integer: the first such axis."""
    return f"{subject}: expected contiguous memory, got a gap along axis {{}}: pass a contiguous copy"


def not_aligned(subject: str, alignment: int) -> str:
    """`ValueError`: an address that is not a multiple of `alignment` bytes. One integer: the remainder."""
    return f"{subject}: expected memory aligned to {alignment} bytes, got remainder {{}}: pass an aligned copy"


WITH_GAPS = "has gaps between its elements"


def written_copy(subject: str, why: str) -> str:
    """`ValueError`: the function writes into an argument that it could use as a copy only."""
    return f"{subject}: is written, so that it cannot be copied, but {why}: pass a new array, and read the result there"


def written_number(subject: str, kind: str) -> str:
    """`TypeError`: the function writes into an argument that is a number or a sequence of Python."""
    return f"{subject}: expected a tensor, got {kind}: the function writes into it"


def overlapping(subject: str, position: str) -> str:
    """For an argument whose memory is part of that of another, one of which is written."""
    return f"{subject}: overlaps {position}: pass a copy"


def wrong_value(subject: str, expected: str, *, origin: str | None = None) -> str:
    """`ValueError`: a dimension or number that differs from one known before.

    `expected` is a symbol or an expression over symbols; `origin` is the position that bound it. Two integers: the
    expected number and the one that is there.

    ```
    main: argument #1 (w) dimension 0: expected k = {} (from argument #0 (x) dimension 1), got {}
    ```
    """
    source = "" if origin is None else f" (from {origin})"
    return f"{subject}: expected {expected} = {{}}{source}, got {{}}"


def wrong_constant(subject: str, expected: int) -> str:
    """`ValueError`: a dimension or number that is not `expected`. One integer: the one that is there."""
    return f"{subject}: expected {expected}, got {{}}"


def wrong_multiple(subject: str, expected: str, divisor: int) -> str:
    """`ValueError`: a number that no symbol solves, as 7 for `2 * n`. One integer: the number."""
    return f"{subject}: expected a multiple of {divisor} ({expected}), got {{}}"


def out_of_bounds(subject: str, symbol: str, low: int, high: int | None) -> str:
    """`ValueError`: a symbol outside its bounds; `high` is `None` if there is no upper one. One integer: its value."""
    wanted = f"at least {low}" if high is None else f"{low} to {high}"
    return f"{subject}: expected {symbol} in the range {wanted}, got {{}}"


def zero_step(subject: str) -> str:
    """`ValueError`: a loop that would stay where it is. One integer: its step."""
    return f"{subject}: expected a number other than 0, got {{}}"


def wrong_size(subject: str, expected: int) -> str:
    """`TypeError`: a tuple with another number of fields. One integer: the number it has."""
    plural = "" if expected == 1 else "s"
    return f"{subject}: expected a tuple of {expected} field{plural}, got {{}}"


def no_such_field(index: int) -> str:
    """`ValueError`: `tuple_get` past the end. One integer: the number of fields."""
    return f"tuple_get: expected a field #{index}, got a tuple of {{}}"


def no_such_axis(axis: int) -> str:
    """`ValueError`: a dimension past the rank. One integer: the rank."""
    return f"dimension {axis} asked of a value of rank {{}}"


def no_such_element(index: int) -> str:
    """`ValueError`: an element past the end of a vector. One integer: the number of elements."""
    return f"read_int: expected an element #{index}, got a vector of {{}}"


def negative_dimension() -> str:
    """`ValueError`: a tensor with a negative dimension. Two integers: the axis and the dimension."""
    return "cannot make a tensor whose dimension {} is {}"


def negative_size() -> str:
    """`ValueError`: a storage of negative size. One integer: the size."""
    return "cannot allocate {} bytes"


MOST_BYTES = 1 << 48
"""Of a tensor, of which axes of length 0 count as 1: its sizes are far from overflow in 64 bits."""


def too_large() -> str:
    """`MemoryError`: a tensor that no machine can hold, also if it has no elements."""
    return "cannot allocate a tensor of more than 2^48 bytes"


def too_large_argument(subject: str) -> str:
    """`ValueError`: a tensor whose sizes are too large to compute with, also if it has no elements."""
    return f"{subject}: expected a tensor of at most 2^48 bytes, where axes of length 0 count as 1"


def overflow() -> str:
    """`ValueError`: a sum or product of sizes that 64 bits do not hold."""
    return "a size does not fit into 64 bits"


def out_of_storage() -> str:
    """`ValueError`: a tensor that does not fit into its storage. Three integers: bytes, offset, size of the storage."""
    return "a tensor of {} bytes at offset {} does not fit into a storage of {} bytes"


def wrong_element_count() -> str:
    """`ValueError`: a view with another number of elements. Two integers: elements of the tensor and of the view."""
    return "cannot view a tensor of {} elements as one of {}"


def division_by_zero() -> str:
    """`ValueError`: `floordiv` or `mod` by zero."""
    return "division by zero"


def too_deep(function: str, limit: int) -> str:
    """`RecursionError`: more calls inside each other than `limit`."""
    return f"{function}: more than {limit} calls inside each other: turn the recursion into a loop or a tail call"


def too_many_registers(function: str, limit: int) -> str:
    """`RecursionError`: the functions that wait for others hold more registers than `limit`."""
    return f"{function}: calls inside each other hold more than {limit} registers: turn the recursion into a loop"


def too_many_steps(function: str, limit: int) -> str:
    """`StepLimitError`: a program has executed `limit` instructions, as many as it may."""
    return f"{function}: has not ended after {limit} instructions, as many as max_steps lets it execute"


def too_many_iterations(function: str, limit: int) -> str:
    """`StepLimitError`: a program that is interpreted has begun `limit` calls and iterations, as many as it may."""
    return f"{function}: has not ended after {limit} calls and iterations of loops, as many as max_steps lets it begin"


def not_allowed(name: str) -> str:
    """`UntrustedError`: a function that a program from elsewhere may not call."""
    return (
        f'function "{name}" is not allowed: the program is from a file that this user has not written; if it may call '
        f'it, say so: VirtualMachine(executable, allow=["{name}"]), or packed={{"{name}": function}}'
    )


def no_stack(function: str) -> str:
    """`RecursionError`: a call of machine code for which others have left no stack."""
    return f"{function}: no stack is left for a call: turn the recursion through other programs into a loop"


def no_text() -> str:
    """`RuntimeError`, or the class of those that end a program: an exception that cannot be told as it is."""
    return "a packed function has raised an exception that has no text in UTF-8"


def unknown_packed(name: str) -> str:
    """`ValueError`, when an executable is loaded: no function of that name is registered."""
    return f'packed function "{name}" is not registered: use tvm_ffi.register_global_func("{name}")'
