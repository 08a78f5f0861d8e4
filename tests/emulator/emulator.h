// What the files of the emulator share: the driver's types and codes as far as
// they are used, the emulator's own objects, and how they find each other.
//
// Settings, read from the environment: HAMR_EMULATOR_DEVICES (1), _MEMORY (bytes of each device, 256 MiB), _VERSION
// (13000), _PEERS (1; 0: devices do not reach each other), _POOL_UNIT (bytes that a pool reserves at a time, 32 MiB),
// _VMM (1; 0: devices cannot map memory to addresses), _SHARES (1; 0: memory has no descriptors), _ADDRESSES (bytes
// behind each reservation that another one can have, 64 MiB), _REUSE (0; 1: a new stream has the handle of the one
// destroyed last), _MODE (late; threads: work is also done by itself, in random order), _FAIL ("call:nth:code,...":
// errors to inject) and _REPORT (a file that gets a line of JSON at the end of the process).
//
// One mutex guards everything. Exported functions take it with CALL or
// INSPECTION; all others expect it to be held.
#ifndef HAMR_TESTS_EMULATOR_H
#define HAMR_TESTS_EMULATOR_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE // MAP_ANONYMOUS, asprintf, dladdr
#endif

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "observed.h"

#define EXPORT __attribute__((visibility("default")))

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

// Handles are numbers that are never used twice, so that stale ones are noticed, but for _REUSE.
typedef uintptr_t CUcontext, CUstream, CUevent, CUmodule, CUfunction, CUmemoryPool;
typedef unsigned long long CUmemGenericAllocationHandle;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_CONTEXT = 201,
  CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_OPERATING_SYSTEM = 304,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
  CUDA_ERROR_PEER_ACCESS_NOT_ENABLED = 705,
  CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
  CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
  CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
  CUDA_ERROR_NOT_PERMITTED = 800,
  CUDA_ERROR_NOT_SUPPORTED = 801,
  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
  CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
  CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
};

enum { most_devices = 32 };

struct device {
  size_t used; // bytes, what the pools keep included
  struct context *primary;
  struct pool *default_pool;
};

struct context {
  struct context *next;
  CUcontext handle;
  int device;
  int retained; // zero: destroyed, or a primary context that nobody holds
  unsigned peers;
  struct stream *legacy;
};

struct stream {
  struct stream *next;
  CUstream handle; // zero for default streams
  struct context *context;
  int blocking;    // takes part in the legacy default stream's order
  unsigned thread; // whose default stream it is, or zero
  int destroyed;
  int references; // of the list of streams and of items
  int capturing;  // 1: into a graph; 2: into one that a forbidden call has ended
  int exclusive;  // its capture forbids what end_exclusive_captures is called for: by 1 all threads, by 2 one
  pthread_t by;   // which thread captures
  int busy;       // a host function runs, without the mutex
  int polls;      // since there was last nothing to do
  CUresult error; // of late work, until somebody waits
  struct item *first, *last;
};

// Memory that late work touches.
struct span {
  CUdeviceptr address;
  size_t size;
  struct block *block;  // null for pageable memory; only valid during the call
  unsigned long number; // of the block
};

// A piece of late work, and the point in the stream that is reached with it.
struct item {
  struct item *next;
  struct stream *stream;
  int references; // of its queue, of events and of items that come after it
  int done;
  int holds; // its stream, until emulator_let_go
  double reached; // when that was, in milliseconds
  CUresult error;
  struct item **after;
  int after_count;
  CUresult (*run)(struct item *); // null: nothing but a point
  void *work;                     // what else run needs; freed with the item
  struct span target, source;
  unsigned long visit; // of the latest search that came here
  int frees_on; // the device whose memory this gives back, plus one; or zero
};

struct event {
  struct event *next;
  CUevent handle;
  struct context *context;
  unsigned flags;
  struct item *recorded; // null until then
  int in_graph;          // recorded on a stream that was captured then
  int polls;
};

struct pool {
  struct pool *next;
  CUmemoryPool handle;
  int device;
  int is_default;
  int destroyed;
  unsigned access; // devices
  int reuse[3];
  uint64_t threshold, kept, used, used_high, reserved_high;
  int file;      // of one whose memory other processes import, else -1
  uint64_t end;  // of what was taken of it
  int imported;  // it is another process's
};

// Registered memory is the program's own, which the driver page-locked.
enum kind {
  DEVICE_MEMORY,
  VIRTUAL_MEMORY,
  POOL_MEMORY,
  MANAGED_MEMORY,
  PINNED_MEMORY,
  REGISTERED_MEMORY
};

struct block {
  unsigned long number; // never used twice
  enum kind kind;
  int device;
  struct context *context; // null for pool memory
  struct pool *pool;
  CUdeviceptr address;
  size_t size;
  char *data;                    // where the emulator reaches it
  char *reserved, *alias;        // the mappings; one and the same if the host reaches it
  size_t mapped, reserved_size;
  struct item *birth;            // from here on pool memory may be used
  int freeing;                   // was given back by a call
  int freed;                     // and that has run
  struct addresses *addresses;   // of virtual memory: what is reserved and mapped
  uint64_t offset;               // of memory of a pool that has a file: in that
  int exported, opened;          // descriptors, plus one, of the files of what others open and of what was opened; or 0
  int opens;                     // of what was opened
  int portable;                  // registered memory is page-locked for all contexts
};

// calls.c
struct call {
  CUresult result;
  int locked;
};
struct call enter(const char *name);
struct call enter_uninitialised(const char *name);
struct call inspect(void);
void leave(struct call *call);
void lock(void);
void unlock(void);
void wait_for_progress(void);
void tell_progress(void);
void wait_for_work(void);
uintptr_t new_handle(void);
int initialise_calls(void); // 0, or 1 where the process was forked from one that had
extern _Thread_local int in_host_function;

#define CALL                                                                              \
  struct call call __attribute__((cleanup(leave))) = enter(__func__);                     \
  if (call.result)                                                                        \
    return call.result

#define CALL_IN_CONTEXT                                                                   \
  CALL;                                                                                   \
  struct context *context;                                                                \
  CUresult missing_ = current_context(&context);                                          \
  if (missing_)                                                                           \
    return missing_

#define INSPECTION __attribute__((cleanup(leave))) struct call call = inspect()

#define RETURN_IF_FAILED(expression)                                                      \
  do {                                                                                    \
    CUresult result_ = (expression);                                                      \
    if (result_)                                                                          \
      return result_;                                                                     \
  } while (0)

// faults.c
CUresult injected(const char *call);
void count_call(const char *call);
void violate(const char *format, ...) __attribute__((format(printf, 1, 2)));
CUresult invalid(CUresult code, const char *format, ...) __attribute__((format(printf, 2, 3)));
int violation_count(void);
const char *violation_text(int i);
void forget_violations(void);
extern _Thread_local const char *current_call;

// devices.c
extern struct device devices[most_devices];
extern int device_count;
extern size_t device_memory;
extern int peers_possible;
CUresult check_device(CUdevice device);
long environment_number(const char *name, long otherwise);
int shares_by_descriptor(void);

// contexts.c
CUresult current_context(struct context **context);
struct context *find_context(CUcontext handle); // a live one, or null
unsigned this_thread(void);
int count_contexts(void);

// work.c
struct item *new_item(CUresult (*run)(struct item *), void *work);
CUresult enqueue(struct stream *stream, struct item *item);
struct item *hold_item(struct item *item);
void release_item(struct item *item);
void reach(struct item *item);
void finish_stream(struct stream *stream);
void finish_context(struct context *context);
void finish_device(int device);
void finish_all(void);
void finish_frees(int device);
int count_pending(void);
int is_pending_on(CUdeviceptr address, size_t size);
CUresult take_error(struct stream *stream);
void initialise_work(void);
void forget_errors(void);
int is_held(const struct item *item);

// order.c
void wait_after(struct item *item, struct item *earlier);
void forget_earlier(struct item *item);
void keep_legacy_order(struct item *item);
void check_order(struct item *item);

// streams.c
extern struct stream *streams;
struct stream *new_stream(struct context *context, int blocking);
void release_stream(struct stream *stream);
CUresult end_exclusive_captures(void);
CUresult find_stream(CUstream handle, struct context *context, struct stream **stream);
CUresult find_own_stream(CUstream handle, struct context *context, struct stream **stream);
void destroy_streams(struct context *context);
int count_streams(void);

// events.c
void destroy_events(struct context *context);
int count_events(void);

// blocks.c
CUresult register_block(char *at, size_t size, int device, struct block **block);
CUresult unregister_block(CUdeviceptr address);
CUresult new_block(enum kind kind, size_t size, int device, struct block **block);
CUresult new_block_of_pool(struct pool *pool, size_t size, struct block **block);
CUresult import_block(struct pool *pool, uint64_t offset, size_t size, struct block **block);
CUresult open_block(int file, size_t size, int device, struct block **block);
struct block *next_block(int *i); // in order, freed ones included; null at the end
struct block *find_block(CUdeviceptr address);
struct block *find_numbered(CUdeviceptr address, unsigned long number);
CUresult block_to_free(CUdeviceptr address, struct block **block);
void release_block(struct block *block);
void free_blocks(struct context *context);
void count_blocks(int *blocks, size_t *bytes);
void insert_block(struct block *block); // one that has its mappings
void remember_freed(struct block *block);
int make_room(enum kind kind, size_t size, int device);
unsigned long next_number(void);

// physical.c
enum { granularity = 2 << 20 }; // bytes
// Memory, mapped or not. It lasts while it is mapped, while somebody has the handle, or, in another
// process, a descriptor of its file.
struct physical {
  struct physical *next;
  CUmemGenericAllocationHandle handle;
  int device, file, handles, mappings, shared;
  size_t size;
};
CUresult find_memory(CUmemGenericAllocationHandle handle, struct physical **memory);
void end_unused(struct physical *memory);
void count_physical(int *count, size_t *bytes);

// virtual.c
struct mapping {
  CUdeviceptr address;
  size_t size;
  struct physical *memory;
  unsigned access, writable; // devices
};
const struct mapping *mapping_at(const struct block *block, CUdeviceptr address);
int is_mapped(const struct block *block, CUdeviceptr address, size_t size, unsigned access);
int is_writable(const struct block *block, CUdeviceptr address, size_t size, unsigned access);

// spans.c
CUresult make_span(struct span *span, CUdeviceptr address, size_t size);
char *late_bytes(const struct span *span, const char *what);
int may_reach(struct context *context, const struct block *block, CUdeviceptr address, size_t size);
CUresult check_writable(const struct span *span);
int may_write(struct context *context, const struct block *block, CUdeviceptr address, size_t size);

// pools.c
extern struct pool *pools;
struct pool *new_pool(int device);
void pool_took(struct pool *pool, size_t size);
void pool_gave_back(struct pool *pool, size_t size);
void shrink_pools(int device);
int count_pools(void);
CUresult find_pool(CUmemoryPool handle, struct pool **pool);
void end_pool_if_unused(struct pool *pool);

// files.c
int new_file(const char *kind, int device);
int device_of_file(const char *kind, int descriptor);
int reopened(int process, int descriptor);
void use_part(int file, uint64_t offset, uint64_t size, int use);
int others_use(int file, uint64_t offset, uint64_t size);

// modules.c
struct hamr_host_kernel {
  const char *name;
  unsigned long argument_size;
  void (*run)(const void *argument, unsigned long long thread, unsigned long long threads);
};

struct module {
  struct module *next;
  CUmodule handle;
  char *text;
  int pending; // launches that have yet to run
};

enum { most_parameters = 32, default_shared = 48 << 10, most_shared = 99 << 10 };

// Functions go with their module.
struct function {
  struct function *next;
  CUfunction handle;
  struct module *module;
  const struct hamr_host_kernel *kernel; // null without a host version
  const struct user_kernel *user;        // likewise
  int parameters, dynamic, most_threads; // of a block
  size_t sizes[most_parameters];
};
extern struct function *functions;
enum { most_threads_of_block = 1024 };
enum { late_kernel = 8 }; // the function that emulator_kernel launches, as far as anybody asks
int count_modules(void);
CUresult find_function(CUfunction handle, struct function **function);

// user_kernels.c
struct threads {
  unsigned grid[3], block[3];
};
enum { user_parameters = 8 };
struct user_kernel {
  const char *name;
  size_t sizes[user_parameters]; // of its parameters; zero ends them
  void (*run)(const struct threads *threads, const void *const *arguments);
};
const struct user_kernel *find_user_kernel(const char *name, int count, const size_t *sizes);

// kernels.c
CUresult run_on_device(struct context *context, void (*kernel)(void *), void *argument);

#endif
