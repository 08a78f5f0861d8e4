"""What everything else stands on: the library's loading, types, streams and devices."""
