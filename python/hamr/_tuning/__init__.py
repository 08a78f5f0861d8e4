"""``hamr tune``: which copies between devices and ordinary host memory are worth staging."""
