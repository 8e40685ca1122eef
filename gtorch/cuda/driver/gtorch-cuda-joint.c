/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "cuda/driver/gtorch-cuda-joint-private.h"

#define PATIENCE \
  (2 * G_USEC_PER_SEC) /* a launch that does not return is ended by the abort of its group */

static GMutex lock;
static GCond changed;
static guint n_joint, n_stalls;
static __thread gboolean is_inside;

/* Waits until the number is 0. The lock must be held. */
static void
wait_for_none (const guint *number)
{
  const gint64 until = g_get_monotonic_time () + PATIENCE;

  while (*number > 0 && g_cond_wait_until (&changed, &lock, until))
    ;
}

static void
count_down (guint *number)
{
  g_mutex_lock (&lock);
  if (--*number == 0)
    g_cond_broadcast (&changed);
  g_mutex_unlock (&lock);
}

void
gtorch_cuda_joint_begin (void)
{
  g_mutex_lock (&lock);
  wait_for_none (&n_stalls);
  n_joint++;
  g_mutex_unlock (&lock);
  is_inside = TRUE;
}

void
gtorch_cuda_joint_leave (void)
{
  is_inside = FALSE;
}

void
gtorch_cuda_joint_end (void)
{
  count_down (&n_joint);
}

void
gtorch_cuda_stall_begin (void)
{
  g_mutex_lock (&lock);
  if (!is_inside)
    wait_for_none (&n_joint);
  n_stalls++;
  g_mutex_unlock (&lock);
}

void
gtorch_cuda_stall_end (void)
{
  count_down (&n_stalls);
}
