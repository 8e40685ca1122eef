/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Pickles as torch.save() makes them: of protocol 2, with a tensor as a call of a function that gets a
 * storage, and a storage as a persistent name. A value that others refer to is written once, and numbered
 * as soon as it exists, so that those within it can refer to it. */

#include "config.h"

#include "io/gtorch-pickle-write-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-tensor-autograd.h"
#include "device/gtorch-device-private.h"
#include "nn/gtorch-parameter.h"
#include "tensor/gtorch-hold-private.h"
#include "tensor/gtorch-tensor-private.h"

/* Python's own unpickler nests calls, too, where it makes tuples. */
#define MAX_DEPTH 1000

/* Where memory begins, and how it is seen: what storages are told apart by. */
typedef struct
{
  gconstpointer start;
  guint dtype;
} Place;

typedef struct
{
  const gchar *op;
  GPtrArray *nodes, *storages;
  GByteArray *out;
  guint *memo; /* of each node: its number in the pickle plus 1; 0: not written */
  guint n_memo, depth;
  GHashTable *places; /* Place -> number of the storage plus 1 */
  GError **error;
} Pickler;

static const gchar *const storage_names[GTORCH_N_DTYPES] = {
  [GTORCH_DTYPE_BOOL] = "BoolStorage",
  [GTORCH_DTYPE_UINT8] = "ByteStorage",
  [GTORCH_DTYPE_INT8] = "CharStorage",
  [GTORCH_DTYPE_INT16] = "ShortStorage",
  [GTORCH_DTYPE_INT32] = "IntStorage",
  [GTORCH_DTYPE_INT64] = "LongStorage",
  [GTORCH_DTYPE_FLOAT16] = "HalfStorage",
  [GTORCH_DTYPE_BFLOAT16] = "BFloat16Storage",
  [GTORCH_DTYPE_FLOAT32] = "FloatStorage",
  [GTORCH_DTYPE_FLOAT64] = "DoubleStorage",
  [GTORCH_DTYPE_COMPLEX64] = "ComplexFloatStorage",
  [GTORCH_DTYPE_COMPLEX128] = "ComplexDoubleStorage",
};

/* --- instructions --- */

static void
put (Pickler *self, const gchar *code)
{
  g_byte_array_append (self->out, (const guint8 *) code, strlen (code));
}

static void
put_number (Pickler *self, guint64 value, guint n)
{
  guint8 bytes[8];

  for (guint i = 0; i < n; i++)
    bytes[i] = value >> (8 * i);
  g_byte_array_append (self->out, bytes, n);
}

static void
put_global (Pickler *self, const gchar *module, const gchar *name)
{
  put (self, "c");
  put (self, module);
  put (self, "\n");
  put (self, name);
  put (self, "\n");
}

static void
put_int (Pickler *self, gint64 value)
{
  if (value >= 0 && value <= G_MAXUINT8)
    {
      put (self, "K");
      put_number (self, value, 1);
    }
  else if (value >= 0 && value <= G_MAXUINT16)
    {
      put (self, "M");
      put_number (self, value, 2);
    }
  else if (value >= G_MININT32 && value <= G_MAXINT32)
    {
      put (self, "J");
      put_number (self, value, 4);
    }
  else
    {
      put (self, "\x8a\x08");
      put_number (self, value, 8);
    }
}

static void
put_double (Pickler *self, gdouble value)
{
  guint64 bits;

  memcpy (&bits, &value, sizeof bits);
  put (self, "G");
  bits = GUINT64_SWAP_LE_BE (bits); /* the most significant byte first */
  put_number (self, bits, 8);
}

static gboolean
put_text (Pickler *self, gconstpointer text, gsize n)
{
  if (n > G_MAXINT32)
    {
      g_set_error (self->error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: a text has %zu bytes: there can be %d"), self->op, n, G_MAXINT32);
      return FALSE;
    }
  put (self, "X");
  put_number (self, n, 4);
  g_byte_array_append (self->out, text, n);
  return TRUE;
}

static void
put_bool (Pickler *self, gboolean value)
{
  put (self, value ? "\x88" : "\x89");
}

/* Numbers the value that was just made. */
static void
memoize (Pickler *self, gint node)
{
  const guint number = self->n_memo++;

  self->memo[node] = number + 1;
  put (self, number <= G_MAXUINT8 ? "q" : "r");
  put_number (self, number, number <= G_MAXUINT8 ? 1 : 4);
}

static void
put_known (Pickler *self, gint node)
{
  const guint number = self->memo[node] - 1;

  put (self, number <= G_MAXUINT8 ? "h" : "j");
  put_number (self, number, number <= G_MAXUINT8 ? 1 : 4);
}

static const GTorchWrittenNode *
peek (const Pickler *self, gint node)
{
  return self->nodes->pdata[node];
}

static gboolean write_value (Pickler *self, gint node);

/* --- texts and bytes --- */

static gboolean
write_long (Pickler *self, GBytes *bytes)
{
  gsize n;
  const guint8 *data = g_bytes_get_data (bytes, &n);

  if (n > G_MAXINT32)
    {
      g_set_error (self->error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: a number has %zu bytes: there can be %d"), self->op, n, G_MAXINT32);
      return FALSE;
    }
  put (self, n <= G_MAXUINT8 ? "\x8a" : "\x8b");
  put_number (self, n, n <= G_MAXUINT8 ? 1 : 4);
  g_byte_array_append (self->out, data, n);
  return TRUE;
}

/* Protocol 2 has no bytes: they are a text of as many letters, which is encoded. */
static gboolean
write_bytes (Pickler *self, GBytes *bytes)
{
  g_autoptr (GByteArray) text = g_byte_array_new ();
  gsize n;
  const guint8 *data = g_bytes_get_data (bytes, &n);

  for (gsize i = 0; i < n; i++)
    {
      const guint8 two[] = { 0xc0 | data[i] >> 6, 0x80 | (data[i] & 0x3f) };

      g_byte_array_append (text, data[i] < 0x80 ? &data[i] : two, data[i] < 0x80 ? 1 : 2);
    }
  put_global (self, "_codecs", "encode");
  if (!put_text (self, text->data, text->len) || !put_text (self, "latin1", 6))
    return FALSE;
  put (self, "\x86R");
  return TRUE;
}

/* --- tensors --- */

static guint
place_hash (gconstpointer data)
{
  const Place *place = data;

  return g_direct_hash (place->start) ^ place->dtype;
}

static gboolean
place_equal (gconstpointer a, gconstpointer b)
{
  const Place *x = a, *y = b;

  return x->start == y->start && x->dtype == y->dtype;
}

static gint64
get_reach (const GTorchImpl *impl)
{
  gint64 reach = impl->offset + 1;

  if (impl->numel == 0)
    return 0;
  for (guint i = 0; i < impl->n_dims; i++)
    reach += (impl->shape[i] - 1) * impl->strides[i];
  return reach;
}

/* Returns the number of the storage of a tensor. */
static guint
find_storage (Pickler *self, GTorchTensor *tensor)
{
  const GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  const Place place = { impl->numel > 0 ? impl->storage->data : (gconstpointer) impl, impl->dtype };
  guint found = GPOINTER_TO_UINT (g_hash_table_lookup (self->places, &place));
  GTorchWrittenStorage *storage;

  if (found == 0)
    {
      storage = g_new (GTorchWrittenStorage, 1);
      *storage = (GTorchWrittenStorage){ g_object_ref (tensor), 0 };
      g_ptr_array_add (self->storages, storage);
      found = self->storages->len;
      g_hash_table_insert (self->places, g_memdup2 (&place, sizeof place),
                           GUINT_TO_POINTER (found));
    }
  storage = self->storages->pdata[found - 1];
  storage->numel = MAX (storage->numel, get_reach (impl));
  return found - 1;
}

static void
put_sizes (Pickler *self, const gint64 *sizes, guint n)
{
  put (self, "(");
  for (guint i = 0; i < n; i++)
    put_int (self, sizes[i]);
  put (self, "t");
}

static void
put_empty_dict (Pickler *self)
{
  put_global (self, "collections", "OrderedDict");
  put (self, ")R");
}

static gboolean
write_tensor (Pickler *self, GTorchTensor *tensor)
{
  GTORCH_HOLD_TENSOR (tensor);
  const GTorchImpl *impl = gtorch_tensor_unwrap (tensor);
  const gboolean is_parameter = GTORCH_IS_PARAMETER (tensor);
  const gboolean requires_grad = gtorch_tensor_get_requires_grad (tensor);
  g_autofree gchar *key = NULL;
  const gchar *where;
  guint number;

  if (impl->storage == NULL)
    {
      g_set_error (self->error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("%s: a tensor of shape %s was released"), self->op,
                   gtorch_impl_shape_str (impl));
      return FALSE;
    }
  number = find_storage (self, tensor);
  key = g_strdup_printf ("%u", number);
  where = gtorch_device_name (gtorch_impl_device (impl));
  if (is_parameter)
    put_global (self, "torch._utils", "_rebuild_parameter");
  put_global (self, "torch._utils", "_rebuild_tensor_v2");
  put (self, "((");
  put_text (self, "storage", 7);
  put_global (self, "torch", storage_names[impl->dtype]);
  put_text (self, key, strlen (key));
  put_text (self, where, strlen (where));
  put_int (self, ((GTorchWrittenStorage *) self->storages->pdata[number])->numel);
  put (self, "tQ");
  put_int (self, impl->numel > 0 ? impl->offset : 0);
  put_sizes (self, impl->shape, impl->n_dims);
  put_sizes (self, impl->strides, impl->n_dims);
  put_bool (self, requires_grad && !is_parameter);
  put_empty_dict (self);
  put (self, "tR");
  if (!is_parameter)
    return TRUE;
  put_bool (self, requires_grad);
  put_empty_dict (self);
  put (self, "\x87R");
  return TRUE;
}

/* --- containers --- */

static gboolean
write_items (Pickler *self, const GTorchWrittenNode *node)
{
  for (guint i = 0; i < node->items->len; i++)
    if (!write_value (self, g_array_index (node->items, gint, i)))
      return FALSE;
  return TRUE;
}

/* Adds the items to the container on the stack. */
static gboolean
write_contents (Pickler *self, const GTorchWrittenNode *node, const gchar *add)
{
  if (node->items->len == 0)
    return TRUE;
  put (self, "(");
  if (!write_items (self, node))
    return FALSE;
  put (self, add);
  return TRUE;
}

/* A list within a tuple can have the tuple in it, which was written then. */
static gboolean
write_tuple (Pickler *self, gint id, const GTorchWrittenNode *node)
{
  if (node->items->len == 0)
    {
      put (self, ")");
      return TRUE;
    }
  put (self, "(");
  if (!write_items (self, node))
    return FALSE;
  if (self->memo[id] != 0)
    {
      put (self, "1");
      put_known (self, id);
      return TRUE;
    }
  put (self, "t");
  memoize (self, id);
  return TRUE;
}

/* A call of a function with one list or tuple or dictionary. */
static gboolean
write_made_of (Pickler *self, gint id, const GTorchWrittenNode *node, const gchar *module,
               const gchar *name, const gchar *empty, const gchar *add)
{
  put_global (self, module, name);
  if (empty != NULL)
    put (self, empty);
  if (empty == NULL)
    {
      put (self, "(");
      if (!write_items (self, node))
        return FALSE;
      put (self, "t");
    }
  else if (!write_contents (self, node, add))
    return FALSE;
  put (self, "\x85R");
  memoize (self, id);
  return TRUE;
}

static gboolean
write_dict (Pickler *self, gint id, const GTorchWrittenNode *node)
{
  if (node->kind == GTORCH_CHECKPOINT_KIND_DICT)
    put (self, "}");
  else
    put_empty_dict (self);
  memoize (self, id);
  if (!write_contents (self, node, "u"))
    return FALSE;
  if (node->attributes < 0)
    return TRUE;
  if (!write_value (self, node->attributes))
    return FALSE;
  put (self, "b");
  return TRUE;
}

/* --- values --- */

static gboolean
write_new (Pickler *self, gint id)
{
  const GTorchWrittenNode *node = peek (self, id);

  switch (node->kind)
    {
    case GTORCH_CHECKPOINT_KIND_NONE:
      put (self, "N");
      return TRUE;
    case GTORCH_CHECKPOINT_KIND_BOOL:
      put_bool (self, node->whole != 0);
      return TRUE;
    case GTORCH_CHECKPOINT_KIND_INT:
      put_int (self, node->whole);
      return TRUE;
    case GTORCH_CHECKPOINT_KIND_LONG:
      return write_long (self, node->bytes);
    case GTORCH_CHECKPOINT_KIND_DOUBLE:
      put_double (self, node->parts[0]);
      return TRUE;
    case GTORCH_CHECKPOINT_KIND_COMPLEX:
      put_global (self, "__builtin__", "complex");
      put_double (self, node->parts[0]);
      put_double (self, node->parts[1]);
      put (self, "\x86R");
      return TRUE;
    case GTORCH_CHECKPOINT_KIND_STRING:
      if (!put_text (self, g_bytes_get_data (node->bytes, NULL), g_bytes_get_size (node->bytes)))
        return FALSE;
      break;
    case GTORCH_CHECKPOINT_KIND_BYTES:
      if (!write_bytes (self, node->bytes))
        return FALSE;
      break;
    case GTORCH_CHECKPOINT_KIND_TENSOR:
    case GTORCH_CHECKPOINT_KIND_PARAMETER:
      if (!write_tensor (self, node->tensor))
        return FALSE;
      break;
    case GTORCH_CHECKPOINT_KIND_DTYPE:
      put_global (self, "torch", gtorch_dtype_get_name (node->whole));
      return TRUE;
    case GTORCH_CHECKPOINT_KIND_DEVICE:
      put_global (self, "torch", "device");
      put_text (self, g_bytes_get_data (node->bytes, NULL), g_bytes_get_size (node->bytes));
      put (self, "\x85R");
      break;
    case GTORCH_CHECKPOINT_KIND_LIST:
      put (self, "]");
      memoize (self, id);
      return write_contents (self, node, "e");
    case GTORCH_CHECKPOINT_KIND_TUPLE:
      return write_tuple (self, id, node);
    case GTORCH_CHECKPOINT_KIND_SIZE:
      return write_made_of (self, id, node, "torch", "Size", NULL, NULL);
    case GTORCH_CHECKPOINT_KIND_SET:
      return write_made_of (self, id, node, "__builtin__", "set", "]", "e");
    case GTORCH_CHECKPOINT_KIND_FROZENSET:
      return write_made_of (self, id, node, "__builtin__", "frozenset", "]", "e");
    case GTORCH_CHECKPOINT_KIND_COUNTER:
      return write_made_of (self, id, node, "collections", "Counter", "}", "u");
    case GTORCH_CHECKPOINT_KIND_DICT:
    case GTORCH_CHECKPOINT_KIND_ORDERED_DICT:
      return write_dict (self, id, node);
    default:
      g_assert_not_reached ();
    }
  memoize (self, id);
  return TRUE;
}

static gboolean
write_value (Pickler *self, gint id)
{
  gboolean result;

  if (self->memo[id] != 0)
    {
      put_known (self, id);
      return TRUE;
    }
  if (self->depth == MAX_DEPTH)
    {
      g_set_error (self->error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: values are nested more than %d deep"), self->op, MAX_DEPTH);
      return FALSE;
    }
  if (self->out->len > G_MAXUINT32 / 2)
    {
      g_set_error (self->error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("%s: without the tensors there are more than 2 GiB"), self->op);
      return FALSE;
    }
  self->depth++;
  result = write_new (self, id);
  self->depth--;
  return result;
}

static void
storage_free (gpointer data)
{
  GTorchWrittenStorage *storage = data;

  g_object_unref (storage->tensor);
  g_free (storage);
}

GBytes *
gtorch_pickle_write (const gchar *op, GPtrArray *nodes, gint root, GPtrArray **storages,
                     GError **error)
{
  g_autofree guint *memo = g_new (guint, nodes->len);
  g_autoptr (GByteArray) out = g_byte_array_new ();
  g_autoptr (GPtrArray) found = g_ptr_array_new_with_free_func (storage_free);
  g_autoptr (GHashTable) places = g_hash_table_new_full (place_hash, place_equal, g_free, NULL);
  Pickler self = { op, nodes, found, out, memo, 0, 0, places, error };

  /* The first pass tells how large the storages are. */
  for (guint pass = 0; pass < 2; pass++)
    {
      memset (memo, 0, nodes->len * sizeof *memo);
      self.n_memo = 0;
      g_byte_array_set_size (out, 0);
      put (&self, "\x80\x02");
      if (!write_value (&self, root))
        return NULL;
      put (&self, ".");
    }
  *storages = g_steal_pointer (&found);
  return g_byte_array_free_to_bytes (g_steal_pointer (&out));
}
