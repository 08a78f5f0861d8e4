// Streams and events. A stream is of the device that was current when it was made, and works for
// whoever names it; an event likewise.
#include "stand_in.h"

enum { NULL_STREAM = 0, LEGACY = 1, PER_THREAD = 2 };

int stream_of(uintptr_t stream, uintptr_t *handle) {
  int named = runtime_version() >= 60200000;
  *handle = stream == NULL_STREAM ? LEGACY : stream;
  return stream == LEGACY && !named ? INVALID_HANDLE : SUCCESS;
}

EXPORT int hipStreamQuery(uintptr_t stream) { ON_STREAM(stream, cuStreamQuery, handle); }

EXPORT int hipStreamCreateWithFlags(uintptr_t *stream, unsigned flags) {
  return IN_CONTEXT(cuStreamCreate, stream, flags);
}

// What AMD's runtime may lose, a stream with work on it, is refused.
EXPORT int hipStreamDestroy(uintptr_t stream) {
  if (stream <= PER_THREAD)
    return failed(INVALID_HANDLE);
  if (hipStreamQuery(stream))
    return failed(ILLEGAL_STATE);
  return IN_CONTEXT(cuStreamDestroy_v2, stream);
}

EXPORT int hipStreamSynchronize(uintptr_t stream) {
  ON_STREAM(stream, cuStreamSynchronize, handle);
}

EXPORT int hipStreamWaitEvent(uintptr_t stream, void *event, unsigned flags) {
  ON_STREAM(stream, cuStreamWaitEvent, handle, event, flags);
}

EXPORT int hipStreamIsCapturing(uintptr_t stream, int *capturing) {
  ON_STREAM(stream, cuStreamIsCapturing, handle, capturing);
}

EXPORT int hipStreamGetDevice(uintptr_t stream, int *number) {
  if (stream <= PER_THREAD) {
    *number = current_device();
    return SUCCESS;
  }
  void *context;
  int code = IN_CONTEXT(cuStreamGetCtx, stream, &context);
  if (code)
    return code;
  for (*number = 0; *number < device_count(); ++*number)
    if (context_of(*number) == context)
      return SUCCESS;
  return failed(INVALID_HANDLE);
}

EXPORT int hipGetStreamDeviceId(uintptr_t stream) {
  int number;
  return hipStreamGetDevice(stream, &number) ? -1 : number;
}

EXPORT int hipEventCreateWithFlags(void **event, unsigned flags) {
  return IN_CONTEXT(cuEventCreate, event, flags);
}

EXPORT int hipEventDestroy(void *event) { return IN_CONTEXT(cuEventDestroy_v2, event); }

EXPORT int hipEventRecord(void *event, uintptr_t stream) {
  ON_STREAM(stream, cuEventRecord, event, handle);
}

EXPORT int hipEventQuery(void *event) { return IN_CONTEXT(cuEventQuery, event); }

EXPORT int hipEventSynchronize(void *event) { return IN_CONTEXT(cuEventSynchronize, event); }

EXPORT int hipEventElapsedTime(float *milliseconds, void *from, void *to) {
  return IN_CONTEXT(cuEventElapsedTime, milliseconds, from, to);
}
