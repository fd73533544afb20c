/*
 * Real time: a device in a file whose calls take as long as those of real flash.
 *
 * A call returns when the device would have completed it, by wall clock, so a program can be tried
 * with the latencies of flash that the machine does not have. The checks hold however busy the
 * machine is: no operation ends too early, and operations of one LUN are serial. The file is the
 * program's own name with ".flash" appended.
 */
#define _POSIX_C_SOURCE 200809L
#include "example.h"

#include <time.h>

enum { PAGE = 4096, READS = 8 };

/* Nanoseconds of a monotonic clock. */
static uint64_t now(void)
{
    struct timespec time;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &time) == 0);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The clock of a share: wall-clock time since real time began. */
static uint64_t share_now(prism_share *share)
{
    uint64_t time;
    TRY(prism_share_now(share, &time));
    return time;
}

/* A page is written, read, and its block erased: each takes its latency in real time. */
static void one_by_one(prism_raw *raw, prism_share *share, const prism_timing *timing)
{
    unsigned char page[PAGE];
    prism_address at = {0, 0, 1, 0};
    stamp(page, PAGE, 7);
    uint64_t began = share_now(share), start = now();
    TRY(prism_raw_write_page(raw, at, page, PAGE));
    uint64_t written = now();
    CHECK(written - start >= timing->t_program_ns[0]);
    memset(page, 0, PAGE);
    TRY(prism_raw_read_page(raw, at, page, PAGE));
    uint64_t read = now();
    CHECK(read - written >= timing->t_read_ns[0] && is_stamped(page, PAGE, 7));
    TRY(prism_raw_erase_block(raw, at));
    uint64_t erased = now();
    CHECK(erased - read >= timing->t_erase_ns);
    CHECK(share_now(share) - began >= erased - start);
}

/* Queued reads of one LUN complete in order of submission. */
static void in_a_queue(prism_raw *raw, const prism_timing *timing)
{
    unsigned char page[PAGE];
    prism_address at = {1, 0, 0, 0};
    for (at.page = 0; at.page < READS; at.page++) {
        stamp(page, PAGE, at.page);
        TRY(prism_raw_write_page(raw, at, page, PAGE));
    }
    prism_raw_queue *queue;
    TRY(prism_raw_queue_open(raw, READS, &queue));
    uint64_t start = now(), end = 0;
    for (at.page = 0; at.page < READS; at.page++) {
        TRY(prism_raw_queue_read(queue, at, PAGE, at.page));
    }
    prism_completion done = {.size = sizeof done};
    for (uint64_t tag = 0; tag < READS; tag++) {
        CHECK(TRY(prism_raw_queue_complete(queue, &done, page, PAGE)) == 1);
        CHECK(done.status == PRISM_OK && done.tag == tag && is_stamped(page, PAGE, tag));
        CHECK(done.end_ns >= end + timing->t_read_ns[0]);
        CHECK(now() - start >= (tag + 1) * timing->t_read_ns[0]);
        end = done.end_ns;
    }
    TRY(prism_raw_queue_close(queue));
}

int main(int count, char **arguments)
{
    CHECK(count > 0);
    char path[4096];
    CHECK(snprintf(path, sizeof path, "%s.flash", arguments[0]) < (int)sizeof path);
    remove(path);

    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 2, .luns_per_channel = 1, .blocks_per_lun = 16,
        .pages_per_block = READS, .page_size = PAGE,
    };
    prism_device *device;
    TRY(prism_device_create(path, &geometry, NULL, &device));
    CHECK(prism_device_in_real_time(device) == PRISM_ENOCLOCK);
    TRY(prism_share_close(share_of(device, "timed", 2, 0)));
    TRY(prism_device_close(device));

    prism_timing timing = example_timing();
    prism_options options = {.size = sizeof options, .timing = &timing};
    TRY(prism_device_open(path, &options, &device));
    TRY(prism_device_in_real_time(device));
    prism_share *share;
    prism_raw *raw;
    TRY(prism_device_attach(device, "timed", &share));
    TRY(prism_raw_open(share, &raw));
    one_by_one(raw, share, &timing);
    in_a_queue(raw, &timing);
    uint64_t start = now();
    TRY(prism_share_pass(share, 2000000));
    CHECK(now() - start >= 2000000);
    TRY(prism_raw_sync(raw));
    TRY(prism_raw_close(raw));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    printf("a page was written, read and erased, and %d were read in a queue, none too early\n",
           READS);
    remove(path);
    CHECK(prism_open_handles() == 0);
    return 0;
}
