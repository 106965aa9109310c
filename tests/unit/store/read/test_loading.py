"""Loading in threads, on a disk that says what is not in memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from cometmq.base.ports import File
from cometmq.store.read import loading
from cometmq.store.read.loading import Loader, Stretch
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import FaultyFiles

PAGE = 4096


class HeldFiles(FaultyFiles):
    """Whoever opens a file waits until ``go`` is set."""

    def __init__(self) -> None:
        super().__init__(FakeClock())
        self.go = threading.Event()
        self.entered = threading.Semaphore(0)
        self.make_directory("/data")

    def open(self, path: str, *, mapped: bool, writable: bool = True) -> File:
        self.entered.release()
        assert self.go.wait(10)
        return super().open(path, mapped=mapped, writable=writable)


@pytest.fixture
def files() -> Iterator[HeldFiles]:
    files = HeldFiles()
    yield files
    files.go.set()


@pytest.fixture
def file(files: HeldFiles) -> File:
    file = files.create("/data/one", 8 * PAGE, allocate=True)
    files.evict()
    return file


def loaded_pages(file: File) -> list[int]:
    return [page for page in range(8) if file.is_loaded(page * PAGE, PAGE)]


def test_what_is_asked_for_is_in_memory_when_it_is_done(files: HeldFiles, file: File) -> None:
    files.go.set()
    loader = Loader(files)
    done = loader.load([Stretch(file.path, PAGE - 1, 2), Stretch(file.path, 4 * PAGE, PAGE)])
    assert done is not None
    done.result(10)
    assert loaded_pages(file) == [0, 1, 4]
    loader.stop()


def test_more_than_a_piece_is_loaded_piece_by_piece(
    files: HeldFiles, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_PIECE", memoryview(bytearray(PAGE)))
    files.go.set()
    loader = Loader(files)
    done = loader.load([Stretch(file.path, PAGE, 6 * PAGE + 1)])
    assert done is not None
    done.result(10)
    assert loaded_pages(file) == [1, 2, 3, 4, 5, 6, 7]
    loader.stop()


def test_it_ends_where_the_file_ends(files: HeldFiles, file: File) -> None:
    files.go.set()
    loader = Loader(files)
    done = loader.load([Stretch(file.path, 7 * PAGE, 100 * PAGE)])
    assert done is not None
    done.result(10)
    assert loaded_pages(file) == [7]
    loader.stop()


def test_a_file_that_is_gone_is_left_to_the_read(files: HeldFiles, file: File) -> None:
    files.go.set()
    loader = Loader(files)
    done = loader.load([Stretch("/data/none", 0, PAGE), Stretch(file.path, 0, PAGE)])
    assert done is not None
    done.result(10)
    assert loaded_pages(file) == [0]
    loader.stop()


def test_too_many_at_once_are_refused(
    files: HeldFiles, file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "WAITING_MAX", 6)
    loader = Loader(files)
    stretch = Stretch(file.path, 0, PAGE)
    under_way = [loader.load([stretch]) for _ in range(6)]
    assert None not in under_way
    assert loader.load([stretch]) is None
    files.go.set()
    for one in under_way:
        assert one is not None
        one.result(10)
    again = loader.load([stretch])
    assert again is not None
    loader.stop()


def test_a_stop_waits_for_what_has_begun_and_cancels_the_rest(files: HeldFiles, file: File) -> None:
    loader = Loader(files)
    count = loading.THREADS + 3
    under_way = [loader.load([Stretch(file.path, 0, PAGE)]) for _ in range(count)]
    for _ in range(loading.THREADS):
        assert files.entered.acquire(timeout=10)
    stopping = threading.Thread(target=loader.stop)
    stopping.start()
    # Those that have not begun are cancelled at once; who has begun is waited for.
    for one in under_way[loading.THREADS :]:
        assert one is not None
        with pytest.raises(CancelledError):
            one.result(10)
    assert stopping.is_alive()
    files.go.set()
    stopping.join(10)
    assert not stopping.is_alive()
    for one in under_way[: loading.THREADS]:
        assert one is not None
        assert one.done()
    assert not [one for one in threading.enumerate() if one.name.startswith("cometmq-store-load")]


def test_it_can_go_on_after_a_stop(files: HeldFiles, file: File) -> None:
    files.go.set()
    loader = Loader(files)
    loader.stop()
    done = loader.load([Stretch(file.path, 0, PAGE)])
    assert done is not None
    done.result(10)
    loader.stop()
