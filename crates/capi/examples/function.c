/*
 * The function level: a cache of slabs of one block each, as in key-value caches.
 *
 * The library allocates, erases and counts wear. The cache may simply drop a slab, which the
 * library cannot know. So it never copies data.
 */
#include "example.h"

enum { PAGES = 8, PAGE = 4096, SLAB = PAGES * PAGE, SLABS_MAX = 256 };

/* Slabs, oldest first. */
static struct {
    prism_function *flash;
    struct {
        unsigned char byte;
        prism_address at;
    } slabs[SLABS_MAX];
    int count;
} cache;

static int same_block(prism_address a, prism_address b)
{
    return a.channel == b.channel && a.lun == b.lun && a.block == b.block;
}

static void forget(int place)
{
    cache.count--;
    memmove(&cache.slabs[place], &cache.slabs[place + 1],
            (size_t)(cache.count - place) * sizeof cache.slabs[0]);
}

static void evict(void)
{
    CHECK(cache.count > 0);
    prism_address at = cache.slabs[0].at;
    forget(0);
    TRY(prism_function_trim(cache.flash, at, PRISM_UNIT_BLOCK));
}

/*
 * Stores a slab on the channel with the least work. Drops the oldest slab when the channel has no
 * free block left, so that its erase is complete before the next allocation.
 */
static prism_address put(unsigned char byte)
{
    static unsigned char slab[SLAB];
    prism_allocated allocated = {.size = sizeof allocated};
    for (;;) {
        int result = prism_function_address_mapper(cache.flash, PRISM_CHANNEL_ANY,
                                                   PRISM_UNIT_BLOCK, &allocated);
        if (result != PRISM_ENOSPACE || cache.count == 0) {
            TRY(result);
            break;
        }
        evict();
    }
    memset(slab, byte, SLAB);
    TRY(prism_function_write(cache.flash, allocated.at, slab, SLAB));
    CHECK(cache.count < SLABS_MAX);
    cache.slabs[cache.count].byte = byte;
    cache.slabs[cache.count++].at = allocated.at;
    if (allocated.free_left == 0) {
        evict();
    }
    return allocated.at;
}

static void check_slab(unsigned char byte, prism_address at)
{
    static unsigned char slab[SLAB];
    TRY(prism_function_read(cache.flash, at, slab, SLAB));
    for (int i = 0; i < SLAB; i++) {
        CHECK(slab[i] == byte);
    }
}

static void check(void)
{
    for (int i = 0; i < cache.count; i++) {
        check_slab(cache.slabs[i].byte, cache.slabs[i].at);
    }
}

/* A read that is queued after writes on the same LUN is executed before them. */
static void reads_go_first(void)
{
    static unsigned char slab[SLAB];
    memset(slab, 1, SLAB);
    prism_address old = cache.slabs[0].at;
    prism_function_queue *queue;
    TRY(prism_function_queue_open(cache.flash, 8, &queue));
    for (uint64_t tag = 0; tag < 2; tag++) {
        prism_allocated allocated = {.size = sizeof allocated};
        TRY(prism_function_address_mapper(cache.flash, old.channel, PRISM_UNIT_BLOCK,
                                          &allocated));
        TRY(prism_function_queue_write(queue, allocated.at, slab, SLAB, tag));
    }
    TRY(prism_function_queue_read(queue, old, PAGE, 9));
    CHECK(prism_function_queue_length(queue) == 3);

    static const uint64_t tags[] = {9, 0, 1};
    prism_completion done = {.size = sizeof done};
    /* If the buffer is too small, the completion has the length of the data, and stays. */
    CHECK(prism_function_queue_complete(queue, &done, NULL, 0) == PRISM_ETOOSMALL);
    CHECK(done.length == PAGE);
    for (int i = 0; i < 3; i++) {
        CHECK(TRY(prism_function_queue_complete(queue, &done, slab, SLAB)) == 1);
        CHECK(done.tag == tags[i] && done.status == PRISM_OK);
        CHECK(done.length == (i == 0 ? PAGE : 0));
    }
    CHECK(slab[0] == cache.slabs[0].byte);
    CHECK(TRY(prism_function_queue_complete(queue, &done, slab, SLAB)) == 0);
    TRY(prism_function_queue_close(queue));
}

/* Blocks in use cannot become over-provisioning; the call returns how many are missing. */
static void reserve(void)
{
    uint32_t blocks, must_free, granted;
    CHECK(prism_function_set_ops(cache.flash, 25, &blocks, &must_free) == PRISM_EOPS);
    CHECK(must_free > 0);
    for (uint32_t i = 0; i < must_free; i++) {
        evict();
    }
    TRY(prism_function_set_ops(cache.flash, 25, &granted, NULL));
    CHECK(granted == blocks);
    /* An application that writes in bursts can drop the over-provisioning before one. */
    TRY(prism_function_set_ops(cache.flash, 0, NULL, NULL));
}

int main(void)
{
    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 2, .luns_per_channel = 1, .blocks_per_lun = 32,
        .pages_per_block = PAGES, .page_size = PAGE,
    };
    prism_timing timing = example_timing();
    prism_options options = {.size = sizeof options, .timing = &timing};
    prism_memory *memory;
    prism_device *device;
    TRY(prism_memory_create(&geometry, PRISM_CACHE_NONE, &memory));
    TRY(prism_device_format_memory(memory, &options, &device));
    prism_share *share = share_of(device, "cache", 2, 0);
    TRY(prism_function_open(share, &cache.flash));

    for (int byte = 0; byte < 200; byte++) {
        put((unsigned char)byte);
    }
    check();
    reserve();
    reads_go_first();

    /*
     * One slab stays while the others are replaced. Levelling moves it to a worn block, and its
     * address stays.
     */
    prism_address rests = put(77);
    for (int i = 0; i < cache.count; i++) {
        if (same_block(cache.slabs[i].at, rests)) {
            forget(i--);
        }
    }
    for (int round = 0; round < 1000; round++) {
        put((unsigned char)round);
    }
    prism_wear_level level = {.size = sizeof level};
    prism_pair pairs[2];
    CHECK(TRY(prism_function_wear_level(cache.flash, 2, 10, &level, pairs, 2)) > 0);
    CHECK(level.max - level.min > 10);
    check_slab(77, rests);
    check();
    printf("%d slabs; erases %u to %u a block\n", cache.count, level.min, level.max);

    TRY(prism_function_close(cache.flash));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_close(memory));
    CHECK(prism_open_handles() == 0);
    return 0;
}
