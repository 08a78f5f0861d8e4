"""What ``hamr bench`` measures."""
