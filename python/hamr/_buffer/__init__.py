"""Buffers and handles: what they are, and what is done with their contents."""
