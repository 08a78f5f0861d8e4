/* A library that Python loads, which has buffers of its own. */
#include <pthread.h>

#include "check.h"

static hamr_buffer *field;

int make(int64_t n) {
    double two = 2;
    return (int)hamr_create(&field, HAMR_FLOAT64, 1, &n, NULL, &two);
}

void *data(void) { return hamr_data(field); }

int drop(void) { return (int)hamr_release(field); }

const char *words(void) { return hamr_last_error(); }

int64_t live(void) { return usage_of(HAMR_ALLOCATOR_MALLOC).live; }

static void *work(void *unused) {
    int64_t n = 10;
    for (int i = 0; i < 2000; i++) {
        hamr_buffer *buffer;
        OK(hamr_create(&buffer, HAMR_INT8, 1, &n, NULL, NULL));
        OK(hamr_append_values(buffer, HAMR_INT8, "abc", 3));
        OK(hamr_release(buffer));
    }
    return unused;
}

/* Threads that Python never saw. */
void work_in_threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) TRUE(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 2; i++) TRUE(pthread_join(threads[i], NULL) == 0);
}
