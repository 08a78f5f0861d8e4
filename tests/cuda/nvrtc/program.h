// What stands in for a compiler of kernels: a program's kernels become PTX with the same names and
// parameters, of which the emulated driver has host versions. Where "mistake" stands it does not compile.
#pragma once

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
  char *source, *name, *log, *text;
};

static char *copied(const char *text) { return strcpy(malloc(strlen(text) + 1), text); }

static struct program *new_program(const char *source, const char *name) {
  struct program *p = calloc(1, sizeof *p);
  p->source = copied(source);
  p->name = copied(name && *name ? name : "default_program");
  p->log = copied("");
  p->text = copied("");
  return p;
}

static void end_program(struct program *p) {
  free(p->source);
  free(p->name);
  free(p->log);
  free(p->text);
  free(p);
}

static void append(char **text, const char *more, size_t length) {
  size_t before = strlen(*text);
  *text = realloc(*text, before + length + 1);
  memcpy(*text + before, more, length);
  (*text)[before + length] = 0;
}

static int says(const char *from, const char *to, const char *word) {
  const char *found = strstr(from, word);
  return found && found < to;
}

static const char *type_of(const char *from, const char *to) {
  if (says(from, to, "*") || says(from, to, "long"))
    return "u64";
  if (says(from, to, "double"))
    return "f64";
  if (says(from, to, "float"))
    return "f32";
  return says(from, to, "char") ? "u8" : "u32";
}

static void declare(struct program *p, const char *name, const char *open, const char *close) {
  char line[64];
  int number = 0;
  append(&p->text, ".visible .entry ", 16);
  append(&p->text, name, strcspn(name, " ("));
  append(&p->text, "(", 1);
  for (const char *at = open + 1; at < close; number++) {
    const char *end = at + strcspn(at, ",)");
    snprintf(line, sizeof line, "%s.param .%s p%d", number ? ", " : "", type_of(at, end), number);
    append(&p->text, line, strlen(line));
    at = end + 1;
  }
  append(&p->text, ")\n{\n    ret;\n}\n", 14);
}

// Whether it compiles. The log has the options.
static int compile_program(struct program *p, int count, const char *const *options) {
  static const char head[] = ".version 6.0\n.target sm_52\n.address_size 64\n";
  if (strstr(p->source, "mistake")) {
    char line[256];
    snprintf(line, sizeof line, "%s(1): error: identifier \"mistake\" is undefined", p->name);
    append(&p->log, line, strlen(line));
    return 0;
  }
  append(&p->log, "options:", 8);
  for (int i = 0; i < count; i++) {
    append(&p->log, " ", 1);
    append(&p->log, options[i], strlen(options[i]));
  }
  append(&p->text, head, sizeof head - 1);
  for (const char *at = p->source; (at = strstr(at, "__global__"));) {
    const char *open = strchr(at, '('), *close = open ? strchr(open, ')') : NULL;
    const char *name = open;
    while (name > at && !isspace((unsigned char)name[-1]))
      name--;
    if (!close)
      return 0;
    declare(p, name, open, close);
    at = close;
  }
  return 1;
}
