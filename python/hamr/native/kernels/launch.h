/* One launch of a kernel: what it is given, and where it runs. */
#pragma once

#include "array/array.h"
#include "base/python.h"
#include "hamr/functions.h"

enum { MOST_ARGUMENTS = 256, INLINE_BYTES = 1024 };

/* What stands for a parameter. */
typedef struct {
    Array *array;      /* a hamr array, whose reference is held, or NULL */
    PyObject *pending; /* what needs to know the device first, whose reference is held, or NULL */
    void *value;       /* else its bytes */
    uint64_t pointer;  /* of another library's array: value leads here */
    uint64_t producer; /* that one's stream, or 0 */
    int32_t size;
    int32_t device;    /* of what is pending, or -1 */
    char reads;        /* the kernel writes none of the elements */
    char foreign;      /* another library's array */
    char number;       /* 'i' or 'f': a Python number, in pointer, whose size the parameter says */
    char negative;
} Argument;

/* What the code says of a parameter, beside what the driver does. */
enum { SAYS_INTEGER = 'i', SAYS_FLOAT = 'f', SAYS_BYTES = 'b' };
typedef struct {
    int32_t size; /* bytes */
    char kind;
} Parameter;

typedef struct {
    PyObject *name;    /* of the kernel; borrowed */
    PyObject *stream;  /* a hamr.Stream, or NULL: the default one */
    uint64_t handle;   /* 0: the default stream */
    int32_t device;    /* -1: not known yet */
    char own;          /* hamr has made the stream */
    hamr_shape shape;
    Py_ssize_t count;
    Argument *arguments;
    Argument room[16];
    PyObject *finish;  /* a list of what is to be called after the launch, or NULL */
    size_t used;
    char *more[MOST_ARGUMENTS]; /* bytes that did not fit below */
    int more_count;
    _Alignas(16) char bytes[INLINE_BYTES];
} Launch;

int launch_read(Launch *launch, PyObject *arguments); /* what each argument is; 0, or -1 with an exception */
int launch_resolve(Launch *launch, const char *backend); /* what had to know the device */
/* Fits Python's numbers to the parameters. said is what the code says of them, many how many; -1: it says nothing. */
int launch_fit(Launch *launch, const hamr_kernel *kernel, const Parameter *said, int32_t many);
void launch_end(Launch *launch);
int launch_refuse(const Launch *launch, Py_ssize_t i, PyObject *type, const char *format, ...);
extern PyMethodDef launch_functions[];
int launch_setup(void);
