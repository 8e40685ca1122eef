/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Copies and sums of many tensors at once, in buffers. One function of autograd has all of them: the gradient
 * of a copy to several devices is a sum over these, and the other way round, so that gradients go in buffers,
 * too. */

#include "config.h"

#include "distributed/gtorch-comm.h"
#include "distributed/gtorch-comm-private.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-function.h"
#include "base/gtorch-error.h"
#include "device/gtorch-device-private.h"
#include "distributed/gtorch-engine-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-tensor-private.h"

/* --- buffers --- */

static GTorchImpl *
impl_of (gpointer tensor)
{
  return gtorch_tensor_unwrap (tensor);
}

/* Those of one dtype go together, until they have `buffer_size` bytes. Returns lists of positions. */
static GPtrArray *
group_tensors (GTorchTensor **tensors, gsize n, gsize buffer_size)
{
  GPtrArray *chunks = g_ptr_array_new_with_free_func ((GDestroyNotify) g_array_unref);
  GArray *open[GTORCH_N_DTYPES] = { NULL };
  gsize sizes[GTORCH_N_DTYPES] = { 0 };
  gsize i;

  for (i = 0; i < n; i++)
    {
      const GTorchImpl *impl = impl_of (tensors[i]);
      const guint dtype = impl->dtype;

      if (open[dtype] == NULL)
        {
          open[dtype] = g_array_new (FALSE, FALSE, sizeof (gsize));
          sizes[dtype] = 0;
          g_ptr_array_add (chunks, open[dtype]);
        }
      g_array_append_val (open[dtype], i);
      sizes[dtype] += gtorch_impl_n_bytes (impl);
      if (sizes[dtype] >= buffer_size)
        open[dtype] = NULL;
    }
  return chunks;
}

/* Joins the tensors at these positions. */
static GTorchTensor *
flatten (GTorchTensor **tensors, GArray *positions, GError **error)
{
  g_autoptr (GPtrArray) flat = g_ptr_array_new_full (positions->len, g_object_unref);
  const gint64 all = -1;
  guint i;

  for (i = 0; i < positions->len; i++)
    {
      GTorchTensor *one =
          gtorch_tensor_reshape (tensors[g_array_index (positions, gsize, i)], &all, 1, error);

      if (one == NULL)
        return NULL;
      g_ptr_array_add (flat, one);
    }
  return gtorch_cat ((GTorchTensor **) flat->pdata, flat->len, 0, error);
}

/* Sets the tensors at these positions to views of a buffer, with the shapes of others. */
static gboolean
unflatten (GTorchTensor *flat, GTorchTensor **like, GArray *positions, GTorchTensor **results,
           GError **error)
{
  gint64 start = 0;
  guint i;

  for (i = 0; i < positions->len; i++)
    {
      const gsize at = g_array_index (positions, gsize, i);
      const GTorchImpl *impl = impl_of (like[at]);
      g_autoptr (GTorchTensor) part = gtorch_tensor_narrow (flat, 0, start, impl->numel, error);

      results[at] =
          part == NULL ? NULL : gtorch_tensor_view (part, impl->shape, impl->n_dims, error);
      if (results[at] == NULL)
        return FALSE;
      start += impl->numel;
    }
  return TRUE;
}

static void
unref_some (gpointer tensor)
{
  if (tensor != NULL)
    g_object_unref (tensor);
}

static GPtrArray *
new_results (gsize n)
{
  GPtrArray *results = g_ptr_array_new_full (n, unref_some);

  g_ptr_array_set_size (results, (gint) n);
  return results;
}

/* --- both directions --- */

/* The devices are others than that of the tensors. */
static GPtrArray *
send (GTorchTensor **tensors, gsize n, GTorchDevice *const *devices, gsize n_devices,
      gsize buffer_size, GError **error)
{
  g_autoptr (GPtrArray) chunks = group_tensors (tensors, n, buffer_size);
  g_autoptr (GPtrArray) results = new_results (n * n_devices);
  gsize k;
  guint c;

  for (c = 0; c < chunks->len; c++)
    {
      GArray *chunk = chunks->pdata[c];
      const gsize first = g_array_index (chunk, gsize, 0);
      g_autoptr (GTorchTensor) flat =
          chunk->len == 1 ? g_object_ref (tensors[first]) : flatten (tensors, chunk, error);

      if (flat == NULL)
        return NULL;
      for (k = 0; k < n_devices; k++)
        {
          gpointer *to = results->pdata + k * n;
          g_autoptr (GTorchTensor) there = gtorch_tensor_to_device (flat, devices[k], FALSE, error);

          if (there == NULL)
            return NULL;
          if (chunk->len == 1)
            to[first] = g_steal_pointer (&there);
          else if (!unflatten (there, tensors, chunk, (GTorchTensor **) to, error))
            return NULL;
        }
    }
  return g_steal_pointer (&results);
}

/* Are those of all lists alike, so that buffers of them can be added? */
static gboolean
are_alike (GTorchTensor **inputs, gsize n, gsize n_lists, GArray *chunk)
{
  gsize k;
  guint i;

  for (i = 0; i < chunk->len; i++)
    for (k = 1; k < n_lists; k++)
      {
        const gsize at = g_array_index (chunk, gsize, i);
        const GTorchImpl *a = impl_of (inputs[at]), *b = impl_of (inputs[k * n + at]);

        if (a->dtype != b->dtype || !gtorch_impl_same_shape (a, b))
          return FALSE;
      }
  return TRUE;
}

static GTorchTensor *
add_buffers (GTorchTensor **inputs, gsize n, gsize n_lists, GArray *chunk, GTorchDevice *device,
             GError **error)
{
  g_autoptr (GPtrArray) flats = g_ptr_array_new_full (n_lists, g_object_unref);
  gsize k;

  for (k = 0; k < n_lists; k++)
    {
      GTorchTensor *flat = flatten (inputs + k * n, chunk, error);

      if (flat == NULL)
        return NULL;
      g_ptr_array_add (flats, flat);
    }
  return gtorch_comm_reduce_add ((GTorchTensor **) flats->pdata, n_lists, device, error);
}

static GPtrArray *
add_up (GTorchTensor **inputs, gsize n, gsize n_lists, GTorchDevice *device, gsize buffer_size,
        GError **error)
{
  g_autoptr (GPtrArray) chunks = group_tensors (inputs, n, buffer_size);
  g_autoptr (GPtrArray) results = new_results (n);
  g_autofree GTorchTensor **some = g_new (GTorchTensor *, n_lists);
  gsize k;
  guint c, i;

  for (c = 0; c < chunks->len; c++)
    {
      GArray *chunk = chunks->pdata[c];

      if (chunk->len > 1 && are_alike (inputs, n, n_lists, chunk))
        {
          g_autoptr (GTorchTensor) total = add_buffers (inputs, n, n_lists, chunk, device, error);

          if (total == NULL
              || !unflatten (total, inputs, chunk, (GTorchTensor **) results->pdata, error))
            return NULL;
          continue;
        }
      for (i = 0; i < chunk->len; i++) /* reduce_add () tells what is wrong */
        {
          const gsize at = g_array_index (chunk, gsize, i);

          for (k = 0; k < n_lists; k++)
            some[k] = inputs[k * n + at];
          results->pdata[at] = gtorch_comm_reduce_add (some, n_lists, device, error);
          if (results->pdata[at] == NULL)
            return NULL;
        }
    }
  return g_steal_pointer (&results);
}

/* --- autograd --- */

typedef struct
{
  GTorchFunction parent_instance;
  gboolean is_sum;
  GTorchDevice **devices; /* of copies, or of the inputs of a sum, list for list */
  gsize n_devices;
  GTorchDevice *device; /* of the tensors that are copied, or of the sums */
  gsize buffer_size;
} GTorchCommFunction;

typedef GTorchFunctionClass GTorchCommFunctionClass;

static GType gtorch_comm_function_get_type (void);

G_DEFINE_TYPE (GTorchCommFunction, gtorch_comm_function, GTORCH_TYPE_FUNCTION)

static GPtrArray *
gtorch_comm_function_forward (GTorchFunction *function, GTorchFunctionContext *context,
                              GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GTorchCommFunction *self = (GTorchCommFunction *) function;

  return self->is_sum
             ? add_up (inputs, n_inputs / self->n_devices, self->n_devices, self->device,
                       self->buffer_size, error)
             : send (inputs, n_inputs, self->devices, self->n_devices, self->buffer_size, error);
}

static GPtrArray *
gtorch_comm_function_backward (GTorchFunction *function, GTorchFunctionContext *context,
                               GTorchTensor **grads, gsize n_grads, GError **error)
{
  GTorchCommFunction *self = (GTorchCommFunction *) function;

  return self->is_sum ? gtorch_comm_broadcast_coalesced (grads, n_grads, self->devices,
                                                         self->n_devices, self->buffer_size, error)
                      : gtorch_comm_reduce_add_coalesced (grads, n_grads, self->n_devices,
                                                          self->device, self->buffer_size, error);
}

static void
gtorch_comm_function_finalize (GObject *object)
{
  g_free (((GTorchCommFunction *) object)->devices);
  G_OBJECT_CLASS (gtorch_comm_function_parent_class)->finalize (object);
}

static void
gtorch_comm_function_class_init (GTorchCommFunctionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_comm_function_finalize;
  klass->forward = gtorch_comm_function_forward;
  klass->backward = gtorch_comm_function_backward;
}

static void
gtorch_comm_function_init (GTorchCommFunction *self)
{
}

/* Takes ownership of the devices. */
static GPtrArray *
apply (gboolean is_sum, GTorchDevice **devices, gsize n_devices, GTorchDevice *device,
       gsize buffer_size, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  GTorchCommFunction *self = g_object_new (gtorch_comm_function_get_type (), NULL);
  g_autoptr (GTorchFunction) owned = GTORCH_FUNCTION (self);

  self->is_sum = is_sum;
  self->devices = devices;
  self->n_devices = n_devices;
  self->device = device;
  self->buffer_size = buffer_size;
  return gtorch_function_apply (owned, inputs, n_inputs, error);
}

/* --- the public functions --- */

static gboolean
check_one_device (GTorchTensor **tensors, gsize n, GError **error)
{
  GTorchDevice *device = gtorch_impl_device (impl_of (tensors[0]));
  gsize i;

  for (i = 1; i < n; i++)
    if (gtorch_impl_device (impl_of (tensors[i])) != device)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                     _ ("comm_broadcast_coalesced: the tensors must be on one device, not %s and "
                        "%s"),
                     gtorch_device_name (device),
                     gtorch_device_name (gtorch_impl_device (impl_of (tensors[i]))));
        return FALSE;
      }
  return TRUE;
}

/**
 * gtorch_comm_broadcast_coalesced:
 * @tensors: (array length=n_tensors): tensors of one device
 * @n_tensors: the number of @tensors, 1 or more
 * @devices: (array length=n_devices): where copies are made
 * @n_devices: the number of @devices, 1 or more
 * @buffer_size: the size of a buffer in bytes; PyTorch has 10 MiB
 * @error: return location for an error
 *
 * Copies several tensors to several devices. Those of one dtype are copied together, in buffers of about
 * @buffer_size bytes, of which the results are views; so a change in place of one of them is one of all for
 * what is saved for backward passes. On their own device they are the tensors themselves. The gradients of
 * the copies are added up, in such buffers, too.
 *
 * ```python
 * copies = GTorch.comm_broadcast_coalesced(weights, devices, 10 << 20)
 * of_second = copies[len(weights):2 * len(weights)]
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): the tensors of the first device, then those of
 *   the second, and so on; or %NULL with @error set: %GTORCH_ERROR_DEVICE_MISMATCH if the tensors are on
 *   several devices
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_comm_broadcast_coalesced (GTorchTensor **tensors, gsize n_tensors, GTorchDevice **devices,
                                 gsize n_devices, gsize buffer_size, GError **error)
{
  const gchar *const name = "comm_broadcast_coalesced";
  g_autofree GTorchDevice **others = NULL;
  g_autoptr (GPtrArray) results = NULL, copies = NULL;
  GTorchDevice *own;
  gsize n_others = 0, next = 0, k, i;

  g_return_val_if_fail (gtorch_are_tensors (tensors, n_tensors), NULL);
  g_return_val_if_fail (gtorch_are_devices (devices, n_devices), NULL);
  if (!gtorch_comm_check_some (name, n_tensors, N_ ("tensors"), error)
      || !gtorch_comm_check_some (name, n_devices, N_ ("devices"), error)
      || !check_one_device (tensors, n_tensors, error))
    return NULL;
  own = gtorch_impl_device (impl_of (tensors[0]));
  others = g_new (GTorchDevice *, n_devices);
  for (k = 0; k < n_devices; k++)
    if (gtorch_device_resolved (devices[k]) != own)
      others[n_others++] = gtorch_device_resolved (devices[k]);
  if (n_others > 0)
    {
      copies = apply (FALSE, g_memdup2 (others, n_others * sizeof *others), n_others, own,
                      buffer_size, tensors, n_tensors, error);
      if (copies == NULL)
        return NULL;
    }
  results = g_ptr_array_new_full (n_devices * n_tensors, g_object_unref);
  for (k = 0; k < n_devices; k++)
    {
      const gboolean is_own = gtorch_device_resolved (devices[k]) == own;

      for (i = 0; i < n_tensors; i++)
        g_ptr_array_add (results, g_object_ref (is_own ? (gpointer) tensors[i]
                                                       : copies->pdata[next * n_tensors + i]));
      next += !is_own;
    }
  return g_steal_pointer (&results);
}

/**
 * gtorch_comm_reduce_add_coalesced:
 * @inputs: (array length=n_inputs): the tensors of the first list, then those of the second, and so on; the
 *   tensors of a list are on one device
 * @n_inputs: the number of @inputs, a multiple of @n_lists
 * @n_lists: the number of lists, 1 or more
 * @destination: (nullable): where the sums are computed, or %NULL for the current device of the type of the
 *   first tensor's
 * @buffer_size: the size of a buffer in bytes; PyTorch has 10 MiB
 * @error: return location for an error
 *
 * Adds up the first tensors of all lists, the second ones, and so on, as [func@comm_reduce_add] does. Tensors
 * of one dtype are copied and added together, in buffers of about @buffer_size bytes, of which the results
 * are views.
 *
 * ```python
 * sums = GTorch.comm_reduce_add_coalesced([*grads_of_first, *grads_of_second], 2, None, 10 << 20)
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): as many sums as a list has tensors, or %NULL
 *   with @error set: %GTORCH_ERROR_SHAPE if the shapes of tensors that are added differ
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_comm_reduce_add_coalesced (GTorchTensor **inputs, gsize n_inputs, gsize n_lists,
                                  GTorchDevice *destination, gsize buffer_size, GError **error)
{
  const gchar *const name = "comm_reduce_add_coalesced";
  gsize n = n_lists > 0 ? n_inputs / n_lists : 0, k, i;
  g_autofree GTorchDevice **devices = NULL;
  GTorchDevice *device;
  gboolean is_uniform = TRUE;

  g_return_val_if_fail (gtorch_are_tensors (inputs, n_inputs), NULL);
  g_return_val_if_fail (destination == NULL || GTORCH_IS_DEVICE (destination), NULL);
  if (!gtorch_comm_check_some (name, n_inputs, N_ ("tensors"), error))
    return NULL;
  if (n_lists == 0 || n_inputs % n_lists != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: %zu tensors do not make up %zu lists of equal length"), name, n_inputs,
                   n_lists);
      return NULL;
    }
  device = destination != NULL
               ? gtorch_device_resolved (destination)
               : gtorch_device_get_current (gtorch_device_get_device_type (
                                                gtorch_impl_device (impl_of (inputs[0]))),
                                            error);
  if (device == NULL)
    return NULL;
  devices = g_new (GTorchDevice *, n_lists);
  for (k = 0; k < n_lists; k++)
    {
      devices[k] = gtorch_impl_device (impl_of (inputs[k * n]));
      for (i = 1; i < n; i++)
        is_uniform &= gtorch_impl_device (impl_of (inputs[k * n + i])) == devices[k];
    }
  /* operations alone, whose gradients go back one by one */
  if (n_lists == 1 || !is_uniform)
    return add_up (inputs, n, n_lists, device, is_uniform ? buffer_size : 0, error);
  return apply (TRUE, g_steal_pointer (&devices), n_lists, device, buffer_size, inputs, n_inputs,
                error);
}
