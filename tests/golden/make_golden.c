/* Prints tests/golden/messages.hex: one line a message, its name and its bytes.  usage: make_golden >
 * messages.hex */
#include "wire_fill.h"

#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    char name[64];
    uint8_t *bytes;
    size_t n;
    for (unsigned i = 0; (n = wire_example(i, name, &bytes)); ++i) {
        printf("%s ", name);
        for (size_t k = 0; k < n; ++k)
            printf("%02x", bytes[k]);
        putchar('\n');
        free(bytes);
    }
    return 0;
}
