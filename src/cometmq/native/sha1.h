/* SHA-1 by blocks of 64 bytes: of one message with the processor's own instructions where it has them, and of several
 * messages at once where it has wide registers, which takes half the time for each of them, or less. */
#ifndef COMETMQ_SHA1_H
#define COMETMQ_SHA1_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SHA1_LANES_MAX = 16 };

/* A round. A word is one of a message, or a register with one of each of several messages. */
#define SHA1_ROTATED(x, by) ((x) << (by) | (x) >> (32 - (by)))
#define SHA1_ROUND(choice, constant) do { \
    if (i >= 16) { \
        t = w[(i + 13) & 15] ^ w[(i + 8) & 15] ^ w[(i + 2) & 15] ^ w[i & 15]; \
        w[i & 15] = SHA1_ROTATED(t, 1); \
    } \
    t = SHA1_ROTATED(a, 5) + (choice) + e + w[i & 15] + (uint32_t)(constant); \
    e = d; d = c; c = SHA1_ROTATED(b, 30); b = a; a = t; \
} while (0)
/* The 80 rounds of a block, whose words are in ``w``. */
#define SHA1_BLOCK(word, state, w) do { \
    word a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], t; \
    _Pragma("GCC unroll 20") for (int i = 0; i < 20; i++) SHA1_ROUND(d ^ (b & (c ^ d)), 0x5A827999); \
    _Pragma("GCC unroll 20") for (int i = 20; i < 40; i++) SHA1_ROUND(b ^ c ^ d, 0x6ED9EBA1); \
    _Pragma("GCC unroll 20") for (int i = 40; i < 60; i++) SHA1_ROUND((b & c) | (d & (b | c)), 0x8F1BBCDC); \
    _Pragma("GCC unroll 20") for (int i = 60; i < 80; i++) SHA1_ROUND(b ^ c ^ d, 0xCA62C1D6); \
    state[0] += a; state[1] += b; state[2] += c; state[3] += d; state[4] += e; \
} while (0)

static inline uint32_t sha1_word(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void sha1_plain(uint32_t state[5], const unsigned char *at, size_t blocks) {
    for (; blocks--; at += 64) {
        uint32_t w[16];
        for (int i = 0; i < 16; i++) w[i] = sha1_word(at + 4 * i);
        SHA1_BLOCK(uint32_t, state, w);
    }
}

static int sha1_has_instructions;
static int sha1_lanes = 1;

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

/* Four rounds. The next words of the message are made as long as any are needed. */
#define SHA1_ROUNDS_4(i, choice) do { \
    e = i ? _mm_sha1nexte_epu32(before, w[i & 3]) : _mm_add_epi32(e, w[0]); \
    before = abcd; \
    abcd = _mm_sha1rnds4_epu32(abcd, e, choice); \
    if (i < 16) \
        w[i & 3] = _mm_sha1msg2_epu32( \
            _mm_xor_si128(_mm_sha1msg1_epu32(w[i & 3], w[(i + 1) & 3]), w[(i + 2) & 3]), w[(i + 3) & 3]); \
} while (0)

__attribute__((target("sha,sse4.1")))
static void sha1_by_instructions(uint32_t state[5], const unsigned char *at, size_t blocks) {
    const __m128i reversed = _mm_set_epi64x(0x0001020304050607, 0x08090a0b0c0d0e0f);
    __m128i abcd = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0x1B);
    __m128i last = _mm_set_epi32((int)state[4], 0, 0, 0);
    for (; blocks--; at += 64) {
        __m128i w[4], e = last, before = abcd, first = abcd;
        for (int i = 0; i < 4; i++) w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)at + i), reversed);
        _Pragma("GCC unroll 5") for (int i = 0; i < 5; i++) SHA1_ROUNDS_4(i, 0);
        _Pragma("GCC unroll 5") for (int i = 5; i < 10; i++) SHA1_ROUNDS_4(i, 1);
        _Pragma("GCC unroll 5") for (int i = 10; i < 15; i++) SHA1_ROUNDS_4(i, 2);
        _Pragma("GCC unroll 5") for (int i = 15; i < 20; i++) SHA1_ROUNDS_4(i, 3);
        last = _mm_sha1nexte_epu32(before, last);
        abcd = _mm_add_epi32(abcd, first);
    }
    _mm_storeu_si128((__m128i *)state, _mm_shuffle_epi32(abcd, 0x1B));
    state[4] = (uint32_t)_mm_extract_epi32(last, 3);
}

/* GCC's AddressSanitizer keeps arrays of such registers where they are not aligned as the processor wants them. */
#define SHA1_TARGET(features) __attribute__((target(features), no_sanitize_address))

typedef uint32_t sha1_word_8 __attribute__((vector_size(32)));
typedef uint32_t sha1_word_16 __attribute__((vector_size(64)));

/* The words of a block of each message: the first of all of them, the second of all, and so on. */
SHA1_TARGET("avx2")
static inline void sha1_load_8(sha1_word_8 w[16], const unsigned char *const *from, size_t at) {
    uint32_t words[16][8];
    for (int lane = 0; lane < 8; lane++)
        for (int i = 0; i < 16; i++) words[i][lane] = sha1_word(from[lane] + at + 4 * i);
    memcpy(w, words, sizeof words);
}

/* The same without a way through memory: rows become columns, first of squares of 2 by 2 words, then of 4 by 4, then all. */
SHA1_TARGET("avx512f,avx512bw")
static inline void sha1_load_16(sha1_word_16 w[16], const unsigned char *const *from, size_t at) {
    const __m512i reversed = _mm512_broadcast_i32x4(_mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
    __m512i rows[16], pairs[16];
    _Pragma("GCC unroll 16") for (int i = 0; i < 16; i++)
        rows[i] = _mm512_shuffle_epi8(_mm512_loadu_si512(from[i] + at), reversed);
    _Pragma("GCC unroll 8") for (int i = 0; i < 16; i += 2) {
        pairs[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < 16; i += 4) {
        rows[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
        rows[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
        rows[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
        rows[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
    }
    _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++) {
        __m512i even = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0x88);
        __m512i even_too = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0x88);
        __m512i odd = _mm512_shuffle_i32x4(rows[i], rows[4 + i], 0xdd);
        __m512i odd_too = _mm512_shuffle_i32x4(rows[8 + i], rows[12 + i], 0xdd);
        w[i] = (sha1_word_16)_mm512_shuffle_i32x4(even, even_too, 0x88);
        w[4 + i] = (sha1_word_16)_mm512_shuffle_i32x4(odd, odd_too, 0x88);
        w[8 + i] = (sha1_word_16)_mm512_shuffle_i32x4(even, even_too, 0xdd);
        w[12 + i] = (sha1_word_16)_mm512_shuffle_i32x4(odd, odd_too, 0xdd);
    }
}

/* Of up to as many messages as a register has lanes. Lanes that are left over do what the first one does. */
#define SHA1_WIDE(lanes, features) \
SHA1_TARGET(features) \
static void sha1_by_##lanes(uint32_t states[][5], const unsigned char *const *at, size_t count, size_t blocks) { \
    const unsigned char *from[lanes]; \
    sha1_word_##lanes state[5], w[16]; \
    for (size_t lane = 0; lane < lanes; lane++) { \
        from[lane] = at[lane < count ? lane : 0]; \
        for (int i = 0; i < 5; i++) state[i][lane] = states[lane < count ? lane : 0][i]; \
    } \
    for (size_t block = 0; block < blocks; block++) { \
        sha1_load_##lanes(w, from, 64 * block); \
        SHA1_BLOCK(sha1_word_##lanes, state, w); \
    } \
    for (size_t lane = 0; lane < count; lane++) \
        for (int i = 0; i < 5; i++) states[lane][i] = state[i][lane]; \
}
SHA1_WIDE(8, "avx2")
SHA1_WIDE(16, "avx512f,avx512bw")

static void sha1_prepare(void) {
    unsigned int a, b, c, d;
    __builtin_cpu_init();
    /* Not every compiler has a name for the instructions. */
    sha1_has_instructions =
        __builtin_cpu_supports("sse4.1") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
    if (__builtin_cpu_supports("avx2")) sha1_lanes = 8;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) sha1_lanes = 16;
}
#else
static void sha1_prepare(void) {}
#endif

static void sha1_of(uint32_t state[5], const unsigned char *at, size_t blocks) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (sha1_has_instructions) {
        sha1_by_instructions(state, at, blocks);
        return;
    }
#endif
    sha1_plain(state, at, blocks);
}

/* Of up to SHA1_LANES_MAX messages, with the same number of blocks. */
static void sha1_of_each(uint32_t states[][5], const unsigned char *const *at, size_t count, size_t blocks) {
#if defined(__x86_64__) && defined(__GNUC__)
    if (sha1_lanes >= 16 && count > 8) {
        sha1_by_16(states, at, count, blocks);
        return;
    }
    for (; sha1_lanes >= 8 && count > 4; states += 8, at += 8, count -= 8) {
        sha1_by_8(states, at, count < 8 ? count : 8, blocks);
        if (count <= 8) return;
    }
#endif
    for (size_t number = 0; number < count; number++) sha1_of(states[number], at[number], blocks);
}

#endif
