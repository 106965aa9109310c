"""Makes event loops: uvloop's where it is installed, asyncio's own elsewhere, as on Windows."""

from __future__ import annotations

import asyncio
import logging

logger = logging.getLogger("cometmq.remoting")


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        logger.info("no uvloop here: asyncio's own event loop serves, at about half the rate")
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
