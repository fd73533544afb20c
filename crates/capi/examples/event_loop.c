/*
 * An event loop: epoll waits for the flash and for other descriptors at once.
 *
 * Requests come through a pipe, as they would through a socket, and each is a read of a page on a
 * device in a file. The thread sleeps only in epoll_wait. The file is the program's own name with
 * ".flash" appended.
 */
#define _GNU_SOURCE
#include "example.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 16, DEPTH = 8, REQUESTS = 500 };

/* Far longer than anything here takes. */
enum { PATIENCE_MS = 300000 };

static struct {
    prism_raw *raw;
    prism_raw_queue *queue;
    prism_address block;
    prism_buffer *spare[DEPTH];
    int spares;
    int answered;
} server;

/* Answers the requests whose read is complete. */
static void answer(void)
{
    prism_completion done = {.size = sizeof done};
    while (TRY(prism_raw_queue_poll(server.queue, &done, NULL, 0)) == 1) {
        TRY(done.status);
        CHECK(is_stamped(prism_buffer_data(done.buffer), PAGE, done.tag % PAGES));
        server.spare[server.spares++] = done.buffer;
        server.answered++;
    }
}

/* Takes a request from the pipe, and submits its read. */
static void accept_request(int from)
{
    uint32_t request;
    CHECK(read(from, &request, sizeof request) == sizeof request);
    prism_address at = server.block;
    at.page = request % PAGES;
    prism_buffer *buffer = server.spare[--server.spares];
    TRY(prism_raw_queue_read_buffer(server.queue, at, 0, buffer, PAGE, request));
}

static void watch(int loop, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = descriptor}};
    CHECK(epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &event) == 0);
}

/* Serves all requests of the pipe. Returns how often it slept. */
static int serve(int requests)
{
    int loop = epoll_create1(0), sleeps = 0;
    CHECK(loop >= 0);
    watch(loop, TRY(prism_raw_queue_event_fd(server.queue)));
    watch(loop, requests);
    int reads_pipe = 1;
    while (server.answered < REQUESTS) {
        /* A request that is refused is complete without a descriptor that becomes readable, so the
         * queue is polled after every submission, before the thread sleeps. */
        answer();
        if (server.answered == REQUESTS) {
            break;
        }
        /* While no buffer is free, requests stay in the pipe. */
        if (reads_pipe != (server.spares > 0)) {
            struct epoll_event event = {.events = server.spares > 0 ? EPOLLIN : 0,
                                        .data = {.fd = requests}};
            CHECK(epoll_ctl(loop, EPOLL_CTL_MOD, requests, &event) == 0);
            reads_pipe = server.spares > 0;
        }
        struct epoll_event events[2];
        int ready = epoll_wait(loop, events, 2, PATIENCE_MS);
        /* The kernel may interrupt the wait, as a signal does, to complete reads. */
        CHECK(ready > 0 || (ready < 0 && errno == EINTR));
        sleeps++;
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == requests && (events[i].events & EPOLLIN)) {
                accept_request(requests);
            }
        }
    }
    close(loop);
    return sleeps;
}

int main(int count, char **arguments)
{
    CHECK(count > 0);
    char path[4096];
    CHECK(snprintf(path, sizeof path, "%s.flash", arguments[0]) < (int)sizeof path);
    remove(path);

    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 2, .luns_per_channel = 1, .blocks_per_lun = 16,
        .pages_per_block = PAGES, .page_size = PAGE,
    };
    prism_device *device;
    TRY(prism_device_create(path, &geometry, NULL, &device));
    prism_share *share = share_of(device, "served", 1, 0);
    TRY(prism_raw_open(share, &server.raw));
    CHECK(TRY(prism_raw_blocks(server.raw, &server.block, 1)) > 0);
    unsigned char page[PAGE];
    prism_address at = server.block;
    for (at.page = 0; at.page < PAGES; at.page++) {
        stamp(page, PAGE, at.page);
        TRY(prism_raw_write_page(server.raw, at, page, PAGE));
    }

    TRY(prism_raw_queue_open(server.raw, DEPTH, &server.queue));
    for (; server.spares < DEPTH; server.spares++) {
        TRY(prism_buffer_alloc(device, PAGE, &server.spare[server.spares]));
    }
    int ends[2];
    CHECK(pipe(ends) == 0);
    for (uint32_t request = 0; request < REQUESTS; request++) {
        /* All of them fit into the pipe. */
        CHECK(write(ends[1], &request, sizeof request) == sizeof request);
    }
    CHECK(serve(ends[0]) > 0);
    CHECK(server.spares == DEPTH && prism_raw_queue_length(server.queue) == 0);
    close(ends[0]);
    close(ends[1]);
    while (server.spares > 0) {
        TRY(prism_buffer_free(server.spare[--server.spares]));
    }
    TRY(prism_raw_queue_close(server.queue));
    TRY(prism_raw_close(server.raw));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    printf("%d requests were answered by one thread that waits only in epoll\n",
           server.answered);
    remove(path);
    CHECK(prism_open_handles() == 0);
    return 0;
}
