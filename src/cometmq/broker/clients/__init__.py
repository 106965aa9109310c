"""Who is connected, with which subscriptions; queue locks, and notices to clients."""
