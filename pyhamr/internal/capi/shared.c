/* Elements that other processes have in place, without a server, and how they get there. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"
#include "stored.h"

enum { HEADER = 16, LONGEST = 4096, MOST = 2 }; /* bytes of frames, and descriptors with one: see docs/sharing.md */

static void close_all(const int *descriptors, int32_t count) {
    for (int32_t i = 0; i < count; i++) close(descriptors[i]);
}

/* lease: of the elements, or 0. */
static hamr_status share_elements(Numbered *shared, hamr_array *array, uint64_t lease, uint32_t flags) {
    enum { WHERE_NEEDED, NEVER, ALWAYS }; /* gobuffer.Copying */
    hamr_sharing sharing = {.stored = lease, .read_only = (flags & HAMR_SHARE_READ_ONLY) != 0, .waits = 1};
    if (flags & HAMR_SHARE_COPY && flags & HAMR_SHARE_IN_PLACE)
        return fail(HAMR_ERROR_VALUE, "flags is both HAMR_SHARE_COPY and HAMR_SHARE_IN_PLACE: accepted is one of them");
    sharing.copying = flags & HAMR_SHARE_COPY ? ALWAYS : flags & HAMR_SHARE_IN_PLACE ? NEVER : WHERE_NEEDED;
    hamr_status status = keep(capi_functions()->share_elements(array, &sharing));
    if (status) return status;
    shared->bytes = (size_t)sharing.bytes;
    memcpy(shared->text, sharing.frame, shared->bytes);
    shared->count = sharing.count;
    for (int32_t i = 0; i < sharing.count; i++) shared->descriptors[i] = sharing.descriptors[i];
    shared->flags = (sharing.read_only ? HAMR_SHARE_READ_ONLY : 0) | (sharing.copied ? HAMR_SHARE_COPY : 0);
    return HAMR_OK;
}

hamr_status capi_share(const hamr_buffer *buffer, uint32_t flags, hamr_shared **made) {
    CHECK_RESULT(made, "made");
    CHECK(buffer, BUFFER, "buffer");
    if (flags & ~(uint32_t)(HAMR_SHARE_READ_ONLY | HAMR_SHARE_COPY | HAMR_SHARE_IN_PLACE))
        return fail(HAMR_ERROR_VALUE,
                    "flags is %#x: accepted are HAMR_SHARE_READ_ONLY, HAMR_SHARE_COPY and HAMR_SHARE_IN_PLACE",
                    (unsigned)flags);
    CAPI_LOAD();
    Numbered *shared = numbered_new(SHARED);
    if (!shared) return HAMR_ERROR_MEMORY;
    hamr_status status = HAMR_ERROR_MEMORY;
    if (!(shared->text = malloc(LONGEST))) {
        fail(status, "no memory for a frame");
    } else {
        hamr_array array;
        status = held_give(&buffer->held, &array);
        if (!status) status = share_elements(shared, &array, buffer->held.share ? buffer->held.share->lease : 0, flags);
    }
    if (status) numbered_free(shared);
    else *made = (hamr_shared *)shared;
    return status;
}

hamr_status capi_shared_frame(const hamr_shared *shared, const void **frame, size_t *bytes, const int **descriptors,
                         int32_t *count, uint32_t *flags) {
    CHECK(shared, SHARED, "shared");
    if (frame) *frame = shared->numbered.text;
    if (bytes) *bytes = shared->numbered.bytes;
    if (descriptors) *descriptors = shared->numbered.descriptors;
    if (count) *count = shared->numbered.count;
    if (flags) *flags = shared->numbered.flags;
    return HAMR_OK;
}

/* A forked child has the descriptors, too, and what they are of. */
hamr_status capi_release_shared(hamr_shared *shared) {
    CHECK_RELEASED(shared, shared->numbered.head, SHARED, "shared");
    close_all(shared->numbered.descriptors, shared->numbered.count);
    numbered_free(&shared->numbered);
    return HAMR_OK;
}

/* Of a socket that does not wait, or no longer. */
static hamr_status socket_failed(const char *what, int number) {
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return fail(HAMR_ERROR_TIMEOUT, "socket %d does not wait, and %s has nothing to do yet", number, what);
    return fail(HAMR_ERROR_VALUE, "socket is %d, and %s fails: %s: accepted is a connected UNIX socket", number, what,
                strerror(errno));
}

typedef union {
    struct cmsghdr header;
    char room[CMSG_SPACE(MOST * sizeof(int))];
} Control;

/* Whether a socket that does not wait is ready for the rest of what has begun, after a wait. */
static int waits(int socket, short events) {
    struct pollfd one = {.fd = socket, .events = events};
    return (errno == EAGAIN || errno == EWOULDBLOCK) && poll(&one, 1, -1) == 1;
}

hamr_status capi_send_shared(const hamr_shared *shared, int socket) {
    CHECK(shared, SHARED, "shared");
    const Numbered *sent = &shared->numbered;
    Control control = {.room = {0}};
    struct iovec part = {.iov_base = sent->text, .iov_len = sent->bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (sent->count) {
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE((size_t)sent->count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN((size_t)sent->count * sizeof(int));
        memcpy(CMSG_DATA(rights), sent->descriptors, (size_t)sent->count * sizeof(int));
    }
    while (part.iov_len) {
        ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL);
        if (n < 0 && (errno == EINTR || (part.iov_len != sent->bytes && waits(socket, POLLOUT)))) continue;
        if (n < 0) return socket_failed("sendmsg", socket);
        part.iov_base = (char *)part.iov_base + n;
        part.iov_len -= (size_t)n;
        message.msg_control = NULL; /* descriptors go with the first bytes */
        message.msg_controllen = 0;
    }
    return HAMR_OK;
}

hamr_status capi_open_frame(const void *frame, size_t bytes, const int *descriptors, int32_t count,
                              hamr_buffer **made) {
    Draft result;
    CHECK_RESULT(made, "made");
    if (!frame || bytes > LONGEST)
        return fail(HAMR_ERROR_VALUE, "frame is %p, of %zu bytes: accepted is one of at most %d", frame, bytes,
                    LONGEST);
    if (count < 0 || count > MOST || (count && !descriptors))
        return fail(HAMR_ERROR_VALUE, "count is %d: accepted are 0 ... %d, and so many descriptors", count, MOST);
    CAPI_LOAD();
    draft_start(&result);
    hamr_status status = keep(capi_own.open_frame((void *)(uintptr_t)frame, bytes, (int *)(uintptr_t)descriptors, count,
                                                  &result.array));
    return status ? status : buffer_of(&result.array, made);
}

/* What has come. */
typedef struct {
    unsigned char frame[LONGEST];
    size_t bytes;
    int descriptors[MOST];
    int32_t count;
} Received;

/* Receives up to so many bytes in all; 0: the other end was closed. */
static ssize_t receive(int socket, Received *into, size_t upto) {
    Control control = {.room = {0}};
    struct iovec part = {.iov_base = into->frame + into->bytes, .iov_len = upto - into->bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t n;
    do n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0) return n;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        int found[MOST];
        int32_t count = (int32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(found, CMSG_DATA(c), (size_t)count * sizeof(int)); /* room is for no more */
        if (into->count) {
            close_all(found, count); /* they belong to the first bytes */
        } else {
            memcpy(into->descriptors, found, (size_t)count * sizeof(int));
            into->count = count;
        }
    }
    into->bytes += (size_t)n;
    return n;
}

/* A stream does not keep messages apart: of it no more is taken than the frame. */
static hamr_status receive_frame(int socket, Received *into) {
    int type = 0;
    socklen_t size = sizeof type;
    if (getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size)) return socket_failed("getsockopt", socket);
    size_t wanted = type == SOCK_STREAM ? HEADER : LONGEST;
    do {
        ssize_t n = receive(socket, into, wanted);
        if (n < 0 && into->bytes && waits(socket, POLLIN)) continue;
        if (n < 0) return socket_failed("recvmsg", socket);
        if (n == 0)
            return fail(into->bytes ? HAMR_ERROR_VALUE : HAMR_ERROR_NOT_FOUND,
                        "the other end of the socket was closed after %zu bytes of a shared handle", into->bytes);
        if (type != SOCK_STREAM) return HAMR_OK;
        if (into->bytes == HEADER && wanted == HEADER) {
            wanted = (size_t)into->frame[12] | (size_t)into->frame[13] << 8;
            if (memcmp(into->frame, "hamrshr\1", 8) != 0 || wanted < HEADER || wanted > LONGEST)
                return fail(HAMR_ERROR_VALUE, "what comes by socket %d is no shared handle", socket);
        }
    } while (into->bytes < wanted);
    return HAMR_OK;
}

hamr_status capi_open_shared(int socket, hamr_buffer **made) {
    Received received;
    received.bytes = 0;
    received.count = 0;
    CHECK_RESULT(made, "made");
    hamr_status status = receive_frame(socket, &received);
    if (!status) status = capi_open_frame(received.frame, received.bytes, received.descriptors, received.count, made);
    close_all(received.descriptors, received.count);
    return status;
}
