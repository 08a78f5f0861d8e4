// Modules of kernels. Their PTX is only looked at for names; what runs is the
// host version of the same kernels, where it was linked in.
#include "emulator.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct hamr_host_kernel {
  const char *name;
  unsigned long argument_size;
  void (*run)(const void *argument, unsigned long long thread, unsigned long long threads);
};

extern const struct hamr_host_kernel hamr_host_kernels[] __attribute__((weak));

struct module {
  struct module *next;
  CUmodule handle;
  char *text;
};

// Functions go with their module.
struct function {
  struct function *next;
  CUfunction handle;
  struct module *module;
  const struct hamr_host_kernel *kernel; // null without a host version
};

struct launch {
  const struct hamr_host_kernel *kernel;
  unsigned long long threads;
  char argument[];
};

enum { most_threads_of_block = 1024 };

static struct module *modules;
static struct function *functions;

int count_modules(void) {
  int count = 0;
  for (struct module *m = modules; m; m = m->next)
    count++;
  return count;
}

static const char *skip_line(const char *text) {
  text += strcspn(text, "\n");
  return *text ? text + 1 : text;
}

static const char *skip_comments(const char *text) {
  for (;;) {
    while (isspace((unsigned char)*text))
      text++;
    if (strncmp(text, "//", 2) == 0)
      text = skip_line(text);
    else if (strncmp(text, "/*", 2) == 0 && strstr(text, "*/"))
      text = strstr(text, "*/") + 2;
    else
      return text;
  }
}

static CUresult load(CUmodule *handle, const char *text) {
  if (!text)
    return CUDA_ERROR_INVALID_VALUE;
  if (strncmp(skip_comments(text), ".version", 8) != 0)
    return CUDA_ERROR_INVALID_PTX;
  struct module *m = calloc(1, sizeof *m);
  m->text = strdup(text);
  m->handle = *handle = new_handle();
  m->next = modules;
  modules = m;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuModuleLoadData(CUmodule *handle, const void *image) {
  CALL_IN_CONTEXT;
  return load(handle, image);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned count,
                                   int *options, void **values) {
  CALL_IN_CONTEXT;
  (void)count;
  (void)options;
  (void)values;
  return load(handle, image);
}

static CUresult find_module(CUmodule handle, struct module **module) {
  struct module *m = modules;
  while (m && m->handle != handle)
    m = m->next;
  *module = m;
  if (m)
    return CUDA_SUCCESS;
  return invalid(CUDA_ERROR_INVALID_HANDLE, "unknown module %#lx", (unsigned long)handle);
}

static int is_name_character(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$'; }

static int has_entry(const char *text, const char *name) {
  size_t length = strlen(name);
  while ((text = strstr(text, ".entry"))) {
    text += strlen(".entry");
    text += strspn(text, " \t\r\n");
    if (strncmp(text, name, length) == 0 && !is_name_character(text[length]))
      return 1;
  }
  return 0;
}

static const struct hamr_host_kernel *find_kernel(const char *name) {
  const struct hamr_host_kernel *k = hamr_host_kernels;
  while (k && k->name && strcmp(k->name, name) != 0)
    k++;
  return k && k->name ? k : NULL;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *handle, CUmodule module, const char *name) {
  CALL_IN_CONTEXT;
  struct module *m;
  RETURN_IF_FAILED(find_module(module, &m));
  if (!has_entry(m->text, name))
    return CUDA_ERROR_NOT_FOUND;
  struct function *f = calloc(1, sizeof *f);
  f->module = m;
  f->kernel = find_kernel(name);
  f->handle = *handle = new_handle();
  f->next = functions;
  functions = f;
  return CUDA_SUCCESS;
}

static void forget_functions(const struct module *module) {
  struct function **at = &functions;
  while (*at) {
    struct function *f = *at;
    if (f->module != module) {
      at = &f->next;
      continue;
    }
    *at = f->next;
    free(f);
  }
}

EXPORT CUresult cuModuleUnload(CUmodule handle) {
  CALL_IN_CONTEXT;
  struct module *m, **at = &modules;
  RETURN_IF_FAILED(find_module(handle, &m));
  forget_functions(m);
  while (*at != m)
    at = &(*at)->next;
  *at = m->next;
  free(m->text);
  free(m);
  return CUDA_SUCCESS;
}

static void run_threads(void *argument) {
  const struct launch *l = argument;
  for (unsigned long long thread = 0; thread < l->threads; thread++)
    l->kernel->run(l->argument, thread, l->threads);
}

static CUresult run_launch(struct item *item) {
  return run_on_device(item->stream->context, run_threads, item->work);
}

static CUresult find_function(CUfunction handle, struct function **function) {
  struct function *f = functions;
  while (f && f->handle != handle)
    f = f->next;
  *function = f;
  if (f)
    return CUDA_SUCCESS;
  return invalid(CUDA_ERROR_INVALID_HANDLE, "unknown function %#lx", (unsigned long)handle);
}

static CUresult launch(struct stream *stream, const struct hamr_host_kernel *kernel,
                       unsigned long long threads, void **parameters) {
  struct launch *l = malloc(sizeof *l + kernel->argument_size);
  l->kernel = kernel;
  l->threads = threads;
  memcpy(l->argument, parameters[0], kernel->argument_size);
  return enqueue(stream, new_item(run_launch, l));
}

EXPORT CUresult cuLaunchKernel(CUfunction handle, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared_bytes, CUstream stream,
                               void **parameters, void **extra) {
  CALL_IN_CONTEXT;
  (void)shared_bytes;
  struct function *f;
  struct stream *s;
  RETURN_IF_FAILED(find_function(handle, &f));
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  if (grid_x == 0 || block_x == 0 || block_x > most_threads_of_block)
    return CUDA_ERROR_INVALID_VALUE;
  if (!f->kernel || grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || extra)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (!parameters)
    return CUDA_ERROR_INVALID_VALUE;
  return launch(s, f->kernel, (unsigned long long)grid_x * block_x, parameters);
}
