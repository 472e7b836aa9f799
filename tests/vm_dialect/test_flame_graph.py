"""Flame graphs: the levels of names, and boxes as wide as times."""

import re

import pytest

from vm_dialect.profiler import frames_of, levels_of, page

CALLS = [
    ("/encoder/layer.0/MatMul", "matmul", 600, 2),
    ("/encoder/layer.0/Add", "fused_add", 100, 1),
    ("/encoder/layer.1/MatMul", "matmul", 299, 1),
    ("model.mlir:3:5", "a<b", 1000, 1),
]


@pytest.mark.parametrize(
    ("location", "levels"),
    [
        ("/encoder/layer.0/MatMul", ["encoder", "layer", "0", "MatMul"]),
        ("models/model.mlir:3:5", ["models/model.mlir", "3:5"]),
        ("model.py:12", ["model.py", "12"]),
        ("", ["(unknown)"]),
    ],
)
def test_levels(location: str, levels: list[str]):
    assert levels_of(location) == levels


def test_times_are_those_of_all_that_is_below():
    root = frames_of(CALLS)
    assert (root.nanoseconds, root.calls) == (1999, 5)
    encoder = root.children["encoder"]
    assert encoder.nanoseconds == 999
    assert [(each.name, each.nanoseconds) for each in encoder.children["layer"].largest_first] == [
        ("0", 700),
        ("1", 299),
    ]
    assert encoder.children["layer"].children["0"].children["MatMul"].children["matmul"].calls == 2


def test_boxes_are_as_wide_as_their_times():
    text = page(frames_of([*CALLS, ("x", "tiny", 1, 1), ("y", "tiny", 0, 1)]))
    boxes = re.findall(r'flex: (\d+) 1 0"><div class="bar"[^>]*>([^<]*)<', text)
    assert {("2000", "all"), ("1000", "a&lt;b"), ("700", "0"), ("600", "matmul")} <= set(boxes)
    assert 'title="0: 0.7 us, 35.0 %, 3 calls"' in text
    assert text.count('class="node"') == text.count('class="bar"')
    assert text.count("<div") == text.count("</div>")


def test_small_boxes_are_one():
    text = page(frames_of([("a/big", "kernel", 10_000, 1), ("a/b", "kernel", 1, 1), ("a/c", "kernel", 2, 3)]))
    assert 'title="2 more: 0.0 us, 0.0 %, 4 calls"' in text
