#include "hamr/store_functions.h"
#include "_cgo_export.h"

#include <stdlib.h>

static hamr_devices devices;
static hamr_raise_function raise_error;

static void set_raise(hamr_raise_function raise) { raise_error = raise; }

static const hamr_store_functions store = {
    .serve = hamrStoreServe,
    .served = hamrStoreServed,
    .end_server = hamrStoreEndServer,
    .connect = hamrStoreConnect,
    .disconnect = hamrStoreDisconnect,
    .set_timeout = hamrStoreSetTimeout,
    .create = hamrStoreCreate,
    .seal = hamrStoreSeal,
    .abort = hamrStoreAbort,
    .end_object = hamrStoreEndObject,
    .get = hamrStoreGet,
    .put = hamrStorePut,
    .discard = hamrStoreDiscard,
    .delete_object = hamrStoreDelete,
    .put_name = hamrStorePutName,
    .get_name = hamrStoreGetName,
    .drop_name = hamrStoreDropName,
    .exists = hamrStoreExists,
    .describe = hamrStoreDescribe,
    .list = hamrStoreList,
    .wait = hamrStoreWait,
    .figures = hamrStoreFigures,
    .mark = hamrStoreMark,
    .set_metadata = hamrStoreSetMetadata,
    .watch = hamrStoreWatch,
    .next_events = hamrStoreNextEvents,
    .end_events = hamrStoreEndEvents,
};

static hamr_functions functions = {
    .version = HAMR_ABI_VERSION,
    .free = free,
    .create = hamrCreate,
    .create_at_once = hamrCreateAtOnce,
    .create_cached = hamrCreateCached,
    .adopt = hamrAdopt,
    .adopt_device = hamrAdoptDevice,
    .release = hamrRelease,
    .release_at_once = hamrReleaseAtOnce,
    .leave = hamrLeave,
    .release_after = hamrReleaseAfter,
    .live_references = hamrLiveReferences,
    .locate = hamrLocate,
    .free_function = hamrFreeFunction,
    .access = hamrAccess,
    .changed = hamrChanged,
    .open_access = hamrOpenAccess,
    .end_access = hamrEndAccess,
    .read = hamrRead,
    .write_bytes = hamrWriteBytes,
    .download_failed = hamrDownloadFailed,
    .covering = hamrCovering,
    .order_before = hamrOrderBefore,
    .wait_array = hamrWaitArray,
    .synchronize = hamrSynchronize,
    .reserve = hamrReserve,
    .resize = hamrResize,
    .append = hamrAppend,
    .assign = hamrAssign,
    .set = hamrSet,
    .write = hamrWrite,
    .copy_many = hamrCopyMany,
    .fill = hamrFill,
    .move = hamrMove,
    .copy = hamrCopy,
    .reshape = hamrReshape,
    .text = hamrText,
    .share_elements = hamrShare,
    .open_elements = hamrOpenElements,
    .end_elements = hamrEndElements,
    .prepare_share = hamrPrepareShare,
    .new_stream = hamrNewStream,
    .destroy_stream = hamrDestroyStream,
    .retire_stream = hamrRetireStream,
    .resolve_stream = hamrResolveStream,
    .stream_device = hamrStreamDevice,
    .stream_idle = hamrStreamIdle,
    .wait_stream = hamrWaitStream,
    .stream_wait_event = hamrStreamWaitEvent,
    .record_event = hamrRecordEvent,
    .record_timed_event = hamrRecordTimedEvent,
    .elapsed = hamrElapsed,
    .destroy_event = hamrDestroyEvent,
    .event_done = hamrEventDone,
    .wait_event = hamrWaitEvent,
    .take_cached_stream = hamrTakeCachedStream,
    .give_cached_stream = hamrGiveCachedStream,
    .record_cached_event = hamrRecordCachedEvent,
    .give_cached_event = hamrGiveCachedEvent,
    .drop_cached_event = hamrDropCachedEvent,
    .wait_for_event = hamrWaitForEvent,
    .open_module = hamrOpenModule,
    .close_module = hamrCloseModule,
    .get_kernel = hamrGetKernel,
    .launch = hamrLaunch,
    .launched = hamrLaunched,
    .compile = hamrCompile,
    .device_count = hamrDeviceCount,
    .current_device = hamrCurrentDevice,
    .activate = hamrActivate,
    .restore = hamrRestore,
    .activate_if_current = hamrActivateIfCurrent,
    .can_access = hamrCanAccess,
    .enable_peer = hamrEnablePeer,
    .disable_peer = hamrDisablePeer,
    .memory_info = hamrMemoryInfo,
    .describe = hamrDescribe,
    .proceed = hamrProceed,
    .stop = hamrStop,
    .library_version = hamrLibraryVersion,
    .backends = hamrBackends,
    .backend = hamrBackend,
    .preferred_allocator = hamrPreferredAllocator,
    .parse_element = hamrParseElement,
    .parse_dlpack = hamrParseDLPack,
    .check_interface = hamrCheckInterface,
    .statistics = hamrStatistics,
    .reset_peaks = hamrResetPeaks,
    .trim = hamrTrim,
    .configure = hamrConfigure,
    .set_verbose = hamrSetVerbose,
    .take_log = hamrTakeLog,
    .set_raise = set_raise,
    .devices = &devices,
    .store = &store,
};

const hamr_functions *hamr_function_table(void) { return &functions; }

void hamr_call_finished(hamr_finished_function finished, uint64_t key) { finished(key); }

int hamr_call_raise(hamr_error *error) {
    if (!raise_error) {
        free(error);
        return 0;
    }
    raise_error(error);
    return 1;
}

/* Whoever sees that there are devices sees the rest. */
void hamr_set_devices(hamr_devices known) {
    int32_t count = known.cuda_count;
    known.cuda_count = 0;
    devices = known;
    __atomic_store_n(&devices.cuda_count, count, __ATOMIC_RELEASE);
}
