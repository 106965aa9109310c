"""The blocking admin library: the names and parameters of ``cometmq.admin``, for programs without an event loop.

    with Admin("127.0.0.1:9876") as admin:
        print(admin.groups.progress("billing").lag)

Values and errors are in ``cometmq.admin``. All blocking clients of a process share one event loop, in a thread.
"""

from cometmq.admin.sync.admin import Admin

__all__ = ["Admin"]
