"""What hamr tells of itself: counters and traces."""
