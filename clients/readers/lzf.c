/*
 * LZF, the compression of PCD files: a control byte c < 32 copies c + 1 literal bytes; else (c >> 5) + 2
 * bytes, or 9 + the next byte when c >> 5 is 7, are repeated from ((c & 31) << 8 | next byte) + 1 bytes back.
 */
#include "cloud.h"

#include <string.h>

bool vxc__lzf_expand(const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out)
{
    size_t i = 0, o = 0;
    while (i < n_in) {
        const size_t control = in[i++];
        if (control < 32) {
            const size_t n = control + 1;
            if (n > n_in - i || n > n_out - o)
                return false;
            memcpy(out + o, in + i, n);
            i += n;
            o += n;
            continue;
        }
        size_t n = (control >> 5) + 2;
        if (n == 9) {
            if (i == n_in)
                return false;
            n += in[i++];
        }
        if (i == n_in)
            return false;
        const size_t back = ((control & 31) << 8 | in[i++]) + 1;
        if (back > o || n > n_out - o)
            return false;
        for (size_t k = 0; k < n; k++, o++) /* byte by byte: the two may overlap, which repeats a pattern */
            out[o] = out[o - back];
    }
    return o == n_out;
}
