/*
 * The policy level: a small database on two ranges, each managed as suits it.
 *
 * Its log is circular and written in order: with block-level mapping, it costs no copies. Its table
 * is written in any order: it has page-level mapping, and two containers for data of two lifetimes.
 * The database has one rule of its own: the log is flushed before the table is written.
 */
#include "example.h"

enum { ROW = 4096, LOG = 1 << 20, TABLE = 6 << 20, ROWS = (4 << 20) / ROW, PLACES = LOG / ROW };

static unsigned char buffer[ROW];

/* One transaction: sets row `row` to `value`. */
static const void *record(uint64_t sequence, uint64_t row, uint64_t value)
{
    memset(buffer, 0, sizeof buffer);
    stamp(buffer, 8, sequence);
    stamp(buffer + 8, 8, row);
    stamp(buffer + 16, 8, value);
    return buffer;
}

static int transaction(prism_policy *policy, prism_container *rows, uint64_t sequence,
                       uint64_t row, uint64_t value)
{
    const void *bytes = record(sequence, row, value);
    int result = prism_policy_write(policy, sequence * ROW % LOG, bytes, ROW);
    if (result == PRISM_OK) {
        result = prism_policy_flush(policy);
    }
    if (result == PRISM_OK) {
        result = prism_container_write(rows, row * ROW, bytes, ROW);
    }
    return result;
}

static prism_container *set_up(prism_policy *policy)
{
    prism_range_config log = {
        .size = sizeof log, .mapping = PRISM_MAP_BLOCK, .cleaning = PRISM_CLEAN_FIFO,
        .over_provisioning = 25,
    };
    prism_range_config table = {
        .size = sizeof table, .mapping = PRISM_MAP_PAGE, .cleaning = PRISM_CLEAN_COST_BENEFIT,
        .over_provisioning = 30, .handles = PRISM_LIFE_EXTREME + 1,
    };
    TRY(prism_policy_configure(policy, 0, LOG, &log));
    TRY(prism_policy_configure(policy, LOG, LOG + TABLE, &table));
    prism_container *rows, *sort;
    TRY(prism_container_create(policy, LOG, "rows", ROWS * ROW, PRISM_LIFE_LONG, &rows));
    TRY(prism_container_create(policy, LOG, "sort buffer", 1 << 20, PRISM_LIFE_SHORT, &sort));
    TRY(prism_container_close(sort));
    return rows;
}

typedef struct {
    uint64_t sequence, row, value;
} entry;

static int in_order(const void *a, const void *b)
{
    uint64_t left = ((const entry *)a)->sequence, right = ((const entry *)b)->sequence;
    return (left > right) - (left < right);
}

/* Brings the table up to date with the log; returns the number of transactions. */
static uint64_t recover(prism_policy *policy, prism_container *rows)
{
    static entry entries[PLACES];
    for (int place = 0; place < PLACES; place++) {
        unsigned char read[24];
        TRY(prism_policy_read(policy, (uint64_t)place * ROW, read, sizeof read));
        entries[place].sequence = number_at(read);
        entries[place].row = number_at(read + 8);
        entries[place].value = number_at(read + 16);
    }
    qsort(entries, PLACES, sizeof entries[0], in_order);
    for (int place = 0; place < PLACES; place++) {
        entry *of = &entries[place];
        if (of->sequence > 0) {
            const void *bytes = record(of->sequence, of->row, of->value);
            TRY(prism_container_write(rows, of->row * ROW, bytes, ROW));
        }
    }
    TRY(prism_policy_flush(policy));
    return entries[PLACES - 1].sequence;
}

/* A circular log has no write amplification. */
static void go_round(prism_policy *policy, prism_share *share)
{
    for (int round = 0; round < 4; round++) {
        memset(buffer, round, sizeof buffer);
        for (int place = 0; place < PLACES; place++) {
            TRY(prism_policy_write(policy, (uint64_t)place * ROW, buffer, ROW));
        }
    }
    TRY(prism_policy_flush(policy));
    prism_counts counts = counts_of(share);
    CHECK(counts.programs[PRISM_CAUSE_HOST] == 4 * PLACES);
    CHECK(counts.programs[PRISM_CAUSE_MERGE] == 0);
    TRY(prism_policy_trim(policy, 0, LOG));
}

static void check(prism_container *rows, const uint64_t table[ROWS])
{
    for (uint64_t row = 0; row < ROWS; row++) {
        unsigned char read[8];
        TRY(prism_container_read(rows, row * ROW + 16, read, sizeof read));
        CHECK(number_at(read) == table[row]);
    }
}

int main(void)
{
    prism_geometry geometry = {
        .size = sizeof geometry, .channels = 4, .luns_per_channel = 1, .blocks_per_lun = 64,
        .pages_per_block = 16, .page_size = 4096, .oob_size = 64,
    };
    prism_memory *memory;
    prism_device *device;
    prism_policy *policy;
    TRY(prism_memory_create(&geometry, PRISM_CACHE_VOLATILE, &memory));
    TRY(prism_device_format_memory(memory, NULL, &device));
    prism_share *share = share_of(device, "database", 3, 25);
    TRY(prism_policy_open(share, &policy));
    prism_container *rows = set_up(policy);
    go_round(policy, share);

    /* Transactions until power fails. The committed ones survive. */
    static uint64_t table[ROWS];
    example_rng rng = rng_stream(7, "policy");
    TRY(prism_memory_cut_power_after(memory, 5000));
    uint64_t row, value, sequence = 1;
    for (;; sequence++) {
        row = rng_below(&rng, ROWS);
        value = rng_next(&rng) >> 24;
        if (transaction(policy, rows, sequence, row, value) != PRISM_OK) {
            break;
        }
        table[row] = value;
    }
    CHECK(sequence > 500);
    TRY(prism_container_close(rows));
    TRY(prism_policy_close(policy));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_restart(memory, 7));

    TRY(prism_device_open_memory(memory, NULL, &device));
    TRY(prism_device_attach(device, "database", &share));
    TRY(prism_policy_open(share, &policy));
    TRY(prism_container_open(policy, "rows", &rows));
    uint64_t last = recover(policy, rows);
    CHECK(last == sequence - 1 || last == sequence);
    if (last == sequence) {
        /* Power failed during its commit, and it was durable. */
        table[row] = value;
    }
    check(rows, table);
    printf("%u transactions survived\n", (unsigned)last);

    TRY(prism_container_close(rows));
    TRY(prism_policy_close(policy));
    TRY(prism_share_close(share));
    TRY(prism_device_close(device));
    TRY(prism_memory_close(memory));
    CHECK(prism_open_handles() == 0);
    return 0;
}
