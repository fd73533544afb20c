/*
 * Common code of the examples: checks, the library's random streams, and numbered pages.
 */
#ifndef PRISM_EXAMPLE_H
#define PRISM_EXAMPLE_H

#include <prism.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program if the condition is false. */
#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                    \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

/* Ends the program with the library's message if a call failed. */
#define TRY(call) try_(call, #call, __FILE__, __LINE__)

static inline int try_(int result, const char *call, const char *file, int line)
{
    if (result < 0) {
        fprintf(stderr, "%s:%d: %s: %s: %s\n", file, line, call, prism_strerror(result),
                prism_last_message());
        exit(1);
    }
    return result;
}

static inline void *room(size_t bytes)
{
    void *memory = calloc(1, bytes);
    CHECK(memory != NULL);
    return memory;
}

/*
 * The generator of the library, xoshiro256** seeded through SplitMix64, so that these programs do
 * the same as those in Rust.
 */
typedef struct {
    uint64_t state[4];
} example_rng;

static inline uint64_t rng_turn(uint64_t word, int by)
{
    return (word << by) | (word >> (64 - by));
}

static inline example_rng rng_stream(uint64_t seed, const char *label)
{
    uint64_t mix = 0xcbf29ce484222325u;
    for (; *label != '\0'; label++) {
        mix = (mix ^ (unsigned char)*label) * 0x100000001b3u;
    }
    mix ^= seed;
    example_rng rng;
    for (int i = 0; i < 4; i++) {
        uint64_t word = mix += 0x9e3779b97f4a7c15u;
        word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
        word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
        rng.state[i] = word ^ (word >> 31);
    }
    return rng;
}

static inline uint64_t rng_next(example_rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rng_turn(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_turn(s[3], 45);
    return result;
}

/* A number below `bound`, which is below 2^32, each equally likely. */
static inline uint64_t rng_below(example_rng *rng, uint64_t bound)
{
    for (;;) {
        uint64_t word = rng_next(rng);
        uint64_t low_part = (word & 0xffffffffu) * bound;
        uint64_t high_part = (word >> 32) * bound + (low_part >> 32);
        uint64_t low = (high_part << 32) | (low_part & 0xffffffffu);
        if (low >= bound || low >= (0 - bound) % bound) {
            return high_part >> 32;
        }
    }
}

/* True with probability `p`. */
static inline int rng_chance(example_rng *rng, double p)
{
    return (double)(rng_next(rng) >> 11) / 9007199254740992.0 < p;
}

/* Fills a buffer with one number, little-endian. */
static inline void stamp(void *buffer, size_t bytes, uint64_t number)
{
    unsigned char *to = (unsigned char *)buffer;
    for (size_t i = 0; i < bytes; i++) {
        to[i] = (unsigned char)(number >> (i % 8 * 8));
    }
}

static inline int is_stamped(const void *buffer, size_t bytes, uint64_t number)
{
    const unsigned char *from = (const unsigned char *)buffer;
    for (size_t i = 0; i < bytes; i++) {
        if (from[i] != (unsigned char)(number >> (i % 8 * 8))) {
            return 0;
        }
    }
    return 1;
}

static inline uint64_t number_at(const void *buffer)
{
    const unsigned char *from = (const unsigned char *)buffer;
    uint64_t number = 0;
    for (int i = 7; i >= 0; i--) {
        number = (number << 8) | from[i];
    }
    return number;
}

static inline uint64_t total(const uint64_t counts[PRISM_CAUSES_MAX])
{
    uint64_t sum = 0;
    for (int cause = 0; cause < PRISM_CAUSES_MAX; cause++) {
        sum += counts[cause];
    }
    return sum;
}

static inline prism_counts counts_of(prism_share *share)
{
    prism_counts counts;
    counts.size = sizeof counts;
    TRY(prism_share_get_counts(share, &counts));
    return counts;
}

/* The times that the examples use: 60 us, 1.4 ms, 5 ms, and 400 MB/s. */
static inline prism_timing example_timing(void)
{
    prism_timing timing;
    memset(&timing, 0, sizeof timing);
    timing.size = sizeof timing;
    timing.page_types = 1;
    timing.t_read_ns[0] = 60000;
    timing.t_program_ns[0] = 1400000;
    timing.t_erase_ns = 5000000;
    timing.t_command_ns = 200;
    timing.bus_bytes_per_second = 400000000;
    return timing;
}

/* A share of `luns` LUNs and `percent` percent of over-provisioning. */
static inline prism_share *share_of(prism_device *device, const char *name, uint64_t luns,
                                    uint32_t percent)
{
    uint64_t lun;
    TRY(prism_device_lun_capacity(device, &lun));
    prism_allocation wanted;
    memset(&wanted, 0, sizeof wanted);
    wanted.size = sizeof wanted;
    wanted.capacity = luns * lun;
    wanted.over_provisioning = percent;
    prism_share *share;
    TRY(prism_device_allocate(device, name, &wanted, &share));
    return share;
}

#endif
