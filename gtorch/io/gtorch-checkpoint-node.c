/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "io/gtorch-checkpoint-node.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "io/gtorch-checkpoint-file-private.h"

/**
 * GTorchCheckpointNode:
 *
 * A value in a [class@CheckpointFile]: a number, a text, a tensor, or a container of other values.
 *
 * Each kind has its function: [method@CheckpointNode.get_int] for integers,
 * [method@CheckpointNode.get_tensor] for tensors. A function that does not belong to the kind returns 0 or
 * %NULL.
 *
 * Since: 0.1
 */
struct _GTorchCheckpointNode
{
  GObject parent_instance;
  GTorchCheckpointFile *checkpoint;
  guint index;
};

G_DEFINE_TYPE (GTorchCheckpointNode, gtorch_checkpoint_node, G_TYPE_OBJECT)

#define VALUE(name, nick)                                                \
  {                                                                      \
    GTORCH_CHECKPOINT_KIND_##name, "GTORCH_CHECKPOINT_KIND_" #name, nick \
  }

GType
gtorch_checkpoint_kind_get_type (void)
{
  static gsize type = 0;
  static const GEnumValue values[] = {
    VALUE (NONE, "none"),
    VALUE (BOOL, "bool"),
    VALUE (INT, "int"),
    VALUE (LONG, "long"),
    VALUE (DOUBLE, "double"),
    VALUE (COMPLEX, "complex"),
    VALUE (STRING, "string"),
    VALUE (BYTES, "bytes"),
    VALUE (TENSOR, "tensor"),
    VALUE (PARAMETER, "parameter"),
    VALUE (LIST, "list"),
    VALUE (TUPLE, "tuple"),
    VALUE (DICT, "dict"),
    VALUE (ORDERED_DICT, "ordered-dict"),
    VALUE (COUNTER, "counter"),
    VALUE (SET, "set"),
    VALUE (FROZENSET, "frozenset"),
    VALUE (SIZE, "size"),
    VALUE (DTYPE, "dtype"),
    VALUE (DEVICE, "device"),
    { 0, NULL, NULL },
  };

  if (g_once_init_enter (&type))
    g_once_init_leave (&type, g_enum_register_static ("GTorchCheckpointKind", values));
  return type;
}

static void
gtorch_checkpoint_node_finalize (GObject *object)
{
  g_clear_object (&GTORCH_CHECKPOINT_NODE (object)->checkpoint);
  G_OBJECT_CLASS (gtorch_checkpoint_node_parent_class)->finalize (object);
}

static void
gtorch_checkpoint_node_class_init (GTorchCheckpointNodeClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = gtorch_checkpoint_node_finalize;
}

static void
gtorch_checkpoint_node_init (GTorchCheckpointNode *self)
{
}

GTorchCheckpointNode *
gtorch_checkpoint_node_new (GTorchCheckpointFile *checkpoint, guint index)
{
  GTorchCheckpointNode *self = g_object_new (GTORCH_TYPE_CHECKPOINT_NODE, NULL);

  self->checkpoint = g_object_ref (checkpoint);
  self->index = index;
  return self;
}

/* What an object has that g_object_new () made: None. */
static const GTorchPickleNode *
peek (GTorchCheckpointNode *self)
{
  static const GTorchPickleNode none = { .kind = GTORCH_CHECKPOINT_KIND_NONE };

  return self->checkpoint != NULL && self->checkpoint->pickle != NULL
             ? gtorch_checkpoint_file_peek (self->checkpoint, self->index)
             : &none;
}

static gboolean
is_dict (const GTorchPickleNode *node)
{
  return node->kind == GTORCH_CHECKPOINT_KIND_DICT
         || node->kind == GTORCH_CHECKPOINT_KIND_ORDERED_DICT
         || node->kind == GTORCH_CHECKPOINT_KIND_COUNTER;
}

/**
 * gtorch_checkpoint_node_get_kind:
 * @self: a value of a checkpoint
 *
 * Tells what the value is.
 *
 * Returns: the kind
 *
 * Since: 0.1
 */
GTorchCheckpointKind
gtorch_checkpoint_node_get_kind (GTorchCheckpointNode *self)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), GTORCH_CHECKPOINT_KIND_NONE);
  return peek (self)->kind;
}

/**
 * gtorch_checkpoint_node_get_index:
 * @self: a value of a checkpoint
 *
 * Gets the number of the value, by which [method@CheckpointFile.get_node] finds it. The same value has the
 * same number wherever it is.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
guint
gtorch_checkpoint_node_get_index (GTorchCheckpointNode *self)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), 0);
  return self->index;
}

/**
 * gtorch_checkpoint_node_get_length:
 * @self: a value of a checkpoint
 *
 * Gets the number of items of a list, a tuple, a set, a shape or a dictionary.
 *
 * Returns: the number, 0 for other kinds
 *
 * Since: 0.1
 */
guint
gtorch_checkpoint_node_get_length (GTorchCheckpointNode *self)
{
  const GTorchPickleNode *node;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), 0);
  node = peek (self);
  return node->children == NULL ? 0
         : is_dict (node)       ? node->children->len / 2
                                : node->children->len;
}

static GTorchCheckpointNode *
get_part (GTorchCheckpointNode *self, guint place, gboolean is_key)
{
  const GTorchPickleNode *node = peek (self);

  if (place >= gtorch_checkpoint_node_get_length (self) || (is_key && !is_dict (node)))
    return NULL;
  if (is_dict (node))
    place = 2 * place + !is_key;
  return gtorch_checkpoint_node_new (self->checkpoint,
                                     g_array_index (node->children, guint32, place));
}

/**
 * gtorch_checkpoint_node_get_child:
 * @self: a value of a checkpoint
 * @place: a number below [method@CheckpointNode.get_length]
 *
 * Gets an item of a list, a tuple, a set or a shape, or a value of a dictionary.
 *
 * Returns: (transfer full) (nullable): the item, or %NULL if there is none
 *
 * Since: 0.1
 */
GTorchCheckpointNode *
gtorch_checkpoint_node_get_child (GTorchCheckpointNode *self, guint place)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), NULL);
  return get_part (self, place, FALSE);
}

/**
 * gtorch_checkpoint_node_get_key:
 * @self: a value of a checkpoint
 * @place: a number below [method@CheckpointNode.get_length]
 *
 * Gets a key of a dictionary.
 *
 * Returns: (transfer full) (nullable): the key, or %NULL if there is none
 *
 * Since: 0.1
 */
GTorchCheckpointNode *
gtorch_checkpoint_node_get_key (GTorchCheckpointNode *self, guint place)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), NULL);
  return get_part (self, place, TRUE);
}

/**
 * gtorch_checkpoint_node_lookup:
 * @self: a value of a checkpoint
 * @key: a text
 * @error: return location for an error
 *
 * Gets a value of a dictionary whose key is a text.
 *
 * ```c
 * g_autoptr (GTorchCheckpointNode) root = gtorch_checkpoint_file_get_root (checkpoint);
 * g_autoptr (GTorchCheckpointNode) epoch = gtorch_checkpoint_node_lookup (root, "epoch", &error);
 * gint64 n = epoch != NULL ? gtorch_checkpoint_node_get_int (epoch) : 0;
 * ```
 *
 * Returns: (transfer full): the value, or %NULL with %GTORCH_ERROR_NOT_FOUND
 *
 * Since: 0.1
 */
GTorchCheckpointNode *
gtorch_checkpoint_node_lookup (GTorchCheckpointNode *self, const gchar *key, GError **error)
{
  const GTorchPickleNode *node;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), NULL);
  g_return_val_if_fail (key != NULL, NULL);
  node = peek (self);
  /* of two items with one key the last counts, as in Python */
  for (guint i = gtorch_checkpoint_node_get_length (self); is_dict (node) && i > 0; i--)
    {
      const GTorchPickleNode *one =
          gtorch_checkpoint_file_peek (self->checkpoint,
                                       g_array_index (node->children, guint32, 2 * i - 2));

      if (one->kind == GTORCH_CHECKPOINT_KIND_STRING && one->length == strlen (key)
          && strcmp (one->text, key) == 0)
        return get_part (self, i - 1, FALSE);
    }
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
               is_dict (node) ? _ ("checkpoint_lookup: the %s has no key “%s”")
                              : _ ("checkpoint_lookup: the value is a %s and has no key “%s”: only "
                                   "dictionaries have"),
               gtorch_pickle_kind_name (node), gtorch_name_str (key));
  return NULL;
}

/**
 * gtorch_checkpoint_node_get_attributes:
 * @self: a value of a checkpoint
 *
 * Gets the attributes of an `OrderedDict`, as state dicts of PyTorch's have them.
 *
 * Returns: (transfer full) (nullable): a dictionary, or %NULL if there are none
 *
 * Since: 0.1
 */
GTorchCheckpointNode *
gtorch_checkpoint_node_get_attributes (GTorchCheckpointNode *self)
{
  guint attributes;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), NULL);
  attributes = peek (self)->attributes;
  return attributes != 0 ? gtorch_checkpoint_node_new (self->checkpoint, attributes) : NULL;
}

/**
 * gtorch_checkpoint_node_get_tensor:
 * @self: a value of a checkpoint
 *
 * Gets a tensor, or a parameter, which is a [class@Parameter]. It is on the CPU.
 *
 * Returns: (transfer none) (nullable): the tensor, or %NULL if the value is none
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_checkpoint_node_get_tensor (GTorchCheckpointNode *self)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), NULL);
  return peek (self)->tensor;
}

/**
 * gtorch_checkpoint_node_get_storage_index:
 * @self: a value of a checkpoint
 *
 * Gets the number of the memory that the tensor is a view of, by which [method@CheckpointFile.get_storage]
 * finds it.
 *
 * Returns: the number, -1 if the value is no tensor
 *
 * Since: 0.1
 */
gint
gtorch_checkpoint_node_get_storage_index (GTorchCheckpointNode *self)
{
  const GTorchPickleNode *node;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), -1);
  node = peek (self);
  return node->tensor != NULL ? (gint) node->storage : -1;
}

/**
 * gtorch_checkpoint_node_get_int:
 * @self: a value of a checkpoint
 *
 * Gets an integer, or 0 and 1 for a bool.
 *
 * Returns: the integer
 *
 * Since: 0.1
 */
gint64
gtorch_checkpoint_node_get_int (GTorchCheckpointNode *self)
{
  const GTorchPickleNode *node;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), 0);
  node = peek (self);
  return node->kind == GTORCH_CHECKPOINT_KIND_INT || node->kind == GTORCH_CHECKPOINT_KIND_BOOL
             ? node->whole
             : 0;
}

/**
 * gtorch_checkpoint_node_get_double:
 * @self: a value of a checkpoint
 *
 * Gets a decimal number, the real part of a complex one, or an integer as a decimal number.
 *
 * Returns: the number
 *
 * Since: 0.1
 */
gdouble
gtorch_checkpoint_node_get_double (GTorchCheckpointNode *self)
{
  const GTorchPickleNode *node;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), 0);
  node = peek (self);
  return node->kind == GTORCH_CHECKPOINT_KIND_INT || node->kind == GTORCH_CHECKPOINT_KIND_BOOL
             ? node->whole
             : node->parts[0];
}

/**
 * gtorch_checkpoint_node_get_imaginary:
 * @self: a value of a checkpoint
 *
 * Gets the imaginary part of a complex number.
 *
 * Returns: the number, 0 for other kinds
 *
 * Since: 0.1
 */
gdouble
gtorch_checkpoint_node_get_imaginary (GTorchCheckpointNode *self)
{
  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), 0);
  return peek (self)->parts[1];
}

/**
 * gtorch_checkpoint_node_get_text:
 * @self: a value of a checkpoint
 *
 * Gets a text, or the name of a device.
 *
 * Returns: (nullable): the text, or %NULL if the value is none or has a zero byte, which
 *   [method@CheckpointNode.get_bytes] keeps
 *
 * Since: 0.1
 */
const gchar *
gtorch_checkpoint_node_get_text (GTorchCheckpointNode *self)
{
  const GTorchPickleNode *node;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), NULL);
  node = peek (self);
  return (node->kind == GTORCH_CHECKPOINT_KIND_STRING
          || node->kind == GTORCH_CHECKPOINT_KIND_DEVICE)
                 && strlen (node->text) == node->length
             ? node->text
             : NULL;
}

/**
 * gtorch_checkpoint_node_get_bytes:
 * @self: a value of a checkpoint
 *
 * Gets bytes, a text in UTF-8, or the bytes of a long integer in two's complement, the lowest first.
 *
 * Returns: (transfer full) (nullable): the bytes, or %NULL if the value has none
 *
 * Since: 0.1
 */
GBytes *
gtorch_checkpoint_node_get_bytes (GTorchCheckpointNode *self)
{
  const GTorchPickleNode *node;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), NULL);
  node = peek (self);
  if (node->text == NULL && node->kind != GTORCH_CHECKPOINT_KIND_BYTES)
    return NULL;
  return g_bytes_new (node->text, node->length);
}

/**
 * gtorch_checkpoint_node_get_dtype:
 * @self: a value of a checkpoint
 *
 * Gets a dtype.
 *
 * Returns: the dtype, %GTORCH_DTYPE_NONE for other kinds
 *
 * Since: 0.1
 */
GTorchDType
gtorch_checkpoint_node_get_dtype (GTorchCheckpointNode *self)
{
  const GTorchPickleNode *node;

  g_return_val_if_fail (GTORCH_IS_CHECKPOINT_NODE (self), GTORCH_DTYPE_NONE);
  node = peek (self);
  return node->kind == GTORCH_CHECKPOINT_KIND_DTYPE ? (GTorchDType) node->whole : GTORCH_DTYPE_NONE;
}
