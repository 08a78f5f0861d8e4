// Fills with a value of 1, 2 or 4 bytes, in one run or in rows.
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

struct fill {
  size_t pitch, width, height; // bytes, elements, rows
  uint32_t value;
  unsigned size; // bytes of an element
};

static void fill_row(char *row, const struct fill *f) {
  for (size_t i = 0; i < f->width; i++)
    memcpy(row + i * f->size, &f->value, f->size);
}

static CUresult run_fill(struct item *item) {
  const struct fill *f = item->work;
  char *to = late_bytes(&item->target, "fill");
  for (size_t row = 0; to && row < f->height; row++)
    fill_row(to + row * f->pitch, f);
  return CUDA_SUCCESS;
}

static int size_overflows(const struct fill *f) {
  size_t bytes, whole;
  return __builtin_mul_overflow(f->width, f->size, &bytes) ||
         __builtin_mul_overflow(f->height, f->pitch, &whole);
}

static CUresult check_shape(const struct fill *f, CUdeviceptr address) {
  if (size_overflows(f))
    return CUDA_ERROR_INVALID_VALUE;
  if (f->height > 1 && f->pitch < f->width * f->size)
    return invalid(CUDA_ERROR_INVALID_VALUE, "a pitch of %zu for rows of %zu bytes", f->pitch,
                   f->width * f->size);
  if (address % f->size || (f->height > 1 && f->pitch % f->size))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

static size_t extent(const struct fill *f) {
  if (f->width == 0 || f->height == 0)
    return 0;
  return (f->height - 1) * f->pitch + f->width * f->size;
}

static CUresult fill(struct context *context, CUdeviceptr address, struct fill shape,
                     CUstream stream) {
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  RETURN_IF_FAILED(check_shape(&shape, address));
  struct span target;
  RETURN_IF_FAILED(make_span(&target, address, extent(&shape)));
  if (!target.block)
    return invalid(CUDA_ERROR_INVALID_VALUE, "unknown address %#llx", address);
  if (!may_reach(context, target.block, address, extent(&shape)))
    return invalid(CUDA_ERROR_INVALID_VALUE, "device %d does not reach %#llx", context->device,
                   address);
  if (!may_write(context, target.block, address, extent(&shape)))
    return CUDA_ERROR_INVALID_VALUE;
  if (extent(&shape) == 0)
    return CUDA_SUCCESS;
  struct fill *f = malloc(sizeof *f);
  *f = shape;
  struct item *item = new_item(run_fill, f);
  item->target = target;
  return enqueue(s, item);
}

// The value's first bytes are those of an element only on little-endian machines.
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "little-endian machines only");

#define FILL(bits, type)                                                                     \
  EXPORT CUresult cuMemsetD##bits##Async(CUdeviceptr address, type value, size_t count,      \
                                         CUstream stream) {                                  \
    CALL_IN_CONTEXT;                                                                         \
    struct fill f = {.width = count, .height = 1, .value = value, .size = sizeof value};     \
    return fill(context, address, f, stream);                                                \
  }                                                                                          \
  EXPORT CUresult cuMemsetD2D##bits##Async(CUdeviceptr address, size_t pitch, type value,    \
                                           size_t width, size_t height, CUstream stream) {   \
    CALL_IN_CONTEXT;                                                                         \
    struct fill f = {.pitch = pitch, .width = width, .height = height, .value = value,       \
                     .size = sizeof value};                                                  \
    return fill(context, address, f, stream);                                                \
  }

FILL(8, unsigned char)
FILL(16, unsigned short)
FILL(32, unsigned)
