/* SPDX-License-Identifier: Apache-2.0 */
/*
 * penstock/ops.h - operations on images. A loader's outputs apply them (output.h), and a program
 * applies them to its own pixels (draw.h). For given parameters, pixels are those of Pillow 12.1.
 */
#ifndef PENSTOCK_OPS_H
#define PENSTOCK_OPS_H

#include <penstock/op_params.h>
#include <penstock/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- operations ---------------------------------------------------------------------------- */

/*
 * The kind of an operation, fixed or random. The parameters of a fixed one determine its result; a
 * random one draws fixed ones for each sample. A list takes any of them. Kinds that random
 * operations draw, and lists do not take, are in another enum, pstk_drawn_kind (draw.h), with other
 * numbers.
 */
enum pstk_op_kind {
    /* Resizes. */

    /* to exactly width x height */
    PSTK_OP_RESIZE = 2,
    /* the shorter side to `width` pixels, with the aspect ratio kept */
    PSTK_OP_RESIZE_SHORTER = 3,
    /* the longer side to `width` pixels, with the aspect ratio kept */
    PSTK_OP_RESIZE_LONGEST = 40,
    /* a random part, resized to width x height */
    PSTK_OP_RANDOM_RESIZED_CROP = 1,
    /* by a random scale, with the aspect ratio kept: `width` x `height` is the box that an image
     * fits into at scale 1 */
    PSTK_OP_SCALE_JITTER = 100,
    /* the shorter side to one of up to 12 lengths; or to less, if the longer side would exceed
     * `width`, 0: any */
    PSTK_OP_RANDOM_SHORTEST_SIZE = 102,
    /* the shorter side to a random length */
    PSTK_OP_RANDOM_RESIZE = 103,

    /* Crops. */

    /* the part of width x height, with fill outside of the image */
    PSTK_OP_CROP = 35,
    PSTK_OP_CENTER_CROP = 4,
    /* the part of width x height at a corner */
    PSTK_OP_CORNER_CROP = 43,
    /* a random part of width x height */
    PSTK_OP_RANDOM_CROP = 13,
    /* the crop of SSD, which depends on the boxes that follow the image (pstk_output_boxes): at
     * least one has its centre in the crop, and overlaps it by a drawn IoU. A drawn IoU of 1 leaves
     * the image unchanged; so do 100 draws that find no crop. */
    PSTK_OP_RANDOM_IOU_CROP = 150,

    /* Paddings. */

    PSTK_OP_PAD = 36,
    /* padding with fill to width x height */
    PSTK_OP_PAD_TO_SIZE = 41,
    /* a resize to fit into width x height, with the aspect ratio kept, then padding with fill */
    PSTK_OP_LETTERBOX = 42,
    /* the image at a random position on a larger canvas */
    PSTK_OP_RANDOM_ZOOM_OUT = 101,

    /* Flips and warps. */

    /* left and right swapped */
    PSTK_OP_FLIP_HORIZONTAL = 33,
    /* top and bottom swapped */
    PSTK_OP_FLIP_VERTICAL = 34,
    /* left and right swapped at random */
    PSTK_OP_RANDOM_FLIP = 5,
    /* top and bottom swapped at random */
    PSTK_OP_RANDOM_VERTICAL_FLIP = 12,
    /* Image.rotate */
    PSTK_OP_ROTATE = 37,
    PSTK_OP_RANDOM_ROTATION = 14,
    /* Image.transform */
    PSTK_OP_AFFINE = 38,
    PSTK_OP_RANDOM_AFFINE = 15,
    /* Image.transform */
    PSTK_OP_PERSPECTIVE = 39,
    /* the corners move inwards */
    PSTK_OP_RANDOM_PERSPECTIVE = 16,

    /* Colours. Fixed ones are torchvision.transforms.functional's, of PIL images. */

    PSTK_OP_GRAYSCALE = 7,
    PSTK_OP_BRIGHTNESS = 64,
    PSTK_OP_CONTRAST = 65,
    PSTK_OP_SATURATION = 66,
    PSTK_OP_SHARPNESS = 67,
    PSTK_OP_HUE = 68,
    PSTK_OP_GAMMA = 69,
    PSTK_OP_INVERT = 70,
    PSTK_OP_POSTERIZE = 71,
    PSTK_OP_SOLARIZE = 72,
    /* timm's solarize_add */
    PSTK_OP_SOLARIZE_ADD = 73,
    PSTK_OP_AUTOCONTRAST = 74,
    PSTK_OP_EQUALIZE = 75,
    PSTK_OP_PERMUTE_CHANNELS = 76,
    /* brightness, contrast, saturation and hue, in a random order */
    PSTK_OP_COLOR_JITTER = 8,
    /* three equal channels at random, for images of three; images of one are unchanged */
    PSTK_OP_RANDOM_GRAYSCALE = 120,
    /* the three channels in a random order; images of one are unchanged */
    PSTK_OP_RANDOM_CHANNEL_PERMUTATION = 121,
    /* brightness, contrast, saturation, hue and a permutation of the channels, each with a
     * probability; contrast comes second or fifth */
    PSTK_OP_RANDOM_PHOTOMETRIC_DISTORT = 122,

    /* Blurs, and losses of coding. */

    /* torchvision's; a few bytes in a million differ from it, by 1 */
    PSTK_OP_GAUSSIAN_BLUR = 80,
    PSTK_OP_RANDOM_GAUSSIAN_BLUR = 17,
    /* Pillow's ImageFilter.GaussianBlur, three boxes on each axis */
    PSTK_OP_BOX_BLUR = 81,
    PSTK_OP_RANDOM_BOX_BLUR = 18,
    /* saved as a JPEG file and read again: Pillow's save(quality=...), which samples colours 2 x 2,
     * and open(). Images of 1 or 3 channels */
    PSTK_OP_JPEG = 84,
    /* JPEG of a random quality */
    PSTK_OP_RANDOM_JPEG = 127,

    /* Policies, which draw several of the others. */

    /* one of 14 operations */
    PSTK_OP_TRIVIAL_AUGMENT_WIDE = 19,
    /* several of the same 14 */
    PSTK_OP_RAND_AUGMENT = 20,
    /* one of 25 pairs */
    PSTK_OP_AUTO_AUGMENT = 21,
    /* chains of operations, mixed */
    PSTK_OP_AUG_MIX = 125,
    /* timm's RandAugment */
    PSTK_OP_TIMM_RAND_AUGMENT = 123,
    /* timm's AutoAugment */
    PSTK_OP_TIMM_AUTO_AUGMENT = 124,
    /* timm's AugMix */
    PSTK_OP_TIMM_AUG_MIX = 126,

    /* Operations that hold others, their children, and functions of the program. */

    /* all children, or none */
    PSTK_OP_RANDOM_APPLY = 9,
    /* one child; at most 12 children if they have weights */
    PSTK_OP_RANDOM_CHOICE = 10,
    /* all children, in a random order */
    PSTK_OP_RANDOM_ORDER = 11,
    /* a function of the program, which changes pixels in place */
    PSTK_OP_CALL = 140,

    /* The row: the end of a list. */

    /* (x / 255 - mean) / deviation */
    PSTK_OP_NORMALIZE = 6,
    /* x / 255, as the last operation on pixels */
    PSTK_OP_TO_FLOAT = 88,
    /* a box of the finished row; not for pstk_op_apply */
    PSTK_OP_ERASE = 90,
    /* random boxes of the finished row. On a device, workers finish the rows of such a list, so
     * that finished elements are copied there, not bytes. */
    PSTK_OP_RANDOM_ERASING = 22,
};

/* The float32 computation of x / 255: the two differ in the last bit for 126 of 256 bytes. */
enum pstk_scale {
    /* as torchvision's ToTensor */
    PSTK_SCALE_DIVIDE = 0,
    /* x * (1 / 255), as torchvision's v2.ToDtype(scale=True) */
    PSTK_SCALE_MULTIPLY = 1,
};

/* The policies of AUTO_AUGMENT. */
enum pstk_auto_augment_policy {
    PSTK_AUTO_AUGMENT_IMAGENET = 0,
    PSTK_AUTO_AUGMENT_CIFAR10 = 1,
    PSTK_AUTO_AUGMENT_SVHN = 2,
};

/* The operations that TIMM_RAND_AUGMENT draws from. */
enum pstk_timm_set {
    PSTK_TIMM_SET_DEFAULT = 0,
    /* operations whose change grows with the magnitude: timm's inc1 */
    PSTK_TIMM_SET_INCREASING = 1,
    /* operations of INCREASING, drawn by weight and without repetition: timm's tweights */
    PSTK_TIMM_SET_WEIGHTS = 2,
    /* solarize, desaturate and blur: timm's t3a */
    PSTK_TIMM_SET_3A = 3,
    /* these three and others with weights, without repetition: timm's t3aw */
    PSTK_TIMM_SET_3A_WEIGHTS = 4,
};

/* The policies of TIMM_AUTO_AUGMENT, by timm's names. */
enum pstk_timm_policy {
    PSTK_TIMM_POLICY_V0 = 0,
    PSTK_TIMM_POLICY_V0R = 1,
    PSTK_TIMM_POLICY_ORIGINAL = 2,
    PSTK_TIMM_POLICY_ORIGINALR = 3,
    PSTK_TIMM_POLICY_3A = 4,
};

/* The pixels outside of a padded image, as torchvision's functional.pad makes them for a PIL image.
 */
enum pstk_pad_mode {
    /* the fill */
    PSTK_PAD_CONSTANT = 0,
    /* the nearest pixel */
    PSTK_PAD_EDGE = 1,
    /* mirrored, the edge once */
    PSTK_PAD_REFLECT = 2,
    /* mirrored, the edge twice */
    PSTK_PAD_SYMMETRIC = 3,
};

/* The position of an image in its padding. */
enum pstk_position {
    PSTK_POSITION_CENTER = 0,
    PSTK_POSITION_TOP_LEFT = 1,
};

/* The parts of torchvision's functional.five_crop, in its order. */
enum pstk_corner {
    PSTK_CORNER_TOP_LEFT = 0,
    PSTK_CORNER_TOP_RIGHT = 1,
    PSTK_CORNER_BOTTOM_LEFT = 2,
    PSTK_CORNER_BOTTOM_RIGHT = 3,
    /* the middle, as CENTER_CROP */
    PSTK_CORNER_CENTER = 4,
};

/* The weights of the pixels around a point in a resize: the filters of Pillow's Image.resize, all
 * with antialiasing except NEAREST. The pixels equal Pillow's. */
enum pstk_filter {
    /* BILINEAR */
    PSTK_FILTER_DEFAULT = 0,
    /* one pixel, copied */
    PSTK_FILTER_NEAREST = 1,
    /* the mean of the pixels that an output pixel covers */
    PSTK_FILTER_BOX = 2,
    PSTK_FILTER_BILINEAR = 3,
    PSTK_FILTER_HAMMING = 4,
    PSTK_FILTER_BICUBIC = 5,
    /* sinc, three lobes on each side */
    PSTK_FILTER_LANCZOS = 6,
    /* BILINEAR or BICUBIC, drawn for each sample with equal chance: timm's "random" */
    PSTK_FILTER_RANDOM = 7,
};

enum pstk_op_flag {
    /* RANDOM_AFFINE: params.random_affine.center is set; without it the middle is the centre */
    PSTK_OP_HAS_CENTER = 1,
    /* any operation: pixels by PSTK_REFERENCE_TENSOR. pstk_open sets it in all operations of an
     * output with that reference; pstk_op_apply takes it. Operations that a random one draws have
     * it, too */
    PSTK_OP_TENSOR = 2,
};

/* The library whose pixels the operations give. Both take the same parameters, and draw the same.
 */
enum pstk_reference {
    /* torchvision with PIL images, which is Pillow */
    PSTK_REFERENCE_PIL = 0,
    /* torchvision.transforms.v2 with uint8 tensors on a CPU: colours, Gaussian blur, and warps,
     * which are nearest or bilinear. Colours take 1 or 3 channels. Resizes, crops and pads stay
     * Pillow's. ENOTSUP: an operation that torchvision lacks: BOX_BLUR and timm's */
    PSTK_REFERENCE_TENSOR = 1,
};

/* The shape of u8 pixels in rows without gaps. */
struct pstk_shape {
    /* pixels, 1 to 65535 */
    uint32_t height;
    /* pixels, 1 to 65535 */
    uint32_t width;
    /* 1 gray, 3 RGB, 4 RGBA */
    uint32_t channels;
    /* must be 0 */
    uint32_t reserved;
};

/*
 * The function of CALL: change pixels in place, u8 [height, width, channels], rows without gaps.
 * random: 128 bits of the sample, as two numbers: the same for any number of threads. scratch: the
 * bytes that the operation asks for, 64-byte aligned, with any content; NULL if it asks for none.
 * user: the operation's. error: initialised; a failing function may fill it. The loader's message
 * contains its message, and names output, sample and result; its other members are ignored. All
 * pointers borrow, for the call. Touch only the pixels, the scratch, the error and memory of
 * `user`. Return 0. Any other result makes the sample bad: the loader's error is ECANCELED, and
 * `native` is the result. ENOMEM alone keeps its code: the sample is not bad then. The 64 bytes
 * after the pixels and after the scratch are checked: a write there makes the sample bad, too.
 * Thread: any worker; several call at once.
 */
typedef int (*pstk_pixels_fn)(void *user, uint8_t *pixels, const struct pstk_shape *shape,
                              const uint64_t *random, void *scratch, struct pstk_error *error);

/*
 * One operation, plain data. The functions below fill it. A program may fill it itself: it begins
 * with {.kind = ...}, which sets all else to 0, and then sets members. An initialiser of one member
 * of `params` is not enough, because C leaves the rest of a union unspecified. Children keep the
 * size and the channels of the image.
 */
struct pstk_op {
    /* enum pstk_op_kind; for drawn operations also enum pstk_drawn_kind */
    uint32_t kind;
    /* enum pstk_op_flag; 0: none */
    uint32_t flags;
    /* pixels */
    uint32_t width;
    /* pixels */
    uint32_t height;
    /* parameters, by the name of the kind; the unused ones are 0 */
    union pstk_op_params params;

    /* n_children operations that this one draws; NULL: none. copies */
    const struct pstk_op *children;
    uint32_t n_children;
    /* enum pstk_filter. Resizes: default: bilinear. Warps: NEAREST, BILINEAR or BICUBIC, default:
     * nearest. timm's policies: RANDOM, too */
    uint32_t filter;
    /* NORMALIZE: channels of the images, 1, 3 or 4; 0: 3. GRAYSCALE: channels of the result.
     * others: 0 */
    uint32_t channels;
    /* value of pixels outside of the image, one per channel; 0: black */
    uint8_t fill[4];

    /* CALL: the function; others: NULL */
    pstk_pixels_fn function;
    /* CALL: the first argument of the function; others: NULL. It belongs to the program, and must
     * be valid until the loader is closed */
    void *user;
};

#define PSTK_IMAGENET_MEAN ((const float[3]){0.485f, 0.456f, 0.406f})
#define PSTK_IMAGENET_STD ((const float[3]){0.229f, 0.224f, 0.225f})

/* Crop a random part and resize it: torchvision.transforms.RandomResizedCrop with its defaults,
 * scale (0.08, 1) and ratio (3/4, 4/3), bilinear with antialiasing. For another filter, set the
 * member `filter` of the result, as for every resize below. */
PSTK_API struct pstk_op pstk_random_resized_crop(uint32_t height, uint32_t width);
/* Crop a random part and resize it, with the caller's scale and ratio. */
PSTK_API struct pstk_op pstk_random_resized_crop_range(uint32_t height, uint32_t width,
                                                       double scale_min, double scale_max,
                                                       double ratio_min, double ratio_max);
/* Resize: torchvision.transforms.Resize((height, width)), bilinear with antialiasing, to the pixels
 * that Pillow gives. */
PSTK_API struct pstk_op pstk_resize(uint32_t height, uint32_t width);
/* Resize the shorter side to `side`: torchvision.transforms.Resize(side). */
PSTK_API struct pstk_op pstk_resize_shorter(uint32_t side);
/* Resize the shorter side to `side`, or to less if the longer side would exceed `longest` pixels:
 * torchvision.transforms.Resize(side, max_size=longest). 0: any length. */
PSTK_API struct pstk_op pstk_resize_shorter_max(uint32_t side, uint32_t longest);
/* Resize the longer side to `side`: torchvision.transforms.v2.Resize(None, max_size=side). */
PSTK_API struct pstk_op pstk_resize_longest(uint32_t side);
/* Pad to height x width. `position`: enum pstk_position; CENTER puts the smaller half of the
 * padding to the left and to the top. Set `fill`. A sample whose image is larger is an error. */
PSTK_API struct pstk_op pstk_pad_to_size(uint32_t height, uint32_t width, uint32_t position);
/* Resize to fit into height x width, and pad: Pillow's ImageOps.pad(image, (width, height), filter,
 * fill, centering), with centering (0.5, 0.5) or (0, 0) by `position`, enum pstk_position. Set
 * `fill`. A side that would be 0 in Pillow is 1. */
PSTK_API struct pstk_op pstk_letterbox(uint32_t height, uint32_t width, uint32_t position);
/* Crop the part of height x width at a corner or in the middle: one of the parts of
 * torchvision.transforms.functional.five_crop. `corner`: enum pstk_corner. A sample whose image is
 * smaller is an error. */
PSTK_API struct pstk_op pstk_corner_crop(uint32_t height, uint32_t width, uint32_t corner);
/* Resize by a random scale: torchvision.transforms.v2.ScaleJitter((height, width), (least, most)).
 * As in torchvision, `width` is compared with the image's height, and `height` with its width. */
PSTK_API struct pstk_op pstk_scale_jitter(uint32_t height, uint32_t width, double least,
                                          double most);
/* Put the image at a random position on a larger canvas:
 * torchvision.transforms.v2.RandomZoomOut(fill, (least, most), probability). Set `fill`. */
PSTK_API struct pstk_op pstk_random_zoom_out(double least, double most, double probability);
/* Resize the shorter side to one of n_sides lengths, 1 to 12 of them:
 * torchvision.transforms.v2.RandomShortestSize(sides, longest). 0: any length. copies */
PSTK_API struct pstk_op pstk_random_shortest_size(const uint32_t *sides, uint32_t n_sides,
                                                  uint32_t longest);
/* Resize the shorter side to at least `least` pixels, and fewer than `end`:
 * torchvision.transforms.v2.RandomResize(least, end). */
PSTK_API struct pstk_op pstk_random_resize(uint32_t least, uint32_t end);
/* Crop the centre: torchvision.transforms.CenterCrop((height, width)). A smaller image is padded
 * with 0. */
PSTK_API struct pstk_op pstk_center_crop(uint32_t height, uint32_t width);
/* Crop a random part: torchvision.transforms.RandomCrop((height, width), padding). padding: pixels
 * on all sides; for other paddings set params.random_crop and fill. A sample whose image is smaller
 * than the crop is an error, as in torchvision, unless pad_if_needed is 1. */
PSTK_API struct pstk_op pstk_random_crop(uint32_t height, uint32_t width, uint32_t padding);
/* Crop by the boxes that follow the image: torchvision.transforms.v2.RandomIoUCrop with its
 * defaults. Boxes whose centres lie outside are dropped. For other settings set
 * params.random_iou_crop. */
PSTK_API struct pstk_op pstk_random_iou_crop(void);
/* Flip horizontally with this probability. */
PSTK_API struct pstk_op pstk_random_flip(double probability);
/* Flip vertically with this probability. */
PSTK_API struct pstk_op pstk_random_vertical_flip(double probability);
/* Flip horizontally, always. */
PSTK_API struct pstk_op pstk_flip_horizontal(void);
/* Flip vertically, always. */
PSTK_API struct pstk_op pstk_flip_vertical(void);
/* Crop the part of height x width at (top, left): torchvision.transforms.functional.crop. Set
 * `fill` for pixels outside of the image; torchvision's is 0. */
PSTK_API struct pstk_op pstk_crop_at(int32_t top, int32_t left, uint32_t height, uint32_t width);
/* Pad: torchvision.transforms.functional.pad. `mode`: enum pstk_pad_mode. Set `fill` for CONSTANT.
 */
PSTK_API struct pstk_op pstk_pad(uint32_t left, uint32_t top, uint32_t right, uint32_t bottom,
                                 uint32_t mode);
/* Make gray: torchvision.transforms.Grayscale(channels) for PIL images, with Pillow's luma.
 * `channels`: 1, or 3 equal ones. Any position before normalise is allowed. */
PSTK_API struct pstk_op pstk_grayscale(uint32_t channels);
/* Adjust colours. `kind`: BRIGHTNESS, CONTRAST, SATURATION, SHARPNESS, HUE, POSTERIZE or SOLARIZE,
 * with its parameter `value`; or INVERT, AUTOCONTRAST or EQUALIZE, with 0. For other kinds set
 * params by their names. */
PSTK_API struct pstk_op pstk_adjust(uint32_t kind, double value);
/* Adjust brightness, contrast, saturation and hue by random factors, in a random order:
 * torchvision.transforms.ColorJitter with four numbers. Factors are from max(0, 1 - x) to 1 + x,
 * hue from -hue to hue; 0 leaves an adjustment out. For other ranges set params.color_jitter. */
PSTK_API struct pstk_op pstk_color_jitter(double brightness, double contrast, double saturation,
                                          double hue);
/* Make gray with this probability: torchvision.transforms.RandomGrayscale. */
PSTK_API struct pstk_op pstk_random_grayscale(double probability);
/* Permute the channels: torchvision.transforms.v2.RandomChannelPermutation. */
PSTK_API struct pstk_op pstk_random_channel_permutation(void);
/* Distort colours: torchvision.transforms.v2.RandomPhotometricDistort(p=probability) with its
 * defaults. For other ranges set params.random_photometric_distort. */
PSTK_API struct pstk_op pstk_random_photometric_distort(double probability);
/* Apply all children with this probability, else none: torchvision.transforms.RandomApply. */
PSTK_API struct pstk_op pstk_random_apply(const struct pstk_op *children, uint32_t n_children,
                                          double probability);
/* Apply one child: torchvision.transforms.RandomChoice. For weights set params.random_choice. */
PSTK_API struct pstk_op pstk_random_choice(const struct pstk_op *children, uint32_t n_children);
/* Apply all children in a random order: torchvision.transforms.RandomOrder. */
PSTK_API struct pstk_op pstk_random_order(const struct pstk_op *children, uint32_t n_children);
/* Transform by a matrix: Image.transform(image.size, AFFINE, matrix, filter). A pixel (x, y) comes
 * from (m0 x + m1 y + m2, m3 x + m4 y + m5). Set `fill` for pixels outside of the image. */
PSTK_API struct pstk_op pstk_affine(const double *matrix, uint32_t filter);
/* Set the 6 elements of the matrix that torchvision.transforms.functional.affine passes to Pillow:
 * angle clockwise and shear in degrees, below 3600; translate and center in pixels; x before y.
 * 0, or EINVAL. */
PSTK_API int pstk_affine_matrix(double *matrix, double angle, const double *translate, double scale,
                                const double *shear, const double *center);
/* Set the 8 elements of the matrix of PERSPECTIVE that maps 4 corners `end` of the result to the
 * corners `start` of the image: x and y of each. 0, or EINVAL: corners lie on one line. */
PSTK_API int pstk_perspective_matrix(double *matrix, const double *start, const double *end);
/* Rotate about the middle: Image.rotate(angle, filter, expand). Degrees, counter-clockwise. */
PSTK_API struct pstk_op pstk_rotate(double angle, uint32_t filter, uint32_t expand);
/* Blur: torchvision.transforms.functional.gaussian_blur with a kernel of `kernel` pixels on both
 * axes, an odd number up to 127. */
PSTK_API struct pstk_op pstk_gaussian_blur(uint32_t kernel, double sigma);
/* Blur: Pillow's ImageFilter.GaussianBlur(radius). */
PSTK_API struct pstk_op pstk_box_blur(double radius);
/* Rotate by a random angle: torchvision.transforms.RandomRotation. To expand the image, or for a
 * centre, set params.random_rotation. */
PSTK_API struct pstk_op pstk_random_rotation(double least, double most, uint32_t filter);
/* Move the corners inwards: torchvision.transforms.RandomPerspective. */
PSTK_API struct pstk_op pstk_random_perspective(double distortion, double probability,
                                                uint32_t filter);
/* Blur by a random sigma: torchvision.transforms.GaussianBlur. */
PSTK_API struct pstk_op pstk_random_gaussian_blur(uint32_t kernel, double least, double most);
/* Blur by a random radius, as timm and DINO do. */
PSTK_API struct pstk_op pstk_random_box_blur(double least, double most);
/* Apply the losses of a JPEG file: torchvision.transforms.v2.functional.jpeg. */
PSTK_API struct pstk_op pstk_jpeg(uint32_t quality);
/* Apply the losses of a JPEG file of a random quality: torchvision.transforms.v2.JPEG((least,
 * most)). */
PSTK_API struct pstk_op pstk_random_jpeg(uint32_t least, uint32_t most);
/* Call a function of the program, which changes pixels in place, with scratch_size bytes of
 * scratch. Masks, boxes and keypoints that follow the image stay where they are. */
PSTK_API struct pstk_op pstk_call(pstk_pixels_fn function, void *user, uint64_t scratch_size);
/* Apply torchvision.transforms.TrivialAugmentWide; its default has 31 bins. */
PSTK_API struct pstk_op pstk_trivial_augment_wide(uint32_t bins, uint32_t filter);
/* Apply torchvision.transforms.RandAugment; its default has 2 operations of magnitude 9 of 31. */
PSTK_API struct pstk_op pstk_rand_augment(uint32_t n_ops, uint32_t magnitude, uint32_t bins,
                                          uint32_t filter);
/* Apply torchvision.transforms.AutoAugment. `policy`: enum pstk_auto_augment_policy. */
PSTK_API struct pstk_op pstk_auto_augment(uint32_t policy, uint32_t filter);
/* Apply torchvision.transforms.AugMix; its default has severity 3, 3 chains, depth 0 and alpha 1.
 * Its chains work as on PIL images; torchvision converts these to tensors first. Masks and boxes
 * that follow the image stay unchanged, as with timm's AugMix. */
PSTK_API struct pstk_op pstk_aug_mix(uint32_t severity, uint32_t n_chains, uint32_t depth,
                                     double alpha);
/* Apply timm's RandAugment, "rand-m#-n#-mstd#": each operation with probability 0.5, fill 128,
 * BILINEAR or BICUBIC at random. `set`: enum pstk_timm_set. For other settings set
 * params.timm_rand_augment, filter and fill. */
PSTK_API struct pstk_op pstk_timm_rand_augment(uint32_t n_ops, double magnitude, double deviation,
                                               uint32_t set);
/* Apply timm's AutoAugment, "v0-mstd#". `policy`: enum pstk_timm_policy. */
PSTK_API struct pstk_op pstk_timm_auto_augment(uint32_t policy, double deviation);
/* Apply timm's AugMix, "augmix-m#-w#-d#-a#". */
PSTK_API struct pstk_op pstk_timm_aug_mix(double magnitude, uint32_t n_chains, uint32_t depth,
                                          double alpha);
/* Divide by 255 in a list without normalise: torchvision's ToTensor, or v2.ToDtype. `scale`: enum
 * pstk_scale. Without this operation and normalise, the output's floats are those of DIVIDE. */
PSTK_API struct pstk_op pstk_to_float(uint32_t scale);
/* Normalise each channel: (x / 255 - mean) / deviation, in float32 steps. `mean`, `deviation`: 3
 * floats each, copies. */
PSTK_API struct pstk_op pstk_normalize(const float *mean, const float *deviation);
/* Normalise images of `channels` channels, 1, 3 or 4: as many floats each. */
PSTK_API struct pstk_op pstk_normalize_channels(uint32_t channels, const float *mean,
                                                const float *deviation);
/* Erase a random box: torchvision.transforms.RandomErasing(probability) with its defaults, scale
 * (0.02, 0.33) and ratio (0.3, 3.3), after normalise. `value` is that of the output's elements in
 * all channels. For other settings set params.random_erasing; timm's has scale (0.02, 1/3), ratio
 * (0.3, 1 / 0.3), and a number of boxes. */
PSTK_API struct pstk_op pstk_random_erasing(double probability, double value);
/* Erase a part: torchvision.transforms.functional.erase, after normalise. */
PSTK_API struct pstk_op pstk_erase(uint32_t top, uint32_t left, uint32_t height, uint32_t width,
                                   double value);

#ifdef __cplusplus
}
#endif
#endif
