#include "memory/exchange.h"

#include <stdlib.h>

#include "base/python.h"
#include "core/core.h"
#include "core/errors.h"
#include "hamr/open.h"
#include "memory/owner.h"

/* Of the first process's library, which C goes on using in forked children. */
static const hamr_exchange *exchange;

void exchange_of_another(void) {
    PyErr_SetString(PyExc_ImportError,
                    "this process has loaded another file of hamr's library than that of Python's package hamr: unset "
                    "HAMR_LIBRARY, or have it "
                                       "name hamr/_gopy/_pyhamr.abi3.so in the package");
}

const hamr_exchange *exchange_get(void) {
    char name[4096];
    if (exchange) return exchange;
    if (core_load() < 0) return NULL;
    void *library = dl_iterate_phdr(hamr_is_library, name) ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    hamr_get_exchange_function get = NULL;
    if (library) *(void **)&get = dlsym(library, "hamr_get_exchange");
    const hamr_exchange *found = get ? get(HAMR_ABI_VERSION) : NULL;
    if (!found || found->functions() != core_functions()) {
        exchange_of_another();
        return NULL;
    }
    found->when_over(owner_drain_soon);
    exchange = found;
    return exchange;
}

int exchange_raise_as(const hamr_failure *failure) {
    static const char *const none[] = {NULL};
    hamr_error *error = calloc(1, sizeof *error);
    if (!error) return PyErr_NoMemory(), -1;
    *error = (hamr_error){.kind = failure->status, .code = failure->code, .size = failure->size,
                          .message = failure->message,
                          .source = failure->source, .name = failure->name, .tried = none, .stack = failure->stack};
    return core_raise(error);
}

int exchange_raise(void) {
    hamr_failure failure;
    exchange->last_failure(&failure, sizeof failure);
    return exchange_raise_as(&failure);
}

void exchange_end(struct Share *share, uint64_t stream) { exchange->end(share, stream); }

int exchange_users(const struct Share *share) { return exchange->users(share); }
