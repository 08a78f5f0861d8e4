/* What the programs of hamr/store.h have in common. */
#pragma once

#include "check.h"
#include "hamr/store.h"

#define MUCH 20000 /* elements: memory of their own */

static hamr_store *store;

static inline hamr_store_id made(int64_t n, uint32_t flags, double value, hamr_buffer **sealed) {
    hamr_store_builder *builder;
    static const char json[] = "{\"step\": 7}";
    OK(hamr_store_create(store, HAMR_FLOAT64, 1, &n, NULL, flags, json, strlen(json), &builder));
    hamr_store_id id = hamr_store_builder_id(builder);
    OK(hamr_fill(hamr_store_builder_buffer(builder), HAMR_FLOAT64, &value));
    OK(hamr_store_seal(builder, sealed));
    return id;
}

static inline double first_of(const hamr_buffer *buffer) {
    double value = 0;
    OK(hamr_get_values(buffer, 0, HAMR_FLOAT64, &value, 1));
    return value;
}

static inline int same(const hamr_store_id *a, const hamr_store_id *b) { return memcmp(a, b, sizeof *a) == 0; }

/* What is said of objects that are there. */
static inline uint32_t flags_of(const hamr_store_id *id) {
    hamr_store_info info;
    OK(hamr_store_describe(store, id, &info));
    return info.flags & (HAMR_STORE_PINNED | HAMR_STORE_EVICTABLE);
}
