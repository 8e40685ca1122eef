/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors for other libraries, through the Arrow C data interface. An array is a tree: a struct has its
 * columns as children, and a tensor of several dimensions is lists of a fixed size around its elements.
 * Each node owns what it has, as the interface asks, so that a consumer can move a child away. */

#include "config.h"

#include "io/gtorch-arrow.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-error-private.h"
#include "device/gtorch-device-private.h"
#include "io/gtorch-arrow-private.h"
#include "ops/gtorch-host-private.h"
#include "tensor/gtorch-tensor-private.h"

#define OP "to_arrow"

/* --- schemas --- */

static void
release_schema (GTorchArrowSchema *schema)
{
  for (gint64 i = 0; i < schema->n_children; i++)
    {
      gtorch_arrow_release_schema (schema->children[i]);
      g_free (schema->children[i]);
    }
  g_free (schema->children);
  g_free ((gpointer) schema->format);
  g_free ((gpointer) schema->name);
  schema->release = NULL;
}

static void
fill_schema (GTorchArrowSchema *schema, gchar *format, const gchar *name, gint64 n_children)
{
  memset (schema, 0, sizeof *schema);
  schema->format = format;
  schema->name = g_strdup (name);
  schema->n_children = n_children;
  schema->release = release_schema;
  if (n_children == 0)
    return;
  schema->children = g_new (GTorchArrowSchema *, n_children);
  for (gint64 i = 0; i < n_children; i++)
    schema->children[i] = g_new0 (GTorchArrowSchema, 1);
}

static void
describe (GTorchArrowSchema *schema, const GTorchImpl *impl, const gchar *name)
{
  static const gchar formats[GTORCH_N_DTYPES] = {
    [GTORCH_DTYPE_BOOL] = 'b',    [GTORCH_DTYPE_INT8] = 'c',    [GTORCH_DTYPE_UINT8] = 'C',
    [GTORCH_DTYPE_INT16] = 's',   [GTORCH_DTYPE_INT32] = 'i',   [GTORCH_DTYPE_INT64] = 'l',
    [GTORCH_DTYPE_FLOAT16] = 'e', [GTORCH_DTYPE_FLOAT32] = 'f', [GTORCH_DTYPE_FLOAT64] = 'g',
  };

  for (guint i = 1; i < impl->n_dims; i++)
    {
      fill_schema (schema, g_strdup_printf ("+w:%" G_GINT64_FORMAT, impl->shape[i]),
                   i == 1 ? name : "item", 1);
      schema = schema->children[0];
    }
  fill_schema (schema, g_strdup_printf ("%c", formats[impl->dtype]),
               impl->n_dims > 1 ? "item" : name, 0);
}

/* --- arrays --- */

typedef struct
{
  const void *buffers[2];
  GTorchStorage *storage; /* NULL for lists and structs */
} Memory;

static void
release_array (GTorchArrowArray *array)
{
  Memory *memory = array->private_data;

  for (gint64 i = 0; i < array->n_children; i++)
    {
      gtorch_arrow_release_array (array->children[i]);
      g_free (array->children[i]);
    }
  g_free (array->children);
  if (memory->storage != NULL)
    gtorch_storage_unref (memory->storage);
  g_free (memory);
  array->release = NULL;
}

static void
fill_array (GTorchArrowArray *array, gint64 length, gint64 n_buffers, gint64 n_children)
{
  Memory *memory = g_new0 (Memory, 1);

  memset (array, 0, sizeof *array);
  array->length = length;
  array->n_buffers = n_buffers;
  array->buffers = memory->buffers;
  array->private_data = memory;
  array->release = release_array;
  array->n_children = n_children;
  if (n_children == 0)
    return;
  array->children = g_new (GTorchArrowArray *, n_children);
  for (gint64 i = 0; i < n_children; i++)
    array->children[i] = g_new0 (GTorchArrowArray, 1);
}

static void
give (GTorchArrowArray *array, const GTorchImpl *impl, gint64 numel)
{
  gint64 length = impl->shape[0];
  Memory *memory;

  for (guint i = 1; i < impl->n_dims; i++)
    {
      fill_array (array, length, 1, 1);
      array = array->children[0];
      length *= impl->shape[i];
    }
  fill_array (array, length, 2, 0);
  memory = array->private_data;
  memory->storage = gtorch_storage_ref (impl->storage);
  memory->buffers[1] = numel > 0 ? gtorch_impl_data (impl) : NULL;
}

/* --- elements --- */

/* A contiguous tensor on the CPU: the given one if it is that. Bools become bits, in a tensor of bytes. */
static GTorchImpl *
prepare (GTorchTensor *tensor, const gchar *name, GTorchImpl **memory, GError **error)
{
  GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  g_autoptr (GTorchImpl) host = NULL;
  g_autoptr (GTorchImpl) flat = NULL;

  if (impl->dtype == GTORCH_DTYPE_BFLOAT16
      || gtorch_dtype_kind (impl->dtype) == GTORCH_KIND_COMPLEX)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("to_arrow: Arrow has no type for the %s of “%s”: convert it first"),
                   gtorch_dtype_get_name (impl->dtype), gtorch_name_str (name));
      return NULL;
    }
  if (impl->n_dims == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("to_arrow: “%s” is one number and no column: unsqueeze it"),
                   gtorch_name_str (name));
      return NULL;
    }
  if (gtorch_impl_requires_grad (impl))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("to_arrow: “%s”, of shape %s, requires a gradient, which it would lose: "
                      "detach it first"),
                   gtorch_name_str (name), gtorch_impl_shape_str (impl));
      return NULL;
    }
  host = gtorch_impl_to_host (OP, impl, error);
  if (host == NULL)
    return NULL;
  if (host->is_contiguous)
    flat = g_steal_pointer (&host);
  else
    {
      flat = gtorch_impl_new (gtorch_device_cpu (), host->dtype, host->shape, host->n_dims, error);
      if (flat == NULL)
        {
          gtorch_error_name_op (error, OP);
          return NULL;
        }
      gtorch_host_copy (flat, host);
    }
  *memory = NULL;
  if (flat->dtype == GTORCH_DTYPE_BOOL)
    {
      const gint64 n_bytes = flat->numel / 8 + 1;
      const guint8 *from = flat->numel > 0 ? gtorch_impl_data (flat) : NULL;
      guint8 *to;

      *memory = gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_UINT8, &n_bytes, 1, error);
      if (*memory == NULL)
        {
          gtorch_error_name_op (error, OP);
          return NULL;
        }
      to = gtorch_impl_data (*memory);
      memset (to, 0, n_bytes);
      for (gint64 i = 0; i < flat->numel; i++)
        to[i / 8] |= from[i] << (i % 8);
    }
  return g_steal_pointer (&flat);
}

static gboolean
export_column (GTorchTensor *tensor, const gchar *name, GTorchArrowSchema *schema,
               GTorchArrowArray *array, GError **error)
{
  g_autoptr (GTorchImpl) bits = NULL;
  g_autoptr (GTorchImpl) impl = prepare (tensor, name, &bits, error);

  if (impl == NULL)
    return FALSE;
  if (schema != NULL)
    describe (schema, impl, name);
  give (array, impl, impl->numel);
  if (bits != NULL)
    {
      GTorchArrowArray *leaf = array;
      Memory *memory;

      while (leaf->n_children > 0)
        leaf = leaf->children[0];
      memory = leaf->private_data;
      gtorch_storage_unref (memory->storage);
      memory->storage = gtorch_storage_ref (bits->storage);
      memory->buffers[1] = gtorch_impl_data (bits);
    }
  return TRUE;
}

static gboolean
check_places (gboolean are_there, GError **error)
{
  if (!are_there)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("to_arrow: there is no structure to fill: its address is 0"));
  return are_there;
}

/**
 * gtorch_arrow_export_tensor:
 * @tensor: a tensor
 * @schema: the address of an `ArrowSchema` to be filled
 * @array: the address of an `ArrowArray` to be filled
 * @error: return location for an error
 *
 * Gives a tensor to another library as a column, by the Arrow C data interface. Further dimensions are
 * lists of a fixed size. The memory of a contiguous tensor on the CPU is shared, and lives until the array
 * is released; the consumer sees later writes to it, so there should be none. Others, and bools, are
 * copied.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_NOT_SUPPORTED for bfloat16 and complex numbers,
 *   %GTORCH_ERROR_SHAPE for a single number, %GTORCH_ERROR_AUTOGRAD if it requires a gradient, or
 *   %GTORCH_ERROR_RELEASED; then the structures are unchanged
 *
 * Since: 0.1
 */
gboolean
gtorch_arrow_export_tensor (GTorchTensor *tensor, gsize schema, gsize array, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);
  if (!check_places (schema != 0 && array != 0, error))
    return FALSE;
  return export_column (tensor, "", (GTorchArrowSchema *) schema, (GTorchArrowArray *) array,
                        error);
}

static gboolean
export_table (GTorchTable *table, GTorchArrowSchema *schema, GTorchArrowArray *array,
              GError **error)
{
  const guint n = gtorch_table_get_length (table);
  GTorchArrowSchema whole_schema;
  GTorchArrowArray whole;
  gint64 length = 0;

  for (guint i = 0; i < n; i++)
    {
      const GTorchImpl *impl = gtorch_tensor_unwrap (gtorch_table_get_tensor (table, i));

      if (i == 0)
        length = impl->n_dims > 0 ? impl->shape[0] : 0;
      if (impl->n_dims > 0 && impl->shape[0] == length)
        continue;
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("to_arrow: column “%s” has the shape %s, and the first one %" PRId64 " rows"),
                   gtorch_name_str (gtorch_table_get_name (table, i)), gtorch_impl_shape_str (impl),
                   length);
      return FALSE;
    }
  fill_schema (&whole_schema, g_strdup ("+s"), "", n);
  fill_array (&whole, length, 1, n);
  for (guint i = 0; i < n; i++)
    if (!export_column (gtorch_table_get_tensor (table, i), gtorch_table_get_name (table, i),
                        whole_schema.children[i], whole.children[i], error))
      {
        release_schema (&whole_schema);
        release_array (&whole);
        return FALSE;
      }
  if (schema != NULL)
    *schema = whole_schema;
  else
    release_schema (&whole_schema);
  if (array != NULL)
    *array = whole;
  else
    release_array (&whole);
  return TRUE;
}

/**
 * gtorch_arrow_export_table:
 * @table: columns by name, which have the same number of rows
 * @schema: the address of an `ArrowSchema` to be filled
 * @array: the address of an `ArrowArray` to be filled
 * @error: return location for an error
 *
 * Gives columns to another library as a record batch; see [func@arrow_export_tensor].
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_SHAPE if columns have different numbers of rows, or an error
 *   of [func@arrow_export_tensor]; then the structures are unchanged
 *
 * Since: 0.1
 */
gboolean
gtorch_arrow_export_table (GTorchTable *table, gsize schema, gsize array, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_TABLE (table), FALSE);
  if (!check_places (schema != 0 && array != 0, error))
    return FALSE;
  return export_table (table, (GTorchArrowSchema *) schema, (GTorchArrowArray *) array, error);
}

/* --- a stream of one batch --- */

typedef struct
{
  GTorchTable *table;
  gboolean is_done;
  gchar *message;
} Stream;

static int
fail_stream (Stream *self, GError *error)
{
  g_free (self->message);
  self->message = g_strdup (error->message);
  g_error_free (error);
  return EIO;
}

static int
stream_get_schema (GTorchArrowStream *stream, GTorchArrowSchema *schema)
{
  Stream *self = stream->private_data;
  GError *error = NULL;

  return export_table (self->table, schema, NULL, &error) ? 0 : fail_stream (self, error);
}

static int
stream_get_next (GTorchArrowStream *stream, GTorchArrowArray *array)
{
  Stream *self = stream->private_data;
  GError *error = NULL;

  memset (array, 0, sizeof *array);
  if (self->is_done)
    return 0;
  if (!export_table (self->table, NULL, array, &error))
    return fail_stream (self, error);
  self->is_done = TRUE;
  return 0;
}

static const char *
stream_get_last_error (GTorchArrowStream *stream)
{
  return ((const Stream *) stream->private_data)->message;
}

static void
stream_release (GTorchArrowStream *stream)
{
  Stream *self = stream->private_data;

  g_object_unref (self->table);
  g_free (self->message);
  g_free (self);
  stream->release = NULL;
}

/**
 * gtorch_arrow_export_stream:
 * @table: columns by name, which have the same number of rows
 * @stream: the address of an `ArrowArrayStream` to be filled
 * @error: return location for an error
 *
 * Gives columns to another library as a stream of one record batch; see [func@arrow_export_tensor].
 *
 * Returns: %TRUE, or %FALSE with an error of [func@arrow_export_table]; then the structure is unchanged
 *
 * Since: 0.1
 */
gboolean
gtorch_arrow_export_stream (GTorchTable *table, gsize stream, GError **error)
{
  GTorchArrowStream *to = (GTorchArrowStream *) stream;
  Stream *self;

  g_return_val_if_fail (GTORCH_IS_TABLE (table), FALSE);
  if (!check_places (stream != 0, error))
    return FALSE;
  if (!export_table (table, NULL, NULL, error))
    return FALSE;
  self = g_new0 (Stream, 1);
  self->table = g_object_ref (table);
  *to = (GTorchArrowStream){ stream_get_schema, stream_get_next, stream_get_last_error,
                             stream_release, self };
  return TRUE;
}

/**
 * gtorch_arrow_release:
 * @schema: the address of an `ArrowSchema`, or 0
 * @array: the address of an `ArrowArray`, or 0
 * @stream: the address of an `ArrowArrayStream`, or 0
 *
 * Releases what structures of the Arrow C interfaces have, if they have anything: for languages that cannot
 * call their functions. The structures themselves stay the caller's.
 *
 * Since: 0.1
 */
void
gtorch_arrow_release (gsize schema, gsize array, gsize stream)
{
  if (schema != 0)
    gtorch_arrow_release_schema ((GTorchArrowSchema *) schema);
  if (array != 0)
    gtorch_arrow_release_array ((GTorchArrowArray *) array);
  if (stream != 0)
    gtorch_arrow_release_stream ((GTorchArrowStream *) stream);
}
