/* SPDX-License-Identifier: Apache-2.0 */
/* passthrough: gets from the encoder the reason why an image file is not stored as planes. */
#include "base/error.h"
#include "base/signature.h"
#include "image/planes/file.h"

int pstk_image_passthrough(const void *data, uint64_t size, int32_t codec_level,
                           uint32_t *passthrough, struct pstk_error *err)
{
    struct pstk__planes_encoder *encoder;
    struct pstk__planes_file file;
    if ((!data && size) || !passthrough)
        return pstk__fail(err, PSTK_EINVAL, PSTK_STAGE_WRITE, "%s is NULL",
                          passthrough ? "data" : "passthrough");
    *passthrough = PSTK_PASSTHROUGH_NOT_JPEG;
    if (pstk__signature_find(data, size, NULL) != PSTK__SIGNATURE_JPEG)
        return 0;
    int r = pstk__planes_encoder_open(&encoder, err);
    if (r < 0)
        return r;
    r = pstk__planes_encode(encoder, data, size, codec_level == 1, &file, err);
    pstk__planes_encoder_close(encoder);
    *passthrough = file.passthrough;
    return r < 0 ? r : 0;
}
