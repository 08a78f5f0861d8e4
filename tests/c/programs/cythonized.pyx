# cython: language_level=3
"""hamr/__init__.pxd: functions of Cython on buffers."""

cimport hamr
from libc.stdint cimport int64_t


def scale(given, double factor):
    cdef hamr.hamr_buffer *field
    hamr.hamr_from_python(given, &field)
    cdef const hamr.hamr_info *info = hamr.hamr_info_of(field)
    cdef double *values = <double *>hamr.hamr_data(field)
    try:
        if info.element != hamr.HAMR_FLOAT64:
            raise TypeError("float64 is accepted")
        for i in range(info.size):
            values[i] *= factor
        return hamr.hamr_to_python(field)
    finally:
        hamr.hamr_release(field)


def total(given):
    cdef hamr.hamr_buffer *field
    cdef hamr.hamr_handle *handle
    cdef double *values
    cdef double result = 0
    hamr.hamr_from_python(given, &field)
    try:
        if hamr.hamr_access(field, hamr.HAMR_HOST, hamr.HAMR_CURRENT_DEVICE, hamr.HAMR_READ, &handle):
            hamr.hamr_raise()
        values = <double *>hamr.hamr_handle_data(handle)
        for i in range(hamr.hamr_size(field)):
            result += values[i]
        hamr.hamr_release_handle(handle)
        return result
    finally:
        hamr.hamr_release(field)


def make(int64_t n):
    cdef hamr.hamr_buffer *field
    cdef double value = 1.5
    if hamr.hamr_create(&field, hamr.HAMR_FLOAT64, 1, &n, NULL, &value):
        hamr.hamr_raise()
    try:
        return hamr.hamr_to_python(field)
    finally:
        hamr.hamr_release(field)
