"""hamr.pygpu without a device, and with stand-ins."""
