/*
 * fake_gate.h - the gate that maps named "gated" of fake_core.c stand at: a daemon started after
 * fake_gate_shut keeps their work waiting until fake_gate_open.
 */
#ifndef FAKE_GATE_H
#define FAKE_GATE_H

/* Call before the daemon starts: it takes the gate's path from the environment. */
void fake_gate_shut(void);
void fake_gate_open(void);
/* Call after the daemon has ended. */
void fake_gate_remove(void);

#endif
