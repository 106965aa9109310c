/* CRC-32 as zlib computes it, 64 bytes at a time by carry-less multiplication where the processor has it.
 * The method and its constants: "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel, 2009. */
#ifndef COMETMQ_CRC32_H
#define COMETMQ_CRC32_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t crc32_table[256];

static uint32_t crc32_plain(uint32_t crc, const unsigned char *at, size_t count) {
    while (count--) crc = crc32_table[(crc ^ *at++) & 0xFF] ^ (crc >> 8);
    return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define FOLD(x, k, next) \
    _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00), _mm_clmulepi64_si128(x, k, 0x11)), next)

/* Of at least 64 bytes, a multiple of 16. */
__attribute__((target("pclmul,sse4.1")))
static uint32_t crc32_folded(uint32_t crc, const unsigned char *at, size_t count) {
    const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i by_8 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i reduce = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i low_32 = _mm_setr_epi32(~0, 0, ~0, 0);
    const __m128i *block = (const __m128i *)at;
    __m128i a = _mm_xor_si128(_mm_loadu_si128(block), _mm_cvtsi32_si128((int)crc));
    __m128i b = _mm_loadu_si128(block + 1), c = _mm_loadu_si128(block + 2), d = _mm_loadu_si128(block + 3);
    for (block += 4, count -= 64; count >= 64; block += 4, count -= 64) {
        a = FOLD(a, by_64, _mm_loadu_si128(block));
        b = FOLD(b, by_64, _mm_loadu_si128(block + 1));
        c = FOLD(c, by_64, _mm_loadu_si128(block + 2));
        d = FOLD(d, by_64, _mm_loadu_si128(block + 3));
    }
    a = FOLD(a, by_16, b);
    a = FOLD(a, by_16, c);
    a = FOLD(a, by_16, d);
    for (; count >= 16; block++, count -= 16) a = FOLD(a, by_16, _mm_loadu_si128(block));
    /* 128 bits to 64, to 32. */
    a = _mm_xor_si128(_mm_srli_si128(a, 8), _mm_clmulepi64_si128(a, by_16, 0x10));
    a = _mm_xor_si128(_mm_srli_si128(a, 4), _mm_clmulepi64_si128(_mm_and_si128(a, low_32), by_8, 0x00));
    b = _mm_clmulepi64_si128(_mm_and_si128(a, low_32), reduce, 0x10);
    b = _mm_clmulepi64_si128(_mm_and_si128(b, low_32), reduce, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(a, b), 1);
}
static int crc32_can_fold;
#endif

static void crc32_prepare(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0);
        crc32_table[byte] = crc;
    }
#if defined(__x86_64__) && defined(__GNUC__)
    crc32_can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
#endif
}

static uint32_t crc32_of(const unsigned char *at, size_t count) {
    uint32_t crc = ~0u;
#if defined(__x86_64__) && defined(__GNUC__)
    if (crc32_can_fold && count >= 64) {
        size_t folded = count & ~(size_t)15;
        crc = crc32_folded(crc, at, folded);
        at += folded;
        count -= folded;
    }
#endif
    return ~crc32_plain(crc, at, count);
}

#endif
