/* Frames and their descriptors over UNIX sockets. */
#pragma once

#include "base/python.h"
#include "hamr/functions.h"

#include <sys/types.h>

/* What has come. */
typedef struct {
    int32_t count; /* of descriptors, which are the caller's to close */
    int32_t descriptors[HAMR_FRAME_DESCRIPTORS];
    int lost; /* there were more */
    ssize_t bytes; /* 0: the other end was closed; less: an errno has said why nothing came */
    unsigned char frame[HAMR_LONGEST_FRAME + 1];
} Received;

int socket_of(PyObject *connection, int *type); /* a UNIX socket's descriptor, and its type; -1 if it is none */
/* Calls sendmsg once. */
ssize_t frame_send(int number, const char *frame, Py_ssize_t bytes, const int32_t *descriptors, int32_t count);
void frame_receive(int number, Received *into); /* as recvmsg, once: sockets that keep messages apart */
void close_descriptors(const int32_t *descriptors, int32_t count);
