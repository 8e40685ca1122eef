/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Mixed precision. The operation's row says what is cast.
 *
 * Several operations of a region may use the same parameter, so casts of parameters are cached until the
 * outermost region ends. A cached cast is used only while the parameter has the elements that it was made
 * from, and a cast made without recording gradients is not used where they are recorded. Nothing is cached
 * while a graph is captured, since results of the capture have no values before a replay. */

#include "config.h"

#include "dispatch/gtorch-autocast-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "tensor/gtorch-recorder-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "base/gtorch-callback-private.h"
#include "stream/gtorch-capturing-private.h"
#include "device/gtorch-device-private.h"
#include "gtorch-ops-private.h"

/**
 * GTorchAutocastGuard:
 *
 * Computes in mixed precision while it lasts: each operation of this thread uses the dtype that suits it.
 *
 * Matrix products and convolutions cast their float32 inputs to float16 or bfloat16, operations that need
 * the range or the precision of float32 cast their inputs to float32, and a few operations with several
 * tensors cast them to the widest dtype among them; the documentation of an operation says which of these
 * it does. All others use their inputs unchanged. Tensors of float64 and integers, and results written in
 * place are never cast. Gradients are computed in the dtypes of the forward pass, and those of parameters
 * have the parameters' dtypes: the backward pass turns autocast off by itself.
 *
 * In C, `g_autoptr` ends it at the end of the block. Languages with a garbage collector call
 * [method@AutocastGuard.end]. Guards nest; the innermost one applies to its type of device. They may end in
 * any order.
 *
 * ```c
 * {
 *   g_autoptr (GTorchAutocastGuard) guard =
 *       gtorch_autocast_guard_new (GTORCH_DEVICE_TYPE_CPU, GTORCH_DTYPE_BFLOAT16, TRUE, TRUE, &error);
 *
 *   output = gtorch_module_forward (model, input, &error);
 *   loss = gtorch_tensor_cross_entropy (output, target, NULL, GTORCH_REDUCTION_MEAN, -100, 0, &error);
 * }
 * gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchAutocastGuard
{
  GTorchGuard parent;
};

G_DEFINE_BOXED_TYPE (GTorchAutocastGuard, gtorch_autocast_guard, gtorch_autocast_guard_ref,
                     gtorch_autocast_guard_unref)

/* --- regions --- */

static void
change_to (GTorchChange *change, GTorchAutocastDTypes dtypes, gboolean is_lean)
{
  guint i;

  gtorch_change_begin (change);
  for (i = 0; i < GTORCH_N_DEVICE_TYPES; i++)
    gtorch_change_byte (change, &gtorch_thread.autocast.dtypes[i], dtypes.dtypes[i]);
  gtorch_change_byte (change, &gtorch_thread.autocast_is_lean, is_lean);
}

void
gtorch_autocast_get (GTorchAutocastRegion *region)
{
  region->dtypes = gtorch_thread.autocast;
  region->is_lean = gtorch_thread.autocast_is_lean;
}

void
gtorch_autocast_change_to (GTorchChange *change, const GTorchAutocastRegion *region)
{
  change_to (change, region->dtypes, region->is_lean);
}

void
gtorch_autocast_change_to_off (GTorchChange *change)
{
  change_to (change, (GTorchAutocastDTypes){ .any = 0 }, FALSE);
}

void
gtorch_autocast_region_ended (void)
{
  if (--gtorch_thread.n_regions == 0)
    gtorch_clear_autocast_cache ();
}

/* --- the cache of casts --- */

typedef struct
{
  GTorchImpl *impl;
  GTorchImpl *cast;
  GTorchStorage *storage;
  guint version;
  gboolean has_history;
} Kept;

static __thread GHashTable *kept_casts; /* cached casts by impl */

static void
kept_free (gpointer data)
{
  Kept *kept = data;

  gtorch_impl_unref (kept->impl);
  gtorch_impl_unref (kept->cast);
  gtorch_storage_unref (kept->storage);
  g_free (kept);
}

static gboolean
is_kept (GTorchImpl *impl)
{
  GTorchAutograd *autograd = impl->autograd;

  return impl->dtype == GTORCH_DTYPE_FLOAT32 && autograd != NULL && autograd->requires_grad
         && autograd->grad_fn == NULL && autograd->base == NULL;
}

static GTorchImpl *
cast_and_keep (GTorchImpl *impl, guint dtype, GError **error)
{
  g_autoptr (GTorchCapture) capture =
      gtorch_stream_dup_capture (gtorch_current_stream (impl->storage->device));
  guint version = g_atomic_int_get (&impl->storage->version);
  gboolean has_history = gtorch_is_grad_enabled ();
  GTorchImpl *cast;
  Kept *kept;

  if (capture != NULL)
    return gtorch_op_to_dtype (impl, dtype, error);
  kept = kept_casts != NULL ? g_hash_table_lookup (kept_casts, impl) : NULL;
  if (kept != NULL && kept->cast->dtype == dtype && kept->storage == impl->storage
      && kept->version == version && kept->has_history >= has_history)
    return gtorch_impl_ref (kept->cast);
  cast = gtorch_op_to_dtype (impl, dtype, error);
  if (cast == NULL)
    return NULL;
  kept = g_new (Kept, 1);
  kept->impl = gtorch_impl_ref (impl);
  kept->cast = gtorch_impl_ref (cast);
  kept->storage = gtorch_storage_ref (impl->storage);
  kept->version = version;
  kept->has_history = has_history;
  if (kept_casts == NULL)
    {
      gtorch_thread_clean_up_later ();
      kept_casts = g_hash_table_new_full (NULL, NULL, NULL, kept_free);
    }
  g_hash_table_replace (kept_casts, impl, kept);
  return cast;
}

/**
 * gtorch_clear_autocast_cache:
 *
 * Drops the casts of parameters that this thread has cached for later operations of a region.
 *
 * The end of the outermost [struct@AutocastGuard] does the same.
 *
 * Since: 0.1
 */
void
gtorch_clear_autocast_cache (void)
{
  g_clear_pointer (&kept_casts, g_hash_table_unref);
}

/* --- calls --- */

gboolean
gtorch_autocast_takes (const GTorchImpl *impl, guint device_type)
{
  return impl != NULL && !gtorch_impl_is_released (impl) && !impl->is_number
         && gtorch_impl_device (impl)->type == device_type
         && gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_FLOAT
         && impl->dtype != GTORCH_DTYPE_FLOAT64;
}

/* Returns the policy for the first device type with an input, GPUs first, since inputs on the CPU may be
 * scalars. */
static guint
find_policy (const GTorchOpClass *op, GTorchImpl *const *inputs, guint n_inputs, guint *device_type)
{
  guint type, i;

  for (type = GTORCH_N_DEVICE_TYPES; type-- > 0;)
    {
      if (gtorch_thread.autocast.dtypes[type] == GTORCH_DTYPE_NONE)
        continue;
      for (i = 0; i < n_inputs; i++)
        if (inputs[i] != NULL && !gtorch_impl_is_released (inputs[i]) && !inputs[i]->is_number
            && gtorch_impl_device (inputs[i])->type == type)
          {
            *device_type = type;
            return (op->autocast >> (8 * gtorch_backends[type]->autocast_like)) & 0xff;
          }
    }
  return GTORCH_AUTOCAST_NONE;
}

static guint
widest (GTorchImpl *const *inputs, guint n_inputs, guint device_type)
{
  guint dtype = GTORCH_DTYPE_NONE, i;

  for (i = 0; i < n_inputs; i++)
    if (gtorch_autocast_takes (inputs[i], device_type))
      dtype = gtorch_dtype_promote (dtype, inputs[i]->dtype);
  return dtype;
}

gboolean
gtorch_autocast_begin (GTorchAutocastCall *call, const GTorchOpClass *op, GTorchImpl *const *inputs,
                       guint n_inputs, GError **error)
{
  guint device_type = 0, dtype, i;
  guint policy = find_policy (op, inputs, n_inputs, &device_type);
  GTorchImpl **cast;

  call->inputs = inputs;
  call->wants_float32 = FALSE;
  call->is_active = FALSE;
  switch (policy)
    {
    case GTORCH_AUTOCAST_LOWER:
      dtype = gtorch_thread.autocast.dtypes[device_type];
      break;
    case GTORCH_AUTOCAST_FLOAT32:
      dtype = GTORCH_DTYPE_FLOAT32;
      break;
    case GTORCH_AUTOCAST_WIDEST:
      dtype = widest (inputs, n_inputs, device_type);
      break;
    case GTORCH_AUTOCAST_DTYPE:
      call->wants_float32 = gtorch_autocast_takes (inputs[0], device_type);
      dtype = GTORCH_DTYPE_NONE;
      break;
    case GTORCH_AUTOCAST_PLAIN:
      dtype = GTORCH_DTYPE_NONE;
      break;
    case GTORCH_AUTOCAST_REFUSED:
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: not safe in an autocast region, since its gradient leaves the range of "
                      "%s: "
                      "leave out the sigmoid before it and use binary_cross_entropy_with_logits, "
                      "or "
                      "call it with float32 tensors in a region that is not enabled"),
                   op->name, gtorch_dtype_get_name (gtorch_thread.autocast.dtypes[device_type]));
      return FALSE;
    default:
      return TRUE;
    }

  call->n_inputs = n_inputs;
  call->owned =
      2 * n_inputs <= G_N_ELEMENTS (call->room) ? call->room : g_new (GTorchImpl *, 2 * n_inputs);
  cast = call->owned + n_inputs;
  for (i = 0; i < n_inputs; i++)
    {
      call->owned[i] = NULL;
      cast[i] = inputs[i];
      if (dtype == GTORCH_DTYPE_NONE || !gtorch_autocast_takes (inputs[i], device_type)
          || inputs[i]->dtype == dtype)
        continue;
      call->owned[i] =
          policy == GTORCH_AUTOCAST_LOWER && !gtorch_thread.autocast_is_lean && is_kept (inputs[i])
              ? cast_and_keep (inputs[i], dtype, error)
              : gtorch_op_to_dtype (inputs[i], dtype, error);
      if (call->owned[i] == NULL)
        {
          gtorch_impl_clear (call->owned, i);
          if (call->owned != call->room)
            g_free (call->owned);
          gtorch_error_set_op (error, op->name);
          return FALSE;
        }
      cast[i] = call->owned[i];
    }
  call->inputs = cast;
  call->is_active = TRUE;
  gtorch_autocast_change_to_off (&call->off);
  return TRUE;
}

void
gtorch_autocast_end (GTorchAutocastCall *call)
{
  if (!call->is_active)
    return;
  gtorch_change_end (&call->off);
  gtorch_impl_clear (call->owned, call->n_inputs);
  if (call->owned != call->room)
    g_free (call->owned);
}

/* --- public functions --- */

/* Returns the dtype of a region for which none was given. */
static guint
default_dtype (GTorchDeviceType device_type)
{
  const GTorchBackend *backend = gtorch_backends[device_type];

  return backend != NULL ? backend->autocast_dtype : GTORCH_DTYPE_BFLOAT16;
}

/**
 * gtorch_autocast_guard_new:
 * @device_type: the type of devices whose tensors are cast
 * @dtype: %GTORCH_DTYPE_FLOAT16 or %GTORCH_DTYPE_BFLOAT16, or %GTORCH_DTYPE_NONE for the default: float16
 *   on GPUs, bfloat16 on the CPU
 * @enabled: %FALSE for a region in which tensors of these devices are not cast
 * @cache_enabled: whether casts of parameters are cached for later operations
 * @error: return location for an error
 *
 * Begins a region of mixed precision in this thread.
 *
 * Inside another region it changes the state of its type of device only. With @cache_enabled the cast of a
 * parameter (a float32 leaf that requires grad) is cached until the outermost region ends, except while a
 * graph is captured.
 *
 * Returns: (transfer full): a guard, or %NULL with %GTORCH_ERROR_DTYPE if @dtype is none of these,
 *   or %GTORCH_ERROR_INVALID if @device_type is no type of device
 *
 * Since: 0.1
 */
GTorchAutocastGuard *
gtorch_autocast_guard_new (GTorchDeviceType device_type, GTorchDType dtype, gboolean enabled,
                           gboolean cache_enabled, GError **error)
{
  GTorchAutocastGuard *guard;

  if ((guint) device_type >= GTORCH_N_DEVICE_TYPES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("autocast: %d is no GTorchDeviceType"), (gint) device_type);
      return NULL;
    }
  if (dtype == GTORCH_DTYPE_NONE)
    dtype = default_dtype (device_type);
  if ((guint) dtype >= GTORCH_N_DTYPES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE, _ ("autocast: %d is not a dtype"),
                   (gint) dtype);
      return NULL;
    }
  if (enabled && dtype != GTORCH_DTYPE_FLOAT16 && dtype != GTORCH_DTYPE_BFLOAT16)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("autocast: operations are cast to float16 or bfloat16, not to %s"),
                   gtorch_dtype_get_name (dtype));
      return NULL;
    }
  guard = gtorch_guard_new (sizeof *guard, gtorch_autocast_region_ended);
  gtorch_thread.n_regions++;
  gtorch_change_byte (&guard->parent.change, &gtorch_thread.autocast.dtypes[device_type],
                      enabled ? dtype : GTORCH_DTYPE_NONE);
  gtorch_change_byte (&guard->parent.change, &gtorch_thread.autocast_is_lean, !cache_enabled);
  return guard;
}

/**
 * gtorch_autocast_guard_end:
 * @guard: a guard
 *
 * Ends the region. Further calls do nothing. If called in another thread than the guard's own, the region
 * ends when its own thread next begins or ends a guard.
 *
 * Since: 0.1
 */
void
gtorch_autocast_guard_end (GTorchAutocastGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_end (guard);
}

/**
 * gtorch_autocast_guard_ref:
 * @guard: a guard
 *
 * Adds a reference.
 *
 * Returns: (transfer full): @guard
 *
 * Since: 0.1
 */
GTorchAutocastGuard *
gtorch_autocast_guard_ref (GTorchAutocastGuard *guard)
{
  g_return_val_if_fail (guard != NULL, NULL);
  return gtorch_guard_ref (guard);
}

/**
 * gtorch_autocast_guard_unref:
 * @guard: (transfer full): a guard
 *
 * Drops a reference; the last one ends the guard.
 *
 * Since: 0.1
 */
void
gtorch_autocast_guard_unref (GTorchAutocastGuard *guard)
{
  g_return_if_fail (guard != NULL);
  gtorch_guard_unref (guard);
}

/**
 * gtorch_autocast_run:
 * @device_type: the type of devices whose tensors are cast
 * @dtype: the dtype to cast to, or %GTORCH_DTYPE_NONE; see [ctor@AutocastGuard.new]
 * @enabled: %FALSE for a region in which tensors of these devices are not cast
 * @cache_enabled: whether casts of parameters are cached for later operations
 * @func: (scope call) (closure user_data): the function to call
 * @user_data: passed to @func
 * @error: return location for an error
 *
 * Calls @func in this thread, in a region of mixed precision.
 *
 * Returns: what @func returned, or %FALSE with the errors of [ctor@AutocastGuard.new]
 *
 * Since: 0.1
 */
gboolean
gtorch_autocast_run (GTorchDeviceType device_type, GTorchDType dtype, gboolean enabled,
                     gboolean cache_enabled, GTorchAutocastFunc func, gpointer user_data,
                     GError **error)
{
  g_autoptr (GTorchAutocastGuard) guard = NULL;
  GError *local = NULL;
  gboolean success;

  g_return_val_if_fail (func != NULL, FALSE);
  guard = gtorch_autocast_guard_new (device_type, dtype, enabled, cache_enabled, error);
  if (guard == NULL)
    return FALSE;
  success = func (user_data, &local);
  return gtorch_callback_ended ("autocast", success, local, error);
}

/**
 * gtorch_is_autocast_enabled:
 * @device_type: a type of device
 *
 * Tells whether this thread is in a region of mixed precision for such devices.
 *
 * Returns: %TRUE if so
 *
 * Since: 0.1
 */
gboolean
gtorch_is_autocast_enabled (GTorchDeviceType device_type)
{
  g_return_val_if_fail ((guint) device_type < GTORCH_N_DEVICE_TYPES, FALSE);
  gtorch_guards_settle ();
  return gtorch_thread.autocast.dtypes[device_type] != GTORCH_DTYPE_NONE;
}

/**
 * gtorch_get_autocast_dtype:
 * @device_type: a type of device
 *
 * Gets the dtype to which tensors on such devices are cast now in this thread.
 *
 * Returns: the dtype, or, outside of regions, the default of [ctor@AutocastGuard.new]
 *
 * Since: 0.1
 */
GTorchDType
gtorch_get_autocast_dtype (GTorchDeviceType device_type)
{
  g_return_val_if_fail ((guint) device_type < GTORCH_N_DEVICE_TYPES, GTORCH_DTYPE_NONE);
  if (gtorch_is_autocast_enabled (device_type))
    return gtorch_thread.autocast.dtypes[device_type];
  return default_dtype (device_type);
}

/**
 * gtorch_is_autocast_cache_enabled:
 *
 * Tells whether casts of parameters are cached in this thread's innermost region.
 *
 * Returns: %TRUE if so, and outside of regions
 *
 * Since: 0.1
 */
gboolean
gtorch_is_autocast_cache_enabled (void)
{
  gtorch_guards_settle ();
  return !gtorch_thread.autocast_is_lean;
}

static void __attribute__ ((constructor)) add_cleanup (void)
{
  gtorch_thread_add_cleanup (gtorch_clear_autocast_cache);
}
