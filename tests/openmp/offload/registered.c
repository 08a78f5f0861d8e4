/* What Clang adds to a program with code for OpenMP devices: an image for LLVM's x86_64 plugin, with no
 * code in it, that the runtime is told of when this is loaded. It makes the plugin's devices appear.
 *
 * The structs are those of LLVM's omptarget.h. */

#include <stddef.h>
#include <stdint.h>

__asm__(".section .rodata\n"
        ".balign 4096\n"
        ".globl hamr_image\n"
        "hamr_image: .incbin \"" IMAGE "\"\n"
        ".globl hamr_image_end\n"
        "hamr_image_end: .byte 0\n"
        ".previous\n");

extern char hamr_image[] __attribute__((visibility("hidden")));
extern char hamr_image_end[] __attribute__((visibility("hidden")));

struct image {
    void *start, *end;
    void *entries_begin, *entries_end;
};

struct description {
    int32_t count;
    struct image *images;
    void *entries_begin, *entries_end;
};

void __tgt_register_lib(struct description *);
void __tgt_unregister_lib(struct description *);
/* libomptarget calls libomp, and does not say that it needs it. */
int omp_get_max_threads(void);
void *hamr_needs_libomp = omp_get_max_threads;

static struct image image = {hamr_image, hamr_image_end, NULL, NULL};
static struct description description = {1, &image, NULL, NULL};

__attribute__((constructor)) static void begin(void) { __tgt_register_lib(&description); }
__attribute__((destructor)) static void end(void) { __tgt_unregister_lib(&description); }
