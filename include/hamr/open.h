/* Finds hamr's library at run time, once in a process, whoever comes first: this program or Python.
 * Or, with HAMR_LINKED defined, the program is linked with it.
 *
 * It tries, in this order: the library that the process has loaded already, as Python's package does,
 * or that of the Python which runs in the process; the file that HAMR_LIBRARY names;
 * HAMR_PREFIX/lib/libhamr.so if that macro is defined; the library installed together with this
 * header; the one of the package hamr of the Python interpreter HAMR_PYTHON, or python3. */
#ifndef HAMR_OPEN_H
#define HAMR_OPEN_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hamr/interface.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef HAMR_LINKED
const hamr_table *hamr_get_table(uint32_t version);
#endif

/* Shared by all of one program or library that includes this. */
__attribute__((weak, visibility("hidden"))) const hamr_table *hamr_opened;

/* Why there is no table, or no function in it, for the calling thread. */
__attribute__((weak, visibility("hidden"))) __thread char hamr_open_error[2048];

/* Newer glibc has macros of strchr and the like for programs that define _GNU_SOURCE. They use _Generic,
 * which Clang refuses in strict C99. A name in parentheses is the function, here and in store.h. */

/* Declared here, too, since strict C99 hides them in the C library's headers. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wredundant-decls"
struct dl_phdr_info;
int dl_iterate_phdr(int (*)(struct dl_phdr_info *, size_t, void *), void *);
FILE *popen(const char *, const char *);
int pclose(FILE *);
#pragma GCC diagnostic pop

/* How struct dl_phdr_info begins: <link.h> shows it to programs that ask for GNU's extensions. */
typedef struct hamr_loaded_object {
    uintptr_t address;
    const char *name;
} hamr_loaded_object;

/* The name under which a library of hamr's was loaded, for dl_iterate_phdr; found has 4096 bytes. */
static inline int hamr_is_library(struct dl_phdr_info *object, size_t size, void *found) {
    const char *name = ((const hamr_loaded_object *)(const void *)object)->name;
    const char *file = name ? (strrchr)(name, '/') : NULL;
    (void)size;
    if (!file || strlen(name) >= 4096) return 0;
    if (strcmp(file, "/_pyhamr.abi3.so") != 0 && strcmp(file, "/libhamr.so") != 0) return 0;
    strcpy((char *)found, name);
    return 1;
}

/* NULL, as far as the compiler does not know: it would warn of each program that uses a result without asking
 * whether there is a library. */
static inline void *hamr_no_pointer(void) {
    void *none = NULL;
    __asm__("" : "+r"(none));
    return none;
}

/* Adds words to what went wrong, as far as there is room. */
static inline void hamr_open_say(const char *words) {
    size_t used = strlen(hamr_open_error), n = strlen(words), room = sizeof hamr_open_error - 1 - used;
    if (n > room) n = room;
    memcpy(hamr_open_error + used, words, n);
    hamr_open_error[used + n] = '\0';
}

static inline void hamr_open_tried(const char *what, const char *why) {
    hamr_open_say(hamr_open_error[0] ? "; " : "hamr's library was not found. Tried: ");
    hamr_open_say(what);
    hamr_open_say(": ");
    hamr_open_say(why);
}

static inline const hamr_table *hamr_open_file(const char *path, int flags) {
    typedef const hamr_table *get_table(uint32_t version);
    union {
        void *object;
        get_table *function;
    } get;
    void *library = dlopen(path, RTLD_LAZY | flags);
    if (!library) {
        const char *error = dlerror();
        hamr_open_tried(path, error ? error : "it cannot be loaded");
        return NULL;
    }
    get.object = dlsym(library, "hamr_get_table");
    if (!get.object) {
        hamr_open_tried(path, "it is too old to have an interface for C");
        return NULL;
    }
    const hamr_table *table = get.function(HAMR_TABLE_VERSION);
    if (!table)
        hamr_open_tried(path, "its table of functions is of another version than this program was compiled for");
    return table;
}

/* Where Python runs in this process, its package and this program are to use one library: it loads its
 * own, if it has the package. */
static inline void hamr_open_by_python_here(void) {
    static const char script[] =
        "try:\n    __import__('hamr._base.library', fromlist=['core']).core()\nexcept ImportError:\n    pass\n";
    static const char *const names[] = {"Py_IsInitialized", "PyGILState_Ensure", "PyRun_SimpleString",
                                        "PyGILState_Release"};
    union {
        void *objects[4];
        struct {
            int (*is_there)(void);
            int (*lock)(void); /* PyGILState_STATE is an enumeration */
            int (*run)(const char *);
            void (*unlock)(int);
        } functions;
    } python;
    void *process = dlopen(NULL, RTLD_LAZY);
    for (int i = 0; i < 4; i++)
        if (!(python.objects[i] = process ? dlsym(process, names[i]) : NULL)) return;
    if (!python.functions.is_there()) return;
    int state = python.functions.lock();
    python.functions.run(script);
    python.functions.unlock(state);
}

/* Asks a Python interpreter where its package has the library. */
static inline const hamr_table *hamr_open_from_python(void) {
    static const char program[] = " -c 'from hamr._base.library import library_path; print(library_path())' 2>&1";
    const char *python = getenv("HAMR_PYTHON");
    char command[4400] = "'", path[4096] = "", line[4096];
    if (!python || !*python) python = "python3";
    if (strlen(python) > 4000 || (strchr)(python, '\'')) {
        hamr_open_tried(python, "HAMR_PYTHON is no path of an interpreter");
        return NULL;
    }
    strcat(strcat(strcat(command, python), "'"), program);
    FILE *output = popen(command, "r");
    if (!output) {
        hamr_open_tried(python, "it cannot be started");
        return NULL;
    }
    while (fgets(line, sizeof line, output)) strcpy(path, line);
    path[strcspn(path, "\n")] = '\0';
    if (pclose(output) == 0 && path[0] == '/') return hamr_open_file(path, 0);
    hamr_open_tried(python, *path ? path : "it says nothing of a package hamr");
    return NULL;
}

/* The library that was installed together with this header: below the folder that include/ is in. Where a program
 * was compiled with a relative -I that is where the program runs now, as in a build's own folder. */
static inline const hamr_table *hamr_open_beside(const char *file) {
    static const char own[] = "include/hamr/open.h", header[] = __FILE__;
    char path[4096] = "./";
    size_t folder = sizeof header > sizeof own ? sizeof header - sizeof own : 0, start = header[0] == '/' ? 0 : 2;
    if (strcmp(header + folder, own) != 0 || (folder && header[folder - 1] != '/')) return NULL;
    if (start + folder + strlen(file) >= sizeof path) return NULL;
    memcpy(path + start, header, folder);
    strcpy(path + start + folder, file);
    return hamr_open_file(path, 0);
}

/* Whether an object of the process is a library, as each program has one that is not linked statically. */
static inline int hamr_is_shared(struct dl_phdr_info *object, size_t size, void *with) {
    const char *name = ((const hamr_loaded_object *)(const void *)object)->name;
    (void)size;
    (void)with;
    return name && (strstr)(name, ".so") && !(strstr)(name, "vdso");
}

static inline const hamr_table *hamr_open_anywhere(void) {
    const hamr_table *table = NULL;
    hamr_open_error[0] = '\0';
#ifdef HAMR_LINKED
    if (!(table = hamr_get_table(HAMR_TABLE_VERSION)))
        hamr_open_tried("the library that is linked", "its table of functions is of another version");
#else
    char name[4096];
    const char *file = getenv("HAMR_LIBRARY");
    if (!dl_iterate_phdr(hamr_is_shared, NULL)) {
        hamr_open_say(
            "the program is linked statically, and cannot load hamr's library when it runs: link it without -static");
        return NULL;
    }
    int loaded = dl_iterate_phdr(hamr_is_library, name);
    if (!loaded) {
        hamr_open_by_python_here();
        loaded = dl_iterate_phdr(hamr_is_library, name);
    }
    if (loaded) return hamr_open_file(name, RTLD_NOLOAD);
    hamr_open_tried("this process", "it has not loaded it");
    if (file && *file) return hamr_open_file(file, 0); /* what was asked for, or nothing */
    hamr_open_tried("HAMR_LIBRARY", "it is not set");
#ifdef HAMR_PREFIX
    table = hamr_open_file(HAMR_PREFIX "/lib/libhamr.so", 0);
#endif
    if (!table) table = hamr_open_beside("_gopy/_pyhamr.abi3.so");
    if (!table) table = hamr_open_beside("lib/libhamr.so");
    if (!table) table = hamr_open_from_python();
#endif
    return table;
}

/* The table, which is looked for until it is found. NULL: hamr_last_error says why. Threads may do
 * this at the same time: they find the same library. */
static inline const hamr_table *hamr_get(void) {
    const hamr_table *table = __atomic_load_n(&hamr_opened, __ATOMIC_ACQUIRE);
    if (table) return table;
    if ((table = hamr_open_anywhere())) {
        __atomic_store_n(&hamr_opened, table, __ATOMIC_RELEASE);
        hamr_open_error[0] = '\0';
    }
    return table;
}

/* The table where it is long enough to have an entry. */
static inline const hamr_table *hamr_get_with(size_t end, const char *function) {
    const hamr_table *table = hamr_get();
    if (table && table->size >= end) {
        hamr_open_error[0] = '\0'; /* the library's last error counts again */
        return table;
    }
    if (table) {
        hamr_open_error[0] = '\0';
        hamr_open_say("hamr's library, version ");
        hamr_open_say(table->library_version());
        hamr_open_say(", is older than this program: it has no hamr_");
        hamr_open_say(function);
    }
    return NULL;
}

#ifdef __cplusplus
}
#endif

#endif
