/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Values that are no tensors, between the ranks of a group: first their sizes, then their bytes. What comes
 * is checked as GVariant checks data of others: a value that its sender did not make well is one of
 * defaults, never memory that is not there. */

#include "config.h"

#include "distributed/gtorch-process-group-variant.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error.h"
#include "distributed/gtorch-engine-private.h"
#include "gtorch-tensor-ops.h"
#include "tensor/gtorch-hold-private.h"

static GTorchTensor *
make_tensor (gint64 n, GTorchDType dtype, GError **error)
{
  return gtorch_zeros (&n, 1, dtype, gtorch_device_cpu (), error);
}

static gpointer
data_of (GTorchTensor *tensor)
{
  return gtorch_impl_data (gtorch_tensor_unwrap (tensor));
}

/* Takes the work. */
static gboolean
finish (GTorchWork *work, GError **error)
{
  g_autoptr (GTorchWork) owned = work;

  return work != NULL && gtorch_work_wait (work, -1, NULL, error);
}

/* The bytes of a value with its type. Takes a floating one. */
static GBytes *
pack (GVariant *value)
{
  g_autoptr (GVariant) owned = g_variant_ref_sink (value);
  g_autoptr (GVariant) boxed = g_variant_ref_sink (g_variant_new_variant (owned));
  g_autoptr (GVariant) normal = g_variant_get_normal_form (boxed);

  return g_variant_get_data_as_bytes (normal);
}

static GVariant *
unpack (gconstpointer data, gsize size)
{
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  g_autoptr (GVariant) boxed =
      g_variant_ref_sink (g_variant_new_from_bytes (G_VARIANT_TYPE_VARIANT, bytes, FALSE));
  g_autoptr (GVariant) normal = g_variant_get_normal_form (boxed);

  return g_variant_get_variant (normal);
}

/* A tensor of so many bytes, of which the first are those. */
static GTorchTensor *
padded (GBytes *bytes, gint64 size, GError **error)
{
  GTorchTensor *tensor = make_tensor (size, GTORCH_DTYPE_UINT8, error);
  gsize n;
  gconstpointer data;

  if (tensor == NULL || bytes == NULL)
    return tensor;
  data = g_bytes_get_data (bytes, &n);
  memcpy (data_of (tensor), data, n);
  return tensor;
}

/* Announced by a rank that cannot send, so that the others do not wait for it. */
#define NO_VALUE -2

static gboolean
check_size (const gchar *name, gint64 size, GError **error)
{
  if (size >= 0)
    return TRUE;
  if (size == NO_VALUE)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED,
                   _ ("%s: the rank that sends has an error, and sends nothing"), name);
      return FALSE;
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_FORMAT,
               _ ("%s: the other rank has announced %" PRId64 " bytes; no value has that"), name,
               size);
  return FALSE;
}

/**
 * gtorch_process_group_broadcast_variant:
 * @self: a group
 * @value: (nullable): the value; only that of @src counts
 * @src: the rank that sends
 * @error: return location for an error
 *
 * Gives all ranks a value of one of them, and waits for it. The values are exchanged as bytes of the
 * machine: all hosts have one byte order.
 *
 * ```c
 * g_autoptr (GVariant) seed = gtorch_process_group_broadcast_variant (
 *     group, rank == 0 ? g_variant_new_int64 (42) : NULL, 0, &error);
 * ```
 *
 * Returns: (transfer full): the value of @src, or %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_broadcast_variant (GTorchProcessGroup *self, GVariant *value, gint src,
                                        GError **error)
{
  GTORCH_GROUP_CALL ("broadcast_variant");
  g_autoptr (GTorchTensor) size = NULL, tensor = NULL;
  g_autoptr (GBytes) bytes = NULL;
  gboolean is_source;
  gint64 *n;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), NULL);
  bytes = value == NULL ? NULL : pack (value);
  is_source = gtorch_process_group_get_rank (self) == src;
  size = make_tensor (1, GTORCH_DTYPE_INT64, error);
  if (size == NULL)
    return NULL;
  n = data_of (size);
  *n = !is_source ? 0 : bytes == NULL ? NO_VALUE : (gint64) g_bytes_get_size (bytes);
  if (!finish (gtorch_process_group_broadcast (self, size, src, error), error))
    return NULL;
  if (is_source && bytes == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: rank %d sends, and has no value"),
                   gtorch_group_call_name ("broadcast_variant"), src);
      return NULL;
    }
  if (!check_size (gtorch_group_call_name ("broadcast_variant"), *n, error))
    return NULL;
  tensor = padded (is_source ? bytes : NULL, *n, error);
  if (tensor == NULL || !finish (gtorch_process_group_broadcast (self, tensor, src, error), error))
    return NULL;
  return unpack (data_of (tensor), *n);
}

/* The sizes of all ranks, and the largest. */
static GTorchTensor *
gather_sizes (GTorchProcessGroup *self, const gchar *name, GBytes *bytes, gint64 *largest,
              GError **error)
{
  const gint n_ranks = gtorch_process_group_get_size (self);
  g_autoptr (GTorchTensor) own = make_tensor (1, GTORCH_DTYPE_INT64, error);
  g_autoptr (GTorchTensor) sizes =
      own == NULL ? NULL : make_tensor (n_ranks, GTORCH_DTYPE_INT64, error);
  const gint64 *n;
  gint i;

  if (sizes == NULL)
    return NULL;
  *(gint64 *) data_of (own) = g_bytes_get_size (bytes);
  if (!finish (gtorch_process_group_all_gather_into_tensor (self, sizes, own, error), error))
    return NULL;
  n = data_of (sizes);
  *largest = 0;
  for (i = 0; i < n_ranks; i++)
    {
      if (!check_size (name, n[i], error))
        return NULL;
      *largest = MAX (*largest, n[i]);
    }
  return g_steal_pointer (&sizes);
}

static void
add_value (GVariantBuilder *builder, gconstpointer data, gsize size)
{
  g_autoptr (GVariant) value = unpack (data, size);

  g_variant_builder_add (builder, "v", value);
}

/**
 * gtorch_process_group_all_gather_variant:
 * @self: a group
 * @value: the value of this rank
 * @error: return location for an error
 *
 * Gives all ranks the values of all, and waits for them.
 *
 * ```c
 * g_autoptr (GVariant) names = gtorch_process_group_all_gather_variant (
 *     group, g_variant_new_string (g_get_host_name ()), &error);
 * ```
 *
 * Returns: (transfer full): the values by rank, of the type `av`, or %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_all_gather_variant (GTorchProcessGroup *self, GVariant *value, GError **error)
{
  GTORCH_GROUP_CALL ("all_gather_variant");
  g_auto (GVariantBuilder) builder = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("av"));
  g_autoptr (GTorchTensor) sizes = NULL, own = NULL, all = NULL;
  g_autoptr (GBytes) bytes = NULL;
  gint64 largest, total;
  gint i, n_ranks;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && value != NULL, NULL);
  bytes = pack (value);
  n_ranks = gtorch_process_group_get_size (self);
  sizes =
      gather_sizes (self, gtorch_group_call_name ("all_gather_variant"), bytes, &largest, error);
  if (sizes == NULL)
    return NULL;
  if (__builtin_mul_overflow (largest, (gint64) n_ranks, &total))
    total = G_MAXINT64; /* what cannot be allocated */
  own = padded (bytes, largest, error);
  all = own == NULL ? NULL : make_tensor (total, GTORCH_DTYPE_UINT8, error);
  if (all == NULL
      || !finish (gtorch_process_group_all_gather_into_tensor (self, all, own, error), error))
    return NULL;
  for (i = 0; i < n_ranks; i++)
    add_value (&builder, (const gchar *) data_of (all) + i * largest,
               ((const gint64 *) data_of (sizes))[i]);
  return g_variant_ref_sink (g_variant_builder_end (&builder));
}

/* One for each rank; none elsewhere than at the root. */
static GPtrArray *
make_parts (GTorchProcessGroup *self, gboolean is_root, gint64 size, GError **error)
{
  const gint n_ranks = gtorch_process_group_get_size (self);
  GPtrArray *parts = g_ptr_array_new_with_free_func (g_object_unref);
  gint i;

  for (i = 0; is_root && i < n_ranks; i++)
    {
      GTorchTensor *tensor = make_tensor (size, GTORCH_DTYPE_UINT8, error);

      if (tensor == NULL)
        {
          g_ptr_array_unref (parts);
          return NULL;
        }
      g_ptr_array_add (parts, tensor);
    }
  return parts;
}

/**
 * gtorch_process_group_gather_variant:
 * @self: a group
 * @value: the value of this rank
 * @dst: the rank that gets them
 * @error: return location for an error
 *
 * Gives one rank the values of all, and waits for them.
 *
 * Returns: (transfer full): the values by rank, of the type `av`; elsewhere than at @dst none of them; or
 *   %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_gather_variant (GTorchProcessGroup *self, GVariant *value, gint dst,
                                     GError **error)
{
  GTORCH_GROUP_CALL ("gather_variant");
  g_auto (GVariantBuilder) builder = G_VARIANT_BUILDER_INIT (G_VARIANT_TYPE ("av"));
  g_autoptr (GTorchTensor) sizes = NULL, own = NULL;
  g_autoptr (GPtrArray) parts = NULL;
  g_autoptr (GBytes) bytes = NULL;
  gint64 largest;
  guint i;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && value != NULL, NULL);
  bytes = pack (value);
  if (dst < 0 || dst >= gtorch_process_group_get_size (self))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("%s: rank %d is out of range for %d processes"),
                   gtorch_group_call_name ("gather_variant"), dst,
                   gtorch_process_group_get_size (self));
      return NULL;
    }
  sizes = gather_sizes (self, gtorch_group_call_name ("gather_variant"), bytes, &largest, error);
  own = sizes == NULL ? NULL : padded (bytes, largest, error);
  if (own == NULL)
    return NULL;
  parts = make_parts (self, gtorch_process_group_get_rank (self) == dst, largest, error);
  if (parts == NULL
      || !finish (gtorch_process_group_gather (self, (GTorchTensor **) parts->pdata, parts->len,
                                               own, dst, error),
                  error))
    return NULL;
  for (i = 0; i < parts->len; i++)
    add_value (&builder, data_of (parts->pdata[i]), ((const gint64 *) data_of (sizes))[i]);
  return g_variant_ref_sink (g_variant_builder_end (&builder));
}

/* The bytes of each value, if there is one for each rank. */
static GPtrArray *
pack_all (GTorchProcessGroup *self, GVariant *values, gint src, GError **error)
{
  const gint n_ranks = gtorch_process_group_get_size (self);
  GPtrArray *packed;
  gint i;

  if (values == NULL || !g_variant_is_of_type (values, G_VARIANT_TYPE ("av"))
      || g_variant_n_children (values) != (gsize) n_ranks)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: rank %d has %zu values of the type %s for %d ranks; it "
                      "sends one to each, of the type av"),
                   gtorch_group_call_name ("scatter_variant"), src,
                   values != NULL && g_variant_is_container (values) ? g_variant_n_children (values)
                                                                     : 0,
                   values == NULL ? "av" : g_variant_get_type_string (values), n_ranks);
      return NULL;
    }
  packed = g_ptr_array_new_with_free_func ((GDestroyNotify) g_bytes_unref);
  for (i = 0; i < n_ranks; i++)
    {
      g_autoptr (GVariant) boxed = g_variant_get_child_value (values, i);
      g_autoptr (GVariant) value = g_variant_get_variant (boxed);

      g_ptr_array_add (packed, pack (value));
    }
  return packed;
}

/**
 * gtorch_process_group_scatter_variant:
 * @self: a group
 * @values: (nullable): at @src a value for each rank, of the type `av`; elsewhere it does not count
 * @src: the rank that has them
 * @error: return location for an error
 *
 * Gives each rank one of the values of a rank, and waits for it.
 *
 * Returns: (transfer full): the value for this rank, or %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_scatter_variant (GTorchProcessGroup *self, GVariant *values, gint src,
                                      GError **error)
{
  GTORCH_GROUP_CALL ("scatter_variant");
  g_autoptr (GVariant) owned = values == NULL ? NULL : g_variant_ref_sink (values);
  g_autoptr (GTorchTensor) sizes = NULL, own = NULL;
  g_autoptr (GPtrArray) packed = NULL, parts = NULL;
  g_autoptr (GError) local = NULL;
  gint64 largest = 0, *n;
  gboolean is_source;
  gint i, n_ranks;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), NULL);
  n_ranks = gtorch_process_group_get_size (self);
  is_source = gtorch_process_group_get_rank (self) == src;
  if (is_source)
    packed = pack_all (self, owned, src, &local);
  sizes = make_tensor (n_ranks, GTORCH_DTYPE_INT64, error);
  if (sizes == NULL)
    return NULL;
  n = data_of (sizes);
  for (i = 0; is_source && i < n_ranks; i++)
    n[i] = packed == NULL ? NO_VALUE : (gint64) g_bytes_get_size (packed->pdata[i]);
  if (!finish (gtorch_process_group_broadcast (self, sizes, src, error), error))
    return NULL;
  if (local != NULL)
    {
      g_propagate_error (error, g_steal_pointer (&local));
      return NULL;
    }
  for (i = 0; i < n_ranks; i++)
    {
      if (!check_size (gtorch_group_call_name ("scatter_variant"), n[i], error))
        return NULL;
      largest = MAX (largest, n[i]);
    }
  own = make_tensor (largest, GTORCH_DTYPE_UINT8, error);
  parts = own == NULL ? NULL : make_parts (self, is_source, largest, error);
  if (parts == NULL)
    return NULL;
  for (i = 0; is_source && i < n_ranks; i++)
    memcpy (data_of (parts->pdata[i]), g_bytes_get_data (packed->pdata[i], NULL), n[i]);
  if (!finish (gtorch_process_group_scatter (self, own, (GTorchTensor **) parts->pdata, parts->len,
                                             src, error),
               error))
    return NULL;
  return unpack (data_of (own), n[gtorch_process_group_get_rank (self)]);
}

/**
 * gtorch_process_group_send_variant:
 * @self: a group
 * @value: the value
 * @dst: the rank that gets it
 * @tag: a number that the receiver names too, from 0 to 32767
 * @error: return location for an error
 *
 * Sends a value to a rank, and waits until it is on its way.
 *
 * Returns: %TRUE, or %FALSE with @error set
 *
 * Since: 0.1
 */
gboolean
gtorch_process_group_send_variant (GTorchProcessGroup *self, GVariant *value, gint dst, gint tag,
                                   GError **error)
{
  GTORCH_GROUP_CALL ("send_variant");
  g_autoptr (GTorchTensor) size = NULL, tensor = NULL;
  g_autoptr (GBytes) bytes = NULL;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self) && value != NULL, FALSE);
  bytes = pack (value);
  size = make_tensor (1, GTORCH_DTYPE_INT64, error);
  tensor = size == NULL ? NULL : padded (bytes, g_bytes_get_size (bytes), error);
  if (tensor == NULL)
    return FALSE;
  *(gint64 *) data_of (size) = g_bytes_get_size (bytes);
  return finish (gtorch_process_group_send (self, size, dst, tag, error), error)
         && finish (gtorch_process_group_send (self, tensor, dst, tag, error), error);
}

/**
 * gtorch_process_group_recv_variant:
 * @self: a group
 * @src: the rank that sends
 * @tag: a number that the sender names too, from 0 to 32767
 * @error: return location for an error
 *
 * Receives a value that a rank sends by [method@ProcessGroup.send_variant].
 *
 * Returns: (transfer full): the value, or %NULL with @error set
 *
 * Since: 0.1
 */
GVariant *
gtorch_process_group_recv_variant (GTorchProcessGroup *self, gint src, gint tag, GError **error)
{
  GTORCH_GROUP_CALL ("recv_variant");
  g_autoptr (GTorchTensor) size = NULL, tensor = NULL;
  gint64 n;

  g_return_val_if_fail (GTORCH_IS_PROCESS_GROUP (self), NULL);
  size = make_tensor (1, GTORCH_DTYPE_INT64, error);
  if (size == NULL || !finish (gtorch_process_group_recv (self, size, src, tag, error), error))
    return NULL;
  n = *(const gint64 *) data_of (size);
  tensor = check_size (gtorch_group_call_name ("recv_variant"), n, error)
               ? make_tensor (n, GTORCH_DTYPE_UINT8, error)
               : NULL;
  if (tensor == NULL || !finish (gtorch_process_group_recv (self, tensor, src, tag, error), error))
    return NULL;
  return unpack (data_of (tensor), n);
}
