/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Launches on several GPUs that wait for each other, as those of a collective do, by threads of this process.
 * Some calls of the driver wait until all GPUs are idle, and hold a lock that launches need: loading a
 * kernel, and freeing memory of the host. Between two launches of one collective such a call would never
 * end.
 *
 * So the launches are bracketed by joint_begin () and joint_end (), and the calls by stall_begin () and
 * stall_end (): neither begins while one of the other kind goes on. */

/* By the last of the threads that are about to launch, before the first one does. */
void gtorch_cuda_joint_begin (void);
/* By the last of them that has launched, or failed to. */
void gtorch_cuda_joint_end (void);
/* Whether the calling thread is between the two; its own calls of the driver do not wait for it. */
void gtorch_cuda_joint_enter (void);
void gtorch_cuda_joint_leave (void);

void gtorch_cuda_stall_begin (void);
void gtorch_cuda_stall_end (void);

G_END_DECLS
