/* The order of this table is for ever: new functions come last. */
#include <string.h>

#include "calls.h"
#include "stored.h"

static const hamr_store_table table = {
    .version = HAMR_STORE_VERSION,
    .size = sizeof(hamr_store_table),
    .connect = stored_connect,
    .path = stored_path,
    .close = stored_close,
    .serve = stored_serve,
    .server_path = stored_server_path,
    .end_server = stored_end_server,
    .create = stored_create,
    .builder_id = stored_builder_id,
    .builder_buffer = stored_builder_buffer,
    .seal = stored_seal,
    .abort = stored_abort,
    .put = stored_put,
    .get = stored_get,
    .delete_object = stored_delete,
    .put_name = stored_put_name,
    .get_name = stored_get_name,
    .drop_name = stored_drop_name,
    .exists = stored_exists,
    .describe = stored_describe,
    .metadata = stored_metadata,
    .list = stored_list,
    .wait = stored_wait,
    .statistics = stored_figures,
    .create_mirror = mirror_create,
    .mirror_info = mirror_info,
    .mirror_data = mirror_data,
    .release_mirror = mirror_release,
    .abandon_mirror = mirror_abandon,
    .share = shared_share,
    .shared_frame = shared_frame,
    .release_shared = shared_release,
    .send_shared = shared_send,
    .open_frame = shared_open_frame,
    .open_shared = shared_open,
    .pin = stored_pin,
    .set_evictable = stored_set_evictable,
    .set_metadata = stored_set_metadata,
    .set_timeout = stored_set_timeout,
};

const void *capi_other_table(const char *name, uint32_t version) {
    return name && strcmp(name, "store") == 0 && version == HAMR_STORE_VERSION ? &table : NULL;
}
