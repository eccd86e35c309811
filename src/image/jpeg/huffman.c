/* SPDX-License-Identifier: Apache-2.0 */
#include "image/jpeg/huffman.h"

#define N_SYMBOLS 256u
#define MAX_LENGTH 16u

/* The standard tables: ITU T.81, K.3 to K.6. */
static const struct pstk__huffman_spec standard[4] = {
    {.counts = {0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0},
     .symbols = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
    {.counts = {0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0},
     .symbols = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
    {.counts = {0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 125},
     .symbols = {0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51,
                 0x61, 0x07, 0x22, 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1,
                 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33, 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18,
                 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39,
                 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56, 0x57,
                 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75,
                 0x76, 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92,
                 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7,
                 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3,
                 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8,
                 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1, 0xf2,
                 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}},
    {.counts = {0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 119},
     .symbols = {0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07,
                 0x61, 0x71, 0x13, 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09,
                 0x23, 0x33, 0x52, 0xf0, 0x15, 0x62, 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25,
                 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x35, 0x36, 0x37, 0x38,
                 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55, 0x56,
                 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74,
                 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89,
                 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5,
                 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba,
                 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4, 0xd5, 0xd6,
                 0xd7, 0xd8, 0xd9, 0xda, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf2,
                 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}},
};

const struct pstk__huffman_spec *pstk__huffman_standard(int is_ac, int is_chroma)
{
    return &standard[(is_ac ? 2 : 0) + (is_chroma ? 1 : 0)];
}

uint32_t pstk__huffman_n_codes(const struct pstk__huffman_spec *spec)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < MAX_LENGTH; i++)
        n += spec->counts[i];
    return n;
}

/* Return 1 when the codes fit their lengths. No code may be all ones, so the codes of a length end
 * below 2^length. */
static int is_complete_or_less(const struct pstk__huffman_spec *spec)
{
    uint32_t code = 0;
    for (uint32_t length = 1; length <= MAX_LENGTH; length++) {
        code += spec->counts[length - 1];
        if (spec->counts[length - 1] > 0 && code >= 1u << length)
            return 0;
        code <<= 1;
    }
    return pstk__huffman_n_codes(spec) <= N_SYMBOLS;
}

void pstk__huffman_init(struct pstk__huffman *huffman, const struct pstk__huffman_spec *spec)
{
    uint32_t code = 0, k = 0;
    for (uint32_t i = 0; i < N_SYMBOLS; i++)
        huffman->codes[i] = (struct pstk__huffman_code){.missing = 1};
    if (!is_complete_or_less(spec))
        return;
    for (uint32_t length = 1; length <= MAX_LENGTH; length++, code <<= 1) {
        for (uint32_t i = 0; i < spec->counts[length - 1]; i++, code++) {
            uint32_t symbol = spec->symbols[k++], n_value = symbol & 15;
            struct pstk__huffman_code *huffman_code = &huffman->codes[symbol];
            if (huffman_code->missing) /* encoders use the shorter of two codes */
                *huffman_code = (struct pstk__huffman_code){.bits = code << n_value,
                                                            .size = (uint8_t)(length + n_value)};
        }
    }
}

/* A tree being built: leaves first, each inner node after its children. */
struct tree {
    uint64_t weight[2 * N_SYMBOLS + 1];
    uint16_t parent[2 * N_SYMBOLS + 1]; /* 0: none yet; node 0 is a leaf */
    uint32_t n_nodes;
};

/* Return the lightest node without parent, or n_nodes. */
static uint32_t lightest(const struct tree *tree)
{
    uint32_t best = tree->n_nodes;
    for (uint32_t i = 0; i < tree->n_nodes; i++)
        if (tree->parent[i] == 0 && (best == tree->n_nodes || tree->weight[i] < tree->weight[best]))
            best = i;
    return best;
}

static void join_lightest(struct tree *tree)
{
    uint32_t a = lightest(tree), node = tree->n_nodes;
    tree->parent[a] = (uint16_t)node;
    uint32_t b = lightest(tree);
    tree->parent[b] = (uint16_t)node;
    tree->weight[node] = tree->weight[a] + tree->weight[b];
    tree->parent[node] = 0;
    tree->n_nodes++;
}

/* Limit lengths to 16 bits by annex K.3: replace a pair of longer codes by one that is a bit
 * shorter, and a shorter code elsewhere by two that are a bit longer. counts[i]: codes of i bits.
 */
static void limit_lengths(uint32_t counts[N_SYMBOLS + 1])
{
    for (uint32_t i = N_SYMBOLS; i > MAX_LENGTH; i--) {
        while (counts[i] > 0) {
            uint32_t j = i - 2;
            while (counts[j] == 0)
                j--;
            counts[i] -= 2;
            counts[i - 1]++;
            counts[j + 1] += 2;
            counts[j]--;
        }
    }
}

void pstk__huffman_optimal(struct pstk__huffman_spec *spec, const uint64_t counts[256])
{
    /* Leaf 0 reserves the code of all ones: it is the lightest and gets a longest code, and
     * canonical codes can put that last. */
    struct tree tree = {.n_nodes = 1};
    uint32_t n_of_length[N_SYMBOLS + 1] = {0}, length[2 * N_SYMBOLS + 1];
    uint8_t symbol_of[N_SYMBOLS + 1];

    *spec = (struct pstk__huffman_spec){{0}, {0}};
    for (uint32_t i = 0; i < N_SYMBOLS; i++) {
        if (counts[i] == 0)
            continue;
        symbol_of[tree.n_nodes] = (uint8_t)i;
        tree.weight[tree.n_nodes++] = counts[i];
    }
    uint32_t n_leaves = tree.n_nodes;
    if (n_leaves == 1)
        return;
    for (uint32_t i = 1; i < n_leaves; i++)
        join_lightest(&tree);

    length[tree.n_nodes - 1] = 0;
    for (uint32_t i = tree.n_nodes - 1; i-- > 0;)
        length[i] = length[tree.parent[i]] + 1;
    uint32_t n = 0;
    for (uint32_t at = 1; n < n_leaves - 1; at++)
        for (uint32_t i = 1; i < n_leaves; i++)
            if (length[i] == at)
                spec->symbols[n++] = symbol_of[i];

    for (uint32_t i = 0; i < n_leaves; i++)
        n_of_length[length[i]]++;
    limit_lengths(n_of_length);
    uint32_t last = MAX_LENGTH;
    while (n_of_length[last] == 0)
        last--;
    n_of_length[last]--; /* all ones */
    for (uint32_t i = 1; i <= MAX_LENGTH; i++)
        spec->counts[i - 1] = (uint8_t)n_of_length[i];
}
