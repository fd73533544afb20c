/*
 * Algorithm IV.2 of the Prism-SSD paper: allocating blocks and collecting garbage at the
 * function level.
 *
 * The library chooses blocks, erases them in the background and returns the number of free ones.
 * The application maps, and decides when to clean and which block: here the block of the channel
 * with the least valid data ("Greedy").
 */
#include "example.h"

enum { CHANNELS = 2, LUNS = 2, PAGES = 16, PAGE = 4096, BLOCKS_MAX = 128, GC_THRESHOLD = 3 };

/* A block, and the logical pages on it in the order of its pages. */
typedef struct {
    prism_address at;
    int logical[PAGES];
    int filled;
} block;

/* A store of logical pages, written a block at a time. */
static struct {
    prism_function *flash;
    int pages;
    prism_address *map;
    char *is_mapped;
    block blocks[BLOCKS_MAX];
    int count;
    /* By channel, the block that takes copies. */
    int has_copies_to[CHANNELS];
    prism_address copies_to[CHANNELS];
    uint64_t copies;
} store;

static example_rng rng;
static uint64_t *stamps;
static uint64_t number;

static int same_block(prism_address a, prism_address b)
{
    return a.channel == b.channel && a.lun == b.lun && a.block == b.block;
}

static int before(prism_address a, prism_address b)
{
    return a.lun != b.lun ? a.lun < b.lun : a.block < b.block;
}

static block *find(prism_address at)
{
    for (int i = 0; i < store.count; i++) {
        if (same_block(store.blocks[i].at, at)) {
            return &store.blocks[i];
        }
    }
    return NULL;
}

/* A newly allocated block; "LBN <- PBN" follows with each page. */
static prism_allocated map_block(uint32_t channel)
{
    prism_allocated allocated = {.size = sizeof allocated};
    TRY(prism_function_address_mapper(store.flash, channel, PRISM_UNIT_BLOCK, &allocated));
    CHECK(store.count < BLOCKS_MAX);
    memset(&store.blocks[store.count], 0, sizeof store.blocks[0]);
    store.blocks[store.count++].at = allocated.at;
    return allocated;
}

static void put(prism_address at, int logical, const void *data)
{
    block *to = find(at);
    CHECK(to != NULL && to->filled < PAGES);
    at.page = (uint32_t)to->filled;
    TRY(prism_function_write(store.flash, at, data, PAGE));
    to->logical[to->filled++] = logical;
    store.map[logical] = at;
    store.is_mapped[logical] = 1;
}

static int is_valid(const block *of, int page)
{
    int logical = of->logical[page];
    prism_address at = store.map[logical];
    return store.is_mapped[logical] && same_block(at, of->at) && at.page == (uint32_t)page;
}

static int valid(const block *of)
{
    int count = 0;
    for (int page = 0; page < of->filled; page++) {
        count += is_valid(of, page);
    }
    return count;
}

/* The channel with the least valid data. */
static uint32_t least_loaded(void)
{
    int load[CHANNELS] = {0};
    for (int logical = 0; logical < store.pages; logical++) {
        if (store.is_mapped[logical]) {
            load[store.map[logical].channel]++;
        }
    }
    return load[1] < load[0] ? 1 : 0;
}

static prism_address block_for_copies(uint32_t channel)
{
    if (store.has_copies_to[channel] && find(store.copies_to[channel])->filled < PAGES) {
        return store.copies_to[channel];
    }
    prism_allocated allocated = map_block(channel);
    store.has_copies_to[channel] = 1;
    store.copies_to[channel] = allocated.at;
    return allocated.at;
}

static prism_address choose_victim(uint32_t channel)
{
    const block *victim = NULL;
    for (int i = 0; i < store.count; i++) {
        const block *of = &store.blocks[i];
        if (of->at.channel != channel ||
            (store.has_copies_to[channel] && same_block(of->at, store.copies_to[channel]))) {
            continue;
        }
        int gain = victim == NULL ? -1 : valid(of) - valid(victim);
        if (gain < 0 || (gain == 0 && before(of->at, victim->at))) {
            victim = of;
        }
    }
    CHECK(victim != NULL);
    return victim->at;
}

/* APP_GC of the algorithm. */
static void app_gc(uint32_t channel)
{
    while (TRY(prism_function_free(store.flash, channel)) < GC_THRESHOLD) {
        block victim = *find(choose_victim(channel));
        for (int page = 0; page < victim.filled; page++) {
            if (is_valid(&victim, page)) {
                unsigned char data[PAGE];
                prism_address from = victim.at;
                from.page = (uint32_t)page;
                TRY(prism_function_read(store.flash, from, data, PAGE));
                put(block_for_copies(channel), victim.logical[page], data);
                store.copies++;
            }
        }
        *find(victim.at) = store.blocks[--store.count];
        TRY(prism_function_trim(store.flash, victim.at, PRISM_UNIT_BLOCK));
        /* It is erased in the background; wait, so that the next iteration finds it free. */
        TRY(prism_function_drain(store.flash));
    }
}

/* The loop of Algorithm IV.2, with its `len` in blocks. */
static void write_blocks(int len)
{
    while (len > 0) {
        prism_allocated allocated = map_block(least_loaded());
        for (int page = 0; page < PAGES; page++) {
            int logical = (int)rng_below(&rng, (uint64_t)store.pages);
            unsigned char data[PAGE];
            stamps[logical] = ++number;
            stamp(data, PAGE, number);
            put(allocated.at, logical, data);
        }
        if (allocated.free_left < GC_THRESHOLD) {
            app_gc(allocated.at.channel);
        }
        len--;
    }
}

int main(void)
{
    prism_geometry geometry = {
        .size = sizeof geometry, .channels = CHANNELS, .luns_per_channel = LUNS,
        .blocks_per_lun = 24, .pages_per_block = PAGES, .page_size = PAGE,
    };
    prism_memory *memory;
    prism_device *device;
    TRY(prism_memory_create(&geometry, PRISM_CACHE_NONE, &memory));
    TRY(prism_device_format_memory(memory, NULL, &device));
    prism_share *share = share_of(device, "blocks", CHANNELS * LUNS, 0);
    TRY(prism_function_open(share, &store.flash));

    prism_share_geometry shape = {.size = sizeof shape};
    TRY(prism_share_get_geometry(share, &shape));
    store.pages = (int)(shape.capacity / PAGE * 3 / 5);
    store.map = (prism_address *)room((size_t)store.pages * sizeof store.map[0]);
    store.is_mapped = (char *)room((size_t)store.pages);
    stamps = (uint64_t *)room((size_t)store.pages * sizeof stamps[0]);
    rng = rng_stream(2, "algorithm IV.2");
    for (int round = 0; round < 40; round++) {
        write_blocks(10);
    }
    for (int logical = 0; logical < store.pages; logical++) {
        unsigned char data[PAGE];
        if (store.is_mapped[logical]) {
            TRY(prism_function_read(store.flash, store.map[logical], data, PAGE));
            CHECK(is_stamped(data, PAGE, stamps[logical]));
        } else {
            CHECK(stamps[logical] == 0);
        }
    }
    prism_counts counts = counts_of(share);
    uint64_t programs = total(counts.programs);
    CHECK(programs == number + store.copies);
    CHECK(total(counts.erases) > 0);
    printf("write amplification %.2f\n", (double)programs / (double)number);

    free(stamps);
    free(store.is_mapped);
    free(store.map);
    TRY(prism_function_close(store.flash));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_close(memory));
    CHECK(prism_open_handles() == 0);
    return 0;
}
