// What tests see of the emulator: what is live and pending, device memory as it
// is now, and a report at the end of the process.
#include "emulator.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long live(const char *what) {
  int blocks;
  size_t bytes;
  count_blocks(&blocks, &bytes);
  if (strcmp(what, "memory") == 0)
    return blocks;
  if (strcmp(what, "bytes") == 0)
    return (long)bytes;
  if (strcmp(what, "streams") == 0)
    return count_streams();
  if (strcmp(what, "events") == 0)
    return count_events();
  if (strcmp(what, "pools") == 0)
    return count_pools();
  if (strcmp(what, "modules") == 0)
    return count_modules();
  return strcmp(what, "contexts") == 0 ? count_contexts() : -1;
}

// Minus one where what is none of the words above.
EXPORT int emulator_live(const char *what) {
  INSPECTION;
  return call.locked ? (int)live(what) : 0;
}

EXPORT int emulator_pending(void) {
  INSPECTION;
  return call.locked ? count_pending() : 0;
}

EXPORT void emulator_finish(void) {
  INSPECTION;
  if (call.locked)
    finish_all();
}

static char *bytes_at(unsigned long long address, unsigned long size) {
  struct span span;
  current_call = "emulator";
  return make_span(&span, address, size) ? NULL : late_bytes(&span, "look");
}

// Device memory as it is now, whatever work is pending.
EXPORT void emulator_peek(unsigned long long address, void *out, unsigned long size) {
  INSPECTION;
  const char *from = call.locked ? bytes_at(address, size) : NULL;
  if (from)
    memcpy(out, from, size);
}

EXPORT void emulator_poke(unsigned long long address, const void *data, unsigned long size) {
  INSPECTION;
  char *to = call.locked ? bytes_at(address, size) : NULL;
  if (to)
    memcpy(to, data, size);
}

static void write_text(FILE *out, const char *text) {
  fputc('"', out);
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      fputc('\\', out);
    if ((unsigned char)*text >= ' ')
      fputc(*text, out);
  }
  fputc('"', out);
}

static void write_report(FILE *out) {
  static const char *const names[] = {"memory", "bytes", "streams", "events", "pools"};
  fputc('{', out);
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    fprintf(out, "\"%s\": %ld, ", names[i], live(names[i]));
  fprintf(out, "\"pending\": %d, \"violations\": [", count_pending());
  for (int i = 0; i < violation_count(); i++) {
    fputs(i ? ", " : "", out);
    write_text(out, violation_text(i));
  }
  fputs("]}\n", out);
}

static void append(const char *path, const char *text, size_t size) {
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0 || write(file, text, size) < 0)
    perror(path);
  if (file >= 0)
    close(file);
}

// One write, so that the lines of several processes do not mix.
__attribute__((destructor)) static void report(void) {
  const char *path = getenv("HAMR_EMULATOR_REPORT");
  INSPECTION;
  if (!call.locked || !path || !*path)
    return;
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  if (!out)
    return;
  write_report(out);
  fclose(out);
  append(path, text, size);
  free(text);
}
