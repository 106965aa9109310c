"""Producers: sends, transactions, requests with a reply, recall."""
