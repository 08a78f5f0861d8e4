/* What an emulated driver says of a program. */
#ifndef DRIVER_H
#define DRIVER_H

#include "check.h"

/* A function of the driver that the process has loaded; NULL: a real one, which has none such. */
static inline void *of_driver(const char *path, const char *name) {
    void *driver = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    TRUE(driver != NULL);
    return dlsym(driver, name);
}

/* Nothing was misused. */
static inline void look_at_the_driver(const char *path) {
    union {
        void *objects[2];
        struct {
            int (*violations)(void);
            const char *(*violation)(int);
        } functions;
    } driver;
    driver.objects[0] = of_driver(path, "emulator_violations");
    driver.objects[1] = of_driver(path, "emulator_violation");
    if (!driver.objects[0]) return;
    for (int i = 0; i < driver.functions.violations(); i++) fprintf(stderr, "%s\n", driver.functions.violation(i));
    TRUE(driver.functions.violations() == 0);
}

#endif
