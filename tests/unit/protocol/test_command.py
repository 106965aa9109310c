"""Commands as values."""

from __future__ import annotations

from cometmq.protocol.command import Command


def test_a_repr_shows_no_values_since_a_secret_may_be_among_them() -> None:
    """asyncio's debug mode logs the arguments of what it calls; a task's name may have one, too."""
    command = Command(
        50, {"accessKey": "hush", "secretKey": "hush"}, b'{"password":"hush"}', opaque=7
    )
    shown = repr(command)
    assert shown == "Command(code=50, ext=[accessKey secretKey], body=19 bytes, flag=0, opaque=7)"
    refused = command.reply(16, "no permission", body=b"hush")
    assert repr(refused) == (
        "Command(code=16, ext=[], body=4 bytes, flag=1, opaque=7, remark='no permission')"
    )
    assert "4 bytes" in repr(Command(0, body_parts=[b"hu", b"sh"]))
