/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Batches of several data sets as one: the samples of a batch go to their places in the whole. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "data/gtorch-sample-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

typedef struct
{
  const GTorchSamplePart *parts;
  guint n_parts;
  gsize n; /* samples of all parts */
  GString *path;
} Join;

static gpointer
refuse (Join *self, GTorchSample **batches, guint i, gint code, const gchar *rule, GError **error)
{
  g_autofree gchar *first = gtorch_sample_describe (batches[0]);
  g_autofree gchar *other = gtorch_sample_describe (batches[i]);
  g_autofree gchar *place =
      self->path->len > 0 ? g_strdup_printf (_ (" at %s"), self->path->str) : g_strdup ("");

  if (i == 0)
    g_set_error (error, GTORCH_ERROR, code, _ ("concat_dataset: the batch of %s has %s%s: %s"),
                 self->parts[0].name, first, place, rule);
  else
    g_set_error (error, GTORCH_ERROR, code,
                 _ ("concat_dataset: the batch of %s has %s, and that of %s %s%s: %s"),
                 self->parts[0].name, first, self->parts[i].name, other, place, rule);
  return NULL;
}

/* --- tensors --- */

static GTorchSample *
join_tensors (Join *self, GTorchSample **batches, GError **error)
{
  const GTorchImpl *first = gtorch_tensor_get_impl (batches[0]->tensor);
  gint64 shape[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) whole = NULL;

  for (guint i = 0; i < self->n_parts; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_get_impl (batches[i]->tensor);

      if (impl->n_dims == 0 || impl->shape[0] != (gint64) self->parts[i].n)
        return refuse (self, batches, i, GTORCH_ERROR_SHAPE,
                       _ ("the first dimension must be the number of samples"), error);
      if (!gtorch_same_shape (impl->shape + 1, impl->n_dims - 1, first->shape + 1,
                              MAX (first->n_dims, 1) - 1))
        return refuse (self, batches, i, GTORCH_ERROR_SHAPE,
                       _ ("the shapes behind the first dimension must be equal"), error);
      if (impl->dtype != first->dtype)
        return refuse (self, batches, i, GTORCH_ERROR_DTYPE, _ ("the dtypes must be equal"), error);
      if (impl->device != first->device)
        return refuse (self, batches, i, GTORCH_ERROR_DEVICE, _ ("the devices must be equal"),
                       error);
    }
  memcpy (shape, first->shape, first->n_dims * sizeof (gint64));
  shape[0] = self->n;
  whole = first->device == gtorch_device_cpu ()
              ? gtorch_sample_alloc ("concat_dataset", first->dtype, shape, first->n_dims, error)
              : gtorch_op_empty (shape, first->n_dims, first->dtype, first->device, error);
  for (guint i = 0; whole != NULL && i < self->n_parts; i++)
    {
      GTORCH_HOLD_TENSOR (batches[i]->tensor);
      const GTorchSamplePart *part = &self->parts[i];
      g_autoptr (GTorchTensor) index =
          gtorch_tensor_new_from_ints (part->places, part->n, (gint64[]){ part->n }, 1,
                                       GTORCH_DTYPE_INT64, gtorch_impl_device (whole), error);

      if (index == NULL
          || !gtorch_op_index_copy_inplace (whole, 0, gtorch_tensor_unwrap (index),
                                            gtorch_tensor_unwrap (batches[i]->tensor), error))
        return NULL;
    }
  return whole != NULL ? gtorch_sample_take_tensor (gtorch_tensor_wrap (g_steal_pointer (&whole)))
                       : NULL;
}

/* --- structures --- */

static GTorchSample *join (Join *self, GTorchSample **batches, GError **error);

/* Texts and bytes of samples, which no batch has elsewhere. */
static gboolean
is_list (GTorchSample *batch)
{
  return batch->kind == GTORCH_SAMPLE_TUPLE && batch->n_children > 0
         && (batch->children[0]->kind == GTORCH_SAMPLE_STRING
             || batch->children[0]->kind == GTORCH_SAMPLE_BYTES);
}

static GTorchSample *
join_lists (Join *self, GTorchSample **batches, GError **error)
{
  g_autofree GTorchSample **all = g_new0 (GTorchSample *, self->n);

  for (guint i = 0; i < self->n_parts; i++)
    {
      const GTorchSamplePart *part = &self->parts[i];

      if (!is_list (batches[i]) || batches[i]->n_children != part->n)
        return refuse (self, batches, i, GTORCH_ERROR_INVALID,
                       _ ("there must be a text for each sample"), error);
      for (gsize k = 0; k < part->n; k++)
        all[part->places[k]] = batches[i]->children[k];
    }
  return gtorch_sample_new_tuple (all, self->n, error);
}

/* The same part of all batches. */
static GTorchSample *
join_child (Join *self, GTorchSample **batches, guint child, GTorchSample **children,
            GError **error)
{
  const gchar *key = batches[0]->keys != NULL ? batches[0]->keys[child] : NULL;
  const gsize length = self->path->len;
  GTorchSample *whole;

  for (guint i = 0; i < self->n_parts; i++)
    {
      children[i] =
          key != NULL ? gtorch_sample_lookup (batches[i], key) : batches[i]->children[child];
      if (children[i] == NULL)
        return refuse (self, batches, i, GTORCH_ERROR_INVALID, _ ("the keys must be equal"), error);
    }
  if (key != NULL)
    g_string_append_printf (self->path, "[\"%s\"]", key);
  else
    g_string_append_printf (self->path, "[%u]", child);
  whole = join (self, children, error);
  g_string_truncate (self->path, length);
  return whole;
}

static GTorchSample *
join_structures (Join *self, GTorchSample **batches, GError **error)
{
  const guint n = batches[0]->n_children;
  g_autofree GTorchSample **children = g_new (GTorchSample *, self->n_parts);
  GTorchSample **wholes = g_new0 (GTorchSample *, n + 1);

  for (guint i = 0; i < n; i++)
    {
      wholes[i] = join_child (self, batches, i, children, error);
      if (wholes[i] == NULL)
        {
          while (i-- > 0)
            gtorch_sample_unref (wholes[i]);
          g_free (wholes);
          return NULL;
        }
    }
  return gtorch_sample_take (wholes, n, g_strdupv (batches[0]->keys));
}

static GTorchSample *
join (Join *self, GTorchSample **batches, GError **error)
{
  const GTorchSampleKind kind = batches[0]->kind;

  for (guint i = 1; i < self->n_parts; i++)
    if (batches[i]->kind != kind)
      return refuse (self, batches, i, GTORCH_ERROR_INVALID, _ ("the kinds must be equal"), error);
  if (kind == GTORCH_SAMPLE_TENSOR)
    return join_tensors (self, batches, error);
  if (is_list (batches[0]))
    return join_lists (self, batches, error);
  if (kind != GTORCH_SAMPLE_TUPLE && kind != GTORCH_SAMPLE_DICT)
    return refuse (self, batches, 0, GTORCH_ERROR_INVALID,
                   _ ("only tensors, texts and bytes of samples can be joined"), error);
  for (guint i = 1; i < self->n_parts; i++)
    if (batches[i]->n_children != batches[0]->n_children)
      return refuse (self, batches, i, GTORCH_ERROR_INVALID, _ ("the lengths must be equal"),
                     error);
  return join_structures (self, batches, error);
}

GTorchSample *
gtorch_sample_join (GTorchSample **batches, const GTorchSamplePart *parts, guint n_parts,
                    GError **error)
{
  Join self = { parts, n_parts, 0, g_string_new (NULL) };
  GTorchSample *whole;

  for (guint i = 0; i < n_parts; i++)
    self.n += parts[i].n;
  whole = join (&self, batches, error);
  g_string_free (self.path, TRUE);
  return whole;
}
