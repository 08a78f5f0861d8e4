/* An object of a store, handed over by the driver's calls and the messages that it takes at least. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { UNKNOWN_ERROR = 999, BY_DESCRIPTOR = 1 }; /* CUDA_ERROR_UNKNOWN; CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

typedef struct { /* CUmemAccessDesc */
    int kind, device, access;
} access_to;

typedef int (*set_access)(uint64_t address, size_t bytes, const access_to *access, size_t count);
typedef int (*import_handle)(uint64_t *handle, void *descriptor, int kind);
typedef int (*reserve_addresses)(uint64_t *address, size_t bytes, size_t alignment, uint64_t near, uint64_t flags);
typedef int (*map_handle)(uint64_t address, size_t bytes, size_t offset, uint64_t handle, uint64_t flags);

typedef union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
} rights;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int tell(int connection, int descriptor) {
    char word = '.';
    struct iovec part = {&word, 1};
    rights control = {.head = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        memcpy(CMSG_DATA(&control.head), &descriptor, sizeof descriptor);
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
    }
    return sendmsg(connection, &message, MSG_NOSIGNAL) == 1 ? 0 : UNKNOWN_ERROR;
}

/* descriptor may be NULL. */
static int hear(int connection, int *descriptor) {
    char word;
    struct iovec part = {&word, 1};
    rights control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != 1) return UNKNOWN_ERROR;
    if (!descriptor) return 0;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (!head || head->cmsg_type != SCM_RIGHTS) return UNKNOWN_ERROR;
    memcpy(descriptor, CMSG_DATA(head), sizeof *descriptor);
    return 0;
}

enum { MOST_TOGETHER = 64 };

/* The server: it is given so much memory in each round, and then told that one is sealed and asked for it, one
 * after the other. */
int serve(int maker, int getter, int rounds, int together) {
    if (together > MOST_TOGETHER) return UNKNOWN_ERROR;
    for (int round = 0; round < rounds; round++) {
        int descriptors[MOST_TOGETHER];
        for (int i = 0; i < together; i++) {
            int code = hear(maker, &descriptors[i]);
            if (!code) code = tell(maker, -1);
            if (code) return code;
        }
        for (int i = 0; i < together; i++) {
            int code = hear(maker, NULL);
            if (!code) code = tell(maker, -1);
            if (!code) code = hear(getter, NULL);
            if (!code) code = tell(getter, descriptors[i]);
            close(descriptors[i]);
            if (code) return code;
        }
    }
    return 0;
}

/* Before it is sealed. */
int give(int server, int descriptor) {
    int code = tell(server, descriptor);
    return code ? code : hear(server, NULL);
}

/* times: when it began, when the driver had answered, and when the server had. */
int seal(set_access open, int server, int other, uint64_t address, size_t bytes, const access_to *reading,
         int64_t times[3]) {
    times[0] = now();
    int code = open(address, bytes, reading, 1);
    times[1] = now();
    if (!code) code = tell(server, -1);
    if (!code) code = hear(server, NULL);
    times[2] = now();
    return code ? code : tell(other, -1);
}

/* functions: to import, reserve, map and open. found: the handle and the address. times: when the message was there,
 * when the server had answered, when the driver had imported the memory, and when it was mapped. */
int get(void *const functions[4], int server, int other, size_t bytes, const access_to *reading, uint64_t found[2],
        int64_t times[4]) {
    int descriptor;
    int code = hear(other, NULL);
    times[0] = now();
    if (!code) code = tell(server, -1);
    if (!code) code = hear(server, &descriptor);
    if (code) return code;
    times[1] = now();
    code = ((import_handle)functions[0])(&found[0], (void *)(intptr_t)descriptor, BY_DESCRIPTOR);
    times[2] = now();
    if (!code) code = ((reserve_addresses)functions[1])(&found[1], bytes, 0, 0, 0);
    if (!code) code = ((map_handle)functions[2])(found[1], bytes, 0, found[0], 0);
    if (!code) code = ((set_access)functions[3])(found[1], bytes, reading, 1);
    times[3] = now();
    close(descriptor);
    return code;
}
