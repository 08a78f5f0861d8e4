/* A thread's first call into Go. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

__attribute__((visibility("hidden"))) size_t hamr_enter(void);
size_t _cgo_wait_runtime_init_done(void);
void hamrReserveStack(void);

static __thread int entered __attribute__((tls_model("initial-exec")));

/* Go unblocks signals in a thread that calls it first. Only those of faults stay so: Go needs them. */
static void restore(sigset_t mask) {
    static const int faults[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&mask, faults[i]);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void enter_first(void) {
    sigset_t all, before;
    int error = errno;
    entered = 1; /* the call below comes here, too */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    hamrReserveStack();
    restore(before);
    errno = error;
}

size_t hamr_enter(void) {
    if (__builtin_expect(!entered, 0)) enter_first();
    return _cgo_wait_runtime_init_done();
}
