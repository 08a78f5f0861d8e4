#include <string.h>

#include "calls.h"

HAMR_EXPORT const hamr_table *hamr_get_table(uint32_t version) {
    return version == HAMR_TABLE_VERSION ? &capi_table : NULL;
}

const void *capi_other_table(const char *name, uint32_t version) {
    return name && strcmp(name, "store") == 0 && version == HAMR_STORE_VERSION ? &capi_store_table : NULL;
}
