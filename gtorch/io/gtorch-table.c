/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io/gtorch-table.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-text-private.h"
#include "tensor/gtorch-tensor-private.h"

#define SHOWN 8 /* names in a message */

/**
 * GTorchTable:
 *
 * Tensors with names, in an order: the arrays of an .npz file, the columns of a CSV file or an Arrow table.
 *
 * Names are unique. In Python a table is a mapping: `table['x']`, `table.items()`, `dict(table)`.
 *
 * Since: 0.1
 */
struct _GTorchTable
{
  GObject parent_instance;
  GPtrArray *names;
  GPtrArray *tensors;
  GHashTable *places; /* by name, from 1 on */
};

G_DEFINE_TYPE (GTorchTable, gtorch_table, G_TYPE_OBJECT)

static void
gtorch_table_finalize (GObject *object)
{
  GTorchTable *self = GTORCH_TABLE (object);

  g_hash_table_unref (self->places);
  g_ptr_array_unref (self->names);
  g_ptr_array_unref (self->tensors);
  G_OBJECT_CLASS (gtorch_table_parent_class)->finalize (object);
}

static void
gtorch_table_class_init (GTorchTableClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_table_finalize;
}

static void
gtorch_table_init (GTorchTable *self)
{
  self->names = g_ptr_array_new_with_free_func (g_free);
  self->tensors = g_ptr_array_new_with_free_func (g_object_unref);
  self->places = g_hash_table_new (g_str_hash, g_str_equal);
}

/**
 * gtorch_table_new: (constructor)
 *
 * Creates a table without tensors.
 *
 * Returns: (transfer full): the table
 *
 * Since: 0.1
 */
GTorchTable *
gtorch_table_new (void)
{
  return g_object_new (GTORCH_TYPE_TABLE, NULL);
}

/**
 * gtorch_table_add:
 * @self: a table
 * @name: a name that is not in the table
 * @tensor: a tensor
 * @error: return location for an error
 *
 * Adds a tensor at the end.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if the name is in the table or not UTF-8
 *
 * Since: 0.1
 */
gboolean
gtorch_table_add (GTorchTable *self, const gchar *name, GTorchTensor *tensor, GError **error)
{
  gchar *own;

  g_return_val_if_fail (GTORCH_IS_TABLE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), FALSE);

  if (!gtorch_name_check ("table_add", name, error))
    return FALSE;
  if (g_hash_table_contains (self->places, name))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("table_add: “%s” is in the table already"), gtorch_name_str (name));
      return FALSE;
    }
  own = g_strdup (name);
  g_ptr_array_add (self->names, own);
  g_ptr_array_add (self->tensors, g_object_ref (tensor));
  g_hash_table_insert (self->places, own, GUINT_TO_POINTER (self->names->len));
  return TRUE;
}

/**
 * gtorch_table_get_length:
 * @self: a table
 *
 * Gets the number of tensors.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_table_get_length (GTorchTable *self)
{
  g_return_val_if_fail (GTORCH_IS_TABLE (self), 0);
  return self->names->len;
}

/**
 * gtorch_table_get_name:
 * @self: a table
 * @index: a number below [method@Table.get_length]
 *
 * Gets the name of a tensor.
 *
 * Returns: (nullable): the name, or %NULL if there is no such number
 *
 * Since: 0.1
 */
const gchar *
gtorch_table_get_name (GTorchTable *self, guint index)
{
  g_return_val_if_fail (GTORCH_IS_TABLE (self), NULL);
  return index < self->names->len ? self->names->pdata[index] : NULL;
}

/**
 * gtorch_table_get_tensor:
 * @self: a table
 * @index: a number below [method@Table.get_length]
 *
 * Gets a tensor by its place.
 *
 * Returns: (transfer none) (nullable): the tensor, or %NULL if there is no such number
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_table_get_tensor (GTorchTable *self, guint index)
{
  g_return_val_if_fail (GTORCH_IS_TABLE (self), NULL);
  return index < self->tensors->len ? self->tensors->pdata[index] : NULL;
}

/**
 * gtorch_table_contains:
 * @self: a table
 * @name: a name
 *
 * Tells whether there is a tensor of this name.
 *
 * Returns: %TRUE if there is
 *
 * Since: 0.1
 */
gboolean
gtorch_table_contains (GTorchTable *self, const gchar *name)
{
  g_return_val_if_fail (GTORCH_IS_TABLE (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  return g_hash_table_contains (self->places, name);
}

/**
 * gtorch_table_lookup:
 * @self: a table
 * @name: a name
 * @error: return location for an error
 *
 * Gets a tensor by its name.
 *
 * ```c
 * GTorchTensor *images = gtorch_table_lookup (table, "images", &error);
 * ```
 *
 * Returns: (transfer none): the tensor, or %NULL with %GTORCH_ERROR_NOT_FOUND
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_table_lookup (GTorchTable *self, const gchar *name, GError **error)
{
  g_autoptr (GString) known = NULL;
  guint place;

  g_return_val_if_fail (GTORCH_IS_TABLE (self), NULL);
  g_return_val_if_fail (name != NULL, NULL);

  place = GPOINTER_TO_UINT (g_hash_table_lookup (self->places, name));
  if (place > 0)
    return self->tensors->pdata[place - 1];
  known = g_string_new (NULL);
  for (guint i = 0; i < MIN (self->names->len, SHOWN); i++)
    g_string_append_printf (known, "%s“%s”", i > 0 ? ", " : "",
                            gtorch_name_str (self->names->pdata[i]));
  if (self->names->len > SHOWN)
    g_string_append (known, ", …");
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
               _ ("table_lookup: there is no “%s”, only %s"), gtorch_name_str (name),
               known->len > 0 ? known->str : _ ("an empty table"));
  return NULL;
}

/**
 * gtorch_table_to_hash_table:
 * @self: a table
 *
 * Makes a hash table of the tensors, as [method@Module.load_state_dict] takes it.
 *
 * Returns: (transfer container) (element-type utf8 GTorchTensor): the tensors by name
 *
 * Since: 0.1
 */
GHashTable *
gtorch_table_to_hash_table (GTorchTable *self)
{
  GHashTable *table;

  g_return_val_if_fail (GTORCH_IS_TABLE (self), NULL);
  table = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_object_unref);
  for (guint i = 0; i < self->names->len; i++)
    g_hash_table_insert (table, g_strdup (self->names->pdata[i]),
                         g_object_ref (self->tensors->pdata[i]));
  return table;
}
