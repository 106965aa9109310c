"""An event loop and a network in memory, for asyncio code on a fake clock."""
