#define _GNU_SOURCE
#include "fork.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "_cgo_export.h"
#include "failure.h"
#include "object.h"
#include "spare.h"

uint64_t capi_generation = 1;
capi_core capi_own;

static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static int forked;          /* the runtime of this copy is of a process that this one was forked from */
static char copy_path[64]; /* of this process's own copy; "" until there is one */

static int32_t *spare_ends; /* descriptors plus one, or 0: gobuffer.SpareEnds */

void capi_set_spare_ends(uint64_t address) { spare_ends = (int32_t *)(uintptr_t)address; }

static uint64_t *recorded; /* store.Recorded: how many words follow, and a bit for each descriptor */

void capi_set_recorded(uint64_t address) { recorded = (uint64_t *)(uintptr_t)address; }

/* What the parent serves, and its sessions, end with the parent. */
static void close_recorded(void) {
    for (uint64_t at = 0; recorded && at < recorded[0]; at++) {
        for (uint64_t bits = recorded[at + 1]; bits; bits &= bits - 1) close((int)(at * 64) + __builtin_ctzll(bits));
        recorded[at + 1] = 0;
    }
}

/* Of a lease that the parent has made ahead the child would have both ends, and what is lent by it later. */
static void close_spare_ends(void) {
    for (int i = 0; spare_ends && i < 2; i++) {
        if (spare_ends[i]) close(spare_ends[i] - 1);
        spare_ends[i] = 0;
    }
}

/* The locks are held over a fork, so that the child finds what they guard whole. */
static void before_fork(void) {
    pthread_mutex_lock(&loading);
    shares_lock();
    object_lock();
}

static void after_fork(void) {
    object_unlock();
    shares_unlock();
    pthread_mutex_unlock(&loading);
}

static void after_fork_in_child(void) {
    forked = 1;
    close_spare_ends();
    close_recorded();
    copy_path[0] = '\0';
    memset(&capi_own, 0, sizeof capi_own);
    capi_generation++;
    spares_forget();
    shares_forget();
    after_fork();
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Writes this library's file to a descriptor: 0, or an errno. sendfile would end at a signal. */
static int copy_file(int to) {
    Dl_info own;
    struct stat facts;
    if (!dladdr((void *)(uintptr_t)watch_forks, &own) || !own.dli_fname) return ENOENT;
    int from = open(own.dli_fname, O_RDONLY | O_CLOEXEC);
    if (from < 0) return errno;
    const char *image = fstat(from, &facts) == 0 ? mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_PRIVATE, from, 0)
        : MAP_FAILED;
    int failed = image == MAP_FAILED ? errno : 0;
    for (off_t done = 0; !failed && done < facts.st_size;) {
        ssize_t n = write(to, image + done, (size_t)(facts.st_size - done));
        if (n > 0) done += n;
        else if (n == 0 || errno != EINTR) failed = n == 0 ? EIO : errno;
    }
    if (image != MAP_FAILED) munmap((void *)(uintptr_t)image, (size_t)facts.st_size);
    close(from);
    return failed;
}

/* With the lock: the path of this process's copy. The loader takes files of the same name, and the
 * same inode, for the same library: the process's number makes the name unlike that of a parent's
 * copy. The descriptor stays open, so that the name stays taken. NULL, and errno. */
static const char *path_of_copy(void) {
    if (copy_path[0]) return copy_path;
    int file = memfd_create("hamr", MFD_CLOEXEC), failed = file < 0 ? errno : copy_file(file);
    if (failed) {
        if (file >= 0) close(file);
        errno = failed;
        return NULL;
    }
    snprintf(copy_path, sizeof copy_path, "/proc/%d/fd/%d", (int)getpid(), file);
    return copy_path;
}

/* For whoever else loads the library in this process: the file to load. "" is the library's own;
 * NULL, and errno: there is no copy of it to be had. Asked of the library of the first process. */
HAMR_EXPORT const char *hamr_path_in_process(void) {
    pthread_mutex_lock(&loading);
    const char *path = forked ? path_of_copy() : "";
    pthread_mutex_unlock(&loading);
    return path;
}

/* A copy's own core; drop is whose spares its statistics do not count. */
HAMR_EXPORT void hamr_core_of_copy(capi_core *core, hamr_drop_function drop) {
    core->functions = hamrCore(&core->tracing, &core->checking, &core->watching, &core->configured);
    core->limit_pool = hamrLimitPool;
    core->limit_kept = hamrLimitKept;
    core->limit_library = hamrLimitLibrary;
    core->enter_tag = hamrEnterTag;
    core->leave_tag = hamrLeaveTag;
    core->pause = hamrPause;
    core->resume = hamrResume;
    core->open_frame = hamrOpenFrame;
    spares_of(drop);
}

extern char **environ;

/* Whether Go reads a variable. */
static int is_setting(const char *name) {
    static const char *const others[] = {"CUDA_HOME", "CUDA_PATH", "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"};
    int found = strncmp(name, "HAMR_", 5) == 0;
    for (size_t i = 0; !found && i < sizeof others / sizeof *others; i++) found = strcmp(name, others[i]) == 0;
    return found;
}

/* Go sees what the environment was when the process started. */
static void configure(const hamr_functions *functions) {
    char name[64];
    for (char **entry = environ; entry && *entry; entry++) {
        const char *value = strchr(*entry, '=');
        if (!value || (size_t)(value - *entry) >= sizeof name) continue;
        memcpy(name, *entry, (size_t)(value - *entry));
        name[value - *entry] = '\0';
        value++;
        if (!is_setting(name)) continue;
        /* What is empty is not set, save where that says something. */
        free(functions->configure(name, *value || strcmp(name, "HAMR_TUNING") != 0 ? value : "0"));
        if (strcmp(name, "HAMR_VERBOSE") == 0) free(functions->set_verbose(atoi(value) > 0));
    }
}

/* With the lock. */
static hamr_status load(void) {
    capi_core core = {0};
    void (*get)(capi_core *, hamr_drop_function) = hamr_core_of_copy;
    if (forked) {
        const char *path = path_of_copy();
        if (!path)
            return fail(HAMR_ERROR_FORKED, "hamr cannot make a copy of its library in this forked child: %s",
                        strerror(errno));
        void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        void *found = library ? dlsym(library, "hamr_core_of_copy") : NULL;
        if (!found)
            return fail(HAMR_ERROR_FORKED, "hamr cannot load a copy of its library in this forked child: %s",
                        dlerror());
        memcpy(&get, &found, sizeof get);
    }
    get(&core, spares_drop);
    if (core.functions->version != HAMR_ABI_VERSION)
        return fail(HAMR_ERROR_FORKED,
                    "hamr's library was replaced by another version since this process's parent loaded it");
    if (!core.configured) configure(core.functions);
    const hamr_functions *functions = core.functions;
    core.functions = NULL;
    capi_own = core;
    __atomic_store_n(&capi_own.functions, functions, __ATOMIC_RELEASE); /* whoever sees it sees the rest */
    return HAMR_OK;
}

hamr_status capi_load(void) {
    pthread_mutex_lock(&loading);
    hamr_status status = capi_own.functions ? HAMR_OK : load();
    pthread_mutex_unlock(&loading);
    return status;
}
