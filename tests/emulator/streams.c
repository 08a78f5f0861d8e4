// Streams: those that callers make, the legacy default stream of each context,
// and the default streams of threads.
#include "emulator.h"

#include <stdlib.h>

enum { LEGACY_STREAM = 1, THREAD_STREAM = 2, NON_BLOCKING = 1, polls_before_work = 2 };

struct stream *streams;

static CUstream freed_handle;

struct stream *new_stream(struct context *context, int blocking) {
  struct stream *s = calloc(1, sizeof *s);
  s->context = context;
  s->blocking = blocking;
  s->references = 1;
  s->next = streams;
  streams = s;
  return s;
}

static void unlink_stream(struct stream *stream) {
  struct stream **at = &streams;
  while (*at && *at != stream)
    at = &(*at)->next;
  if (*at)
    *at = stream->next;
}

void release_stream(struct stream *stream) {
  if (--stream->references > 0)
    return;
  unlink_stream(stream);
  free(stream);
}

// Work that is left is still done: it keeps the stream alive.
static void destroy_stream(struct stream *stream) {
  if (stream->destroyed)
    return;
  stream->destroyed = 1;
  release_stream(stream);
}

static struct stream *live_stream(const struct context *context) {
  struct stream *s = streams;
  while (s && (s->destroyed || s->context != context))
    s = s->next;
  return s;
}

void destroy_streams(struct context *context) {
  struct stream *s;
  while ((s = live_stream(context)))
    destroy_stream(s);
}

int count_streams(void) {
  int count = 0;
  for (struct stream *s = streams; s; s = s->next)
    count += s->handle != 0 && !s->destroyed;
  return count;
}

static struct stream *thread_stream(struct context *context) {
  struct stream *s = streams;
  while (s && (s->destroyed || s->context != context || s->thread != this_thread()))
    s = s->next;
  if (!s) {
    s = new_stream(context, 1);
    s->thread = this_thread();
  }
  return s;
}

CUresult find_stream(CUstream handle, struct context *context, struct stream **stream) {
  struct stream *s = streams;
  if (handle == 0 || handle == LEGACY_STREAM) {
    s = context->legacy;
  } else if (handle == THREAD_STREAM) {
    s = thread_stream(context);
  } else {
    while (s && (s->handle != handle || s->destroyed))
      s = s->next;
  }
  *stream = s;
  if (s)
    return CUDA_SUCCESS;
  return invalid(CUDA_ERROR_INVALID_HANDLE, "unknown stream %#lx", (unsigned long)handle);
}

CUresult find_own_stream(CUstream handle, struct context *context, struct stream **stream) {
  RETURN_IF_FAILED(find_stream(handle, context, stream));
  return (*stream)->context == context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// The handle of the stream that was destroyed last, as drivers do, where that is asked for.
static CUstream handle_again(void) {
  struct stream *s;
  if (freed_handle == 0 || environment_number("HAMR_EMULATOR_REUSE", 0) == 0)
    return new_handle();
  CUstream again = freed_handle;
  freed_handle = 0;
  for (s = streams; s; s = s->next)
    if (s->handle == again)
      s->handle = new_handle(); // it still has work: nobody can name it
  return again;
}

static CUresult create(CUstream *handle, unsigned flags, struct context *context) {
  if (flags & ~(unsigned)NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  struct stream *s = new_stream(context, !(flags & NON_BLOCKING));
  *handle = s->handle = handle_again();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamCreate(CUstream *handle, unsigned flags) {
  CALL_IN_CONTEXT;
  return create(handle, flags, context);
}

EXPORT CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned flags, int priority) {
  CALL_IN_CONTEXT;
  (void)priority;
  return create(handle, flags, context);
}

EXPORT CUresult cuStreamDestroy_v2(CUstream handle) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_stream(handle, context, &s));
  if (s->handle == 0)
    return invalid(CUDA_ERROR_INVALID_HANDLE, "default streams cannot be destroyed");
  freed_handle = handle;
  destroy_stream(s);
  return CUDA_SUCCESS;
}

// The stream may be destroyed by another thread while this one waits.
static CUresult finish_and_take_error(struct stream *stream) {
  stream->references++;
  finish_stream(stream);
  CUresult error = take_error(stream);
  stream->polls = 0;
  release_stream(stream);
  return error;
}

// The stream whose capture a use of this one would be part of without being asked: the
// legacy default stream waits for all streams that block.
static struct stream *captured_by(const struct stream *stream) {
  if (stream != stream->context->legacy)
    return NULL;
  struct stream *s = streams;
  while (s && (!s->capturing || !s->blocking || s->context != stream->context))
    s = s->next;
  return s;
}

static CUresult end_capture_of(const struct stream *stream) {
  struct stream *captured = captured_by(stream);
  if (!captured)
    return CUDA_SUCCESS;
  captured->capturing = 2;
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

EXPORT CUresult cuStreamIsCapturing(CUstream handle, int *status) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_stream(handle, context, &s));
  if (captured_by(s))
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  *status = s->capturing;
  return CUDA_SUCCESS;
}

// Questions about work that is not in the graph, and memory of pools outside of it, end a capture that is global or, on
// its own thread, of that thread (driver 580 on an H200).
CUresult end_exclusive_captures(void) {
  CUresult result = CUDA_SUCCESS;
  for (struct stream *s = streams; s; s = s->next)
    if (s->capturing && (s->exclusive == 1 || (s->exclusive == 2 && pthread_equal(s->by, pthread_self())))) {
      s->capturing = 2;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  return result;
}

// Nothing is recorded: work on a captured stream is none of these tests' business.
EXPORT CUresult cuStreamBeginCapture_v2(CUstream handle, int mode) {
  enum { global, thread_local_mode };
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_stream(handle, context, &s));
  s->capturing = 1;
  s->exclusive = mode == global ? 1 : mode == thread_local_mode ? 2 : 0;
  s->by = pthread_self();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamEndCapture(CUstream handle, uintptr_t *graph) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_stream(handle, context, &s));
  int ended = s->capturing == 2;
  s->capturing = 0;
  *graph = ended ? 0 : new_handle();
  return ended ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

EXPORT CUresult cuGraphDestroy(uintptr_t graph) {
  CALL_IN_CONTEXT;
  (void)context;
  return graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuStreamSynchronize(CUstream handle) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_stream(handle, context, &s));
  RETURN_IF_FAILED(end_capture_of(s));
  return finish_and_take_error(s);
}

EXPORT CUresult cuStreamQuery(CUstream handle) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_stream(handle, context, &s));
  RETURN_IF_FAILED(end_capture_of(s));
  if (!s->capturing)
    RETURN_IF_FAILED(end_exclusive_captures());
  if (s->first && (is_held(s->last) || s->polls++ < polls_before_work))
    return CUDA_ERROR_NOT_READY;
  return finish_and_take_error(s);
}

EXPORT CUresult cuStreamGetFlags(CUstream handle, unsigned *flags) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_stream(handle, context, &s));
  *flags = s->blocking ? 0 : NON_BLOCKING;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *of) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_stream(handle, context, &s));
  *of = s->context->handle;
  return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void) {
  CALL_IN_CONTEXT;
  finish_context(context);
  CUresult error = CUDA_SUCCESS;
  for (struct stream *s = streams; s; s = s->next) {
    CUresult late = s->context == context ? take_error(s) : CUDA_SUCCESS;
    error = error ? error : late;
  }
  return error;
}

struct host_function {
  void (*function)(void *);
  void *argument;
};

// The function may take long and may wait for other threads that call the
// driver.
static CUresult run_host_function(struct item *item) {
  struct host_function f = *(struct host_function *)item->work;
  unlock();
  in_host_function++;
  f.function(f.argument);
  in_host_function--;
  lock();
  return CUDA_SUCCESS;
}

EXPORT CUresult cuLaunchHostFunc(CUstream handle, void (*function)(void *), void *argument) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(handle, context, &s));
  struct host_function *f = malloc(sizeof *f);
  *f = (struct host_function){function, argument};
  return enqueue(s, new_item(run_host_function, f));
}
