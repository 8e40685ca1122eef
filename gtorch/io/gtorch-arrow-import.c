/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Columns of other libraries, through the Arrow C data interface. The structures are validated except for
 * what cannot be checked: that their memory exists and that their functions can be called.
 *
 * An array is moved into a holder, which the storages of all tensors that were made of it share, so that
 * its memory is released when the last of them goes. */

#include "config.h"

#include "io/gtorch-arrow.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "device/gtorch-device-private.h"
#include "io/gtorch-arrow-private.h"
#include "tensor/gtorch-tensor-private.h"

#define OP         "from_arrow"
#define MAX_FIELDS 100000

typedef struct
{
  gint ref_count;
  GTorchArrowArray array;
} Holder;

static void
holder_unref (Holder *holder)
{
  if (!g_atomic_int_dec_and_test (&holder->ref_count))
    return;
  gtorch_arrow_release_array (&holder->array);
  g_free (holder);
}

static void
free_storage (GTorchStorage *storage)
{
  holder_unref (storage->free_data);
}

static void G_GNUC_PRINTF (3, 4) set_refusal (GError **error, gint code, const gchar *format, ...)
{
  g_autofree gchar *text = NULL;
  va_list args;

  va_start (args, format);
  text = g_strdup_vprintf (format, args);
  va_end (args);
  g_set_error (error, GTORCH_ERROR, code, OP ": %s", text);
}

#define refuse(...) (set_refusal (__VA_ARGS__), FALSE)

static const gchar *
column_name (const GTorchArrowSchema *schema)
{
  return gtorch_name_str (schema->name != NULL ? schema->name : "");
}

/* --- types --- */

static gboolean
find_dtype (const GTorchArrowSchema *schema, guint *dtype, GError **error)
{
  static const struct
  {
    gchar format;
    guint8 dtype;
  } formats[] = {
    { 'b', GTORCH_DTYPE_BOOL },    { 'c', GTORCH_DTYPE_INT8 },    { 'C', GTORCH_DTYPE_UINT8 },
    { 's', GTORCH_DTYPE_INT16 },   { 'i', GTORCH_DTYPE_INT32 },   { 'l', GTORCH_DTYPE_INT64 },
    { 'e', GTORCH_DTYPE_FLOAT16 }, { 'f', GTORCH_DTYPE_FLOAT32 }, { 'g', GTORCH_DTYPE_FLOAT64 },
  };

  if (schema->dictionary != NULL)
    return refuse (error, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("column “%s” is encoded by a dictionary: decode it first"),
                   column_name (schema));
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    if (schema->format[0] == formats[i].format && schema->format[1] == '\0')
      {
        *dtype = formats[i].dtype;
        return TRUE;
      }
  return refuse (error, GTORCH_ERROR_NOT_SUPPORTED,
                 _ ("column “%s” has the type “%s” of Arrow, for which there is no dtype"),
                 column_name (schema), gtorch_name_str (schema->format));
}

static gboolean
check_schema (const GTorchArrowSchema *schema, gboolean has_release, GError **error)
{
  if (schema == NULL || (has_release && schema->release == NULL) || schema->format == NULL)
    return refuse (error, GTORCH_ERROR_FORMAT, _ ("there is no schema, or it was released"));
  if (schema->n_children < 0 || schema->n_children > MAX_FIELDS
      || (schema->n_children > 0 && schema->children == NULL))
    return refuse (error, GTORCH_ERROR_FORMAT, _ ("the schema has %" PRId64 " children"),
                   schema->n_children);
  return TRUE;
}

static gboolean
check_array (const GTorchArrowSchema *schema, const GTorchArrowArray *array, gint64 n_buffers,
             GError **error)
{
  gint64 end;

  if (array == NULL)
    return refuse (error, GTORCH_ERROR_FORMAT, _ ("column “%s” has no array"),
                   column_name (schema));
  if (array->length < 0 || array->offset < 0
      || __builtin_add_overflow (array->length, array->offset, &end) || array->null_count < -1
      || array->n_buffers != n_buffers || array->buffers == NULL
      || array->n_children != schema->n_children
      || (array->n_children > 0 && array->children == NULL))
    return refuse (error, GTORCH_ERROR_FORMAT,
                   _ ("column “%s” of length %" PRId64 " at %" PRId64 " has %" PRId64
                      " buffers, %" PRId64 " children and %" PRId64 " nulls"),
                   column_name (schema), array->length, array->offset, array->n_buffers,
                   array->n_children, array->null_count);
  return TRUE;
}

/* Elements may be null where a bit of the first buffer is 0; the count may be unknown. */
static gboolean
check_nulls (const GTorchArrowSchema *schema, const GTorchArrowArray *array, gint64 first, gint64 n,
             GError **error)
{
  const guint8 *bits = array->buffers[0];
  gint64 n_nulls = 0;

  if (bits == NULL || array->null_count == 0)
    return array->null_count <= 0
           || refuse (error, GTORCH_ERROR_FORMAT, _ ("column “%s” has nulls and no bits for them"),
                      column_name (schema));
  for (gint64 i = first; i < first + n; i++)
    n_nulls += (bits[i / 8] >> (i % 8) & 1) == 0;
  return n_nulls == 0
         || refuse (error, GTORCH_ERROR_INVALID,
                    _ ("column “%s” has %" PRId64 " nulls among %" PRId64
                       " elements, and tensors have none: fill them first"),
                    column_name (schema), n_nulls, n);
}

/* --- one column --- */

static GTorchImpl *
unpack_bits (const guint8 *bits, gint64 first, gint64 numel, const gint64 *shape, guint n_dims,
             GError **error)
{
  GTorchImpl *impl =
      gtorch_impl_new (gtorch_device_cpu (), GTORCH_DTYPE_BOOL, shape, n_dims, error);
  guint8 *to = impl != NULL && numel > 0 ? gtorch_impl_data (impl) : NULL;

  if (impl == NULL)
    gtorch_error_name_op (error, OP);
  for (gint64 i = 0; to != NULL && i < numel; i++)
    to[i] = bits[(first + i) / 8] >> ((first + i) % 8) & 1;
  return impl;
}

static GTorchImpl *
wrap (Holder *holder, const void *data, guint dtype, gint64 first, gint64 numel,
      const gint64 *shape, guint n_dims, GError **error)
{
  const gsize size = gtorch_dtype_size (dtype);
  const guint8 *address = (const guint8 *) data + first * size;
  GTorchStorage *storage;
  GTorchImpl *impl;

  if (numel == 0 || (guintptr) address % gtorch_dtype_infos[dtype].alignment != 0)
    {
      impl = gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n_dims, error);
      if (impl == NULL)
        gtorch_error_name_op (error, OP);
      else if (numel > 0)
        memcpy (gtorch_impl_data (impl), address, numel * size);
      return impl;
    }
  g_atomic_int_inc (&holder->ref_count);
  storage = gtorch_storage_new_foreign (gtorch_device_cpu (), (gpointer) address, numel * size,
                                        free_storage, holder);
  gtorch_storage_set_read_only (storage);
  impl = gtorch_impl_new_strided (storage, dtype, 0, shape, NULL, n_dims);
  gtorch_storage_unref (storage);
  return impl;
}

/* Lists of a fixed size, within one another, are further dimensions. `first` and `n` are what of the array
 * counts. */
static GTorchImpl *
import_column (Holder *holder, const GTorchArrowSchema *schema, const GTorchArrowArray *array,
               gint64 first, gint64 n, GError **error)
{
  const gchar *name = column_name (schema);
  gint64 shape[GTORCH_MAX_DIMS], end;
  guint n_dims = 0, dtype = GTORCH_DTYPE_NONE;

  while (TRUE)
    {
      gboolean is_list;
      guint64 size;

      if (!check_schema (schema, FALSE, error))
        return NULL;
      is_list = g_str_has_prefix (schema->format, "+w:");
      if ((!is_list && !find_dtype (schema, &dtype, error))
          || !check_array (schema, array, is_list ? 1 : 2, error))
        return NULL;
      /* positions of the parent are counted from the child's offset on */
      if (__builtin_add_overflow (first, n, &end) || end > array->length
          || __builtin_add_overflow (first, array->offset, &first))
        {
          set_refusal (error, GTORCH_ERROR_FORMAT,
                       _ ("column “%s”: elements up to %" PRId64
                          " are wanted, and there are %" PRId64),
                       name, end, array->length);
          return NULL;
        }
      if (n_dims == 0)
        shape[n_dims++] = n;
      if (!check_nulls (schema, array, first, n, error))
        return NULL;
      if (!is_list)
        break;
      if (schema->dictionary != NULL || schema->n_children != 1 || n_dims == GTORCH_MAX_DIMS
          || !g_ascii_string_to_unsigned (schema->format + 3, 10, 0, G_MAXINT32, &size, NULL)
          || __builtin_mul_overflow (first, (gint64) size, &first)
          || __builtin_mul_overflow (n, (gint64) size, &n))
        {
          set_refusal (error, GTORCH_ERROR_FORMAT, _ ("column “%s” has lists of the type “%s”"),
                       name, gtorch_name_str (schema->format));
          return NULL;
        }
      shape[n_dims++] = size;
      schema = schema->children[0];
      array = array->children[0];
    }
  if (!gtorch_shape_check (OP, shape, n_dims, dtype, error))
    return NULL;
  if ((array->buffers[1] == NULL && n > 0)
      || first > (G_MAXINT64 - n) / (gint64) gtorch_dtype_size (dtype) - n)
    {
      set_refusal (error, GTORCH_ERROR_FORMAT,
                   _ ("column “%s”: %" PRId64 " elements at %" PRId64 " have no memory"), name, n,
                   first);
      return NULL;
    }
  if (dtype == GTORCH_DTYPE_BOOL)
    return unpack_bits (array->buffers[1], first, n, shape, n_dims, error);
  return wrap (holder, array->buffers[1], dtype, first, n, shape, n_dims, error);
}

/* --- whole arrays --- */

static Holder *
hold (GTorchArrowArray *array)
{
  Holder *holder = g_new (Holder, 1);

  holder->ref_count = 1;
  holder->array = *array;
  return holder;
}

static gboolean
check_both (const GTorchArrowSchema *schema, const GTorchArrowArray *array, GError **error)
{
  if (!check_schema (schema, TRUE, error))
    return FALSE;
  return (array != NULL && array->release != NULL)
         || refuse (error, GTORCH_ERROR_FORMAT, _ ("there is no array, or it was released"));
}

/* Ends the use of the array by `holder`: it is the caller's again if nothing was made of it. */
static void
let_go (Holder *holder, GTorchArrowArray *array, gboolean is_moved)
{
  if (is_moved)
    array->release = NULL;
  else
    holder->array.release = NULL;
  holder_unref (holder);
}

GTorchTable *
gtorch_arrow_import (const GTorchArrowSchema *schema, GTorchArrowArray *array, GError **error)
{
  g_autoptr (GTorchTable) table = NULL;
  Holder *holder;

  if (!check_both (schema, array, error))
    return NULL;
  if (strcmp (schema->format, "+s") != 0)
    {
      set_refusal (error, GTORCH_ERROR_INVALID,
                   _ ("an array of type “%s” is no table, which is a struct (“+s”)"),
                   gtorch_name_str (schema->format));
      return NULL;
    }
  if (!check_array (schema, array, 1, error)
      || !check_nulls (schema, array, array->offset, array->length, error))
    return NULL;
  holder = hold (array);
  table = gtorch_table_new ();
  for (gint64 i = 0; table != NULL && i < schema->n_children; i++)
    {
      const GTorchArrowSchema *column = schema->children[i];
      g_autoptr (GTorchTensor) tensor = NULL;

      if (check_schema (column, FALSE, error))
        tensor = gtorch_tensor_wrap (import_column (holder, column, array->children[i],
                                                    array->offset, array->length, error));
      if (tensor == NULL
          || !gtorch_table_add (table, column->name != NULL ? column->name : "", tensor, error))
        g_clear_object (&table);
    }
  let_go (holder, array, table != NULL);
  return g_steal_pointer (&table);
}

/**
 * gtorch_arrow_import_table:
 * @schema: the address of an `ArrowSchema` of a struct
 * @array: the address of its `ArrowArray`
 * @error: return location for an error
 *
 * Makes tensors of the columns of a record batch of another library, which gives them by the Arrow C data
 * interface. The memory is shared, and the tensors are read-only; only bools, which have one bit there, are
 * copied. Columns of lists of a fixed size have further dimensions.
 *
 * On success @array is moved away, as the interface says. @schema stays the caller's.
 *
 * Returns: (transfer full): the columns by name, or %NULL with %GTORCH_ERROR_FORMAT if the structures are
 *   inconsistent, %GTORCH_ERROR_NOT_SUPPORTED for a column of texts, times or another type without a dtype,
 *   and %GTORCH_ERROR_INVALID if a column has nulls, or @schema is no struct
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_arrow_import_table (gsize schema, gsize array, GError **error)
{
  return gtorch_arrow_import ((const GTorchArrowSchema *) schema, (GTorchArrowArray *) array,
                              error);
}

/**
 * gtorch_arrow_import_tensor:
 * @schema: the address of an `ArrowSchema`
 * @array: the address of its `ArrowArray`
 * @error: return location for an error
 *
 * Makes a tensor of one column of another library; see [func@arrow_import_table].
 *
 * Returns: (transfer full): the tensor, or %NULL with an error of [func@arrow_import_table]
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_arrow_import_tensor (gsize schema, gsize array, GError **error)
{
  GTorchArrowArray *given = (GTorchArrowArray *) array;
  GTorchImpl *impl;
  Holder *holder;

  if (!check_both ((const GTorchArrowSchema *) schema, given, error))
    return NULL;
  holder = hold (given);
  impl = import_column (holder, (const GTorchArrowSchema *) schema, given, 0, given->length, error);
  let_go (holder, given, impl != NULL);
  return gtorch_tensor_wrap (impl);
}
