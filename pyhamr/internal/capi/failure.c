#include "failure.h"
#include "entries.h"

#include "hamr/store_functions.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers are the same, so that no table has to translate them. */
_Static_assert(HAMR_ERROR_VALUE == (int)HAMR_VALUE_ERROR && HAMR_ERROR_TYPE == (int)HAMR_TYPE_ERROR &&
               HAMR_ERROR_INDEX == (int)HAMR_INDEX_ERROR, "");
_Static_assert(HAMR_ERROR_MEMORY == (int)HAMR_OUT_OF_MEMORY && HAMR_ERROR_UNAVAILABLE == (int)HAMR_UNAVAILABLE, "");
_Static_assert(HAMR_ERROR_DEVICE == (int)HAMR_DEVICE_ERROR && HAMR_ERROR_RELEASED == (int)HAMR_FREED &&
               HAMR_ERROR_FORKED == (int)HAMR_FORKED, "");
_Static_assert(HAMR_ERROR_INTERNAL == (int)HAMR_INTERNAL_ERROR && HAMR_ERROR_IN_USE == (int)HAMR_IN_USE &&
               HAMR_ERROR_RANGE == (int)HAMR_OUT_OF_RANGE && HAMR_ERROR_PAUSED == (int)HAMR_PAUSED, "");

static _Thread_local hamr_error *last; /* one piece of memory */
_Thread_local int failure_is_told;
static pthread_key_t at_thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Other destructors of the thread may fail after this one. */
static void end_thread(void *error) {
    last = NULL;
    free(error);
}

static void make_key(void) { pthread_key_create(&at_thread_end, end_thread); }

hamr_status keep(hamr_error *error) {
    if (!error) return HAMR_OK;
    failure_is_told = 1;
    pthread_once(&once, make_key);
    free(last);
    last = error;
    pthread_setspecific(at_thread_end, error);
    if (error->kind == HAMR_STORE_CLOSED) error->kind = HAMR_FREED;
    if (error->kind == HAMR_STORE_DESCRIPTORS) error->kind = HAMR_ERROR_STORE;
    int stored = error->kind >= HAMR_ERROR_NOT_FOUND && error->kind <= HAMR_ERROR_STORE;
    if (!stored && (error->kind <= 0 || error->kind >= HAMR_ERROR_KIND_COUNT)) error->kind = HAMR_INTERNAL_ERROR;
    return error->kind;
}

hamr_status fail(hamr_status status, const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t size = strlen(text) + 1;
    hamr_error *error = malloc(sizeof *error + size);
    if (!error) return HAMR_ERROR_MEMORY;
    memset(error, 0, sizeof *error);
    error->kind = status;
    error->message = memcpy(error + 1, text, size);
    return keep(error);
}

const char *capi_last_error(void) { return last && failure_is_told ? last->message : ""; }

void capi_last_failure(hamr_failure *failure, size_t size) {
    hamr_failure full = {0};
    full.message = "";
    if (last && failure_is_told)
        full = (hamr_failure){.status = last->kind, .code = last->code, .size = last->size, .message = last->message,
                              .source = last->source, .name = last->name, .stack = last->stack};
    if (failure) memcpy(failure, &full, size < sizeof full ? size : sizeof full);
}
