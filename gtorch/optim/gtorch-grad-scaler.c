/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "optim/gtorch-grad-scaler.h"
#include "tensor/gtorch-uninitialized-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-grad-mode.h"
#include "autograd/gtorch-tensor-autograd.h"
#include "graph/gtorch-capture-private.h"
#include "base/gtorch-field-private.h"
#include "optim/gtorch-grad-scaler-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "nn/gtorch-spread-private.h"
#include "optim/gtorch-optimizer-private.h"
#include "stream/gtorch-stream-private.h"
#include "elements/gtorch-tensor-async.h"
#include "elements/gtorch-tensor-bytes.h"
#include "tensor/gtorch-tensor-private.h"
#include "base/gtorch-task-private.h"
#include "base/gtorch-property-private.h"

/**
 * GTorchGradScaler:
 *
 * Keeps gradients in the range of float16 by scaling the loss.
 *
 * Small gradients underflow to zero in float16. If the loss is multiplied by a large number, so are its
 * gradients; before an optimizer's step they are divided by it again. If the number was too large, so
 * that a gradient is infinite or NaN, the step is skipped and the number is reduced. After 2000 steps
 * without overflow it is doubled.
 *
 * ```c
 * loss = ...; // in a region of GTorchAutocastGuard
 * scaled = gtorch_grad_scaler_scale (scaler, loss, &error);
 * gtorch_tensor_backward (scaled, NULL, FALSE, FALSE, &error);
 * gtorch_grad_scaler_step (scaler, optimizer, &error);
 * gtorch_grad_scaler_update (scaler, NULL, &error);
 * ```
 *
 * The scale and the overflow flags are tensors on the device. Adam, AdamW and SGD read there whether to
 * skip the step, without waiting of the host. The host waits in [method@GradScaler.step] for other
 * optimizers, and if [signal@GradScaler::overflow] is connected and [property@GradScaler:capturable] is
 * not set; [method@GradScaler.step_async] does so in the main loop. A graph that captures the step of
 * another optimizer has it in a branch ([method@CUDAGraph.begin_if]), so that replays do not wait either.
 *
 * Since: 0.1
 */
typedef enum
{
  STAGE_READY,
  STAGE_UNSCALED,
  STAGE_STEPPED,
} Stage;

typedef struct
{
  Stage stage;
  GPtrArray *founds; /* the overflow flag of each device */
} Progress;

enum
{
  OVERFLOWED,
  N_SIGNALS
};

static guint signals[N_SIGNALS];

G_DEFINE_TYPE (GTorchGradScaler, gtorch_grad_scaler, G_TYPE_OBJECT)

static void
progress_free (gpointer data)
{
  Progress *progress = data;

  g_ptr_array_unref (progress->founds);
  g_free (progress);
}

static gboolean
is_scale (gdouble scale)
{
  return scale >= G_MINFLOAT && scale <= G_MAXFLOAT;
}

/* Writes a new scale to the memory that graphs read. */
static gboolean
write_scale (GTorchGradScaler *self, GError **error)
{
  if (self->scale != NULL && self->is_stale
      && !gtorch_op_fill_inplace (self->scale, self->initial, error))
    return FALSE;
  self->is_stale = FALSE;
  return TRUE;
}

static gdouble
get_scale_factor (GTorchGradScaler *self)
{
  return gtorch_grad_scaler_get_scale (self, NULL);
}

/* At once if that is possible; what is not possible is said where the scale is used. Whether it is the same
 * as before is not asked of the device. */
static void
set_scale_factor (GTorchGradScaler *self, gdouble scale)
{
  const gboolean is_on_device = self->scale != NULL && !self->is_stale;

  if (!gtorch_property_set_double (&self->initial, scale) && !is_on_device)
    return;
  self->is_stale = self->scale != NULL;
  if (is_scale (scale))
    write_scale (self, NULL);
  g_object_notify (G_OBJECT (self), "scale-factor");
}

static void
gtorch_grad_scaler_finalize (GObject *object)
{
  GTorchGradScaler *self = GTORCH_GRAD_SCALER (object);

  g_hash_table_unref (self->optimizers);
  g_clear_pointer (&self->scale, gtorch_impl_unref);
  g_clear_pointer (&self->tracker, gtorch_impl_unref);
  g_main_context_unref (self->context);
  G_OBJECT_CLASS (gtorch_grad_scaler_parent_class)->finalize (object);
}

typedef GTorchGradScaler Self;

static const GTorchField fields[] = {
  /**
   * GTorchGradScaler:scale-factor:
   *
   * The factor of losses: a float32 larger than 0. Reading it waits for the device; updates of it do not
   * notify.
   *
   * Since: 0.1
   */
  { "scale-factor", GTORCH_PROPERTY_DOUBLE (get_scale_factor, set_scale_factor), .value = 65536,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchGradScaler:growth-factor:
   *
   * The factor by which the scale grows after [property@GradScaler:growth-interval] steps without an
   * overflow, at least 1.
   *
   * Since: 0.1
   */
  { "growth-factor", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (Self, growth_factor), 2,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchGradScaler:backoff-factor:
   *
   * The factor of the scale after an overflow, between 0 and 1.
   *
   * Since: 0.1
   */
  { "backoff-factor", GTORCH_FIELD_DOUBLE, GTORCH_FIELD (Self, backoff_factor), 0.5,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchGradScaler:growth-interval:
   *
   * The number of steps without an overflow after which the scale grows, at least 1.
   *
   * Since: 0.1
   */
  { "growth-interval", GTORCH_FIELD_INT, GTORCH_FIELD (Self, growth_interval), 2000,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchGradScaler:enabled:
   *
   * %FALSE makes the scaler do nothing: losses are not scaled and no step is skipped, so that the same
   * program can use full precision.
   *
   * Since: 0.1
   */
  { "enabled", GTORCH_FIELD_BOOL, GTORCH_FIELD (Self, enabled), TRUE,
    .flags = GTORCH_FIELD_SETTING },
  /**
   * GTorchGradScaler:capturable:
   *
   * Whether the host avoids waiting for the overflow flags if the device can skip a step by itself: a
   * step of Adam, AdamW and SGD, and of each optimizer in a graph. [signal@GradScaler::overflow] is then
   * emitted from the main loop, some time after [method@GradScaler.update].
   *
   * Since: 0.1
   */
  { "capturable", GTORCH_FIELD_BOOL, GTORCH_FIELD (Self, capturable), FALSE,
    .flags = GTORCH_FIELD_SETTING },
};

static void
gtorch_grad_scaler_class_init (GTorchGradScalerClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->finalize = gtorch_grad_scaler_finalize;
  GTORCH_FIELDS (klass, fields);

  /**
   * GTorchGradScaler::overflow:
   * @self: the scaler
   * @optimizer: (nullable): the optimizer whose step was skipped; %NULL if it is not known, for a scaler
   *   that is [property@GradScaler:capturable]
   *
   * A gradient was not finite. Emitted in the main context of the thread that created the scaler.
   *
   * Since: 0.1
   */
  signals[OVERFLOWED] = g_signal_new ("overflow", GTORCH_TYPE_GRAD_SCALER, G_SIGNAL_RUN_LAST, 0,
                                      NULL, NULL, NULL, G_TYPE_NONE, 1, GTORCH_TYPE_OPTIMIZER);
}

static void
gtorch_grad_scaler_init (GTorchGradScaler *self)
{
  self->optimizers = g_hash_table_new_full (NULL, NULL, g_object_unref, progress_free);
  self->owner = g_thread_self ();
  self->context = g_main_context_ref_thread_default ();
}

/**
 * gtorch_grad_scaler_new:
 *
 * Creates a scaler with a scale of 65536. The other settings are properties.
 *
 * Returns: (transfer full): a scaler
 *
 * Since: 0.1
 */
GTorchGradScaler *
gtorch_grad_scaler_new (void)
{
  return g_object_new (GTORCH_TYPE_GRAD_SCALER, NULL);
}

/**
 * gtorch_grad_scaler_check:
 * @self: a scaler
 * @error: return location for an error
 *
 * Tells whether the scaler can work with the present settings. Properties accept any number; this
 * function and all that use the settings report an invalid one. A scaler that is not enabled may have any
 * settings.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_scaler_check (GTorchGradScaler *self, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), FALSE);
  return !self->enabled
         || (gtorch_check_range ("grad_scaler", N_ ("the scale"), self->initial, G_MINFLOAT,
                                 G_MAXFLOAT, FALSE, error)
             && gtorch_check_range ("grad_scaler", N_ ("the growth factor"), self->growth_factor, 1,
                                    G_MAXFLOAT, FALSE, error)
             && gtorch_check_range ("grad_scaler", N_ ("the backoff factor"), self->backoff_factor,
                                    0, 1, FALSE, error)
             && gtorch_check_range ("grad_scaler", N_ ("the growth interval"),
                                    self->growth_interval, 1, G_MAXINT, FALSE, error));
}

/* --- scaling --- */

static gboolean
ensure_scale (GTorchGradScaler *self, GTorchDevice *device, GError **error)
{
  g_autoptr (GTorchImpl) scale = NULL;
  g_autoptr (GTorchImpl) tracker = NULL;

  if (!gtorch_grad_scaler_check (self, error))
    return FALSE;
  if (self->scale != NULL)
    return write_scale (self, error);
  scale = gtorch_op_full (NULL, 0, self->initial, GTORCH_DTYPE_FLOAT32, device, error);
  tracker = scale != NULL ? gtorch_op_full_int (NULL, 0, self->initial_tracker, GTORCH_DTYPE_INT32,
                                                device, error)
                          : NULL;
  if (tracker == NULL)
    return FALSE;
  self->scale = g_steal_pointer (&scale);
  self->tracker = g_steal_pointer (&tracker);
  return TRUE;
}

static gboolean
check_scale (GTorchGradScaler *self, const gchar *what, GError **error)
{
  if (!gtorch_grad_scaler_check (self, error))
    return FALSE;
  if (self->scale != NULL)
    return write_scale (self, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("%s: the scaler has scaled nothing yet: call backward on the result of "
                  "its method scale"),
               what);
  return FALSE;
}

/**
 * gtorch_grad_scaler_scale:
 * @self: a scaler
 * @outputs: a loss, or other outputs
 * @error: return location for an error
 *
 * Multiplies a loss by the scale, so that its gradients are multiplied by it.
 *
 * Returns: (transfer full): the product, of the dtype of @outputs; @outputs itself if the scaler is not
 *   enabled; %NULL with @error set, %GTORCH_ERROR_INVALID for settings that [method@GradScaler.check]
 *   refuses
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_grad_scaler_scale (GTorchGradScaler *self, GTorchTensor *outputs, GError **error)
{
  GTORCH_HOLD_TENSOR (outputs);
  g_autoptr (GTorchImpl) near = NULL;
  GTorchImpl *impl;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (outputs), NULL);
  if (!self->enabled)
    return g_object_ref (outputs);
  impl = gtorch_tensor_unwrap (outputs);
  if (!gtorch_impl_check_memory (impl, "scale", error))
    return NULL;
  if (!ensure_scale (self, impl->storage->device, error))
    return NULL;
  near = gtorch_op_to_device (self->scale, impl->storage->device, FALSE, error);
  return near != NULL ? gtorch_tensor_wrap (gtorch_op_mul (impl, near, error)) : NULL;
}

/**
 * gtorch_grad_scaler_scale_list:
 * @self: a scaler
 * @outputs: (array length=n_outputs): losses
 * @n_outputs: the length of @outputs
 * @error: return location for an error
 *
 * Scales each of several tensors like [method@GradScaler.scale].
 *
 * Returns: (transfer container) (element-type GTorchTensor): the products, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_grad_scaler_scale_list (GTorchGradScaler *self, GTorchTensor **outputs, gsize n_outputs,
                               GError **error)
{
  GTORCH_HOLD_TENSORS (outputs, n_outputs);
  g_autoptr (GPtrArray) result = NULL;
  gsize i;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), NULL);
  g_return_val_if_fail (outputs != NULL || n_outputs == 0, NULL);
  result = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = 0; i < n_outputs; i++)
    {
      GTorchTensor *scaled = NULL;

      if (GTORCH_IS_TENSOR (outputs[i]))
        scaled = gtorch_grad_scaler_scale (self, outputs[i], error);
      else
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: item %u of the list is not a tensor"), "scale_list", (guint) i);
      if (scaled == NULL)
        return NULL;
      g_ptr_array_add (result, scaled);
    }
  return g_steal_pointer (&result);
}

/* --- unscaling --- */

static Progress *
progress_of (GTorchGradScaler *self, GTorchOptimizer *optimizer)
{
  Progress *progress = g_hash_table_lookup (self->optimizers, optimizer);

  if (progress == NULL)
    {
      progress = g_new0 (Progress, 1);
      progress->founds = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
      g_hash_table_insert (self->optimizers, g_object_ref (optimizer), progress);
    }
  return progress;
}

/* Returns the gradients of the optimizer, as a table from devices to arrays of impls. */
static GHashTable *
dup_grads (GTorchOptimizer *optimizer)
{
  g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (optimizer);
  GHashTable *devices =
      g_hash_table_new_full (NULL, NULL, NULL, (GDestroyNotify) g_ptr_array_unref);
  guint i;

  for (i = 0; i < params->len; i++)
    {
      g_autoptr (GTorchTensor) grad = gtorch_tensor_get_grad (params->pdata[i]);
      GTorchImpl *impl = grad != NULL ? gtorch_tensor_unwrap (grad) : NULL;
      GPtrArray *grads;

      if (impl == NULL || impl->storage == NULL)
        continue;
      grads = g_hash_table_lookup (devices, impl->storage->device);
      if (grads == NULL)
        {
          grads = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
          g_hash_table_insert (devices, impl->storage->device, grads);
        }
      g_ptr_array_add (grads, gtorch_impl_ref (impl));
    }
  return devices;
}

/* Combines all overflow flags of the optimizer into one number on one device. */
static GTorchImpl *
combine (GPtrArray *founds, GError **error)
{
  g_autoptr (GTorchImpl) sum = gtorch_impl_ref (founds->pdata[0]);
  guint i;

  for (i = 1; i < founds->len; i++)
    {
      g_autoptr (GTorchImpl) near =
          gtorch_op_to_device (founds->pdata[i], sum->storage->device, FALSE, error);
      GTorchImpl *next = near != NULL ? gtorch_op_add (sum, near, 1, error) : NULL;

      if (next == NULL)
        return NULL;
      gtorch_impl_unref (sum);
      sum = next;
    }
  return g_steal_pointer (&sum);
}

/* Where other processes have parts of the parameters, an overflow of one is one of all. */
static gboolean
agree (GTorchOptimizer *optimizer, GPtrArray *founds, GError **error)
{
  g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (optimizer);
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);
  guint i;

  for (i = 0; founds->len > 0 && i < params->len; i++)
    {
      gpointer processes = gtorch_spread_find (params->pdata[i]);
      g_autoptr (GTorchImpl) own = NULL;
      GTorchImpl *all;

      if (processes == NULL || !g_hash_table_add (seen, processes))
        continue;
      own = combine (founds, error);
      all = own == NULL ? NULL : gtorch_spread->reduce (processes, own, GTORCH_SPREAD_MAX, error);
      if (all == NULL)
        return FALSE;
      g_ptr_array_set_size (founds, 0);
      g_ptr_array_add (founds, all);
    }
  return TRUE;
}

static gboolean
unscale (GTorchGradScaler *self, GTorchOptimizer *optimizer, Progress *progress, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GHashTable) devices = dup_grads (optimizer);
  GHashTableIter iter;
  gpointer device, grads;

  g_hash_table_iter_init (&iter, devices);
  while (g_hash_table_iter_next (&iter, &device, &grads))
    {
      g_autoptr (GTorchImpl) near = gtorch_op_to_device (self->scale, device, FALSE, error);
      GTorchImpl *found =
          near != NULL ? gtorch_amp_unscale ((GTorchImpl *const *) ((GPtrArray *) grads)->pdata,
                                             ((GPtrArray *) grads)->len, near, error)
                       : NULL;

      if (found == NULL)
        {
          g_ptr_array_set_size (progress->founds, 0);
          return FALSE;
        }
      g_ptr_array_add (progress->founds, found);
    }
  if (!agree (optimizer, progress->founds, error))
    {
      g_ptr_array_set_size (progress->founds, 0);
      return FALSE;
    }
  progress->stage = STAGE_UNSCALED;
  return TRUE;
}

/**
 * gtorch_grad_scaler_unscale:
 * @self: a scaler
 * @optimizer: an optimizer
 * @error: return location for an error
 *
 * Divides the gradients of the optimizer's parameters by the scale.
 *
 * Programs that inspect or clip gradients call it before [method@GradScaler.step], which otherwise does
 * it itself.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if it was already called since the last
 *   [method@GradScaler.update] or after a step, or if nothing was scaled; %GTORCH_ERROR_DTYPE for
 *   gradients of float16
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_scaler_unscale (GTorchGradScaler *self, GTorchOptimizer *optimizer, GError **error)
{
  Progress *progress;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), FALSE);
  if (!self->enabled)
    return TRUE;
  if (!check_scale (self, "unscale", error))
    return FALSE;
  progress = progress_of (self, optimizer);
  if (progress->stage != STAGE_READY)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   progress->stage == STAGE_UNSCALED
                       ? _ ("unscale: the gradients of this %s are unscaled already since the last "
                            "update")
                       : _ ("unscale: this %s has made its step already since the last update"),
                   G_OBJECT_TYPE_NAME (optimizer));
      return FALSE;
    }
  return unscale (self, optimizer, progress, error);
}

/* --- steps --- */

typedef struct
{
  GTorchGradScaler *scaler;
  GTorchOptimizer *optimizer;
} Overflow;

static void
overflow_free (gpointer data)
{
  Overflow *overflow = data;

  g_object_unref (overflow->scaler);
  g_clear_object (&overflow->optimizer);
  g_free (overflow);
}

static gboolean
emit_overflow (gpointer data)
{
  Overflow *overflow = data;

  g_signal_emit (overflow->scaler, signals[OVERFLOWED], 0, overflow->optimizer);
  return G_SOURCE_REMOVE;
}

static void
call_owner (GTorchGradScaler *self, GTorchOptimizer *optimizer, GSourceFunc func)
{
  Overflow *overflow = g_new0 (Overflow, 1);
  g_autoptr (GSource) source = g_idle_source_new ();

  overflow->scaler = g_object_ref (self);
  g_set_object (&overflow->optimizer, optimizer);
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, func, overflow, overflow_free);
  g_source_attach (source, self->context);
}

/* Does the part of a step before the overflow flag must be known. */
static Progress *
begin_step (GTorchGradScaler *self, GTorchOptimizer *optimizer, GError **error)
{
  Progress *progress;

  if (!check_scale (self, "step", error))
    return NULL;
  progress = progress_of (self, optimizer);
  if (progress->stage == STAGE_STEPPED)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("step: this %s has made its step already since the last update"),
                   G_OBJECT_TYPE_NAME (optimizer));
      return NULL;
    }
  if (progress->stage == STAGE_READY && !unscale (self, optimizer, progress, error))
    return NULL;
  if (progress->founds->len > 0)
    return progress;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("step: no parameter of this %s has a gradient: was backward called on "
                  "the result of scale?"),
               G_OBJECT_TYPE_NAME (optimizer));
  g_hash_table_remove (self->optimizers, optimizer);
  return NULL;
}

static gboolean
end_step (GTorchGradScaler *self, GTorchOptimizer *optimizer, gdouble found, GError **error)
{
  Progress *progress = progress_of (self, optimizer);

  if (found != 0)
    {
      progress->stage = STAGE_STEPPED;
      if (!g_signal_has_handler_pending (self, signals[OVERFLOWED], 0, FALSE))
        return TRUE;
      if (self->owner == g_thread_self ())
        g_signal_emit (self, signals[OVERFLOWED], 0, optimizer);
      else
        call_owner (self, optimizer, emit_overflow);
      return TRUE;
    }
  if (!gtorch_optimizer_step (optimizer, error))
    return FALSE;
  progress->stage = STAGE_STEPPED;
  return TRUE;
}

/* Returns the capture of the current stream of the device that has the flag, or NULL. */
static GTorchCapture *
dup_capture (const Progress *progress)
{
  const GTorchImpl *found = progress->founds->pdata[0];

  return gtorch_stream_dup_capture (gtorch_current_stream (found->storage->device));
}

/* Returns TRUE if the host need not know whether the step is skipped. */
static gboolean
is_left_to_device (GTorchGradScaler *self, GTorchOptimizer *optimizer, GTorchCapture *capture)
{
  return (capture != NULL || gtorch_optimizer_is_fused (optimizer))
         && (self->capturable
             || !g_signal_has_handler_pending (self, signals[OVERFLOWED], 0, FALSE));
}

/* Makes the step in a branch of the graph. */
static gboolean
step_in_branch (GTorchOptimizer *optimizer, GTorchCapture *capture, GTorchImpl *found,
                GError **error)
{
  GTorchStream *stream = gtorch_current_stream (found->storage->device);
  g_autoptr (GTorchImpl) is_right = gtorch_op_logical_not (found, error);
  gboolean result;

  if (is_right == NULL || !gtorch_capture_begin_branch (capture, stream, is_right, error))
    return FALSE;
  result = gtorch_optimizer_step (optimizer, error);
  return gtorch_capture_end_branch (capture, stream, result ? error : NULL) && result;
}

static gboolean
step_unless_found (GTorchGradScaler *self, GTorchOptimizer *optimizer, Progress *progress,
                   GTorchCapture *capture, GError **error)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  g_autoptr (GTorchImpl) all = combine (progress->founds, error);

  if (all == NULL)
    return FALSE;
  if (gtorch_optimizer_is_fused (optimizer) ? !gtorch_optimizer_step_unless (optimizer, all, error)
                                            : !step_in_branch (optimizer, capture, all, error))
    return FALSE;
  progress->stage = STAGE_STEPPED;
  return TRUE;
}

/**
 * gtorch_grad_scaler_step:
 * @self: a scaler
 * @optimizer: an optimizer
 * @error: return location for an error
 *
 * Makes a step of the optimizer if all of its gradients are finite.
 *
 * The gradients are divided by the scale before, unless [method@GradScaler.unscale] has done so. Waits
 * for the device only if the host must know the result: outside of graphs for optimizers other than Adam,
 * AdamW and SGD, or for [signal@GradScaler::overflow].
 *
 * Returns: %TRUE, even if the step was skipped; %FALSE with %GTORCH_ERROR_INVALID if it was already
 *   called since the last [method@GradScaler.update], if nothing was scaled or there is no gradient, and
 *   with the optimizer's errors
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_scaler_step (GTorchGradScaler *self, GTorchOptimizer *optimizer, GError **error)
{
  g_autoptr (GTorchTensor) found = NULL;
  g_autoptr (GTorchCapture) capture = NULL;
  Progress *progress;
  GError *failure = NULL;
  gdouble value;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_OPTIMIZER (optimizer), FALSE);
  if (!self->enabled)
    return gtorch_optimizer_step (optimizer, error);
  progress = begin_step (self, optimizer, error);
  if (progress == NULL)
    return FALSE;
  capture = dup_capture (progress);
  if (is_left_to_device (self, optimizer, capture))
    return step_unless_found (self, optimizer, progress, capture, error);
  found = gtorch_tensor_wrap (combine (progress->founds, error));
  if (found == NULL)
    return FALSE;
  value = gtorch_tensor_item_double (found, &failure);
  if (failure != NULL)
    {
      g_propagate_error (error, failure);
      return FALSE;
    }
  return end_step (self, optimizer, value, error);
}

static void
found_is_known (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  GError *error = NULL;
  gdouble found = gtorch_tensor_item_double_finish (GTORCH_TENSOR (source), result, &error);

  if (error == NULL
      && end_step (g_task_get_source_object (task), g_task_get_task_data (task), found, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_grad_scaler_step_async:
 * @self: a scaler
 * @optimizer: an optimizer
 * @cancellable: (nullable): cancels the wait, and then no step is made
 * @callback: (nullable) (scope async) (closure user_data): called when the step was made or skipped
 * @user_data: data for @callback
 *
 * Makes a step of the optimizer if all of its gradients are finite, without blocking the main loop.
 *
 * Call [method@GradScaler.update] after it has finished.
 *
 * Since: 0.1
 */
void
gtorch_grad_scaler_step_async (GTorchGradScaler *self, GTorchOptimizer *optimizer,
                               GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  g_autoptr (GTorchTensor) found = NULL;
  g_autoptr (GTorchCapture) capture = NULL;
  Progress *progress = NULL;
  GError *error = NULL;

  g_return_if_fail (GTORCH_IS_GRAD_SCALER (self));
  g_return_if_fail (GTORCH_IS_OPTIMIZER (optimizer));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_grad_scaler_step_async, cancellable, callback, user_data);
  if (g_task_return_error_if_cancelled (task))
    return;
  g_task_set_task_data (task, g_object_ref (optimizer), g_object_unref);
  if (!self->enabled)
    {
      if (gtorch_optimizer_step (optimizer, &error))
        g_task_return_boolean (task, TRUE);
      else
        g_task_return_error (task, error);
      return;
    }
  progress = begin_step (self, optimizer, &error);
  capture = progress != NULL ? dup_capture (progress) : NULL;
  if (progress != NULL && is_left_to_device (self, optimizer, capture))
    {
      if (step_unless_found (self, optimizer, progress, capture, &error))
        g_task_return_boolean (task, TRUE);
      else
        g_task_return_error (task, error);
      return;
    }
  found = progress != NULL ? gtorch_tensor_wrap (combine (progress->founds, &error)) : NULL;
  if (found != NULL)
    gtorch_tensor_item_double_async (found, cancellable, found_is_known, g_steal_pointer (&task));
  else
    g_task_return_error (task, error);
}

/**
 * gtorch_grad_scaler_step_finish:
 * @self: a scaler
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Finishes [method@GradScaler.step_async].
 *
 * Returns: the same as [method@GradScaler.step]
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_scaler_step_finish (GTorchGradScaler *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  if (!gtorch_task_take (result, self, gtorch_grad_scaler_step_async, error))
    return FALSE;
  return g_task_propagate_boolean (G_TASK (result), error);
}

/* --- the next scale --- */

static void
maybe_emit_overflow (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTorchGradScaler) self = data;
  gdouble found = gtorch_tensor_item_double_finish (GTORCH_TENSOR (source), result, NULL);

  if (found != 0)
    g_signal_emit (self, signals[OVERFLOWED], 0, NULL);
}

/* For a capturable scaler: reports an overflow later, if a handler is connected. */
static void
tell_later (GTorchGradScaler *self, GTorchImpl *found)
{
  g_autoptr (GTorchTensor) tensor = NULL;

  if (!self->capturable || self->owner != g_thread_self ()
      || !g_signal_has_handler_pending (self, signals[OVERFLOWED], 0, FALSE)
      || gtorch_stream_is_capturing (gtorch_stream_get_current (found->storage->device)))
    return;
  tensor = gtorch_tensor_wrap (gtorch_impl_ref (found));
  gtorch_tensor_item_double_async (tensor, NULL, maybe_emit_overflow, g_object_ref (self));
}

/* Checks the value as well, if that does not need a wait. */
static gboolean
check_new_scale (GTorchTensor *new_scale, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (new_scale);

  if (impl->storage != NULL && impl->dtype == GTORCH_DTYPE_FLOAT32 && impl->numel == 1
      && !gtorch_autograd_wanted (&impl, 1))
    {
      const gboolean is_near = gtorch_impl_device (impl) == gtorch_device_cpu ();
      GError *failure = NULL;
      gdouble scale = is_near ? gtorch_tensor_item_double (new_scale, &failure) : 1;

      if (failure == NULL)
        return gtorch_check_range ("update", N_ ("the new scale"), scale, G_MINFLOAT, G_MAXFLOAT,
                                   FALSE, error);
      g_propagate_error (error, failure);
      return FALSE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("update: the new scale must be one float32 that requires no gradient, not %s of "
                  "shape %s"),
               gtorch_dtype_get_name (impl->dtype), gtorch_impl_shape_str (impl));
  return FALSE;
}

/**
 * gtorch_grad_scaler_update:
 * @self: a scaler
 * @new_scale: (nullable): one float32 as the new scale, or %NULL
 * @error: return location for an error
 *
 * Ends an iteration, after the steps of all optimizers: reduces or increases the scale.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if no gradient was checked since the last call, if
 *   nothing was scaled, or if @new_scale is invalid
 *
 * Since: 0.1
 */
gboolean
gtorch_grad_scaler_update (GTorchGradScaler *self, GTorchTensor *new_scale, GError **error)
{
  GTORCH_HOLD_TENSOR (new_scale);
  g_autoptr (GTorchGradGuard) guard = NULL;
  g_autoptr (GPtrArray) founds = NULL;
  g_autoptr (GTorchImpl) all = NULL;
  g_autoptr (GTorchImpl) near = NULL;
  GHashTableIter iter;
  gpointer value;
  guint i;

  g_return_val_if_fail (GTORCH_IS_GRAD_SCALER (self), FALSE);
  g_return_val_if_fail (new_scale == NULL || GTORCH_IS_TENSOR (new_scale), FALSE);
  if (!self->enabled)
    return TRUE;
  if (!check_scale (self, "update", error))
    return FALSE;
  if (new_scale != NULL)
    {
      g_autoptr (GTorchImpl) single = NULL;
      GTorchImpl *impl = gtorch_tensor_unwrap (new_scale);

      if (!check_new_scale (new_scale, error))
        return FALSE;
      single = gtorch_op_reshape (impl, NULL, 0, error);
      if (single == NULL || !gtorch_op_copy_inplace (self->scale, single, FALSE, error))
        return FALSE;
      g_hash_table_remove_all (self->optimizers);
      return TRUE;
    }
  guard = gtorch_no_grad ();
  founds = g_ptr_array_new ();
  g_hash_table_iter_init (&iter, self->optimizers);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    for (i = 0; i < ((Progress *) value)->founds->len; i++)
      g_ptr_array_add (founds, ((Progress *) value)->founds->pdata[i]);
  if (founds->len == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("update: no gradients were checked since the last update: call step or "
                      "unscale first"));
      return FALSE;
    }
  all = combine (founds, error);
  near = all != NULL ? gtorch_op_to_device (all, self->scale->storage->device, FALSE, error) : NULL;
  if (near == NULL
      || !gtorch_op_amp_update_scale_inplace (self->scale, self->tracker, near, self->growth_factor,
                                              self->backoff_factor, self->growth_interval, error))
    return FALSE;
  tell_later (self, near);
  g_hash_table_remove_all (self->optimizers);
  return TRUE;
}
