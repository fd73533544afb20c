/*
 * Algorithm IV.1 of the Prism-SSD paper: garbage collection at the raw level.
 *
 * The application maps, allocates and cleans. It cleans the channels in turn: of each, the block
 * with the least valid data, whose valid pages are copied before it is erased.
 */
#include "example.h"

enum { CHANNELS = 2, LUNS = 2, PAGES = 16, PAGE = 4096, FREE_MIN = 2, BLOCKS_MAX = 64 };

typedef struct {
    prism_address at;
    int logical[PAGES];
    int filled;
} block;

/* A channel: its erased blocks, the one that is being written, and those that are full. */
typedef struct {
    prism_address erased[BLOCKS_MAX];
    int erased_count;
    int is_open;
    block open;
    block full[BLOCKS_MAX];
    int full_count;
} channel;

/* A store of logical pages. */
static struct {
    prism_raw *raw;
    int pages;
    prism_address *map;
    char *is_mapped;
    channel channels[CHANNELS];
    int cleaned; /* CH_num of the algorithm */
    int write_to;
    uint64_t copies;
} store;

static int same(prism_address a, prism_address b)
{
    return a.channel == b.channel && a.lun == b.lun && a.block == b.block && a.page == b.page;
}

/* Blocks of a channel are distinguished by their addresses. */
static int before(prism_address a, prism_address b)
{
    return a.lun != b.lun ? a.lun < b.lun : a.block < b.block;
}

static prism_address page_of(prism_address at, int page)
{
    at.page = (uint32_t)page;
    return at;
}

/* Writes to the next page of a channel's open block. */
static void put(int number, int logical, const void *data)
{
    channel *to = &store.channels[number];
    if (!to->is_open) {
        CHECK(to->erased_count > 0);
        to->open.at = to->erased[0];
        to->open.filled = 0;
        to->is_open = 1;
        to->erased_count--;
        memmove(to->erased, to->erased + 1, (size_t)to->erased_count * sizeof to->erased[0]);
    }
    prism_address at = page_of(to->open.at, to->open.filled);
    TRY(prism_raw_write_page(store.raw, at, data, PAGE));
    store.map[logical] = at;
    store.is_mapped[logical] = 1;
    to->open.logical[to->open.filled++] = logical;
    if (to->open.filled == PAGES) {
        to->full[to->full_count++] = to->open;
        to->is_open = 0;
    }
}

static int is_valid(const block *of, int page)
{
    int logical = of->logical[page];
    return store.is_mapped[logical] && same(store.map[logical], page_of(of->at, page));
}

static int valid(const block *of)
{
    int count = 0;
    for (int page = 0; page < of->filled; page++) {
        count += is_valid(of, page);
    }
    return count;
}

/* "Application determines GC status." */
static int must_clean(void)
{
    for (int number = 0; number < CHANNELS; number++) {
        if (store.channels[number].erased_count < FREE_MIN) {
            return 1;
        }
    }
    return 0;
}

static int least_valid(const channel *of)
{
    int least = -1;
    for (int i = 0; i < of->full_count; i++) {
        int gain = least < 0 ? -1 : valid(&of->full[i]) - valid(&of->full[least]);
        if (gain < 0 || (gain == 0 && before(of->full[i].at, of->full[least].at))) {
            least = i;
        }
    }
    return least;
}

/* Algorithm IV.1, line by line. */
static void collect_garbage(void)
{
    while (must_clean()) {
        channel *of = &store.channels[store.cleaned];
        int least = least_valid(of);
        if (least >= 0) {
            block victim = of->full[least];
            of->full[least] = of->full[--of->full_count];
            for (int page = 0; page < PAGES; page++) {
                if (is_valid(&victim, page)) {
                    unsigned char data[PAGE];
                    TRY(prism_raw_read_page(store.raw, page_of(victim.at, page), data, PAGE));
                    put(store.cleaned, victim.logical[page], data);
                    store.copies++;
                }
            }
            TRY(prism_raw_erase_block(store.raw, victim.at));
            of->erased[of->erased_count++] = victim.at;
        }
        store.cleaned++;
        if (store.cleaned >= CHANNELS) {
            store.cleaned = 0;
        }
    }
}

static void open_store(prism_share *share)
{
    TRY(prism_raw_open(share, &store.raw));
    prism_address blocks[2 * BLOCKS_MAX];
    int count = TRY(prism_raw_blocks(store.raw, blocks, 2 * BLOCKS_MAX));
    for (int i = 0; i < count; i++) {
        channel *of = &store.channels[blocks[i].channel];
        of->erased[of->erased_count++] = blocks[i];
    }
    /* The application's over-provisioning: it uses two thirds of its pages. */
    store.pages = count * PAGES * 2 / 3;
    store.map = (prism_address *)room((size_t)store.pages * sizeof store.map[0]);
    store.is_mapped = (char *)room((size_t)store.pages);
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
    prism_share *share = share_of(device, "pages", CHANNELS * LUNS, 0);
    open_store(share);

    uint64_t *stamps = (uint64_t *)room((size_t)store.pages * sizeof stamps[0]);
    example_rng rng = rng_stream(1, "algorithm IV.1");
    unsigned char data[PAGE];
    uint64_t writes = 10 * (uint64_t)store.pages;
    for (uint64_t number = 1; number <= writes; number++) {
        int logical = (int)rng_below(&rng, (uint64_t)store.pages);
        stamp(data, PAGE, number);
        store.write_to = (store.write_to + 1) % CHANNELS;
        put(store.write_to, logical, data);
        collect_garbage();
        stamps[logical] = number;
    }
    for (int logical = 0; logical < store.pages; logical++) {
        if (store.is_mapped[logical]) {
            TRY(prism_raw_read_page(store.raw, store.map[logical], data, PAGE));
            CHECK(is_stamped(data, PAGE, stamps[logical]));
        } else {
            CHECK(stamps[logical] == 0);
        }
    }
    prism_counts counts = counts_of(share);
    uint64_t programs = total(counts.programs);
    CHECK(programs == writes + store.copies);
    CHECK(total(counts.erases) > 0 && store.copies > 0);
    printf("write amplification %.2f\n", (double)programs / (double)writes);

    free(stamps);
    free(store.is_mapped);
    free(store.map);
    TRY(prism_raw_close(store.raw));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_close(memory));
    CHECK(prism_open_handles() == 0);
    return 0;
}
