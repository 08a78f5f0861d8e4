// The host versions of kernels that tests bring as PTX: tests/cuda/user_kernels.ptx and the conformance
// suite's of backends/backendtest.
#include "emulator.h"

#include <string.h>

void *hamr_device_pointer(unsigned long long address, unsigned long long size);

// The value of an argument.
#define VALUE(type, i) (*(const type *)arguments[i])

static unsigned long long total(const struct threads *t) {
  unsigned long long count = 1;
  for (int i = 0; i < 3; i++)
    count *= (unsigned long long)t->grid[i] * t->block[i];
  return count;
}

static unsigned long long least(unsigned long long a, unsigned long long b) { return a < b ? a : b; }

// saxpy(uint32 n, float a, const float *x, float *y)
static void saxpy(const struct threads *t, const void *const *arguments) {
  unsigned long long n = least(total(t), VALUE(uint32_t, 0));
  if (!n)
    return;
  const char *x = hamr_device_pointer(VALUE(CUdeviceptr, 2), n * sizeof(float));
  char *y = hamr_device_pointer(VALUE(CUdeviceptr, 3), n * sizeof(float));
  for (unsigned long long i = 0; i < n; i++) {
    float left, right;
    memcpy(&left, x + i * sizeof left, sizeof left);
    memcpy(&right, y + i * sizeof right, sizeof right);
    right += VALUE(float, 1) * left;
    memcpy(y + i * sizeof right, &right, sizeof right);
  }
}

// fill(float *y, uint64 n, float value)
static void fill(const struct threads *t, const void *const *arguments) {
  unsigned long long n = least(total(t), VALUE(uint64_t, 1));
  if (!n)
    return;
  float *y = hamr_device_pointer(VALUE(CUdeviceptr, 0), n * sizeof(float));
  for (unsigned long long i = 0; i < n; i++)
    memcpy(y + i, arguments[2], sizeof(float));
}

struct line {
  double slope;
  int32_t offset;
  uint32_t count;
};

// put_line(struct line, double *y): y[i] = slope * i + offset
static void put_line(const struct threads *t, const void *const *arguments) {
  struct line line = VALUE(struct line, 0);
  unsigned long long n = least(total(t), line.count);
  double *y = hamr_device_pointer(VALUE(CUdeviceptr, 1), n * sizeof *y);
  for (unsigned long long i = 0; i < n; i++) {
    double value = line.slope * (double)i + line.offset;
    memcpy(y + i, &value, sizeof value);
  }
}

// places(uint32 *to, uint8 by): for each thread of a row, a plane and a whole of threads along x, y and z,
// to[...] = 10000 * z + 100 * y + x, multiplied.
static void places(const struct threads *t, const void *const *arguments) {
  unsigned size[3];
  for (int i = 0; i < 3; i++)
    size[i] = t->grid[i] * t->block[i];
  uint32_t *to = hamr_device_pointer(VALUE(CUdeviceptr, 0), total(t) * sizeof *to);
  for (unsigned z = 0; z < size[2]; z++)
    for (unsigned y = 0; y < size[1]; y++)
      for (unsigned x = 0; x < size[0]; x++) {
        uint32_t value = (10000 * z + 100 * y + x) * VALUE(uint8_t, 1);
        memcpy(to + ((size_t)z * size[1] + y) * size[0] + x, &value, sizeof value);
      }
}

static void nothing(const struct threads *t, const void *const *arguments) {
  (void)t;
  (void)arguments;
}

static void conformance_fill(const struct threads *t, const void *const *arguments) {
  unsigned long long n = least(total(t), VALUE(uint32_t, 1));
  memset(hamr_device_pointer(VALUE(CUdeviceptr, 0), n), VALUE(uint8_t, 2), n);
}

static void conformance_copy(const struct threads *t, const void *const *arguments) {
  unsigned long long n = least(total(t), VALUE(uint32_t, 2));
  const void *from = hamr_device_pointer(VALUE(CUdeviceptr, 1), n);
  memmove(hamr_device_pointer(VALUE(CUdeviceptr, 0), n), from, n);
}

// saxpy(float *y, const float *x, float a, uint64 n), of examples/saxpy.cu
static void saxpy_of_examples(const struct threads *t, const void *const *arguments) {
  uint32_t n = (uint32_t)VALUE(uint64_t, 3);
  const void *const other[] = {&n, arguments[2], arguments[1], arguments[0]};
  saxpy(t, other);
}

static const struct user_kernel kernels[] = {
    {"saxpy", {4, 4, 8, 8}, saxpy},
    {"saxpy", {8, 8, 4, 8}, saxpy_of_examples},
    {"fill", {8, 8, 4}, fill},
    {"put_line", {16, 8}, put_line},
    {"places", {8, 1}, places},
    {"nothing", {0}, nothing},
    {"conformance_fill", {8, 4, 1}, conformance_fill},
    {"conformance_copy", {8, 8, 4}, conformance_copy},
    {NULL, {0}, NULL},
};

// The kernel of that name whose parameters have those sizes.
const struct user_kernel *find_user_kernel(const char *name, int count, const size_t *sizes) {
  for (const struct user_kernel *k = kernels; k->name; k++) {
    int same = strcmp(k->name, name) == 0 && count < user_parameters && !k->sizes[count];
    for (int i = 0; same && i < count; i++)
      same = k->sizes[i] == sizes[i];
    if (same)
      return k;
  }
  return NULL;
}
