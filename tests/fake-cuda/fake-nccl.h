/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* NCCL without GPUs, for tests: libnccl.so.2 in the folder of GTORCH_CUDA_LIBRARY_PATH. Ranks are processes
 * of one host, each with a fake driver of its own, that share memory. A collective is a host function on the
 * stream, which waits for the other ranks until the communicator is aborted. GTORCH_FAKE_NCCL is the number
 * of its version. Programs that link it can let it fail: */

#include <glib.h>

G_BEGIN_DECLS

#define FAKE_NCCL_API __attribute__ ((visibility ("default")))

/* Lets the n-th call (1: the next) of a function return the result without doing anything; 0: none. */
FAKE_NCCL_API void fake_nccl_fail (const gchar *name, guint nth, gint result);
/* Lets the n-th enqueued work (1: the next) wait until it is aborted. */
FAKE_NCCL_API void fake_nccl_hang (guint nth);
/* Lets the n-th enqueued work have one element less. */
FAKE_NCCL_API void fake_nccl_cut (guint nth);
/* Delays each work by so many microseconds. */
FAKE_NCCL_API void fake_nccl_delay (guint us);
/* Lets communicators report an error if the process of a rank has ended, as NCCL does with a network. */
FAKE_NCCL_API void fake_nccl_notice (gboolean notices);
/* Returns the calls of a function so far, or of all (NULL). */
FAKE_NCCL_API guint fake_nccl_get_calls (const gchar *name);
/* Returns how many communicators there are. */
FAKE_NCCL_API gint fake_nccl_get_comms (void);
/* Returns the functions; NULL ends the list. */
FAKE_NCCL_API const gchar *const *fake_nccl_get_functions (void);

G_END_DECLS
