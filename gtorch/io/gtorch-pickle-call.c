/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What pickles of tensors may name, and what happens when they call it. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "device/gtorch-device-private.h"
#include "elements/gtorch-tensor-bytes-private.h"
#include "io/gtorch-pickle-private.h"
#include "nn/gtorch-parameter.h"
#include "tensor/gtorch-tensor-private.h"

#define FAIL(...) gtorch_pickle_fail (self, GTORCH_ERROR_FORMAT, __VA_ARGS__)

/* --- names --- */

static const struct
{
  const gchar *module, *name;
  guint8 kind;
  guint8 which;
} known[] = {
  /* clang-format off */
  { "torch._utils", "_rebuild_tensor_v2", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_TENSOR },
  { "torch._utils", "_rebuild_parameter", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_PARAMETER },
  { "torch._utils", "_rebuild_tensor_v3", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_UNKNOWN_TENSOR },
  { "torch", "Size", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_SIZE },
  { "torch", "device", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_DEVICE },
  { "collections", "OrderedDict", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_ORDERED_DICT },
  { "collections", "Counter", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_COUNTER },
  { "_codecs", "encode", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_ENCODE },
  { "builtins", "bytes", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_BYTES },
  { "builtins", "set", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_SET },
  { "builtins", "frozenset", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_FROZENSET },
  { "builtins", "complex", GTORCH_PICKLE_FUNCTION, GTORCH_PICKLE_COMPLEX },
  { "torch.storage", "UntypedStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_UINT8 },
  { "torch", "BFloat16Storage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_BFLOAT16 },
  { "torch", "BoolStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_BOOL },
  { "torch", "ByteStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_UINT8 },
  { "torch", "CharStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_INT8 },
  { "torch", "ComplexDoubleStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_COMPLEX128 },
  { "torch", "ComplexFloatStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_COMPLEX64 },
  { "torch", "DoubleStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_FLOAT64 },
  { "torch", "FloatStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_FLOAT32 },
  { "torch", "HalfStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_FLOAT16 },
  { "torch", "IntStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_INT32 },
  { "torch", "LongStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_INT64 },
  { "torch", "ShortStorage", GTORCH_PICKLE_TYPE, GTORCH_DTYPE_INT16 },
  /* clang-format on */
};

static gboolean
add_name (GTorchPickleMachine *self, guint kind, gint64 which, guint32 *id)
{
  GTorchPickleNode *node = gtorch_pickle_add (self, kind, id);

  if (node == NULL)
    return FALSE;
  node->whole = which;
  return TRUE;
}

gboolean
gtorch_pickle_find (GTorchPickleMachine *self, const gchar *module, const gchar *name, guint32 *id)
{
  static const gchar *const missing[] = { "uint16",  "uint32", "uint64", "complex32", "float8_",
                                          "float4_", "qint",   "quint",  "int1",      "bits" };
  const gchar *place = strcmp (module, "__builtin__") == 0 ? "builtins" : module; /* of Python 2 */

  for (guint i = 0; i < G_N_ELEMENTS (known); i++)
    if (strcmp (place, known[i].module) == 0 && strcmp (name, known[i].name) == 0)
      return add_name (self, known[i].kind, known[i].which, id);
  if (strcmp (module, "torch") == 0)
    {
      for (guint dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
        if (strcmp (name, gtorch_dtype_get_name (dtype)) == 0)
          return add_name (self, GTORCH_CHECKPOINT_KIND_DTYPE, dtype, id);
      for (guint i = 0; i < G_N_ELEMENTS (missing); i++)
        if (g_str_has_prefix (name, missing[i]))
          return gtorch_pickle_fail (self, GTORCH_ERROR_NOT_SUPPORTED,
                                     _ ("it has tensors of %s, a dtype that is missing here"),
                                     gtorch_name_str (name));
    }
  return gtorch_pickle_fail (self, GTORCH_ERROR_NOT_SUPPORTED,
                             _ ("it calls %s.%s: only tensors and containers of them are loaded, "
                                "since any other function may run code of the file"),
                             gtorch_name_str (module), gtorch_name_str (name));
}

/* --- arguments --- */

static guint
n_children (const GTorchPickleNode *node)
{
  return node->children != NULL ? node->children->len : 0;
}

static GTorchPickleNode *
child (GTorchPickleMachine *self, const GTorchPickleNode *node, guint i)
{
  return gtorch_pickle_node (self, g_array_index (node->children, guint32, i));
}

static gboolean
is_sequence (const GTorchPickleNode *node)
{
  return node->kind == GTORCH_CHECKPOINT_KIND_LIST || node->kind == GTORCH_CHECKPOINT_KIND_TUPLE;
}

/* Sizes of a tuple of at most 16 numbers that are not negative. */
static gboolean
get_sizes (GTorchPickleMachine *self, const gchar *what, const GTorchPickleNode *node,
           gint64 *sizes, guint *n)
{
  gboolean fits =
      (node->kind == GTORCH_CHECKPOINT_KIND_TUPLE || node->kind == GTORCH_CHECKPOINT_KIND_SIZE)
      && n_children (node) <= GTORCH_MAX_DIMS;

  for (guint i = 0; fits && i < n_children (node); i++)
    {
      const GTorchPickleNode *size = child (self, node, i);

      fits = size->kind == GTORCH_CHECKPOINT_KIND_INT && size->whole >= 0;
      sizes[i] = size->whole;
    }
  *n = n_children (node);
  return fits
         || FAIL (_ ("the %s of a tensor are a %s of %u: a tuple of 0 to %d integers that are not "
                     "negative is wanted"),
                  what, gtorch_pickle_kind_name (node), *n, GTORCH_MAX_DIMS);
}

static gboolean
get_flag (GTorchPickleMachine *self, const GTorchPickleNode *node, gboolean *flag)
{
  *flag = node->whole != 0;
  return node->kind == GTORCH_CHECKPOINT_KIND_BOOL
         || FAIL (_ ("requires_grad of a tensor is a %s, not True or False"),
                  gtorch_pickle_kind_name (node));
}

/* --- tensors --- */

gboolean
gtorch_pickle_load_storage (GTorchPickleMachine *self, guint32 description, guint32 *result)
{
  const GTorchPickleNode *node = gtorch_pickle_node (self, description), *type, *key, *where,
                         *numel;
  g_autofree gchar *name = NULL;
  g_autofree gchar *path = NULL;
  g_autoptr (GBytes) bytes = NULL;
  const GTorchZipMember *member;
  GTorchPickleStorage *storage;
  gboolean is_read_only;
  gpointer place;
  GTorchImpl *impl;
  guint64 n_bytes;

  if (node->kind != GTORCH_CHECKPOINT_KIND_TUPLE || n_children (node) != 5)
    return FAIL (_ ("a storage is described as a %s of %u"), gtorch_pickle_kind_name (node),
                 n_children (node));
  type = child (self, node, 1);
  key = child (self, node, 2);
  where = child (self, node, 3);
  numel = child (self, node, 4);
  if (child (self, node, 0)->kind != GTORCH_CHECKPOINT_KIND_STRING
      || strcmp (child (self, node, 0)->text, "storage") != 0 || type->kind != GTORCH_PICKLE_TYPE
      || where->kind != GTORCH_CHECKPOINT_KIND_STRING || numel->kind != GTORCH_CHECKPOINT_KIND_INT
      || numel->whole < 0)
    return FAIL (_ ("a storage is described as a %s, a %s and a %s"),
                 gtorch_pickle_kind_name (type), gtorch_pickle_kind_name (where),
                 gtorch_pickle_kind_name (numel));
  if (key->kind == GTORCH_CHECKPOINT_KIND_INT)
    name = g_strdup_printf ("%" G_GINT64_FORMAT, key->whole);
  else if (key->kind == GTORCH_CHECKPOINT_KIND_STRING && key->length < 256)
    name = g_strdup (key->text);
  else
    return FAIL (_ ("the key of a storage is a %s"), gtorch_pickle_kind_name (key));

  place = g_hash_table_lookup (self->keys, name);
  if (place != NULL)
    {
      storage = self->pickle->storages->pdata[GPOINTER_TO_UINT (place) - 1];
      if (gtorch_tensor_unwrap (storage->tensor)->dtype != type->whole)
        return FAIL (_ ("storage %s has two dtypes"), gtorch_name_str (name));
      return add_name (self, GTORCH_PICKLE_STORAGE, GPOINTER_TO_UINT (place) - 1, result);
    }
  path = g_strconcat (self->stem, "data/", name, NULL);
  member = gtorch_zip_find (self->zip, path);
  if (member == NULL)
    return FAIL (_ ("storage %s is missing"), gtorch_name_str (name));
  if (__builtin_mul_overflow ((guint64) numel->whole, gtorch_dtype_size (type->whole), &n_bytes)
      || n_bytes != member->size)
    return FAIL (_ ("storage %s has %" PRIu64 " bytes for %" PRId64 " elements of %s"),
                 gtorch_name_str (name), member->size, numel->whole,
                 gtorch_dtype_get_name (type->whole));
  bytes = gtorch_zip_read (self->zip, member, &is_read_only, self->cancellable, self->error);
  if (bytes == NULL)
    return FALSE;
  impl = gtorch_impl_new_from_bytes (self->source->op, bytes, 0, n_bytes, is_read_only, type->whole,
                                     &numel->whole, 1, self->error);
  if (impl == NULL)
    return FALSE;
  storage = g_new0 (GTorchPickleStorage, 1);
  storage->tensor = gtorch_tensor_wrap (impl);
  storage->location = g_strdup (where->text);
  g_ptr_array_add (self->pickle->storages, storage);
  g_hash_table_insert (self->keys, g_steal_pointer (&name),
                       GUINT_TO_POINTER (self->pickle->storages->len));
  return add_name (self, GTORCH_PICKLE_STORAGE, self->pickle->storages->len - 1, result);
}

static gboolean
make_tensor (GTorchPickleMachine *self, const GTorchPickleNode *args, guint32 *result)
{
  gint64 offset, reach = 1, numel = 1, step, shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint n_dims, n_strides, number;
  const GTorchPickleNode *first;
  GTorchPickleNode *node;
  GTorchImpl *storage, *impl;
  gboolean requires_grad;

  if (n_children (args) != 6 && n_children (args) != 7)
    return FAIL (_ ("a tensor is made of %u values"), n_children (args));
  first = child (self, args, 0);
  if (first->kind != GTORCH_PICKLE_STORAGE)
    return FAIL (_ ("a tensor has a %s and no storage"), gtorch_pickle_kind_name (first));
  number = first->whole;
  storage = gtorch_tensor_unwrap (
      ((GTorchPickleStorage *) self->pickle->storages->pdata[number])->tensor);
  if (child (self, args, 1)->kind != GTORCH_CHECKPOINT_KIND_INT || child (self, args, 1)->whole < 0)
    return FAIL (_ ("the offset of a tensor is a %s, not an integer that is not negative"),
                 gtorch_pickle_kind_name (child (self, args, 1)));
  offset = child (self, args, 1)->whole;
  if (!get_sizes (self, "shape", child (self, args, 2), shape, &n_dims)
      || !get_sizes (self, "strides", child (self, args, 3), strides, &n_strides)
      || !get_flag (self, child (self, args, 4), &requires_grad))
    return FALSE;
  if (n_dims != n_strides)
    return FAIL (_ ("a tensor has the shape %s and the strides %s"),
                 gtorch_shape_str (shape, n_dims), gtorch_shape_str (strides, n_strides));
  if (!gtorch_shape_check (self->source->op, shape, n_dims, storage->dtype, self->error))
    return FALSE;
  for (guint i = 0; i < n_dims; i++)
    {
      numel *= shape[i];
      if (shape[i] > 1
          && (__builtin_mul_overflow (shape[i] - 1, strides[i], &step)
              || __builtin_add_overflow (reach, step, &reach)))
        reach = G_MAXINT64;
      if (reach == G_MAXINT64)
        break;
    }
  for (guint i = 0; i < n_dims; i++)
    if (shape[i] == 0)
      numel = 0;
  if (numel > 0 && (__builtin_add_overflow (reach, offset, &reach) || reach > storage->numel))
    return FAIL (_ ("a tensor of shape %s needs %" PRId64 " elements of %" PRId64),
                 gtorch_shape_str (shape, n_dims), reach, storage->numel);
  impl = numel == 0
             ? gtorch_impl_new (gtorch_device_cpu (), storage->dtype, shape, n_dims, self->error)
             : gtorch_impl_new_strided (storage->storage, storage->dtype, offset, shape, strides,
                                        n_dims);
  if (impl == NULL)
    return FALSE;
  node = gtorch_pickle_add (self, GTORCH_CHECKPOINT_KIND_TENSOR, result);
  if (node == NULL)
    {
      gtorch_impl_unref (impl);
      return FALSE;
    }
  node->storage = number;
  node->flag = requires_grad;
  node->tensor = gtorch_tensor_wrap (impl);
  return !requires_grad || gtorch_tensor_set_requires_grad (node->tensor, TRUE, self->error);
}

static gboolean
make_parameter (GTorchPickleMachine *self, const GTorchPickleNode *args, guint32 *result)
{
  const GTorchPickleNode *data;
  GTorchPickleNode *node;
  gboolean requires_grad;
  GTorchParameter *parameter;

  if (n_children (args) != 3)
    return FAIL (_ ("a parameter is made of %u values"), n_children (args));
  data = child (self, args, 0);
  if (data->kind != GTORCH_CHECKPOINT_KIND_TENSOR)
    return FAIL (_ ("a parameter is made of a %s"), gtorch_pickle_kind_name (data));
  if (!get_flag (self, child (self, args, 1), &requires_grad))
    return FALSE;
  parameter = gtorch_parameter_new (data->tensor, requires_grad, self->error);
  if (parameter == NULL)
    return FALSE;
  node = gtorch_pickle_add (self, GTORCH_CHECKPOINT_KIND_PARAMETER, result);
  if (node == NULL)
    {
      g_object_unref (parameter);
      return FALSE;
    }
  node->storage = data->storage;
  node->flag = requires_grad;
  node->tensor = GTORCH_TENSOR (parameter);
  return TRUE;
}

/* --- containers and numbers --- */

/* The items of a container that is made of one sequence, or of nothing. */
static gboolean
copy_items (GTorchPickleMachine *self, guint kind, const GTorchPickleNode *args, guint32 *result)
{
  GTorchPickleNode *node = gtorch_pickle_add (self, kind, result);
  const gboolean is_dict =
      kind == GTORCH_CHECKPOINT_KIND_ORDERED_DICT || kind == GTORCH_CHECKPOINT_KIND_COUNTER;
  const GTorchPickleNode *from = n_children (args) > 0 ? child (self, args, 0) : NULL;

  if (node == NULL)
    return FALSE;
  if (n_children (args) > 1)
    return FAIL (_ ("a %s is made of %u values"), gtorch_pickle_kind_name (node),
                 n_children (args));
  if (from == NULL || (n_children (from) == 0 && is_sequence (from)))
    return TRUE;
  if (self->source->left < n_children (from) * 2 * sizeof (guint32))
    return gtorch_pickle_fail (self, GTORCH_ERROR_OUT_OF_MEMORY,
                               _ ("the content takes more than the limit of %" PRIu64 " bytes"),
                               self->source->max_bytes);
  self->source->left -= n_children (from) * 2 * sizeof (guint32);
  node->children = g_array_new (FALSE, FALSE, sizeof (guint32));
  if (is_dict ? from->kind == GTORCH_CHECKPOINT_KIND_DICT : is_sequence (from))
    {
      if (n_children (from) > 0)
        g_array_append_vals (node->children, from->children->data, from->children->len);
      return TRUE;
    }
  if (!is_sequence (from) || kind != GTORCH_CHECKPOINT_KIND_ORDERED_DICT)
    return FAIL (_ ("a %s is made of a %s"), gtorch_pickle_kind_name (node),
                 gtorch_pickle_kind_name (from));
  for (guint i = 0; i < n_children (from); i++)
    {
      const GTorchPickleNode *pair = child (self, from, i);

      if (!is_sequence (pair) || n_children (pair) != 2)
        return FAIL (_ ("an item of an OrderedDict is a %s of %u"), gtorch_pickle_kind_name (pair),
                     n_children (pair));
      g_array_append_vals (node->children, pair->children->data, 2);
    }
  return TRUE;
}

static gboolean
make_size (GTorchPickleMachine *self, const GTorchPickleNode *args, guint32 *result)
{
  gint64 sizes[GTORCH_MAX_DIMS];
  guint n;

  return (n_children (args) <= 1 || FAIL (_ ("a size is made of %u values"), n_children (args)))
         && (n_children (args) == 0 || get_sizes (self, "shape", child (self, args, 0), sizes, &n))
         && copy_items (self, GTORCH_CHECKPOINT_KIND_SIZE, args, result);
}

static gboolean
make_device (GTorchPickleMachine *self, const GTorchPickleNode *args, guint32 *result)
{
  const GTorchPickleNode *type = n_children (args) > 0 ? child (self, args, 0) : NULL,
                         *index = NULL;
  GTorchPickleNode *node;

  if (n_children (args) == 2)
    index = child (self, args, 1);
  if (type == NULL || n_children (args) > 2 || type->kind != GTORCH_CHECKPOINT_KIND_STRING
      || (index != NULL && index->kind != GTORCH_CHECKPOINT_KIND_INT))
    return FAIL (_ ("a device is made of %u values"), n_children (args));
  node = gtorch_pickle_add (self, GTORCH_CHECKPOINT_KIND_DEVICE, result);
  if (node == NULL)
    return FALSE;
  node->text = index != NULL ? g_strdup_printf ("%s:%" G_GINT64_FORMAT, type->text, index->whole)
                             : g_strdup (type->text);
  node->length = strlen (node->text);
  return TRUE;
}

static gboolean
make_complex (GTorchPickleMachine *self, const GTorchPickleNode *args, guint32 *result)
{
  GTorchPickleNode *node = gtorch_pickle_add (self, GTORCH_CHECKPOINT_KIND_COMPLEX, result);

  if (node == NULL)
    return FALSE;
  if (n_children (args) > 2)
    return FAIL (_ ("a complex number is made of %u values"), n_children (args));
  for (guint i = 0; i < n_children (args); i++)
    {
      const GTorchPickleNode *part = child (self, args, i);

      if (part->kind != GTORCH_CHECKPOINT_KIND_DOUBLE && part->kind != GTORCH_CHECKPOINT_KIND_INT)
        return FAIL (_ ("a part of a complex number is a %s"), gtorch_pickle_kind_name (part));
      node->parts[i] = part->kind == GTORCH_CHECKPOINT_KIND_INT ? part->whole : part->parts[0];
    }
  return TRUE;
}

/* Bytes are written as a text, one character each, since protocol 2 has no bytes. */
static gboolean
make_bytes (GTorchPickleMachine *self, const GTorchPickleNode *args, guint32 *result)
{
  GTorchPickleNode *node;
  const GTorchPickleNode *text;
  const gchar *at;

  if (n_children (args) != 2 || child (self, args, 1)->kind != GTORCH_CHECKPOINT_KIND_STRING
      || child (self, args, 0)->kind != GTORCH_CHECKPOINT_KIND_STRING
      || strcmp (child (self, args, 1)->text, "latin1") != 0)
    return FAIL (_ ("bytes are made of %u values, not of a text and “latin1”"), n_children (args));
  text = child (self, args, 0);
  if (text->length > self->source->left)
    return gtorch_pickle_fail (self, GTORCH_ERROR_OUT_OF_MEMORY,
                               _ ("the content takes more than the limit of %" PRIu64 " bytes"),
                               self->source->max_bytes);
  self->source->left -= text->length;
  node = gtorch_pickle_add (self, GTORCH_CHECKPOINT_KIND_BYTES, result);
  if (node == NULL)
    return FALSE;
  node->text = g_malloc (text->length + 1);
  for (at = text->text; at < text->text + text->length; at = g_utf8_next_char (at))
    {
      gunichar c = g_utf8_get_char (at);

      if (c > 0xff)
        return FAIL (_ ("a text that stands for bytes has the character %x"), c);
      node->text[node->length++] = c;
    }
  return TRUE;
}

gboolean
gtorch_pickle_call (GTorchPickleMachine *self, guint32 func, guint32 args, guint32 *result)
{
  const GTorchPickleNode *function = gtorch_pickle_node (self, func),
                         *given = gtorch_pickle_node (self, args);

  if (function->kind != GTORCH_PICKLE_FUNCTION || given->kind != GTORCH_CHECKPOINT_KIND_TUPLE)
    return FAIL (_ ("it calls a %s with a %s"), gtorch_pickle_kind_name (function),
                 gtorch_pickle_kind_name (given));
  switch ((GTorchPickleFunction) function->whole)
    {
    case GTORCH_PICKLE_TENSOR:
      return make_tensor (self, given, result);
    case GTORCH_PICKLE_PARAMETER:
      return make_parameter (self, given, result);
    case GTORCH_PICKLE_SIZE:
      return make_size (self, given, result);
    case GTORCH_PICKLE_DEVICE:
      return make_device (self, given, result);
    case GTORCH_PICKLE_ORDERED_DICT:
      return copy_items (self, GTORCH_CHECKPOINT_KIND_ORDERED_DICT, given, result);
    case GTORCH_PICKLE_COUNTER:
      return copy_items (self, GTORCH_CHECKPOINT_KIND_COUNTER, given, result);
    case GTORCH_PICKLE_SET:
      return copy_items (self, GTORCH_CHECKPOINT_KIND_SET, given, result);
    case GTORCH_PICKLE_FROZENSET:
      return copy_items (self, GTORCH_CHECKPOINT_KIND_FROZENSET, given, result);
    case GTORCH_PICKLE_ENCODE:
      return make_bytes (self, given, result);
    case GTORCH_PICKLE_BYTES:
      return n_children (given) == 0
                 ? copy_items (self, GTORCH_CHECKPOINT_KIND_BYTES, given, result)
                 : FAIL (_ ("bytes are made of %u values"), n_children (given));
    case GTORCH_PICKLE_COMPLEX:
      return make_complex (self, given, result);
    case GTORCH_PICKLE_UNKNOWN_TENSOR:
      break;
    }
  return gtorch_pickle_fail (self, GTORCH_ERROR_NOT_SUPPORTED,
                             _ ("it has a tensor of a dtype that is missing here"));
}
