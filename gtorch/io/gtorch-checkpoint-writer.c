/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io/gtorch-checkpoint-writer.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "base/gtorch-dtype-private.h"
#include "base/gtorch-file-save-private.h"
#include "base/gtorch-task-private.h"
#include "device/gtorch-device-private.h"
#include "elements/gtorch-tensor-bytes.h"
#include "io/gtorch-pickle-write-private.h"
#include "io/gtorch-zip-private.h"
#include "nn/gtorch-parameter.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

#define OP "checkpoint_save"

/**
 * GTorchCheckpointWriter:
 *
 * Writes a file that `torch.load()` reads: tensors, numbers, texts and containers of them, in a zip archive.
 *
 * Each value that is added has a number, by which containers refer to it; what several refer to is written
 * once. Tensors that share memory share it in the file. [class@CheckpointFile] reads such files.
 *
 * ```c
 * g_autoptr (GTorchCheckpointWriter) writer = gtorch_checkpoint_writer_new ();
 * gint items[2], root;
 *
 * items[0] = gtorch_checkpoint_writer_add_string (writer, "weight");
 * items[1] = gtorch_checkpoint_writer_add_tensor (writer, weight, &error);
 * root = gtorch_checkpoint_writer_add_container (writer, GTORCH_CHECKPOINT_KIND_DICT, items, 2, &error);
 * gtorch_checkpoint_writer_save_file (writer, root, file, NULL, &error);
 * ```
 *
 * Since: 0.1
 */
struct _GTorchCheckpointWriter
{
  GObject parent_instance;
  GPtrArray *nodes; /* of GTorchWrittenNode */
};

G_DEFINE_TYPE (GTorchCheckpointWriter, gtorch_checkpoint_writer, G_TYPE_OBJECT)

static void
node_free (gpointer data)
{
  GTorchWrittenNode *node = data;

  g_clear_pointer (&node->bytes, g_bytes_unref);
  g_clear_object (&node->tensor);
  g_clear_pointer (&node->items, g_array_unref);
  g_free (node);
}

static void
gtorch_checkpoint_writer_finalize (GObject *object)
{
  g_ptr_array_unref (GTORCH_CHECKPOINT_WRITER (object)->nodes);
  G_OBJECT_CLASS (gtorch_checkpoint_writer_parent_class)->finalize (object);
}

static void
gtorch_checkpoint_writer_class_init (GTorchCheckpointWriterClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_checkpoint_writer_finalize;
}

static void
gtorch_checkpoint_writer_init (GTorchCheckpointWriter *self)
{
  self->nodes = g_ptr_array_new_with_free_func (node_free);
}

static GTorchWrittenNode *
add (GTorchCheckpointWriter *self, GTorchCheckpointKind kind, gint *id)
{
  GTorchWrittenNode *node = g_new0 (GTorchWrittenNode, 1);

  node->kind = kind;
  node->is_hashable = TRUE;
  node->attributes = -1;
  *id = self->nodes->len;
  g_ptr_array_add (self->nodes, node);
  return node;
}

static GTorchWrittenNode *
peek (GTorchCheckpointWriter *self, gint id)
{
  return id >= 0 && id < (gint) self->nodes->len ? self->nodes->pdata[id] : NULL;
}

static const gchar *
kind_name (GTorchCheckpointKind kind)
{
  g_autoptr (GEnumClass) klass = g_type_class_ref (GTORCH_TYPE_CHECKPOINT_KIND);
  const GEnumValue *value = g_enum_get_value (klass, kind);

  return value != NULL ? value->value_nick : "?"; /* of static memory */
}

static gboolean
check_id (GTorchCheckpointWriter *self, gint id, GError **error)
{
  if (peek (self, id) != NULL)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
               _ ("checkpoint_save: there is no value %d, of %u that were added"), id,
               self->nodes->len);
  return FALSE;
}

/**
 * gtorch_checkpoint_writer_new:
 *
 * Creates a writer without values.
 *
 * Returns: (transfer full): the writer
 *
 * Since: 0.1
 */
GTorchCheckpointWriter *
gtorch_checkpoint_writer_new (void)
{
  return g_object_new (GTORCH_TYPE_CHECKPOINT_WRITER, NULL);
}

/* --- values --- */

/**
 * gtorch_checkpoint_writer_add_none:
 * @self: a writer
 *
 * Adds Python's `None`.
 *
 * Returns: the number of the value
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_none (GTorchCheckpointWriter *self)
{
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  add (self, GTORCH_CHECKPOINT_KIND_NONE, &id);
  return id;
}

/**
 * gtorch_checkpoint_writer_add_bool:
 * @self: a writer
 * @value: a boolean
 *
 * Adds a boolean.
 *
 * Returns: the number of the value
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_bool (GTorchCheckpointWriter *self, gboolean value)
{
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  add (self, GTORCH_CHECKPOINT_KIND_BOOL, &id)->whole = value != FALSE;
  return id;
}

/**
 * gtorch_checkpoint_writer_add_int:
 * @self: a writer
 * @value: an integer
 *
 * Adds an integer.
 *
 * Returns: the number of the value
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_int (GTorchCheckpointWriter *self, gint64 value)
{
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  add (self, GTORCH_CHECKPOINT_KIND_INT, &id)->whole = value;
  return id;
}

/**
 * gtorch_checkpoint_writer_add_double:
 * @self: a writer
 * @value: a number
 *
 * Adds a decimal number.
 *
 * Returns: the number of the value
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_double (GTorchCheckpointWriter *self, gdouble value)
{
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  add (self, GTORCH_CHECKPOINT_KIND_DOUBLE, &id)->parts[0] = value;
  return id;
}

/**
 * gtorch_checkpoint_writer_add_complex:
 * @self: a writer
 * @real: the real part
 * @imaginary: the imaginary part
 *
 * Adds a complex number.
 *
 * Returns: the number of the value
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_complex (GTorchCheckpointWriter *self, gdouble real, gdouble imaginary)
{
  GTorchWrittenNode *node;
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  node = add (self, GTORCH_CHECKPOINT_KIND_COMPLEX, &id);
  node->parts[0] = real;
  node->parts[1] = imaginary;
  return id;
}

/**
 * gtorch_checkpoint_writer_add_string:
 * @self: a writer
 * @text: a text
 *
 * Adds a text.
 *
 * Returns: the number of the value
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_string (GTorchCheckpointWriter *self, const gchar *text)
{
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  g_return_val_if_fail (text != NULL, -1);
  add (self, GTORCH_CHECKPOINT_KIND_STRING, &id)->bytes = g_bytes_new (text, strlen (text));
  return id;
}

/**
 * gtorch_checkpoint_writer_add_bytes:
 * @self: a writer
 * @kind: %GTORCH_CHECKPOINT_KIND_BYTES; or %GTORCH_CHECKPOINT_KIND_STRING for a text in UTF-8, which may have
 *   zeros in it; or %GTORCH_CHECKPOINT_KIND_LONG for an integer of any size, the least byte first, in two's
 *   complement
 * @bytes: the bytes
 * @error: return location for an error
 *
 * Adds bytes, or what is made of them.
 *
 * Returns: the number of the value; -1 with %GTORCH_ERROR_INVALID if the kind is another one, or the bytes
 *   are no UTF-8
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_bytes (GTorchCheckpointWriter *self, GTorchCheckpointKind kind,
                                    GBytes *bytes, GError **error)
{
  gsize n;
  const gchar *data;
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  g_return_val_if_fail (bytes != NULL, -1);
  data = g_bytes_get_data (bytes, &n);
  if (kind != GTORCH_CHECKPOINT_KIND_BYTES && kind != GTORCH_CHECKPOINT_KIND_STRING
      && kind != GTORCH_CHECKPOINT_KIND_LONG)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("checkpoint_save: bytes are of the kind bytes, string or long, not %s"),
                   kind_name (kind));
      return -1;
    }
  if (kind == GTORCH_CHECKPOINT_KIND_STRING)
    for (gsize at = 0; at < n;)
      {
        const gchar *end;

        if (!g_utf8_validate (data + at, n - at, &end) && *end != '\0')
          {
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                         _ ("checkpoint_save: a text has a byte at %zu that is no UTF-8"),
                         (gsize) (end - data));
            return -1;
          }
        at = end - data + 1;
      }
  add (self, kind, &id)->bytes = g_bytes_ref (bytes);
  return id;
}

/**
 * gtorch_checkpoint_writer_add_tensor:
 * @self: a writer
 * @tensor: a tensor, which may be a [class@Parameter]
 * @error: return location for an error
 *
 * Adds a tensor. Its elements are read when the file is written.
 *
 * Returns: the number of the value; -1 with %GTORCH_ERROR_AUTOGRAD if the tensor has a history of
 *   gradients, which no file keeps, or with %GTORCH_ERROR_RELEASED
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_tensor (GTorchCheckpointWriter *self, GTorchTensor *tensor,
                                     GError **error)
{
  GTORCH_HOLD_TENSOR (tensor);
  const GTorchImpl *impl;
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), -1);
  impl = gtorch_tensor_unwrap (tensor);
  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("checkpoint_save: a tensor of shape %s was released"),
                   gtorch_impl_shape_str (impl));
      return -1;
    }
  if (gtorch_tensor_get_requires_grad (tensor) && !gtorch_tensor_is_leaf (tensor))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("checkpoint_save: a tensor of shape %s has a history of gradients, which no "
                      "file keeps: "
                      "detach it"),
                   gtorch_impl_shape_str (impl));
      return -1;
    }
  add (self,
       GTORCH_IS_PARAMETER (tensor) ? GTORCH_CHECKPOINT_KIND_PARAMETER
                                    : GTORCH_CHECKPOINT_KIND_TENSOR,
       &id)
      ->tensor = g_object_ref (tensor);
  return id;
}

/**
 * gtorch_checkpoint_writer_add_dtype:
 * @self: a writer
 * @dtype: a dtype
 * @error: return location for an error
 *
 * Adds a dtype, such as PyTorch's `torch.float32`.
 *
 * Returns: the number of the value; -1 with %GTORCH_ERROR_INVALID if there is no such dtype
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_dtype (GTorchCheckpointWriter *self, GTorchDType dtype, GError **error)
{
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  if ((gint) dtype <= GTORCH_DTYPE_NONE || (gint) dtype >= GTORCH_N_DTYPES)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("checkpoint_save: there is no dtype %d"), (gint) dtype);
      return -1;
    }
  add (self, GTORCH_CHECKPOINT_KIND_DTYPE, &id)->whole = dtype;
  return id;
}

/**
 * gtorch_checkpoint_writer_add_device:
 * @self: a writer
 * @device: a device
 *
 * Adds a device, such as PyTorch's `torch.device('cuda:0')`.
 *
 * Returns: the number of the value
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_device (GTorchCheckpointWriter *self, GTorchDevice *device)
{
  const gchar *name;
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  g_return_val_if_fail (GTORCH_IS_DEVICE (device), -1);
  name = gtorch_device_name (device);
  add (self, GTORCH_CHECKPOINT_KIND_DEVICE, &id)->bytes = g_bytes_new (name, strlen (name));
  return id;
}

/* --- containers --- */

static gboolean
has_pairs (GTorchCheckpointKind kind)
{
  return kind == GTORCH_CHECKPOINT_KIND_DICT || kind == GTORCH_CHECKPOINT_KIND_ORDERED_DICT
         || kind == GTORCH_CHECKPOINT_KIND_COUNTER;
}

static gboolean
is_container (GTorchCheckpointKind kind)
{
  return has_pairs (kind) || kind == GTORCH_CHECKPOINT_KIND_LIST
         || kind == GTORCH_CHECKPOINT_KIND_TUPLE || kind == GTORCH_CHECKPOINT_KIND_SET
         || kind == GTORCH_CHECKPOINT_KIND_FROZENSET || kind == GTORCH_CHECKPOINT_KIND_SIZE;
}

/* What Python takes no more items for, and what may be a key. */
static gboolean
is_fixed (GTorchCheckpointKind kind)
{
  return kind == GTORCH_CHECKPOINT_KIND_TUPLE || kind == GTORCH_CHECKPOINT_KIND_FROZENSET
         || kind == GTORCH_CHECKPOINT_KIND_SIZE;
}

static gboolean
check_items (GTorchCheckpointWriter *self, GTorchCheckpointKind kind, const gint *items, gsize n,
             GError **error)
{
  if (has_pairs (kind) && n % 2 != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("checkpoint_save: %zu items are no pairs of a key and a value, which a %s "
                      "has"),
                   n, kind_name (kind));
      return FALSE;
    }
  for (gsize i = 0; i < n; i++)
    {
      const gboolean is_key = has_pairs (kind) ? i % 2 == 0
                                               : kind == GTORCH_CHECKPOINT_KIND_SET
                                                     || kind == GTORCH_CHECKPOINT_KIND_FROZENSET;
      const GTorchWrittenNode *item;

      if (!check_id (self, items[i], error))
        return FALSE;
      item = peek (self, items[i]);
      if (kind == GTORCH_CHECKPOINT_KIND_SIZE
          && (item->kind != GTORCH_CHECKPOINT_KIND_INT || item->whole < 0))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("checkpoint_save: item %zu of a size is no integer that is not negative"),
                       i);
          return FALSE;
        }
      if (is_key && !item->is_hashable)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("checkpoint_save: item %zu of a %s is a %s, which can be changed and so "
                          "is no key"),
                       i, kind_name (kind), kind_name (item->kind));
          return FALSE;
        }
    }
  return TRUE;
}

/**
 * gtorch_checkpoint_writer_add_container:
 * @self: a writer
 * @kind: a list, a tuple, a dictionary, an ordered one, a counter, a set, a frozen set, or a size
 * @items: (array length=n_items): the numbers of its values; of a dictionary keys and values in turn
 * @n_items: the length of @items
 * @error: return location for an error
 *
 * Adds a container of values.
 *
 * Returns: the number of the value; -1 with %GTORCH_ERROR_INVALID if the kind is another one, if a key has
 *   no value or can be changed, or an item of a size is no integer, or with %GTORCH_ERROR_INDEX for an
 *   unknown number
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_writer_add_container (GTorchCheckpointWriter *self, GTorchCheckpointKind kind,
                                        const gint *items, gsize n_items, GError **error)
{
  GTorchWrittenNode *node;
  gint id;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), -1);
  g_return_val_if_fail (items != NULL || n_items == 0, -1);
  if (!is_container (kind))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("checkpoint_save: %s is no container"), kind_name (kind));
      return -1;
    }
  if (!check_items (self, kind, items, n_items, error))
    return -1;
  node = add (self, kind, &id);
  node->items = g_array_new (FALSE, FALSE, sizeof (gint));
  g_array_append_vals (node->items, items, n_items);
  node->is_hashable = is_fixed (kind);
  for (gsize i = 0; i < n_items; i++)
    node->is_hashable = node->is_hashable && peek (self, items[i])->is_hashable;
  return id;
}

/**
 * gtorch_checkpoint_writer_append:
 * @self: a writer
 * @container: the number of a list, a dictionary, a counter or a set
 * @items: (array length=n_items): the numbers of values, as for [method@CheckpointWriter.add_container]
 * @n_items: the length of @items
 * @error: return location for an error
 *
 * Adds values to a container, which may be among them, or in them.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if the container cannot be changed, and with the
 *   errors of [method@CheckpointWriter.add_container]
 *
 * Since: 0.1
 */
gboolean
gtorch_checkpoint_writer_append (GTorchCheckpointWriter *self, gint container, const gint *items,
                                 gsize n_items, GError **error)
{
  GTorchWrittenNode *node;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), FALSE);
  g_return_val_if_fail (items != NULL || n_items == 0, FALSE);
  if (!check_id (self, container, error))
    return FALSE;
  node = peek (self, container);
  if (!is_container (node->kind) || is_fixed (node->kind))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("checkpoint_save: value %d is a %s, which takes no more items"), container,
                   kind_name (node->kind));
      return FALSE;
    }
  if (!check_items (self, node->kind, items, n_items, error))
    return FALSE;
  g_array_append_vals (node->items, items, n_items);
  return TRUE;
}

/**
 * gtorch_checkpoint_writer_set_attributes:
 * @self: a writer
 * @container: the number of an ordered dictionary
 * @attributes: the number of a dictionary from names to values
 * @error: return location for an error
 *
 * Sets the attributes of the object that Python makes, such as the `_metadata` of states of modules.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INVALID if the values are of other kinds, or with
 *   %GTORCH_ERROR_INDEX for an unknown number
 *
 * Since: 0.1
 */
gboolean
gtorch_checkpoint_writer_set_attributes (GTorchCheckpointWriter *self, gint container,
                                         gint attributes, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), FALSE);
  if (!check_id (self, container, error) || !check_id (self, attributes, error))
    return FALSE;
  if (peek (self, container)->kind != GTORCH_CHECKPOINT_KIND_ORDERED_DICT
      || peek (self, attributes)->kind != GTORCH_CHECKPOINT_KIND_DICT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("checkpoint_save: an ordered-dict has attributes in a dict, and value %d is "
                      "a %s, value "
                      "%d a %s"),
                   container, kind_name (peek (self, container)->kind), attributes,
                   kind_name (peek (self, attributes)->kind));
      return FALSE;
    }
  peek (self, container)->attributes = attributes;
  return TRUE;
}

/* --- files --- */

typedef struct
{
  GBytes *pickle;
  GPtrArray *storages; /* of GTorchWrittenStorage */
  gchar *stem;         /* what names of members begin with */
  GFile *file;
} Save;

static void
save_clear (Save *save)
{
  g_clear_pointer (&save->pickle, g_bytes_unref);
  g_clear_pointer (&save->storages, g_ptr_array_unref);
  g_clear_pointer (&save->stem, g_free);
  g_clear_object (&save->file);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Save, save_clear)

static void
save_free (gpointer data)
{
  save_clear (data);
  g_free (data);
}

/* As PyTorch, names members after the file. */
static gchar *
find_stem (GFile *file)
{
  g_autofree gchar *name = g_file_get_basename (file);
  gchar *end = name != NULL ? strrchr (name, '.') : NULL;

  if (end != NULL && end > name)
    *end = '\0';
  return name != NULL && *name != '\0' && *name != '/' && g_utf8_validate (name, -1, NULL)
             ? g_steal_pointer (&name)
             : g_strdup ("archive");
}

/* Takes what is to be written; later changes of the writer do not matter. */
static gboolean
prepare (GTorchCheckpointWriter *self, gint root, GFile *file, Save *save, GError **error)
{
  if (!check_id (self, root, error))
    return FALSE;
  save->pickle = gtorch_pickle_write (OP, self->nodes, root, &save->storages, error);
  if (save->pickle == NULL)
    return FALSE;
  save->stem = file != NULL ? find_stem (file) : g_strdup ("archive");
  save->file = file != NULL ? g_object_ref (file) : NULL;
  return TRUE;
}

static GBytes *
get_elements (const GTorchWrittenStorage *storage, GError **error)
{
  GTORCH_HOLD_TENSOR (storage->tensor);
  const GTorchImpl *impl = gtorch_tensor_unwrap (storage->tensor);
  g_autoptr (GTorchTensor) flat = NULL;

  if (impl->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("checkpoint_save: a tensor of shape %s was released"),
                   gtorch_impl_shape_str (impl));
      return NULL;
    }
  if (storage->numel == 0)
    return g_bytes_new_static ("", 0);
  flat = gtorch_tensor_wrap (
      gtorch_impl_new_strided (impl->storage, impl->dtype, 0, &storage->numel, NULL, 1));
  return flat != NULL ? gtorch_tensor_get_bytes (flat, error) : NULL;
}

static gboolean
write_member (GTorchZipWriter *writer, const Save *save, const gchar *name, GBytes *content,
              GCancellable *cancellable, GError **error)
{
  g_autofree gchar *path = g_strconcat (save->stem, "/", name, NULL);
  g_autoptr (GBytes) none = g_bytes_new_static ("", 0);

  return gtorch_zip_writer_add (writer, path, none, content, FALSE, cancellable, error);
}

static gboolean
write_archive (GOutputStream *stream, GCancellable *cancellable, gpointer data, GError **error)
{
  const Save *save = data;
  g_autoptr (GTorchZipWriter) writer = gtorch_zip_writer_new (OP, stream);
  g_autoptr (GBytes) order = g_bytes_new_static (G_BYTE_ORDER == G_BIG_ENDIAN ? "big" : "little",
                                                 G_BYTE_ORDER == G_BIG_ENDIAN ? 3 : 6);
  g_autoptr (GBytes) version = g_bytes_new_static ("3\n", 2);

  if (!write_member (writer, save, "data.pkl", save->pickle, cancellable, error)
      || !write_member (writer, save, "byteorder", order, cancellable, error))
    return FALSE;
  for (guint i = 0; i < save->storages->len; i++)
    {
      g_autofree gchar *name = g_strdup_printf ("data/%u", i);
      g_autoptr (GBytes) content = get_elements (save->storages->pdata[i], error);

      if (content == NULL || !write_member (writer, save, name, content, cancellable, error))
        return FALSE;
    }
  return write_member (writer, save, "version", version, cancellable, error)
         && gtorch_zip_writer_close (writer, cancellable, error);
}

/**
 * gtorch_checkpoint_writer_save:
 * @self: a writer
 * @root: the number of the value that the file has
 * @stream: the stream to write to, which need not seek
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes a value, and all that it refers to, as `torch.save()` does. Equal values give equal bytes.
 *
 * Returns: %TRUE, or %FALSE with %GTORCH_ERROR_INDEX if there is no such value, with %GTORCH_ERROR_INVALID
 *   if values are nested more than 1000 deep, %GTORCH_ERROR_RELEASED, or an error of the stream
 *
 * Since: 0.1
 */
gboolean
gtorch_checkpoint_writer_save (GTorchCheckpointWriter *self, gint root, GOutputStream *stream,
                               GCancellable *cancellable, GError **error)
{
  g_auto (Save) save = { NULL };

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), FALSE);
  g_return_val_if_fail (G_IS_OUTPUT_STREAM (stream), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return !g_cancellable_set_error_if_cancelled (cancellable, error)
         && prepare (self, root, NULL, &save, error)
         && write_archive (stream, cancellable, &save, error);
}

/**
 * gtorch_checkpoint_writer_save_file:
 * @self: a writer
 * @root: the number of the value that the file has
 * @file: the file to write or replace
 * @cancellable: (nullable): a cancellable
 * @error: return location for an error
 *
 * Writes a value to a file. If anything fails, an existing file is unchanged, as with
 * [func@safetensors_save_file].
 *
 * Returns: %TRUE, or %FALSE with an error of [method@CheckpointWriter.save], or of the file
 *
 * Since: 0.1
 */
gboolean
gtorch_checkpoint_writer_save_file (GTorchCheckpointWriter *self, gint root, GFile *file,
                                    GCancellable *cancellable, GError **error)
{
  g_auto (Save) save = { NULL };

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), FALSE);
  g_return_val_if_fail (G_IS_FILE (file), FALSE);
  g_return_val_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable), FALSE);
  return !g_cancellable_set_error_if_cancelled (cancellable, error)
         && prepare (self, root, file, &save, error)
         && gtorch_file_save (file, write_archive, &save, cancellable, error);
}

static gpointer
save_run (gpointer data, GCancellable *cancellable, GError **error)
{
  Save *save = data;

  return GINT_TO_POINTER (gtorch_file_save (save->file, write_archive, save, cancellable, error));
}

/**
 * gtorch_checkpoint_writer_save_file_async:
 * @self: a writer, which may be changed immediately
 * @root: the number of the value that the file has
 * @file: the file to write or replace
 * @io_priority: the priority, such as %G_PRIORITY_DEFAULT
 * @cancellable: (nullable): a cancellable
 * @callback: (scope async) (closure user_data): called when it is done
 * @user_data: data for @callback
 *
 * Does the same as [method@CheckpointWriter.save_file] in another thread. The elements of tensors must not
 * be changed until it is done.
 *
 * Since: 0.1
 */
void
gtorch_checkpoint_writer_save_file_async (GTorchCheckpointWriter *self, gint root, GFile *file,
                                          int io_priority, GCancellable *cancellable,
                                          GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  GError *error = NULL;
  Save *save;

  g_return_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self));
  g_return_if_fail (G_IS_FILE (file));
  g_return_if_fail (cancellable == NULL || G_IS_CANCELLABLE (cancellable));
  task = gtorch_task_new (self, gtorch_checkpoint_writer_save_file_async, cancellable, callback,
                          user_data);
  save = g_new0 (Save, 1);
  if (prepare (self, root, file, save, &error))
    gtorch_source_run (task, io_priority, save_run, save, save_free, NULL);
  else
    {
      save_free (save);
      g_task_return_error (task, error);
    }
}

/**
 * gtorch_checkpoint_writer_save_file_finish:
 * @self: a writer
 * @result: the result that the callback got
 * @error: return location for an error
 *
 * Gets the result of [method@CheckpointWriter.save_file_async].
 *
 * Returns: %TRUE, or %FALSE on error
 *
 * Since: 0.1
 */
gboolean
gtorch_checkpoint_writer_save_file_finish (GTorchCheckpointWriter *self, GAsyncResult *result,
                                           GError **error)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_WRITER (self), FALSE);
  g_return_val_if_fail (G_IS_ASYNC_RESULT (result), FALSE);
  return gtorch_task_take (result, self, gtorch_checkpoint_writer_save_file_async, error)
         && g_task_propagate_pointer (G_TASK (result), error) != NULL;
}
