"""The protocols by which libraries share arrays: a module for each, and the dispatcher.

Each module has ``NAME``, the attribute by which an object offers the protocol, and
``adopt(cls, obj, stream, transfer, wait)``: an array of a class over the object's memory,
or None if another protocol of the object is better. ``dispatch`` has their order. The protocols
that hamr's own arrays offer are in the C extension, a file for each.
"""
