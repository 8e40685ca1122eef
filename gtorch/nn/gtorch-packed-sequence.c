/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sequences of different lengths in one tensor. Rows are moved by one index each way: packing selects those
 * of a padded tensor, and padding copies them to their places in a tensor of the padding. */

#include "config.h"

#include "nn/gtorch-packed-sequence.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-field-private.h"
#include "base/gtorch-none-private.h"
#include "device/gtorch-scratch-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "elements/gtorch-tensor-create.h"
#include "gtorch-ops-private.h"
#include "gtorch-tensor-ops.h"
#include "nn/gtorch-rnn-private.h"

/**
 * GTorchPackedSequence:
 *
 * Sequences of different lengths, for networks such as [class@LSTM], which then compute no padding.
 *
 * The rows of `data` are the elements of all steps, one step after the other, and `batch_sizes` has the
 * number of elements of each: of sequences in descending order of their lengths. If that is not the order in
 * which they were given, `sorted_indices` has their places there, and `unsorted_indices` leads back.
 *
 * ```c
 * const gint64 lengths[] = { 5, 3 };
 * g_autoptr (GTorchPackedSequence) packed =
 *     gtorch_pack_padded_sequence (x, lengths, 2, FALSE, TRUE, &error);
 * g_autoptr (GTorchPackedSequence) y =
 *     gtorch_packed_sequence_run (packed, GTORCH_RNN_BASE (lstm), NULL, 0, NULL, &error);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchPackedSequence
{
  GObject parent_instance;
  GTorchTensor *data, *batch_sizes, *sorted_indices, *unsorted_indices;
  gint64 *sizes; /* the batch sizes */
  gsize n_sizes;
};

G_DEFINE_TYPE (GTorchPackedSequence, gtorch_packed_sequence, G_TYPE_OBJECT)

static void
gtorch_packed_sequence_finalize (GObject *object)
{
  GTorchPackedSequence *self = GTORCH_PACKED_SEQUENCE (object);

  g_clear_object (&self->data);
  g_clear_object (&self->batch_sizes);
  g_clear_object (&self->sorted_indices);
  g_clear_object (&self->unsorted_indices);
  g_free (self->sizes);
  G_OBJECT_CLASS (gtorch_packed_sequence_parent_class)->finalize (object);
}

typedef GTorchPackedSequence Self;

static const GTorchField fields[] = {
  /**
   * GTorchPackedSequence:data: (getter get_data)
   *
   * The elements of all steps, one step after the other.
   *
   * Since: 0.1
   */
  { "data", GTORCH_PROPERTY_OBJECT (GTorchTensor, gtorch_tensor_get_type,
                                    gtorch_packed_sequence_get_data, NULL) },
  /**
   * GTorchPackedSequence:batch-sizes: (getter get_batch_sizes)
   *
   * The number of elements of each step.
   *
   * Since: 0.1
   */
  { "batch-sizes", GTORCH_PROPERTY_OBJECT (GTorchTensor, gtorch_tensor_get_type,
                                           gtorch_packed_sequence_get_batch_sizes, NULL) },
  /**
   * GTorchPackedSequence:sorted-indices: (getter get_sorted_indices)
   *
   * The places of the sequences before they were sorted by their lengths, or %NULL.
   *
   * Since: 0.1
   */
  { "sorted-indices", GTORCH_PROPERTY_OBJECT (GTorchTensor, gtorch_tensor_get_type,
                                              gtorch_packed_sequence_get_sorted_indices, NULL) },
  /**
   * GTorchPackedSequence:unsorted-indices: (getter get_unsorted_indices)
   *
   * The places of the sequences in the order in which they were given, or %NULL.
   *
   * Since: 0.1
   */
  { "unsorted-indices",
    GTORCH_PROPERTY_OBJECT (GTorchTensor, gtorch_tensor_get_type,
                            gtorch_packed_sequence_get_unsorted_indices, NULL) },
};

static void
gtorch_packed_sequence_class_init (GTorchPackedSequenceClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_packed_sequence_finalize;
  GTORCH_FIELDS (klass, fields);
}

static void
gtorch_packed_sequence_init (GTorchPackedSequence *self)
{
}

/* A bare object, which g_object_new () gives, has no data. */
static gboolean
is_whole (GTorchPackedSequence *self, const gchar *op, GError **error)
{
  if (self->data != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: the packed sequence has no data"),
               op);
  return FALSE;
}

/* --- indices --- */

static GTorchTensor *
indices_new (const gint64 *values, gint64 n, GTorchDevice *device, GError **error)
{
  return gtorch_tensor_new_from_ints (values, (gsize) n, &n, 1, GTORCH_DTYPE_INT64, device, error);
}

/* Returns the permutation that undoes one. */
static GTorchTensor *
invert (GTorchTensor *indices, GError **error)
{
  return indices != NULL ? gtorch_tensor_argsort (indices, -1, FALSE, FALSE, error) : NULL;
}

static GTorchTensor *
permute (GTorchTensor *tensor, gint64 dim, GTorchTensor *indices, GError **error)
{
  return indices != NULL ? gtorch_tensor_index_select (tensor, dim, indices, error)
                         : g_object_ref (tensor);
}

/* Checks the sizes of the batch, and that they are the rows of the data. */
static gboolean
check_sizes (const gint64 *sizes, gsize n, gint64 rows, GError **error)
{
  gint64 rest = rows;

  for (gsize t = 0; t < n; t++)
    {
      if (sizes[t] < 1 || (t > 0 && sizes[t] > sizes[t - 1]) || sizes[t] > rest)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("PackedSequence: batch size %" PRId64
                          " of step %zu does not fit: none is less than 1 or greater than the one "
                          "before, and together they are the %" PRId64 " rows of the data"),
                       sizes[t], t, rows);
          return FALSE;
        }
      rest -= sizes[t];
    }
  if (n > 0 && rest == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("PackedSequence: %zu batch sizes leave %" PRId64 " of the %" PRId64
                  " rows of the data"),
               n, rest, rows);
  return FALSE;
}

static gboolean
check_indices (GTorchTensor *indices, gint64 batch, const gchar *name, GError **error)
{
  GTorchImpl *impl = indices != NULL ? gtorch_tensor_unwrap (indices) : NULL;

  if (impl == NULL
      || (impl->dtype == GTORCH_DTYPE_INT64 && impl->n_dims == 1 && impl->shape[0] == batch))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
               _ ("PackedSequence: %s has dtype %s and shape %s: it must be int64 and "
                  "[%" PRId64 "]"),
               name, gtorch_dtype_get_name (impl->dtype), gtorch_impl_shape_str (impl), batch);
  return FALSE;
}

/* Checks that the indices are those of a permutation; of two, that one is the inverse of the other. */
static gboolean
check_permutation (GTorchTensor *indices, GTorchTensor *inverse, const gchar *name, GError **error)
{
  g_autofree gint64 *places = NULL;
  g_autofree gint64 *back = NULL;
  g_autofree guint8 *is_taken = NULL;
  gsize n;

  places = indices != NULL ? gtorch_tensor_to_ints (indices, &n, error) : NULL;
  if (places == NULL)
    return indices == NULL;
  back = inverse != NULL ? gtorch_tensor_to_ints (inverse, &n, error) : NULL;
  if (inverse != NULL && back == NULL)
    return FALSE;
  is_taken = g_new0 (guint8, n);
  for (gsize i = 0; i < n; i++)
    {
      const gboolean is_in = places[i] >= 0 && places[i] < (gint64) n;

      if (!is_in || is_taken[places[i]])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("PackedSequence: %s has %" PRId64
                          " at %zu: each of the numbers from 0 to %zu must be there once"),
                       name, places[i], i, n - 1);
          return FALSE;
        }
      if (back != NULL && back[places[i]] != (gint64) i)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("PackedSequence: unsorted_indices has %" PRId64 " at %" PRId64
                          ", where the inverse of sorted_indices has "
                          "%zu"),
                       back[places[i]], places[i], i);
          return FALSE;
        }
      is_taken[places[i]] = TRUE;
    }
  return TRUE;
}

/* Creates packed sequences; the values of indices that this file made need no check, for which the host would
 * wait. */
static GTorchPackedSequence *
sequence_new (GTorchTensor *data, GTorchTensor *batch_sizes, GTorchTensor *sorted_indices,
              GTorchTensor *unsorted_indices, gboolean is_checked, GError **error)
{
  g_autoptr (GTorchPackedSequence) self = g_object_new (GTORCH_TYPE_PACKED_SEQUENCE, NULL);
  gsize n_dims;
  const gint64 *shape;

  self->sizes = gtorch_tensor_to_ints (batch_sizes, &self->n_sizes, error);
  if (self->sizes == NULL)
    return NULL;
  shape = gtorch_tensor_get_shape (data, &n_dims);
  if (!check_sizes (self->sizes, self->n_sizes, n_dims > 0 ? shape[0] : 0, error)
      || !check_indices (sorted_indices, self->sizes[0], "sorted_indices", error)
      || !check_indices (unsorted_indices, self->sizes[0], "unsorted_indices", error))
    return NULL;
  if (!is_checked
      && (!check_permutation (sorted_indices, unsorted_indices, "sorted_indices", error)
          || (sorted_indices == NULL
              && !check_permutation (unsorted_indices, NULL, "unsorted_indices", error))))
    return NULL;
  self->unsorted_indices =
      unsorted_indices != NULL ? g_object_ref (unsorted_indices) : invert (sorted_indices, error);
  if (sorted_indices != NULL && self->unsorted_indices == NULL)
    return NULL;
  self->data = g_object_ref (data);
  self->batch_sizes = g_object_ref (batch_sizes);
  self->sorted_indices = sorted_indices != NULL ? g_object_ref (sorted_indices) : NULL;
  return g_steal_pointer (&self);
}

/**
 * gtorch_packed_sequence_new:
 * @data: the elements of all steps, [rows, …]
 * @batch_sizes: the number of elements of each step; int64, on the CPU
 * @sorted_indices: (nullable): the places of the sequences before they were sorted, or %NULL
 * @unsorted_indices: (nullable): the inverse of @sorted_indices, or %NULL to compute it
 * @error: return location for an error
 *
 * Creates packed sequences from their parts. [func@pack_padded_sequence] and [func@pack_sequence] are for
 * sequences that are not packed yet. The indices are read by the host, which waits for them.
 *
 * Returns: (transfer full): packed sequences, or %NULL with %GTORCH_ERROR_SHAPE if the parts do not fit
 *
 * Since: 0.1
 */
GTorchPackedSequence *
gtorch_packed_sequence_new (GTorchTensor *data, GTorchTensor *batch_sizes,
                            GTorchTensor *sorted_indices, GTorchTensor *unsorted_indices,
                            GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (data), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (batch_sizes), NULL);
  g_return_val_if_fail (sorted_indices == NULL || GTORCH_IS_TENSOR (sorted_indices), NULL);
  g_return_val_if_fail (unsorted_indices == NULL || GTORCH_IS_TENSOR (unsorted_indices), NULL);
  return sequence_new (data, batch_sizes, sorted_indices, unsorted_indices, FALSE, error);
}

/**
 * gtorch_packed_sequence_get_data: (get-property data)
 * @self: packed sequences
 *
 * Gets the elements of all steps.
 *
 * Returns: (transfer none) (nullable): the rows, one step after the other; %NULL if @self was made without
 *   its constructor
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_packed_sequence_get_data (GTorchPackedSequence *self)
{
  g_return_val_if_fail (GTORCH_IS_PACKED_SEQUENCE (self), NULL);
  return self->data;
}

/**
 * gtorch_packed_sequence_get_batch_sizes: (get-property batch-sizes)
 * @self: packed sequences
 *
 * Gets the number of elements of each step.
 *
 * Returns: (transfer none) (nullable): int64 numbers; %NULL if @self was made without its constructor
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_packed_sequence_get_batch_sizes (GTorchPackedSequence *self)
{
  g_return_val_if_fail (GTORCH_IS_PACKED_SEQUENCE (self), NULL);
  return self->batch_sizes;
}

/**
 * gtorch_packed_sequence_get_sorted_indices: (get-property sorted-indices)
 * @self: packed sequences
 *
 * Gets the places that the sequences had before they were sorted by their lengths.
 *
 * Returns: (transfer none) (nullable): the places, or %NULL if they were sorted
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_packed_sequence_get_sorted_indices (GTorchPackedSequence *self)
{
  g_return_val_if_fail (GTORCH_IS_PACKED_SEQUENCE (self), NULL);
  return self->sorted_indices;
}

/**
 * gtorch_packed_sequence_get_unsorted_indices: (get-property unsorted-indices)
 * @self: packed sequences
 *
 * Gets the places of the sequences in the order in which they were given.
 *
 * Returns: (transfer none) (nullable): the places, or %NULL if they were sorted
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_packed_sequence_get_unsorted_indices (GTorchPackedSequence *self)
{
  g_return_val_if_fail (GTORCH_IS_PACKED_SEQUENCE (self), NULL);
  return self->unsorted_indices;
}

/* Returns packed sequences with other rows. Takes the data, which is NULL after an error. */
static GTorchPackedSequence *
with_data (GTorchPackedSequence *self, GTorchTensor *data, GTorchTensor *sorted,
           GTorchTensor *unsorted, GError **error)
{
  GTorchPackedSequence *other =
      data != NULL ? sequence_new (data, self->batch_sizes, sorted, unsorted, TRUE, error) : NULL;

  g_clear_object (&data);
  return other;
}

/**
 * gtorch_packed_sequence_to:
 * @self: packed sequences
 * @device: (nullable): a device, or %NULL for the present one
 * @dtype: a dtype of the data, or %GTORCH_DTYPE_NONE for the present one
 * @error: return location for an error
 *
 * Moves the data and the indices to another device, or converts the data. The sizes stay on the CPU.
 *
 * Returns: (transfer full): packed sequences, or %NULL with the error of the conversion
 *
 * Since: 0.1
 */
GTorchPackedSequence *
gtorch_packed_sequence_to (GTorchPackedSequence *self, GTorchDevice *device, GTorchDType dtype,
                           GError **error)
{
  g_autoptr (GTorchTensor) sorted = NULL;
  g_autoptr (GTorchTensor) unsorted = NULL;

  g_return_val_if_fail (GTORCH_IS_PACKED_SEQUENCE (self), NULL);
  g_return_val_if_fail (device == NULL || GTORCH_IS_DEVICE (device), NULL);
  if (!is_whole (self, "to", error))
    return NULL;
  if (self->sorted_indices != NULL
      && ((sorted = gtorch_tensor_to (self->sorted_indices, GTORCH_DTYPE_NONE, device, FALSE, FALSE,
                                      error))
              == NULL
          || (unsorted = gtorch_tensor_to (self->unsorted_indices, GTORCH_DTYPE_NONE, device, FALSE,
                                           FALSE, error))
                 == NULL))
    return NULL;
  return with_data (self, gtorch_tensor_to (self->data, dtype, device, FALSE, FALSE, error), sorted,
                    unsorted, error);
}

/* Permutes each of the tensors along dim 1, which has the batch. The network refuses those of other sizes. */
static gboolean
permute_states (GTorchTensor **states, gsize n, gint64 batch, GTorchTensor *indices,
                GPtrArray *permuted, GError **error)
{
  for (gsize i = 0; i < n; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_unwrap (states[i]);
      const gboolean fits = impl->n_dims == 3 && impl->shape[1] == batch;
      GTorchTensor *state = permute (states[i], 1, fits ? indices : NULL, error);

      if (state == NULL)
        return FALSE;
      g_ptr_array_add (permuted, state);
    }
  return TRUE;
}

/**
 * gtorch_packed_sequence_run:
 * @self: packed sequences
 * @network: a recurrent network
 * @states: (array length=n_states) (nullable): the first states, see [method@RNNBase.run], in the order of
 *   the sequences before they were packed
 * @n_states: the length of @states
 * @last_states: (out) (optional) (transfer container) (element-type GTorchTensor): the last states, in the
 *   same order
 * @error: return location for an error
 *
 * Applies a network to packed sequences.
 *
 * Returns: (transfer full): the outputs, packed alike, or %NULL with %GTORCH_ERROR_SHAPE or the error of the
 *   network
 *
 * Since: 0.1
 */
GTorchPackedSequence *
gtorch_packed_sequence_run (GTorchPackedSequence *self, GTorchRNNBase *network,
                            GTorchTensor **states, gsize n_states, GPtrArray **last_states,
                            GError **error)
{
  g_autoptr (GPtrArray) first = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) last = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GPtrArray) results = NULL;
  GTorchPackedSequence *output;

  g_return_val_if_fail (GTORCH_IS_PACKED_SEQUENCE (self), NULL);
  g_return_val_if_fail (GTORCH_IS_RNN_BASE (network), NULL);
  g_return_val_if_fail (states != NULL || n_states == 0, NULL);
  if (!is_whole (self, "run", error))
    return NULL;
  for (gsize i = 0; i < n_states; i++)
    if (!GTORCH_IS_TENSOR (states[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("run: state %zu is no tensor"),
                     i);
        return NULL;
      }
  if (!permute_states (states, n_states, self->sizes[0], self->sorted_indices, first, error))
    return NULL;
  results = gtorch_rnn_base_run (network, self->data, self->sizes, self->n_sizes,
                                 (GTorchTensor **) first->pdata, first->len, error);
  if (results == NULL
      || !permute_states ((GTorchTensor **) results->pdata + 1, results->len - 1, self->sizes[0],
                          self->unsorted_indices, last, error))
    return NULL;
  output = with_data (self, g_object_ref (results->pdata[0]), self->sorted_indices,
                      self->unsorted_indices, error);
  if (output != NULL && last_states != NULL)
    *last_states = g_steal_pointer (&last);
  return output;
}

/* --- packing --- */

static gint
by_length (gconstpointer a, gconstpointer b, gpointer lengths)
{
  const gint64 x = ((const gint64 *) lengths)[*(const gint64 *) a];
  const gint64 y = ((const gint64 *) lengths)[*(const gint64 *) b];

  if (x != y)
    return x > y ? -1 : 1;
  return *(const gint64 *) a < *(const gint64 *) b ? -1 : 1;
}

static gboolean
check_lengths (const gchar *op, const gint64 *lengths, gsize n, gint64 batch, gint64 steps,
               gboolean enforce_sorted, GError **error)
{
  if ((gint64) n != batch || n == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: there are %zu lengths for a batch of %" PRId64), op, n, batch);
      return FALSE;
    }
  for (gsize i = 0; i < n; i++)
    {
      if (lengths[i] < 1 || lengths[i] > steps)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: length %" PRId64 " of sequence %zu must be from 1 to %" PRId64), op,
                       lengths[i], i, steps);
          return FALSE;
        }
      if (enforce_sorted && i > 0 && lengths[i] > lengths[i - 1])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: length %" PRId64
                          " of sequence %zu is greater than the one before: with enforce_sorted, "
                          "lengths must be in descending order"),
                       op, lengths[i], i);
          return FALSE;
        }
    }
  return TRUE;
}

/* Returns the tensor with the first two dimensions as one. */
static GTorchTensor *
join_dims (GTorchTensor *tensor, GError **error)
{
  gsize n_dims;
  const gint64 *shape = gtorch_tensor_get_shape (tensor, &n_dims);
  gint64 joined[GTORCH_MAX_DIMS];

  joined[0] = shape[0] * shape[1];
  memcpy (joined + 1, shape + 2, (n_dims - 2) * sizeof (gint64));
  return gtorch_tensor_reshape (tensor, joined, n_dims - 1, error);
}

static gboolean
check_padded (const gchar *op, GTorchTensor *padded, gboolean batch_first, gint64 *batch,
              gint64 *steps, GError **error)
{
  gsize n_dims;
  const gint64 *shape = gtorch_tensor_get_shape (padded, &n_dims);

  if (n_dims < 2)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("%s: the input %s must have at least 2 dimensions, steps and batch"), op,
                   gtorch_impl_shape_str (gtorch_tensor_unwrap (padded)));
      return FALSE;
    }
  *batch = shape[batch_first ? 0 : 1];
  *steps = shape[batch_first ? 1 : 0];
  return TRUE;
}

/**
 * gtorch_pack_padded_sequence:
 * @input: the sequences, [L, N, …], or with @batch_first [N, L, …]
 * @lengths: (array length=n_lengths): the length of each sequence
 * @n_lengths: the length of @lengths, N
 * @batch_first: whether the batch is the first dimension
 * @enforce_sorted: whether @lengths are in descending order; else they are sorted
 * @error: return location for an error
 *
 * Packs padded sequences of different lengths, without their padding.
 *
 * Returns: (transfer full): the packed sequences, or %NULL with %GTORCH_ERROR_SHAPE, or with
 *   %GTORCH_ERROR_INVALID if a length is out of its range or the order
 *
 * Since: 0.1
 */
GTorchPackedSequence *
gtorch_pack_padded_sequence (GTorchTensor *input, const gint64 *lengths, gsize n_lengths,
                             gboolean batch_first, gboolean enforce_sorted, GError **error)
{
  g_autofree gint64 *order = NULL;
  g_autofree gint64 *sizes = NULL;
  g_autofree gint64 *rows = NULL;
  g_autoptr (GTorchTensor) sorted = NULL;
  g_autoptr (GTorchTensor) batch_sizes = NULL;
  g_autoptr (GTorchTensor) index = NULL;
  g_autoptr (GTorchTensor) joined = NULL;
  g_autoptr (GTorchTensor) data = NULL;
  gint64 batch, steps, n_steps, n_rows = 0;
  GTorchDevice *device;

  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);
  g_return_val_if_fail (lengths != NULL || n_lengths == 0, NULL);
  if (!check_padded ("pack_padded_sequence", input, batch_first, &batch, &steps, error)
      || !check_lengths ("pack_padded_sequence", lengths, n_lengths, batch, steps, enforce_sorted,
                         error))
    return NULL;
  device = gtorch_tensor_get_device (input);
  order = g_new (gint64, n_lengths);
  for (gsize b = 0; b < n_lengths; b++)
    {
      order[b] = (gint64) b;
      n_rows += lengths[b];
    }
  g_qsort_with_data (order, (gint) n_lengths, sizeof *order, by_length, (gpointer) lengths);
  n_steps = lengths[order[0]];
  sizes = gtorch_scratch_new0 (n_steps, sizeof *sizes, error);
  rows = sizes != NULL ? gtorch_scratch_new (n_rows, sizeof *rows, error) : NULL;
  if (rows == NULL)
    return NULL;
  n_rows = 0;
  for (gint64 t = 0; t < n_steps; t++)
    for (gsize b = 0; b < n_lengths && lengths[order[b]] > t; b++)
      {
        rows[n_rows++] = batch_first ? order[b] * steps + t : t * batch + order[b];
        sizes[t]++;
      }
  if ((!enforce_sorted && (sorted = indices_new (order, batch, device, error)) == NULL)
      || (batch_sizes = indices_new (sizes, n_steps, NULL, error)) == NULL
      || (index = indices_new (rows, n_rows, device, error)) == NULL
      || (joined = join_dims (input, error)) == NULL
      || (data = gtorch_tensor_index_select (joined, 0, index, error)) == NULL)
    {
      gtorch_error_set_op (error, "pack_padded_sequence");
      return NULL;
    }
  return sequence_new (data, batch_sizes, sorted, NULL, TRUE, error);
}

/* Returns the lengths of the sequences, in the order in which they are packed. */
static gint64 *
lengths_of (GTorchPackedSequence *self)
{
  gint64 *lengths = g_new0 (gint64, self->sizes[0]);

  for (gsize t = 0; t < self->n_sizes; t++)
    for (gint64 b = 0; b < self->sizes[t]; b++)
      lengths[b]++;
  return lengths;
}

/* Returns the lengths in the order in which the sequences were given. */
static GTorchTensor *
given_lengths (GTorchPackedSequence *self, GError **error)
{
  g_autofree gint64 *lengths = lengths_of (self);
  g_autoptr (GTorchTensor) tensor = indices_new (lengths, self->sizes[0], NULL, error);
  g_autoptr (GTorchTensor) here = NULL;

  if (tensor == NULL || self->unsorted_indices == NULL)
    return g_steal_pointer (&tensor);
  here = gtorch_tensor_to (self->unsorted_indices, GTORCH_DTYPE_NONE,
                           gtorch_tensor_get_device (tensor), FALSE, FALSE, error);
  return here != NULL ? gtorch_tensor_index_select (tensor, 0, here, error) : NULL;
}

static GTorchTensor *
pad_packed (GTorchPackedSequence *self, gboolean batch_first, gdouble padding_value,
            gint64 total_length, GTorchTensor **lengths, GError **error)
{
  g_autofree gint64 *rows = NULL;
  g_autoptr (GTorchTensor) index = NULL;
  g_autoptr (GTorchTensor) padding = NULL;
  g_autoptr (GTorchTensor) filled = NULL;
  g_autoptr (GTorchTensor) padded = NULL;
  g_autoptr (GTorchTensor) their_lengths = NULL;
  gint64 shape[GTORCH_MAX_DIMS + 1], steps, batch, at = 0;
  const gint64 *of_data;
  GTorchTensor *result;
  gsize n_dims;

  steps = total_length == GTORCH_NONE ? (gint64) self->n_sizes : total_length;
  batch = self->sizes[0];
  if (steps < (gint64) self->n_sizes)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: total_length %" PRId64
                      " is less than the %zu steps of the longest sequence"),
                   "pad_packed_sequence", total_length, self->n_sizes);
      return NULL;
    }
  of_data = gtorch_tensor_get_shape (self->data, &n_dims);
  rows = gtorch_scratch_new (of_data[0], sizeof *rows, error);
  if (rows == NULL)
    return NULL;
  for (gsize t = 0; t < self->n_sizes; t++)
    for (gint64 b = 0; b < self->sizes[t]; b++)
      rows[at++] = batch_first ? b * steps + (gint64) t : (gint64) t * batch + b;
  shape[0] = batch_first ? batch : steps;
  shape[1] = batch_first ? steps : batch;
  memcpy (shape + 2, of_data + 1, (n_dims - 1) * sizeof (gint64));
  if ((index = indices_new (rows, at, gtorch_tensor_get_device (self->data), error)) == NULL
      || (padding =
              gtorch_full (shape, n_dims + 1, padding_value, gtorch_tensor_get_dtype (self->data),
                           gtorch_tensor_get_device (self->data), error))
             == NULL)
    return NULL;
  filled = join_dims (padding, error);
  if (filled == NULL || !gtorch_tensor_index_copy_inplace (filled, 0, index, self->data, error)
      || (padded = gtorch_tensor_reshape (filled, shape, n_dims + 1, error)) == NULL
      || (lengths != NULL && (their_lengths = given_lengths (self, error)) == NULL))
    return NULL;
  result = permute (padded, batch_first ? 0 : 1, self->unsorted_indices, error);
  if (result != NULL && lengths != NULL)
    *lengths = g_steal_pointer (&their_lengths);
  return result;
}

/**
 * gtorch_pad_packed_sequence:
 * @sequence: packed sequences
 * @batch_first: whether the batch is to be the first dimension
 * @padding_value: the value of the elements behind the end of a sequence
 * @total_length: the number of steps of the result, or %GTORCH_NONE for that of the longest sequence
 * @lengths: (out) (optional): the length of each sequence, int64 on the CPU
 * @error: return location for an error
 *
 * Pads packed sequences: the inverse of [func@pack_padded_sequence].
 *
 * Returns: (transfer full): the sequences, [L, N, …] or [N, L, …], in the order in which they were given, or
 *   %NULL with %GTORCH_ERROR_INVALID if @total_length is less than a length
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_pad_packed_sequence (GTorchPackedSequence *sequence, gboolean batch_first,
                            gdouble padding_value, gint64 total_length, GTorchTensor **lengths,
                            GError **error)
{
  GTorchTensor *padded;

  g_return_val_if_fail (GTORCH_IS_PACKED_SEQUENCE (sequence), NULL);
  if (!is_whole (sequence, "pad_packed_sequence", error))
    return NULL;
  padded = pad_packed (sequence, batch_first, padding_value, total_length, lengths, error);
  if (padded == NULL)
    gtorch_error_set_op (error, "pad_packed_sequence");
  return padded;
}

/* --- lists of sequences --- */

static gboolean
check_sequences (const gchar *op, GTorchTensor **sequences, gsize n, GError **error)
{
  if (n == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: there is no sequence"), op);
      return FALSE;
    }
  for (gsize i = 0; i < n; i++)
    {
      GTorchImpl *impl =
          GTORCH_IS_TENSOR (sequences[i]) ? gtorch_tensor_unwrap (sequences[i]) : NULL;
      GTorchImpl *first = i > 0 ? gtorch_tensor_unwrap (sequences[0]) : impl;

      if (impl == NULL)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: sequence %zu is no tensor"),
                     op, i);
      else if (impl->n_dims < 1 || impl->n_dims != first->n_dims
               || memcmp (impl->shape + 1, first->shape + 1, (impl->n_dims - 1) * sizeof (gint64))
                      != 0)
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                     _ ("%s: sequence %zu is %s and the first is %s: only their "
                        "lengths, of dimension 0, may differ"),
                     op, i, gtorch_impl_shape_str (impl), gtorch_impl_shape_str (first));
      else
        continue;
      return FALSE;
    }
  return TRUE;
}

static gint64
length_of (GTorchTensor *sequence)
{
  return gtorch_tensor_unwrap (sequence)->shape[0];
}

static GTorchTensor *
pad (const gchar *op, GTorchTensor **sequences, gsize n, gboolean batch_first, gdouble value,
     gboolean pad_left, GError **error)
{
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_object_unref);
  GTorchTensor *stacked;
  gint64 most = 0;

  if (!check_sequences (op, sequences, n, error))
    return NULL;
  for (gsize i = 0; i < n; i++)
    most = MAX (most, length_of (sequences[i]));
  for (gsize i = 0; i < n; i++)
    {
      const gint64 rest = most - length_of (sequences[i]);
      const guint n_dims = gtorch_tensor_unwrap (sequences[i])->n_dims;
      gint64 sides[2 * GTORCH_MAX_DIMS] = { 0 };
      GTorchTensor *part;

      /* from the last dimension to the first, two sides each */
      sides[2 * n_dims - (pad_left ? 2 : 1)] = rest;
      part = rest == 0
                 ? g_object_ref (sequences[i])
                 : gtorch_tensor_constant_pad_nd (sequences[i], sides, 2 * n_dims, value, error);
      if (part == NULL)
        {
          gtorch_error_set_op (error, op);
          return NULL;
        }
      g_ptr_array_add (parts, part);
    }
  stacked = gtorch_stack ((GTorchTensor **) parts->pdata, parts->len, batch_first ? 0 : 1, error);
  if (stacked == NULL)
    gtorch_error_set_op (error, op);
  return stacked;
}

/**
 * gtorch_pad_sequence:
 * @sequences: (array length=n_sequences): sequences, [L, …], which differ only in their lengths L
 * @n_sequences: the number of sequences
 * @batch_first: whether the batch is to be the first dimension
 * @padding_value: the value of the elements that are added
 * @pad_left: whether they are added before a sequence rather than behind it
 * @error: return location for an error
 *
 * Stacks sequences of different lengths, which are padded to the longest.
 *
 * Returns: (transfer full): the sequences, [L, N, …] or [N, L, …], or %NULL with %GTORCH_ERROR_SHAPE, or
 *   %GTORCH_ERROR_INVALID if there is none
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_pad_sequence (GTorchTensor **sequences, gsize n_sequences, gboolean batch_first,
                     gdouble padding_value, gboolean pad_left, GError **error)
{
  g_return_val_if_fail (sequences != NULL || n_sequences == 0, NULL);
  return pad ("pad_sequence", sequences, n_sequences, batch_first, padding_value, pad_left, error);
}

/**
 * gtorch_pack_sequence:
 * @sequences: (array length=n_sequences): sequences, [L, …], which differ only in their lengths L
 * @n_sequences: the number of sequences
 * @enforce_sorted: whether they are in descending order of their lengths; else they are sorted
 * @error: return location for an error
 *
 * Packs sequences of different lengths.
 *
 * Returns: (transfer full): the packed sequences, or %NULL with %GTORCH_ERROR_SHAPE, or with
 *   %GTORCH_ERROR_INVALID if there is none, or the order of lengths is another
 *
 * Since: 0.1
 */
GTorchPackedSequence *
gtorch_pack_sequence (GTorchTensor **sequences, gsize n_sequences, gboolean enforce_sorted,
                      GError **error)
{
  g_autoptr (GTorchTensor) padded = NULL;
  g_autofree gint64 *lengths = NULL;

  g_return_val_if_fail (sequences != NULL || n_sequences == 0, NULL);
  padded = pad ("pack_sequence", sequences, n_sequences, FALSE, 0, FALSE, error);
  if (padded == NULL)
    return NULL;
  lengths = g_new (gint64, n_sequences);
  for (gsize i = 0; i < n_sequences; i++)
    lengths[i] = length_of (sequences[i]);
  return gtorch_pack_padded_sequence (padded, lengths, n_sequences, FALSE, enforce_sorted, error);
}

/**
 * gtorch_unpad_sequence:
 * @padded: padded sequences, [L, N, …], or with @batch_first [N, L, …]
 * @lengths: (array length=n_lengths): the length of each sequence
 * @n_lengths: the length of @lengths, N
 * @batch_first: whether the batch is the first dimension
 * @error: return location for an error
 *
 * Returns each of the padded sequences without its padding: the inverse of [func@pad_sequence].
 *
 * Returns: (transfer container) (element-type GTorchTensor): views of the sequences, or %NULL with
 *   %GTORCH_ERROR_SHAPE, or %GTORCH_ERROR_INVALID if a length is out of its range
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_unpad_sequence (GTorchTensor *padded, const gint64 *lengths, gsize n_lengths,
                       gboolean batch_first, GError **error)
{
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (g_object_unref);
  gint64 batch, steps;

  g_return_val_if_fail (GTORCH_IS_TENSOR (padded), NULL);
  g_return_val_if_fail (lengths != NULL || n_lengths == 0, NULL);
  if (!check_padded ("unpad_sequence", padded, batch_first, &batch, &steps, error)
      || !check_lengths ("unpad_sequence", lengths, n_lengths, batch, steps, FALSE, error))
    return NULL;
  for (gint64 b = 0; b < batch; b++)
    {
      g_autoptr (GTorchTensor) one = gtorch_tensor_select (padded, batch_first ? 0 : 1, b, error);
      GTorchTensor *cut = one != NULL ? gtorch_tensor_narrow (one, 0, 0, lengths[b], error) : NULL;

      if (cut == NULL)
        return NULL;
      g_ptr_array_add (list, cut);
    }
  return g_steal_pointer (&list);
}

/**
 * gtorch_unpack_sequence:
 * @sequence: packed sequences
 * @error: return location for an error
 *
 * Returns each of the packed sequences: the inverse of [func@pack_sequence].
 *
 * Returns: (transfer container) (element-type GTorchTensor): the sequences, in the order in which they were
 *   given, or %NULL with @error set
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_unpack_sequence (GTorchPackedSequence *sequence, GError **error)
{
  g_autoptr (GTorchTensor) lengths = NULL;
  g_autoptr (GTorchTensor) padded = NULL;
  g_autofree gint64 *numbers = NULL;
  gsize n;

  g_return_val_if_fail (GTORCH_IS_PACKED_SEQUENCE (sequence), NULL);
  padded = gtorch_pad_packed_sequence (sequence, TRUE, 0, GTORCH_NONE, &lengths, error);
  numbers = padded != NULL ? gtorch_tensor_to_ints (lengths, &n, error) : NULL;
  return numbers != NULL ? gtorch_unpad_sequence (padded, numbers, n, TRUE, error) : NULL;
}
