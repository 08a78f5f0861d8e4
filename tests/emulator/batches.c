// Many copies by one call. They are in the order of the stream as a whole and in none
// among themselves: here the last comes first.
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

enum { IN_STREAM_ORDER = 1, DURING_THE_CALL = 2, IN_ANY_ORDER = 3, LEGACY_STREAM = 1 };

struct location {
  int type, id;
};

struct attributes {
  unsigned source_order;
  struct location source_hint, target_hint;
  unsigned flags;
};

struct batch {
  const CUdeviceptr *targets, *sources;
  const size_t *sizes;
  size_t count;
  const struct attributes *attributes;
  const size_t *firsts;
  size_t attributes_count;
};

static CUresult run_copy(struct item *item) {
  char *to = late_bytes(&item->target, "batched copy");
  const char *staged = item->work;
  const char *from = staged ? staged : late_bytes(&item->source, "batched copy");
  if (to && from)
    memmove(to, from, item->target.size);
  return CUDA_SUCCESS;
}

static CUresult check(const struct batch *b, CUstream stream) {
  if (stream == 0 || stream == LEGACY_STREAM)
    return invalid(CUDA_ERROR_INVALID_VALUE, "a batch on the legacy stream");
  if (!b->targets || !b->sources || !b->sizes || b->count == 0)
    return invalid(CUDA_ERROR_INVALID_VALUE, "a batch of nothing");
  if (!b->attributes || !b->firsts || b->attributes_count == 0 || b->attributes_count > b->count ||
      b->firsts[0] != 0)
    return invalid(CUDA_ERROR_INVALID_VALUE, "copies without attributes");
  for (size_t i = 0; i < b->attributes_count; i++) {
    const struct attributes *a = &b->attributes[i];
    if (a->source_order < IN_STREAM_ORDER || a->source_order > IN_ANY_ORDER || a->flags > 1)
      return invalid(CUDA_ERROR_INVALID_VALUE, "attributes %u, %u", a->source_order, a->flags);
    if (i > 0 && (b->firsts[i] <= b->firsts[i - 1] || b->firsts[i] >= b->count))
      return invalid(CUDA_ERROR_INVALID_VALUE, "attributes of copy %zu", b->firsts[i]);
  }
  return CUDA_SUCCESS;
}

static int overlap(CUdeviceptr a, size_t a_size, CUdeviceptr b, size_t b_size) {
  return a < b + b_size && b < a + a_size;
}

static void check_apart(const struct batch *b) {
  for (size_t i = 0; i < b->count; i++)
    for (size_t j = 0; j < b->count; j++)
      if ((i != j && overlap(b->targets[i], b->sizes[i], b->targets[j], b->sizes[j])) ||
          overlap(b->targets[i], b->sizes[i], b->sources[j], b->sizes[j])) {
        violate("copies %zu and %zu of a batch depend on each other", i, j);
        return;
      }
}

static unsigned order_of(const struct batch *b, size_t copy) {
  size_t i = b->attributes_count - 1;
  while (b->firsts[i] > copy)
    i--;
  return b->attributes[i].source_order;
}

// All is checked before anything is enqueued.
static CUresult make_items(const struct batch *b, struct item **items) {
  for (size_t i = 0; i < b->count; i++) {
    items[i] = new_item(run_copy, NULL);
    if (b->sizes[i] == 0)
      return invalid(CUDA_ERROR_INVALID_VALUE, "copy %zu of a batch has no bytes", i);
    RETURN_IF_FAILED(make_span(&items[i]->target, b->targets[i], b->sizes[i]));
    RETURN_IF_FAILED(check_writable(&items[i]->target));
    RETURN_IF_FAILED(make_span(&items[i]->source, b->sources[i], b->sizes[i]));
    if (order_of(b, i) == IN_STREAM_ORDER)
      continue;
    const char *now = late_bytes(&items[i]->source, "batched copy");
    items[i]->work = malloc(b->sizes[i]);
    if (!items[i]->work)
      return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(items[i]->work, now, b->sizes[i]);
  }
  return CUDA_SUCCESS;
}

static CUresult copy(const struct batch *b, CUstream stream, struct context *context) {
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  RETURN_IF_FAILED(check(b, stream));
  struct item **items = calloc(b->count, sizeof *items);
  CUresult failure = make_items(b, items);
  if (!failure)
    check_apart(b);
  for (size_t i = b->count; i-- > 0;) {
    if (failure)
      release_item(items[i]);
    else
      enqueue(s, items[i]);
  }
  free(items);
  return failure;
}

EXPORT CUresult cuMemcpyBatchAsync(const CUdeviceptr *targets, const CUdeviceptr *sources,
                                   const size_t *sizes, size_t count,
                                   const struct attributes *attributes, const size_t *firsts,
                                   size_t attributes_count, size_t *failed, CUstream stream) {
  CALL_IN_CONTEXT;
  if (failed)
    *failed = (size_t)-1;
  return copy(&(struct batch){targets, sources, sizes, count, attributes, firsts,
                              attributes_count}, stream, context);
}

EXPORT CUresult cuMemcpyBatchAsync_v2(const CUdeviceptr *targets, const CUdeviceptr *sources,
                                      const size_t *sizes, size_t count,
                                      const struct attributes *attributes, const size_t *firsts,
                                      size_t attributes_count, CUstream stream) {
  CALL_IN_CONTEXT;
  return copy(&(struct batch){targets, sources, sizes, count, attributes, firsts,
                              attributes_count}, stream, context);
}
