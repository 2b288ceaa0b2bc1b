// The limits of a connection through 127.0.0.1, with a thread as the other side.

#include "support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/// Both ends of one connection.
typedef struct connection {
    int near;
    int far;
    /// Bytes of one message of the thread at the far end.
    size_t size;
    bool echoes;
    uint64_t received;
} connection;

/// No operation may wait forever, even if the other side has failed.
static int prepare_socket(int descriptor) {
    struct timeval patience = {.tv_sec = 10, .tv_usec = 0};
    int yes = 1;
    if (setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) != 0 ||
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0) {
        return -1;
    }
    return setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

/// The kernel completes a connection to a listening socket by itself: one thread makes both ends.
static int connect_through(int listener, connection *pair) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0) {
        return -1;
    }
    pair->near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (pair->near < 0 || connect(pair->near, (struct sockaddr *)&address, length) != 0) {
        return -1;
    }
    pair->far = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (pair->far < 0) return -1;
    return prepare_socket(pair->near) != 0 ? -1 : prepare_socket(pair->far);
}

static int connection_make(connection *pair) {
    pair->near = pair->far = -1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) return -1;
    int failed = connect_through(listener, pair);
    int number = errno;
    close(listener);
    errno = number;
    return failed;
}

static void connection_close(connection *pair) {
    if (pair->near >= 0) close(pair->near);
    if (pair->far >= 0) close(pair->far);
}

static int send_whole(int descriptor, const unsigned char *bytes, size_t count) {
    while (count > 0) {
        ssize_t sent = send(descriptor, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0) return -1;
        bytes += sent;
        count -= (size_t)sent;
    }
    return 0;
}

/// -1 also at the end of the stream.
static int receive_whole(int descriptor, unsigned char *bytes, size_t count) {
    while (count > 0) {
        ssize_t received = recv(descriptor, bytes, count, 0);
        if (received <= 0) return -1;
        bytes += received;
        count -= (size_t)received;
    }
    return 0;
}

/// The other side: takes messages until the stream ends, and sends each back if it is to. Without
/// echo it takes whatever has arrived, as a receiver of a stream does.
static void *serve(void *context) {
    connection *pair = context;
    unsigned char *buffer = malloc(pair->size);
    if (buffer == NULL) {
        shutdown(pair->far, SHUT_RDWR);
        return NULL;
    }
    if (pair->echoes) {
        while (receive_whole(pair->far, buffer, pair->size) == 0 &&
               send_whole(pair->far, buffer, pair->size) == 0) {
            pair->received += pair->size;
        }
    } else {
        ssize_t received;
        while ((received = recv(pair->far, buffer, pair->size, 0)) > 0) {
            pair->received += (uint64_t)received;
        }
    }
    shutdown(pair->far, SHUT_RDWR);
    free(buffer);
    return NULL;
}

/// Sends messages, and with echo waits for each to return. The clock stops when the far end has
/// taken all: what still lies in the buffers of the kernel has not been transported.
static limit_result exchange(
    const limit_task *task, connection *pair, unsigned char *buffer, pthread_t thread) {
    limit_result result = {0};
    stopwatch watch = {0};
    int failed = 0, number = 0;
    stopwatch_start(&watch);
    do {
        failed = send_whole(pair->near, buffer, task->size) ||
            (pair->echoes && receive_whole(pair->near, buffer, task->size));
        number = errno;
        result.operations += 1;
    } while (!failed && stopwatch_read(&watch) < task->seconds);
    shutdown(pair->near, SHUT_WR);
    pthread_join(thread, NULL);
    stopwatch_stop(&watch);
    if (failed) return limit_failure("sending and receiving", number);
    result.seconds = watch.elapsed;
    result.bytes = result.operations * task->size;
    if (pair->received != result.bytes) return limit_failure("the other side lost bytes", 0);
    return result;
}

static limit_result talk(const limit_task *task, bool echoes) {
    connection pair = {.size = task->size, .echoes = echoes};
    pthread_t thread;
    limit_result result;
    unsigned char *buffer = malloc(task->size);
    if (buffer == NULL) return limit_failure("no memory for a message", 0);
    fill_from_pool(task, buffer, task->size);
    if (connection_make(&pair) != 0) {
        result = limit_failure("connecting through 127.0.0.1", errno);
    } else {
        int number = pthread_create(&thread, NULL, serve, &pair);
        if (number != 0) {
            result = limit_failure("starting the other side", number);
        } else {
            result = exchange(task, &pair, buffer, thread);
        }
    }
    connection_close(&pair);
    free(buffer);
    return result;
}

limit_result measure_loopback_throughput(const limit_task *task) {
    return talk(task, false);
}

limit_result measure_loopback_roundtrip(const limit_task *task) {
    return talk(task, true);
}
