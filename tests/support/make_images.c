/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_images: write N photo-like images into a folder, the same for the same seed.
 *
 *   make_images N FOLDER [--classes K] [--seed S] [--kind KIND] [--threads T]
 *
 * A picture is a sky-to-ground gradient, some lit shapes with sharp edges, and value noise of
 * several octaves whose strength differs from place to place: smooth areas and busy ones, as in
 * photographs, so that JPEGs have their usual sizes. With --classes the images lie in subfolders
 * class000 ..., as torchvision's ImageFolder has them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>
#include <png.h>

enum kind {
    KIND_420,
    KIND_422,
    KIND_444,
    KIND_440,
    KIND_411,
    KIND_GRAY,
    KIND_PROGRESSIVE,
    KIND_RESTART,
    KIND_CMYK,
    KIND_PNG,
    N_KINDS,
    KIND_MIX = N_KINDS
};

/* weight: in a mix, images of 1000. Photographs from the web are mostly 4:2:0 and 4:4:4. */
static const struct kind_info {
    const char *name;
    unsigned weight;
    int h, v; /* luma sampling factors */
} kinds[N_KINDS] = {
    [KIND_420] = {"420", 602, 2, 2},
    [KIND_422] = {"422", 70, 2, 1},
    [KIND_444] = {"444", 180, 1, 1},
    [KIND_440] = {"440", 10, 1, 2},
    [KIND_411] = {"411", 10, 4, 1},
    [KIND_GRAY] = {"gray", 20, 1, 1},
    [KIND_PROGRESSIVE] = {"progressive", 60, 2, 2},
    [KIND_RESTART] = {"restart", 30, 2, 2},
    [KIND_CMYK] = {"cmyk", 0, 1, 1},
    [KIND_PNG] = {"png", 18, 1, 1},
};

struct job {
    const char *folder;
    uint32_t n_images, n_classes;
    uint64_t seed;
    enum kind kind;
    _Atomic uint32_t next; /* image that the next free thread makes */
    _Atomic int failed;
};

struct picture {
    uint32_t width, height; /* pixels */
    uint8_t *pixels;        /* RGB */
};

/* ---- randomness: splitmix64, and a hash of lattice points ----------------------------------- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t draw(uint64_t *state)
{
    return mix(*state += 0x9e3779b97f4a7c15u);
}

static uint32_t draw_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(((draw(state) >> 32) * n) >> 32);
}

static float draw_float(uint64_t *state, float low, float high)
{
    return low + (high - low) * (float)(draw(state) >> 40) * 0x1p-24f;
}

/* ---- the picture ---------------------------------------------------------------------------- */

/* Add noise of one octave to a plane: random values on a lattice of `cell` pixels, linear between.
 */
static int add_octave(float *plane, uint32_t width, uint32_t height, uint32_t cell, float amplitude,
                      uint64_t *state)
{
    uint32_t columns = width / cell + 2;
    float *lattice = malloc(2 * columns * sizeof *lattice);
    float *upper = lattice, *lower = lattice ? lattice + columns : NULL;
    if (!lattice)
        return -1;
    for (uint32_t i = 0; i < columns; i++)
        lower[i] = draw_float(state, -amplitude, amplitude);
    for (uint32_t y = 0; y < height; y++) {
        if (y % cell == 0) {
            float *reused = upper;
            upper = lower;
            lower = reused;
            for (uint32_t i = 0; i < columns; i++)
                lower[i] = draw_float(state, -amplitude, amplitude);
        }
        float down = (float)(y % cell) / (float)cell;
        float *row = plane + (size_t)y * width;
        for (uint32_t i = 0, x = 0; x < width; i++) {
            float left = upper[i] + (lower[i] - upper[i]) * down;
            float right = upper[i + 1] + (lower[i + 1] - upper[i + 1]) * down;
            float step = (right - left) / (float)cell;
            for (uint32_t end = x + cell < width ? x + cell : width; x < end; x++, left += step)
                row[x] += left;
        }
    }
    free(lattice);
    return 0;
}

/* Fill a plane with octaves from `first` pixels down to `last`, each `fall` times as strong. */
static int add_noise(float *plane, uint32_t width, uint32_t height, uint32_t first, uint32_t last,
                     float amplitude, float fall, uint64_t *state)
{
    for (uint32_t cell = first; cell >= last; cell /= 2, amplitude *= fall)
        if (add_octave(plane, width, height, cell, amplitude, state) < 0)
            return -1;
    return 0;
}

/* One lit shape: a rectangle or an ellipse of a colour, darker towards one side. */
static void add_shape(struct picture *p, uint64_t *state)
{
    int32_t width = (int32_t)p->width, height = (int32_t)p->height;
    int32_t cx = (int32_t)draw_below(state, p->width), cy = (int32_t)draw_below(state, p->height);
    int32_t rx = 8 + (int32_t)draw_below(state, p->width / 3 + 1);
    int32_t ry = 8 + (int32_t)draw_below(state, p->height / 3 + 1);
    int is_ellipse = draw_below(state, 3) > 0;
    float color[3], shade = draw_float(state, -0.4f, 0.4f);
    for (int c = 0; c < 3; c++)
        color[c] = draw_float(state, 20, 235);
    for (int32_t y = cy - ry < 0 ? 0 : cy - ry; y < height && y <= cy + ry; y++) {
        for (int32_t x = cx - rx < 0 ? 0 : cx - rx; x < width && x <= cx + rx; x++) {
            float dx = (float)(x - cx) / (float)rx, dy = (float)(y - cy) / (float)ry;
            if (is_ellipse && dx * dx + dy * dy > 1)
                continue;
            uint8_t *pixel = p->pixels + 3 * ((size_t)y * p->width + (size_t)x);
            for (int c = 0; c < 3; c++)
                pixel[c] = (uint8_t)(color[c] * (1 + shade * dx) < 255 ? color[c] * (1 + shade * dx)
                                                                       : 255);
        }
    }
}

static void add_gradient(struct picture *p, uint64_t *state)
{
    float top[3], bottom[3];
    for (int c = 0; c < 3; c++) {
        top[c] = draw_float(state, 60, 240);
        bottom[c] = draw_float(state, 20, 180);
    }
    uint8_t *pixel = p->pixels;
    for (uint32_t y = 0; y < p->height; y++) {
        float t = (float)y / (float)p->height;
        for (uint32_t x = 0; x < p->width; x++)
            for (int c = 0; c < 3; c++)
                *pixel++ = (uint8_t)(top[c] + (bottom[c] - top[c]) * t);
    }
}

static uint8_t clamp(float value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Lay the texture over the picture: fine noise where `place` is high, and coarse colour noise. */
static void add_texture(struct picture *p, const float *fine, const float *place,
                        const float *color)
{
    size_t n = (size_t)p->width * p->height;
    for (size_t i = 0; i < n; i++) {
        float strength = place[i] > 0 ? 0.35f + place[i] : 0.35f;
        float light = fine[i] * strength + 0.5f * color[i];
        uint8_t *pixel = p->pixels + 3 * i;
        pixel[0] = clamp(pixel[0] + light + 0.3f * color[i]);
        pixel[1] = clamp(pixel[1] + light);
        pixel[2] = clamp(pixel[2] + light - 0.4f * color[i]);
    }
}

/* Sizes as in ImageNet: most have a side of 500, some any size, a few are large. */
static void choose_size(struct picture *p, uint64_t *state)
{
    static const uint16_t common[][2] = {
        {500, 375}, {375, 500}, {500, 333}, {333, 500}, {500, 500}};
    uint32_t what = draw_below(state, 1000);
    if (what < 700) {
        uint32_t i = what < 400 ? 0 : what < 500 ? 1 : what < 600 ? 2 : what < 640 ? 3 : 4;
        p->width = common[i][0];
        p->height = common[i][1];
    } else if (what < 990) {
        p->width = 120 + draw_below(state, 500);
        p->height = 120 + draw_below(state, 500);
    } else {
        p->width = 1000 + draw_below(state, 601);
        p->height = 700 + draw_below(state, 501);
    }
}

static int paint(struct picture *p, uint64_t *state)
{
    choose_size(p, state);
    size_t n = (size_t)p->width * p->height;
    p->pixels = malloc(3 * n);
    float *planes = calloc(3 * n, sizeof *planes);
    float *fine = planes, *place = planes ? planes + n : NULL,
          *color = planes ? planes + 2 * n : NULL;
    int failed = !p->pixels || !planes;
    if (!failed) {
        add_gradient(p, state);
        for (uint32_t i = 3 + draw_below(state, 12); i > 0; i--)
            add_shape(p, state);
        float busy = draw_float(state, 15, 130);
        failed = add_noise(fine, p->width, p->height, 16, 1, busy, 0.95f, state) < 0 ||
                 add_noise(place, p->width, p->height, 128, 32, 1.0f, 0.6f, state) < 0 ||
                 add_noise(color, p->width, p->height, 256, 8, 30, 0.6f, state) < 0;
        if (!failed)
            add_texture(p, fine, place, color);
    }
    free(planes);
    return failed ? -1 : 0;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* In place: rows of gray, or of inverted CMYK (as Adobe writes it) in a new buffer of 4 bytes. */
static uint8_t *convert(const struct picture *p, enum kind kind)
{
    size_t n = (size_t)p->width * p->height;
    int n_components = kind == KIND_GRAY ? 1 : kind == KIND_CMYK ? 4 : 3;
    uint8_t *out = malloc(n * (size_t)n_components);
    for (size_t i = 0; out && i < n; i++) {
        const uint8_t *rgb = p->pixels + 3 * i;
        if (kind == KIND_GRAY)
            out[i] = (uint8_t)((77 * rgb[0] + 150 * rgb[1] + 29 * rgb[2]) >> 8);
        else if (kind == KIND_CMYK)
            memcpy(out + 4 * i, (uint8_t[4]){rgb[0], rgb[1], rgb[2], 255}, 4);
        else
            memcpy(out + 3 * i, rgb, 3);
    }
    return out;
}

static void set_encoding(struct jpeg_compress_struct *c, enum kind kind, int quality)
{
    jpeg_set_defaults(c);
    jpeg_set_quality(c, quality, TRUE);
    if (kind != KIND_GRAY && kind != KIND_CMYK) {
        c->comp_info[0].h_samp_factor = kinds[kind].h;
        c->comp_info[0].v_samp_factor = kinds[kind].v;
    }
    if (kind == KIND_PROGRESSIVE)
        jpeg_simple_progression(c);
    if (kind == KIND_RESTART)
        c->restart_in_rows = 1;
}

/* libjpeg's own error handler prints and exits, which is what a tool should do. */
static int write_jpeg(FILE *file, const struct picture *p, enum kind kind, int quality)
{
    uint8_t *rows = convert(p, kind);
    if (!rows)
        return -1;
    int n_components = kind == KIND_GRAY ? 1 : kind == KIND_CMYK ? 4 : 3;
    struct jpeg_error_mgr error;
    struct jpeg_compress_struct c = {.err = jpeg_std_error(&error)};
    jpeg_create_compress(&c);
    jpeg_stdio_dest(&c, file);
    c.image_width = p->width;
    c.image_height = p->height;
    c.input_components = n_components;
    c.in_color_space = kind == KIND_GRAY ? JCS_GRAYSCALE : kind == KIND_CMYK ? JCS_CMYK : JCS_RGB;
    set_encoding(&c, kind, quality);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
        JSAMPROW row = rows + (size_t)c.next_scanline * p->width * (size_t)n_components;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    free(rows);
    return 0;
}

static int write_png(FILE *file, const struct picture *p)
{
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = p->width,
                       .height = p->height,
                       .format = PNG_FORMAT_RGB,
                       .flags = PNG_IMAGE_FLAG_FAST};
    return png_image_write_to_stdio(&image, file, 0, p->pixels, 0, NULL) ? 0 : -1;
}

/* A mix has one CMYK image in 300, of which the first comes early. */
static enum kind choose_kind(enum kind wanted, uint32_t image, uint64_t *state)
{
    uint32_t what = draw_below(state, 1000), sum = 0;
    if (wanted != KIND_MIX)
        return wanted;
    if (image % 300 == 30)
        return KIND_CMYK;
    for (int i = 0; i < N_KINDS; i++)
        if (what < (sum += kinds[i].weight))
            return (enum kind)i;
    return KIND_420;
}

static int make_image(const struct job *job, uint32_t i)
{
    uint64_t state = mix(job->seed) + mix(i);
    enum kind kind = choose_kind(job->kind, i, &state);
    /* 75 to 95, most of them high, as cameras write. */
    uint32_t low = draw_below(&state, 21), high = draw_below(&state, 21);
    int quality = 75 + (int)(low > high ? low : high);
    char folder[64] = ".", path[4096];
    if (job->n_classes)
        snprintf(folder, sizeof folder, "class%03u", (unsigned)draw_below(&state, job->n_classes));
    int n = snprintf(path, sizeof path, "%s/%s/image%06u.%s", job->folder, folder, i,
                     kind == KIND_PNG ? "png" : "jpg");
    struct picture p = {0};
    int failed = n < 0 || (size_t)n >= sizeof path || paint(&p, &state) < 0;
    FILE *file = failed ? NULL : fopen(path, "wb");
    if (!file)
        failed = 1;
    else
        failed = kind == KIND_PNG ? write_png(file, &p) : write_jpeg(file, &p, kind, quality);
    if (file && fclose(file) != 0)
        failed = 1;
    if (failed)
        fprintf(stderr, "make_images: %s: %s\n", path, strerror(errno));
    free(p.pixels);
    return failed ? -1 : 0;
}

static void *work(void *data)
{
    struct job *job = data;
    for (;;) {
        uint32_t i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (i >= job->n_images || atomic_load_explicit(&job->failed, memory_order_relaxed))
            return NULL;
        if (make_image(job, i) < 0)
            atomic_store_explicit(&job->failed, 1, memory_order_relaxed);
    }
}

/* ---- the command line ----------------------------------------------------------------------- */

static int make_folder(const char *path)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return 0;
    fprintf(stderr, "make_images: %s: %s\n", path, strerror(errno));
    return -1;
}

static int make_folders(const struct job *job)
{
    char path[4096];
    if (make_folder(job->folder) < 0)
        return -1;
    for (uint32_t i = 0; i < job->n_classes; i++) {
        int n = snprintf(path, sizeof path, "%s/class%03u", job->folder, i);
        if (n < 0 || (size_t)n >= sizeof path || make_folder(path) < 0)
            return -1;
    }
    return 0;
}

static int parse_number(const char *text, uint64_t max, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno || end == text || *end || *number > max ? -1 : 0;
}

static int parse_kind(const char *text, enum kind *kind)
{
    for (int i = 0; i < N_KINDS; i++)
        if (strcmp(text, kinds[i].name) == 0)
            return *kind = (enum kind)i, 0;
    *kind = KIND_MIX;
    return strcmp(text, "mix") == 0 ? 0 : -1;
}

static int parse(struct job *job, uint64_t *n_threads, int argc, char **argv)
{
    uint64_t n = 0;
    if (argc < 3 || parse_number(argv[1], 999999, &n) < 0)
        return -1;
    job->n_images = (uint32_t)n;
    job->folder = argv[2];
    for (int i = 3; i < argc; i += 2) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : "";
        int failed = -1;
        if (strcmp(option, "--classes") == 0) {
            failed = parse_number(value, 1000, &n);
            job->n_classes = (uint32_t)n;
        } else if (strcmp(option, "--seed") == 0) {
            failed = parse_number(value, UINT64_MAX, &job->seed);
        } else if (strcmp(option, "--threads") == 0) {
            failed = parse_number(value, 64, n_threads);
        } else if (strcmp(option, "--kind") == 0) {
            failed = parse_kind(value, &job->kind);
        }
        if (failed)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct job job = {.kind = KIND_MIX};
    uint64_t n_threads = 0;
    pthread_t threads[64];
    if (parse(&job, &n_threads, argc, argv) < 0) {
        fprintf(stderr,
                "usage: make_images N FOLDER [--classes K] [--seed S] [--threads T]\n"
                "       [--kind mix|420|422|444|440|411|gray|progressive|restart|cmyk|png]\n");
        return 2;
    }
    if (make_folders(&job) < 0)
        return 1;
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (n_threads == 0)
        n_threads = n_cores < 1 ? 1 : n_cores > 64 ? 64 : (uint64_t)n_cores;
    uint64_t n_started = 0;
    while (n_started < n_threads && pthread_create(&threads[n_started], NULL, work, &job) == 0)
        n_started++;
    if (n_started == 0)
        work(&job);
    for (uint64_t i = 0; i < n_started; i++)
        pthread_join(threads[i], NULL);
    return job.failed;
}
