#include "base/lock.h"

#include <dlfcn.h>

#include "base/python.h"

/* The state of the thread that holds the lock, or NULL. Not PyGILState_Check: once there
 * was a sub-interpreter it says yes to every thread. */
static PyThreadState *(*current_state)(void);
static PyInterpreterState *interpreter;

int lock_held(void) {
    PyThreadState *state = current_state ? current_state() : NULL;
    return state && state == PyGILState_GetThisThreadState() && PyInterpreterState_Get() == interpreter;
}

int lock_setup(void) {
    interpreter = PyInterpreterState_Get();
    *(void **)&current_state = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked"); /* since 3.13 */
    if (!current_state) *(void **)&current_state = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    return 0;
}
