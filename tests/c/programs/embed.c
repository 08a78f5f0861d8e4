/* A program that has buffers of its own, and then has Python import hamr: one library serves both.
 *     embed [PYTHON'S LIBRARY]: it is linked with Python, or loads it late. */
#define _GNU_SOURCE
#include <pthread.h>

#include "check.h"

#ifdef LINKED
#include <Python.h>
#else
static void (*Py_Initialize)(void);
static int (*PyRun_SimpleString)(const char *);
static int (*Py_FinalizeEx)(void);

static void find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    if (!found) FAIL(name);
    memcpy(function, &found, sizeof found);
}
#endif

static hamr_buffer *field, *foreign, *in_destructor;
static int ended;

static void end(void *data, void *context) {
    (void)data;
    ++*(int *)context;
}

/* At exit, in any order with Python's end and the library's. */
static void at_exit(void) { OK(hamr_release(in_destructor)); }

__attribute__((destructor)) static void leave(void) {
    if (field) OK(hamr_release(field));
}

static volatile int stop;

/* C goes on meanwhile. */
static void *work(void *unused) {
    int64_t n = 100;
    while (!stop) {
        hamr_buffer *buffer;
        OK(hamr_create(&buffer, HAMR_UINT8, 1, &n, NULL, NULL));
        OK(hamr_set_values(buffer, 0, HAMR_UINT8, "abc", 3));
        OK(hamr_release(buffer));
    }
    return unused;
}

int main(int count, char **arguments) {
    static double memory[8];
    static char script[1000];
    int64_t n = 1000, eight = 8;
    double half = 0.5;
    pthread_t thread;
    (void)count;
    (void)arguments;
    OK(hamr_create(&field, HAMR_FLOAT64, 1, &n, NULL, &half));
    OK(hamr_create(&in_destructor, HAMR_FLOAT64, 1, &n, NULL, &half));
    OK(hamr_adopt(&foreign, memory, HAMR_FLOAT64, 1, &eight, NULL, NULL, 0, end, &ended));
    atexit(at_exit);
#ifndef LINKED
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
    if (!library) FAIL(dlerror());
    find(library, "Py_Initialize", &Py_Initialize);
    find(library, "PyRun_SimpleString", &PyRun_SimpleString);
    find(library, "Py_FinalizeEx", &Py_FinalizeEx);
#endif
    Py_Initialize();
    TRUE(PyRun_SimpleString("import ctypes, threading, hamr\n"
                            "malloc = hamr.stats()['allocators']['malloc']\n"
                            "assert malloc['live'] == 2 and malloc['adopted'] == 1, malloc\n") == 0);
    TRUE(pthread_create(&thread, NULL, work, NULL) == 0);
    TRUE(PyRun_SimpleString("try:\n    hamr.Buffer(-1)\nexcept ValueError:\n    pass\n"
                            "kept = [hamr.Buffer(1000, 'float64', fill=i) for i in range(5)]\n"
                            "def work():\n    for i in range(200):\n"
                            "        hamr.Buffer(10, fill=1).get_host_accessible()\n"
                            "threads = [threading.Thread(target=work) for _ in range(2)]\n"
                            "[t.start() for t in threads]\n[t.join() for t in threads]\n") == 0);
    stop = 1;
    TRUE(pthread_join(thread, NULL) == 0);
    TRUE(usage_of(HAMR_ALLOCATOR_MALLOC).live == 7);
    snprintf(script, sizeof script, "assert (ctypes.c_double * 3).from_address(%p)[2] == 0.5\n", hamr_data(field));
    TRUE(PyRun_SimpleString(script) == 0);
    TRUE(PyRun_SimpleString("late = hamr.Buffer(7)\nassert hamr.stats()['allocators']['malloc']['live'] == 8\n") == 0);
    if (count > 2) TRUE(Py_FinalizeEx() == 0);
    OK(hamr_release(foreign));
    TRUE(ended == 1);
    OK(hamr_create(&foreign, HAMR_FLOAT64, 1, &n, NULL, NULL)); /* live at the end */
    return 0;
}
