/* The store, and sharing without one, for C and C++: arrays that processes of one user on one machine
 * have in common. docs/store.md and docs/sharing.md say what holds.
 *
 *     hamr_store *store;
 *     hamr_store_builder *builder;
 *     hamr_store_id id;
 *     if (hamr_store_connect(NULL, -1, &store)) return fail(hamr_last_error());
 *     if (hamr_store_create(store, HAMR_FLOAT64, 1, &n, NULL, 0, NULL, 0, &builder)) …
 *     id = hamr_store_builder_id(builder);
 *     … hamr_store_builder_buffer(builder) …
 *     if (hamr_store_seal(builder, NULL)) …
 *
 * What the functions do is said in hamr/store_interface.h, at the table's entry of the same name. */
#ifndef HAMR_STORE_H
#define HAMR_STORE_H

#include "hamr.h"
#include "hamr/store_interface.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline const hamr_store_table *hamr_store_get_with(size_t end, const char *function) {
    const hamr_store_table *table = (const hamr_store_table *)hamr_other_table("store", HAMR_STORE_VERSION);
    if (table && table->size >= end) return table;
    if (hamr_get() && !hamr_open_error[0]) {
        hamr_open_say("hamr's library is older than this program: it has no hamr_store_");
        hamr_open_say(function);
    }
    return NULL;
}

#define HAMR_STORE_TABLE_WITH(name) \
    hamr_store_get_with(offsetof(hamr_store_table, name) + sizeof(void (*)(void)), #name)
#include "hamr/store_calls.h"
#undef HAMR_STORE_TABLE_WITH

/* 32 hexadecimal digits and a NUL. */
static inline void hamr_store_id_text(const hamr_store_id *id, char text[33]) {
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        text[2 * i] = digits[id->bytes[i] >> 4];
        text[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    text[32] = '\0';
}

/* Reads what hamr_store_id_text writes, and says whether it is that: 1, or 0, and then id is zero. */
static inline int hamr_store_id_parse(const char *text, hamr_store_id *id) {
    static const char digits[] = "0123456789abcdefABCDEF";
    memset(id, 0, sizeof *id);
    if (!text || strlen(text) != 32) return 0;
    for (int i = 0; i < 32; i++) {
        const char *found = (strchr)(digits, text[i]);
        int digit = found ? (int)(found - digits) : -1;
        if (digit < 0) {
            memset(id, 0, sizeof *id);
            return 0;
        }
        if (digit > 15) digit -= 6;
        id->bytes[i / 2] = (uint8_t)(id->bytes[i / 2] << 4 | digit);
    }
    return 1;
}

#ifdef __cplusplus
}
#endif

#endif
