/* What Arrow's structs say of an array: its elements' type, how many there are, where. */
#include "protocols/arrow_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/python.h"
#include "plain/layout.h"
#include "protocols/arrow.h"

#define ACCEPTED \
    "accepted are int8 ... int64 (c s i l), uint8 ... uint64 (C S I L), float16 ... float64 (e f g), " \
    "and fixed-size lists of them (+w:n)"

const char *arrow_format(int32_t element) {
    const ElementFacts *facts = element_facts(element);
    return facts ? facts->arrow : NULL;
}

static int32_t element_of(const char *format) {
    const ElementFacts *facts;
    for (int32_t i = HAMR_INVALID + 1; (facts = element_facts(i)); i++)
        if (facts->arrow && strcmp(facts->arrow, format) == 0) return i;
    return HAMR_INVALID;
}

/* In words, since most who read them have never seen a format. */
static const char *advice(const char *format) {
    if (strcmp(format, "b") == 0) return "Arrow packs eight bool in a byte, which cannot be shared; cast it to uint8";
    if (strncmp(format, "td", 2) == 0 || strncmp(format, "tt", 2) == 0 || strncmp(format, "ts", 2) == 0 ||
        strncmp(format, "tD", 2) == 0) {
        int narrow = strcmp(format, "tdD") == 0 || strcmp(format, "tts") == 0 || strcmp(format, "ttm") == 0;
        return narrow
            ? "dates and times are shared as numbers; view('int32') makes such an array, cast('int64') a wider one"
                      : "dates and times are shared as numbers; view('int64') makes such an array";
    }
    if (strcmp(format, "+s") == 0) return "share the columns one by one";
    return NULL;
}

static int refuse_format(const char *format) {
    PyObject *text = PyUnicode_DecodeUTF8(format, (Py_ssize_t)strlen(format), "backslashreplace");
    if (!text) return -1;
    const char *more = advice(format);
    if (more) PyErr_Format(PyExc_TypeError, "the Arrow format is %R: %s; " ACCEPTED, text, more);
    else PyErr_Format(PyExc_TypeError, "the Arrow format is %R: " ACCEPTED, text);
    Py_DECREF(text);
    return -1;
}

static int refuse(const char *what, int64_t value, const char *accepted) {
    return RAISE(PyExc_ValueError, "%s of the Arrow array is %lld: %s", what, (long long)value, accepted);
}

/* Reads a length and as many bytes of metadata: lengths are of the machine's byte order, at any address. */
static const char *next_text(const char **metadata, int32_t *length) {
    memcpy(length, *metadata, sizeof *length);
    const char *text = *metadata + sizeof *length;
    if (*length < 0)
        return PyErr_Format(PyExc_ValueError, "the Arrow schema's metadata has a text of %d bytes", (int)*length), NULL;
    *metadata = text + *length;
    return text;
}

/* An extension type gives elements another meaning than their format does. */
static int check_metadata(const char *metadata) {
    static const char key[] = "ARROW:extension:name";
    int32_t pairs = 0, key_length, length;
    if (!metadata) return 0;
    memcpy(&pairs, metadata, sizeof pairs);
    metadata += sizeof pairs;
    for (int32_t i = 0; i < pairs; i++) {
        const char *name = next_text(&metadata, &key_length), *value = name ? next_text(&metadata, &length) : NULL;
        if (!value) return -1;
        if (key_length != sizeof key - 1 || memcmp(name, key, sizeof key - 1) != 0) continue;
        PyObject *text = PyUnicode_DecodeUTF8(value, length, "backslashreplace");
        if (text)
            PyErr_Format(PyExc_TypeError, "the Arrow array is of the extension type %R: share its storage; " ACCEPTED,
                         text);
        Py_XDECREF(text);
        return -1;
    }
    return 0;
}

/* The n of "+w:n"; -1 if the format is another. */
static int64_t list_size(const char *format) {
    if (strncmp(format, "+w:", 3) != 0 || format[3] < '0' || format[3] > '9') return -1;
    char *end;
    long long size = strtoll(format + 3, &end, 10);
    return *end || strlen(format) > 3 + 19 ? -1 : size;
}

int arrow_read_schema(const struct ArrowSchema *schema, hamr_array *into) {
    for (into->ndim = 1;; into->ndim++) {
        if (!schema || !schema->format) return RAISE(PyExc_ValueError, "the Arrow schema has no format");
        if (schema->dictionary) {
            PyErr_SetString(PyExc_TypeError,
                            "the Arrow array is dictionary-encoded: dictionary_decode() makes a plain one; " ACCEPTED);
            return -1;
        }
        if (check_metadata(schema->metadata) < 0) return -1;
        int64_t size = list_size(schema->format);
        if (size < 0) {
            into->element = element_of(schema->format);
            if (!into->element) return refuse_format(schema->format);
            if (!schema->n_children) return 0;
        }
        if (schema->n_children != (size >= 0) || (size >= 0 && !schema->children))
            return RAISE(PyExc_ValueError, "n_children of the Arrow schema is %lld: accepted is %d with the format %s",
                         (long long)schema->n_children, size >= 0, schema->format);
        if (into->ndim == HAMR_MAX_DIMENSIONS)
            return RAISE(PyExc_ValueError, "the Arrow array's lists have more than %d dimensions", HAMR_MAX_DIMENSIONS);
        into->shape[into->ndim] = size;
        schema = schema->children[0];
    }
}

static int64_t zero_bits(const unsigned char *bits, int64_t from, int64_t count) {
    int64_t zeros = 0, i = from, end = from + count;
    while (i < end) {
        if (i % 8 == 0 && end - i >= 64) {
            uint64_t word;
            memcpy(&word, bits + i / 8, sizeof word);
            zeros += __builtin_popcountll(~word);
            i += 64;
        } else {
            zeros += !(bits[i / 8] >> i % 8 & 1);
            i++;
        }
    }
    return zeros;
}

/* Whether count elements from the array's element number from on are all there. */
static int check_nulls(const struct ArrowArray *array, int64_t from, int64_t count, int on_host) {
    int64_t nulls = array->null_count;
    const unsigned char *bits = array->buffers[0];
    if (nulls < -1 || nulls > array->length)
        return refuse("null_count", nulls, "accepted are 0 and, where it is not known, -1");
    if (nulls > 0 && !bits) return refuse("null_count", nulls, "accepted is 0 without a validity bitmap");
    if (nulls == 0 || !bits || count == 0) return 0;
    if (nulls < 0 || count < array->length) {
        if (!on_host)
            return refuse("null_count", nulls, "accepted is 0 on a device, whose validity bitmap is not read");
        nulls = zero_bits(bits, array->offset + from, count);
    }
    if (!nulls) return 0;
    return RAISE(PyExc_ValueError,
                 "%lld of the Arrow array's %lld elements are null: accepted are arrays without nulls, which "
                 "fill_null() and drop_null() make", (long long)nulls, (long long)count);
}

static int check_struct(const struct ArrowArray *array, int leaf) {
    int64_t end;
    if (array->length < 0) return refuse("length", array->length, "accepted are 0 and more");
    if (array->offset < 0) return refuse("offset", array->offset, "accepted are 0 and more");
    if (__builtin_add_overflow(array->offset, array->length, &end))
        return refuse("offset", array->offset, "offset and length together do not fit in 64 bits");
    if (array->n_buffers != 1 + leaf)
        return refuse("n_buffers", array->n_buffers, leaf ? "accepted is 2" : "accepted is 1 for fixed-size lists");
    if (array->n_children != !leaf)
        return refuse("n_children", array->n_children, leaf ? "accepted is 0" : "accepted is 1 for fixed-size lists");
    const char *missing = !array->buffers ? "buffers" : !leaf && (!array->children || !array->children[0]) ? "children"
        : NULL;
    if (missing) PyErr_Format(PyExc_ValueError, "the Arrow array's %s are NULL", missing);
    else if (array->dictionary)
        PyErr_SetString(PyExc_ValueError, "the Arrow array has a dictionary, its schema has none");
    else return 0;
    return -1;
}

static int too_large(void) {
    return RAISE(PyExc_ValueError, "the Arrow array has more elements than fit in 64 bits");
}

int arrow_read_array(const struct ArrowArray *array, int on_host, hamr_array *into) {
    int64_t from = 0, count = array->length, size = element_facts(into->element)->size, end;
    into->shape[0] = count;
    for (int d = 1;; d++) {
        int leaf = d == into->ndim;
        if (check_struct(array, leaf) < 0) return -1;
        if (__builtin_add_overflow(from, count, &end)) return too_large();
        if (end > array->length)
            return RAISE(PyExc_ValueError, "length of the Arrow array's child is %lld: its lists need %lld",
                         (long long)array->length, (long long)end);
        if (check_nulls(array, from, count, on_host) < 0) return -1;
        if (leaf) break;
        if (__builtin_add_overflow(from, array->offset, &from) || __builtin_mul_overflow(from, into->shape[d], &from) ||
            __builtin_mul_overflow(count, into->shape[d], &count))
            return too_large();
        array = array->children[0];
    }
    uint64_t data = (uint64_t)(uintptr_t)array->buffers[1];
    int64_t skipped;
    if (!data && count)
        return RAISE(PyExc_ValueError, "the Arrow array's data are NULL, and its length is %lld",
                     (long long)array->length);
    if (__builtin_add_overflow(from, array->offset, &from) || __builtin_mul_overflow(from, size, &skipped) ||
        __builtin_mul_overflow(count, size, &end) || __builtin_add_overflow(skipped, end, &end) ||
        data + (uint64_t)end < data)
        return too_large();
    into->pointer = data ? data + (uint64_t)skipped : 0;
    array_c_strides(into);
    return 0;
}
