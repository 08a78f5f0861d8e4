/* C++'s exceptions by their binary interface (Itanium's C++ ABI), since hamr is built without torch: the classes
 * are looked up in the library that the process has. */
#include "torch_error.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* c10::SourceLocation. */
typedef struct {
    const char *function, *file;
    uint32_t line;
} location;

/* std::string of libstdc++, whose text is elsewhere. */
typedef struct {
    char *text;
    size_t length, capacity, unused;
} string;

#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define MAKE_ERROR "_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationE" STRING
#define FAIL "_ZN3c106detail14torchCheckFailEPKcS2_jS2_"
#define ERROR_BYTES 4096 /* more than any release's class has */

static void find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
}

void throw_out_of_memory(ssize_t size, int device, const char *why) {
    void *(*new_exception)(size_t), *(*new_text)(size_t);
    void (*throw)(void *, void *, void (*)(void *));
    void (*make_error)(void *, location, string *), (*fail)(const char *, const char *, uint32_t, const char *);
    char text[768];
    void *torch = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD), *type;
    if (!torch) return;
    snprintf(text, sizeof text, "CUDA out of memory. Tried to allocate %lld bytes on GPU %d from hamr's pool: %s",
             (long long)size, device, why);
    /* A library's symbols are those of what it needs, too. */
    find(torch, MAKE_ERROR, &make_error);
    find(torch, FAIL, &fail);
    find(torch, "_ZTIN3c1016OutOfMemoryErrorE", &type);
    find(torch, "__cxa_allocate_exception", &new_exception);
    find(torch, "__cxa_throw", &throw);
    find(torch, "_Znwm", &new_text);
    if (make_error && type && new_exception && throw && new_text) {
        size_t length = strlen(text);
        string message = {new_text(length + 1), length, length, 0};
        memcpy(message.text, text, length + 1);
        void *error = new_exception(ERROR_BYTES);
        memset(error, 0, ERROR_BYTES);
        make_error(error, (location){__func__, __FILE__, __LINE__}, &message); /* which takes the text over */
        void (**methods)(void *) = *(void (***)(void *))error;
        throw(error, type, methods[0]); /* the destructor is the first */
    }
    if (fail) fail(__func__, __FILE__, __LINE__, text);
}
