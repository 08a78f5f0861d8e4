/* What C, C++ and Fortran programs may rely on: types whose layout never changes, and a table of
 * functions that only grows at its end. It includes what every C compiler has, and hamr's lists of
 * allocators and element types. Programs include hamr.h, which finds the table.
 *
 * Every function that returns a hamr_status may be called from any thread, and returns HAMR_OK or what
 * is wrong; hamr_last_error() has the words of the last call, or "" where that succeeded. Only a successful
 * release of something leaves them, so that a program may clean up first. What it sets is meant only where it did not
 * fail, and after an error all is as it was, but for elements that a device was writing. Functions that only
 * read a buffer may run at the same time as each other; who changes one must be alone. */
#ifndef HAMR_INTERFACE_H
#define HAMR_INTERFACE_H

#include <stddef.h>
#include <stdint.h>

#include "hamr/allocators.h"
#include "hamr/types.h"

/* Of the table. A library serves programs of the same version; what its table lacks at the end of
 * theirs fails when it is called. */
#define HAMR_TABLE_VERSION 1u

typedef int32_t hamr_status;

/* The numbers never change; new ones are appended. */
enum {
    HAMR_OK = 0,
    HAMR_ERROR_VALUE = 1,       /* an argument has a value that is not accepted */
    HAMR_ERROR_TYPE = 2,        /* an element type is not accepted */
    HAMR_ERROR_INDEX = 3,       /* elements outside of a buffer */
    HAMR_ERROR_MEMORY = 4,      /* there is no more */
    HAMR_ERROR_UNAVAILABLE = 5, /* a runtime is absent */
    HAMR_ERROR_DEVICE = 6,      /* a vendor's runtime reports it */
    HAMR_ERROR_RELEASED = 7,    /* what was released before, or freed */
    HAMR_ERROR_FORKED = 8,      /* something of the process that this one was forked from */
    HAMR_ERROR_INTERNAL = 9,    /* a defect in hamr */
    HAMR_ERROR_IN_USE = 10,     /* elements that an access has for its own */
    HAMR_ERROR_RANGE = 11,      /* a number that an element type does not hold */
    HAMR_ERROR_PAUSED = 12,     /* memory whose tag is paused */
    HAMR_ERROR_LIBRARY = 64     /* hamr's library was not found, or is too old */
};

/* More of the calling thread's last error; what a kind does not have is zero or NULL. The texts, in
 * UTF-8, are valid until the thread's next error. */
typedef struct hamr_failure {
    hamr_status status;
    int32_t code;        /* the vendor's; of HAMR_ERROR_MEMORY the device, -1 for the host */
    int64_t size;        /* of HAMR_ERROR_MEMORY: the bytes that were asked for */
    const char *message;
    const char *source;  /* the vendor's interface, the backend that is absent, or the allocator */
    const char *name;    /* of the code */
    const char *stack;   /* of HAMR_ERROR_INTERNAL: where */
} hamr_failure;

/* Which movements are over when a call returns: none but those to ordinary host memory, those to the host, all. Memory
 * that somebody has page-locked is not ordinary. Before it is used at its address, synchronize waits. */
enum { HAMR_ASYNC = 0, HAMR_SYNC_HOST = 1, HAMR_SYNC = 2 };

/* What code does with the elements that it reaches: read them, write all of them, or read and write. Until the handle
 * is released the elements are its own, and what it writes is then the buffer's, wherever it was written. HAMR_PLAIN
 * asks for nothing of that: the elements themselves where code reaches them, else a copy whose changes nobody sees.
 *
 * The elements lie one after the other in C order: where the buffer's own do not, the handle has a temporary.
 * HAMR_STRIDED, added to a mode, is for code that reads the strides of the handle's info: it gets the elements where
 * they are, if it reaches them there. */
enum { HAMR_READ = 0, HAMR_WRITE = 1, HAMR_READ_WRITE = 2, HAMR_PLAIN = 3, HAMR_STRIDED = 16 };

#define HAMR_CURRENT_DEVICE (-1)      /* the calling thread's; as the owner of memory: the host */
#define HAMR_SAME_ALLOCATOR (-2)      /* for copy: the buffer's own */
#define HAMR_UNKNOWN_ALLOCATOR (-1)   /* for adopt: the runtimes are asked; from locate: none knows */
#define HAMR_NO_ORDER ((void *)(intptr_t)-1) /* for to_dlpack: the consumer waits by itself */

/* Where new memory is from, and how it is used. NULL in place of it is malloc's, HAMR_SYNC_HOST. */
typedef struct hamr_place {
    int32_t allocator; /* hamr_allocator */
    int32_t device;    /* HAMR_CURRENT_DEVICE, or a number; of no meaning for host memory */
    void *stream;      /* the vendor's handle, as a cudaStream_t; NULL is the default stream */
    int32_t transfer;  /* HAMR_ASYNC … */
    int32_t reserved;  /* 0 */
} hamr_place;

/* In hamr_info's flags. */
#define HAMR_INFO_READ_ONLY 1u
#define HAMR_INFO_REACHABLE(space) (2u << (space)) /* code in the space uses the memory in place */
#define HAMR_INFO_TEMPORARY 0x10000u               /* of a handle: not the buffer's own memory */
#define HAMR_INFO_ADDRESS 0x20000u                 /* there is an address in the info, which older libraries have not */

/* What a buffer or a handle is. It is the library's, and may have more at its end than a program
 * knows. It stays at its address until the release, and always tells what is so now: a program that keeps
 * the address reads the size without a call. What shape and strides point to is valid until a change. */
typedef struct hamr_info {
    int64_t size;           /* elements */
    int64_t bytes;          /* of them */
    int64_t capacity;       /* elements that fit without new memory */
    const int64_t *shape;   /* ndim entries */
    const int64_t *strides; /* ndim entries, bytes */
    void *stream;           /* on a handle: where all work that came before is ordered */
    int32_t ndim;
    int32_t element;        /* hamr_element_type */
    int32_t allocator;      /* hamr_allocator */
    int32_t device;         /* which owns the memory; -1: the host */
    int32_t transfer;
    uint32_t flags;
    void *address;          /* of element zero, or NULL, if flags has HAMR_INFO_ADDRESS. Memory that is pooled,
                             * as a device's, has none here: hamr_data tells the library that a program knows it */
} hamr_info;

typedef struct hamr_buffer hamr_buffer; /* a growable container of elements of one type */
typedef struct hamr_handle hamr_handle; /* where code in a space can touch a buffer's elements */
typedef struct hamr_stream hamr_stream; /* a stream of a backend, or the handle of one */
typedef struct hamr_event hamr_event;   /* stands for the work on a stream up to a moment */

/* Called once, from whatever thread, when nobody uses the memory any more. */
typedef void (*hamr_deleter)(void *data, void *context);

enum {
    HAMR_ADOPT_READ_ONLY = 1, /* nobody writes to it through hamr */
    HAMR_ADOPT_TAKE = 2       /* it is from the place's allocator, which frees it; without a deleter */
};

/* What a runtime knows of an address. */
typedef struct hamr_found {
    void *base;        /* where the allocation starts; NULL: the runtime cannot tell */
    int64_t bytes;     /* in it; 0: the runtime cannot tell */
    int32_t allocator; /* HAMR_UNKNOWN_ALLOCATOR: no runtime knows the memory */
    int32_t device;
} hamr_found;

/* The memory of one allocator, of the whole process: C's, Python's and Go's together. */
typedef struct hamr_usage {
    int32_t allocator;
    int32_t reserved;
    int64_t live;    /* allocations */
    int64_t current; /* bytes in them */
    int64_t peak;    /* the most bytes there ever were; see reset_peaks */
    int64_t made;    /* allocations since the start */
    int64_t adopted; /* foreign memory in use */
    int64_t kept;    /* bytes in temporaries that are kept for reuse */
    int64_t reused;  /* how often one was handed out again */
} hamr_usage;

struct DLManagedTensor;          /* of dlpack.h */
struct DLManagedTensorVersioned;

typedef struct hamr_table {
    uint32_t version; /* HAMR_TABLE_VERSION */
    uint32_t size;    /* bytes in the library's table */

    /* The library. */
    const char *(*library_version)(void);
    /* Of the calling thread: never NULL; "" before the first error. */
    const char *(*last_error)(void);
    /* Sets size bytes, at most, of what a failure is; zero before the first error. */
    void (*last_failure)(hamr_failure *failure, size_t size);

    /* Buffers. shape has ndim entries, 0 to 64 of them. value, if not NULL, is one element that the
     * new ones hold; else they are not initialised. */
    hamr_status (*create)(hamr_buffer **made, int32_t element, int32_t ndim, const int64_t *shape,
                          const hamr_place *place, const void *value);
    /* Shares memory that exists. strides are in bytes, NULL is C order. Without a deleter, and without HAMR_ADOPT_TAKE,
     * the memory stays the caller's and must outlive the buffer and all that was made of it. After an error the deleter
     * is not called. What uses device memory through hamr runs after what the place's stream holds now. */
    hamr_status (*adopt)(hamr_buffer **made, void *data, int32_t element, int32_t ndim, const int64_t *shape,
                         const int64_t *strides, const hamr_place *place, uint32_t flags, hamr_deleter deleter,
                         void *context);
    /* Gives the buffer back. The memory goes with the last buffer, handle or tensor that has it, in
     * the order of its stream. NULL is harmless. */
    hamr_status (*release)(hamr_buffer *buffer);
    const hamr_info *(*info_of)(const hamr_buffer *buffer); /* NULL: no buffer, or one that was released */
    /* Some of the elements, in place: offset in bytes from element zero; element 0 is the buffer's. */
    hamr_status (*view)(const hamr_buffer *buffer, hamr_buffer **made, int64_t offset, int32_t element, int32_t ndim,
                        const int64_t *shape, const int64_t *strides);

    /* Contents. Those of values take elements in C order in host memory. Numbers are converted. */
    hamr_status (*reserve)(hamr_buffer *buffer, int64_t size, const void *value);
    hamr_status (*resize)(hamr_buffer *buffer, int32_t ndim, const int64_t *shape, const void *value);
    hamr_status (*free)(hamr_buffer *buffer); /* leaves a buffer without elements, which can grow again */
    /* Becomes the contents and the shape of another buffer, where it is and with elements of its own type.
     * Fortran has it. */
    hamr_status (*assign)(hamr_buffer *buffer, const hamr_buffer *other);
    hamr_status (*assign_values)(hamr_buffer *buffer, int32_t element, const void *values, int64_t size);
    hamr_status (*append)(hamr_buffer *buffer, const hamr_buffer *other);
    hamr_status (*append_values)(hamr_buffer *buffer, int32_t element, const void *values, int64_t size);
    /* Writes size elements of other, from start on, from element at on. */
    hamr_status (*set)(hamr_buffer *buffer, int64_t at, const hamr_buffer *other, int64_t start, int64_t size);
    hamr_status (*set_values)(hamr_buffer *buffer, int64_t at, int32_t element, const void *values, int64_t size);
    /* Reads size elements from start on; the values are there at return, in every transfer mode. */
    hamr_status (*get_values)(const hamr_buffer *buffer, int64_t start, int32_t element, void *values, int64_t size);
    hamr_status (*write)(hamr_buffer *buffer, const hamr_buffer *other); /* every element, broadcast */
    hamr_status (*fill)(hamr_buffer *buffer, int32_t element, const void *value);
    /* New elements in C order, converted to element, 0 being the buffer's. NULL as place: as the buffer's. */
    hamr_status (*copy)(const hamr_buffer *buffer, hamr_buffer **made, int32_t element, const hamr_place *place);
    /* write for count pairs, in as few steps as their runtimes can. transfer -1: each one's own. */
    hamr_status (*copy_many)(int64_t count, hamr_buffer *const *destinations, const hamr_buffer *const *sources,
                             int32_t transfer);
    /* Takes the elements to memory of another allocator or device. Nothing if they are there. Fortran has it. */
    hamr_status (*move)(hamr_buffer *buffer, int32_t allocator, int32_t device);
    hamr_status (*swap)(hamr_buffer *one, hamr_buffer *other);
    /* The elements in another shape, one size of which may be -1. copying: 0 where it must be, 1 never, 2 always. */
    hamr_status (*reshape)(const hamr_buffer *buffer, hamr_buffer **made, int32_t ndim, const int64_t *shape,
                           int32_t copying);
    /* As HAMR prints them, shortened beyond limit elements; 0 is all. The text goes to free_text. */
    hamr_status (*text)(const hamr_buffer *buffer, int64_t limit, char **text);
    void (*free_text)(char *text);
    hamr_status (*print)(const hamr_buffer *buffer); /* on standard output, with where it is */

    /* Reaching the elements. device is of the space's runtime; the host has none. */
    hamr_status (*access)(hamr_buffer *buffer, int32_t space, int32_t device, int32_t mode, hamr_handle **made);
    const hamr_info *(*handle_info)(const hamr_handle *handle);
    /* Ends it: what was written is the buffer's, in the order of the handle's stream. Where memory runs out for that
     * the handle is still there, to be tried again or abandoned; after any other error it is gone. NULL is harmless. */
    hamr_status (*release_handle)(hamr_handle *handle);
    hamr_status (*abandon_handle)(hamr_handle *handle); /* without writing back what is in a temporary */
    /* Keeps the temporaries of plain accesses for the next ones, until the elements change. */
    hamr_status (*keep_temporaries)(hamr_buffer *buffer, int32_t on);
    hamr_status (*changed)(hamr_buffer *buffer); /* by others than hamr: what is kept is out of date */

    /* Order. */
    hamr_status (*set_stream)(hamr_buffer *buffer, void *stream, int32_t transfer);
    hamr_status (*set_transfer)(hamr_buffer *buffer, int32_t transfer);
    /* Waits for all work on the elements, and tells what went wrong on the device. Fortran has it. */
    hamr_status (*synchronize)(const hamr_buffer *buffer);
    hamr_status (*wait)(const hamr_buffer *buffer, int64_t milliseconds, int32_t *over);
    /* Makes a stream's later work run after all work on the elements. */
    hamr_status (*order_before)(const hamr_buffer *buffer, void *stream);
    /* Makes everybody who uses the memory, and its release, run after what a stream holds now. */
    hamr_status (*order_after)(const hamr_buffer *buffer, void *stream);

    /* Streams and events of a backend, such as "cuda". native is the vendor's handle. */
    hamr_status (*create_stream)(const char *backend, int32_t device, hamr_stream **made);
    /* The stream stays the caller's. */
    hamr_status (*wrap_stream)(const char *backend, int32_t device, void *native, hamr_stream **made);
    void *(*native_stream)(const hamr_stream *stream);
    /* Ends a stream that hamr made, after its work; buffers on it turn to the default stream. */
    hamr_status (*release_stream)(hamr_stream *stream);
    /* milliseconds -1: as long as it takes. */
    hamr_status (*wait_stream)(const hamr_stream *stream, int64_t milliseconds, int32_t *over);
    hamr_status (*stream_wait_event)(const hamr_stream *stream, const hamr_event *event);
    hamr_status (*record_event)(const hamr_stream *stream, int32_t timed, hamr_event **made);
    hamr_status (*wrap_event)(const char *backend, int32_t device, void *native, hamr_event **made);
    void *(*native_event)(const hamr_event *event);
    hamr_status (*release_event)(hamr_event *event);
    hamr_status (*wait_event)(const hamr_event *event, int64_t milliseconds, int32_t *over);
    /* Of two timed events that are done. */
    hamr_status (*elapsed)(const hamr_event *from, const hamr_event *to, int64_t *nanoseconds);

    /* Devices. */
    hamr_status (*device_count)(const char *backend, int32_t *count);
    hamr_status (*current_device)(const char *backend, int32_t *device);
    /* Makes a device the calling thread's, until leave_device is given what this sets. */
    hamr_status (*enter_device)(const char *backend, int32_t device, uint64_t *before);
    hamr_status (*leave_device)(const char *backend, uint64_t before);
    hamr_status (*can_access_peer)(const char *backend, int32_t user, int32_t owner, int32_t *can);
    /* Lets a device reach another one's memory. Twice is no error; see disable_peer, too. */
    hamr_status (*enable_peer)(const char *backend, int32_t user, int32_t owner);
    hamr_status (*memory_info)(const char *backend, int32_t device, int64_t *free, int64_t *total);
    hamr_status (*locate)(const void *address, hamr_found *found);
    /* Whether a runtime is there. reason, if not NULL: why not, or NULL; it goes to free_text. */
    hamr_status (*has_backend)(const char *name, int32_t *available, char **reason);
    hamr_status (*preferred_allocator)(int32_t for_host, int32_t *allocator);

    /* The memory of the process. */
    int32_t (*memory_usage)(hamr_usage *rows, int32_t room); /* how many there are: HAMR_ALLOCATOR_COUNT at most */
    void (*reset_peaks)(void);
    hamr_status (*trim)(void); /* gives back what is kept for reuse */
    /* The most bytes that an allocator takes on a device, in use and kept for reuse; -1: none, -2: that of the
     * start. Of HAMR_ALLOCATOR_MALLOC it is limit_kept; limit_in_use is for the host's memory in use. */
    hamr_status (*set_limit)(int32_t allocator, int32_t device, int64_t bytes);
    hamr_status (*configure)(const char *name, const char *value); /* a HAMR_… variable, before it is read */
    hamr_status (*set_verbose)(int32_t level); /* 0: silent, 1: on standard error */

    /* DLPack. The consumer's stream runs after the work on the elements; NULL waits for it here. The
     * tensor's deleter may be called from any thread. */
    hamr_status (*to_dlpack)(const hamr_buffer *buffer, void *stream, struct DLManagedTensorVersioned **made);
    hamr_status (*to_old_dlpack)(const hamr_buffer *buffer, void *stream, struct DLManagedTensor **made);
    /* Takes the tensor over: its deleter is called when nobody uses the memory any more. After an
     * error it is the caller's still. producer: the stream that the elements are being written on. */
    hamr_status (*from_dlpack)(struct DLManagedTensorVersioned *tensor, void *producer, hamr_buffer **made);
    hamr_status (*from_old_dlpack)(struct DLManagedTensor *tensor, void *producer, hamr_buffer **made);

    /* Takes one enable_peer back; nothing, if there is none. With the last one the user loses the
     * owner's memory, when the work of both devices is over: its pool and growing memory, too. What others in the
     * process have enabled stays, and so does what hamr's own copies between the two have. */
    hamr_status (*disable_peer)(const char *backend, int32_t user, int32_t owner);

    /* Where element zero is, in the owner's address space; NULL: no memory, or no buffer. Memory of a
     * device whose address was asked for is released after the work of all its streams. */
    void *(*data)(const hamr_buffer *buffer);
    void *(*handle_data)(const hamr_handle *handle);

    /* The table of another header: "store" is that of hamr/store.h. NULL: the library has none of that
     * name and version. */
    const void *(*other_table)(const char *name, uint32_t version);

    /* The most bytes that a library has in use on a device of a backend, -1 for the current one; backend "host": on the
     * host; NULL: everywhere, together. library: "hamr", which is NULL, too, "cupy", "torch" or "numba". bytes -1: no
     * limit. More is HAMR_ERROR_MEMORY; what is in use already stays. */
    hamr_status (*limit_in_use)(const char *library, const char *backend, int32_t device, int64_t bytes);
    /* The most bytes of ordinary host memory that are kept for reuse; -1: no limit, -2: that of the start. */
    hamr_status (*limit_kept)(int64_t bytes);

    /* The same elements, in place, which nobody writes to through what is made. */
    hamr_status (*read_only)(const hamr_buffer *buffer, hamr_buffer **made);
    /* Moves the elements into a buffer that is made, and leaves this one without, as free does: on its stream. */
    hamr_status (*take)(hamr_buffer *buffer, hamr_buffer **made);

    /* destination[destination_index[k]] = source[source_index[k]] for all k, along the first dimension, of each of
     * count pairs. The indices are integers anywhere; below zero they count from the end. transfer -1: each
     * destination's own. An index out of range is HAMR_ERROR_INDEX, and nothing is copied; where only a device
     * has looked at it, the next wait for a destination returns that. */
    hamr_status (*copy_blocks)(int64_t count, hamr_buffer *const *destinations, const hamr_buffer *destination_index,
                               const hamr_buffer *const *sources, const hamr_buffer *source_index, int32_t transfer);

    /* Memory of HAMR_ALLOCATOR_CUDA_VMM that the calling thread makes can be paused by the name, until leave_pausable
     * of what enter_pausable has set: they nest. */
    hamr_status (*enter_pausable)(const char *name, int64_t *before);
    hamr_status (*leave_pausable)(int64_t before);
    /* Gives the devices' memory of a name back, and keeps its addresses. keep: "nothing", "host" or "disk", which is a
     * file in folder, or NULL. It waits for all work on the devices. What uses the memory then is HAMR_ERROR_PAUSED.
     * resume takes memory again, at the same addresses. After an error of either all is as before. */
    hamr_status (*pause)(const char *name, const char *keep, const char *folder);
    hamr_status (*resume)(const char *name);
} hamr_table;

#endif
