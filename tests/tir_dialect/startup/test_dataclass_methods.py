"""Methods of dataclasses that are made late do what those do that are made at once."""

import copy
import dataclasses
import inspect
import pickle
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

from tir_dialect.startup.dataclass_methods import methods_on_demand

with methods_on_demand():

    @dataclass(frozen=True, order=True)
    class Late:
        """A class of which everything is asked that a dataclass can do."""

        number: int
        name: str = "a"
        unseen: int = field(default=0, compare=False, repr=False)

    @dataclass(frozen=True)
    class Derived(Late):
        """A class whose methods call those of the class below it."""

        more: tuple[int, ...] = ()

    @dataclass(frozen=True, slots=True)
    class Slotted:
        """A class that `dataclasses` makes twice."""

        number: int

    @dataclass
    class Mutable:
        """A class that can hold itself."""

        inner: object = None


@dataclass(frozen=True, order=True)
class AtOnce:
    """As `Late`."""

    number: int
    name: str = "a"
    unseen: int = field(default=0, compare=False, repr=False)


def test_values_are_compared_and_hashed_by_their_fields():
    assert Late(1) == Late(1, unseen=5)
    assert Late(1) != Late(2)
    assert Late(1) != Derived(1)
    assert hash(Late(1, "b", 3)) == hash(AtOnce(1, "b"))
    assert hash(Derived(1, "b", 3, (4,))) == hash((1, "b", (4,)))
    assert {Late(1): "one"}[Late(1)] == "one"
    assert sorted([Late(2), Late(1, "z"), Late(1, "b")]) == [Late(1, "b"), Late(1, "z"), Late(2)]
    assert Late(1) <= Late(1) < Late(2) > Late(1) >= Late(1)


def test_values_are_shown():
    assert repr(Late(1)) == "Late(number=1, name='a')"
    assert repr(Derived(1)) == "Derived(number=1, name='a', more=())"
    itself = Mutable()
    itself.inner = itself
    assert repr(itself) == "Mutable(inner=...)"


@pytest.mark.parametrize("value", [Late(1), Derived(1), Slotted(1)])
def test_frozen_values_stay_as_they_are(value: Any):
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'number'"):
        value.number = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'number'"):
        del value.number


def test_values_are_copied():
    value = Derived(1, more=(2,))
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == dataclasses.replace(value) == value
    assert pickle.loads(pickle.dumps(Slotted(3))) == Slotted(3)


def test_signature_and_fields_are_those_of_the_class():
    assert str(inspect.signature(Late)) == str(inspect.signature(AtOnce))
    assert str(inspect.signature(Late.__init__)) == str(inspect.signature(AtOnce.__init__))
    assert [each.name for each in dataclasses.fields(Derived)] == ["number", "name", "unseen", "more"]
    kind: Any = Late
    with pytest.raises(TypeError, match=r"Late\.__init__\(\) missing 1 required positional argument: 'number'"):
        kind()


def test_a_method_is_there_when_it_is_asked_for():
    with methods_on_demand():

        @dataclass(frozen=True)
        class Fresh:
            """Without a text of its own `dataclasses` would ask for the signature."""

            number: int

        class Below(Fresh):
            """Asks for what it inherits."""

    methods = ("__init__", "__repr__", "__eq__", "__hash__", "__setattr__")
    made = {name for name in methods if inspect.isfunction(vars(Fresh)[name])}
    assert made == {"__repr__"}  # in a function that looks for circles
    assert hash(Below(1)) == hash(Fresh(1))
    for name in methods:
        assert getattr(Below, name) is getattr(Fresh, name) is vars(Fresh)[name]
        assert getattr(Fresh, name).__qualname__.endswith(f"Fresh.{name}")
        assert name not in vars(Below)


def test_the_standard_library_is_put_back():
    before = vars(dataclasses).get("_create_fn")
    with pytest.raises(ValueError, match="stop"), methods_on_demand(), methods_on_demand():
        raise ValueError("stop")
    assert vars(dataclasses).get("_create_fn") is before


def test_threads_may_ask_at_once():
    found: list[int] = []
    value = Mutable(3)
    threads = [threading.Thread(target=lambda: found.append(value == Mutable(3))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 8
