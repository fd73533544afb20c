/*
 * Threads: each has a queue of its own at the function level, on a device in a file.
 *
 * No thread waits for the commands of another. Data moves between the file and the buffers of the
 * library without a copy. Each thread makes its own writes durable with a ticket: the library makes
 * one sync of those that several threads ask for at once. The file is the program's own name with
 * ".flash" appended.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <pthread.h>

enum { PAGE = 4096, PAGES = 16, THREADS = 4, BLOCKS = 4, DEPTH = 8 };

struct worker {
    pthread_t thread;
    prism_device *device;
    prism_function *function;
    uint64_t number;
    int pages;
};

/* The buffers of a worker that no command has. */
struct spare {
    prism_buffer *buffers[DEPTH];
    int count;
};

/* Takes completions until at most `left` commands are in flight. Pages that were read are checked:
 * they hold their tag. */
static void settle(prism_function_queue *queue, struct spare *spare, int left)
{
    prism_completion done = {.size = sizeof done};
    while (TRY(prism_function_queue_length(queue)) > left) {
        CHECK(TRY(prism_function_queue_complete(queue, &done, NULL, 0)) == 1);
        TRY(done.status);
        if (done.buffer != NULL) {
            CHECK(is_stamped(prism_buffer_data(done.buffer), (size_t)done.length, done.tag));
            spare->buffers[spare->count++] = done.buffer;
        }
    }
}

/* The tag and the content of a page. */
static uint64_t tag_of(const struct worker *worker, int block, uint32_t page)
{
    return (worker->number * BLOCKS + (uint64_t)block) * PAGES + page;
}

static void *work(void *argument)
{
    struct worker *worker = (struct worker *)argument;
    prism_function_queue *queue;
    struct spare spare = {.count = 0};
    TRY(prism_function_queue_open(worker->function, DEPTH, &queue));
    while (spare.count < DEPTH) {
        TRY(prism_buffer_alloc(worker->device, PAGE, &spare.buffers[spare.count++]));
    }

    prism_allocated blocks[BLOCKS];
    for (int block = 0; block < BLOCKS; block++) {
        blocks[block].size = sizeof blocks[block];
        TRY(prism_function_address_mapper(worker->function, PRISM_CHANNEL_ANY,
                                          PRISM_UNIT_BLOCK, &blocks[block]));
        prism_address at = blocks[block].at;
        for (at.page = 0; at.page < PAGES; at.page++) {
            settle(queue, &spare, DEPTH - 1);
            prism_buffer *buffer = spare.buffers[--spare.count];
            stamp(prism_buffer_data(buffer), PAGE, tag_of(worker, block, at.page));
            TRY(prism_function_queue_write_buffer(queue, at, buffer, PAGE, NULL, 0,
                                                  tag_of(worker, block, at.page)));
        }
    }
    settle(queue, &spare, 0);
    uint64_t ticket;
    TRY(prism_function_ticket(worker->function, &ticket));
    TRY(prism_function_sync_to(worker->function, ticket));

    for (int block = 0; block < BLOCKS; block++) {
        prism_address at = blocks[block].at;
        for (at.page = 0; at.page < PAGES; at.page++) {
            settle(queue, &spare, DEPTH - 1);
            prism_buffer *buffer = spare.buffers[--spare.count];
            TRY(prism_function_queue_read_buffer(queue, at, buffer, PAGE,
                                                 tag_of(worker, block, at.page)));
            worker->pages++;
        }
    }
    settle(queue, &spare, 0);
    TRY(prism_function_queue_close(queue));
    CHECK(spare.count == DEPTH);
    while (spare.count > 0) {
        TRY(prism_buffer_free(spare.buffers[--spare.count]));
    }
    return NULL;
}

int main(int count, char **arguments)
{
    CHECK(count > 0);
    char path[4096];
    CHECK(snprintf(path, sizeof path, "%s.flash", arguments[0]) < (int)sizeof path);
    remove(path);

    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 4, .luns_per_channel = 1, .blocks_per_lun = 16,
        .pages_per_block = PAGES, .page_size = PAGE, .oob_size = 16,
    };
    /* As many operations in flight in the file as all queues may have. */
    prism_file_settings settings = {.size = sizeof settings, .depth = THREADS * DEPTH};
    prism_device *device;
    prism_function *function;
    TRY(prism_device_create_with(path, &geometry, &settings, NULL, &device));
    prism_share *share = share_of(device, "work", 4, 0);
    TRY(prism_function_open(share, &function));

    struct worker workers[THREADS];
    int pages = 0;
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.device = device, .function = function, .number = i};
        CHECK(pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
        pages += workers[i].pages;
    }
    CHECK(TRY(prism_function_allocated(function, NULL, 0)) == THREADS * BLOCKS);
    TRY(prism_function_close(function));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    printf("%d threads with a queue each wrote and read %d pages\n", THREADS, pages);
    remove(path);
    CHECK(prism_open_handles() == 0);
    return 0;
}
