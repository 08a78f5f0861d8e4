// A stand-in for NVRTC.
#include "program.h"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS, COMPILATION = 6 };

EXPORT int nvrtcCreateProgram(struct program **made, const char *source, const char *name,
                              int count, const char **headers, const char **names) {
  (void)count;
  (void)headers;
  (void)names;
  *made = new_program(source, name);
  return SUCCESS;
}

EXPORT int nvrtcCompileProgram(struct program *p, int count, const char *const *options) {
  return compile_program(p, count, options) ? SUCCESS : COMPILATION;
}

EXPORT int nvrtcDestroyProgram(struct program **p) {
  end_program(*p);
  *p = NULL;
  return SUCCESS;
}

EXPORT int nvrtcGetPTXSize(struct program *p, size_t *size) {
  *size = strlen(p->text) + 1;
  return SUCCESS;
}

EXPORT int nvrtcGetPTX(struct program *p, char *text) {
  strcpy(text, p->text);
  return SUCCESS;
}

#ifndef WITHOUT_CUBIN
EXPORT int nvrtcGetCUBINSize(struct program *p, size_t *size) { return nvrtcGetPTXSize(p, size); }

// As of a binary, only the sizes of parameters are seen of it.
EXPORT int nvrtcGetCUBIN(struct program *p, char *text) {
  strcpy(text, p->text);
  while ((text = strstr(text, ".param ."))) {
    text += strlen(".param .");
    *text = 'b';
  }
  return SUCCESS;
}
#endif

EXPORT int nvrtcGetProgramLogSize(struct program *p, size_t *size) {
  *size = strlen(p->log) + 1;
  return SUCCESS;
}

EXPORT int nvrtcGetProgramLog(struct program *p, char *text) {
  strcpy(text, p->log);
  return SUCCESS;
}

EXPORT const char *nvrtcGetErrorString(int result) {
  return result == COMPILATION ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS";
}

// As many as HAMR_TEST_NVRTC_ARCHITECTURES says, of these.
static int architectures(void) {
  const char *text = getenv("HAMR_TEST_NVRTC_ARCHITECTURES");
  return text ? atoi(text) : 3;
}

EXPORT int nvrtcGetNumSupportedArchs(int *count) {
  *count = architectures();
  return SUCCESS;
}

EXPORT int nvrtcGetSupportedArchs(int *list) {
  static const int known[] = {52, 70, 75};
  memcpy(list, known, (size_t)architectures() * sizeof *known);
  return SUCCESS;
}
