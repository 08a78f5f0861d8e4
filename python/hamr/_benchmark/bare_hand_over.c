/* A hand-over of memory by one call of the driver's and one message, each way: what any library's takes at least. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

enum { EXPORTED = 64, UNKNOWN_ERROR = 999 }; /* CUmemPoolPtrExportData; CUDA_ERROR_UNKNOWN */

typedef int (*export_pointer)(void *data, uint64_t address);
typedef int (*import_pointer)(uint64_t *address, void *pool, void *data);

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* times: when it began, and when the driver had answered. */
int give(export_pointer ask, int connection, uint64_t address, int64_t times[2]) {
    unsigned char data[EXPORTED];
    struct iovec part = {data, sizeof data};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    times[0] = now();
    int code = ask(data, address);
    times[1] = now();
    return code ? code : sendmsg(connection, &message, MSG_NOSIGNAL) == EXPORTED ? 0 : UNKNOWN_ERROR;
}

/* times: when the message was there, and when the driver had answered. */
int take(import_pointer ask, int connection, void *pool, uint64_t *address, int64_t times[2]) {
    unsigned char data[EXPORTED];
    struct iovec part = {data, sizeof data};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (recvmsg(connection, &message, 0) != EXPORTED) return UNKNOWN_ERROR;
    times[0] = now();
    int code = ask(address, pool, data);
    times[1] = now();
    return code;
}

/* One after the other, each as soon as the other process has answered: times has four of each. */
int give_all(export_pointer ask, int connection, int count, const uint64_t *addresses, int64_t *times) {
    for (int i = 0; i < count; i++, times += 4) {
        int code = give(ask, connection, addresses[i], times);
        if (code) return code;
        if (recv(connection, times + 2, 2 * sizeof *times, 0) != 2 * sizeof *times) return UNKNOWN_ERROR;
    }
    return 0;
}

int take_all(import_pointer ask, int connection, int count, void *pool, uint64_t *addresses) {
    for (int i = 0; i < count; i++) {
        int64_t times[2];
        int code = take(ask, connection, pool, &addresses[i], times);
        if (code) return code;
        if (send(connection, times, sizeof times, MSG_NOSIGNAL) != sizeof times) return UNKNOWN_ERROR;
    }
    return 0;
}
