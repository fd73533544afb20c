/*
 * Algorithm IV.3 of the Prism-SSD paper: setting up two ranges at the policy level, with the
 * sizes divided by a thousand.
 *
 * The code of the paper says block mapping with FIFO, then page mapping with greedy cleaning; its
 * text has the two policies the other way round. This program follows the code.
 */
#include "example.h"

static prism_range_config range_of(uint32_t mapping, uint32_t cleaning)
{
    prism_range_config config = {
        .size = sizeof config, .mapping = mapping, .cleaning = cleaning,
        .over_provisioning = 25, .handles = 1,
    };
    return config;
}

int main(void)
{
    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 4, .luns_per_channel = 4, .blocks_per_lun = 80,
        .pages_per_block = 32, .page_size = 4096, .oob_size = 64,
    };
    prism_memory *memory;
    prism_device *device;
    prism_share *share;
    prism_policy *policy;
    TRY(prism_memory_create(&geometry, PRISM_CACHE_NONE, &memory));
    TRY(prism_device_format_memory(memory, NULL, &device));
    prism_allocation wanted = {
        .size = sizeof wanted, .capacity = 100 << 20, .over_provisioning = 40,
    };
    TRY(prism_device_allocate(device, "ranges", &wanted, &share));
    TRY(prism_policy_open(share, &policy));

    uint64_t start_addr = 0;
    uint64_t split_addr = 10 << 20;
    uint64_t end_addr = 100 << 20;
    prism_range_config by_block = range_of(PRISM_MAP_BLOCK, PRISM_CLEAN_FIFO);
    TRY(prism_policy_configure(policy, start_addr, split_addr, &by_block));
    /* Addresses between 0 and 10 MiB can be read and written from here on. */
    TRY(prism_policy_write(policy, start_addr, "below the split", 15));
    CHECK(prism_policy_write(policy, split_addr, "too early", 9) == PRISM_ERANGE);
    prism_range_config by_page = range_of(PRISM_MAP_PAGE, PRISM_CLEAN_GREEDY);
    TRY(prism_policy_configure(policy, split_addr, end_addr, &by_page));
    /* And those between 10 and 100 MiB from here on. */
    TRY(prism_policy_write(policy, end_addr - 15, "below the limit", 15));

    char text[15];
    TRY(prism_policy_read(policy, start_addr, text, sizeof text));
    CHECK(memcmp(text, "below the split", sizeof text) == 0);
    TRY(prism_policy_read(policy, end_addr - 15, text, sizeof text));
    CHECK(memcmp(text, "below the limit", sizeof text) == 0);
    TRY(prism_policy_flush(policy));

    /* A request must not span two ranges, which have different policies. */
    CHECK(prism_policy_write(policy, split_addr - 1, "ab", 2) == PRISM_ERANGE);
    prism_range_info ranges[2] = {{.size = sizeof ranges[0]}, {.size = sizeof ranges[1]}};
    CHECK(TRY(prism_policy_ranges(policy)) == 2);
    TRY(prism_policy_range(policy, 0, &ranges[0]));
    TRY(prism_policy_range(policy, 1, &ranges[1]));
    CHECK(ranges[0].mapping == PRISM_MAP_BLOCK && ranges[0].cleaning == PRISM_CLEAN_FIFO);
    CHECK(ranges[1].mapping == PRISM_MAP_PAGE && ranges[1].cleaning == PRISM_CLEAN_GREEDY);
    CHECK(ranges[1].begin == split_addr && ranges[1].end == end_addr);
    printf("%u and %u blocks\n", ranges[0].blocks, ranges[1].blocks);

    TRY(prism_policy_close(policy));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_close(memory));
    CHECK(prism_open_handles() == 0);
    return 0;
}
