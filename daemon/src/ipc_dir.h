/*
 * ipc_dir.h - the folder of the sockets, held by one daemon at a time.
 */
#ifndef VXD_IPC_DIR_H
#define VXD_IPC_DIR_H

#include "base/vx_err.h"

/*
 * Makes the folder (mode 0750) if need be, locks it, and removes sockets that a dead daemon left.  *lock: a
 * descriptor that holds the lock until it is closed or the process ends. Errors: VX_E_EXISTS another daemon
 * serves it; VX_E_UNAVAILABLE it can't be made, entered or locked.
 */
vx_err vxd_ipc_dir_take(const char *dir, int *lock, struct vx_detail *detail);
/* Removes the sockets (libzmq leaves them) and gives the folder up. */
void vxd_ipc_dir_leave(const char *dir, int lock);

#endif
