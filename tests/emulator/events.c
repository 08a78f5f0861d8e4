// Events, which stand for the work that a stream had when they were recorded.
#include "emulator.h"

#include <stdlib.h>

enum { polls_before_work = 2, disable_timing = 2, known_flags = 7 };

static struct event *events;

static CUresult find_event(CUevent handle, struct event **event) {
  struct event *e = events;
  while (e && e->handle != handle)
    e = e->next;
  *event = e;
  if (e)
    return CUDA_SUCCESS;
  return invalid(CUDA_ERROR_INVALID_HANDLE, "unknown event %#lx", (unsigned long)handle);
}

static void destroy_event(struct event *event) {
  struct event **at = &events;
  while (*at != event)
    at = &(*at)->next;
  *at = event->next;
  release_item(event->recorded);
  free(event);
}

void destroy_events(struct context *context) {
  struct event *next;
  for (struct event *e = events; e; e = next) {
    next = e->next;
    if (e->context == context)
      destroy_event(e);
  }
}

int count_events(void) {
  int count = 0;
  for (struct event *e = events; e; e = e->next)
    count++;
  return count;
}

EXPORT CUresult cuEventCreate(CUevent *handle, unsigned flags) {
  CALL_IN_CONTEXT;
  if (flags & ~(unsigned)known_flags)
    return CUDA_ERROR_INVALID_VALUE;
  struct event *e = calloc(1, sizeof *e);
  e->context = context;
  e->flags = flags;
  e->handle = *handle = new_handle();
  e->next = events;
  events = e;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventDestroy_v2(CUevent handle) {
  CALL_IN_CONTEXT;
  struct event *e;
  RETURN_IF_FAILED(find_event(handle, &e));
  destroy_event(e);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventRecord(CUevent handle, CUstream stream) {
  CALL_IN_CONTEXT;
  struct event *e;
  struct stream *s;
  RETURN_IF_FAILED(find_event(handle, &e));
  RETURN_IF_FAILED(find_own_stream(stream, context, &s));
  if (e->context != context)
    return CUDA_ERROR_INVALID_HANDLE;
  release_item(e->recorded);
  e->recorded = hold_item(new_item(NULL, NULL));
  e->polls = 0;
  e->in_graph = s->capturing;
  return enqueue(s, e->recorded);
}

// The event may be recorded again or destroyed by another thread meanwhile.
static CUresult reach_and_take_error(struct item *item) {
  hold_item(item);
  reach(item);
  CUresult error = take_error(item->stream);
  release_item(item);
  return error;
}

EXPORT CUresult cuEventSynchronize(CUevent handle) {
  CALL_IN_CONTEXT;
  struct event *e;
  RETURN_IF_FAILED(find_event(handle, &e));
  return e->recorded ? reach_and_take_error(e->recorded) : CUDA_SUCCESS;
}

EXPORT CUresult cuEventQuery(CUevent handle) {
  CALL_IN_CONTEXT;
  struct event *e;
  RETURN_IF_FAILED(find_event(handle, &e));
  RETURN_IF_FAILED(end_exclusive_captures());
  if (!e->recorded)
    return CUDA_SUCCESS;
  if (!e->recorded->done && (is_held(e->recorded) || e->polls++ < polls_before_work))
    return CUDA_ERROR_NOT_READY;
  return reach_and_take_error(e->recorded);
}

static CUresult find_time(CUevent handle, struct event **event) {
  RETURN_IF_FAILED(find_event(handle, event));
  if ((*event)->flags & disable_timing)
    return invalid(CUDA_ERROR_INVALID_HANDLE, "event %#lx without timing", (unsigned long)handle);
  if (!(*event)->recorded)
    return invalid(CUDA_ERROR_INVALID_HANDLE, "event %#lx was never recorded", (unsigned long)handle);
  return CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end) {
  struct event *from, *to;
  RETURN_IF_FAILED(find_time(start, &from));
  RETURN_IF_FAILED(find_time(end, &to));
  if (from->context->device != to->context->device)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!from->recorded->done || !to->recorded->done)
    return CUDA_ERROR_NOT_READY;
  *milliseconds = (float)(to->recorded->reached - from->recorded->reached);
  return CUDA_SUCCESS;
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
  CALL_IN_CONTEXT;
  return elapsed(milliseconds, start, end);
}

EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
  CALL_IN_CONTEXT;
  return elapsed(milliseconds, start, end);
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent handle, unsigned flags) {
  CALL_IN_CONTEXT;
  struct event *e;
  struct stream *s;
  RETURN_IF_FAILED(find_stream(stream, context, &s));
  RETURN_IF_FAILED(find_event(handle, &e));
  if (flags > 1)
    return CUDA_ERROR_INVALID_VALUE;
  if (s->capturing && e->recorded && !e->in_graph) {
    s->capturing = 2;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (!e->recorded || e->recorded->done)
    return CUDA_SUCCESS;
  struct item *item = new_item(NULL, NULL);
  wait_after(item, e->recorded);
  return enqueue(s, item);
}
