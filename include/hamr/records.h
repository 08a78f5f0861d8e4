/* What functions of hamr/functions.h take and give, other than arrays and errors. */
#ifndef HAMR_RECORDS_H
#define HAMR_RECORDS_H

#include <stdint.h>

/* A value of a reply. */
typedef struct hamr_cell {
    int32_t kind;     /* of HAMR_CELL_NONE … */
    int32_t reserved;
    int64_t number;   /* of HAMR_CELL_UNSIGNED the same bits */
    const char *text; /* of HAMR_CELL_TEXT: UTF-8 */
} hamr_cell;

enum { HAMR_CELL_NONE, HAMR_CELL_TRUTH, HAMR_CELL_NUMBER, HAMR_CELL_UNSIGNED, HAMR_CELL_TEXT };

/* A reply of several values, each row with as many cells as it has. */
typedef struct hamr_row {
    int64_t count;
    const hamr_cell *cells;
} hamr_row;

typedef struct hamr_rows {
    int64_t count;
    const hamr_row *rows;
} hamr_rows;

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

#endif
