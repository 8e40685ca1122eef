/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "gtorch-grad-mode.h"

static __thread gboolean grad_disabled;

struct _GTorchGradGuard
{
  gboolean before;
  gint ref_count;
};

/**
 * gtorch_is_grad_enabled:
 *
 * Tells whether operations of this thread are recorded for gradients.
 *
 * Returns: %TRUE unless it was turned off
 *
 * Since: 0.1
 */
gboolean
gtorch_is_grad_enabled (void)
{
  return !grad_disabled;
}

/**
 * gtorch_set_grad_enabled:
 * @enabled: whether to record
 *
 * Turns the recording of gradients in this thread on or off. The guards of [func@no_grad] and
 * [func@enable_grad] restore the former state by themselves.
 *
 * Returns: the former state
 *
 * Since: 0.1
 */
gboolean
gtorch_set_grad_enabled (gboolean enabled)
{
  gboolean before = !grad_disabled;

  grad_disabled = !enabled;
  return before;
}

static GTorchGradGuard *
guard_new (gboolean enabled)
{
  GTorchGradGuard *self = g_new (GTorchGradGuard, 1);

  self->ref_count = 1;
  self->before = gtorch_set_grad_enabled (enabled);
  return self;
}

static GTorchGradGuard *
guard_ref (GTorchGradGuard *self)
{
  g_atomic_int_inc (&self->ref_count);
  return self;
}

G_DEFINE_BOXED_TYPE (GTorchGradGuard, gtorch_grad_guard, guard_ref, gtorch_grad_guard_free)

/**
 * gtorch_no_grad:
 *
 * Turns the recording of gradients off until the guard is freed.
 *
 * Returns: (transfer full): a guard
 *
 * Since: 0.1
 */
GTorchGradGuard *
gtorch_no_grad (void)
{
  return guard_new (FALSE);
}

/**
 * gtorch_enable_grad:
 *
 * Turns the recording of gradients on until the guard is freed.
 *
 * Returns: (transfer full): a guard
 *
 * Since: 0.1
 */
GTorchGradGuard *
gtorch_enable_grad (void)
{
  return guard_new (TRUE);
}

/**
 * gtorch_grad_guard_free:
 * @self: (transfer full): a guard
 *
 * Restores the state from before the guard and frees it.
 *
 * Since: 0.1
 */
void
gtorch_grad_guard_free (GTorchGradGuard *self)
{
  g_return_if_fail (self != NULL);
  if (!g_atomic_int_dec_and_test (&self->ref_count))
    return;
  gtorch_set_grad_enabled (self->before);
  g_free (self);
}
