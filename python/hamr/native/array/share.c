#include "array/share.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "array/adopt.h"
#include "array/array.h"
#include "array/share_socket.h"
#include "array/shared_handle.h"
#include "array/snapshot.h"
#include "array/wait.h"
#include "base/numbers.h"
#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "memory/block.h"
#include "memory/owner.h"
#include "plain/allocators.h"
#include "plain/layout.h"

/* Another process's elements, for as long as a Block is of them. */
typedef struct Opened {
    hamr_opened_elements core;
    uint64_t generation; /* the copy of the library that has them */
    struct Opened *next, **link; /* in the list of those that a forked child is to leave */
} Opened;

static Opened *all_opened;
static PyObject *source_name;

static void end_opened(void *memory) {
    Opened *opened = memory;
    *opened->link = opened->next;
    if (opened->next) opened->next->link = opened->link;
    const hamr_functions *functions = core_functions();
    uint64_t token = opened->core.token;
    int ours = functions && opened->generation == core_generation;
    free(opened);
    if (!ours) return; /* its parent's */
    Py_BEGIN_ALLOW_THREADS
    functions->end_elements(token);
    Py_END_ALLOW_THREADS
}

static Opened *opened_of(const Block *block) {
    const Owner *owner = block ? block->owner : NULL;
    return owner && owner->memory && owner->finish == end_opened ? owner->memory : NULL;
}

/* What the elements are of that the core knows otherwise than as memory; 0, or -1 with an exception. */
static int find_origin(const Block *block, PyObject *stored, hamr_sharing *sharing) {
    PyObject *keeper = block && block->owner ? block->owner->object : NULL;
    const Opened *opened = opened_of(block);
    sharing->opened = opened && opened->generation == core_generation ? opened->core.token : 0;
    sharing->stored = 0;
    if (!keeper) return 0;
    PyObject *token = PyObject_CallFunctionObjArgs(stored, keeper, NULL);
    if (token) sharing->stored = PyLong_AsUnsignedLongLong(token);
    Py_XDECREF(token);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *share_pinned(PyTypeObject *type, Array *source, hamr_sharing *sharing, PyObject *stored) {
    if (array_wait_pinned(source) < 0 || find_origin(source->block, stored, sharing) < 0) return NULL;
    const hamr_functions *functions = core_functions();
    if (!functions) return core_forked(), NULL; /* what was called has forked: this is the child */
    uint64_t generation = core_generation;
    hamr_error *error;
    Py_BEGIN_ALLOW_THREADS
    error = functions->share_elements(&source->array, sharing);
    Py_END_ALLOW_THREADS
    if (!error) return shared_handle_new(type, sharing, sharing->lent ? generation : 0);
    return core_failed(error);
}

/* share(type, array, copying, readonly, stored) */
static PyObject *share(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    hamr_sharing sharing; /* most of which is neither set nor touched */
    if (arity(n, 5, "share") < 0 || !is_shared_handle_type(arguments[0]) || !is_array(arguments[1]) ||
        read_int32(arguments[2], "copying", &sharing.copying) < 0)
        return NULL;
    int read_only = PyObject_IsTrue(arguments[3]);
    if (read_only < 0) return NULL;
    sharing.read_only = read_only;
    sharing.waits = 0;
    Array *source = array_pin((Array *)arguments[1]);
    PyObject *made = source ? share_pinned((PyTypeObject *)arguments[0], source, &sharing, arguments[4]) : NULL;
    Py_XDECREF((PyObject *)source);
    return made;
}

/* The buffer of what was opened, which is its owner's from now on. */
static PyObject *buffer_of(PyTypeObject *type, Draft *draft, const hamr_opened_elements *core, uint64_t generation) {
    Opened *opened = malloc(sizeof *opened);
    Owner *owner = opened ? owner_of_memory(opened, end_opened) : NULL;
    if (!owner) {
        free(opened);
        if (!PyErr_Occurred()) PyErr_NoMemory();
        Py_BEGIN_ALLOW_THREADS
        core_functions()->end_elements(core->token);
        Py_END_ALLOW_THREADS
        return NULL;
    }
    *opened = (Opened){.core = *core, .generation = generation, .next = all_opened, .link = &all_opened};
    if (all_opened) all_opened->link = &opened->next;
    all_opened = opened;
    if (is_of_device(draft->array.allocator)) return draft_adopt_mapped(type, draft, owner);
    return draft_adopt_host(type, draft, owner);
}

enum { MOST = 16 }; /* descriptors that the core is told of, which takes no more than go with the frame */

static int read_descriptors(PyObject *list, int32_t *numbers, int32_t *count) {
    Py_ssize_t n = PyList_Size(list);
    if (n < 0) return -1;
    if (n > MOST)
        return RAISE(PyExc_ValueError, "descriptors are %zd: accepted are at most %d", n, HAMR_FRAME_DESCRIPTORS);
    *count = (int32_t)n;
    for (int32_t i = 0; i < *count; i++)
        if (read_int32(PyList_GetItem(list, i), "a descriptor", &numbers[i]) < 0) return -1;
    return 0;
}

/* Of a frame and its descriptors, which stay the caller's. */
static PyObject *open_frame(PyTypeObject *type, const void *frame, Py_ssize_t bytes, const int32_t *descriptors,
                            int32_t count) {
    Draft draft;
    hamr_opened_elements opened;
    if (core_load() < 0) return NULL;
    draft_start(&draft);
    const hamr_functions *functions = core_functions();
    uint64_t generation = core_generation;
    hamr_error *error;
    Py_BEGIN_ALLOW_THREADS
    error = functions->open_elements(frame, bytes, count, descriptors, &draft.array, &opened);
    Py_END_ALLOW_THREADS
    if (error) return core_failed(error);
    if (!opened.token) return draft_finish(type, &draft, NULL);
    PyObject *made = buffer_of(type, &draft, &opened, generation);
    if (made) replace_reference(&((Array *)made)->source, Py_NewRef(source_name));
    return made;
}

/* open_shared(type, frame, descriptors): a list of int. */
static PyObject *open_shared(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    int32_t numbers[MOST], count;
    char *frame;
    Py_ssize_t bytes;
    if (arity(n, 3, "open_shared") < 0 || !is_array_type(arguments[0]) ||
        PyBytes_AsStringAndSize(arguments[1], &frame, &bytes) < 0 ||
        read_descriptors(arguments[2], numbers, &count) < 0)
        return NULL;
    return open_frame((PyTypeObject *)arguments[0], frame, bytes, numbers, count);
}

static PyObject *open_received(PyTypeObject *type, const Received *received) {
    if (received->lost)
        return PyErr_Format(PyExc_ValueError,
                            "descriptors were lost: more came than a handle has, or this process has no room");
    if (!received->bytes) return PyErr_Format(PyExc_EOFError, "the socket's other end was closed: no handle came");
    return open_frame(type, received->frame, received->bytes, received->descriptors, received->count);
}

/* receive_shared(type, socket) */
static PyObject *receive_shared(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t n) {
    Received received; /* most of which is neither set nor touched */
    int type, number;
    if (arity(n, 2, "receive_shared") < 0 || !is_array_type(arguments[0])) return NULL;
    number = socket_of(arguments[1], &type);
    if (number < 0 || type == SOCK_STREAM) Py_RETURN_NONE;
    int failed;
    do {
        Py_BEGIN_ALLOW_THREADS
        frame_receive(number, &received);
        failed = received.bytes < 0 ? errno : 0;
        Py_END_ALLOW_THREADS
        if (failed == EINTR && PyErr_CheckSignals() < 0) return NULL;
    } while (failed == EINTR);
    if (failed) Py_RETURN_NONE;
    PyObject *made = open_received((PyTypeObject *)arguments[0], &received);
    close_descriptors(received.descriptors, received.count);
    return made;
}

/* In a forked child: what was opened is the parent's to keep. */
static PyObject *leave_opened(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(unused)) {
    for (Opened *each = all_opened; each; each = each->next) {
        if (each->core.lease >= 0) close(each->core.lease);
        each->core.lease = -1;
    }
    Py_RETURN_NONE;
}

int share_setup(void) {
    if (!source_name) source_name = PyUnicode_InternFromString("share");
    return source_name ? 0 : -1;
}

PyMethodDef share_functions[] = {
    {"share", FAST(share), METH_FASTCALL,
     "share(type, array, copying, readonly, stored) -> handle: what other processes open the elements by, whose work "
     "is waited for. "
     "stored(owner) tells the token of the store's object that keeps the memory, or 0."},
    {"open_shared", FAST(open_shared), METH_FASTCALL,
     "open_shared(type, frame, descriptors) -> array: what share() was called for, in whatever process. The "
     "descriptors, a list, stay the caller's."},
    {"receive_shared", FAST(receive_shared), METH_FASTCALL,
     "receive_shared(type, socket) -> array: open_shared() of what comes; None, and nothing was received, where "
     "Python's own way is to be tried: of a stream, of what is no UNIX socket, "
     "and where nothing comes at once or there is an error."},
    {"leave_opened", leave_opened, METH_NOARGS,
     "leave_opened(): in a forked child, close what says that it has what its parent has opened."},
    {NULL, NULL, 0, NULL},
};
