/*
 * The raw level: a log that keeps the newest pages, as a flight recorder does.
 *
 * The application knows that its data is written in order and that the oldest is dropped first. So
 * it needs no mapping and no cleaning. Pages are written to all LUNs at once, and blocks are erased
 * in turn.
 */
#include "example.h"

enum { LUNS = 8, PAGES = 16, PAGE = 4096, BLOCKS_MAX = 16 * LUNS };

/* A log of stripes: one page on every LUN, each with the number of its stripe. */
static struct {
    prism_raw *raw;
    prism_address luns[LUNS];
    uint64_t blocks;
    uint64_t next;
} recorder;

/*
 * Continues after the newest block. A block that a power failure left partly written stays so,
 * which does no harm.
 */
static void open_recorder(prism_share *share)
{
    prism_address blocks[BLOCKS_MAX];
    TRY(prism_raw_open(share, &recorder.raw));
    int count = TRY(prism_raw_blocks(recorder.raw, blocks, BLOCKS_MAX));
    int luns = 0;
    for (int i = 0; i < count && i < BLOCKS_MAX; i++) {
        if (blocks[i].block == 0) {
            recorder.luns[luns++] = blocks[i];
        }
    }
    CHECK(luns == LUNS);
    recorder.blocks = (uint64_t)count / LUNS;
    recorder.next = 0;
    for (uint32_t block = 0; block < recorder.blocks; block++) {
        unsigned char stripe[8];
        prism_address at = recorder.luns[0];
        at.block = block;
        int result = prism_raw_read_page(recorder.raw, at, stripe, sizeof stripe);
        if (result == PRISM_EUNWRITTEN || result == PRISM_ETORN) {
            continue;
        }
        TRY(result);
        if (number_at(stripe) + PAGES > recorder.next) {
            recorder.next = number_at(stripe) + PAGES;
        }
    }
}

/* The address of a stripe. */
static void pages_of(uint64_t stripe, prism_address pages[LUNS])
{
    for (int lun = 0; lun < LUNS; lun++) {
        pages[lun] = recorder.luns[lun];
        pages[lun].block = (uint32_t)(stripe / PAGES % recorder.blocks);
        pages[lun].page = (uint32_t)(stripe % PAGES);
    }
}

static int append(void)
{
    static unsigned char data[LUNS * PAGE];
    prism_address pages[LUNS];
    pages_of(recorder.next, pages);
    if (pages[0].page == 0) {
        /* The oldest block is erased; a power failure may have interrupted this erase before. */
        int result = prism_raw_erase_blocks(recorder.raw, pages, LUNS, NULL);
        if (result < 0) {
            return result;
        }
    }
    stamp(data, sizeof data, recorder.next);
    size_t failed = 0;
    int result = prism_raw_write_pages(recorder.raw, pages, LUNS, data, sizeof data, &failed);
    CHECK(result == PRISM_OK || failed < LUNS);
    recorder.next += result == PRISM_OK;
    return result;
}

static void check(uint64_t stripe)
{
    static unsigned char data[LUNS * PAGE];
    prism_address pages[LUNS];
    pages_of(stripe, pages);
    TRY(prism_raw_read_pages(recorder.raw, pages, LUNS, data, sizeof data, NULL));
    CHECK(is_stamped(data, sizeof data, stripe));
}

/* The same pages, read as commands of a queue: each has its own end. */
static void check_queued(uint64_t stripe)
{
    prism_address pages[LUNS];
    pages_of(stripe, pages);
    prism_raw_queue *queue;
    TRY(prism_raw_queue_open(recorder.raw, LUNS, &queue));
    for (uint64_t lun = 0; lun < LUNS; lun++) {
        TRY(prism_raw_queue_read(queue, pages[lun], PAGE, lun));
    }
    CHECK(prism_raw_queue_erase(queue, pages[0], LUNS) == PRISM_EFULL);
    CHECK(TRY(prism_raw_queue_length(queue)) == LUNS);
    prism_completion done = {.size = sizeof done};
    unsigned char page[PAGE];
    uint64_t end = 0;
    unsigned seen = 0;
    while (TRY(prism_raw_queue_complete(queue, &done, page, PAGE)) == 1) {
        CHECK(done.status == PRISM_OK && done.length == PAGE && done.end_ns >= end);
        CHECK(is_stamped(page, PAGE, stripe));
        end = done.end_ns;
        seen |= 1u << done.tag;
    }
    CHECK(seen == (1u << LUNS) - 1);
    TRY(prism_raw_queue_close(queue));
}

int main(void)
{
    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 4, .luns_per_channel = 2, .blocks_per_lun = 16,
        .pages_per_block = PAGES, .page_size = PAGE,
    };
    prism_timing timing = example_timing();
    prism_options options = {.size = sizeof options, .timing = &timing};
    prism_memory *memory;
    prism_device *device;
    TRY(prism_memory_create(&geometry, PRISM_CACHE_NONE, &memory));
    TRY(prism_device_format_memory(memory, &options, &device));
    prism_share *share = share_of(device, "recorder", LUNS, 0);
    open_recorder(share);

    /* Eight LUNs on four buses: a stripe takes little longer than one page. */
    uint64_t before, took;
    TRY(append());
    TRY(prism_share_now(share, &before));
    TRY(append());
    TRY(prism_share_now(share, &took));
    took -= before;
    CHECK(took < 1500000);

    /* Power fails in the middle of a stripe, after the log has wrapped around. */
    while (recorder.next < 1000) {
        TRY(append());
    }
    TRY(prism_memory_cut_power_after(memory, 333));
    while (append() == PRISM_OK) {
    }
    CHECK(prism_memory_lost_power(memory) == 1);
    uint64_t last = recorder.next - 1;
    TRY(prism_raw_close(recorder.raw));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_restart(memory, 1));

    TRY(prism_device_open_memory(memory, &options, &device));
    TRY(prism_device_attach(device, "recorder", &share));
    open_recorder(share);
    uint64_t oldest = ((last + 1) / PAGES + 1 - recorder.blocks) * PAGES;
    for (uint64_t stripe = oldest; stripe <= last; stripe++) {
        check(stripe);
    }
    check_queued(last);
    uint64_t next = recorder.next;
    CHECK(next > last);
    TRY(append());
    check(next);
    printf("stripes %u to %u were kept; one of eight pages took Nanos(%u)\n", (unsigned)oldest,
           (unsigned)last, (unsigned)took);

    TRY(prism_raw_close(recorder.raw));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_close(memory));
    CHECK(prism_open_handles() == 0);
    return 0;
}
