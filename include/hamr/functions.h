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
#include "hamr/types.h"

#define HAMR_ABI_VERSION 20
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
#define HAMR_OR_PAGEABLE 0x100000u /* of an array: where there is no more page-locked memory to be had, what is made of it
                                   * may lie in ordinary host memory, as its allocator then says */
#define HAMR_PROMPT 0x200000u /* of the first array of access, open_access, read, write, append, assign, set, copy_many, move,
                              * copy and text, and of end_access's: a call that would take longer than 50 ms returns a HAMR_BUSY.
                              * All that it was given must stay where it is until proceed or stop has told the outcome */

#define HAMR_IN_ORDER 0x400000u /* of the array of access and open_access: elements that do not lie one after the other in
                                * C order are handed out in a temporary */

#define HAMR_OWN_WORK 2u /* in marks: clear only while no work of hamr's is pending */

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

/* What C may know of CUDA without asking Go. All zero until CUDA was first used. */
typedef struct hamr_devices {
    int32_t cuda_count;
    int (*cuda_current)(int *device); /* cuCtxGetDevice */
    int (*cuda_attributes)(unsigned count, int *attributes, void **values, uint64_t pointer); /* cuPointerGetAttributes */
    int (*cuda_context)(void **context);                     /* cuCtxGetCurrent */
    int (*cuda_set)(void *context);                          /* cuCtxSetCurrent */
    int (*cuda_query)(uint64_t stream);                      /* cuStreamQuery */
    int (*cuda_capturing)(uint64_t stream, int *status);     /* cuStreamIsCapturing, or NULL */
    int (*cuda_event)(void **event, unsigned flags);         /* cuEventCreate */
    int (*cuda_record)(void *event, uint64_t stream);        /* cuEventRecord */
    int (*cuda_done)(void *event);                           /* cuEventQuery */
    int (*cuda_wait)(uint64_t stream, void *event, unsigned flags); /* cuStreamWaitEvent */
    int (*cuda_download)(void *target, uint64_t source, size_t size); /* cuMemcpyDtoH, or NULL: leave it to the core */
    void *const volatile *cuda_contexts; /* the devices' primary contexts; NULL where the core has not used the device */
    uint64_t kept;    /* where it is counted, in 64 bits, how many temporaries the core keeps for HAMR_KEPT, which may be of bytes that change */
    uint64_t tracing; /* where 64 bits are that are not zero while the core tells what it does */
    int (*cuda_launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                       unsigned shared, uint64_t stream, void **arguments, void **extra); /* cuLaunchKernel */
    uint64_t accesses; /* where it is counted, in 64 bits, how many accesses are open: see open_access */
} hamr_devices;

/* Called by the core, from any thread, when it has no more use for foreign
 * memory that was adopted under this key. */
typedef void (*hamr_finished_function)(uint64_t key);

/* What went wrong, as hamr's Python exceptions tell it. */
typedef enum {
    HAMR_VALUE_ERROR = 1,
    HAMR_TYPE_ERROR,
    HAMR_INDEX_ERROR,
    HAMR_OUT_OF_MEMORY,   /* size: the bytes that were asked for; code: of which device, or HAMR_HOST_DEVICE; source: the allocator; name: "limit" where hamr's own is reached */
    HAMR_UNAVAILABLE,     /* a runtime is absent. source: its backend; tried: what was looked for */
    HAMR_DEVICE_ERROR,    /* source: the vendor's interface; name and code: the vendor's own */
    HAMR_FREED,           /* memory that was given back */
    HAMR_FORKED,          /* something of the process that this one was forked from */
    HAMR_INTERNAL_ERROR,  /* a defect in hamr. stack: where */
    HAMR_IN_USE,          /* elements that open_access gave to somebody else */
    HAMR_OUT_OF_RANGE,    /* a number that an element type does not hold */
    HAMR_ERROR_KIND_COUNT,
    HAMR_BUSY,            /* no error: what HAMR_PROMPT was asked of goes on. size: the operation, for proceed and stop */
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

typedef struct hamr_strings {
    int64_t count;
    const char *const *items;
} hamr_strings;

/* What a runtime knows of an address. */
typedef struct hamr_location {
    uint64_t base;     /* where the allocation starts; 0: the runtime cannot tell */
    int64_t size;      /* bytes in it; 0: the runtime cannot tell */
    int32_t allocator; /* HAMR_ALLOCATOR_ANY: no runtime knows the memory */
    int32_t device;
} hamr_location;

typedef struct hamr_backend {
    const char *name;
    const char *reason;            /* why it is not available, or NULL */
    const char *const *tried;      /* what was looked for then; ends with NULL */
    const char *const *allocators; /* ends with NULL */
    int32_t available;
    int32_t device_count;
} hamr_backend;

typedef struct hamr_statistics {
    int32_t allocator;
    int32_t reserved;
    int64_t live;    /* allocations */
    int64_t current; /* bytes in them */
    int64_t peak;
    int64_t made;
    int64_t adopted; /* foreign memory in use */
    int64_t kept;    /* bytes in temporaries that are kept, see HAMR_KEPT */
    int64_t reused;  /* how often one was handed out again */
} hamr_statistics;

/* Makes an error the exception of the calling thread, and frees it. */
typedef void (*hamr_raise_function)(hamr_error *error);

/* What an __array_interface__ or __cuda_array_interface__ says. */
typedef struct hamr_interface {
    const char *typestr;
    const int64_t *shape;
    const int64_t *strides; /* NULL: C order */
    uint64_t pointer;
    int64_t offset;
    int64_t length; /* bytes in the buffer that data is; -1: data is a pointer */
    int64_t version;
    int64_t shape_length;
    int64_t strides_length;
    int32_t masked;
    int32_t reserved;
} hamr_interface;

#define HAMR_LONGEST_FRAME 4096 /* bytes; gobuffer's maximumFrame */
#define HAMR_FRAME_DESCRIPTORS 2

/* How elements are shared with other processes, and then what these open them by. */
typedef struct hamr_sharing {
    uint64_t opened;    /* the token of what open_elements has opened that they are of, or 0 */
    uint64_t stored;    /* that of a store's object that they are of, or 0 */
    int32_t copying;    /* gobuffer.Copying */
    int32_t read_only;  /* whether it is asked for, and then whether it is so */
    int32_t copied;     /* the other processes get a copy */
    int32_t lent;       /* memory is lent by the last descriptor: prepare_share is of use */
    int32_t count;      /* of descriptors, which are the caller's to close */
    int32_t descriptors[HAMR_FRAME_DESCRIPTORS];
    int32_t waits;      /* asks for the work on the elements to be waited for, which else is over */
    int64_t bytes;      /* in frame */
    unsigned char frame[HAMR_LONGEST_FRAME];
} hamr_sharing;

/* What was opened of another process's. */
typedef struct hamr_opened_elements {
    uint64_t token; /* for end_elements; 0: there are no elements */
    int32_t lease;  /* a descriptor that a forked child is to close, or -1 */
    int32_t reserved;
} hamr_opened_elements;

/* Functions that may fail return NULL, or an error to be given to free(). What they set
 * is meant only where they did not fail. Whatever else they give out, texts and structs,
 * goes to free(), too, each as a whole. A device of -1 is the calling thread's current
 * one. */
typedef struct hamr_functions {
    uint32_t version;
    void (*free)(void *given);

    /* Memory. */

    /* Takes allocator, device, element, stream, transfer, ndim and shape, and
     * sets the rest. value, if not NULL, is one element of type value_element
     * that the new elements hold. */
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
    /* adopt for memory of a device. array->allocator HAMR_ALLOCATOR_ANY: the
     * runtimes are asked whose it is. What uses the memory through hamr runs after
     * what the owner's stream holds now, unless that is 0. */
    hamr_error *(*adopt_device)(hamr_array *array, uint64_t key, hamr_finished_function finished, uint64_t producer);
    /* Drops a reference. Safe from any thread, with or without the GIL. */
    void (*release)(uint64_t memory);
    /* release where nobody is waited for; else 0, and the reference is still there. */
    int32_t (*release_at_once)(uint64_t memory);
    /* Makes everybody who uses the memory, and its release, run after what a stream
     * holds now, which nobody will name any more; HAMR_EVERY_STREAM: the release of
     * memory that is freed in stream order waits for all that the device does then,
     * which may take long. */
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
    hamr_error *(*open_access)(hamr_array *array, int32_t space, int32_t device, int32_t mode, hamr_array *result, uint64_t *access);
    /* Ends an access. With commit, what was written to a temporary becomes the array's
     * elements; what the stream of open_access's result holds then is done before. stream_over:
     * that stream is no more. Where memory ran out for a commit the access goes on. array is what
     * open_access was given, and used what it has described; both may be NULL. */
    hamr_error *(*end_access)(uint64_t access, int32_t commit, int32_t stream_over, hamr_array *array, hamr_array *used);
    /* Copies elements to ordinary host memory of size bytes, in C order, and sets
     * done; where that takes more than one copy of bytes, nothing happens. */
    hamr_error *(*read)(hamr_array *array, void *target, int64_t size, int32_t *done);
    /* Makes the elements those at source, ordinary host memory of size bytes in C order that
     * may be changed at return, and sets done; where that takes more than one copy of bytes,
     * nothing happens. */
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

    /* Contents. Those with a result describe there what the array becomes: its shape and
     * strides have room for HAMR_MAX_DIMENSIONS entries, and its memory is array's own
     * reference, or a new one. value is an array of one element, or NULL. */

    hamr_error *(*reserve)(hamr_array *array, int64_t n, hamr_array *value, hamr_array *result);
    hamr_error *(*resize)(hamr_array *array, int32_t ndim, const int64_t *shape, hamr_array *value, hamr_array *result);
    hamr_error *(*append)(hamr_array *array, hamr_array *other, hamr_array *result);
    /* Becomes the contents and shape of other. */
    hamr_error *(*assign)(hamr_array *array, hamr_array *other, hamr_array *result);
    /* Writes n elements of other, from start on, from element at on. */
    hamr_error *(*set)(hamr_array *array, int64_t at, hamr_array *other, int64_t start, int64_t n, hamr_array *result);
    /* Sets every element from other, broadcast. */
    hamr_error *(*write)(hamr_array *array, hamr_array *other, hamr_array *result);
    /* write for count pairs, one after the other, in as few steps as their runtimes can do it. All
     * are checked before anything is copied. transfer: -1 is each destination's own. */
    hamr_error *(*copy_many)(int64_t count, hamr_array *const *destinations, hamr_array *const *sources, int32_t transfer);
    hamr_error *(*fill)(hamr_array *array, hamr_array *value, hamr_array *result);
    hamr_error *(*move)(hamr_array *array, int32_t allocator, int32_t device, hamr_array *result);
    /* A new array with the same elements, converted. HAMR_ALLOCATOR_SAME: array's. */
    hamr_error *(*copy)(hamr_array *array, int32_t allocator, int32_t device, int32_t element, hamr_array *result);
    /* The elements in another shape, of which one size may be -1. copying: 0 where it
     * must be, 1 never, 2 always. Sets whether the result is a view. */
    hamr_error *(*reshape)(hamr_array *array, int32_t ndim, const int64_t *shape, int32_t copying, hamr_array *result, int32_t *view);
    /* The elements as HAMR prints them, shortened beyond limit. */
    hamr_error *(*text)(hamr_array *array, int64_t limit, char **text);

    /* What other processes have in place, without a server: docs/sharing.md. */

    /* Makes what others open elements by whose work is over. */
    hamr_error *(*share_elements)(hamr_array *array, hamr_sharing *sharing);
    /* Describes at result what a frame and its descriptors are of, which stay the caller's. Its memory, which
     * is no token's, is there until end_elements. */
    hamr_error *(*open_elements)(const void *frame, int64_t bytes, int32_t count, const int32_t *descriptors, hamr_array *result, hamr_opened_elements *opened);
    /* A device's ends soon. */
    void (*end_elements)(uint64_t token);
    /* Makes sockets for the next share_elements ahead, for a moment that nobody waits for. */
    void (*prepare_share)(void);

    /* Streams and events of a backend, such as "cuda". */

    hamr_error *(*new_stream)(const char *backend, int32_t device, uint64_t *stream);
    /* Ends a stream; its work still runs. */
    hamr_error *(*destroy_stream)(const char *backend, int32_t device, uint64_t stream);
    /* Makes all memory do without a stream, and sets whether it may end then: not while
     * another thread's call is using it. over is zero before for a stream that may have ended
     * already, of which nothing is asked. */
    hamr_error *(*retire_stream)(uint64_t stream, int32_t *over);
    /* Sets a stream that means the same from every thread. */
    hamr_error *(*resolve_stream)(const char *backend, int32_t device, uint64_t stream, uint64_t *resolved);
    /* Sets the device of a stream, -2 if the backend knows of none such, -1 if that
     * cannot be told. */
    hamr_error *(*stream_device)(const char *backend, uint64_t stream, int32_t *device);
    hamr_error *(*stream_idle)(const char *backend, int32_t device, uint64_t stream, int32_t *idle);
    /* As wait_array. */
    hamr_error *(*wait_stream)(const char *backend, int32_t device, uint64_t stream, int64_t milliseconds, int32_t *over);
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
    hamr_error *(*wait_for_event)(const char *backend, int32_t device, uint64_t stream, int32_t event_device, uint64_t event, int32_t *waits);

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
    hamr_error *(*launch)(uint64_t kernel, hamr_shape *shape, uint64_t stream, int32_t may_end, int32_t count, hamr_argument *arguments);
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
    /* Fills rows, one for each allocator that was used, and returns how many there are: HAMR_ALLOCATOR_COUNT at most. */
    int32_t (*statistics)(hamr_statistics *rows, int32_t room);
    void (*reset_peaks)(void);
    /* Gives back temporaries that are kept and what could not be released yet, and to the
     * system what is kept for reuse. */
    hamr_error *(*trim)(void);
    /* Sets what an environment variable of hamr's is taken for. */
    hamr_error *(*configure)(const char *name, const char *value);
    /* 0: no trace, 1: on standard error, 2: kept for take_log. */
    hamr_error *(*set_verbose)(int32_t level);
    /* The lines kept since the last call. */
    char *(*take_log)(void);
    /* What makes exceptions of the errors of functions that Python calls. */
    void (*set_raise)(hamr_raise_function raise);

    const hamr_devices *devices;
    const struct hamr_store_functions *store; /* see hamr/store_functions.h */
} hamr_functions;

/* The table of this process's copy of the core; NULL if its version is not that. */
typedef const hamr_functions *hamr_get_functions(uint32_t version);

#endif
