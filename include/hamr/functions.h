/* What C, C++ and the Python extension say to hamr's Go core: one description of an
 * array, and one table of functions. They may be called from any thread, with or without
 * Python's lock, which those that may wait for a device should not be called with.
 *
 * An extension module of Python gets the table by
 *     PyCapsule_Import("hamr._native.functions", 0)
 * which is a hamr_get_functions *. It is asked anew after a fork, since a child has
 * another copy of the core. */
#ifndef HAMR_FUNCTIONS_H
#define HAMR_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "hamr/allocators.h"
#include "hamr/kernels.h"
#include "hamr/records.h"
#include "hamr/types.h"

#define HAMR_ABI_VERSION 24
#define HAMR_MAX_DIMENSIONS 64

#define HAMR_HOST_DEVICE (-1)
#define HAMR_EVERY_STREAM UINT64_MAX /* for leave: backends.EveryStream */
#define HAMR_READ_ONLY 1u
#define HAMR_REACHABLE(space) (2u << (space)) /* code in the space can touch the memory in place */
#define HAMR_HOST_REACHABLE HAMR_REACHABLE(HAMR_HOST)

#define HAMR_MAPPED 0x10000u /* the host's view of memory that a device has again when its last reference goes */
#define HAMR_KEPT 0x20000u /* of an array: what access makes of it is kept, and handed out again until it changes.
                            * Of its result: that is others', too, and must not be written to */
#define HAMR_GROWS 0x40000u /* the array may grow where it is; a view of it, which is a copy of the struct, must not */
#define HAMR_SOLE 0x80000u /* of a growing array, as an argument: nobody else has its memory */
#define HAMR_OR_PAGEABLE 0x100000u /* of an array: where page-locked memory runs out, what is made of the array may lie
                                    * in ordinary host memory; its allocator then says so */
#define HAMR_PROMPT 0x200000u /* of the first array of access, open_access, read, write_elements, append, assign,
                               * set_elements, copy_many, move, copy, text and end_access: a call that would take
                               * longer than 50 ms returns a HAMR_BUSY. All arguments must stay where they are until
                               * proceed or stop has told the outcome */

#define HAMR_IN_ORDER 0x400000u /* of the array of access and open_access: elements that do not lie one after the
                                 * other in C order are handed out in a temporary */

#define HAMR_OWN_WORK 2u /* in marks: clear only while no work of hamr's is pending */
#define HAMR_WRITTEN_LATE 4u /* in marks: a device may have yet to write to memory of the host's */

enum { HAMR_MODE_READ, HAMR_MODE_WRITE, HAMR_MODE_READ_WRITE }; /* gobuffer.Mode */

enum { HAMR_ALLOCATOR_SAME = -2, HAMR_ALLOCATOR_ANY = -1, HAMR_ALLOCATORS = 32 /* the most that there may be */ };

/* An array in some memory. Whoever holds the struct owns `memory`, one reference in the
 * Go core; 0 means that the core does not know it (yet). */
typedef struct hamr_array {
    uint64_t memory;     /* token of the Go core's reference */
    uint64_t base;       /* where the allocation starts */
    uint64_t size;       /* bytes in the allocation */
    uint64_t pointer;    /* where element zero is */
    int64_t capacity;    /* elements that fit from pointer on */
    uint64_t stream;
    uint64_t marks;      /* address of a uint32_t that is 0 only while no work is
                          * pending on the memory; 0: the core does not know it */
    int32_t allocator;   /* backends.Allocator */
    int32_t device;      /* owner, or HAMR_HOST_DEVICE */
    int32_t element;     /* hamr_element_type */
    int32_t transfer;    /* gobuffer.Transfer */
    uint32_t flags;
    int32_t ndim;
    int32_t stream_of;   /* an allocator of the runtime that stream is of, where that of the memory does not say */
    uint32_t holder;     /* the access that the elements are from, or 0: what open_access's result says */
    int64_t *shape;      /* ndim entries */
    int64_t *strides;    /* ndim entries, bytes */
} hamr_array;

/* What C may know of CUDA without asking Go. All but the addresses of numbers are zero until CUDA was first used. */
typedef struct hamr_devices {
    int32_t cuda_count;
    int (*cuda_current)(int *device); /* cuCtxGetDevice */
    /* cuPointerGetAttributes */
    int (*cuda_attributes)(unsigned count, int *attributes, void **values, uint64_t pointer);
    int (*cuda_context)(void **context);                     /* cuCtxGetCurrent */
    int (*cuda_set)(void *context);                          /* cuCtxSetCurrent */
    int (*cuda_query)(uint64_t stream);                      /* cuStreamQuery */
    int (*cuda_capturing)(uint64_t stream, int *status);     /* cuStreamIsCapturing, or NULL */
    int (*cuda_event)(void **event, unsigned flags);         /* cuEventCreate */
    int (*cuda_record)(void *event, uint64_t stream);        /* cuEventRecord */
    int (*cuda_done)(void *event);                           /* cuEventQuery */
    int (*cuda_wait)(uint64_t stream, void *event, unsigned flags); /* cuStreamWaitEvent */
    int (*cuda_download)(void *target, uint64_t source, size_t size); /* cuMemcpyDtoH, or NULL: leave it to the core */
    void *const volatile *cuda_contexts; /* the devices' primary contexts; NULL: the core has not used the device */
    uint64_t kept;    /* where 64 bits count the temporaries kept for HAMR_KEPT, whose bytes may change */
    uint64_t tracing; /* where 64 bits are that are not zero while the core tells what it does */
    int (*cuda_launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                       unsigned block_y, unsigned block_z, unsigned shared, uint64_t stream, void **arguments,
                       void **extra); /* cuLaunchKernel */
    uint64_t accesses; /* where it is counted, in 64 bits, how many accesses are open: see open_access */
    uint64_t pausable; /* where 64 bits are that are not zero while memory of CUDA's may be paused */
} hamr_devices;

/* Called by the core, from any thread, when it has no more use for foreign memory that was adopted under this key. */
typedef void (*hamr_finished_function)(uint64_t key);

/* What went wrong, as hamr's Python exceptions tell it. */
typedef enum {
    HAMR_VALUE_ERROR = 1,
    HAMR_TYPE_ERROR,
    HAMR_INDEX_ERROR,
    HAMR_OUT_OF_MEMORY,   /* size: the bytes that were asked for; code: the device, or HAMR_HOST_DEVICE; source: the
                           * allocator; name: "limit" where hamr's own limit is reached */
    HAMR_UNAVAILABLE,     /* a runtime is absent. source: its backend; tried: what was looked for */
    HAMR_DEVICE_ERROR,    /* source: the vendor's interface; name and code: the vendor's own */
    HAMR_FREED,           /* memory that was given back */
    HAMR_FORKED,          /* something of the process that this one was forked from */
    HAMR_INTERNAL_ERROR,  /* a defect in hamr. stack: where */
    HAMR_IN_USE,          /* elements that open_access gave to somebody else */
    HAMR_OUT_OF_RANGE,    /* a number that an element type does not hold */
    HAMR_PAUSED,          /* memory whose tag is paused. name: the tag */
    HAMR_ERROR_KIND_COUNT,
    HAMR_BUSY,            /* no error: the call goes on, see HAMR_PROMPT. size: the operation, for proceed and stop */
    HAMR_INTERRUPTED      /* of Python's extension alone: a handler of a signal has raised an exception */
} hamr_error_kind;

/* Attributes that a kind does not have are zero. */
typedef struct hamr_error {
    int32_t kind; /* hamr_error_kind, or one of hamr/store_functions.h */
    int32_t code;
    int64_t size;
    const char *message; /* UTF-8, as are all texts */
    const char *source;
    const char *name;
    const char *const *tried; /* ends with NULL */
    const char *stack;
    int64_t limit, used, count; /* of a store that is full, and how many holders there are */
    const struct hamr_holder *holders;
} hamr_error;

/* Makes an error the exception of the calling thread, and frees it. */
typedef void (*hamr_raise_function)(hamr_error *error);

/* Functions that may fail return NULL, or an error to be given to free(). What they set is meant only where they did
 * not fail. Whatever else they give out, texts and structs, goes to free(), too, each as a whole. A device of -1 is the
 * calling thread's current one. */
typedef struct hamr_functions {
    uint32_t version;
    void (*free)(void *given);

    /* Memory. */

    /* Takes allocator, device, element, stream, transfer, ndim and shape, and sets the rest. value, if not NULL, is one
     * element of type value_element that the new elements hold. */
    hamr_error *(*create)(hamr_array *array, void *value, int32_t value_element);
    /* create without a value, where the memory is there and nobody is waited for: not the
     * driver, nor a thread that the driver may keep waiting. Else 0, and nothing has happened. */
    int32_t (*create_at_once)(hamr_array *array);
    /* create without a value, of memory of a caching allocator of the core's, by its number. It goes back
     * there with the last reference, in the order of the streams that the core knows to use it. */
    hamr_error *(*create_cached)(uint64_t allocator, hamr_array *array);
    /* Makes array->memory a reference to memory that exists. key 0: it came from
     * array->allocator and is freed there; else it is foreign. */
    hamr_error *(*adopt)(hamr_array *array, uint64_t key, hamr_finished_function finished);
    /* adopt for memory of a device. array->allocator HAMR_ALLOCATOR_ANY: the runtimes are asked whose it is. What uses
     * the memory through hamr runs after what the owner's stream holds now, unless that is 0. */
    hamr_error *(*adopt_device)(hamr_array *array, uint64_t key, hamr_finished_function finished, uint64_t producer);
    /* Drops a reference. Safe from any thread, with or without the GIL. */
    void (*release)(uint64_t memory);
    /* release where nobody is waited for; else 0, and the reference is still there. */
    int32_t (*release_at_once)(uint64_t memory);
    /* Makes everybody who uses the memory, and its release, run after what a stream holds now, which nobody will name
     * any more; HAMR_EVERY_STREAM: the release of memory that is freed in stream order waits for all that the device
     * does then, which may take long. */
    hamr_error *(*leave)(uint64_t memory, uint64_t stream);
    /* leave for destructors. */
    void (*release_after)(uint64_t memory, uint64_t stream);
    int64_t (*live_references)(void);
    /* Which memory an address is. */
    hamr_error *(*locate)(uint64_t address, hamr_location *found);
    /* The C function that frees memory of a host allocator, or NULL. */
    void *(*free_function)(int32_t allocator);

    /* Where the elements are, and the order of work on them. */

    /* Describes at result where code in a space can touch the elements. */
    hamr_error *(*access)(hamr_array *array, int32_t space, int32_t device, hamr_array *result);
    /* Says that the elements were written to by others than hamr, or that none of the
     * temporaries of them is to be kept any longer. */
    hamr_error *(*changed)(hamr_array *array);
    /* access for code that reads the elements (mode HAMR_MODE_READ), writes all of them, or
     * reads and writes. They are its own until end_access. */
    hamr_error *(*open_access)(hamr_array *array, int32_t space, int32_t device, int32_t mode, hamr_array *result,
                               uint64_t *access);
    /* Ends an access. With commit, what was written to a temporary becomes the array's
     * elements; what the stream of open_access's result holds then is done before. stream_over:
     * that stream is no more. Where memory ran out for a commit the access goes on. array is what
     * open_access was given, and used what it has described; both may be NULL. */
    hamr_error *(*end_access)(uint64_t access, int32_t commit, int32_t stream_over, hamr_array *array,
                              hamr_array *used);
    /* Copies elements to ordinary host memory of size bytes, in C order, and sets
     * done; where that takes more than one copy of bytes, nothing happens. */
    hamr_error *(*read)(hamr_array *array, void *target, int64_t size, int32_t *done);
    /* Makes the elements those at source, ordinary host memory of size bytes in C order that may be changed at return,
     * and sets done; where that takes more than one copy of bytes, nothing happens. */
    hamr_error *(*write_bytes)(hamr_array *array, const void *source, int64_t size, int32_t *done);
    /* What a code of cuda_download stands for. */
    hamr_error *(*download_failed)(int code);
    /* Sets stream to one that covers all work pending on the elements, or 0. */
    hamr_error *(*covering)(hamr_array *array, uint64_t *stream);
    /* Makes what is enqueued on a stream of the memory's device from now on run after
     * all work pending on the elements. */
    hamr_error *(*order_before)(hamr_array *array, uint64_t stream);
    /* Waits until no work is pending on the elements, but at most for some
     * milliseconds, and sets whether that is so. */
    hamr_error *(*wait_array)(hamr_array *array, int64_t milliseconds, int32_t *over);
    /* Waits for all work on the elements, and tells what went wrong on the device. */
    hamr_error *(*synchronize)(hamr_array *array);

    /* Contents. What is described at becomes is what the array becomes: its shape and strides have room for
     * HAMR_MAX_DIMENSIONS entries, and its memory is array's own reference, or a new one; so has result, of
     * a new array. value is an array of one element, or NULL. Python's extension has each that has becomes. */

    /* Makes room for n elements; new room holds value, if that is not NULL. */
    hamr_error *(*reserve)(hamr_array *array, int64_t n, hamr_array *value, hamr_array *becomes);
    /* Holds the elements of a shape; new ones hold value, if that is not NULL. */
    hamr_error *(*resize)(hamr_array *array, int32_t ndim, const int64_t *shape, hamr_array *value,
                          hamr_array *becomes);
    /* Adds the elements of other behind the last. */
    hamr_error *(*append)(hamr_array *array, hamr_array *other, hamr_array *becomes);
    /* Becomes the contents and shape of other. */
    hamr_error *(*assign)(hamr_array *array, hamr_array *other, hamr_array *becomes);
    /* Writes n elements of other, from start on, from element at on. */
    hamr_error *(*set_elements)(hamr_array *array, int64_t at, hamr_array *other, int64_t start, int64_t n,
                                hamr_array *becomes);
    /* Sets every element from other, broadcast. */
    hamr_error *(*write_elements)(hamr_array *array, hamr_array *other, hamr_array *becomes);
    /* Sets every element to the single one of value. */
    hamr_error *(*fill)(hamr_array *array, hamr_array *value, hamr_array *becomes);
    /* Takes the contents to other memory. */
    hamr_error *(*move)(hamr_array *array, int32_t allocator, int32_t device, hamr_array *becomes);
    /* write_elements for count pairs, one after the other, in as few steps as their runtimes can do it. All
     * are checked before anything is copied. transfer: -1 is each destination's own. With indices, which are both NULL
     * or neither, it is destination[destination_index[k]] = source[source_index[k]] for all k, of each pair. */
    hamr_error *(*copy_many)(int64_t count, hamr_array *const *destinations, hamr_array *const *sources,
                             hamr_array *destination_index, hamr_array *source_index, int32_t transfer);
    /* A new array with the same elements, converted. HAMR_ALLOCATOR_SAME: array's. */
    hamr_error *(*copy)(hamr_array *array, int32_t allocator, int32_t device, int32_t element, hamr_array *result);
    /* The elements in another shape, of which one size may be -1. copying: 0 where it
     * must be, 1 never, 2 always. Sets whether the result is a view. */
    hamr_error *(*reshape)(hamr_array *array, int32_t ndim, const int64_t *shape, int32_t copying, hamr_array *result,
                           int32_t *view);
    /* The elements as HAMR prints them, shortened beyond limit. */
    hamr_error *(*text)(hamr_array *array, int64_t limit, char **text);

    /* What other processes have in place, without a server: docs/sharing.md. */

    /* Makes what others open elements by whose work is over. */
    hamr_error *(*share_elements)(hamr_array *array, hamr_sharing *sharing);
    /* Describes at result what a frame and its descriptors are of, which stay the caller's. Its memory, which
     * is no token's, is there until end_elements. */
    hamr_error *(*open_elements)(const void *frame, int64_t bytes, int32_t count, const int32_t *descriptors,
                                 hamr_array *result, hamr_opened_elements *opened);
    /* A device's ends soon. */
    void (*end_elements)(uint64_t token);
    /* Makes sockets for the next share_elements ahead, for a moment that nobody waits for. */
    void (*prepare_share)(void);

    /* Streams and events of a backend, such as "cuda". */

    hamr_error *(*new_stream)(const char *backend, int32_t device, uint64_t *stream);
    /* Ends a stream; its work still runs. */
    hamr_error *(*destroy_stream)(const char *backend, int32_t device, uint64_t stream);
    /* Makes all memory do without a stream, and sets whether it may end then: not while another thread's call is using
     * it. over is zero before for a stream that may have ended already, of which nothing is asked. */
    hamr_error *(*retire_stream)(uint64_t stream, int32_t *over);
    /* Sets a stream that means the same from every thread. */
    hamr_error *(*resolve_stream)(const char *backend, int32_t device, uint64_t stream, uint64_t *resolved);
    /* Sets the device of a stream, -2 if the backend knows of none such, -1 if that cannot be told. */
    hamr_error *(*stream_device)(const char *backend, uint64_t stream, int32_t *device);
    hamr_error *(*stream_idle)(const char *backend, int32_t device, uint64_t stream, int32_t *idle);
    /* As wait_array. */
    hamr_error *(*wait_stream)(const char *backend, int32_t device, uint64_t stream, int64_t milliseconds,
                               int32_t *over);
    /* Makes later work on a stream wait for an event. */
    hamr_error *(*stream_wait_event)(const char *backend, int32_t device, uint64_t stream, uint64_t event);
    /* Makes an event that stands for the work on a stream so far. */
    hamr_error *(*record_event)(const char *backend, int32_t device, uint64_t stream, uint64_t *event);
    /* record_event for one that keeps the time. */
    hamr_error *(*record_timed_event)(const char *backend, int32_t device, uint64_t stream, uint64_t *event);
    /* Sets how much later the second of two such events was reached than the first, less than
     * zero if it was earlier. Both must be done. */
    hamr_error *(*elapsed)(const char *backend, int32_t device, uint64_t from, uint64_t to, int64_t *nanoseconds);
    hamr_error *(*destroy_event)(const char *backend, int32_t device, uint64_t event);
    hamr_error *(*event_done)(const char *backend, int32_t device, uint64_t event, int32_t *done);
    hamr_error *(*wait_event)(const char *backend, int32_t device, uint64_t event, int64_t milliseconds, int32_t *over);

    /* Streams and events that are kept for reuse, and handed out only when what was enqueued there is
     * over. Those who take one give it back; its work may still run then. */

    hamr_error *(*take_cached_stream)(const char *backend, int32_t device, uint64_t *stream);
    hamr_error *(*give_cached_stream)(const char *backend, int32_t device, uint64_t stream);
    /* Takes an event, which stands for the work on a stream so far. */
    hamr_error *(*record_cached_event)(const char *backend, int32_t device, uint64_t stream, uint64_t *event);
    /* made is how many such events the caller has made of itself since it last said so, if any; then
     * event may be 0: none. */
    hamr_error *(*give_cached_event)(const char *backend, int32_t device, uint64_t event, int32_t made);
    /* give_cached_event of one whose work has failed, which the caller was told. */
    hamr_error *(*drop_cached_event)(const char *backend, int32_t device, uint64_t event, int32_t made);
    /* Makes later work on a stream wait for an event of a device of the same backend's, and sets whether it
     * does: not where the event is done. */
    hamr_error *(*wait_for_event)(const char *backend, int32_t device, uint64_t stream, int32_t event_device,
                                  uint64_t event, int32_t *waits);

    /* Kernels that users bring as code for a backend's devices. */

    /* Sets a module of code, which need not last, for close_module. */
    hamr_error *(*open_module)(const char *backend, const void *image, int64_t size, uint64_t *module);
    /* Ends a module and its kernels. What was launched goes on; the code is unloaded when it is over. */
    hamr_error *(*close_module)(uint64_t module);
    /* Loads the code into a device, if it is not there yet, and tells of a kernel. */
    hamr_error *(*get_kernel)(uint64_t module, const char *name, int32_t device, hamr_kernel **kernel);
    /* Runs a kernel on a stream of its device, after all work on the elements of its arguments, and has later
     * work on them run after it. Values are read before it returns. may_end: the stream may end before the
     * module without retire_stream. */
    hamr_error *(*launch)(uint64_t kernel, hamr_shape *shape, uint64_t stream, int32_t may_end, int32_t count,
                          hamr_argument *arguments);
    /* Says, before the first one, that the caller launches the kernel on a stream by itself. */
    hamr_error *(*launched)(uint64_t kernel, uint64_t stream);
    /* Compiles text for a device: by NVRTC, or hipRTC. */
    hamr_error *(*compile)(const char *backend, hamr_source *source, hamr_code **code);

    /* Devices. */

    hamr_error *(*device_count)(const char *backend, int32_t *count);
    hamr_error *(*current_device)(const char *backend, int32_t *device);
    /* Makes a device current for the calling thread; before is for restore. */
    hamr_error *(*activate)(const char *backend, int32_t device, uint64_t *before);
    hamr_error *(*restore)(const char *backend, uint64_t before);
    /* activate, of a backend whose threads have a current device; else it does nothing, and has is 0. */
    hamr_error *(*activate_if_current)(const char *backend, int32_t device, uint64_t *before, int32_t *has);
    hamr_error *(*can_access)(const char *backend, int32_t from, int32_t to, int32_t *can);
    /* Lets a device reach another one's memory; twice is no error. */
    hamr_error *(*enable_peer)(const char *backend, int32_t from, int32_t to);
    /* Takes one enable_peer back; nothing, if there is none. */
    hamr_error *(*disable_peer)(const char *backend, int32_t from, int32_t to);
    /* In bytes. */
    hamr_error *(*memory_info)(const char *backend, int32_t device, int64_t *free, int64_t *total);
    /* Names and texts, in turn. */
    hamr_error *(*describe)(const char *backend, int32_t device, hamr_strings **facts);

    /* Replies of several values: what Python asks for. It is told here what a row has. */

    /* What memory is in use, what was recorded of it, and how pools are divided. A row begins with a letter: a, of an
     * allocation: library, allocator, device, address, bytes, stream, thread, nanoseconds since 1970, stack; e, of an
     * event: its action, and the same; d: how many events were dropped; s, of a segment: allocator, device, address,
     * bytes; and behind that b, of each of its blocks: address, bytes, whether somebody has it. */
    hamr_error *(*memory_snapshot)(hamr_rows **found);
    /* Of Track's number: bytes and number of the allocations so far, bytes freed, and by how many bytes there were more
     * in use at most than at the start. last ends it. */
    hamr_error *(*read_tracker)(uint64_t number, int32_t last, hamr_rows **found);
    /* Library, backend or "", device, most bytes in use. */
    hamr_error *(*library_limits)(hamr_rows **found);
    /* Who has memory: library, allocator, device, number of allocations, bytes in them. */
    hamr_error *(*library_totals)(hamr_rows **found);
    /* Of each pool of memory that is kept for reuse: allocator, device, limit or -1, the bytes in use, taken at most,
     * kept and side by side, hits and misses. */
    hamr_error *(*pools)(hamr_rows **found);
    /* Pausable memory: tag, device or -1, bytes, whether it is paused, what is kept, page-locked bytes of the tag. */
    hamr_error *(*pausable_memory)(hamr_rows **found);
    /* Looks at all memory that is kept, and gives what found_misuse does. */
    hamr_error *(*check_memory)(hamr_rows **found);
    /* Wrong uses of memory that were found since the last call: library, allocator, device, address, bytes, stream,
     * offset, bytes written to, the first one's value; thread, nanoseconds since 1970 and stack, of the allocation, of
     * the release and of the second one; the same with stream and access of work, and of work before that; the names
     * of both. What is not there is zeros and "". The last row is how many more there were. */
    hamr_error *(*found_misuse)(hamr_rows **found);
    /* Ends the check, and gives what found_misuse does. */
    hamr_error *(*stop_checking)(hamr_rows **found);
    /* Of each backend its name and "", or why its work is not looked at. */
    hamr_error *(*observed_by_checking)(hamr_rows **found);
    /* Waits for somebody who asks for a thread's stack: a number for AnswerStack, and the thread. */
    hamr_error *(*asked_for_stack)(int64_t milliseconds, hamr_rows **found);
    /* How far into its allocation an address is, and a text by which other processes open the allocation. */
    hamr_error *(*export_memory)(int32_t allocator, int32_t device, uint64_t address, hamr_rows **found);
    /* The devices that work may run on: those that a list with commas names or, where that is empty, HAMR_ACCELERATORS.
     * distinct leaves out those that another runtime before them shows, too. */
    hamr_error *(*accelerators)(const char *among, int32_t distinct, hamr_rows **found);
    /* Of a new allocator that keeps memory for reuse: its number, and which allocator's memory that is: the one given
     * or, if that is -1, what is preferred on the device. limit 0 is CMSSW's rule, -1 none. */
    hamr_error *(*new_caching_allocator)(int32_t allocator, const char *backend, int32_t device, int32_t pinned,
                                         int64_t limit, hamr_rows **made);
    /* The numbers of hetero.AllocatorStatistics. */
    hamr_error *(*caching_statistics)(uint64_t number, hamr_rows **found);
    /* Of each device whose streams or events scheduling has used: its name, and of streams and of events how many there
     * are, are kept and are handed out, and how often one kept was. */
    hamr_error *(*cached_places)(hamr_rows **found);
    /* What decides about copies between a device and ordinary host memory: a name, a value and where that is from. */
    hamr_error *(*staging_report)(const char *backend, int32_t device, hamr_rows **found);
    /* Of each property of a device its name and its value. */
    hamr_error *(*device_properties)(const char *backend, int32_t device, hamr_rows **found);
    /* What NVIDIA's management library says of itself, by a name: driver, nvml, cuda, count or library. */
    hamr_error *(*nvml_system)(const char *what, hamr_rows **found);
    /* The same of a device. counted asks only between NVMLInit and NVMLShutdown; else the library is initialised for
     * hamr itself. */
    hamr_error *(*nvml_device)(int32_t counted, const char *device, const char *what, hamr_rows **found);
    /* The name of a status, and what it means. */
    hamr_error *(*nvml_status)(int32_t code, hamr_rows **found);
    /* The lines kept since the last call. */
    hamr_error *(*take_log)(hamr_rows **found);

    /* What HAMR_PROMPT was asked of. */

    /* Waits for an operation, and returns its outcome or, after 50 ms, a HAMR_BUSY. */
    hamr_error *(*proceed)(uint64_t operation);
    /* Asks an operation to end, waits until it has and returns its outcome: an error, unless it was
     * done before. What it was to write is unspecified then, and it uses nothing any more that it was
     * given. It does not wait for what was enqueued before the operation, unless a driver does. */
    hamr_error *(*stop)(uint64_t operation);

    /* The library as a whole. */

    const char *(*library_version)(void);
    /* Their names. */
    hamr_error *(*backends)(hamr_strings **names);
    hamr_error *(*backend)(const char *name, hamr_backend **found);
    /* The best allocator on this machine for the host, or else for devices. */
    hamr_error *(*preferred_allocator)(int32_t for_host, int32_t *allocator);
    /* The element type of a NumPy name, a typestr or a short code. */
    hamr_error *(*parse_element)(const char *name, int32_t *element);
    /* The element type of a DLDataType. */
    hamr_error *(*parse_dlpack)(int32_t code, int32_t bits, int32_t lanes, int32_t *element);
    /* Applies the rules of the array interface, and sets the element type. */
    hamr_error *(*check_interface)(const hamr_interface *interface, int32_t *element);
    /* Fills rows, one for each allocator that was used, and returns their count: HAMR_ALLOCATOR_COUNT at most. */
    int32_t (*statistics)(hamr_statistics *rows, int32_t room);
    void (*reset_peaks)(void);
    /* Gives back temporaries that are kept and what could not be released yet, and to the
     * system what is kept for reuse. */
    hamr_error *(*trim)(void);
    /* Sets what an environment variable of hamr's is taken for. */
    hamr_error *(*configure)(const char *name, const char *value);
    /* 0: no trace, 1: on standard error, 2: kept for take_log. */
    hamr_error *(*set_verbose)(int32_t level);
    /* What makes exceptions of the errors of functions that Python calls. */
    void (*set_raise)(hamr_raise_function raise);

    const hamr_devices *devices;
    const struct hamr_store_functions *store; /* see hamr/store_functions.h */
} hamr_functions;

/* The table of this process's copy of the core; NULL if its version is not that. */
typedef const hamr_functions *hamr_get_functions(uint32_t version);

#endif
