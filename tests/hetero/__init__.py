"""Scheduling without a device: graphs, fallback, what fails, and what a run tells of itself."""
