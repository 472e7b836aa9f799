"""What the trace says about a call."""

from tir_dialect.schedule.trace import Recording


def test_arguments_are_recorded_as_they_are() -> None:
    assert Recording().arguments(("loop", "factors"), (1, 2, 3), {"name": "x"}) == ([1, 2, 3], {"name": "x"})


def test_what_an_argument_means_is_recorded_for_that_object_only() -> None:
    recording, given, equal = Recording(), [1], [1]
    recording.record_as(given, "meant")
    assert recording.arguments(("a",), (given, equal), {"k": given, "l": equal}) == (
        ["meant", [1]],
        {"k": "meant", "l": [1]},
    )


def test_decisions_are_added_and_take_the_place_of_arguments() -> None:
    recording = Recording()
    recording.record_with({"decision": 4, "n": 2})
    assert recording.arguments(("loop", "n"), ("l", 9, "more"), {"decision": None}) == (
        ["l", "more"],
        {"decision": 4, "n": 2},
    )
