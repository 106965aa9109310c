"""Config files: backup, damage, and the form they are written in."""

from __future__ import annotations

import logging

import pytest

from cometmq.base.errors import CorruptFile, DiskFull
from cometmq.store.meta.json_file import BadContent, JsonFile, pretty, table_in
from cometmq.testing.fake_clock import FakeClock
from cometmq.testing.faulty_files import Crashed, FaultyFiles, Moment, Outage

PATH = "/x.json"
BROKEN = [b"", b" \n", b"{", b"[1]", b"null", b'{"a":1}garbage', b"\xff\xfe", b'{"table":3}']


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles(FakeClock())


def load(files: FaultyFiles) -> dict[str, object] | None:
    return JsonFile(PATH, files).load(lambda content: table_in(content, "table"))


def test_nothing_there_is_nothing(files: FaultyFiles) -> None:
    assert load(files) is None


def test_a_save_keeps_the_previous_content_as_backup(files: FaultyFiles) -> None:
    json_file = JsonFile(PATH, files)
    json_file.save(b'{"table":{"a":1}}')
    assert not files.exists(PATH + ".bak")
    json_file.save(b'{"table":{"a":2}}')
    assert files.read(PATH + ".bak") == b'{"table":{"a":1}}'
    assert load(files) == {"a": 2}


@pytest.mark.parametrize("main", [None, *BROKEN])
def test_the_backup_stands_in_for_a_missing_or_broken_file(
    files: FaultyFiles, main: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    files.replace(PATH + ".bak", b'{"table":{"a":1}}')
    if main is not None:
        files.replace(PATH, main)
    json_file = JsonFile(PATH, files)
    with caplog.at_level(logging.WARNING, logger="cometmq.store"):
        assert json_file.load(lambda content: table_in(content, "table")) == {"a": 1}
    assert "backup" in caplog.text
    # The good backup is not given up for what could not be read.
    json_file.save(b'{"table":{"a":2}}')
    assert files.read(PATH + ".bak") == b'{"table":{"a":1}}'
    assert load(files) == {"a": 2}


@pytest.mark.parametrize("main", BROKEN)
@pytest.mark.parametrize("backup", [None, b"{"])
def test_without_a_good_one_it_refuses_and_changes_nothing(
    files: FaultyFiles, main: bytes, backup: bytes | None
) -> None:
    files.replace(PATH, main)
    if backup is not None:
        files.replace(PATH + ".bak", backup)
    with pytest.raises(CorruptFile, match=r"/x\.json: cannot be read.*by hand"):
        load(files)
    assert files.read(PATH) == main
    assert files.exists(PATH + ".bak") == (backup is not None)


def test_a_reader_may_refuse_content(files: FaultyFiles) -> None:
    files.replace(PATH, b"{}")

    def refuse(content: dict[str, object]) -> None:
        raise BadContent("no such table")

    with pytest.raises(CorruptFile, match="no such table"):
        JsonFile(PATH, files).load(refuse)


def test_a_full_disk_leaves_the_old_content(files: FaultyFiles) -> None:
    json_file = JsonFile(PATH, files)
    json_file.save(b'{"table":{"a":1}}')
    files.set_free(0)
    with pytest.raises(DiskFull):
        json_file.save(b'{"table":{"a":2}}')
    files.set_free(1 << 20)
    assert load(files) == {"a": 1}


@pytest.mark.parametrize("outage", list(Outage))
@pytest.mark.parametrize("moment", list(Moment))
def test_a_crash_at_any_disk_call_leaves_the_old_or_the_new(outage: Outage, moment: Moment) -> None:
    for seed in range(60):
        files = FaultyFiles(FakeClock(), seed=seed)
        JsonFile(PATH, files).save(b'{"table":{"n":0}}')
        json_file = JsonFile(PATH, files)
        json_file.load(lambda content: table_in(content, "table"))
        files.crash_in(1 + seed % 20, moment)
        saved = 0
        try:
            for number in range(1, 5):
                json_file.save(b'{"table":{"n":%d}}' % number)
                saved = number
        except Crashed:
            pass
        files.restart(outage)
        assert load(files) in ({"n": saved}, {"n": saved + 1}), seed


def test_the_form_is_that_of_fastjson() -> None:
    value = {
        "name": 'quo"te ü',
        "empty": {},
        "none": [],
        "list": [1, "b"],
        "offsets": {0: 4, 1: 5},
        "inner": {"flag": True, "deep": {"n": None}},
    }
    assert pretty(value) == (
        '{\n\t"name":"quo\\"te ü",\n\t"empty":{},\n\t"none":[],\n\t"list":[\n\t\t1,\n\t\t"b"\n\t],'
        '\n\t"offsets":{0:4,1:5\n\t},\n\t"inner":{\n\t\t"flag":true,\n\t\t"deep":{\n\t\t\t"n":null\n\t\t}'
        "\n\t}\n}"
    )
