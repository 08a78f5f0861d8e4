// Launches of kernels, whose arguments are copied at once and by the sizes that the PTX says; and what is
// known of a function.
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

enum { most_depth = 64, most_rows = 65535 };

struct launch {
  struct module *module;
  const struct hamr_host_kernel *kernel;
  const struct user_kernel *user;
  struct threads threads;
  const void *arguments[most_parameters];
  char bytes[];
};

static void run_threads(void *argument) {
  const struct launch *l = argument;
  if (l->user) {
    l->user->run(&l->threads, l->arguments);
    return;
  }
  unsigned long long threads = (unsigned long long)l->threads.grid[0] * l->threads.block[0];
  for (unsigned long long thread = 0; thread < threads; thread++)
    l->kernel->run(l->arguments[0], thread, threads);
}

static CUresult run_launch(struct item *item) {
  struct launch *l = item->work;
  l->module->pending--;
  return run_on_device(item->stream->context, run_threads, l);
}

// Arguments lie as far apart as any type asks for.
static size_t room_for(size_t size) { return (size + 15) & ~(size_t)15; }

static CUresult launch(struct stream *stream, struct function *f, const struct threads *threads,
                       void **parameters) {
  size_t room = 0;
  for (int i = 0; i < f->parameters; i++)
    room += room_for(f->sizes[i]);
  struct launch *l = calloc(1, sizeof *l + room);
  l->module = f->module;
  l->kernel = f->kernel;
  l->user = f->user;
  l->threads = *threads;
  char *at = l->bytes;
  for (int i = 0; i < f->parameters; i++) {
    l->arguments[i] = memcpy(at, parameters[i], f->sizes[i]);
    at += room_for(f->sizes[i]);
  }
  f->module->pending++;
  return enqueue(stream, new_item(run_launch, l));
}

static int fits(const struct threads *t, const struct function *f) {
  for (int i = 0; i < 3; i++)
    if (t->grid[i] == 0 || t->block[i] == 0)
      return 0;
  if (t->grid[1] > most_rows || t->grid[2] >= most_rows || t->block[2] > most_depth)
    return 0;
  return (unsigned long long)t->block[0] * t->block[1] * t->block[2] <= (unsigned)f->most_threads;
}

EXPORT CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, CUstream stream,
                               void **parameters, void **extra) {
  CALL_IN_CONTEXT;
  struct function *f;
  struct stream *s;
  struct threads threads = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}};
  RETURN_IF_FAILED(find_function(handle, &f));
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  if (!fits(&threads, f) || shared_bytes > (unsigned)f->dynamic)
    return CUDA_ERROR_INVALID_VALUE;
  int flat = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
  if (extra || !(f->user || (f->kernel && flat)))
    return CUDA_ERROR_NOT_SUPPORTED;
  if (!parameters && f->parameters)
    return CUDA_ERROR_INVALID_VALUE;
  return launch(s, f, &threads, parameters);
}

// Drivers know the parameters from 12.4 on.
EXPORT CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *size) {
  static const struct function late = {.parameters = 5, .sizes = {8, 8, 8, 4, 4}};
  CALL_IN_CONTEXT;
  const struct function *f = &late;
  struct function *known;
  if (handle != late_kernel) {
    RETURN_IF_FAILED(find_function(handle, &known));
    f = known;
  }
  if (index >= (size_t)f->parameters)
    return CUDA_ERROR_INVALID_VALUE;
  *offset = 0;
  for (size_t i = 0; i <= index; i++) {
    size_t alignment = f->sizes[i] < 8 ? f->sizes[i] : 8;
    *offset = (*offset + alignment - 1) / alignment * alignment;
    if (i < index)
      *offset += f->sizes[i];
  }
  *size = f->sizes[index];
  return CUDA_SUCCESS;
}

enum { MAX_THREADS, STATIC_SHARED, CONSTANT, LOCAL, REGISTERS, PTX_VERSION, BINARY_VERSION, CACHE_MODE, DYNAMIC_SHARED,
       ATTRIBUTES };

EXPORT CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction handle) {
  CALL_IN_CONTEXT;
  struct function *f;
  RETURN_IF_FAILED(find_function(handle, &f));
  const int values[ATTRIBUTES] = {[MAX_THREADS] = f->most_threads, [REGISTERS] = 16,
                                  [PTX_VERSION] = 60, [BINARY_VERSION] = 75,
                                  [DYNAMIC_SHARED] = f->dynamic};
  if (attribute < 0 || attribute >= ATTRIBUTES)
    return CUDA_ERROR_INVALID_VALUE;
  *value = values[attribute];
  return CUDA_SUCCESS;
}

EXPORT CUresult cuFuncSetAttribute(CUfunction handle, int attribute, int value) {
  CALL_IN_CONTEXT;
  struct function *f;
  RETURN_IF_FAILED(find_function(handle, &f));
  if (attribute != DYNAMIC_SHARED || value < 0 || value > most_shared)
    return CUDA_ERROR_INVALID_VALUE;
  f->dynamic = value;
  return CUDA_SUCCESS;
}
