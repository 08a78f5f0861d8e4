/* What hamr/functions.h says of kernels that users bring. */
#ifndef HAMR_KERNELS_H
#define HAMR_KERNELS_H

#include <stdint.h>

/* A kernel that a user has brought, on one device. Zero is what the driver does not say. */
typedef struct hamr_kernel {
    uint64_t kernel;        /* for launch, as long as the module is open */
    uint64_t function;      /* the driver's own handle, as a CUfunction */
    const int32_t *sizes;   /* bytes of each parameter */
    int32_t parameters;     /* how many there are; -1: the driver does not say */
    int32_t threads;        /* that a block may have */
    int32_t shared;         /* bytes of shared memory that a launch may ask for as the kernel is */
    int32_t most_shared;    /* and that launch lets it have */
    int32_t static_shared;  /* bytes that the kernel names itself */
    int32_t constant;
    int32_t local;          /* bytes of memory of each thread's own */
    int32_t registers;      /* of each thread */
    uint32_t most_block[3]; /* threads of a block along x, y and z */
    uint32_t most_grid[3];  /* blocks */
} hamr_kernel;

/* How many threads run a kernel. */
typedef struct hamr_shape {
    uint32_t grid[3], block[3]; /* blocks, and threads of each, along x, y and z */
    uint32_t shared;            /* bytes of shared memory of each block, besides those that the kernel names */
} hamr_shape;

/* One argument of a kernel's. */
typedef struct hamr_argument {
    struct hamr_array *array; /* whose elements it is given the address of, or NULL */
    void *value;       /* else size bytes */
    uint64_t marks;    /* what launch sets of an array: what is at array->marks, in 64 bits, if the stream of the
                        * launch holds all that is pending on the memory, or 0 */
    int32_t size;
    int32_t reads;     /* the kernel writes none of the elements */
} hamr_argument;

/* The text of kernels. Lists end with NULL. */
typedef struct hamr_source {
    char *text;
    char *name;         /* for the compiler's messages */
    char *architecture; /* as "sm_90"; NULL or "": the device's */
    char **options;
    char **libraries;   /* compilers to look for after those that the loader finds */
    int32_t device;
    int32_t reserved;
} hamr_source;

/* What it becomes. */
typedef struct hamr_code {
    void *image;
    int64_t size;
    char *log;  /* what the compiler has said */
    char *text; /* the same as PTX, beside an image that is a binary, where the compiler gives both; else "" */
} hamr_code;

#endif
