/* A random walk of several threads over buffers that share memory, beside a model of it: walk SEED STEPS
 * [DRIVER]. With an emulator's driver the memory is a device's, too, and host code has temporaries of it. */
#include <pthread.h>

#include "plain/dlpack.h"
#include "driver.h"

enum { THREADS = 3, SLOTS = 6, MOST = 400 };

/* Memory that buffers and handles share. */
typedef struct {
    int references;
    int32_t values[MOST];
} block;

typedef struct {
    hamr_buffer *buffer;
    block *in;
    int64_t first, shape[2], strides[2]; /* elements */
    int32_t ndim;
} slot;

typedef struct {
    slot slots[SLOTS];
    hamr_handle *plain; /* held across what happens to the buffer */
    block *in;
    slot as;
    int32_t seen[MOST];
    unsigned random;
} walk;

static int made, ended, steps, devices; /* counted atomically */
static unsigned seed;

static int below(walk *w, int n) {
    w->random = w->random * 1103515245u + 12345u;
    return (int)((w->random >> 8) % (unsigned)n);
}

static block *shared(block *in) {
    in->references++;
    return in;
}

static void give_up(block *in) {
    if (--in->references == 0) free(in);
}

static block *new_block(void) {
    block *in = (block *)calloc(1, sizeof *in);
    TRUE(in != NULL);
    in->references = 1;
    return in;
}

static int64_t size_of(const slot *s) { return s->shape[0] * (s->ndim == 2 ? s->shape[1] : 1); }

static int32_t *at(const slot *s, int64_t i) {
    int64_t row = s->ndim == 2 ? i / s->shape[1] : i, column = s->ndim == 2 ? i % s->shape[1] : 0;
    return &s->in->values[s->first + row * s->strides[0] + column * s->strides[1]];
}

static void in_order(slot *s, block *in) {
    s->in = in;
    s->first = 0;
    s->strides[1] = 1;
    s->strides[0] = s->ndim == 2 ? s->shape[1] : 1;
}

static void read_all(const slot *s, int32_t *values) {
    TRUE(hamr_size(s->buffer) == size_of(s));
    OK(hamr_get_values(s->buffer, 0, HAMR_INT32, values, size_of(s)));
}

static void check(const slot *s) {
    int32_t values[MOST];
    if (!s->buffer) return;
    read_all(s, values);
    for (int64_t i = 0; i < size_of(s); i++) TRUE(values[i] == *at(s, i));
}

/* What the walk does not share: new elements as they are. */
static void adopt_model(slot *s) {
    block *in = new_block();
    slot now = *s;
    in_order(&now, in);
    read_all(s, in->values);
    *s = now;
}

static void end(slot *s) {
    if (!s->buffer) return;
    OK(hamr_release(s->buffer));
    give_up(s->in);
    s->buffer = NULL;
}

static void deleter(void *data, void *context) {
    TRUE(data == context);
    free(data);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
}

static void make(walk *w, slot *s) {
    static const int32_t allocators[] = {HAMR_ALLOCATOR_MALLOC, HAMR_ALLOCATOR_CPP, HAMR_ALLOCATOR_CUDA,
                                         HAMR_ALLOCATOR_CUDA_ASYNC, HAMR_ALLOCATOR_CUDA_HOST};
    hamr_place place = {allocators[below(w, devices ? 5 : 2)], devices ? below(w, 2) : -1, NULL, below(w, 3), 0};
    int32_t value = below(w, 1000);
    end(s);
    s->ndim = 1 + below(w, 2);
    s->shape[0] = below(w, 20);
    s->shape[1] = below(w, 20);
    in_order(s, new_block());
    int64_t n = size_of(s);
    for (int i = 0; i < MOST; i++) s->in->values[i] = value;
    if (below(w, 2)) {
        OK(hamr_create(&s->buffer, HAMR_INT32, s->ndim, s->shape, &place, &value));
        return;
    }
    int32_t *memory = (int32_t *)malloc(MOST * sizeof *memory);
    TRUE(memory != NULL);
    for (int64_t i = 0; i < n; i++) memory[i] = value;
    FAILS(hamr_adopt(&s->buffer, memory, HAMR_INT32, s->ndim, s->shape, NULL, NULL, HAMR_ADOPT_TAKE, deleter, memory),
          HAMR_ERROR_VALUE, "deleter");
    OK(hamr_adopt(&s->buffer, memory, HAMR_INT32, s->ndim, s->shape, NULL, NULL, 0, deleter, memory));
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
}

/* Every so manieth element, maybe backwards. */
static void view(walk *w, const slot *s, slot *to) {
    slot now = *s;
    int64_t bytes[2], offset;
    for (int i = 0; i < s->ndim; i++) {
        int64_t start = below(w, (int)s->shape[i] + 1), step = 1 + below(w, 3);
        int64_t n = (s->shape[i] - start + step - 1) / step;
        now.first += start * s->strides[i];
        if (n && below(w, 2)) {
            now.first += (n - 1) * step * s->strides[i];
            step = -step;
        }
        now.shape[i] = n;
        now.strides[i] *= step;
        bytes[i] = now.strides[i] * 4;
    }
    offset = (now.first - s->first) * 4;
    OK(hamr_view(s->buffer, &now.buffer, offset, 0, s->ndim, now.shape, bytes));
    shared(now.in);
    end(to);
    *to = now;
}

static void reshape(walk *w, const slot *s, slot *to) {
    slot now = *s;
    int64_t n = size_of(s), wanted[2] = {-1, 1 + below(w, 3)};
    int in_place = now.ndim == 1 || now.strides[0] == now.shape[1] * now.strides[1];
    if (n == 0 || n % wanted[1] != 0 || !in_place || now.strides[now.ndim - 1] != 1) return;
    now.ndim = 2;
    OK(hamr_reshape(s->buffer, &now.buffer, 2, wanted, 1));
    now.shape[0] = n / wanted[1];
    now.shape[1] = wanted[1];
    now.strides[0] = wanted[1];
    now.strides[1] = 1;
    shared(now.in);
    end(to);
    *to = now;
}

/* Strides of what a handle describes may be others than the buffer's. */
static int32_t *reached(hamr_handle *handle, const slot *s, int64_t i) {
    const hamr_info *info = hamr_handle_info(handle);
    int64_t row = s->ndim == 2 ? i / s->shape[1] : i, column = s->ndim == 2 ? i % s->shape[1] : 0;
    int64_t offset = row * info->strides[0] + (s->ndim == 2 ? column * info->strides[1] : 0);
    return (int32_t *)(void *)((char *)hamr_handle_data(handle) + offset);
}

static void access_host(walk *w, slot *s) {
    int32_t mode = below(w, 3), commit = below(w, 2);
    hamr_handle *handle;
    OK(hamr_access(s->buffer, HAMR_HOST, HAMR_CURRENT_DEVICE, mode, &handle));
    int own = (hamr_handle_info(handle)->flags & HAMR_INFO_TEMPORARY) != 0;
    for (int64_t i = 0; i < size_of(s); i++) {
        if (mode != HAMR_WRITE) TRUE(*reached(handle, s, i) == *at(s, i));
        if (mode == HAMR_READ) continue;
        int32_t value = below(w, 1000);
        *reached(handle, s, i) = value;
        if (commit || !own) *at(s, i) = value;
    }
    OK(commit ? hamr_release_handle(handle) : hamr_abandon_handle(handle));
}

/* Elements that a plain access shows: those of then, or, in place, those of now. */
static void look(walk *w) {
    if (!w->plain) return;
    int own = (hamr_handle_info(w->plain)->flags & HAMR_INFO_TEMPORARY) != 0;
    for (int64_t i = 0; i < size_of(&w->as); i++)
        TRUE(*reached(w->plain, &w->as, i) == (own ? w->seen[i] : *at(&w->as, i)));
    if (below(w, 3)) return;
    OK(hamr_release_handle(w->plain));
    give_up(w->as.in);
    w->plain = NULL;
}

static void keep(walk *w, slot *s) {
    OK(hamr_keep_temporaries(s->buffer, below(w, 2)));
    if (w->plain) return;
    OK(hamr_access(s->buffer, HAMR_HOST, HAMR_CURRENT_DEVICE, HAMR_PLAIN, &w->plain));
    OK(hamr_synchronize(s->buffer));
    w->as = *s;
    shared(s->in);
    for (int64_t i = 0; i < size_of(s); i++) w->seen[i] = *at(s, i);
}

static void over_dlpack(walk *w, const slot *s, slot *to) {
    slot now = *s;
    hamr_status status;
    if (below(w, 2)) {
        struct DLManagedTensorVersioned *tensor;
        if ((status = hamr_to_dlpack(s->buffer, NULL, &tensor))) FAIL("to_dlpack");
        if (below(w, 3) == 0) {
            tensor->deleter(tensor);
            return;
        }
        OK(hamr_from_dlpack(tensor, NULL, &now.buffer));
    } else {
        struct DLManagedTensor *tensor;
        OK(hamr_to_old_dlpack(s->buffer, NULL, &tensor));
        OK(hamr_from_old_dlpack(tensor, NULL, &now.buffer));
    }
    shared(now.in);
    end(to);
    *to = now;
}

static void contents(walk *w, slot *s) {
    int32_t values[MOST];
    int64_t n = size_of(s), start = below(w, (int)n + 1), count = below(w, (int)(n - start) + 1);
    int64_t wanted = below(w, MOST);
    for (int64_t i = 0; i < count; i++) values[i] = below(w, 1000);
    FAILS(hamr_set_values(s->buffer, start, HAMR_INT32, values, n - start + 1), HAMR_ERROR_INDEX, "accepted");
    switch (below(w, 5)) {
    case 0:
        OK(hamr_fill(s->buffer, HAMR_INT32, &s->ndim));
        for (int64_t i = 0; i < n; i++) *at(s, i) = s->ndim;
        break;
    case 1:
        if (s->in->references > 1) break;
        OK(hamr_resize(s->buffer, 1, &wanted, &s->ndim));
        s->ndim = 1;
        s->shape[0] = wanted;
        s->shape[1] = 1;
        give_up(s->in);
        adopt_model(s);
        break;
    case 2: {
        slot before = *s;
        OK(hamr_free(s->buffer));
        give_up(before.in);
        s->ndim = 1;
        s->shape[0] = 0;
        in_order(s, new_block());
        break;
    }
    default:
        OK(hamr_set_values(s->buffer, start, HAMR_INT32, values, count));
        for (int64_t i = 0; i < count; i++) *at(s, start + i) = values[i];
    }
}

static void step(walk *w) {
    slot *s = &w->slots[below(w, SLOTS)], *to = &w->slots[below(w, SLOTS)], swapped;
    int what = below(w, 10);
    if (!s->buffer) what = 0;
    switch (what) {
    case 0: make(w, s); break;
    case 1: end(s); break;
    case 2: if (s != to) view(w, s, to); break;
    case 3: if (s != to) reshape(w, s, to); break;
    case 4: access_host(w, s); break;
    case 5: keep(w, s); break;
    case 6: if (s != to) over_dlpack(w, s, to); break;
    case 7:
        if (!to->buffer) break;
        OK(hamr_swap(s->buffer, to->buffer));
        swapped = *s;
        *s = *to;
        *to = swapped;
        swapped.buffer = s->buffer; /* the objects stay */
        s->buffer = to->buffer;
        to->buffer = swapped.buffer;
        break;
    default: contents(w, s);
    }
}

static void *work(void *number) {
    walk *w = (walk *)calloc(1, sizeof *w);
    TRUE(w != NULL);
    w->random = seed * 31u + (unsigned)(intptr_t)number;
    for (int i = 0; i < steps; i++) {
        step(w);
        for (int j = 0; j < SLOTS; j++) /* what came by DLPack knows nothing of its producer's later work */
            if (w->slots[j].buffer) OK(hamr_synchronize(w->slots[j].buffer));
        for (int j = 0; j < SLOTS; j++) check(&w->slots[j]);
        look(w);
    }
    for (int j = 0; j < SLOTS; j++) end(&w->slots[j]);
    if (w->plain) {
        OK(hamr_release_handle(w->plain));
        give_up(w->as.in);
    }
    free(w);
    return NULL;
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    hamr_usage rows[HAMR_ALLOCATOR_COUNT];
    TRUE(count > 2);
    seed = (unsigned)atoi(arguments[1]);
    steps = atoi(arguments[2]);
    devices = count > 3;
    for (int i = 0; i < THREADS; i++) TRUE(pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < THREADS; i++) TRUE(pthread_join(threads[i], NULL) == 0);
    TRUE(ended == made);
    for (int32_t i = hamr_memory_usage(rows, HAMR_ALLOCATOR_COUNT); i-- > 0;)
        TRUE(rows[i].live == 0 && rows[i].adopted == 0);
    if (devices) look_at_the_driver(arguments[3]);
    puts("the model holds");
    return 0;
}
