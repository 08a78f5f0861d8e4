/* What only C can do for CPython: objects with a buffer slot, and a destructor
 * that gives memory back to the Go core. Everything here runs with the GIL held
 * unless it says otherwise. */
#ifndef HAMR_NATIVE_H
#define HAMR_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>

#include "hamr_abi.h"

/* The headers of 3.12 take these objects for immortal, which 3.11 counts like others. */
#undef Py_RETURN_NONE
#undef Py_RETURN_TRUE
#undef Py_RETURN_FALSE
#define Py_RETURN_NONE return Py_NewRef(Py_None)
#define Py_RETURN_TRUE return Py_NewRef(Py_True)
#define Py_RETURN_FALSE return Py_NewRef(Py_False)

/* An object that keeps foreign memory alive. Its address is the key under which
 * the Go core knows the memory. */
typedef struct Owner {
    PyObject *object;
    Py_buffer *view;    /* held so that the exporter cannot resize; may be NULL */
    void *memory;       /* what ends by finish, in place of an object; may be NULL */
    void (*finish)(void *memory); /* called with the GIL */
    struct Owner *next; /* in the list of finished owners */
} Owner;

/* One allocation. Python's reference count of the Block is the number of Python
 * objects that use the memory; the Block holds one reference in the Go core. */
typedef struct {
    PyObject_HEAD
    uint64_t token;      /* 0: the core does not know the memory (yet) */
    uint64_t generation; /* the copy of the library that the token belongs to */
    uint64_t base;
    uint64_t size;
    uint64_t stream;
    uint64_t marks;      /* as in hamr_array */
    uint64_t producer;   /* the stream that the owner's work is on, until the core knows */
    int32_t allocator;
    int32_t device;
    Owner *owner;        /* NULL for memory of our own */
    char several_streams; /* arrays were used on others than stream, too */
    char used_by_default; /* others had it on the legacy default stream */
    char used_anywhere;   /* others had it on streams that may have ended since */
} Block;

#define INLINE_DIMENSIONS 4

/* An array in a Block: the base of hamr.Buffer (which changes) and hamr.Handle
 * (which never does). */
typedef struct Turn Turn;
typedef struct {
    PyObject_HEAD
    Turn *turn;                                /* whose it is to change the object, or NULL: nobody's yet */
    hamr_array array;
    Block *block;                              /* NULL: no memory */
    union {
        int64_t dimensions[2 * INLINE_DIMENSIONS]; /* array.shape and .strides, if they fit */
        unsigned char scalar[16];                  /* the element of a scalar(), which has neither */
    };
    int64_t *allocated_dimensions;             /* shape and strides, if they do not */
    PyObject *order;                           /* the object that array.stream was given as, or NULL */
    PyObject *life;                            /* keeps array.stream alive, whatever order lets go, or NULL */
    PyObject *kept;                            /* a Block whose address was given away, or a set of them, or NULL */
    PyObject *source;                          /* the protocol that the memory came by, or NULL */
    PyObject *interface;                       /* a ready __cuda_array_interface__, nobody else's, or NULL */
    uint32_t changes;                          /* how often interface became wrong */
    char fixed;                                /* never changes: exports itself */
    char temporary;
    char for_space;                            /* FOR_SPACE() of a handle's consumer, or 0 */
    char closed;
    Py_ssize_t exports;                        /* views of a fixed array, which keep its memory */
} Array;

#define FOR_SPACE(space) ((char)((space) + 1))

/* Where the Go core writes the description of a result. */
typedef struct {
    PyObject_HEAD
    hamr_array array;
    uint64_t before; /* a token that is not the Result's to release */
    uint64_t generation;
    int64_t dimensions[2 * HAMR_MAX_DIMENSIONS];
} Result;

/* core.c: the connection with the Go library. */
extern uint64_t core_generation;
int core_setup(void);                /* 0, or -1 with an exception */
int core_load(void);                 /* 0, or -1 with an exception */
const hamr_functions *core_functions(void);
int core_raise(char *message);       /* sets the exception, frees message; -1 */
PyObject *core_freed(void);          /* raises FreedBuffer; NULL */
PyObject *core_function(PyObject *name); /* one that gopy generated; NULL, without an exception: the core is not loaded */
void core_translate(void);           /* makes the RuntimeError of such a function what its text says */
int core_free_directly(int32_t allocator, uint64_t base);
int core_forked(void);               /* raises ForkError; -1 */
extern PyMethodDef core_methods[];

/* owner.c: what keeps foreign memory alive. */
Owner *owner_new(PyObject *object, Py_buffer *view); /* takes over view */
Owner *owner_of_memory(void *memory, void (*finish)(void *)); /* takes over memory */
void owner_drop(Owner *owner);
void owner_finished(uint64_t key);      /* any thread, without the GIL */
void owner_finished_here(Owner *owner); /* with the GIL: dropped now, or by the drop that this one is part of */
int owner_holds_gil(void);              /* whether this thread does */
void owner_finished_soon(Owner *owner); /* any thread: as owner_finished_here where it has the GIL, else soon */
void owner_drain(void);                 /* drops the owners that are finished */
void owners_forget(void);               /* after a fork: what other threads were about is the parent's */
int owner_setup(void);
extern PyMethodDef owner_functions[];

/* signal_stack.c */
void keep_signal_stack(void); /* for the interpreter's end, on its main thread */

/* allocators.c */
typedef struct {
    const char *name;
    unsigned char kind;    /* hamr_memory_kind */
    unsigned char reach;   /* a bit for each hamr_space that uses the memory in place */
    unsigned char ordered; /* taken and given back in the order of a stream */
    unsigned char dlpack;  /* device type of DLPack and Arrow; 0: there is none */
    unsigned char mapped;  /* the host reaches it, but only through the core, which maps it */
} AllocatorFacts;
extern const AllocatorFacts allocator_table[HAMR_ALLOCATOR_COUNT];
extern PyMethodDef allocator_functions[];

/* What sort of memory it is; ordinary host memory where that is not known yet. */
static inline hamr_memory_kind memory_kind(int32_t allocator) {
    return allocator >= 0 && allocator < HAMR_ALLOCATOR_COUNT ? (hamr_memory_kind)allocator_table[allocator].kind : HAMR_PAGEABLE;
}

/* Whether the runtime of a device has to do with the memory. */
static inline int is_of_device(int32_t allocator) { return memory_kind(allocator) != HAMR_PAGEABLE; }

static inline int is_mapped(int32_t allocator) {
    return allocator >= 0 && allocator < HAMR_ALLOCATOR_COUNT && allocator_table[allocator].mapped;
}

static inline int is_ordered(int32_t allocator) {
    return allocator >= 0 && allocator < HAMR_ALLOCATOR_COUNT && allocator_table[allocator].ordered;
}

/* elements.c: the element types, as hamr/types.h numbers them. */
typedef struct {
    const char *name;
    const char *typestr;
    const char *format; /* PEP 3118; NULL if there is none */
    const char *arrow;  /* NULL if there is none */
    int size;
    unsigned char code; /* DLPack's; its bits are 8 * size */
} ElementFacts;
int32_t element_from_dlpack(unsigned code, unsigned bits, unsigned lanes); /* 0: refused */
const ElementFacts *element_facts(int32_t element);
const char *element_label(int32_t element); /* for error messages */
int32_t element_from_format(const char *format, Py_ssize_t itemsize); /* 0: refused */
int element_from_scalar(PyObject *value, unsigned char bytes[16], int32_t *element);
int array_contiguous(const hamr_array *array, int fortran);
int64_t array_count(const hamr_array *array);
int array_span(const hamr_array *array, int64_t *low, int64_t *high); /* the bytes that elements touch, from element zero on; 0: none, or too many */

/* The marks at an address, read before the elements are: no work is pending on them if
 * it is zero. */
static inline uint32_t marks_at(uint64_t address) {
    return address ? __atomic_load_n((const uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE) : 0;
}

/* block.c */
extern PyTypeObject *block_type;
Block *block_new(const hamr_array *array, Owner *owner); /* takes over token and owner */
Block *block_spare(void); /* without memory */
void block_fill(Block *block, const hamr_array *array, Owner *owner, uint64_t generation); /* takes over token and owner */
void block_give_back(const hamr_array *array); /* memory that no Block has */
int block_register(Block *block);
void blocks_forget(void); /* after a fork: what was counted was the parent's */
void block_used_on(const Block *block, uint64_t stream); /* an array that used it on the stream ends */
int block_leave(Block *block, uint64_t stream); /* whoever uses the memory waits for what the stream holds now; 0, or -1 with an exception */
void block_shared_with(Block *block, int64_t stream); /* a consumer's, -1 unknown: the memory's release waits for what it holds */
int block_foreign_work(const Block *block); /* the core does not know of the owner's work yet */
extern PyMethodDef block_functions[];
int block_setup(PyObject *module);

/* array.c */
extern PyTypeObject *array_type;
Array *array_new(PyTypeObject *type);
int array_store(Array *self, const hamr_array *from, Block *block); /* takes over block */
PyObject *array_snapshot(Array *self, PyTypeObject *type);
Array *array_pin(Array *self);
int array_hold(Array *snapshot, const Array *self); /* makes it what array_pin returns, without new objects; 1: not before block_register; -1: an error */
void array_follow(Array *self, const Array *source); /* takes part in keeping source's stream alive */
int array_keep(Array *self, Block *lent); /* keeps memory that self had until the object ends, whatever it becomes; lent is held by the caller */
int array_setup(PyObject *module);

#define OPEN(self) \
    if (((Array *)self)->closed) return core_freed()

/* attributes.c */
extern PyGetSetDef array_attributes[];
extern PyMemberDef array_members[];
PyObject *array_dimensions(const int64_t *values, int n); /* a tuple */

/* buffer_slot.c */
int array_getbuffer(PyObject *object, Py_buffer *view, int flags);
void array_releasebuffer(PyObject *object, Py_buffer *view);
PyObject *array_interface(PyObject *object, void *closure);

/* access.c: where code in a space can touch an array. */
int array_usable(const Array *self);     /* 0, or -1: it is a device's, from before a fork */
Array *array_settled(Array *self);       /* a snapshot that the host may read now */
PyObject *array_access(Array *self, int32_t space, int32_t device);
extern PyMethodDef access_functions[];
PyObject *get_host_accessible(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
PyObject *get_cuda_accessible(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
PyObject *get_hip_accessible(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
PyObject *get_openmp_accessible(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);

/* cuda_interface.c: __cuda_array_interface__, both ways. */
int cuda_interface_setup(void);
int cuda_interface_prepare(Array *self); /* makes self->interface, if it can be */
PyObject *cuda_array_interface(PyObject *object, void *closure);
extern PyMethodDef cuda_interface_functions[];

/* order.c: work of other libraries and of hamr's on the same memory. */
int order_covering(Array *self, uint64_t *stream); /* sets a stream that covers all work pending on the elements, or 0 */
int order_before(Array *self, uint64_t stream); /* makes later work on a stream of CUDA's wait for what is pending */

/* stream_life.c: what keeps a stream's handle. */
int stream_life_setup(PyObject *module);
PyObject *stream_life_of(PyObject *stream); /* NULL, without an exception: it needs none */
int stream_life_over(PyObject *life, uint64_t stream); /* the stream is not to be named any more */
extern PyMethodDef stream_life_functions[];

/* dlpack_export.c */
struct DLManagedTensorVersioned;
int dlpack_export_setup(void);
PyObject *array_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);
int32_t dlpack_device_type(const hamr_array *array, char for_space); /* Arrow's numbers, too; 0: there is none */
struct DLManagedTensorVersioned *dlpack_export(Array *self); /* as it is, without waiting; NULL: BufferError */

/* dlpack_import.c */
typedef struct {
    PyTypeObject *type;
    uint64_t stream;   /* of the new array */
    uint64_t producer; /* the stream that the tensor's work is on; 0: there is none to wait for */
    int32_t transfer;
    int immutable;     /* nobody may write, whatever the tensor says */
    int never_copied;  /* BufferError for a tensor that is a copy */
} Adoption;
PyObject *dlpack_adopt(PyTypeObject *type, struct DLManagedTensorVersioned *tensor, uint64_t stream, int32_t transfer, uint64_t producer); /* takes over tensor */
PyObject *dlpack_adopt_tensor(const Adoption *adoption, struct DLManagedTensorVersioned *tensor); /* the same */
PyObject *dlpack_adopt_capsule(const Adoption *adoption, PyObject *capsule); /* renames it, unless it fails */
int dlpack_check_device(int32_t type, int32_t number); /* 0, or -1 with an exception */
int dlpack_is_cuda(int32_t device_type);

/* dlpack_ask.c */
int dlpack_ask_setup(void);
extern PyMethodDef dlpack_functions[];

/* dlpack_exchange.c: the table of C functions on the type. */
int dlpack_exchange_setup(void);
Array *dlpack_copy(Array *source, int32_t allocator, int32_t device); /* a Buffer with the same elements in C order */
extern PyMethodDef dlpack_exchange_functions[];

/* arrow_export.c, arrow_import.c */
PyObject *array_arrow(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
PyObject *array_arrow_device(PyObject *self, PyObject *const *arguments, Py_ssize_t n, PyObject *names);
extern PyMethodDef arrow_functions[];

/* result.c */
int result_setup(PyObject *module);
Result *result_new(void);
int result_block(Result *result, Array *from, Block **spare, Block **block); /* spare, if it is given, for new memory */
extern PyMethodDef result_functions[];

/* change.c: changes of contents, one after the other. */
int turn_wait(Array *self); /* until no other thread changes it; -1: a signal's exception */
int turn_wait_both(Array *a, Array *b);
void turn_free(Turn *turn);
int array_changing(const Array *self);
extern PyMethodDef change_functions[];

/* view.c: what exports an adopted buffer, and the collector. */
int view_may_be_seen(const Py_buffer *view); /* by the collector */
Py_buffer *view_behind(Py_buffer *view, const hamr_array *array, const PyObject *object); /* object's view, or one in its place that may be seen */

/* adopt.c */
typedef struct {
    hamr_array array;
    int64_t dimensions[2 * HAMR_MAX_DIMENSIONS];
} Draft;
void draft_start(Draft *draft);
void draft_c_strides(hamr_array *array);
int is_array_type(PyObject *type); /* or 0, with an exception */
int read_dimensions(PyObject *tuple, const char *name, int64_t *values);
PyObject *adopt_host(PyTypeObject *type, Draft *draft, Owner *owner); /* takes over owner */
PyObject *adopt_device(PyTypeObject *type, Draft *draft, Owner *owner, uint64_t producer); /* takes over owner */
PyObject *adopt_pinned(PyTypeObject *type, Draft *draft, Owner *owner); /* takes over owner */
PyObject *adopt_cuda_memory(PyTypeObject *type, Draft *draft, Owner *owner, uint64_t producer); /* takes over owner; in cuda_interface.c */
extern PyMethodDef adopt_functions[];

#define FAST(function) ((PyCFunction)(void (*)(void))(function))

void *type_allocate(PyTypeObject *type);
void type_free(PyObject *self);

#endif
