#define _GNU_SOURCE
#include "array/share_socket.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/python.h"

typedef union {
    struct cmsghdr header;
    char room[CMSG_SPACE(HAMR_FRAME_DESCRIPTORS * sizeof(int32_t))];
} Control;

int socket_of(PyObject *connection, int *type) {
    int domain = 0, number = PyObject_AsFileDescriptor(connection);
    socklen_t size = sizeof domain;
    if (number < 0) {
        PyErr_Clear(); /* it was closed: Python says so in its own words */
        return -1;
    }
    if (getsockopt(number, SOL_SOCKET, SO_DOMAIN, &domain, &size) || domain != AF_UNIX) return -1;
    size = sizeof *type;
    return getsockopt(number, SOL_SOCKET, SO_TYPE, type, &size) ? -1 : number;
}

ssize_t frame_send(int number, const char *frame, Py_ssize_t bytes, const int32_t *descriptors, int32_t count) {
    Control control = {.room = {0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)frame, .iov_len = (size_t)bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count) {
        size_t size = (size_t)count * sizeof *descriptors;
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(rights), descriptors, size);
    }
    return sendmsg(number, &message, MSG_NOSIGNAL);
}

void frame_receive(int number, Received *into) {
    Control control;
    struct iovec part = {.iov_base = into->frame, .iov_len = sizeof into->frame};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    into->count = 0;
    into->bytes = recvmsg(number, &message, MSG_CMSG_CLOEXEC);
    if (into->bytes < 0) return;
    into->lost = (message.msg_flags & MSG_CTRUNC) != 0;
    for (struct cmsghdr *each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
        if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
        size_t n = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int32_t),
            room = HAMR_FRAME_DESCRIPTORS - (size_t)into->count;
        if (n > room) n = room; /* there is room for no more */
        memcpy(into->descriptors + into->count, CMSG_DATA(each), n * sizeof(int32_t));
        into->count += (int32_t)n;
    }
}

void close_descriptors(const int32_t *descriptors, int32_t count) {
    for (int32_t i = 0; i < count; i++) close(descriptors[i]);
}
