"""Schemathesis loads this: it may change every account but the one that it is logged in with.

Otherwise it sometimes gives that one another password, as an operator may, and everything after it is refused.
"""

from __future__ import annotations

import os
from typing import Any

import schemathesis  # type: ignore[import-not-found]

OWN_ACCOUNT = os.environ["COMETMQ_OWN_ACCOUNT"]


@schemathesis.hook  # type: ignore[untyped-decorator]
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    if isinstance(case.body, dict) and case.body.get("name") == OWN_ACCOUNT:
        case.body = {**case.body, "name": f"not-{OWN_ACCOUNT}"}
