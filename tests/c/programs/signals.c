/* Signals, and limits, of a program that uses hamr: signals CASE [ARGUMENT]. */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define THREADS 4

static volatile sig_atomic_t calls[65];

static void count(int number) { calls[number]++; }

/* Without SA_ONSTACK, and with a frame such as those of handlers that print a stack have. */
static void count_with_a_frame(int number) {
    volatile char room[50000];
    memset((void *)(uintptr_t)room, number, sizeof room);
    calls[number]++;
}

static void handle(int number, void (*handler)(int)) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    TRUE(sigaction(number, &action, NULL) == 0);
}

static hamr_buffer *of_doubles(int64_t n, double value) {
    hamr_buffer *buffer;
    OK(hamr_create(&buffer, HAMR_FLOAT64, 1, &n, NULL, &value));
    return buffer;
}

static void use(void) { OK(hamr_release(of_doubles(3, 1))); }

static void work_once(void) {
    int32_t values[2000];
    int64_t n = 2000, few = 5, shape[2] = {40, 50};
    float one = 1;
    hamr_buffer *field, *small, *view;
    OK(hamr_create(&field, HAMR_FLOAT32, 1, &n, NULL, &one));
    OK(hamr_create(&small, HAMR_INT8, 1, &few, NULL, NULL));
    OK(hamr_get_values(field, 0, HAMR_INT32, values, n));
    TRUE(values[1999] == 1);
    OK(hamr_set_values(field, 0, HAMR_INT32, values, n));
    OK(hamr_append_values(small, HAMR_INT8, "abc", 3));
    OK(hamr_reshape(field, &view, 2, shape, 0));
    hamr_usage rows[HAMR_ALLOCATOR_COUNT];
    TRUE(hamr_memory_usage(rows, HAMR_ALLOCATOR_COUNT) > 0);
    for (int i = 0; i < 20; i++) /* these spend long in Go */
        TRUE(hamr_set_values(small, 900, HAMR_INT8, "abc", 3) == HAMR_ERROR_INDEX);
    OK(hamr_release(view));
    OK(hamr_release(field));
    OK(hamr_release(small));
}

static volatile int stop;

static void *work(void *unused) {
    while (!stop) work_once();
    return unused;
}

static pthread_t threads[THREADS];

static void start(void) {
    for (int i = 0; i < THREADS; i++) TRUE(pthread_create(&threads[i], NULL, work, NULL) == 0);
}

static void finish(void) {
    stop = 1;
    for (int i = 0; i < THREADS; i++) TRUE(pthread_join(threads[i], NULL) == 0);
}

/* Handlers without SA_ONSTACK that are set after hamr's first use interrupt each thread all the time. */
static void small_stacks(void) {
    use();
    handle(SIGUSR1, count_with_a_frame);
    start();
    while (calls[SIGUSR1] < 50000)
        for (int i = 0; i < THREADS; i++) {
            TRUE(pthread_kill(threads[i], SIGUSR1) == 0);
            sched_yield();
        }
    finish();
}

/* A profiler's: in whatever thread runs, Go's own among them. */
static void profiler(void) {
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    use();
    handle(SIGPROF, count_with_a_frame);
    TRUE(setitimer(ITIMER_PROF, &often, NULL) == 0);
    start();
    while (calls[SIGPROF] < 1000) work_once();
    finish();
    TRUE(setitimer(ITIMER_PROF, &never, NULL) == 0);
}

/* What tells of faults Go's own threads take whatever their mask; the C library has its own, too. */
static int is_left_out(int number) {
    static const int left_out[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGKILL, SIGSTOP, 32, 33};
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (number == left_out[i]) return 1;
    return 0;
}

/* Each signal that is blocked after hamr's first use comes to sigwait, and to nobody else. */
static void wait_for_signals(void) {
    for (int i = 0; i < 200; i++) work_once();
    sigset_t all;
    sigfillset(&all);
    TRUE(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    start();
    for (int round = 0; round < 20; round++)
        for (int number = 1; number <= 64; number++) {
            sigset_t one;
            int came = 0;
            if (is_left_out(number)) continue;
            sigemptyset(&one);
            sigaddset(&one, number);
            TRUE(kill(getpid(), number) == 0);
            TRUE(sigwait(&one, &came) == 0 && came == number);
        }
    finish();
}

/* What a thread has blocked before its first call of hamr stays blocked in it, save what tells of faults. */
static void *has_all_blocked(void *unused) {
    sigset_t before, after;
    TRUE(pthread_sigmask(SIG_BLOCK, NULL, &before) == 0);
    work_once();
    TRUE(pthread_sigmask(SIG_BLOCK, NULL, &after) == 0);
    for (int number = 1; number <= 64; number++)
        TRUE(is_left_out(number) || sigismember(&before, number) == sigismember(&after, number));
    return unused;
}

static void masks(void) {
    pthread_t thread;
    sigset_t all;
    sigfillset(&all);
    TRUE(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
    has_all_blocked(NULL);
    TRUE(pthread_create(&thread, NULL, has_all_blocked, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

/* SIGURG is the program's: its handler is called for each that comes, and for nothing else. */
static void urgent_from_now_on(void) {
    start();
    for (int i = 0; i < 3000; i++) work_once();
    TRUE(calls[SIGURG] == 0);
    for (int i = 1; i <= 100; i++) {
        TRUE(raise(SIGURG) == 0);
        TRUE(calls[SIGURG] == i);
    }
    finish();
}

static void urgent(void) {
    use();
    handle(SIGURG, count);
    urgent_from_now_on();
}

static void urgent_before(void) {
    handle(SIGURG, count);
    use();
    urgent_from_now_on();
}

/* What is ignored stays so, for the programs that this one starts, too. */
static void ignored(void) {
    struct sigaction action;
    handle(SIGPIPE, SIG_IGN);
    handle(SIGURG, SIG_IGN);
    use();
    TRUE(sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
    TRUE(sigaction(SIGURG, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
}

/* As many open files as before, here and in a program that this one starts. */
static void files(void) {
    struct rlimit few = {100, 0}, now;
    TRUE(getrlimit(RLIMIT_NOFILE, &now) == 0);
    few.rlim_max = now.rlim_max;
    TRUE(few.rlim_max > 101 && setrlimit(RLIMIT_NOFILE, &few) == 0);
    use();
    TRUE(getrlimit(RLIMIT_NOFILE, &now) == 0);
    TRUE(now.rlim_cur == few.rlim_cur && now.rlim_max == few.rlim_max);
    TRUE(WEXITSTATUS(system("test $(ulimit -n) = 100")) == 0);
}

/* A floating-point trap is the caller's, not a fault of hamr's, and hamr's own threads have none. */
static void traps(void) {
    static double numbers[200000], values[200000];
    float least = 0;
    TRUE(feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW) >= 0);
    hamr_buffer *wide = of_doubles(200000, 1e300);
    FAILS(hamr_get_values(wide, 0, HAMR_FLOAT32, &least, 1), HAMR_ERROR_VALUE,
          "floating-point exceptions trap in this thread (feenableexcept");
    OK(hamr_get_values(wide, 0, HAMR_FLOAT64, values, 200000));
    TRUE(values[199999] == 1e300);
    for (int i = 0; i < 200; i++) { /* Go collects its garbage meanwhile */
        work_once();
        OK(hamr_set_values(wide, 0, HAMR_FLOAT64, numbers, 200000));
    }
    OK(hamr_release(wide));
}

int main(int count_of, char **arguments) {
    static const struct {
        const char *name;
        void (*shows)(void);
    } cases[] = {
        {"small_stacks", small_stacks}, {"profiler", profiler}, {"sigwait", wait_for_signals},
        {"masks", masks},               {"urgent", urgent},     {"urgent_before", urgent_before},
        {"ignored", ignored},           {"files", files},       {"traps", traps},
    };
    size_t i = 0, n = sizeof cases / sizeof *cases;
    while (i < n && !(count_of > 1 && strcmp(arguments[1], cases[i].name) == 0)) i++;
    if (i == n) FAIL("no such case");
    cases[i].shows();
    puts("as it was");
    return 0;
}
