"""Upstream HAMR's module-level names."""
