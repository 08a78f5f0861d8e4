/* Memory that is handed over and given back by many threads, some of which hamr has never seen. */
#include <pthread.h>

#include "check.h"

#ifndef EACH
#define EACH 25000
#endif
enum { THREADS = 4 };

static int made, ended; /* counted atomically */

static void end(void *data, void *context) {
    TRUE(context == data);
    free(data);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
}

static hamr_buffer *handed[THREADS][EACH / 100];

static void *work(void *number) {
    int own = (int)(intptr_t)number;
    int64_t n = 8;
    for (int i = 0; i < EACH; i++) {
        hamr_buffer *buffer, *other;
        double *memory = (double *)malloc(64);
        OK(hamr_adopt(&buffer, memory, HAMR_FLOAT64, 1, &n, NULL, NULL, 0, end, memory));
        __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
        if (i % 100 == 0) {
            handed[own][i / 100] = buffer; /* another thread releases it */
            continue;
        }
        if (i % 3 == 0) {
            struct DLManagedTensorVersioned *tensor;
            OK(hamr_to_dlpack(buffer, NULL, &tensor));
            OK(hamr_from_dlpack(tensor, NULL, &other));
        } else {
            OK(hamr_view(buffer, &other, 0, 0, 1, &n, NULL));
        }
        OK(hamr_release(buffer));
        memory[0] = i;
        TRUE(((double *)hamr_data(other))[0] == i);
        OK(hamr_release(other));
        OK(hamr_create(&buffer, HAMR_FLOAT64, 1, &n, NULL, NULL));
        OK(hamr_release(buffer));
    }
    return NULL;
}

static void *finish(void *unused) {
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < EACH / 100; j++) OK(hamr_release(handed[i][j]));
    return unused;
}

int main(void) {
    pthread_t threads[THREADS], last;
    for (int i = 0; i < THREADS; i++) TRUE(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < THREADS; i++) TRUE(pthread_join(threads[i], NULL) == 0);
    TRUE(made == THREADS * EACH && ended == made - THREADS * EACH / 100);
    TRUE(pthread_create(&last, NULL, finish, NULL) == 0 && pthread_join(last, NULL) == 0);
    hamr_usage left = usage_of(HAMR_ALLOCATOR_MALLOC);
    TRUE(ended == made && left.live == 0 && left.adopted == 0 && left.current == 0);
    puts("all handed over");
    return 0;
}
