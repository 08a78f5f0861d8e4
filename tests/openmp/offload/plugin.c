/* A plugin of GCC's OpenMP runtime whose devices have memory that the host cannot touch: libgomp takes
 * it for that of NVIDIA's devices. It runs no code. What is done wrong ends the process.
 *
 * The functions are those that libgomp looks for, in its file target.c. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { openmp = 1 << 2, nvptx = 5, most = 4096, devices = 2 };

/* Added to the host's addresses: none of the results is one that a processor accepts. */
static const uintptr_t shift = (uintptr_t)1 << 60;

static struct block {
    uintptr_t at;
    size_t size;
    int device;
} blocks[most];

static void misuse(const char *what, int device, uintptr_t at, size_t size)
{
    fprintf(stderr, "the plugin's %s: device %d has no %zu bytes at %#zx\n", what, device, size, (size_t)at);
    abort();
}

/* libgomp calls with a lock of the device's held, and two devices have two of these. */
static volatile int taken;

static int calling;
static __thread bool known;

static void enter(void)
{
    if (!known)
        __atomic_add_fetch(&calling, 1, __ATOMIC_RELAXED);
    known = true;
    while (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE)) {
    }
}

static void leave(void) { __atomic_store_n(&taken, 0, __ATOMIC_RELEASE); }

static void *host(const char *what, int device, const void *p, size_t size)
{
    uintptr_t at = (uintptr_t)p;
    enter();
    for (int i = 0; i < most; i++) {
        struct block *b = blocks + i;
        if (b->at && b->device == device && b->at <= at && at + size <= b->at + b->size) {
            leave();
            return (void *)(at - shift);
        }
    }
    misuse(what, device, at, size);
    return NULL;
}

unsigned GOMP_OFFLOAD_version(void)
{
    const char *text = getenv("HAMR_TEST_GOMP_VERSION"); /* it differs between versions of libgomp */
    return text ? (unsigned)atoi(text) : 1;
}
const char *GOMP_OFFLOAD_get_name(void) { return "stand-in"; }
unsigned GOMP_OFFLOAD_get_caps(void) { return openmp; }
int GOMP_OFFLOAD_get_type(void) { return nvptx; }
int GOMP_OFFLOAD_get_num_devices(unsigned requires) { return (void)requires, devices; }
bool GOMP_OFFLOAD_init_device(int device) { return device < devices; }
bool GOMP_OFFLOAD_fini_device(int device) { return device < devices; }
int GOMP_OFFLOAD_load_image(void) { return -1; }
bool GOMP_OFFLOAD_unload_image(void) { return true; }
void GOMP_OFFLOAD_run(void) { misuse("run", 0, 0, 0); }

void *GOMP_OFFLOAD_alloc(int device, size_t size)
{
    void *p = size < (size_t)1 << 40 ? malloc(size) : NULL;
    if (!p)
        return NULL;
    memset(p, 0xBD, size);
    enter();
    for (int i = 0; i < most; i++)
        if (!blocks[i].at) {
            blocks[i] = (struct block){(uintptr_t)p + shift, size, device};
            leave();
            return (void *)blocks[i].at;
        }
    abort();
}

bool GOMP_OFFLOAD_free(int device, void *p)
{
    enter();
    for (int i = 0; i < most; i++)
        if (blocks[i].at == (uintptr_t)p && p && blocks[i].device == device) {
            blocks[i].at = 0;
            leave();
            free((void *)((uintptr_t)p - shift));
            return true;
        }
    misuse("free", device, (uintptr_t)p, 0);
    return false;
}

bool GOMP_OFFLOAD_dev2host(int device, void *dst, const void *src, size_t size)
{
    memcpy(dst, host("dev2host", device, src, size), size);
    return true;
}

bool GOMP_OFFLOAD_host2dev(int device, void *dst, const void *src, size_t size)
{
    memcpy(host("host2dev", device, dst, size), src, size);
    return true;
}

bool GOMP_OFFLOAD_dev2dev(int device, void *dst, const void *src, size_t size)
{
    memcpy(host("dev2dev", device, dst, size), host("dev2dev", device, src, size), size);
    return true;
}

/* How many threads have used memory. */
int hamr_plugin_threads(void) { return calling; }

/* How many allocations there are. */
int hamr_plugin_live(void)
{
    int count = 0;
    for (int i = 0; i < most; i++)
        count += blocks[i].at != 0;
    return count;
}
