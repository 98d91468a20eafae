/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file of pcap or pcapng: each frame lies within the file, and the end comes. */
#include <core/frames.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frames f;
    struct of_bytes frame;
    const char *why = NULL;
    bool cut;
    int more = frames_begin(&f, (struct of_bytes){data, size}, &why) ? 1 : -1;
    for (size_t n = 0; more > 0; n++) {
        more = frames_next(&f, &frame, &cut, &why);
        if (more > 0 && (frame.p < data || frame.p + frame.n > data + size || n > size))
            abort();
    }
    if (more < 0 && !why)
        abort();
    return 0;
}
