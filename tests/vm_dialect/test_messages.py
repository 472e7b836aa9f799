import pytest

from vm_dialect import messages
from vm_dialect.messages import render


def test_the_wording_of_the_design():
    template = messages.wrong_value(
        messages.describe_dimension(messages.argument("main", 1, "w"), 0),
        "k",
        origin=messages.describe_dimension(messages.describe_argument(0, "x"), 1),
    )
    text = "main: argument #1 (w) dimension 0: expected k = 4 (from argument #0 (x) dimension 1), got 5"
    assert render(template, 4, 5) == text


@pytest.mark.parametrize(
    ("template", "integers", "name", "text"),
    [
        (messages.wrong_arity("f", []), [1], "", "f: expected 0 arguments, got 1"),
        (messages.wrong_arity("f", ["x"]), [0], "", "f: expected 1 argument (x), got 0"),
        (messages.wrong_arity("f", ["x", "y"]), [3], "", "f: expected 2 arguments (x, y), got 3"),
        (messages.wrong_kind("s", "int"), [], "tensor", "s: expected an int, got tensor"),
        (messages.wrong_kind("s", "tensor"), [], "null", "s: expected a tensor, got null"),
        (messages.wrong_rank("s", 2), [3], "", "s: expected rank 2, got 3"),
        (messages.wrong_dtype("s", "float32"), [], "int8", "s: expected dtype float32, got int8"),
        (messages.wrong_device("s"), [2], "", "s: expected a tensor on the CPU, got DLPack device type 2"),
        (messages.wrong_constant("s", 4), [5], "", "s: expected 4, got 5"),
        (messages.wrong_multiple("s", "2 * n", 2), [7], "", "s: expected a multiple of 2 (2 * n), got 7"),
        (messages.out_of_bounds("s", "n", 1, 8), [9], "", "s: expected n in the range 1 to 8, got 9"),
        (messages.out_of_bounds("s", "n", 1, None), [0], "", "s: expected n in the range at least 1, got 0"),
        (messages.wrong_size("s", 1), [2], "", "s: expected a tuple of 1 field, got 2"),
        (messages.describe_field("argument #0 (p)", 1), [], "", "argument #0 (p) field 1"),
    ],
)
def test_wording(template: str, integers: list[int], name: str, text: str):
    assert render(template, *integers, name=name) == text


def test_marks_are_counted():
    with pytest.raises(ValueError, match="template has 1 marks for 2 integers"):
        render("{}", 1, 2)
