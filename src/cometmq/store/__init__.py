"""The store: one log, and the queues and index made from it. It knows threads, not the event loop."""
