/* A runtime of OpenMP's without devices of its own: a program that registers some changes the number of
 * the initial device, as it does with libomptarget. Memory of another device ends the process. */

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int count;

void hamr_register(int devices) { count = devices; }
int omp_get_num_devices(void) { return count; }
int omp_get_initial_device(void) { return count; }

void *omp_target_alloc(size_t size, int device)
{
    if (device != count)
        abort();
    return malloc(size);
}

void omp_target_free(void *p, int device)
{
    if (device != count)
        abort();
    free(p);
}

int omp_target_memcpy(void *dst, const void *src, size_t size, size_t to, size_t from, int dst_device, int src_device)
{
    if (dst_device != count || src_device != count)
        return EINVAL;
    memcpy((char *)dst + to, (const char *)src + from, size);
    return 0;
}
