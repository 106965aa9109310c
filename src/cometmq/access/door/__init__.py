"""The door of a server: what stands before its processors, the requests about accounts, and the audit of changes."""
