"""What setup.py, the Makefile and .ci/run are made of."""
