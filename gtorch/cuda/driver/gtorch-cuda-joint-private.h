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

/* By each thread that is about to launch, when all have come. Until joint_leave () its own calls of the
 * driver do not wait for it. */
void gtorch_cuda_joint_begin (void);
/* By each of them that has launched, or failed to. */
void gtorch_cuda_joint_leave (void);
/* By each of them when all have. */
void gtorch_cuda_joint_end (void);

void gtorch_cuda_stall_begin (void);
void gtorch_cuda_stall_end (void);

G_END_DECLS
