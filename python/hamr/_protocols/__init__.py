"""The protocols by which libraries share arrays: a module for each, and the dispatcher.

Each module has ``NAME``, the attribute that an object offers the protocol by, and
``adopt(cls, obj, stream, transfer, wait)``: an array of a class over the object's memory,
or None if another protocol of the object is to be preferred. ``dispatch`` has their
order. What hamr's own arrays offer is in the C extension, a file for each protocol.
"""
