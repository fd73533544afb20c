/*
 * The monitor: two applications on one device, each on LUNs of its own.
 *
 * Neither sees the other, a block that fails is replaced invisibly, and in virtual time the
 * bandwidth of a share can be limited.
 */
#include "example.h"

enum { PAGE = 4096, BLOCKS = 4 * 4 * 32, BLOCKS_MAX = 256 };

/* The blocks of the first LUN of a share. */
static int first_lun(prism_raw *raw, prism_address blocks[BLOCKS_MAX])
{
    int count = TRY(prism_raw_blocks(raw, blocks, BLOCKS_MAX));
    int kept = 0;
    for (int i = 0; i < count && i < BLOCKS_MAX; i++) {
        if (blocks[i].channel == 0 && blocks[i].lun == 0) {
            blocks[kept++] = blocks[i];
        }
    }
    return kept;
}

/* Writes the first page of each block of the first LUN. */
static void write_some(prism_raw *raw, unsigned char byte)
{
    prism_address blocks[BLOCKS_MAX];
    unsigned char page[PAGE];
    int count = first_lun(raw, blocks);
    memset(page, byte, PAGE);
    for (int i = 0; i < count; i++) {
        TRY(prism_raw_erase_block(raw, blocks[i]));
        TRY(prism_raw_write_page(raw, blocks[i], page, PAGE));
    }
}

static void check_some(prism_raw *raw, unsigned char byte)
{
    prism_address blocks[BLOCKS_MAX];
    unsigned char page[PAGE];
    int count = first_lun(raw, blocks);
    for (int i = 0; i < count; i++) {
        TRY(prism_raw_read_page(raw, blocks[i], page, PAGE));
        CHECK(page[0] == byte && page[PAGE - 1] == byte);
    }
}

/* The content of a block of the device, below the monitor: -1 for an erased one. */
static int first_byte(prism_memory *memory, uint32_t block)
{
    unsigned char byte;
    return TRY(prism_memory_read(memory, block, 0, &byte, 1)) == 1 ? byte : -1;
}

/* A block wears out. The share does not notice; the device has one spare block less. */
static void wear_out(prism_memory *memory, prism_raw *fast)
{
    uint32_t worn = 0;
    while (worn < BLOCKS && first_byte(memory, worn) != 1) {
        worn++;
    }
    CHECK(worn < BLOCKS);
    TRY(prism_memory_wear_out(memory, worn));
    write_some(fast, 3);
    check_some(fast, 3);
    /* It could not be erased, and is not used any more. */
    CHECK(first_byte(memory, worn) == 1);
}

/* Shares grow by free LUNs, and are released. The next owner finds them erased. */
static void give_back(prism_device *device, prism_share *slow)
{
    TRY(prism_share_grow(slow, 2, 0));
    prism_share_geometry shape = {.size = sizeof shape};
    TRY(prism_share_get_geometry(slow, &shape));
    CHECK(shape.luns == 4 && TRY(prism_device_free_luns(device)) == 16 - 5 - 4);
    TRY(prism_share_release(slow));
    CHECK(prism_share_get_geometry(slow, &shape) == PRISM_ERELEASED);
    TRY(prism_share_close(slow));

    prism_share *other = share_of(device, "other", 6, 50);
    prism_objects *objects;
    TRY(prism_objects_open(other, &objects));
    CHECK(TRY(prism_objects_list(objects, NULL, 0)) == 0);
    TRY(prism_objects_close(objects));
    TRY(prism_share_close(other));
    static const char *const names[] = {"fast", "other"};
    CHECK(TRY(prism_device_shares(device)) == 2);
    for (size_t i = 0; i < 2; i++) {
        char name[16];
        prism_share_info info = {.size = sizeof info};
        TRY(prism_device_share(device, i, &info, name, sizeof name));
        CHECK(strcmp(name, names[i]) == 0 && info.attached == (i == 0));
    }
}

int main(void)
{
    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 4, .luns_per_channel = 4, .blocks_per_lun = 32,
        .pages_per_block = 16, .page_size = PAGE, .oob_size = 64,
    };
    prism_timing timing = example_timing();
    prism_wear_policy wear = {.size = sizeof wear, .min_gap = 64, .delta = 0.1, .budget = 0.01};
    prism_options options = {.size = sizeof options, .timing = &timing, .wear = &wear};
    prism_memory *memory;
    prism_device *device;
    TRY(prism_memory_create(&geometry, PRISM_CACHE_NONE, &memory));
    TRY(prism_device_format_memory(memory, &options, &device));

    /* Four LUNs and a quarter of over-provisioning, round robin over the channels. */
    prism_share *fast_share = share_of(device, "fast", 4, 25);
    prism_share_geometry shape = {.size = sizeof shape};
    TRY(prism_share_get_geometry(fast_share, &shape));
    CHECK(shape.luns == 5 && shape.ops_luns == 1 && shape.channels == 4);
    static const int on_channel[] = {2, 1, 1, 1};
    for (uint32_t channel = 0; channel < 4; channel++) {
        CHECK(TRY(prism_share_channel(fast_share, channel, NULL, 0)) == on_channel[channel]);
    }
    prism_raw *fast, *slow;
    TRY(prism_raw_open(fast_share, &fast));
    uint64_t lun;
    TRY(prism_device_lun_capacity(device, &lun));
    prism_allocation wanted = {
        .size = sizeof wanted, .capacity = 2 * lun, .bandwidth = 1 << 20,
    };
    prism_share *slow_share;
    TRY(prism_device_allocate(device, "slow", &wanted, &slow_share));
    TRY(prism_raw_open(slow_share, &slow));

    /* Addresses are those of the share: blocks of others have none. */
    unsigned char page[PAGE];
    prism_address beyond = {.channel = 3};
    CHECK(prism_raw_read_page(slow, beyond, page, PAGE) == PRISM_ERANGE);

    /* Each share has its own clock. A limit delays only its own share. */
    uint64_t fast_now, slow_now;
    write_some(fast, 1);
    write_some(slow, 2);
    TRY(prism_share_now(fast_share, &fast_now));
    TRY(prism_share_now(slow_share, &slow_now));
    CHECK(fast_now < 300000000);
    wear_out(memory, fast);
    TRY(prism_raw_close(slow));
    give_back(device, slow_share);
    printf("fast at SimTime(%u), slow at SimTime(%u)\n", (unsigned)fast_now,
           (unsigned)slow_now);

    TRY(prism_raw_close(fast));
    TRY(prism_share_close(fast_share));
    TRY(prism_device_close(device));
    TRY(prism_memory_close(memory));
    CHECK(prism_open_handles() == 0);
    return 0;
}
