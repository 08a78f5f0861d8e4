/* What the Fortran module in hamr.f90 calls, which is generated from it: hamr.h's functions, with arrays as Fortran
 * 2018 hands them to C. It is compiled beside hamr.f90, by the C compiler that belongs to the Fortran one.
 *
 * Sizes and strides are reversed on the way: element (i, j) of Fortran's array is [j][i] in C and
 * Python, so that either has the elements in the order of its own language. */
#include <ISO_Fortran_binding.h>

#include "hamr.h"

/* Ends the program with hamr_last_error's words, as Fortran does; of hamr.f90. */
void hamr_fortran_stop(void);

/* Of Fortran's default integers, which the module has: 4, or 8 by -fdefault-integer-8. Those that are read here are
 * read as numbers of 4 bytes, which the machine has first. */
extern int32_t hamr_fortran_integer_bytes;

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "hamr_fortran.c is for machines that have the lowest byte of a number first"
#endif

/* Tells the status to those who ask for it; nobody else goes on after an error. */
static void tell(hamr_status status, void *stat) {
    const int64_t number = status;
    if (stat)
        memcpy(stat, &number, (size_t)hamr_fortran_integer_bytes);
    else if (status != HAMR_OK)
        hamr_fortran_stop();
}

enum { HAMR_LISTED = 64 };

static hamr_status refuse(hamr_status status, const char *words) {
    hamr_open_error[0] = '\0';
    hamr_open_say(words);
    return status;
}

static int32_t element_of(const CFI_cdesc_t *array) {
    switch (array->type) {
    case CFI_type_Bool: return HAMR_BOOL;
    case CFI_type_int8_t: return HAMR_INT8;
    case CFI_type_int16_t: return HAMR_INT16;
    case CFI_type_int32_t: return HAMR_INT32;
    case CFI_type_int64_t: return HAMR_INT64;
    case CFI_type_float: return HAMR_FLOAT32;
    case CFI_type_double: return HAMR_FLOAT64;
    case CFI_type_float_Complex: return HAMR_COMPLEX64;
    case CFI_type_double_Complex: return HAMR_COMPLEX128;
    default: return HAMR_INVALID;
    }
}

static hamr_status no_element(void) {
    return refuse(HAMR_ERROR_TYPE, "the array is of a type that hamr has no elements of: accepted are integer, real "
                                   "and complex of the kinds of iso_fortran_env up to 8 bytes a number, and "
                                   "logical(c_bool)");
}

/* One element of value's type, converted to the buffer's. */
static hamr_status fill(hamr_buffer *buffer, const CFI_cdesc_t *value) {
    int32_t element = element_of(value);
    if (element == HAMR_INVALID) return no_element();
    return hamr_fill(buffer, element, value->base_addr);
}

/* The sizes in an array of integers of 4 or 8 bytes, reversed; shape has CFI_MAX_RANK entries. */
static hamr_status read_shape(const CFI_cdesc_t *given, int64_t *shape, int32_t *ndim) {
    CFI_index_t n = given->dim[0].extent;
    if (n > CFI_MAX_RANK) return refuse(HAMR_ERROR_VALUE, "shape has more sizes than Fortran's arrays");
    for (CFI_index_t i = 0; i < n; i++) {
        const char *at = (const char *)given->base_addr + i * given->dim[0].sm;
        if (given->elem_len == sizeof(int32_t)) {
            int32_t size;
            memcpy(&size, at, sizeof size);
            shape[n - 1 - i] = size;
        } else {
            memcpy(&shape[n - 1 - i], at, sizeof *shape);
        }
    }
    *ndim = (int32_t)n;
    return HAMR_OK;
}

/* NULL, malloc's memory, where nothing is said of a place. */
static const hamr_place *place_of(hamr_place *place, const int32_t *allocator, const int32_t *device) {
    memset(place, 0, sizeof *place);
    place->allocator = allocator ? *allocator : HAMR_ALLOCATOR_MALLOC;
    place->device = device ? *device : HAMR_CURRENT_DEVICE;
    place->transfer = HAMR_SYNC_HOST;
    return place;
}

/* Buffers and handles come by reference: what is associated is not forgotten by a new one. */
static hamr_status check_free(const void *there) {
    if (!there) return HAMR_OK;
    return refuse(HAMR_ERROR_VALUE, "the variable has a buffer or a handle already: release it first");
}

static hamr_status allocate(hamr_buffer **buffer, int32_t element, const CFI_cdesc_t *given, const int32_t *allocator,
                            const int32_t *device, const CFI_cdesc_t *value) {
    int64_t shape[CFI_MAX_RANK];
    int32_t ndim;
    hamr_place place;
    hamr_buffer *made;
    hamr_status status = check_free(*buffer);
    if (!status) status = read_shape(given, shape, &ndim);
    if (!status) status = hamr_create(&made, element, ndim, shape, place_of(&place, allocator, device), NULL);
    if (status) return status;
    if (value && (status = fill(made, value))) {
        char words[sizeof hamr_open_error];
        snprintf(words, sizeof words, "%s", hamr_last_error());
        hamr_release(made);
        return refuse(status, words);
    }
    *buffer = made;
    return HAMR_OK;
}

static hamr_status resize(hamr_buffer *buffer, const CFI_cdesc_t *given) {
    int64_t shape[CFI_MAX_RANK];
    int32_t ndim;
    hamr_status status = read_shape(given, shape, &ndim);
    return status ? status : hamr_resize(buffer, ndim, shape, NULL);
}

static hamr_status adopt_address(hamr_buffer **buffer, void *address, int32_t element, const CFI_cdesc_t *given,
                                 const int32_t *allocator, const int32_t *device) {
    int64_t shape[CFI_MAX_RANK];
    int32_t ndim;
    hamr_place place;
    hamr_status status = check_free(*buffer);
    if (!status) status = read_shape(given, shape, &ndim);
    if (status) return status;
    return hamr_adopt(buffer, address, element, ndim, shape, NULL, place_of(&place, allocator, device), 0, NULL, NULL);
}

/* A function that Fortran calls: call's status is told to the caller; the parameters are those but the status. The
 * comment before it is what hamr.f90, which is generated, says of it: its name there, its parameters, [those that may
 * be absent], and what it does. */
#define FUNCTION(name, call, ...) \
    void hamr_fortran_##name(__VA_ARGS__, void *stat) { tell(call, stat); }

#include "hamr/fortran.h" /* what follows from hamr/interface.h alone */

/* Each takes sizes of either kind. */
#define WITH_SHAPES(kind)                                                                                              \
    /* hamr_allocate(buffer, element, shape, [allocator, device, value]): New memory, of malloc's if no allocator is   \
     * named. value is a number that all elements hold; else they hold anything. */                                    \
    FUNCTION(allocate_##kind, allocate(buffer, *element, shape, allocator, device, value), hamr_buffer **buffer,       \
             const int32_t *element, const CFI_cdesc_t *shape, const int32_t *allocator, const int32_t *device,        \
             const CFI_cdesc_t *value)                                                                                 \
    /* hamr_resize(buffer, shape): Another shape. Elements stay in their order; where there are more, the new ones     \
     * hold anything. */                                                                                               \
    FUNCTION(resize_##kind, resize(*buffer, shape), hamr_buffer *const *buffer, const CFI_cdesc_t *shape)              \
    /* hamr_adopt_address(buffer, address, element, shape, [allocator, device]): Shares elements that exist by their   \
     * address, as memory of a device. They outlive the buffer and all that is made of it. */                          \
    FUNCTION(adopt_address_##kind, adopt_address(buffer, *address, *element, shape, allocator, device),                \
             hamr_buffer **buffer, void *const *address, const int32_t *element, const CFI_cdesc_t *shape,             \
             const int32_t *allocator, const int32_t *device)
WITH_SHAPES(int32)
WITH_SHAPES(int64)

static hamr_status adopt(hamr_buffer **buffer, const CFI_cdesc_t *array) {
    int64_t shape[CFI_MAX_RANK + 1], strides[CFI_MAX_RANK + 1];
    int32_t element = element_of(array), n = array->rank, rank = n;
    hamr_status status = check_free(*buffer);
    if (status) return status;
    if (array->type == CFI_type_struct || array->type == CFI_type_other) {
        element = HAMR_INT8;
        shape[rank] = (int64_t)array->elem_len;
        strides[rank++] = 1;
    }
    if (element == HAMR_INVALID) return no_element();
    for (int32_t i = 0; i < n; i++) {
        shape[n - 1 - i] = array->dim[i].extent;
        strides[n - 1 - i] = array->dim[i].sm;
        if (array->dim[i].extent < 0)
            return refuse(HAMR_ERROR_VALUE, "the array is of assumed size: its last extent is not known");
    }
    return hamr_adopt(buffer, array->base_addr, element, rank, shape, strides, NULL, 0, NULL, NULL);
}

/* hamr_adopt(buffer, array): Shares an array that exists, of any rank, also with gaps between its elements. It has the
 * attribute target, and outlives the buffer and all that is made of it. Of a derived type the buffer has the bytes, of
 * HAMR_INT8, in a dimension more that comes first. */
FUNCTION(adopt, adopt(buffer, array), hamr_buffer **buffer, const CFI_cdesc_t *array)

/* Lets a pointer of Fortran's point to elements, if they are of its type and rank. */
static hamr_status associate(CFI_cdesc_t *pointer, const hamr_info *info, void *data) {
    static int64_t nothing[2]; /* what has no elements may have no address */
    CFI_CDESC_T(CFI_MAX_RANK) room;
    CFI_cdesc_t *target = (CFI_cdesc_t *)&room;
    CFI_index_t extents[CFI_MAX_RANK] = {0}, ones[CFI_MAX_RANK] = {0};
    int32_t n = info->ndim;
    char words[160];
    if (pointer->rank != n || element_of(pointer) != info->element) {
        const char *mine = hamr_element_name(element_of(pointer)), *its = hamr_element_name(info->element);
        snprintf(words, sizeof words, "the pointer is of %s and rank %d, the elements are of %s and rank %d",
                 mine ? mine : "another type", (int)pointer->rank, its ? its : "another type", (int)n);
        return refuse(HAMR_ERROR_TYPE, words);
    }
    for (int32_t i = 0; i < n; i++) {
        extents[i] = info->shape[n - 1 - i];
        ones[i] = 1;
    }
    CFI_establish(target, info->size ? data : nothing, CFI_attribute_pointer, pointer->type, 0, pointer->rank, extents);
    for (int32_t i = 0; i < n; i++) target->dim[i].sm = info->strides[n - 1 - i];
    CFI_setpointer(pointer, target, ones);
    return HAMR_OK;
}

static hamr_status point_to(hamr_buffer *buffer, CFI_cdesc_t *pointer) {
    const hamr_info *info = hamr_info_of(buffer);
    char words[160];
    CFI_setpointer(pointer, NULL, NULL); /* it may have been anything */
    if (!info) return hamr_synchronize(buffer); /* which says why */
    if (!(info->flags & HAMR_INFO_REACHABLE(HAMR_HOST))) {
        const char *name = hamr_allocator_name(info->allocator);
        snprintf(words, sizeof words, "the host does not reach memory of %s: hamr_access does",
                 name ? name : "that allocator");
        return refuse(HAMR_ERROR_VALUE, words);
    }
    return associate(pointer, info, hamr_data(buffer));
}

static hamr_status access_elements(hamr_buffer *buffer, CFI_cdesc_t *pointer, hamr_handle **handle, const int32_t *mode,
                                   const int32_t *space, const int32_t *device) {
    hamr_handle *made;
    CFI_setpointer(pointer, NULL, NULL); /* it may have been anything */
    hamr_status status = check_free(*handle);
    if (!status)
        status = hamr_access(buffer, space ? *space : HAMR_HOST, device ? *device : HAMR_CURRENT_DEVICE,
                             (mode ? *mode : HAMR_READ_WRITE) | HAMR_STRIDED, &made);
    if (status) return status;
    if ((status = associate(pointer, hamr_handle_info(made), hamr_handle_data(made)))) {
        char words[sizeof hamr_open_error];
        snprintf(words, sizeof words, "%s", hamr_last_error());
        hamr_abandon_handle(made);
        return refuse(status, words);
    }
    *handle = made;
    return HAMR_OK;
}

/* Each for a type of pointers, as Fortran tells them apart by it. */
#define WITH_POINTERS(type)                                                                                            \
    /* hamr_data(buffer, pointer): Lets a pointer of the buffer's rank and type point to the elements, in memory that  \
     * the host reaches. It is valid until the buffer is changed, moved or released. */                                \
    FUNCTION(data_##type, point_to(*buffer, pointer), hamr_buffer *const *buffer, CFI_cdesc_t *pointer)                \
    /* hamr_access(buffer, pointer, handle, [mode, space, device]): The same for code that says what it does with the  \
     * elements, HAMR_READ_WRITE if it does not, and where it runs, on the host if it does not, wherever the elements  \
     * are. Until the handle is released they are its own, and what it writes is the buffer's then. */                 \
    FUNCTION(access_##type, access_elements(*buffer, pointer, handle, mode, space, device),                            \
             hamr_buffer *const *buffer, CFI_cdesc_t *pointer, hamr_handle **handle, const int32_t *mode,              \
             const int32_t *space, const int32_t *device)
WITH_POINTERS(bool)
WITH_POINTERS(int8)
WITH_POINTERS(int16)
WITH_POINTERS(int32)
WITH_POINTERS(int64)
WITH_POINTERS(real32)
WITH_POINTERS(real64)
WITH_POINTERS(complex32)
WITH_POINTERS(complex64)

/* Forgets what the library has given back. */
static hamr_status forget_buffer(hamr_buffer **buffer) {
    hamr_status status = hamr_release(*buffer);
    if (!status) *buffer = NULL;
    return status;
}

static hamr_status forget_handle(hamr_handle **handle, hamr_status status) {
    if (status != HAMR_ERROR_MEMORY) *handle = NULL; /* then it can be tried again */
    return status;
}

static hamr_status copy(hamr_buffer *buffer, hamr_buffer **made, const int32_t *allocator, const int32_t *device) {
    hamr_place place;
    hamr_status status = check_free(*made);
    return status ? status : hamr_copy(buffer, made, 0, allocator ? place_of(&place, allocator, device) : NULL);
}

static hamr_status from_dlpack(hamr_buffer **made, struct DLManagedTensorVersioned *tensor) {
    hamr_status status = check_free(*made);
    return status ? status : hamr_from_dlpack(tensor, NULL, made);
}

/* hamr_release(buffer): Gives a buffer or a handle back. One that holds nothing is no error. Where memory runs out for
 * what a handle wrote, it is still there, to be tried again or abandoned. */
FUNCTION(release_buffer, forget_buffer(buffer), hamr_buffer **buffer)
/* hamr_release(handle): */
FUNCTION(release_handle, forget_handle(handle, hamr_release_handle(*handle)), hamr_handle **handle)
/* hamr_abandon(handle): Gives a handle back without what it wrote to a temporary. */
FUNCTION(abandon, forget_handle(handle, hamr_abandon_handle(*handle)), hamr_handle **handle)
/* hamr_fill(buffer, value): All elements hold a number, which is converted. */
FUNCTION(fill, fill(*buffer, value), hamr_buffer *const *buffer, const CFI_cdesc_t *value)
/* hamr_swap(buffer, other): Two buffers exchange all that they have. */
FUNCTION(swap, hamr_swap(*buffer, *other), hamr_buffer *const *buffer, hamr_buffer *const *other)
/* hamr_copy(buffer, made, [allocator, device]): A new buffer of the same elements, in memory as the first one's if no
 * allocator is named. */
FUNCTION(copy, copy(*buffer, made, allocator, device), hamr_buffer *const *buffer, hamr_buffer **made,
         const int32_t *allocator, const int32_t *device)
/* hamr_to_dlpack(buffer, tensor): A DLManagedTensorVersioned * that keeps the memory, after the work on it. Whoever
 * takes it calls its deleter. */
FUNCTION(to_dlpack, hamr_to_dlpack(*buffer, NULL, tensor), hamr_buffer *const *buffer,
         struct DLManagedTensorVersioned **tensor)
/* hamr_from_dlpack(made, tensor): Takes such a tensor over, save after an error. */
FUNCTION(from_dlpack, from_dlpack(made, *tensor), hamr_buffer **made, struct DLManagedTensorVersioned *const *tensor)

/* Of a buffer's info, each. */
#define FACT(result, name, fact, none)                                  \
    result hamr_fortran_##name(hamr_buffer *const *buffer) {            \
        const hamr_info *info = *buffer ? hamr_info_of(*buffer) : NULL; \
        return info ? fact : none;                                      \
    }
/* type(c_ptr) hamr_address(buffer): Where the first element is, in the address space of its device; null of what
 * is no buffer. */
FACT(void *, address, hamr_data(*buffer), NULL)
/* integer(c_int64_t) hamr_size(buffer): How many elements; 0 of what is no buffer. */
FACT(int64_t, size, info->size, 0)
/* A default integer of 4 bytes is the lower half of the register. */
/* integer(hamr_integer) hamr_rank(buffer): -1 of what is no buffer. */
FACT(int64_t, rank, info->ndim, -1)
/* integer(hamr_integer) hamr_element(buffer): HAMR_FLOAT64 and so on; 0 of what Fortran's numbers are not. */
FACT(int64_t, element, info->element, HAMR_INVALID)
/* integer(hamr_integer) hamr_allocator(buffer): HAMR_UNKNOWN_ALLOCATOR of what is no buffer. */
FACT(int64_t, allocator, info->allocator, HAMR_UNKNOWN_ALLOCATOR)
/* integer(hamr_integer) hamr_device(buffer): Which owns the memory; -1: the host. */
FACT(int64_t, device, info->device, HAMR_CURRENT_DEVICE)

/* integer(c_int64_t) hamr_extent(buffer, dimension): The size of a dimension, counted from 1; -1 where
 * there is none. */
int64_t hamr_fortran_extent(hamr_buffer *const *buffer, const int32_t *dimension) {
    const hamr_info *info = *buffer ? hamr_info_of(*buffer) : NULL;
    if (!info || *dimension < 1 || *dimension > info->ndim) return -1;
    return info->shape[info->ndim - *dimension];
}

/* Reverses the numbers of a list, as "(2, 3)", that begins at text, and returns where it ends; NULL: it is none. */
static char *reverse_list(char *text) {
    char copied[512], *at = text + 1, *to = text + 1;
    const char close = *text == '(' ? ')' : ']';
    struct {
        size_t start, size;
    } numbers[HAMR_LISTED];
    int n = 0;
    while (n < HAMR_LISTED) {
        size_t size = (*at == '-') + strspn(at + (*at == '-'), "0123456789");
        if (size <= (size_t)(*at == '-')) return NULL;
        numbers[n].start = (size_t)(at - text);
        numbers[n++].size = size;
        at += size;
        if (*at == close) break;
        size_t between = strspn(at, ", ");
        if (!between) return NULL;
        at += between;
    }
    size_t all = (size_t)(at - text);
    if (*at != close || n < 2 || all >= sizeof copied) return NULL;
    memcpy(copied, text, all);
    for (int i = 0; i < n; i++) { /* what is between two numbers stays where it is in their order */
        size_t end = numbers[i].start + numbers[i].size, next = i + 1 < n ? numbers[i + 1].start : all;
        memcpy(to, copied + numbers[n - 1 - i].start, numbers[n - 1 - i].size);
        to += numbers[n - 1 - i].size;
        memcpy(to, copied + end, next - end);
        to += next - end;
    }
    return at;
}

/* type(c_ptr) hamr_error_words(length): For hamr_last_error, which makes Fortran's text of it: in the order that the
 * program has given sizes in. */
const char *hamr_fortran_error_words(int64_t *length) {
    static __thread char words[sizeof hamr_open_error];
    snprintf(words, sizeof words, "%s", hamr_last_error());
    for (char *at = words; *at; at++) {
        char *end = *at == '(' || *at == '[' ? reverse_list(at) : NULL;
        if (end) at = end;
    }
    *length = (int64_t)strlen(words);
    return words;
}
