/* What keeps a stream's handle. */
#pragma once

#include "base/python.h"

#include <stdint.h>

int stream_life_setup(PyObject *module);
PyObject *stream_life_of(PyObject *stream); /* NULL, without an exception: it needs none */
int stream_life_keeps(PyObject *life, uint64_t stream); /* the stream lasts as long as life; NULL is no life */
int stream_life_made(PyObject *life); /* hamr has made the stream */
/* The handle of a stream of CUDA's that hamr has made in this process, and its device; 0: it is another one. */
uint64_t stream_life_of_cuda(PyObject *life, int32_t *device);
int stream_life_over(PyObject *life, uint64_t stream); /* the stream is not to be named any more */
uint64_t stream_lives_ended(void); /* changes before a stream ends whose handle another one may have then */
extern PyMethodDef stream_life_functions[];
