/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "data/gtorch-sample.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "data/gtorch-sample-private.h"

/**
 * GTorchSample:
 *
 * One element of a data set, or a batch of them: a tensor, a number, a text, or a tuple or dictionary of
 * samples.
 *
 * A sample does not change, and threads may share one. The tensors in it are not copied. Samples can be
 * nested 64 deep.
 *
 * ```c
 * GTorchSample *parts[] = { gtorch_sample_new_tensor (image), gtorch_sample_new_int (7) };
 * GTorchSample *pair = gtorch_sample_new_tuple (parts, 2, &error);
 * ```
 *
 * Vala reads the parts with brackets, `pair[0]`, and Python and JavaScript have tuples, arrays, dictionaries
 * and objects in place of samples.
 *
 * Since: 0.1
 */

G_DEFINE_BOXED_TYPE (GTorchSample, gtorch_sample, gtorch_sample_ref, gtorch_sample_unref)

GType
gtorch_sample_kind_get_type (void)
{
  static gsize type = 0;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_SAMPLE_NONE, "GTORCH_SAMPLE_NONE", "none" },
        { GTORCH_SAMPLE_TENSOR, "GTORCH_SAMPLE_TENSOR", "tensor" },
        { GTORCH_SAMPLE_TUPLE, "GTORCH_SAMPLE_TUPLE", "tuple" },
        { GTORCH_SAMPLE_DICT, "GTORCH_SAMPLE_DICT", "dict" },
        { GTORCH_SAMPLE_INT, "GTORCH_SAMPLE_INT", "int" },
        { GTORCH_SAMPLE_DOUBLE, "GTORCH_SAMPLE_DOUBLE", "double" },
        { GTORCH_SAMPLE_BOOL, "GTORCH_SAMPLE_BOOL", "bool" },
        { GTORCH_SAMPLE_STRING, "GTORCH_SAMPLE_STRING", "string" },
        { GTORCH_SAMPLE_BYTES, "GTORCH_SAMPLE_BYTES", "bytes" },
        { GTORCH_SAMPLE_VALUE, "GTORCH_SAMPLE_VALUE", "value" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchSampleKind", values));
    }
  return type;
}

static GTorchSample *
sample_new (GTorchSampleKind kind)
{
  GTorchSample *self = g_atomic_rc_box_new0 (GTorchSample);

  self->kind = kind;
  self->depth = 1;
  return self;
}

static void
sample_clear (gpointer data)
{
  GTorchSample *self = data;
  guint i;

  switch (self->kind)
    {
    case GTORCH_SAMPLE_TENSOR:
      gtorch_tensor_unref (self->tensor);
      break;
    case GTORCH_SAMPLE_TUPLE:
    case GTORCH_SAMPLE_DICT:
      for (i = 0; i < self->n_children; i++)
        gtorch_sample_unref (self->children[i]);
      g_free (self->children);
      g_strfreev (self->keys);
      break;
    case GTORCH_SAMPLE_STRING:
      g_free (self->string);
      break;
    case GTORCH_SAMPLE_BYTES:
      g_bytes_unref (self->bytes);
      break;
    case GTORCH_SAMPLE_VALUE:
      g_value_unset (self->value);
      g_free (self->value);
      break;
    case GTORCH_SAMPLE_NONE:
    case GTORCH_SAMPLE_INT:
    case GTORCH_SAMPLE_DOUBLE:
    case GTORCH_SAMPLE_BOOL:
      break;
    }
}

/**
 * gtorch_sample_ref:
 * @self: a sample
 *
 * Acquires a reference.
 *
 * Returns: (transfer full): @self
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_ref (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return g_atomic_rc_box_acquire (self);
}

/**
 * gtorch_sample_unref:
 * @self: a sample
 *
 * Releases a reference.
 *
 * Since: 0.1
 */
void
gtorch_sample_unref (GTorchSample *self)
{
  g_return_if_fail (self != NULL);
  g_atomic_rc_box_release_full (self, sample_clear);
}

/**
 * gtorch_sample_new_none: (constructor)
 *
 * Makes a sample that is nothing. It cannot be part of a batch, except by a collate function of one's own.
 *
 * Returns: (transfer full): the sample
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_none (void)
{
  return sample_new (GTORCH_SAMPLE_NONE);
}

GTorchSample *
gtorch_sample_take_tensor (GTorchTensor *tensor)
{
  GTorchSample *self = sample_new (GTORCH_SAMPLE_TENSOR);

  self->tensor = tensor;
  return self;
}

/**
 * gtorch_sample_new_tensor: (constructor)
 * @tensor: a tensor
 *
 * Makes a sample of a tensor, which is not copied.
 *
 * Returns: (transfer full): the sample
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_tensor (GTorchTensor *tensor)
{
  g_return_val_if_fail (GTORCH_IS_TENSOR (tensor), NULL);
  return gtorch_sample_take_tensor (g_object_ref (tensor));
}

GTorchSample *
gtorch_sample_take (GTorchSample **children, guint n_children, gchar **keys)
{
  GTorchSample *self = sample_new (keys != NULL ? GTORCH_SAMPLE_DICT : GTORCH_SAMPLE_TUPLE);
  guint i;

  self->children = children;
  self->n_children = n_children;
  self->keys = keys;
  for (i = 0; i < n_children; i++)
    self->depth = MAX (self->depth, children[i]->depth + 1);
  return self;
}

/* Returns an array of new references, NULL with an error. */
static GTorchSample **
take_children (const gchar *op, GTorchSample **children, gsize n, GError **error)
{
  GTorchSample **taken;
  gsize i;

  if (n > G_MAXINT32)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("%s: %zu samples are more than %d"), op, n, G_MAXINT32);
      return NULL;
    }
  for (i = 0; i < n; i++)
    {
      if (children[i] == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: sample %zu of %zu is missing"), op, i, n);
          return NULL;
        }
      if (children[i]->depth >= GTORCH_SAMPLE_MAX_DEPTH)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("%s: samples are nested more than %d deep"), op, GTORCH_SAMPLE_MAX_DEPTH);
          return NULL;
        }
    }
  taken = g_new (GTorchSample *, n + 1);
  for (i = 0; i < n; i++)
    taken[i] = gtorch_sample_ref (children[i]);
  taken[n] = NULL;
  return taken;
}

/**
 * gtorch_sample_new_tuple: (constructor)
 * @children: (array length=n_children): samples
 * @n_children: the length of @children
 * @error: return location for an error
 *
 * Makes a sample of several samples in order.
 *
 * Returns: (transfer full): the sample; %NULL with %GTORCH_ERROR_INVALID if one is %NULL or too deep
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_tuple (GTorchSample **children, gsize n_children, GError **error)
{
  GTorchSample **taken;

  g_return_val_if_fail (children != NULL || n_children == 0, NULL);
  taken = take_children ("sample_new_tuple", children, n_children, error);
  return taken != NULL ? gtorch_sample_take (taken, n_children, NULL) : NULL;
}

static gboolean
check_keys (const gchar *const *keys, gsize n, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  const gsize n_keys = keys != NULL ? g_strv_length ((gchar **) keys) : 0;
  gsize i;

  if (n_keys != n)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("sample_new_dict: %zu keys for %zu samples"), n_keys, n);
      return FALSE;
    }
  for (i = 0; i < n; i++)
    if (!g_hash_table_add (seen, (gpointer) keys[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("sample_new_dict: the key \"%s\" is there twice"), keys[i]);
        return FALSE;
      }
  return TRUE;
}

/**
 * gtorch_sample_new_dict: (constructor)
 * @keys: (array zero-terminated=1) (nullable): a key for each sample, no two the same
 * @children: (array length=n_children): samples
 * @n_children: the length of @children
 * @error: return location for an error
 *
 * Makes a sample of several samples in order that have keys.
 *
 * Returns: (transfer full): the sample; %NULL with %GTORCH_ERROR_INVALID if there are more or fewer keys than
 *   samples, a key is there twice, or a sample is %NULL or too deep
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_dict (const gchar *const *keys, GTorchSample **children, gsize n_children,
                        GError **error)
{
  GTorchSample **taken;

  g_return_val_if_fail (children != NULL || n_children == 0, NULL);
  if (!check_keys (keys, n_children, error))
    return NULL;
  taken = take_children ("sample_new_dict", children, n_children, error);
  if (taken == NULL)
    return NULL;
  return gtorch_sample_take (taken, n_children,
                             keys != NULL ? g_strdupv ((gchar **) keys) : g_new0 (gchar *, 1));
}

/**
 * gtorch_sample_new_int: (constructor)
 * @value: a number
 *
 * Makes a sample of an integer. A batch of them is a tensor of dtype int64.
 *
 * Returns: (transfer full): the sample
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_int (gint64 value)
{
  GTorchSample *self = sample_new (GTORCH_SAMPLE_INT);

  self->integer = value;
  return self;
}

/**
 * gtorch_sample_new_double: (constructor)
 * @value: a number
 *
 * Makes a sample of a number. A batch of them is a tensor of dtype float64.
 *
 * Returns: (transfer full): the sample
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_double (gdouble value)
{
  GTorchSample *self = sample_new (GTORCH_SAMPLE_DOUBLE);

  self->number = value;
  return self;
}

/**
 * gtorch_sample_new_bool: (constructor)
 * @value: a boolean
 *
 * Makes a sample of a boolean. A batch of them is a tensor of dtype bool.
 *
 * Returns: (transfer full): the sample
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_bool (gboolean value)
{
  GTorchSample *self = sample_new (GTORCH_SAMPLE_BOOL);

  self->integer = value != FALSE;
  return self;
}

/**
 * gtorch_sample_new_string: (constructor)
 * @value: a text in UTF-8
 *
 * Makes a sample of a text. A batch of them is a tuple.
 *
 * Returns: (transfer full): the sample
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_string (const gchar *value)
{
  GTorchSample *self;

  g_return_val_if_fail (value != NULL && g_utf8_validate (value, -1, NULL), NULL);
  self = sample_new (GTORCH_SAMPLE_STRING);
  self->string = g_strdup (value);
  return self;
}

/**
 * gtorch_sample_new_bytes: (constructor)
 * @value: bytes
 *
 * Makes a sample of bytes, which are not copied. A batch of them is a tuple.
 *
 * Returns: (transfer full): the sample
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_bytes (GBytes *value)
{
  GTorchSample *self;

  g_return_val_if_fail (value != NULL, NULL);
  self = sample_new (GTORCH_SAMPLE_BYTES);
  self->bytes = g_bytes_ref (value);
  return self;
}

/**
 * gtorch_sample_new_value: (constructor)
 * @value: a value of any type
 *
 * Makes a sample of a value that the library does not look into. It cannot be part of a batch, except by a
 * collate function of one's own.
 *
 * Returns: (transfer full): the sample
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_new_value (const GValue *value)
{
  GTorchSample *self;

  g_return_val_if_fail (G_IS_VALUE (value), NULL);
  self = sample_new (GTORCH_SAMPLE_VALUE);
  self->value = g_new0 (GValue, 1);
  g_value_init (self->value, G_VALUE_TYPE (value));
  g_value_copy (value, self->value);
  return self;
}

/**
 * gtorch_sample_get_kind:
 * @self: a sample
 *
 * Tells what the sample is.
 *
 * Returns: the kind
 *
 * Since: 0.1
 */
GTorchSampleKind
gtorch_sample_get_kind (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, GTORCH_SAMPLE_NONE);
  return self->kind;
}

/**
 * gtorch_sample_get_tensor:
 * @self: a sample
 *
 * Gets the tensor.
 *
 * Returns: (transfer none) (nullable): the tensor, or %NULL if the sample is of another kind
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_sample_get_tensor (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->kind == GTORCH_SAMPLE_TENSOR ? self->tensor : NULL;
}

/**
 * gtorch_sample_get_int:
 * @self: a sample
 *
 * Gets the integer.
 *
 * Returns: the integer; of a boolean 1 or 0; 0 if the sample is of another kind
 *
 * Since: 0.1
 */
gint64
gtorch_sample_get_int (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->kind == GTORCH_SAMPLE_INT || self->kind == GTORCH_SAMPLE_BOOL ? self->integer : 0;
}

/**
 * gtorch_sample_get_double:
 * @self: a sample
 *
 * Gets the number.
 *
 * Returns: the number; of an integer or a boolean the same as a double; 0 if the sample is of another kind
 *
 * Since: 0.1
 */
gdouble
gtorch_sample_get_double (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return self->kind == GTORCH_SAMPLE_DOUBLE ? self->number : (gdouble) gtorch_sample_get_int (self);
}

/**
 * gtorch_sample_get_bool:
 * @self: a sample
 *
 * Gets the boolean.
 *
 * Returns: the boolean; %FALSE if the sample is of another kind
 *
 * Since: 0.1
 */
gboolean
gtorch_sample_get_bool (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, FALSE);
  return self->kind == GTORCH_SAMPLE_BOOL && self->integer != 0;
}

/**
 * gtorch_sample_get_string:
 * @self: a sample
 *
 * Gets the text.
 *
 * Returns: (transfer none) (nullable): the text, or %NULL if the sample is of another kind
 *
 * Since: 0.1
 */
const gchar *
gtorch_sample_get_string (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->kind == GTORCH_SAMPLE_STRING ? self->string : NULL;
}

/**
 * gtorch_sample_get_bytes:
 * @self: a sample
 *
 * Gets the bytes.
 *
 * Returns: (transfer none) (nullable): the bytes, or %NULL if the sample is of another kind
 *
 * Since: 0.1
 */
GBytes *
gtorch_sample_get_bytes (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->kind == GTORCH_SAMPLE_BYTES ? self->bytes : NULL;
}

/**
 * gtorch_sample_get_value:
 * @self: a sample
 *
 * Gets the value.
 *
 * Returns: (transfer none) (nullable): the value, or %NULL if the sample is of another kind
 *
 * Since: 0.1
 */
const GValue *
gtorch_sample_get_value (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->kind == GTORCH_SAMPLE_VALUE ? self->value : NULL;
}

static gboolean
has_children (GTorchSample *self)
{
  return self->kind == GTORCH_SAMPLE_TUPLE || self->kind == GTORCH_SAMPLE_DICT;
}

/**
 * gtorch_sample_get_n_children:
 * @self: a sample
 *
 * Counts the samples in a tuple or dictionary.
 *
 * Returns: the number; 0 if the sample is of another kind
 *
 * Since: 0.1
 */
guint
gtorch_sample_get_n_children (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, 0);
  return has_children (self) ? self->n_children : 0;
}

/**
 * gtorch_sample_get_child:
 * @self: a sample
 * @index: which one; a negative index counts from the end
 * @error: return location for an error
 *
 * Gets a sample of a tuple or dictionary.
 *
 * Returns: (transfer none): the sample; %NULL with %GTORCH_ERROR_INDEX if there is no such one
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_get_child (GTorchSample *self, gint64 index, GError **error)
{
  gint64 n, i;

  g_return_val_if_fail (self != NULL, NULL);
  n = gtorch_sample_get_n_children (self);
  i = index < 0 ? index + n : index;
  if (i < 0 || i >= n)
    {
      g_autofree gchar *what = gtorch_sample_describe (self);

      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("sample: index %" PRId64 " is out of range for %s"), index, what);
      return NULL;
    }
  return self->children[i];
}

/**
 * gtorch_sample_lookup:
 * @self: a sample
 * @key: a key
 *
 * Gets the sample of a dictionary that has a key.
 *
 * Returns: (transfer none) (nullable): the sample, or %NULL if there is no such key
 *
 * Since: 0.1
 */
GTorchSample *
gtorch_sample_lookup (GTorchSample *self, const gchar *key)
{
  guint i;

  g_return_val_if_fail (self != NULL, NULL);
  g_return_val_if_fail (key != NULL, NULL);
  if (self->kind == GTORCH_SAMPLE_DICT)
    for (i = 0; i < self->n_children; i++)
      if (g_str_equal (self->keys[i], key))
        return self->children[i];
  return NULL;
}

/**
 * gtorch_sample_get_keys:
 * @self: a sample
 *
 * Lists the keys of a dictionary in order.
 *
 * Returns: (transfer full) (array zero-terminated=1): the keys; none if the sample is of another kind
 *
 * Since: 0.1
 */
gchar **
gtorch_sample_get_keys (GTorchSample *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->kind == GTORCH_SAMPLE_DICT ? g_strdupv (self->keys) : g_new0 (gchar *, 1);
}

/* --- text --- */

gchar *
gtorch_sample_describe (GTorchSample *self)
{
  switch (self->kind)
    {
    case GTORCH_SAMPLE_NONE:
      return g_strdup (_ ("nothing"));
    case GTORCH_SAMPLE_TENSOR:
      return g_strdup_printf (_ ("a tensor of %s %s"),
                              gtorch_dtype_get_name (gtorch_tensor_get_dtype (self->tensor)),
                              gtorch_impl_shape_str (gtorch_tensor_get_impl (self->tensor)));
    case GTORCH_SAMPLE_TUPLE:
      return g_strdup_printf (_ ("a tuple of %u"), self->n_children);
    case GTORCH_SAMPLE_DICT:
      {
        g_autofree gchar *keys = g_strjoinv (", ", self->keys);

        return g_strdup_printf (_ ("a dictionary of {%s}"), keys);
      }
    case GTORCH_SAMPLE_INT:
      return g_strdup_printf (_ ("the integer %" PRId64), self->integer);
    case GTORCH_SAMPLE_DOUBLE:
      return g_strdup_printf (_ ("the number %g"), self->number);
    case GTORCH_SAMPLE_BOOL:
      return g_strdup (_ ("a boolean"));
    case GTORCH_SAMPLE_STRING:
      return g_strdup (_ ("a text"));
    case GTORCH_SAMPLE_BYTES:
      return g_strdup (_ ("bytes"));
    case GTORCH_SAMPLE_VALUE:
      return g_strdup_printf ("a %s", G_VALUE_TYPE_NAME (self->value));
    }
  return g_strdup ("?");
}

static void
write_text (GTorchSample *self, GString *text)
{
  const gchar *brackets = self->kind == GTORCH_SAMPLE_DICT ? "{}" : "()";
  gchar number[G_ASCII_DTOSTR_BUF_SIZE];
  guint i;

  switch (self->kind)
    {
    case GTORCH_SAMPLE_NONE:
      g_string_append (text, "none");
      break;
    case GTORCH_SAMPLE_TENSOR:
      g_string_append_printf (text, "tensor %s %s",
                              gtorch_dtype_get_name (gtorch_tensor_get_dtype (self->tensor)),
                              gtorch_impl_shape_str (gtorch_tensor_get_impl (self->tensor)));
      break;
    case GTORCH_SAMPLE_TUPLE:
    case GTORCH_SAMPLE_DICT:
      g_string_append_c (text, brackets[0]);
      for (i = 0; i < self->n_children; i++)
        {
          if (i > 0)
            g_string_append (text, ", ");
          if (self->keys != NULL)
            g_string_append_printf (text, "%s: ", self->keys[i]);
          write_text (self->children[i], text);
        }
      g_string_append_c (text, brackets[1]);
      break;
    case GTORCH_SAMPLE_INT:
      g_string_append_printf (text, "%" G_GINT64_FORMAT, self->integer);
      break;
    case GTORCH_SAMPLE_DOUBLE:
      g_string_append (text, g_ascii_dtostr (number, sizeof number, self->number));
      break;
    case GTORCH_SAMPLE_BOOL:
      g_string_append (text, self->integer ? "true" : "false");
      break;
    case GTORCH_SAMPLE_STRING:
      g_string_append_printf (text, "\"%s\"", self->string);
      break;
    case GTORCH_SAMPLE_BYTES:
      g_string_append_printf (text, "%" G_GSIZE_FORMAT " bytes", g_bytes_get_size (self->bytes));
      break;
    case GTORCH_SAMPLE_VALUE:
      g_string_append (text, G_VALUE_TYPE_NAME (self->value));
      break;
    }
}

/**
 * gtorch_sample_to_string:
 * @self: a sample
 *
 * Describes a sample: `(tensor float32 [2, 3], 7)`.
 *
 * Returns: (transfer full): the text
 *
 * Since: 0.1
 */
gchar *
gtorch_sample_to_string (GTorchSample *self)
{
  GString *text;

  g_return_val_if_fail (self != NULL, NULL);
  text = g_string_new (NULL);
  write_text (self, text);
  return g_string_free (text, FALSE);
}
