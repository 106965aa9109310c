"""How a handler refuses a request: it raises ``Refused``, and ``remoting.dispatcher`` turns that into the reply."""

from __future__ import annotations

from cometmq.base.errors import CometError


class Refused(CometError):
    """The request is answered with this code and remark.

    Not an internal error; ``Dispatcher.everyday`` lists the refusals that are not even worth a log line.

    Args:
        bound: the setting of the bound that was reached, to be counted; "" if that is not the reason.
    """

    def __init__(
        self, code: int, remark: str, ext: dict[str, str] | None = None, *, bound: str = ""
    ) -> None:
        super().__init__(code, remark)
        self.code = int(code)
        self.remark = remark
        self.ext = ext
        self.bound = bound

    def __str__(self) -> str:
        return f"{self.code}: {self.remark}"
