// Late work: items wait in the queue of their stream until somebody waits for
// them, so that a missing wait gives wrong data at every run. With
// HAMR_EMULATOR_MODE=threads a thread does them too, in random order.
//
// Items only wait for items that were queued before them, so doing what an item
// waits for always ends.
#include "emulator.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int threads_mode, worker_runs, holding;

struct item *new_item(CUresult (*run)(struct item *), void *work) {
  struct item *item = calloc(1, sizeof *item);
  item->run = run;
  item->work = work;
  item->references = 1;
  return item;
}

struct item *hold_item(struct item *item) {
  item->references++;
  return item;
}

void release_item(struct item *item) {
  if (!item || --item->references > 0)
    return;
  forget_earlier(item);
  if (item->stream)
    release_stream(item->stream);
  free(item->work);
  free(item);
}

static void *work_in_random_order(void *unused);

static void start_worker(void) {
  pthread_t thread;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  worker_runs = pthread_create(&thread, NULL, work_in_random_order, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (worker_runs)
    pthread_detach(thread);
}

// Takes over the caller's reference to item.
CUresult enqueue(struct stream *stream, struct item *item) {
  item->stream = stream;
  stream->references++;
  keep_legacy_order(item);
  if (stream->last)
    stream->last->next = item;
  else
    stream->first = item;
  stream->last = item;
  check_order(item);
  if (threads_mode && !worker_runs)
    start_worker();
  if (threads_mode)
    tell_progress();
  return CUDA_SUCCESS;
}

static int ready(const struct item *item) {
  for (int i = 0; i < item->after_count; i++)
    if (!item->after[i]->done)
      return 0;
  return 1;
}

static CUresult error_before(const struct item *item) {
  CUresult error = CUDA_SUCCESS;
  for (int i = 0; i < item->after_count && !error; i++)
    error = item->after[i]->error;
  return error;
}

static CUresult run_item(struct item *item) {
  if (!item->run)
    return CUDA_SUCCESS;
  const char *outer = current_call;
  current_call = "execute";
  CUresult error = injected("execute");
  if (!error)
    error = item->run(item);
  current_call = outer;
  return error;
}

static double milliseconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

// The first item of stream stays in its queue while it runs, since a host
// function lets other threads in.
static void run_first(struct stream *stream) {
  struct item *item = stream->first;
  stream->busy = 1;
  CUresult error = run_item(item);
  if (!stream->error)
    stream->error = error ? error : error_before(item);
  item->error = stream->error;
  stream->busy = 0;
  stream->first = item->next;
  if (!stream->first)
    stream->last = NULL;
  item->done = 1;
  item->reached = milliseconds_now();
  forget_earlier(item);
  tell_progress();
  release_item(item);
}

// Brings the first item of stream one step closer to being done.
static void step(struct stream *stream) {
  if (stream->busy) {
    wait_for_progress();
    return;
  }
  struct item *item = hold_item(stream->first);
  while (holding && item->holds)
    wait_for_progress();
  for (int i = 0; i < item->after_count; i++) {
    struct item *earlier = hold_item(item->after[i]);
    reach(earlier);
    release_item(earlier);
  }
  if (stream->first == item && !stream->busy)
    run_first(stream);
  release_item(item);
}

// Whether an item, or one that it comes after, is waiting for emulator_let_go.
int is_held(const struct item *item) {
  if (!holding || item->done)
    return 0;
  for (const struct item *i = item->stream->first; i; i = i->next) {
    if (i->holds)
      return 1;
    for (int a = 0; a < i->after_count; a++)
      if (is_held(i->after[a]))
        return 1;
    if (i == item)
      return 0;
  }
  return 0;
}

// Work that lasts until emulator_let_go: whoever waits for it, waits.
EXPORT CUresult emulator_hold(CUstream handle) {
  CALL_IN_CONTEXT;
  struct stream *s;
  RETURN_IF_FAILED(find_own_stream(handle, context, &s));
  struct item *item = new_item(NULL, NULL);
  item->holds = holding = 1;
  return enqueue(s, item);
}

EXPORT void emulator_let_go(void) {
  INSPECTION;
  if (!call.locked)
    return;
  holding = 0;
  tell_progress();
}

void reach(struct item *item) {
  while (!item->done)
    step(item->stream);
}

void finish_stream(struct stream *stream) {
  if (!stream->last)
    return;
  struct item *last = hold_item(stream->last);
  reach(last);
  release_item(last);
}

static struct stream *pending_stream(const struct context *context, int device) {
  struct stream *s = streams;
  while (s && (!s->first || (context && s->context != context) ||
               (device >= 0 && s->context->device != device)))
    s = s->next;
  return s;
}

static void finish_matching(const struct context *context, int device) {
  struct stream *s;
  while ((s = pending_stream(context, device)))
    finish_stream(s);
}

void finish_context(struct context *context) { finish_matching(context, -1); }
void finish_device(int device) { finish_matching(NULL, device); }
void finish_all(void) { finish_matching(NULL, -1); }

static struct item *pending_free(int device) {
  for (struct stream *s = streams; s; s = s->next)
    for (struct item *i = s->first; i; i = i->next)
      if (i->frees_on == device + 1)
        return i;
  return NULL;
}

// Does what is queued up to the last release of pool memory, as a driver does
// that has run out of memory.
void finish_frees(int device) {
  struct item *item;
  while ((item = pending_free(device))) {
    hold_item(item);
    reach(item);
    release_item(item);
  }
}

int count_pending(void) {
  int count = 0;
  for (struct stream *s = streams; s; s = s->next)
    for (struct item *i = s->first; i; i = i->next)
      count++;
  return count;
}

static int touches(const struct span *span, CUdeviceptr address, size_t size) {
  return span->address < address + size && address < span->address + span->size;
}

// Whether queued work is on some of the memory, as far as is known of kernels.
int is_pending_on(CUdeviceptr address, size_t size) {
  for (struct stream *s = streams; s; s = s->next)
    for (struct item *i = s->first; i; i = i->next)
      if (touches(&i->target, address, size) || touches(&i->source, address, size))
        return 1;
  return 0;
}

CUresult take_error(struct stream *stream) {
  CUresult error = stream->error;
  stream->error = CUDA_SUCCESS;
  return error;
}

void forget_errors(void) {
  for (struct stream *s = streams; s; s = s->next)
    s->error = CUDA_SUCCESS;
}

void initialise_work(void) {
  const char *mode = getenv("HAMR_EMULATOR_MODE");
  threads_mode = mode && strcmp(mode, "threads") == 0;
}

static int may_run(const struct stream *s) {
  return s->first && !s->busy && ready(s->first) && !(holding && s->first->holds);
}

static struct stream *random_stream(unsigned *seed) {
  int count = 0;
  for (struct stream *s = streams; s; s = s->next)
    count += may_run(s);
  if (count == 0)
    return NULL;
  int chosen = rand_r(seed) % count;
  struct stream *s = streams;
  while (!may_run(s) || chosen-- > 0)
    s = s->next;
  return s;
}

static void *work_in_random_order(void *unused) {
  unsigned seed = (unsigned)time(NULL);
  lock();
  for (;;) {
    while (!random_stream(&seed))
      wait_for_work();
    unlock();
    nanosleep(&(struct timespec){0, rand_r(&seed) % 1000000}, NULL);
    lock();
    struct stream *s = random_stream(&seed);
    if (s)
      run_first(s);
  }
  return unused;
}
