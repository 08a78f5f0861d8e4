// Injected errors, counts of calls, and the list of violations: every misuse
// that a real driver might let pass, in words.
#include "emulator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { most_violations = 1000, most_names = 256, most_faults = 256 };

static char *violations[most_violations];
static int violated;

static struct {
  char *call;
  int left; // calls until it strikes; zero strikes every time
  CUresult code;
} faults[most_faults];
static int fault_count;

static struct {
  char *call;
  int count;
} counts[most_names];

// Versions of an entry point count as one, so that tests need not know which is
// bound.
static size_t stem(const char *call) {
  size_t length = strlen(call);
  if (length > 3 && strncmp(call + length - 3, "_v", 2) == 0)
    length -= 3;
  return length;
}

static int same_call(const char *a, const char *b) {
  return stem(a) == stem(b) && strncmp(a, b, stem(a)) == 0;
}

static int *count_of(const char *call) {
  int i = 0;
  while (i < most_names - 1 && counts[i].call && !same_call(counts[i].call, call))
    i++;
  if (!counts[i].call)
    counts[i].call = strdup(call);
  return &counts[i].count;
}

void count_call(const char *call) { ++*count_of(call); }

static void drop_fault(int i) {
  free(faults[i].call);
  faults[i] = faults[--fault_count];
}

CUresult injected(const char *call) {
  CUresult code = CUDA_SUCCESS;
  for (int i = fault_count - 1; i >= 0; i--) {
    if (!same_call(faults[i].call, call))
      continue;
    if (faults[i].left == 0) {
      code = faults[i].code;
    } else if (--faults[i].left == 0) {
      code = faults[i].code;
      drop_fault(i);
    }
  }
  return code;
}

static void add_violation(const char *format, va_list arguments) {
  char *text, *whole;
  if (violated == most_violations || vasprintf(&text, format, arguments) < 0)
    return;
  if (asprintf(&whole, "%s: %s", current_call, text) >= 0)
    violations[violated++] = whole;
  free(text);
}

void violate(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add_violation(format, arguments);
  va_end(arguments);
}

CUresult invalid(CUresult code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  add_violation(format, arguments);
  va_end(arguments);
  return code;
}

int violation_count(void) { return violated; }

const char *violation_text(int i) { return i >= 0 && i < violated ? violations[i] : ""; }

void forget_violations(void) {
  while (violated > 0)
    free(violations[--violated]);
}

static void add_fault(const char *call, int nth, CUresult code) {
  if (fault_count == most_faults)
    return;
  faults[fault_count].call = strdup(call);
  faults[fault_count].left = nth;
  faults[fault_count++].code = code;
}

static void forget_faults(void) {
  while (fault_count > 0)
    drop_fault(0);
}

// The nth call of an entry point from now on returns code and does nothing else;
// nth zero means every call. "execute" names late work itself.
EXPORT void emulator_fail(const char *name, int nth, int code) {
  INSPECTION;
  if (call.locked)
    add_fault(name, nth, code);
}

EXPORT void emulator_stop_failing(void) {
  INSPECTION;
  if (call.locked)
    forget_faults();
}

EXPORT int emulator_calls(const char *name) {
  INSPECTION;
  return call.locked ? *count_of(name) : 0;
}

EXPORT int emulator_violations(void) {
  INSPECTION;
  return violated;
}

// The text lasts until emulator_reset.
EXPORT const char *emulator_violation(int i) {
  INSPECTION;
  return violation_text(i);
}

// Forgets violations, counts, faults and late errors, but no memory.
EXPORT void emulator_reset(void) {
  INSPECTION;
  if (!call.locked)
    return;
  forget_violations();
  forget_faults();
  forget_errors();
  for (int i = 0; i < most_names; i++)
    counts[i].count = 0;
}

// HAMR_EMULATOR_FAIL="call:nth:code,..." injects errors into processes that
// cannot be reached otherwise.
__attribute__((constructor)) static void read_faults(void) {
  const char *list = getenv("HAMR_EMULATOR_FAIL");
  char name[64];
  int nth, code, length;
  while (list && sscanf(list, "%63[^:]:%d:%d%n", name, &nth, &code, &length) == 3) {
    add_fault(name, nth, code);
    list += length;
    list = *list == ',' ? list + 1 : NULL;
  }
}
