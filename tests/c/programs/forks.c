/* A child of fork() has a copy of the library of its own; what its parent made it cannot use. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static hamr_buffer *before;

static void never(void *data, void *context) {
    (void)data;
    (void)context;
    FAIL("a child calls the deleter of its parent's memory");
}

static void child(int depth);

static void fork_and_wait(int depth) {
    int status = 1;
    fflush(stdout);
    pid_t pid = fork();
    TRUE(pid >= 0);
    if (pid == 0) {
        alarm(30); /* a child that hangs ends with SIGALRM */
        child(depth);
        exit(0);
    }
    TRUE(waitpid(pid, &status, 0) == pid);
    TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void child(int depth) {
    int64_t n = 5;
    hamr_buffer *own;
    int32_t seven = 7;
    FAILS(hamr_synchronize(before), HAMR_ERROR_FORKED, "fork");
    TRUE(((int32_t *)hamr_data(before))[2] == 7);
    OK(hamr_create(&own, HAMR_INT32, 1, &n, NULL, &seven));
    OK(hamr_append_values(own, HAMR_INT32, &seven, 1));
    TRUE(hamr_size(own) == 6 && usage_of(HAMR_ALLOCATOR_MALLOC).live == 1);
    if (depth) {
        OK(hamr_release(before));
        before = own;
        fork_and_wait(depth - 1);
    }
    OK(hamr_release(own));
    if (!depth) OK(hamr_release(before));
}

static volatile int stop;

static void *work(void *unused) {
    int64_t n = 3;
    while (!stop) {
        hamr_buffer *buffer;
        OK(hamr_create(&buffer, HAMR_INT8, 1, &n, NULL, NULL));
        OK(hamr_append_values(buffer, HAMR_INT8, "abc", 3));
        OK(hamr_release(buffer));
    }
    return unused;
}

int main(void) {
    int64_t n = 3;
    int32_t seven = 7;
    static int memory[4];
    hamr_buffer *foreign;
    pthread_t thread;
    OK(hamr_create(&before, HAMR_INT32, 1, &n, NULL, &seven));
    OK(hamr_adopt(&foreign, memory, HAMR_INT32, 1, &n, NULL, NULL, 0, NULL, NULL));
    OK(hamr_release(foreign));
    OK(hamr_adopt(&foreign, memory, HAMR_INT32, 1, &n, NULL, NULL, 0, never, NULL));
    fork_and_wait(2);
    TRUE(pthread_create(&thread, NULL, work, NULL) == 0);
    for (int i = 0; i < 5; i++) fork_and_wait(0);
    stop = 1;
    TRUE(pthread_join(thread, NULL) == 0);
    OK(hamr_append_values(before, HAMR_INT32, &seven, 1)); /* the parent goes on */
    TRUE(hamr_size(before) == 4);
    puts("all forked");
    return 0; /* with live buffers */
}
