"""Work beside the interpreter: results and errors arrive, nothing is left running, settings are put back."""

import sys
import threading
from concurrent.futures import Future

import pytest

from lowering.llvm import background
from lowering.llvm.background import Background


@pytest.mark.parametrize("processors", [1, 2])
def test_results_and_errors(processors: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "_processors", lambda: processors)
    threads = threading.active_count()
    with Background() as thread:
        numbers = [thread.submit(lambda number=number: number * number) for number in range(20)]
        wrong = thread.submit(lambda: 1 // 0)
        who = thread.submit(threading.current_thread)
    assert [each.result() for each in numbers] == [number * number for number in range(20)]
    with pytest.raises(ZeroDivisionError):
        wrong.result()
    assert (who.result() is threading.current_thread()) == (processors == 1)
    assert threading.active_count() == threads


@pytest.mark.parametrize("processors", [1, 2])
def test_an_interruption_reaches_who_waits(processors: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "_processors", lambda: processors)

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Background() as thread:
        thread.submit(interrupted).result(timeout=60)


def test_what_has_not_begun_is_left_undone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "_processors", lambda: 2)
    begun, go_on = threading.Event(), threading.Event()
    done: list[int] = []
    later: list[Future[None]] = []

    def first() -> None:
        begun.set()
        go_on.wait()
        done.append(0)

    def interrupted() -> None:
        with Background() as thread:
            thread.submit(first)
            later.extend(thread.submit(lambda number=number: done.append(number)) for number in range(1, 5))
            begun.wait()
            threading.Timer(0.01, go_on.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert done == [0]
    assert len(later) == 4
    assert all(each.cancelled() for each in later)


@pytest.mark.parametrize(("at_hand", "where"), [(0, "relax-codegen_"), (1000, "relax-codegen-process_")])
@pytest.mark.usefixtures("own_process")
def test_one_text_alone_is_for_this_process(at_hand: int, where: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "_processors", lambda: 2)
    monkeypatch.setattr(background, "START_TEXT", 10)
    monkeypatch.setattr(background, "LEAST_GAIN", 10)
    begun, go_on = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        begun.set()
        go_on.wait(60)

    with Background() as thread:
        thread.submit_code(hold, at_hand)
        begun.wait(60)
        text = thread.submit_code(lambda _: threading.current_thread().name, 1000)
        if at_hand:
            text.result(60)
        go_on.set()
    assert text.result().startswith(where)


@pytest.mark.parametrize(
    ("at_hand", "waiting", "pays"),
    [
        (0, [10], False),  # one has nothing to share
        (10, [0.1], False),
        (0, [10, 0.1], False),
        (0, [0.25] * 4, False),  # done before the process is there
        (0, [0.25] * 7, False),
        (0, [0.25] * 10, True),
        (3, [3], True),
        (10, [0.1] * 6, True),
    ],
)
def test_another_process_takes_texts_that_are_longer_than_its_start(at_hand: float, waiting: list[float], pays: bool):
    """In units of that."""
    sizes = [int(each * background.START_TEXT) for each in waiting]
    gain = background.gain_of_process(int(at_hand * background.START_TEXT), sizes)
    assert (gain >= background.LEAST_GAIN) is pays


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_no_process_is_started_where_none_is_wanted(wanted: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "_processors", lambda: 2)
    monkeypatch.setattr(background, "START_TEXT", 10)
    monkeypatch.setattr(background, "LEAST_GAIN", 10)
    monkeypatch.setenv("RELAX_PROCESS", wanted)
    with Background() as thread:
        beside = thread.beside(lambda process: 7)
        texts = [thread.submit_code(lambda _: threading.current_thread().name, 1000) for _ in range(9)]
    assert (None if beside is None else beside.result()) == (7 if wanted == "1" else None)
    names = {each.result().rpartition("_")[0] for each in texts}
    assert names <= {"relax-codegen", "relax-codegen-process"} if wanted == "1" else names == {"relax-codegen"}


def test_the_interval_is_put_back(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "_processors", lambda: 2)
    interval = sys.getswitchinterval()

    def stopped() -> None:
        with Background() as thread:
            thread.submit(int).result()
            assert sys.getswitchinterval() < interval
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        stopped()
    assert sys.getswitchinterval() == interval


def test_debug_output_keeps_its_order(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(background, "_processors", lambda: 2)
    monkeypatch.setenv("RELAX_DEBUG", "3")
    with Background() as thread:
        assert thread.submit(threading.current_thread).result() is threading.current_thread()
