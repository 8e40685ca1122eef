/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* x[1:3, ..., mask]: basic items become successive views; the remaining index tensors are then gathered
 * or written in one operation. */

#include "config.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "base/gtorch-error-private.h"
#include "base/gtorch-none-private.h"
#include "base/gtorch-range-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "elements/gtorch-tensor-index-private.h"
#include "elements/gtorch-tensor-index.h"
#include "tensor/gtorch-tensor-private.h"

#define ITEM  GTORCH_INDEX_ITEM
#define LIMIT GTORCH_INDEX_LIMIT

GType
gtorch_index_kind_get_type (void)
{
  static gsize type;

  if (g_once_init_enter (&type))
    {
      static const GEnumValue values[] = {
        { GTORCH_INDEX_INT, "GTORCH_INDEX_INT", "int" },
        { GTORCH_INDEX_SLICE, "GTORCH_INDEX_SLICE", "slice" },
        { GTORCH_INDEX_ELLIPSIS, "GTORCH_INDEX_ELLIPSIS", "ellipsis" },
        { GTORCH_INDEX_NEW_AXIS, "GTORCH_INDEX_NEW_AXIS", "new-axis" },
        { GTORCH_INDEX_TENSOR, "GTORCH_INDEX_TENSOR", "tensor" },
        { GTORCH_INDEX_BOOL, "GTORCH_INDEX_BOOL", "bool" },
        { 0, NULL, NULL },
      };

      g_once_init_leave (&type, g_enum_register_static ("GTorchIndexKind", values));
    }
  return type;
}

/* A view, and the index tensors (dims ascending) that are still to be applied to it. */
typedef struct
{
  GTorchImpl *view;
  GTorchImpl *indices[GTORCH_MAX_DIMS];
  gint64 dims[GTORCH_MAX_DIMS];
  guint n;
} Selection;

static void
selection_clear (Selection *self)
{
  g_clear_pointer (&self->view, gtorch_impl_unref);
  gtorch_impl_clear (self->indices, self->n);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Selection, selection_clear)

static gboolean
selection_step (Selection *self, GTorchImpl *view)
{
  if (view == NULL)
    return FALSE;
  gtorch_impl_unref (self->view);
  self->view = view;
  return TRUE;
}

static gboolean
selection_add (Selection *self, guint dim, GTorchImpl *index)
{
  if (index == NULL)
    return FALSE;
  self->dims[self->n] = dim;
  self->indices[self->n++] = index;
  return TRUE;
}

static gboolean
is_mask (const GTorchImpl *impl)
{
  return impl->dtype == GTORCH_DTYPE_BOOL || impl->dtype == GTORCH_DTYPE_UINT8;
}

static guint
dims_consumed (const gint64 *item, GTorchTensor **tensors)
{
  GTorchImpl *tensor;

  switch (item[0])
    {
    case GTORCH_INDEX_INT:
    case GTORCH_INDEX_SLICE:
      return 1;
    case GTORCH_INDEX_TENSOR:
      tensor = gtorch_tensor_get_impl (tensors[item[1]]);
      return is_mask (tensor) ? tensor->n_dims : 1;
    default:
      return 0;
    }
}

static gboolean
check_items (GTorchImpl *self, const gint64 *items, gsize n_items, GTorchTensor **tensors,
             gsize n_tensors, guint *consumed, GError **error)
{
  guint n_ellipses = 0;
  gsize i;

  *consumed = 0;
  if (n_items % ITEM != 0 || n_items / ITEM > LIMIT)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("index: %zu integers were given, there can be up to %d items of four "
                      "integers each"),
                   n_items, LIMIT);
      return FALSE;
    }
  for (i = 0; i < n_items; i += ITEM)
    {
      const gint64 *item = items + i;

      if (item[0] < GTORCH_INDEX_INT || item[0] > GTORCH_INDEX_BOOL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("index: item %u is of the unknown kind %" PRId64), (guint) (i / ITEM),
                       item[0]);
          return FALSE;
        }
      if (item[0] == GTORCH_INDEX_TENSOR
          && (item[1] < 0 || item[1] >= (gint64) n_tensors || !GTORCH_IS_TENSOR (tensors[item[1]])))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("index: item %u refers to tensor %" PRId64 ", the list has %zu"),
                       (guint) (i / ITEM), item[1], n_tensors);
          return FALSE;
        }
      n_ellipses += item[0] == GTORCH_INDEX_ELLIPSIS;
      *consumed += dims_consumed (item, tensors);
    }
  if (n_ellipses > 1)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("index: there is more than one ellipsis"));
      return FALSE;
    }
  if (*consumed > self->n_dims)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("index: %u dimensions are indexed, but shape %s has only %u"), *consumed,
                   gtorch_impl_shape_str (self), self->n_dims);
      return FALSE;
    }
  return TRUE;
}

/* A boolean, or a mask without dimensions: a new dimension of size 1 or 0. */
static gboolean
apply_truth (Selection *self, guint *dim, gint64 n, GError **error)
{
  GTorchImpl *index;

  if (!selection_step (self, gtorch_op_unsqueeze (self->view, *dim, error)))
    return FALSE;
  index = gtorch_op_new_zeros (self->view, &n, 1, GTORCH_DTYPE_INT64, error);
  return selection_add (self, (*dim)++, index);
}

static gboolean
apply_mask (Selection *self, guint *dim, GTorchImpl *mask, GError **error)
{
  g_autoptr (GTorchImpl) found = NULL;
  guint i;

  if (memcmp (self->view->shape + *dim, mask->shape, mask->n_dims * sizeof (gint64)) != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                   _ ("index: a mask of shape %s does not fit shape %s from dimension %u on"),
                   gtorch_impl_shape_str (mask), gtorch_impl_shape_str (self->view), *dim);
      return FALSE;
    }
  found = gtorch_op_nonzero (mask, error);
  if (found == NULL)
    return FALSE;
  if (mask->n_dims == 0)
    return apply_truth (self, dim, found->shape[0], error);
  for (i = 0; i < mask->n_dims; i++)
    if (!selection_add (self, (*dim)++, gtorch_op_select (found, 1, i, error)))
      return FALSE;
  return TRUE;
}

static gboolean
apply_item (Selection *self, guint *dim, guint left_over, const gint64 *item,
            GTorchTensor **tensors, GError **error)
{
  GTorchImpl *tensor;

  switch (item[0])
    {
    case GTORCH_INDEX_INT:
      if (item[1] < -self->view->shape[*dim] || item[1] >= self->view->shape[*dim])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INDEX,
                       _ ("index: index %" PRId64 " is out of range for dimension %u of shape %s"),
                       item[1], *dim, gtorch_impl_shape_str (self->view));
          return FALSE;
        }
      return selection_step (self, gtorch_op_select (self->view, *dim, item[1], error));

    case GTORCH_INDEX_SLICE:
      if (item[3] == 1 && item[1] == 0 && item[2] >= self->view->shape[*dim])
        {
          (*dim)++;
          return TRUE;
        }
      return selection_step (self, gtorch_op_slice (self->view, (*dim)++, item[1], item[2], item[3],
                                                    error));

    case GTORCH_INDEX_ELLIPSIS:
      *dim += left_over;
      return TRUE;

    case GTORCH_INDEX_NEW_AXIS:
      return selection_step (self, gtorch_op_unsqueeze (self->view, (*dim)++, error));

    case GTORCH_INDEX_BOOL:
      return apply_truth (self, dim, item[1] != 0, error);

    default:
      tensor = gtorch_tensor_get_impl (tensors[item[1]]);
      if (is_mask (tensor))
        return apply_mask (self, dim, tensor, error);
      return selection_add (self, (*dim)++, gtorch_impl_ref (tensor));
    }
}

static gboolean
select_items (Selection *self, GTorchImpl *impl, const gint64 *items, gsize n_items,
              GTorchTensor **tensors, gsize n_tensors, GError **error)
{
  guint consumed, dim = 0;
  gsize i;

  if (!check_items (impl, items, n_items, tensors, n_tensors, &consumed, error))
    return FALSE;
  self->view = gtorch_op_view_as_is (impl, error);
  if (self->view == NULL)
    {
      gtorch_error_set_op (error, "index");
      return FALSE;
    }
  for (i = 0; i < n_items; i += ITEM)
    if (!apply_item (self, &dim, impl->n_dims - consumed, items + i, tensors, error))
      return FALSE;
  return TRUE;
}

/**
 * gtorch_tensor_index:
 * @self: a tensor
 * @items: (array length=n_items): the items, four integers each: a #GTorchIndexKind and its numbers
 * @n_items: the length of @items, a multiple of four
 * @tensors: (array length=n_tensors) (nullable): the index tensors that items refer to
 * @n_tensors: the length of @tensors
 * @error: return location for an error
 *
 * Selects a part of a tensor, like `self[items]` in Python with NumPy's and PyTorch's rules.
 *
 * - `INT`, index, 0, 0: one index of a dimension, which is removed; negative ones count from the end
 * - `SLICE`, start, stop, step: a range; the defaults are 0, `G_MAXINT64` and 1
 * - `ELLIPSIS`, 0, 0, 0: all dimensions without other items; at most one
 * - `NEW_AXIS`, 0, 0, 0: a new dimension of size 1
 * - `TENSOR`, number, 0, 0: @tensors[number], of int32 or int64 indices, or a bool mask of one or more
 *   dimensions
 * - `BOOL`, 0 or 1, 0, 0: a new dimension of that size
 *
 * Dimensions without items are kept whole. Without index tensors the result is a view of @self, with them
 * a copy. Index tensors are broadcast against each other; their dimensions in the result are at the
 * position of the index tensors, or first if other items stand between them.
 *
 * ```c
 * // x[0, 1:3]
 * const gint64 items[] = { GTORCH_INDEX_INT, 0, 0, 0, GTORCH_INDEX_SLICE, 1, 3, 1 };
 * y = gtorch_tensor_index (x, items, G_N_ELEMENTS (items), NULL, 0, &error);
 * ```
 *
 * Defined for all dtypes. Differentiable. An index out of range is a %GTORCH_ERROR_INDEX.
 *
 * Returns: (transfer full): the part, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_index (GTorchTensor *self, const gint64 *items, gsize n_items, GTorchTensor **tensors,
                     gsize n_tensors, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  GTORCH_HOLD_TENSORS (tensors, n_tensors);
  g_auto (Selection) selection = { NULL };

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (items != NULL || n_items == 0, NULL);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, NULL);

  if (!select_items (&selection, gtorch_tensor_unwrap (self), items, n_items, tensors, n_tensors,
                     error))
    return NULL;
  if (selection.n == 0)
    return gtorch_tensor_wrap (g_steal_pointer (&selection.view));
  return gtorch_tensor_wrap (gtorch_op_index (selection.view, selection.indices, selection.n,
                                              selection.dims, selection.n, error));
}

/* Removes leading dimensions of size 1 that the target does not have. */
static GTorchImpl *
without_leading_ones (GTorchImpl *value, guint n_dims, GError **error)
{
  guint skip = 0;

  while (value->n_dims - skip > n_dims && value->shape[skip] == 1)
    skip++;
  return skip == 0 ? gtorch_impl_ref (value)
                   : gtorch_op_reshape (value, value->shape + skip, value->n_dims - skip, error);
}

static gboolean
put (GTorchImpl *self, const gint64 *items, gsize n_items, GTorchTensor **tensors, gsize n_tensors,
     GTorchImpl *value, gboolean accumulate, GError **error)
{
  g_auto (Selection) selection = { NULL };
  g_autoptr (GTorchImpl) source = NULL;
  g_autoptr (GTorchImpl) fitting = NULL;

  if (!select_items (&selection, self, items, n_items, tensors, n_tensors, error))
    return FALSE;
  /* parts of one tensor may be exchanged, whether they overlap or not */
  source = value->storage == self->storage && value->storage != NULL
               ? gtorch_op_clone (value, error)
               : gtorch_impl_ref (value);
  if (source == NULL)
    return FALSE;
  if (selection.n > 0)
    return gtorch_op_index_put_inplace (selection.view, source, selection.indices, selection.n,
                                        selection.dims, selection.n, accumulate, error);
  fitting = without_leading_ones (source, selection.view->n_dims, error);
  if (fitting == NULL)
    return FALSE;
  return accumulate ? gtorch_op_add_inplace (selection.view, fitting, 1, error)
                    : gtorch_op_copy_inplace (selection.view, fitting, FALSE, error);
}

/**
 * gtorch_tensor_index_put_inplace:
 * @self: a tensor
 * @items: (array length=n_items): the items, as for [method@Tensor.index]
 * @n_items: the length of @items, a multiple of four
 * @tensors: (array length=n_tensors) (nullable): the index tensors that items refer to
 * @n_tensors: the length of @tensors
 * @value: the value to write; it is broadcast, and converted to the dtype of @self
 * @accumulate: whether to add instead; an element with several indices then gets the sum
 * @error: return location for an error
 *
 * Writes to a part of a tensor, as `self[items] = value` does in Python.
 *
 * ```c
 * // x[..., 0] = value
 * const gint64 items[] = { GTORCH_INDEX_ELLIPSIS, 0, 0, 0, GTORCH_INDEX_INT, 0, 0, 0 };
 * gtorch_tensor_index_put_inplace (x, items, G_N_ELEMENTS (items), NULL, 0, value, FALSE, &error);
 * ```
 *
 * If several writes have the same target, the last one is kept. If an index is out of range nothing is
 * written. @value may be a part of @self.
 *
 * Returns: (transfer none): @self, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_index_put_inplace (GTorchTensor *self, const gint64 *items, gsize n_items,
                                 GTorchTensor **tensors, gsize n_tensors, GTorchTensor *value,
                                 gboolean accumulate, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  GTORCH_HOLD_TENSORS (tensors, n_tensors);
  GTORCH_HOLD_TENSOR (value);

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (items != NULL || n_items == 0, NULL);
  g_return_val_if_fail (tensors != NULL || n_tensors == 0, NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (value), NULL);

  return put (gtorch_tensor_unwrap (self), items, n_items, tensors, n_tensors,
              gtorch_tensor_unwrap (value), accumulate, error)
             ? self
             : NULL;
}

/* --- the text form --- */

typedef struct
{
  const gchar *spec;
  const gchar *next;
  gint64 items[LIMIT * ITEM];
  gsize n;
} Parser;

static gboolean
parser_fail (Parser *self, GError **error, const gchar *why)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
               _ ("index: “%s” cannot be read at character %u: %s"), gtorch_name_str (self->spec),
               (guint) g_utf8_pointer_to_offset (self->spec, self->next) + 1, why);
  return FALSE;
}

static void
parser_space (Parser *self)
{
  while (g_ascii_isspace (*self->next))
    self->next++;
}

static gboolean
parser_word (Parser *self, const gchar *word)
{
  gsize length = strlen (word);

  if (strncmp (self->next, word, length) != 0
      || (g_ascii_isalpha (word[0])
          && (g_ascii_isalnum (self->next[length]) || self->next[length] == '_')))
    return FALSE;
  self->next += length;
  return TRUE;
}

/* Returns FALSE without an error if there is no number here. */
static gboolean
parser_number (Parser *self, gint64 *value, GError **error)
{
  const gchar *digits = self->next + (*self->next == '-' || *self->next == '+');
  gchar *end;

  if (!g_ascii_isdigit (*digits))
    return FALSE;
  errno = 0;
  *value = g_ascii_strtoll (self->next, &end, 10);
  if (errno == ERANGE)
    return parser_fail (self, error, _ ("the number does not fit 64 bits"));
  self->next = end;
  return TRUE;
}

static gboolean
parser_range (Parser *self, gint64 *item, gboolean has_start, GError **error)
{
  const gint64 defaults[] = { GTORCH_INDEX_SLICE, 0, G_MAXINT64, 1 };
  GError *failure = NULL;
  guint part;

  item[0] = defaults[0];
  if (!has_start)
    item[1] = defaults[1];
  item[2] = defaults[2];
  item[3] = defaults[3];
  for (part = 2; part < ITEM && *self->next == ':'; part++)
    {
      self->next++;
      parser_space (self);
      if (!parser_number (self, &item[part], &failure))
        item[part] = defaults[part];
      if (failure != NULL)
        {
          g_propagate_error (error, failure);
          return FALSE;
        }
      parser_space (self);
    }
  return item[3] > 0 || parser_fail (self, error, _ ("the step is not positive"));
}

static gboolean
parser_item (Parser *self, GError **error)
{
  gint64 *item = self->items + self->n;
  GError *failure = NULL;

  if (self->n == G_N_ELEMENTS (self->items))
    return parser_fail (self, error, _ ("there are too many items"));
  memset (item, 0, ITEM * sizeof (gint64));
  self->n += ITEM;
  if (parser_word (self, "...") || parser_word (self, "…"))
    item[0] = GTORCH_INDEX_ELLIPSIS;
  else if (parser_word (self, "None") || parser_word (self, "null"))
    item[0] = GTORCH_INDEX_NEW_AXIS;
  else if (parser_word (self, "True") || parser_word (self, "true"))
    {
      item[0] = GTORCH_INDEX_BOOL;
      item[1] = 1;
    }
  else if (parser_word (self, "False") || parser_word (self, "false"))
    item[0] = GTORCH_INDEX_BOOL;
  else if (*self->next == ':')
    return parser_range (self, item, FALSE, error);
  else if (parser_number (self, &item[1], &failure))
    {
      parser_space (self);
      return *self->next == ':' ? parser_range (self, item, TRUE, error) : TRUE;
    }
  else if (failure != NULL)
    {
      g_propagate_error (error, failure);
      return FALSE;
    }
  else
    return parser_fail (self, error, _ ("a number, a range a:b:c, “...” or “None” is wanted"));
  parser_space (self);
  return TRUE;
}

static gboolean
parse (Parser *self, const gchar *spec, GError **error)
{
  self->spec = self->next = spec;
  self->n = 0;
  if (!g_utf8_validate (spec, -1, NULL))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("index: the text is not UTF-8"));
      return FALSE;
    }
  for (parser_space (self); *self->next != '\0'; parser_space (self))
    {
      if (!parser_item (self, error))
        return FALSE;
      if (*self->next == ',')
        self->next++;
      else if (*self->next != '\0')
        return parser_fail (self, error, _ ("a comma is wanted"));
    }
  return TRUE;
}

gboolean
gtorch_index_parse (const gchar *spec, gint64 *items, gsize *n, GError **error)
{
  Parser parser;

  if (!parse (&parser, spec, error))
    return FALSE;
  if (parser.n + *n > G_N_ELEMENTS (parser.items))
    return parser_fail (&parser, error, _ ("there are too many items"));
  memcpy (items + *n, parser.items, parser.n * sizeof (gint64));
  *n += parser.n;
  return TRUE;
}

/**
 * gtorch_tensor_get:
 * @self: a tensor
 * @spec: the text between the brackets in Python, for example `"0, 1:3, ..., None, ::2"`
 * @error: return location for an error
 *
 * Selects a part of a tensor: the view that `self[spec]` is in Python. @spec may contain indices, ranges
 * (with a positive step), an ellipsis, `None` (or `null`) and booleans; for index tensors see
 * [method@Tensor.index].
 *
 * ```c
 * g_autoptr (GTorchTensor) column = gtorch_tensor_get (x, "..., 0", &error);
 * ```
 *
 * Returns: (transfer full): the part, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_get (GTorchTensor *self, const gchar *spec, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  GTorchTensor *part;
  Parser parser;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (spec != NULL, NULL);

  part = parse (&parser, spec, error)
             ? gtorch_tensor_index (self, parser.items, parser.n, NULL, 0, error)
             : NULL;
  if (part == NULL)
    gtorch_error_set_op (error, "get");
  return part;
}

/* Writes to the part that a text names. */
static GTorchTensor *
write_part (const gchar *op, GTorchTensor *self, const gchar *spec, GTorchImpl *value,
            GError **error)
{
  Parser parser;

  if (parse (&parser, spec, error)
      && put (gtorch_tensor_unwrap (self), parser.items, parser.n, NULL, 0, value, FALSE, error))
    return self;
  gtorch_error_set_op (error, op);
  return NULL;
}

/**
 * gtorch_tensor_set:
 * @self: a tensor
 * @spec: the part, as for [method@Tensor.get]
 * @value: the value to write; it is broadcast, and converted to the dtype of @self
 * @error: return location for an error
 *
 * Writes to a part of a tensor, as `self[spec] = value` does in Python.
 *
 * Returns: (transfer none): @self, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_set (GTorchTensor *self, const gchar *spec, GTorchTensor *value, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  GTORCH_HOLD_TENSOR (value);

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (spec != NULL, NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (value), NULL);

  return write_part ("set", self, spec, gtorch_tensor_unwrap (value), error);
}

/**
 * gtorch_tensor_set_scalar:
 * @self: a tensor
 * @spec: the part, as for [method@Tensor.get]
 * @value: a number, which is converted to the dtype of @self
 * @error: return location for an error
 *
 * Writes a number to all elements of a part of a tensor. [method@Tensor.set_int] writes integers that a
 * double may not represent exactly.
 *
 * Returns: (transfer none): @self, or %NULL with @error set; to %GTORCH_ERROR_INVALID if the dtype cannot
 *   represent @value
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_set_scalar (GTorchTensor *self, const gchar *spec, gdouble value, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  g_autoptr (GTorchImpl) number = NULL;
  guint dtype;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (spec != NULL, NULL);

  dtype = gtorch_tensor_unwrap (self)->dtype;
  if (!gtorch_dtype_has (dtype, value) || gtorch_is_none_double (value))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("set_scalar: value is %.17g, which is no %s"), value,
                   gtorch_dtype_get_name (dtype));
      return NULL;
    }
  number = gtorch_impl_new_number (value);
  return write_part ("set_scalar", self, spec, number, error);
}

/**
 * gtorch_tensor_set_int:
 * @self: a tensor
 * @spec: the part, as for [method@Tensor.get]
 * @value: an integer, which is converted to the dtype of @self
 * @error: return location for an error
 *
 * Writes an integer to all elements of a part of a tensor, exactly if the dtype is one of integers.
 *
 * ```c
 * gtorch_tensor_set_int (ids, "0", 9007199254740993, &error);
 * ```
 *
 * Returns: (transfer none): @self, or %NULL with @error set; to %GTORCH_ERROR_INVALID if the dtype cannot
 *   represent @value
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_tensor_set_int (GTorchTensor *self, const gchar *spec, gint64 value, GError **error)
{
  GTORCH_HOLD_TENSOR (self);
  g_autoptr (GTorchImpl) number = NULL;
  guint dtype;

  g_return_val_if_fail (GTORCH_IS_TENSOR (self), NULL);
  g_return_val_if_fail (spec != NULL, NULL);

  dtype = gtorch_tensor_unwrap (self)->dtype;
  if (gtorch_dtype_size (dtype) < 8 && !gtorch_dtype_has (dtype, (gdouble) value))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("set_int: value is %" PRId64 ", which is no %s"), value,
                   gtorch_dtype_get_name (dtype));
      return NULL;
    }
  number = gtorch_impl_new_int (value);
  return write_part ("set_int", self, spec, number, error);
}
