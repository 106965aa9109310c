"""Scripts that complete subcommands and options in bash, zsh and fish. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cometmq.base.errors import UsageError
from cometmq.cli.mqadmin.command import Command, Option
from cometmq.cli.mqadmin.options import EVERYWHERE, OWN

COMPLETION: Final = "completion"
"""The word after ``mqadmin`` that asks for a script."""

SHELLS: Final = ("bash", "zsh", "fish")

COMPLETION_HELP: Final = f"""\
usage: mqadmin {COMPLETION} bash | zsh | fish

Print a script that completes subcommands and options in your shell.

Examples:
  source <(mqadmin {COMPLETION} bash)
  mqadmin {COMPLETION} fish > ~/.config/fish/completions/mqadmin.fish"""


def script(shell: str, commands: Sequence[Command]) -> str:
    """Raises UsageError for a shell that is none of ``SHELLS``."""
    if shell == "bash":
        return _bash(commands)
    if shell == "zsh":
        # zsh runs bash's completion functions.
        return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(commands)}"
    if shell == "fish":
        return _fish(commands)
    raise UsageError(
        f"expected one of {', '.join(SHELLS)}, got {shell!r}; for example: source <(mqadmin {COMPLETION} bash)"
    )


def _options(command: Command) -> list[Option]:
    own = [option for option in OWN if option.name != "watch" or command.can_watch]
    return [*command.options, *EVERYWHERE, *own]


def _words(option: Option) -> list[str]:
    """A few of RocketMQ's long names have a blank in them: nobody types those."""
    letter = [f"-{option.letter}"] if option.letter else []
    return letter if " " in option.name else [*letter, f"--{option.name}"]


def _bash(commands: Sequence[Command]) -> str:
    names = " ".join(["help", COMPLETION, *(command.name for command in commands)])
    cases = []
    for command in commands:
        words = " ".join(word for option in _options(command) for word in _words(option))
        cases.append(f'    {command.name}) words="{words}" ;;')
    return "\n".join(
        [
            "_mqadmin() {",
            '  local words="" current="${COMP_WORDS[COMP_CWORD]}"',
            f'  local commands="{names}"',
            '  if [ "$COMP_CWORD" -eq 1 ]; then',
            '    COMPREPLY=($(compgen -W "$commands" -- "$current"))',
            "    return",
            "  fi",
            '  case "${COMP_WORDS[1]}" in',
            '    help) [ "$COMP_CWORD" -eq 2 ] && words="$commands" ;;',
            f'    {COMPLETION}) words="{" ".join(SHELLS)}" ;;',
            *cases,
            "  esac",
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "complete -o default -F _mqadmin mqadmin",
        ]
    )


def _fish(commands: Sequence[Command]) -> str:
    lines = [
        "complete -c mqadmin -f",
        f"complete -c mqadmin -n __fish_use_subcommand -a 'help {COMPLETION}'",
        f"complete -c mqadmin -n '__fish_seen_subcommand_from {COMPLETION}' -a '{' '.join(SHELLS)}'",
    ]
    for command in commands:
        summary = _quoted(command.summary)
        lines.append(f"complete -c mqadmin -n __fish_use_subcommand -a {command.name} -d {summary}")
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        for option in _options(command):
            # Two letters after one minus are an old-style option to fish.
            letter = {0: "", 1: f"-s {option.letter} "}.get(
                len(option.letter), f"-o {option.letter} "
            )
            value = "-r " if option.takes_value else ""
            long = "" if " " in option.name else f"-l {option.name} "
            lines.append(
                f"complete -c mqadmin {seen} {letter}{long}{value}-d {_quoted(option.help)}"
            )
    return "\n".join(lines)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
