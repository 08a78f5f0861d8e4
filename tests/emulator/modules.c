// Modules of kernels. Their PTX is only looked at for names; what runs is the
// host version of the same kernels, where it was linked in.
#include "emulator.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct hamr_host_kernel hamr_host_kernels[] __attribute__((weak));

static struct module *modules;
struct function *functions;

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

enum { ERROR_LOG = 5, ERROR_LOG_SIZE = 6 };

// What is wrong with a text, as the driver's compiler would say; null if nothing is.
static const char *fault_of(const char *text) {
  if (strncmp(skip_comments(text), ".version", 8) != 0)
    return "ptxas application ptx input, line 1; fatal   : Missing .version directive at start of file";
  if (strstr(text, "nosuchinstruction"))
    return "ptxas application ptx input, line 9; error   : Not a name of any known instruction: 'nosuchinstruction'";
  return NULL;
}

static CUresult load(CUmodule *handle, const char *text, char *log, size_t room) {
  if (!text)
    return CUDA_ERROR_INVALID_VALUE;
  const char *fault = fault_of(text);
  if (fault && log && room)
    snprintf(log, room, "%s", fault);
  if (fault)
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
  return load(handle, image, NULL, 0);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned count,
                                   int *options, void **values) {
  CALL_IN_CONTEXT;
  char *log = NULL;
  size_t room = 0;
  for (unsigned i = 0; i < count; i++) {
    if (options[i] == ERROR_LOG)
      log = values[i];
    if (options[i] == ERROR_LOG_SIZE)
      room = (size_t)(uintptr_t)values[i];
  }
  return load(handle, image, log, room);
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

// What follows the name of a kernel; null if there is none.
static const char *find_entry(const char *text, const char *name) {
  size_t length = strlen(name);
  while ((text = strstr(text, ".entry"))) {
    text += strlen(".entry");
    text += strspn(text, " \t\r\n");
    if (length && strncmp(text, name, length) == 0 && !is_name_character(text[length]))
      return text + length;
  }
  return NULL;
}

// Reads sizes of parameters as ".param .u64 name" and ".param .align 8 .b8 name[16]".
static int read_parameters(const char *text, size_t *sizes) {
  int count = 0;
  text += strspn(text, " \t\r\n");
  if (*text != '(')
    return 0;
  const char *end = strchr(text, ')');
  while (end && (text = strstr(text, ".param")) && text < end && count < most_parameters) {
    size_t size = 0;
    text += strlen(".param");
    const char *next = text + strcspn(text, ",)");
    for (const char *dot = text; (dot = memchr(dot, '.', (size_t)(next - dot))); dot++)
      if (strchr("usbf", dot[1]) && isdigit((unsigned char)dot[2]))
        size = (size_t)strtol(dot + 2, NULL, 10) / 8;
    const char *bracket = memchr(text, '[', (size_t)(next - text));
    sizes[count++] = bracket ? size * (size_t)strtol(bracket + 1, NULL, 10) : size;
    text = next;
  }
  return count;
}

// The threads that a block of the kernel has at most, of ".maxntid 256, 1, 1" between its parameters and its body.
static int read_most_threads(const char *text) {
  const char *bound = strstr(text, ".maxntid"), *body = strchr(text, '{');
  return bound && body && bound < body ? (int)strtol(bound + strlen(".maxntid"), NULL, 10) : most_threads_of_block;
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
  const char *entry = find_entry(m->text, name);
  if (!entry)
    return CUDA_ERROR_NOT_FOUND;
  struct function *f = calloc(1, sizeof *f);
  f->module = m;
  f->kernel = find_kernel(name);
  f->parameters = read_parameters(entry, f->sizes);
  if (f->kernel) {
    f->parameters = 1;
    f->sizes[0] = f->kernel->argument_size;
  }
  f->user = find_user_kernel(name, f->parameters, f->sizes);
  f->dynamic = default_shared;
  f->most_threads = read_most_threads(entry);
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
  if (m->pending) {
    violate("a module is unloaded of which %d launches have yet to run", m->pending);
    return CUDA_ERROR_INVALID_VALUE;
  }
  forget_functions(m);
  while (*at != m)
    at = &(*at)->next;
  *at = m->next;
  free(m->text);
  free(m);
  return CUDA_SUCCESS;
}

CUresult find_function(CUfunction handle, struct function **function) {
  struct function *f = functions;
  while (f && f->handle != handle)
    f = f->next;
  *function = f;
  if (f)
    return CUDA_SUCCESS;
  return invalid(CUDA_ERROR_INVALID_HANDLE, "unknown function %#lx", (unsigned long)handle);
}
