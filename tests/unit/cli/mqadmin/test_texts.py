"""What ``mqadmin`` prints without a cluster: lists, help, tables, completion, refusals."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cometmq.admin import ByServer, Place, Target
from cometmq.base.errors import CometError, UsageError
from cometmq.cli.mqadmin.completion import SHELLS, script
from cometmq.cli.mqadmin.confirm import NotConfirmed, confirm
from cometmq.cli.mqadmin.definition_file import read_definitions
from cometmq.cli.mqadmin.layout import BOLD, RED, Layout, fitted
from cometmq.cli.mqadmin.main import main, run
from cometmq.cli.mqadmin.options import OWN
from cometmq.cli.mqadmin.output import Output, plain
from cometmq.cli.mqadmin.refused import REFUSED
from cometmq.cli.mqadmin.registry import COMMANDS, find
from cometmq.cli.mqadmin.texts import group_text, java, time_text, version_text
from cometmq.cli.mqadmin.usage import WIDTH, full_help, usage
from cometmq.model.group import SubscriptionGroupConfig
from cometmq.model.message_queue import MessageQueue
from cometmq.model.topic import TopicConfig

LAYOUT = Layout(("#Name", "#Count", "#State"), "%-10s  %5s  %s", "%-10.10s  %5s  %s")


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The most commonly used mqadmin commands are:"
    assert [line.split()[0] for line in lines[1:-2]] == [command.name for command in COMMANDS]
    assert lines[1].startswith("   updateTopic                         Create a topic")
    assert lines[-2:] == [
        "",
        "See 'mqadmin help <command>' for more information on a specific command.",
    ]
    assert run(["help"]) == 0


@pytest.mark.parametrize(
    ("name", "head"),
    [
        (
            "updateTopic",
            "usage: mqadmin updateTopic [-a <arg>] -b <arg> | -c <arg>  [-h] [-n <arg>] [-o <arg>] "
            "[-p <arg>] [-r <arg>]\n"
            "       [-s <arg>] -t <arg> [-u <arg>] [-w <arg>]\n"
            " -a,--attributes <arg>       like",
        ),
        (
            "updateSubGroup",
            "usage: mqadmin updateSubGroup [-a <arg>] [--attributes <arg>] [-b <arg>] [-c <arg>] [-d <arg>] "
            "-g <arg> [-h]\n       [-i <arg>] [-m <arg>] [-n <arg>] [-o <arg>] [-p <arg>] [-q <arg>] "
            "[-r <arg>] [-s <arg>] [-w <arg>]\n"
            " -a,--notifyConsumerIdsChanged <arg>       false",
        ),
        (
            "electMaster",
            "usage: mqadmin electMaster -a <arg> -b <arg> -bn <arg> -c <arg> [-h] [-n <arg>]\n"
            " -a,--controllerAddress <arg>   controllers",
        ),
        (
            "updateUser",
            "usage: mqadmin updateUser -b <arg> | -c <arg>  [-h] [-n <arg>] -p <arg> | -s <arg> | -t <arg>   -u <arg>\n"
            " -b,--brokerAddr <arg>    address",
        ),
    ],
)
def test_usage_has_the_form_of_rocketmq(name: str, head: str) -> None:
    command = find(name)
    assert command is not None
    assert usage(command).startswith(head)


def test_help_of_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        assert command.summary.endswith("."), command.name
        assert command.examples, command.name
        assert all(line.split()[0] == command.name for line in command.examples), command.name
        text = full_help(command)
        assert max(map(len, text.splitlines())) <= max(
            WIDTH, *(len(f"  mqadmin {line}") for line in command.examples)
        )
        assert ("--watch" in text) == command.can_watch, command.name
        assert ("--yes" in text) == (command.confirm is not None), command.name
        keys = [option.key for option in command.options]
        assert len(set(keys)) == len(keys), command.name
        assert not {option.name for option in command.options} & {option.name for option in OWN}
        assert all(key in keys for group in command.groups for key in group), command.name
        for words in (["help", command.name], [command.name, "-h"], [command.name, "--help"]):
            assert run(words) == 0
            assert capsys.readouterr().out == text + "\n"


def test_no_name_is_there_twice() -> None:
    names = [command.name for command in COMMANDS]
    assert len(set(names)) == len(names)
    assert not set(names) & set(REFUSED)


def test_what_is_not_here_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    for name, reason in REFUSED.items():
        assert run([name, "-c", "x"]) == 1
        assert capsys.readouterr().err == f"mqadmin {name}: {reason}\n"
        assert run(["help", name]) == 1
        assert reason in capsys.readouterr().err
    assert run(["resetOffsetByTimeOld"]) == 2
    assert capsys.readouterr().out == "The sub command resetOffsetByTimeOld not exist.\n"
    assert run(["--version"]) == 0
    assert re.fullmatch(r"mqadmin, version \d+\.\S+.*\n", capsys.readouterr().out)
    assert run(["-n", "127.0.0.1:9876", "topicList"]) == 2
    assert "the command comes first" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["resetOffsetByTimeOld", "--rocketmq-exit-codes"])
    assert end.value.code == 0


def test_tables_are_rocketmqs_unless_there_is_a_terminal() -> None:
    rows = [("a-name-too-long", "1", "OFFLINE"), ("b", "22", "fine")]
    screen = io.StringIO()
    Output(screen, screen).table(LAYOUT, rows)
    assert screen.getvalue() == (
        "#Name       #Count  #State\na-name-too      1  OFFLINE\nb              22  fine\n"
    )
    assert fitted(LAYOUT, rows, 80, has_colour=False) == [
        "#Name            #Count  #State",
        "a-name-too-long       1  OFFLINE",
        "b                    22  fine",
    ]
    narrow = fitted(LAYOUT, rows, 28, has_colour=False)
    assert narrow[1] == "a-name-too…       1  OFFLINE"
    assert max(map(len, narrow)) <= 28
    coloured = fitted(LAYOUT, rows, 80, has_colour=True)
    assert coloured[0].startswith(BOLD)
    assert RED in coloured[1]
    assert RED not in coloured[2]


def test_nothing_that_others_chose_drives_the_terminal() -> None:
    screen, errors = io.StringIO(), io.StringIO()
    out = Output(screen, errors, width=80)
    out.table(LAYOUT, [("\x1b[2Jx", "1", "y")])
    out.line("\x1b]0;title\x07")
    out.failure("\x1b[2J")
    assert "\x1b" not in screen.getvalue() + errors.getvalue()
    assert "\\x1b[2Jx" in screen.getvalue()


def test_json_is_one_document() -> None:
    screen, errors = io.StringIO(), io.StringIO()
    out = Output(screen, errors, is_json=True)
    out.line("text")
    out.table(LAYOUT, [("a", "1", "b")])
    out.value(ByServer({"a:1": TopicConfig(topic_name="T")}, {"b:2": CometError("gone")}))
    out.failures({"b:2": CometError("gone"), "c:3": CometError("c:3 is away")})
    found = json.loads(screen.getvalue())
    assert found["done"]["a:1"]["topic_name"] == "T"
    assert found["failed"] == {"b:2": "gone"}
    assert errors.getvalue() == "mqadmin: b:2: gone\nmqadmin: c:3 is away\n"
    assert out.has_failed


def test_values_as_json() -> None:
    queue = MessageQueue(topic="T", broker_name="b", queue_id=1)
    place = Place(cluster="c", broker_name="b", broker_id=0, address="a:1")
    assert plain({queue: b"text"})[str(queue)] == "text"
    assert plain([b"\xff"]) == [{"base64": "/w=="}]
    assert plain(place)["address"] == "a:1"
    assert plain({Target(cluster="c"): 1, 2: None}) is not None


def test_times_versions_and_java() -> None:
    assert time_text(0) == ""
    assert time_text(1779048900250).endswith(",250")
    assert [version_text(number) for number in (409, 513, 512, 17, 1000)] == [
        *("V4_9_8", "V5_5_0", "V5_5_0_SNAPSHOT", "V3 (17)", "HIGHER_VERSION")
    ]
    assert java({"a": True, "b": [1, None]}) == "{a=true, b=[1, null]}"
    text = group_text(SubscriptionGroupConfig(group_name="g"))
    assert text.startswith("SubscriptionGroupConfig{groupName=g, consumeEnable=true, ")
    assert "retryMaxTimes=16, groupRetryPolicy=GroupRetryPolicy{type=CUSTOMIZED, " in text
    assert text.endswith("subscriptionDataSet=null, attributes={}}")


def test_confirmation() -> None:
    screen = io.StringIO()
    confirm("delete it", is_said=True, keyboard=io.StringIO(), screen=screen)
    assert screen.getvalue() == ""
    with pytest.raises(NotConfirmed, match=r"would delete it; nothing was done.*add --yes"):
        confirm("delete it", is_said=False, keyboard=io.StringIO("y\n"), screen=screen)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "[1]", '[{"readQueueNums": 1}]', '[{"topicName": 1}]']
)
def test_files_that_are_no_list_of_definitions(text: str, tmp_path: Path) -> None:
    file = tmp_path / "topics.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="expected a JSON array such as"):
        read_definitions(str(file), TopicConfig, "[...]")


def test_bash_completes(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    file = tmp_path / "complete"
    file.write_text(script("bash", COMMANDS))

    def completed(*words: str) -> set[str]:
        listed = " ".join(words)
        code = (
            f"source {file}; COMP_WORDS=(mqadmin {listed}); COMP_CWORD={len(words)}; _mqadmin; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run([bash, "-c", code], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return set(done.stdout.split())

    assert completed("topicR") == {"topicRoute"}
    assert completed("topicRoute", "--") >= {"--topic", "--list", "--namesrvAddr", "--json"}
    assert "--watch" not in completed("topicRoute", "--")
    assert completed("topicStatus", "--w") == {"--watch"}
    assert completed("help", "electM") == {"electMaster"}
    assert completed("completion", "z") == {"zsh"}


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_read_the_script(shell: str, tmp_path: Path) -> None:
    text = script(shell, COMMANDS)
    assert all(command.name in text for command in COMMANDS)
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} on this machine")
    file = tmp_path / "complete"
    file.write_text(text)
    done = subprocess.run([program, "-n", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_completion_names_the_shells(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in SHELLS:
        assert run(["completion", shell]) == 0
        assert "mqadmin" in capsys.readouterr().out
    assert run(["help", "completion"]) == 0
    assert "bash | zsh | fish" in capsys.readouterr().out
    assert run(["completion", "tcsh"]) == 2
    assert "expected one of bash, zsh, fish, got 'tcsh'" in capsys.readouterr().err
