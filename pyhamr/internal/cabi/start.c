/* The start of Go's runtime, which is to leave the process as it was. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

void hamr_restore_limits(void);

static sigset_t mask;

/* Go's threads inherit whether floating-point exceptions trap, too. Arm's processors have no such traps, as a rule. */
#ifdef __x86_64__
static unsigned arithmetic;
static void mask_traps(void) { _mm_setcsr((arithmetic = _mm_getcsr()) | _MM_MASK_MASK); }
static void restore_traps(void) { _mm_setcsr(arithmetic); }
#else
static void mask_traps(void) {}
static void restore_traps(void) {}
#endif
static struct sigaction urgent, broken_pipe;
static struct rlimit files;
static int files_known;

/* Before Go's own constructor, which has no priority. Go's threads inherit the mask of the thread that
 * loads the library: a signal that they do not block ends the process where everybody else waits for it. */
__attribute__((constructor(101))) static void before_go(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &mask);
    sigaction(SIGURG, NULL, &urgent);
    sigaction(SIGPIPE, NULL, &broken_pipe);
    mask_traps();
    files_known = getrlimit(RLIMIT_NOFILE, &files) == 0;
}

static int has_handler(const struct sigaction *action) {
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

/* After it, as the linker takes what Go made first. The build turns off what Go uses SIGURG for. What is
 * ignored stays ignored in programs that this one starts, other than what Go's handler does nothing about. */
__attribute__((constructor)) static void after_go(void) {
    if (has_handler(&urgent)) urgent.sa_flags |= SA_ONSTACK; /* as Go sees to for the handlers that it finds */
    sigaction(SIGURG, &urgent, NULL);
    if (broken_pipe.sa_handler == SIG_IGN) sigaction(SIGPIPE, &broken_pipe, NULL);
    restore_traps();
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* Go raises how many files may be open, for good, and children inherit it. Where somebody else has set it
 * meanwhile, that counts. */
void hamr_restore_limits(void) {
    struct rlimit now;
    if (!files_known || getrlimit(RLIMIT_NOFILE, &now) != 0) return;
    if (now.rlim_max == files.rlim_max && now.rlim_cur == now.rlim_max - 1) setrlimit(RLIMIT_NOFILE, &files);
}
