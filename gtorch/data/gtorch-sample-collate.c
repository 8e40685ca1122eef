/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batches of samples. Each tensor of a batch is allocated once, and the samples' elements are written
 * straight to their places in it. */

#include "config.h"

#include "data/gtorch-sample-collate.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "data/gtorch-sample-private.h"
#include "device/gtorch-device-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "dispatch/gtorch-op-private.h"
#include "elements/gtorch-tensor-create.h"
#include "elements/gtorch-tensor-geometry.h"
#include "gtorch-ops-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

typedef struct
{
  GTorchSampleAllocFunc alloc; /* NULL: memory of the library */
  gpointer data;
  GString *path; /* of the part that is being made: [1]["x"] */
} Collation;

/* --- memory --- */

static GPrivate pins_batches; /* of the thread; __thread memory is scarce */

gboolean
gtorch_sample_pin_batches (gboolean pin)
{
  const gboolean former = g_private_get (&pins_batches) != NULL;

  g_private_set (&pins_batches, GINT_TO_POINTER (pin));
  return former;
}

GTorchImpl *
gtorch_sample_alloc (const gchar *op, guint dtype, const gint64 *shape, guint n_dims,
                     GError **error)
{
  GTorchImpl *impl = g_private_get (&pins_batches) != NULL
                         ? gtorch_impl_new_pinned (dtype, shape, n_dims, error)
                         : gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n_dims, error);

  if (impl == NULL)
    g_prefix_error (error, "%s: ", op);
  return impl;
}

static GTorchTensor *
allocate (Collation *self, guint dtype, const gint64 *shape, guint n_dims, GError **error)
{
  g_autoptr (GTorchTensor) tensor = NULL;
  GError *local = NULL;
  GTorchImpl *impl;

  if (self->alloc == NULL)
    return gtorch_tensor_wrap (gtorch_sample_alloc ("collate", dtype, shape, n_dims, error));
  tensor = self->alloc (dtype, shape, n_dims, self->data, &local);
  if (tensor == NULL)
    {
      if (local == NULL)
        g_set_error (&local, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                     _ ("collate: the alloc function failed without an error"));
      g_propagate_error (error, local);
      return NULL;
    }
  impl = gtorch_tensor_get_impl (tensor);
  if (impl->storage == NULL || impl->device != gtorch_device_cpu () || !impl->is_contiguous
      || impl->dtype != dtype || !gtorch_same_shape (impl->shape, impl->n_dims, shape, n_dims))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("collate: the alloc function gave a tensor of %s %s on %s, where a "
                      "contiguous one of %s %s on cpu is wanted"),
                   gtorch_dtype_get_name (impl->dtype), gtorch_impl_shape_str (impl),
                   gtorch_device_name (impl->device), gtorch_dtype_get_name (dtype),
                   gtorch_shape_str (shape, n_dims));
      return NULL;
    }
  if (!gtorch_impl_sync (impl, error))
    return NULL;
  return g_steal_pointer (&tensor);
}

/* --- errors --- */

static gpointer
refuse (Collation *self, GTorchSample **samples, gsize i, gint code, const gchar *rule,
        GError **error)
{
  g_autofree gchar *first = gtorch_sample_describe (samples[0]);
  g_autofree gchar *other = gtorch_sample_describe (samples[i]);
  g_autofree gchar *place =
      self->path->len > 0 ? g_strdup_printf (_ (" at %s"), self->path->str) : g_strdup ("");

  if (i == 0)
    g_set_error (error, GTORCH_ERROR, code, _ ("collate: sample 0 is %s%s: %s"), first, place,
                 rule);
  else
    g_set_error (error, GTORCH_ERROR, code, _ ("collate: sample 0 is %s, and sample %zu %s%s: %s"),
                 first, i, other, place, rule);
  return NULL;
}

/* --- tensors --- */

/* Writes the elements of a tensor to row i of the batch. */
static gboolean
write_row (GTorchImpl *batch, gsize i, GTorchTensor *tensor, GError **error)
{
  GTORCH_HOLD_TENSOR (tensor);
  g_autoptr (GTorchImpl) row = NULL;
  GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  const gint64 offset = (gint64) i * impl->numel;

  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("collate: the tensor of sample %zu, of shape %s, was released"), i,
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  if (impl->is_contiguous && impl->device == gtorch_device_cpu ())
    {
      if (!gtorch_impl_sync (impl, error))
        return FALSE;
      if (impl->numel > 0)
        memcpy ((gchar *) gtorch_impl_data (batch) + offset * gtorch_dtype_size (impl->dtype),
                gtorch_impl_data (impl), gtorch_impl_n_bytes (impl));
      return TRUE;
    }
  row = gtorch_impl_new_strided (batch->storage, batch->dtype, batch->offset + offset, impl->shape,
                                 NULL, impl->n_dims);
  return gtorch_op_copy_inplace (row, impl, FALSE, error);
}

static GTorchTensor *
stack (Collation *self, GTorchSample **samples, gsize n, GError **error)
{
  const GTorchImpl *first = gtorch_tensor_get_impl (samples[0]->tensor);
  g_autofree GTorchTensor **tensors = g_new (GTorchTensor *, n);
  g_autoptr (GTorchTensor) batch = NULL;
  gint64 shape[GTORCH_MAX_DIMS + 1];
  gboolean needs_op = FALSE;
  gsize i;

  for (i = 0; i < n; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_get_impl (samples[i]->tensor);

      tensors[i] = samples[i]->tensor;
      if (!gtorch_impl_same_shape (impl, first))
        return refuse (self, samples, i, GTORCH_ERROR_SHAPE, _ ("the shapes must be equal"), error);
      if (impl->dtype != first->dtype)
        return refuse (self, samples, i, GTORCH_ERROR_DTYPE, _ ("the dtypes must be equal"), error);
      needs_op = needs_op || impl->device != gtorch_device_cpu ()
                 || (gtorch_is_grad_enabled () && gtorch_tensor_get_requires_grad (tensors[i]));
    }
  if (first->n_dims == GTORCH_MAX_DIMS)
    return refuse (self, samples, 0, GTORCH_ERROR_SHAPE, _ ("a batch has one dimension more"),
                   error);
  if (needs_op && self->alloc == NULL && g_private_get (&pins_batches) == NULL)
    return gtorch_stack (tensors, n, 0, error);
  shape[0] = n;
  memcpy (shape + 1, first->shape, first->n_dims * sizeof (gint64));
  batch = allocate (self, first->dtype, shape, first->n_dims + 1, error);
  if (batch == NULL)
    return NULL;
  {
    g_autoptr (GTorchGradGuard) guard = needs_op ? gtorch_no_grad () : NULL;

    for (i = 0; i < n; i++)
      if (!write_row (gtorch_tensor_get_impl (batch), i, tensors[i], error))
        return NULL;
  }
  return g_steal_pointer (&batch);
}

GTorchTensor *
gtorch_sample_select_rows (GTorchTensor *rows, const gint64 *indices, gsize n, GError **error)
{
  GTORCH_HOLD_TENSOR (rows);
  const GTorchAttr first_dim = { .i = 0 };
  GTorchImpl *impl = gtorch_tensor_unwrap (rows);
  g_autoptr (GTorchTensor) index =
      gtorch_tensor_new_from_ints (indices, n, (gint64[]){ n }, 1, GTORCH_DTYPE_INT64,
                                   gtorch_impl_device (impl), error);
  g_autoptr (GTorchImpl) batch = NULL;
  GTorchImpl *inputs[] = { impl, NULL };
  gint64 shape[GTORCH_MAX_DIMS];

  if (index == NULL)
    return NULL;
  if (g_private_get (&pins_batches) == NULL || impl->device != gtorch_device_cpu ()
      || impl->autograd != NULL)
    return gtorch_tensor_index_select (rows, 0, index, error);
  memcpy (shape, impl->shape, impl->n_dims * sizeof (gint64));
  shape[0] = n;
  inputs[1] = gtorch_tensor_unwrap (index);
  batch = gtorch_sample_alloc ("tensor_dataset", impl->dtype, shape, impl->n_dims, error);
  if (batch == NULL
      || !gtorch_op_run_into (&gtorch_ops[GTORCH_OP_INDEX_SELECT], inputs, 2, &first_dim, batch,
                              error))
    return NULL;
  return gtorch_tensor_wrap (g_steal_pointer (&batch));
}

/* --- numbers --- */

static gboolean
is_number (GTorchSample *sample)
{
  return sample->kind == GTORCH_SAMPLE_INT || sample->kind == GTORCH_SAMPLE_DOUBLE
         || sample->kind == GTORCH_SAMPLE_BOOL;
}

/* Integers and booleans among numbers are numbers, booleans among integers 1 and 0. */
static GTorchTensor *
gather_numbers (Collation *self, GTorchSample **samples, gsize n, GError **error)
{
  const gint64 shape[] = { (gint64) n };
  GTorchDType dtype = GTORCH_DTYPE_BOOL;
  GTorchTensor *batch;
  gpointer data;
  gsize i;

  for (i = 0; i < n; i++)
    {
      if (!is_number (samples[i]))
        return refuse (self, samples, i, GTORCH_ERROR_INVALID,
                       _ ("all must be numbers, or none of them"), error);
      if (samples[i]->kind == GTORCH_SAMPLE_DOUBLE)
        dtype = GTORCH_DTYPE_FLOAT64;
      else if (samples[i]->kind == GTORCH_SAMPLE_INT && dtype == GTORCH_DTYPE_BOOL)
        dtype = GTORCH_DTYPE_INT64;
    }
  batch = allocate (self, dtype, shape, 1, error);
  if (batch == NULL)
    return NULL;
  data = gtorch_impl_data (gtorch_tensor_get_impl (batch));
  for (i = 0; i < n; i++)
    if (dtype == GTORCH_DTYPE_FLOAT64)
      ((gdouble *) data)[i] = gtorch_sample_get_double (samples[i]);
    else if (dtype == GTORCH_DTYPE_INT64)
      ((gint64 *) data)[i] = samples[i]->integer;
    else
      ((guint8 *) data)[i] = samples[i]->integer != 0;
  return batch;
}

/* --- structures --- */

static GTorchSample *collate (Collation *self, GTorchSample **samples, gsize n, GError **error);

/* The same part of all samples. */
static GTorchSample *
collate_part (Collation *self, GTorchSample **samples, gsize n, guint part, GTorchSample **parts,
              GError **error)
{
  const gchar *key = samples[0]->keys != NULL ? samples[0]->keys[part] : NULL;
  const gsize length = self->path->len;
  GTorchSample *batch;
  gsize i;

  for (i = 0; i < n; i++)
    {
      parts[i] = key != NULL ? gtorch_sample_lookup (samples[i], key) : samples[i]->children[part];
      if (parts[i] == NULL)
        return refuse (self, samples, i, GTORCH_ERROR_INVALID, _ ("the keys must be equal"), error);
    }
  if (key != NULL)
    g_string_append_printf (self->path, "[\"%s\"]", key);
  else
    g_string_append_printf (self->path, "[%u]", part);
  batch = collate (self, parts, n, error);
  g_string_truncate (self->path, length);
  return batch;
}

static GTorchSample *
transpose (Collation *self, GTorchSample **samples, gsize n, GError **error)
{
  const guint n_parts = samples[0]->n_children;
  g_autofree GTorchSample **parts = g_new (GTorchSample *, n);
  GTorchSample **batches;
  guint part;
  gsize i;

  for (i = 1; i < n; i++)
    if (samples[i]->n_children != n_parts)
      return refuse (self, samples, i, GTORCH_ERROR_INVALID,
                     samples[0]->keys != NULL ? _ ("the keys must be equal")
                                              : _ ("the lengths must be equal"),
                     error);
  batches = g_new0 (GTorchSample *, n_parts + 1);
  for (part = 0; part < n_parts; part++)
    {
      batches[part] = collate_part (self, samples, n, part, parts, error);
      if (batches[part] == NULL)
        {
          while (part-- > 0)
            gtorch_sample_unref (batches[part]);
          g_free (batches);
          return NULL;
        }
    }
  return gtorch_sample_take (batches, n_parts, g_strdupv (samples[0]->keys));
}

static GTorchSample *
collate (Collation *self, GTorchSample **samples, gsize n, GError **error)
{
  const GTorchSampleKind kind = samples[0]->kind;
  GTorchTensor *tensor;
  gsize i;

  if (is_number (samples[0]))
    {
      tensor = gather_numbers (self, samples, n, error);
      return tensor != NULL ? gtorch_sample_take_tensor (tensor) : NULL;
    }
  if (kind == GTORCH_SAMPLE_NONE || kind == GTORCH_SAMPLE_VALUE)
    return refuse (self, samples, 0, GTORCH_ERROR_INVALID,
                   _ ("batches have tensors, numbers, texts, bytes, tuples and dictionaries; "
                      "others need a collate function"),
                   error);
  for (i = 1; i < n; i++)
    if (samples[i]->kind != kind)
      return refuse (self, samples, i, GTORCH_ERROR_INVALID, _ ("the kinds must be equal"), error);
  switch (kind)
    {
    case GTORCH_SAMPLE_TENSOR:
      tensor = stack (self, samples, n, error);
      return tensor != NULL ? gtorch_sample_take_tensor (tensor) : NULL;
    case GTORCH_SAMPLE_TUPLE:
    case GTORCH_SAMPLE_DICT:
      return transpose (self, samples, n, error);
    default:
      return gtorch_sample_new_tuple (samples, n, error);
    }
}

/**
 * gtorch_sample_collate:
 * @samples: (array length=n_samples): at least one sample
 * @n_samples: the length of @samples
 * @error: return location for an error
 *
 * Makes a batch of samples, all of which have the same structure.
 *
 * Tensors are stacked along a new first dimension, in new memory. Integers become a tensor of dtype int64,
 * other numbers one of float64, booleans one of bool. Texts and bytes become a tuple. Of tuples and
 * dictionaries each part becomes a batch: a hundred pairs become one pair of batches.
 *
 * Returns: (transfer full): the batch; %NULL with %GTORCH_ERROR_INVALID if there are no samples, if their
 *   structures differ, or if one is nothing or a value, with %GTORCH_ERROR_SHAPE or %GTORCH_ERROR_DTYPE if
 *   tensors differ, or with %GTORCH_ERROR_OUT_OF_MEMORY
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_collate (GTorchSample **samples, gsize n_samples, GError **error)
{
  return gtorch_sample_collate_with (samples, n_samples, NULL, NULL, error);
}

/**
 * gtorch_sample_collate_with:
 * @samples: (array length=n_samples): at least one sample
 * @n_samples: the length of @samples
 * @alloc: (nullable) (scope call) (closure user_data): returns the tensors that the batch is written to
 * @user_data: data for @alloc
 * @error: return location for an error
 *
 * Does the same as [func@Sample.collate], with memory that a function provides. Gradients are not recorded
 * then.
 *
 * Returns: (transfer full): the batch; %NULL with the errors of [func@Sample.collate] and of @alloc
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_collate_with (GTorchSample **samples, gsize n_samples, GTorchSampleAllocFunc alloc,
                            gpointer user_data, GError **error)
{
  Collation self = { alloc, user_data, NULL };
  GTorchSample *batch;
  gsize i;

  g_return_val_if_fail (samples != NULL || n_samples == 0, NULL);
  if (n_samples == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("collate: a batch has at least one sample"));
      return NULL;
    }
  for (i = 0; i < n_samples; i++)
    if (samples[i] == NULL)
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("collate: sample %zu of %zu is missing"), i, n_samples);
        return NULL;
      }
  self.path = g_string_new (NULL);
  batch = collate (&self, samples, n_samples, error);
  g_string_free (self.path, TRUE);
  return batch;
}
