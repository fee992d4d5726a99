/*
 * wire_fill.h - one example of every message, with every field set, from the messages' descriptors.
 *
 * A field's value follows from its number only, so that the example of today is the example of tomorrow.
 */
#ifndef WIRE_FILL_H
#define WIRE_FILL_H

#include "vx/wire.h"

/* Makes example i: prelude and header, as they go over the wire, in *bytes (free with free()).  name: [64]
 * bytes; "frame/1" is the second member of a oneof inside frame.  The last one, "stats_report", is a body and
 * has no envelope.  Returns the number of bytes, 0 when there is no example i. */
size_t wire_example(unsigned i, char *name, uint8_t **bytes);

#endif
