/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "dispatch/gtorch-grad-mode.h"

#include "dispatch/gtorch-op-private.h"
#include "stream/gtorch-stream-private.h"
#include "tensor/gtorch-recorder-private.h"

struct _GTorchGradGuard
{
  GTorchGuard parent;
};

G_DEFINE_BOXED_TYPE (GTorchGradGuard, gtorch_grad_guard, gtorch_grad_guard_ref,
                     gtorch_grad_guard_unref)

/**
 * gtorch_is_grad_enabled:
 *
 * Tells whether operations of this thread are recorded for gradients.
 *
 * Returns: %TRUE unless it was turned off, by [func@no_grad] or [func@inference_mode]
 *
 * Since: 0.1
 */
gboolean
gtorch_is_grad_enabled (void)
{
  gtorch_guards_settle ();
  return !gtorch_thread.no_grad;
}

/**
 * gtorch_set_grad_enabled:
 * @enabled: whether to record
 *
 * Turns the recording of gradients in this thread on or off, within a [struct@GradGuard] until that
 * ends. The guards of [func@no_grad] and [func@enable_grad] restore the former state by themselves. In
 * inference mode nothing is recorded whatever is set.
 *
 * Returns: the former state
 *
 * Since: 0.1
 */
gboolean
gtorch_set_grad_enabled (gboolean enabled)
{
  gboolean before;

  gtorch_guards_settle ();
  before = !gtorch_thread.no_grad;
  gtorch_thread.no_grad = gtorch_no_grad_for (enabled);
  return before;
}

static GTorchGradGuard *
guard_new (gboolean enabled)
{
  GTorchGradGuard *self = gtorch_guard_new (sizeof *self, NULL);

  gtorch_change_byte (&self->parent.change, &gtorch_thread.no_grad, gtorch_no_grad_for (enabled));
  return self;
}

/**
 * gtorch_no_grad:
 *
 * Turns the recording of gradients off until the guard ends.
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
 * Turns the recording of gradients on until the guard ends. In inference mode that changes nothing.
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
 * gtorch_inference_mode:
 * @enabled: %FALSE for ordinary work within a block of inference mode, where gradients are recorded again
 *
 * Turns inference mode on or off until the guard ends.
 *
 * In inference mode nothing is recorded for gradients, and the tensors that are made are *inference tensors*
 * ([method@Tensor.is_inference]), and so are all views of them, for good. Outside of inference mode,
 * operations read inference tensors as others, but changing one in place, letting one require grad, and
 * saving one for a backward pass fail with %GTORCH_ERROR_AUTOGRAD: [method@Tensor.clone] makes an ordinary
 * tensor of it. So no gradient is ever computed from values that a block of inference mode has changed
 * unnoticed.
 *
 * An ordinary tensor stays one, whatever is done with it in inference mode, and so are views of it that are
 * made there; as with [func@no_grad], those cannot be changed in place where gradients are recorded.
 *
 * ```c
 * g_autoptr (GTorchGradGuard) guard = gtorch_inference_mode (TRUE);
 * g_autoptr (GTorchTensor) scores = gtorch_module_forward (model, images, &error);
 * ```
 *
 * Returns: (transfer full): a guard
 *
 * Since: 0.1
 */
GTorchGradGuard *
gtorch_inference_mode (gboolean enabled)
{
  GTorchGradGuard *self = gtorch_guard_new (sizeof *self, NULL);
  GTorchChange *change = &self->parent.change;

  gtorch_change_byte (change, &gtorch_thread.no_grad,
                      enabled ? GTORCH_NO_GRAD | GTORCH_INFERENCE : 0);
  gtorch_change_byte (change, &gtorch_thread.no_forward, enabled != FALSE);
  return self;
}

/**
 * gtorch_is_inference_mode_enabled:
 *
 * Tells whether this thread is in inference mode.
 *
 * Returns: %TRUE in [func@inference_mode]
 *
 * Since: 0.1
 */
gboolean
gtorch_is_inference_mode_enabled (void)
{
  gtorch_guards_settle ();
  return gtorch_is_inference ();
}

/**
 * gtorch_grad_guard_end:
 * @guard: a guard
 *
 * Restores the state from before the guard, or leaves that to a younger guard that lasts. Further calls do
 * nothing. If called in another thread than the guard's own, the guard ends when its own thread next begins
 * or ends a guard, or runs an operation.
 *
 * Since: 0.1
 */
void
gtorch_grad_guard_end (GTorchGradGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_end (guard);
}

/**
 * gtorch_grad_guard_ref:
 * @guard: a guard
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @guard
 *
 * Since: 0.1
 */
GTorchGradGuard *
gtorch_grad_guard_ref (GTorchGradGuard *guard)
{
  g_return_val_if_fail (guard != NULL, NULL);
  return gtorch_guard_ref (guard);
}

/**
 * gtorch_grad_guard_unref:
 * @guard: (transfer full): a guard
 *
 * Drops a reference; the last one ends the guard.
 *
 * Since: 0.1
 */
void
gtorch_grad_guard_unref (GTorchGradGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_unref (guard);
}

gboolean
gtorch_autograd_look_for_wanted (GTorchImpl *const *inputs, guint n_inputs)
{
  const gboolean records = gtorch_is_grad_enabled ();
  const gboolean forward = gtorch_forward_is_on ();
  guint i;

  if (!records && !forward)
    return FALSE;
  for (i = 0; i < n_inputs; i++)
    if (inputs[i] != NULL && inputs[i]->autograd != NULL
        && ((records && gtorch_impl_requires_grad (inputs[i]))
            || (forward && gtorch_impl_has_tangent (inputs[i]))))
      return TRUE;
  return FALSE;
}

gint gtorch_forward_levels;

gboolean
gtorch_autograd_is_differentiated (void)
{
  return gtorch_is_grad_enabled () || gtorch_forward_is_on ();
}
