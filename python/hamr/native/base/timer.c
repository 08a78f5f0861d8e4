#include "base/timer.h"

#include <sys/timerfd.h>

#include "base/python.h"

/* new_timer() -> descriptor. Python has these from 3.13 on. */
static PyObject *new_timer(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    int descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return descriptor < 0 ? PyErr_SetFromErrno(PyExc_OSError) : PyLong_FromLong(descriptor);
}

/* set_timer(descriptor, seconds) */
static PyObject *set_timer(PyObject *Py_UNUSED(module), PyObject *arguments) {
    int descriptor;
    double seconds;
    if (!PyArg_ParseTuple(arguments, "id", &descriptor, &seconds)) return NULL;
    time_t whole = (time_t)seconds;
    /* Zero would stop it. */
    struct itimerspec when = {.it_value = {.tv_sec = whole,
                                           .tv_nsec = (long)((seconds - (double)whole) * 999999999.0) + 1}};
    if (timerfd_settime(descriptor, 0, &when, NULL) < 0) return PyErr_SetFromErrno(PyExc_OSError);
    Py_RETURN_NONE;
}

PyMethodDef timer_functions[] = {
    {"new_timer", new_timer, METH_NOARGS,
     "new_timer() -> descriptor that can be read once the time of set_timer is over; to be closed."},
    {"set_timer", set_timer, METH_VARARGS,
     "set_timer(descriptor, seconds): anew from now on; what was over is forgotten."},
    {NULL, NULL, 0, NULL},
};
