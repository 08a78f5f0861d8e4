#include "store_calls.h"

#include "_cgo_export.h"

const capi_store_calls capi_store_of_this_copy = {
    .serve = hamrStoreServe,
    .end_server = hamrStoreEndServer,
    .connect = hamrStoreConnect,
    .disconnect = hamrStoreDisconnect,
    .create = hamrStoreCreate,
    .seal = hamrStoreSeal,
    .abort = hamrStoreAbort,
    .end_object = hamrStoreEndObject,
    .get = hamrStoreGet,
    .put = hamrStorePut,
    .delete_object = hamrStoreDelete,
    .put_name = hamrStorePutName,
    .get_name = hamrStoreGetName,
    .drop_name = hamrStoreDropName,
    .exists = hamrStoreExists,
    .describe = hamrStoreDescribe,
    .metadata = hamrStoreMetadata,
    .list = hamrStoreList,
    .wait = hamrStoreWait,
    .figures = hamrStoreFigures,
    .share = hamrShareElements,
    .open_frame = hamrOpenFrame,
    .pin = hamrStorePin,
    .set_evictable = hamrStoreSetEvictable,
    .set_metadata = hamrStoreSetMetadata,
    .set_timeout = hamrStoreSetTimeout,
};
