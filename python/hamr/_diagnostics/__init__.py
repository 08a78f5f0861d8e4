"""What hamr reports about itself: counters, traces and checks."""
