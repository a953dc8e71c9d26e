"""A decoder of Firn streams, written from docs/format.md alone, whose sections its modules follow.

It proves that the page suffices: it is meant to be read, not to be fast. Begin with series.py.
"""
