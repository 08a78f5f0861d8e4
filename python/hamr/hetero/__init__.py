"""Scheduling work on devices: on which device, in what order, and without waiting.

It follows CMSSW's CUDACore, for any runtime that has streams. A ``DeviceChooser`` gives each piece
of work a ``Token``, which is a device and a stream, or None if there is no device. Work is enqueued
in a ``ScopedContext``, made of a token or of another context's ``Product``. ``wrap`` makes a
product and ``get`` reads one, in the order of their streams, and neither waits. To wait, write
``await ctx.done()``. ``Switch`` and ``first_available`` choose between devices and the processor.
"""

from __future__ import annotations

from .._native import Product, ScopedContext, Token
from .caches import CacheCounts, CacheStatistics, cache_statistics
from .caching import AllocatorStatistics, CachingAllocator
from .choosing import DeviceChooser, accelerators, device_filter
from .context import DeviceMismatch
from .fallback import Switch, first_available
from .pipeline import Pipeline
from .pipeline_events import Event, ModuleError, Result
from .pipeline_modules import Producer, module
from .pipeline_report import ModuleReport, Report

__all__ = [
    "AllocatorStatistics",
    "CacheCounts",
    "CacheStatistics",
    "CachingAllocator",
    "DeviceChooser",
    "DeviceMismatch",
    "Event",
    "ModuleError",
    "ModuleReport",
    "Pipeline",
    "Producer",
    "Product",
    "Report",
    "Result",
    "ScopedContext",
    "Switch",
    "Token",
    "accelerators",
    "cache_statistics",
    "device_filter",
    "first_available",
    "module",
]

for _name in __all__:
    globals()[_name].__module__ = __name__
del _name
