/* SPDX-License-Identifier: Apache-2.0 */
#include "base/crc32c.h"

#include "base/cpu.h"

#include <penstock/penstock.h>

#include <string.h>

/* One byte further: table[b] = b x^8 mod P, reflected. */
static const uint32_t table[256] = {
    0x00000000, 0xF26B8303, 0xE13B70F7, 0x1350F3F4, 0xC79A971F, 0x35F1141C, 0x26A1E7E8, 0xD4CA64EB,
    0x8AD958CF, 0x78B2DBCC, 0x6BE22838, 0x9989AB3B, 0x4D43CFD0, 0xBF284CD3, 0xAC78BF27, 0x5E133C24,
    0x105EC76F, 0xE235446C, 0xF165B798, 0x030E349B, 0xD7C45070, 0x25AFD373, 0x36FF2087, 0xC494A384,
    0x9A879FA0, 0x68EC1CA3, 0x7BBCEF57, 0x89D76C54, 0x5D1D08BF, 0xAF768BBC, 0xBC267848, 0x4E4DFB4B,
    0x20BD8EDE, 0xD2D60DDD, 0xC186FE29, 0x33ED7D2A, 0xE72719C1, 0x154C9AC2, 0x061C6936, 0xF477EA35,
    0xAA64D611, 0x580F5512, 0x4B5FA6E6, 0xB93425E5, 0x6DFE410E, 0x9F95C20D, 0x8CC531F9, 0x7EAEB2FA,
    0x30E349B1, 0xC288CAB2, 0xD1D83946, 0x23B3BA45, 0xF779DEAE, 0x05125DAD, 0x1642AE59, 0xE4292D5A,
    0xBA3A117E, 0x4851927D, 0x5B016189, 0xA96AE28A, 0x7DA08661, 0x8FCB0562, 0x9C9BF696, 0x6EF07595,
    0x417B1DBC, 0xB3109EBF, 0xA0406D4B, 0x522BEE48, 0x86E18AA3, 0x748A09A0, 0x67DAFA54, 0x95B17957,
    0xCBA24573, 0x39C9C670, 0x2A993584, 0xD8F2B687, 0x0C38D26C, 0xFE53516F, 0xED03A29B, 0x1F682198,
    0x5125DAD3, 0xA34E59D0, 0xB01EAA24, 0x42752927, 0x96BF4DCC, 0x64D4CECF, 0x77843D3B, 0x85EFBE38,
    0xDBFC821C, 0x2997011F, 0x3AC7F2EB, 0xC8AC71E8, 0x1C661503, 0xEE0D9600, 0xFD5D65F4, 0x0F36E6F7,
    0x61C69362, 0x93AD1061, 0x80FDE395, 0x72966096, 0xA65C047D, 0x5437877E, 0x4767748A, 0xB50CF789,
    0xEB1FCBAD, 0x197448AE, 0x0A24BB5A, 0xF84F3859, 0x2C855CB2, 0xDEEEDFB1, 0xCDBE2C45, 0x3FD5AF46,
    0x7198540D, 0x83F3D70E, 0x90A324FA, 0x62C8A7F9, 0xB602C312, 0x44694011, 0x5739B3E5, 0xA55230E6,
    0xFB410CC2, 0x092A8FC1, 0x1A7A7C35, 0xE811FF36, 0x3CDB9BDD, 0xCEB018DE, 0xDDE0EB2A, 0x2F8B6829,
    0x82F63B78, 0x709DB87B, 0x63CD4B8F, 0x91A6C88C, 0x456CAC67, 0xB7072F64, 0xA457DC90, 0x563C5F93,
    0x082F63B7, 0xFA44E0B4, 0xE9141340, 0x1B7F9043, 0xCFB5F4A8, 0x3DDE77AB, 0x2E8E845F, 0xDCE5075C,
    0x92A8FC17, 0x60C37F14, 0x73938CE0, 0x81F80FE3, 0x55326B08, 0xA759E80B, 0xB4091BFF, 0x466298FC,
    0x1871A4D8, 0xEA1A27DB, 0xF94AD42F, 0x0B21572C, 0xDFEB33C7, 0x2D80B0C4, 0x3ED04330, 0xCCBBC033,
    0xA24BB5A6, 0x502036A5, 0x4370C551, 0xB11B4652, 0x65D122B9, 0x97BAA1BA, 0x84EA524E, 0x7681D14D,
    0x2892ED69, 0xDAF96E6A, 0xC9A99D9E, 0x3BC21E9D, 0xEF087A76, 0x1D63F975, 0x0E330A81, 0xFC588982,
    0xB21572C9, 0x407EF1CA, 0x532E023E, 0xA145813D, 0x758FE5D6, 0x87E466D5, 0x94B49521, 0x66DF1622,
    0x38CC2A06, 0xCAA7A905, 0xD9F75AF1, 0x2B9CD9F2, 0xFF56BD19, 0x0D3D3E1A, 0x1E6DCDEE, 0xEC064EED,
    0xC38D26C4, 0x31E6A5C7, 0x22B65633, 0xD0DDD530, 0x0417B1DB, 0xF67C32D8, 0xE52CC12C, 0x1747422F,
    0x49547E0B, 0xBB3FFD08, 0xA86F0EFC, 0x5A048DFF, 0x8ECEE914, 0x7CA56A17, 0x6FF599E3, 0x9D9E1AE0,
    0xD3D3E1AB, 0x21B862A8, 0x32E8915C, 0xC083125F, 0x144976B4, 0xE622F5B7, 0xF5720643, 0x07198540,
    0x590AB964, 0xAB613A67, 0xB831C993, 0x4A5A4A90, 0x9E902E7B, 0x6CFBAD78, 0x7FAB5E8C, 0x8DC0DD8F,
    0xE330A81A, 0x115B2B19, 0x020BD8ED, 0xF0605BEE, 0x24AA3F05, 0xD6C1BC06, 0xC5914FF2, 0x37FACCF1,
    0x69E9F0D5, 0x9B8273D6, 0x88D28022, 0x7AB90321, 0xAE7367CA, 0x5C18E4C9, 0x4F48173D, 0xBD23943E,
    0xF36E6F75, 0x0105EC76, 0x12551F82, 0xE03E9C81, 0x34F4F86A, 0xC69F7B69, 0xD5CF889D, 0x27A40B9E,
    0x79B737BA, 0x8BDCB4B9, 0x988C474D, 0x6AE7C44E, 0xBE2DA0A5, 0x4C4623A6, 0x5F16D052, 0xAD7D5351,
};

uint32_t pstk__crc32c_c(uint32_t crc, const void *data, size_t size)
{
    const uint8_t *p = data;
    crc = ~crc;
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xFF];
    return ~crc;
}

#define INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__)

#include <immintrin.h>

#define HAS_INSTRUCTION
#define TARGET __attribute__((target("sse4.2,pclmul")))

TARGET INLINE uint32_t add_8(uint32_t crc, uint8_t value)
{
    return _mm_crc32_u8(crc, value);
}

TARGET INLINE uint32_t add_16(uint32_t crc, uint16_t value)
{
    return _mm_crc32_u16(crc, value);
}

TARGET INLINE uint32_t add_32(uint32_t crc, uint32_t value)
{
    return _mm_crc32_u32(crc, value);
}

TARGET INLINE uint64_t add_64(uint64_t crc, uint64_t value)
{
    return _mm_crc32_u64(crc, value);
}

/* Return a_1 b_1 + a_2 b_2, carry-less. All factors have 32 bits. */
TARGET INLINE uint64_t products(uint64_t a_1, uint32_t b_1, uint64_t a_2, uint32_t b_2)
{
    __m128i p_1 =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a_1), _mm_cvtsi32_si128((int)b_1), 0);
    __m128i p_2 =
        _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a_2), _mm_cvtsi32_si128((int)b_2), 0);
    return (uint64_t)_mm_cvtsi128_si64(_mm_xor_si128(p_1, p_2));
}

#elif defined(__aarch64__)

#include <arm_neon.h>

#define HAS_INSTRUCTION
#define TARGET

/* These are in assembly: gcc and clang name the extensions differently, and older clang has the
 * intrinsics only in files that need the extension as a whole. */
#define ADD(bits, word, instruction, wide)                                                         \
    INLINE word add_##bits(word crc, uint##bits##_t value)                                         \
    {                                                                                              \
        uint32_t out;                                                                              \
        __asm__(".arch_extension crc\n\t" instruction " %w0, %w1, %" wide "2"                      \
                : "=r"(out)                                                                        \
                : "r"(crc), "r"(value));                                                           \
        return out;                                                                                \
    }

ADD(8, uint32_t, "crc32cb", "w")
ADD(16, uint32_t, "crc32ch", "w")
ADD(32, uint32_t, "crc32cw", "w")
ADD(64, uint64_t, "crc32cx", "x")

INLINE uint64x2_t product(uint64_t a, uint32_t b)
{
    uint64x2_t out;
    __asm__(".arch_extension aes\n\tpmull %0.1q, %1.1d, %2.1d"
            : "=w"(out)
            : "w"(vcreate_u64(a)), "w"(vcreate_u64(b)));
    return out;
}

/* Return a_1 b_1 + a_2 b_2, carry-less. All factors have 32 bits. */
INLINE uint64_t products(uint64_t a_1, uint32_t b_1, uint64_t a_2, uint32_t b_2)
{
    return vgetq_lane_u64(veorq_u64(product(a_1, b_1), product(a_2, b_2)), 0);
}

#endif

#if defined(HAS_INSTRUCTION)

/* powers[j] = x^(64 j - 33) mod P, reflected; combine uses it. */
static const uint32_t powers[257] = {
    0x00000000, 0x00000001, 0x493C7D27, 0xF20C0DFE, 0xBA4FC28E, 0x3DA6D0CB, 0xDDC0152B, 0x1C291D04,
    0x9E4ADDF8, 0x740EEF02, 0x39D3B296, 0x083A6EEC, 0x0715CE53, 0xC49F4F67, 0x47DB8317, 0x2AD91C30,
    0x0D3B6092, 0x6992CEA2, 0xC96CFDC0, 0x7E908048, 0x878A92A7, 0x1B3D8F29, 0xDAECE73E, 0xF1D0F55E,
    0xAB7AFF2A, 0xA87AB8A8, 0x2162D385, 0x8462D800, 0x83348832, 0x71D111A8, 0x299847D5, 0xFFD852C6,
    0xB9E02B86, 0xDCB17AA4, 0x18B33A4E, 0xF37C5AEE, 0xB6DD949B, 0x6051D5A2, 0x78D9CCB7, 0x18B0D4FF,
    0xBAC2FD7B, 0x21F3D99C, 0xA60CE07B, 0x8F158014, 0xCE7F39F4, 0xA00457F7, 0x61D82E56, 0x8D6D2C43,
    0xD270F1A2, 0x00AC29CF, 0xC619809D, 0xE9ADF796, 0x2B3CAC5D, 0x96638B34, 0x65863B64, 0xE0E9F351,
    0x1B03397F, 0x9AF01F2D, 0xEBB883BD, 0x2CFF42CF, 0xB3E32C28, 0x88F25A3A, 0x064F7F26, 0x4E36F0B0,
    0xDD7E3B0C, 0xBD6F81F8, 0xF285651C, 0x91C9BD4B, 0x10746F3C, 0x885F087B, 0xC7A68855, 0x4C144932,
    0x271D9844, 0x52148F02, 0x8E766A0C, 0xA3C6F37A, 0x93A5F730, 0xD7C0557F, 0x6CB08E5C, 0x63DED06A,
    0x6B749FB2, 0x4D56973C, 0x1393E203, 0x9669C9DF, 0xCEC3662E, 0xE417F38A, 0x96C515BB, 0x4B9E0F71,
    0xE6FC4E6A, 0xD104B8FC, 0x8227BB8A, 0x5B397730, 0xB0CD4768, 0xE78EB416, 0x39C7FF35, 0x61FF0E01,
    0xD7A4825C, 0x8D96551C, 0x0AB3844B, 0x0BF80DD2, 0x0167D312, 0x8821ABED, 0xF6076544, 0x6A45D2B2,
    0x26F6A60A, 0xD8D26619, 0xA741C1BF, 0xDE87806C, 0x98D8D9CB, 0x14338754, 0x49C3CC9C, 0x5BD2011F,
    0x68BCE87A, 0xDD07448E, 0x57A3D037, 0xDDE8F5B9, 0x6956FC3B, 0xA3E3E02C, 0x42D98888, 0xD73C7BEA,
    0x3771E98F, 0x80FF0093, 0xB42AE3D9, 0x8FE4C34D, 0x2178513A, 0xDF99FC11, 0xE0AC139E, 0x6C23E841,
    0x170076FA, 0xFE314258, 0x444DD413, 0x0D8373A0, 0x6F345E45, 0x19E3635E, 0x41D17B64, 0x29F268B4,
    0xFF0DBA97, 0x1DC0632A, 0xA2B73DF1, 0x1614F396, 0xF872E54C, 0x9E2993D3, 0x1E41E9FC, 0x6BEBD73C,
    0x86D8E4D2, 0x63AE91E6, 0x651BD98B, 0xF8C9DA7A, 0x5BB8F1BC, 0x945A19C1, 0xA90FD27A, 0xEE8213B7,
    0xB3AF077A, 0x93781DC7, 0x4984D782, 0xCCC4A1B9, 0xCA6EF3AC, 0xA2C2D971, 0x234E0B26, 0x1CAD4452,
    0xDD66CBBB, 0x74922601, 0x4597456A, 0xC55F7EAB, 0xE9E28EB4, 0xA1962329, 0x7B3FF57A, 0x2D370749,
    0xC9C8B782, 0x397D84A1, 0x3F70CC6F, 0x79113270, 0x93E106A4, 0xBC817803, 0x62EC6C6D, 0x88EB3C07,
    0xD813B325, 0x6E4CB630, 0x0DF04680, 0x71971D5C, 0x2342001E, 0xF33B8BC6, 0x0A2A8D7E, 0x9FB3BBC0,
    0x6D9A4957, 0x6EF22B23, 0xE8B6368B, 0xCE2DF768, 0xD2C3ED1A, 0xE53A4FC7, 0x995A5724, 0xBE60A91A,
    0x9EF68D35, 0x1DFA0A15, 0x0C139B31, 0x8EC52396, 0xF2271E60, 0x0E766B11, 0x0B0BF8CA, 0x475846A4,
    0x2664FD8B, 0xB2A3DFA6, 0xED64812D, 0xDC1A160C, 0x02EE03B2, 0x79AFDF1C, 0x8604AE0F, 0x07AC6E46,
    0x363BD6B3, 0x15F85253, 0x135C83FD, 0x1BEC24DD, 0x5FABE670, 0x4C36CD5B, 0x35EC3279, 0xE0A22E29,
    0x00BCF5F6, 0x7C2B6ED9, 0x8AE00689, 0x06FF88FD, 0x17F27698, 0xF7317CF0, 0x58CA5F00, 0x61B6E40B,
    0xAA7C7AD5, 0xDE8A97F8, 0xB5CFCA28, 0x88F61445, 0xDED288F8, 0xD4520E9E, 0x59F229BC, 0x0C592BD5,
    0x6D390DEC, 0x38EDFAF3, 0x37170390, 0x72CBFCDB, 0x6353C1CC, 0x348331A5, 0xC4584F5C, 0xC3977C19,
    0xF48642E9, 0xDAFAEA7C, 0x531377E2, 0x73DB4C04, 0xDD35BC8D, 0x72675CE8, 0xB25B29F2, 0x3EC2FF83,
    0x9A5EDE41, 0xE8C7A017, 0xA563905D, 0xCF4BFAEF, 0x45CDDF4E, 0x6BDE1AC7, 0xACFA3103, 0xAE1175C2,
    0xA51B6135,
};

/* Maximum words of each of the three streams: `powers` has an entry for twice that length. */
#define MAX_WORDS 128
/* Below this many bytes one stream is as fast as three and their combination. */
#define MIN_THREE 72

INLINE uint64_t load_word(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Store a word to `to + at`, unless `to` is NULL. Callers that do not copy pass a constant NULL, so
 * no branch is left. */
INLINE void store_word(uint8_t *to, size_t at, uint64_t word)
{
    if (to)
        memcpy(to + at, &word, sizeof word);
}

/*
 * Return the state after three streams of n words end to end: a x^(128 n) + b x^(64 n) + c mod P.
 * The carry-less product of two reflected 32-bit polynomials comes out multiplied by x, and the CRC
 * instruction multiplies by x^32 while it reduces; hence the 33 in `powers`.
 */
TARGET INLINE uint64_t combine(uint64_t a, uint64_t b, uint64_t c, size_t n)
{
    return add_64(0, products(a, powers[2 * n], b, powers[n])) ^ c;
}

/* Continue three streams at a time. The instruction has a throughput of a word a cycle and a
 * latency of three cycles, so three streams keep it busy. */
TARGET INLINE uint64_t three_streams(uint64_t crc, uint8_t *to, const uint8_t *p, size_t n)
{
    uint64_t a = crc, b = 0, c = 0;
    size_t stream = 8 * n;
    for (size_t i = 0; i < stream; i += 8) {
        uint64_t wa = load_word(p + i);
        uint64_t wb = load_word(p + stream + i);
        uint64_t wc = load_word(p + 2 * stream + i);
        a = add_64(a, wa);
        b = add_64(b, wb);
        c = add_64(c, wc);
        store_word(to, i, wa);
        store_word(to, stream + i, wb);
        store_word(to, 2 * stream + i, wc);
    }
    return combine(a, b, c, n);
}

/* Process the last 0..7 bytes as 4, 2 and 1, so that at most three instructions wait for each
 * other. */
TARGET INLINE uint64_t tail(uint64_t state, uint8_t *to, const uint8_t *p, size_t size)
{
    uint32_t crc = (uint32_t)state;
    size_t at = 0;
    if (size & 4) {
        uint32_t word;
        memcpy(&word, p, sizeof word);
        crc = add_32(crc, word);
        if (to)
            memcpy(to, &word, sizeof word);
        at = 4;
    }
    if (size & 2) {
        uint16_t word;
        memcpy(&word, p + at, sizeof word);
        crc = add_16(crc, word);
        if (to)
            memcpy(to + at, &word, sizeof word);
        at += 2;
    }
    if (size & 1) {
        crc = add_8(crc, p[at]);
        if (to)
            to[at] = p[at];
    }
    return crc;
}

TARGET INLINE uint32_t run(uint32_t crc, uint8_t *to, const uint8_t *p, size_t size)
{
    uint64_t state = ~crc;
    if (size == 0)
        return crc; /* p may be NULL then */
    while (size >= MIN_THREE) {
        size_t n = size / 24 < MAX_WORDS ? size / 24 : MAX_WORDS;
        state = three_streams(state, to, p, n);
        p += 24 * n;
        to = to ? to + 24 * n : NULL;
        size -= 24 * n;
    }
    size_t words = size & ~(size_t)7;
    for (size_t i = 0; i < words; i += 8) {
        uint64_t word = load_word(p + i);
        state = add_64(state, word);
        store_word(to, i, word);
    }
    return ~(uint32_t)tail(state, to ? to + words : NULL, p + words, size - words);
}

TARGET static uint32_t crc_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
    return run(crc, NULL, p, size);
}

TARGET static uint32_t copy_instruction(uint32_t crc, uint8_t *to, const uint8_t *p, size_t size)
{
    return run(crc, to, p, size);
}

#else

static uint32_t crc_instruction(uint32_t crc, const uint8_t *p, size_t size)
{
    return pstk__crc32c_c(crc, p, size);
}

static uint32_t copy_instruction(uint32_t crc, uint8_t *to, const uint8_t *p, size_t size)
{
    memcpy(to, p, size);
    return pstk__crc32c_c(crc, p, size);
}

#endif

uint32_t pstk__crc32c(uint32_t crc, const void *data, size_t size)
{
    return pstk__cpu_has_crc32() ? crc_instruction(crc, data, size)
                                 : pstk__crc32c_c(crc, data, size);
}

uint32_t pstk__crc32c_copy(uint32_t crc, void *to, const void *data, size_t size)
{
    if (size == 0)
        return crc;
    if (pstk__cpu_has_crc32())
        return copy_instruction(crc, to, data, size);
    memcpy(to, data, size);
    return pstk__crc32c_c(crc, data, size);
}

uint32_t pstk_crc32c(uint32_t crc, const void *data, uint64_t size)
{
    return pstk__crc32c(crc, data, size);
}
