/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Sums of products after Einstein. An operand is described by the labels of its dimensions: numbers, or
 * ELLIPSIS for those that have none. The dimensions of an ellipsis get labels of their own, counted from the
 * last one, since they are broadcast as usual.
 *
 * Each operand is first made plain: of a label that occurs twice the diagonal is taken, and dimensions of
 * size 1 are dropped if another operand has more. Then two operands at a time are multiplied, by a product
 * of matrices whose rows, columns and inner dimension are merged from several labels, or element by element
 * if nothing is summed. A label that neither the output nor a later operand has is summed as soon as no
 * more operands have it.
 *
 * With more than two operands their order decides how much there is to compute (einsum-path.c). */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "ops/gtorch-op-parts-private.h"

#define N_LETTERS    52
#define MAX_LABELS   (N_LETTERS + GTORCH_MAX_DIMS)
#define ELLIPSIS     -1
#define NEXT         -2 /* ends the labels of an operand */
#define MAX_OPERANDS GTORCH_EINSUM_OPERANDS

typedef struct
{
  GTorchImpl *impl; /* owned */
  guint8 labels[GTORCH_MAX_DIMS];
  guint n;
} Operand;

typedef struct
{
  Operand operands[MAX_OPERANDS];
  guint n_operands;
  guint8 output[GTORCH_MAX_DIMS];
  guint n_output;
  gint64 sizes[MAX_LABELS];
  guint ellipsis_dims; /* the greatest number that an ellipsis stands for */
} Sum;

static void
sum_clear (Sum *sum)
{
  for (guint i = 0; i < sum->n_operands; i++)
    g_clear_pointer (&sum->operands[i].impl, gtorch_impl_unref);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Sum, sum_clear)

/* --- reading labels --- */

static gboolean
refuse (GError **error, const gchar *text)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, "einsum: %s", text);
  return FALSE;
}

/* Appends the labels of `count` dimensions of an ellipsis. */
static gboolean
add_ellipsis (guint8 *labels, guint *n, guint count, GError **error)
{
  if (*n + count > GTORCH_MAX_DIMS)
    return refuse (error, _ ("there are too many dimensions"));
  for (guint i = count; i-- > 0;)
    labels[(*n)++] = (guint8) (N_LETTERS + i);
  return TRUE;
}

/* Reads the labels of one operand, and sets the sizes that they have. */
static gboolean
read_operand (Sum *sum, GTorchImpl *impl, const gint64 *terms, gsize n_terms, GError **error)
{
  Operand *operand = &sum->operands[sum->n_operands];
  gboolean has_ellipsis = FALSE;
  gsize n_letters = 0, i;

  for (i = 0; i < n_terms; i++)
    if (terms[i] != ELLIPSIS)
      n_letters++;
    else if (has_ellipsis)
      return refuse (error, _ ("an operand has two ellipses"));
    else
      has_ellipsis = TRUE;
  if (impl->n_dims < n_letters || (impl->n_dims > n_letters && !has_ellipsis))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("einsum: operand %u of shape %s has %u dimensions, and %zu labels for them"),
                   sum->n_operands, gtorch_impl_shape_str (impl), impl->n_dims, n_letters);
      return FALSE;
    }
  for (i = 0; i < n_terms; i++)
    if (terms[i] == ELLIPSIS)
      {
        guint count = impl->n_dims - (guint) n_letters;

        sum->ellipsis_dims = MAX (sum->ellipsis_dims, count);
        if (!add_ellipsis (operand->labels, &operand->n, count, error))
          return FALSE;
      }
    else if (terms[i] < 0 || terms[i] >= N_LETTERS)
      return refuse (error, _ ("a label is not from 0 to 51"));
    else
      operand->labels[operand->n++] = (guint8) terms[i];
  for (i = 0; i < operand->n; i++)
    {
      gint64 *size = &sum->sizes[operand->labels[i]];

      if (*size == 1 || *size < 0)
        *size = impl->shape[i];
      else if (impl->shape[i] != 1 && impl->shape[i] != *size)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("einsum: dimension %u of operand %u with shape %s does not match the "
                          "size %" PRId64 " that its label has elsewhere"),
                       (guint) i, sum->n_operands, gtorch_impl_shape_str (impl), *size);
          return FALSE;
        }
    }
  operand->impl = gtorch_impl_ref (impl);
  sum->n_operands++;
  return TRUE;
}

static gboolean
read_output (Sum *sum, const gint64 *terms, gsize n_terms, GError **error)
{
  guint64 seen = 0;
  gboolean has_ellipsis = FALSE;

  for (gsize i = 0; i < n_terms; i++)
    if (terms[i] == ELLIPSIS)
      {
        if (has_ellipsis)
          return refuse (error, _ ("the output has two ellipses"));
        has_ellipsis = TRUE;
        if (!add_ellipsis (sum->output, &sum->n_output, sum->ellipsis_dims, error))
          return FALSE;
      }
    else if (terms[i] < 0 || terms[i] >= N_LETTERS || sum->sizes[terms[i]] < 0)
      return refuse (error, _ ("the output has a label that no operand has"));
    else if (seen >> terms[i] & 1)
      return refuse (error, _ ("the output has a label twice"));
    else if (sum->n_output == GTORCH_MAX_DIMS)
      return refuse (error, _ ("there are too many dimensions"));
    else
      {
        seen |= G_GUINT64_CONSTANT (1) << terms[i];
        sum->output[sum->n_output++] = (guint8) terms[i];
      }
  return TRUE;
}

static gboolean
sum_init (Sum *sum, GTorchImpl *const *tensors, gsize n_tensors, const gint64 *terms, gsize n_terms,
          GError **error)
{
  gsize begin = 0, end;

  for (guint i = 0; i < MAX_LABELS; i++)
    sum->sizes[i] = -1;
  if (n_tensors == 0 || n_tensors > MAX_OPERANDS)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("einsum: there must be from 1 to %d operands, there are %zu"), MAX_OPERANDS,
                   n_tensors);
      return FALSE;
    }
  for (gsize i = 0; i < n_tensors; i++, begin = end + 1)
    {
      for (end = begin; end < n_terms && terms[end] != NEXT; end++)
        ;
      if (end >= n_terms)
        return refuse (error, _ ("there are more operands than labels for them"));
      if (!read_operand (sum, tensors[i], terms + begin, end - begin, error))
        return FALSE;
    }
  return read_output (sum, terms + begin, n_terms - begin, error);
}

/* --- single operands --- */

static gint
find_label (const Operand *operand, guint label)
{
  for (guint i = 0; i < operand->n; i++)
    if (operand->labels[i] == label)
      return (gint) i;
  return -1;
}

static void
remove_label (Operand *operand, guint at)
{
  memmove (operand->labels + at, operand->labels + at + 1, operand->n - at - 1);
  operand->n--;
}

/* Takes the new implementation of an operand; NULL after an error. */
static gboolean
operand_take (Operand *operand, GTorchImpl *impl)
{
  if (impl == NULL)
    return FALSE;
  gtorch_impl_unref (operand->impl);
  operand->impl = impl;
  return TRUE;
}

/* Takes the diagonal of labels that occur twice, and drops dimensions of size 1 that are larger elsewhere. */
static gboolean
simplify (Sum *sum, Operand *operand, GError **error)
{
  for (guint i = 0; i < operand->n;)
    {
      const gint64 dim = i;
      guint label = operand->labels[i], j = i + 1;

      while (j < operand->n && operand->labels[j] != label)
        j++;
      if (j < operand->n && operand->impl->shape[i] != operand->impl->shape[j])
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                       _ ("einsum: dimensions %u and %u of shape %s have one label and must be of "
                          "one size"),
                       i, j, gtorch_impl_shape_str (operand->impl));
          return FALSE;
        }
      if (j < operand->n)
        {
          /* the diagonal is the last dimension */
          if (!operand_take (operand, gtorch_op_diagonal (operand->impl, 0, i, j, error)))
            return FALSE;
          remove_label (operand, j);
          remove_label (operand, i);
          operand->labels[operand->n++] = (guint8) label;
        }
      else if (operand->impl->shape[i] == 1 && sum->sizes[label] != 1)
        {
          if (!operand_take (operand, gtorch_op_squeeze (operand->impl, &dim, 1, error)))
            return FALSE;
          remove_label (operand, i);
        }
      else
        i++;
    }
  return TRUE;
}

/* Tells whether the output or an operand other than these two has the label. */
static gboolean
is_needed (const Sum *sum, guint label, const Operand *a, const Operand *b)
{
  if (memchr (sum->output, (gint) label, sum->n_output) != NULL)
    return TRUE;
  for (guint i = 0; i < sum->n_operands; i++)
    if (&sum->operands[i] != a && &sum->operands[i] != b && sum->operands[i].impl != NULL
        && find_label (&sum->operands[i], label) >= 0)
      return TRUE;
  return FALSE;
}

/* Sums the labels that nothing else needs. */
static gboolean
sum_own (const Sum *sum, Operand *operand, const Operand *other, GError **error)
{
  gint64 dims[GTORCH_MAX_DIMS];
  guint n = 0, left = 0;

  for (guint i = 0; i < operand->n; i++)
    if (is_needed (sum, operand->labels[i], operand, other)
        || (other != NULL && find_label (other, operand->labels[i]) >= 0))
      operand->labels[left++] = operand->labels[i];
    else
      dims[n++] = i;
  operand->n = left;
  return n == 0
         || operand_take (operand,
                          gtorch_op_sum (operand->impl, dims, n, FALSE, GTORCH_DTYPE_NONE, error));
}

/* --- two operands --- */

/* The labels of a pair: those that both have and keep, those that both have and are summed, and those of
 * one. */
typedef struct
{
  guint8 batch[GTORCH_MAX_DIMS], inner[GTORCH_MAX_DIMS], rows[GTORCH_MAX_DIMS],
      columns[GTORCH_MAX_DIMS];
  guint n_batch, n_inner, n_rows, n_columns;
} Pair;

static void
pair_init (Pair *pair, const Sum *sum, const Operand *a, const Operand *b)
{
  memset (pair, 0, sizeof *pair);
  for (guint i = 0; i < a->n; i++)
    if (find_label (b, a->labels[i]) < 0)
      pair->rows[pair->n_rows++] = a->labels[i];
    else if (is_needed (sum, a->labels[i], a, b))
      pair->batch[pair->n_batch++] = a->labels[i];
    else
      pair->inner[pair->n_inner++] = a->labels[i];
  for (guint i = 0; i < b->n; i++)
    if (find_label (a, b->labels[i]) < 0)
      pair->columns[pair->n_columns++] = b->labels[i];
}

static guint
add_dims (const Operand *operand, const guint8 *labels, guint n, gint64 *order, guint at)
{
  for (guint i = 0; i < n; i++)
    order[at++] = find_label (operand, labels[i]);
  return at;
}

static gint64
volume (const Sum *sum, const guint8 *labels, guint n)
{
  gint64 result = 1;

  for (guint i = 0; i < n; i++)
    result *= sum->sizes[labels[i]];
  return result;
}

/* Orders the dimensions by three groups of labels and merges each group. */
static GTorchImpl *
as_matrices (const Sum *sum, const Operand *operand, const Pair *pair, const guint8 *second,
             guint n_second, const guint8 *third, guint n_third, GError **error)
{
  gint64 order[GTORCH_MAX_DIMS];
  guint n = add_dims (operand, pair->batch, pair->n_batch, order, 0);
  const gint64 shape[] = { volume (sum, pair->batch, pair->n_batch), volume (sum, second, n_second),
                           volume (sum, third, n_third) };
  const guint skipped = pair->n_batch == 0;
  g_autoptr (GTorchImpl) turned = NULL;

  n = add_dims (operand, second, n_second, order, n);
  n = add_dims (operand, third, n_third, order, n);
  turned = gtorch_op_permute (operand->impl, order, n, error);
  return turned != NULL ? gtorch_op_reshape (turned, shape + skipped, 3 - skipped, error) : NULL;
}

/* Converts to the dtype that both have together: sums of integers are of int64. */
static gboolean
convert_to_common (GTorchImpl **left, GTorchImpl **right, GError **error)
{
  const GTorchDType dtype = gtorch_dtype_promote ((*left)->dtype, (*right)->dtype);
  GTorchImpl **impls[] = { left, right };

  for (guint i = 0; i < 2 && (*left)->dtype != (*right)->dtype; i++)
    {
      g_autoptr (GTorchImpl) before = *impls[i];

      *impls[i] = gtorch_op_to_dtype (before, dtype, error);
      if (*impls[i] == NULL)
        return FALSE;
    }
  return TRUE;
}

static GTorchImpl *
multiply_matrices (const Sum *sum, const Operand *a, const Operand *b, const Pair *pair,
                   GError **error)
{
  g_autoptr (GTorchImpl) left =
      as_matrices (sum, a, pair, pair->rows, pair->n_rows, pair->inner, pair->n_inner, error);
  g_autoptr (GTorchImpl) right = left != NULL
                                     ? as_matrices (sum, b, pair, pair->inner, pair->n_inner,
                                                    pair->columns, pair->n_columns, error)
                                     : NULL;

  if (right == NULL
      || (gtorch_dtype_kind (left->dtype) < GTORCH_KIND_FLOAT
          && !convert_to_common (&left, &right, error)))
    return NULL;
  return pair->n_batch == 0 ? gtorch_op_mm (left, right, error)
                            : gtorch_op_bmm (left, right, error);
}

/* Multiplies element by element, where nothing is summed. */
static GTorchImpl *
multiply_elements (const Sum *sum, const Operand *a, const Operand *b, const Pair *pair,
                   GError **error)
{
  gint64 order[GTORCH_MAX_DIMS], shape[GTORCH_MAX_DIMS];
  guint n = add_dims (a, pair->batch, pair->n_batch, order, 0), i;
  g_autoptr (GTorchImpl) left = NULL;
  g_autoptr (GTorchImpl) column = NULL;
  g_autoptr (GTorchImpl) right = NULL;

  n = add_dims (a, pair->rows, pair->n_rows, order, n);
  left = gtorch_op_permute (a->impl, order, n, error);
  if (left == NULL)
    return NULL;
  for (i = 0; i < n; i++)
    shape[i] = left->shape[i];
  for (i = 0; i < pair->n_columns; i++)
    shape[n + i] = 1;
  column = gtorch_op_reshape (left, shape, n + pair->n_columns, error);
  n = add_dims (b, pair->batch, pair->n_batch, order, 0);
  n = add_dims (b, pair->columns, pair->n_columns, order, n);
  right = column != NULL ? gtorch_op_permute (b->impl, order, n, error) : NULL;
  if (right == NULL)
    return NULL;
  if (pair->n_rows > 0)
    {
      g_autoptr (GTorchImpl) plain = g_steal_pointer (&right);

      for (i = 0; i < pair->n_batch; i++)
        shape[i] = plain->shape[i];
      for (i = 0; i < pair->n_rows; i++)
        shape[pair->n_batch + i] = 1;
      for (i = 0; i < pair->n_columns; i++)
        shape[pair->n_batch + pair->n_rows + i] = plain->shape[pair->n_batch + i];
      right =
          gtorch_op_reshape (plain, shape, pair->n_batch + pair->n_rows + pair->n_columns, error);
      if (right == NULL)
        return NULL;
    }
  return gtorch_op_mul (column, right, error);
}

/* Multiplies b into a. */
static gboolean
contract (Sum *sum, Operand *a, Operand *b, GError **error)
{
  gint64 shape[GTORCH_MAX_DIMS];
  g_autoptr (GTorchImpl) product = NULL;
  Pair pair;

  if (!sum_own (sum, a, b, error) || !sum_own (sum, b, a, error))
    return FALSE;
  pair_init (&pair, sum, a, b);
  if (pair.n_batch + pair.n_rows + pair.n_columns > GTORCH_MAX_DIMS)
    return refuse (error, _ ("a product would have too many dimensions"));
  product = pair.n_inner == 0 ? multiply_elements (sum, a, b, &pair, error)
                              : multiply_matrices (sum, a, b, &pair, error);
  if (product == NULL)
    return FALSE;
  memcpy (a->labels, pair.batch, pair.n_batch);
  memcpy (a->labels + pair.n_batch, pair.rows, pair.n_rows);
  memcpy (a->labels + pair.n_batch + pair.n_rows, pair.columns, pair.n_columns);
  a->n = pair.n_batch + pair.n_rows + pair.n_columns;
  for (guint i = 0; i < a->n; i++)
    shape[i] = sum->sizes[a->labels[i]];
  g_clear_pointer (&b->impl, gtorch_impl_unref);
  b->n = 0;
  return operand_take (a, gtorch_op_reshape (product, shape, a->n, error));
}

/* The labels as a set. There are at most 68, of which 64 fit: those of the first dimensions of very long
 * ellipses are taken for one. */
static guint64
label_set (const guint8 *labels, guint n)
{
  guint64 set = 0;

  for (guint i = 0; i < n; i++)
    set |= G_GUINT64_CONSTANT (1) << MIN (labels[i], 63);
  return set;
}

static GTorchEinsumStep *
dup_path (const Sum *sum)
{
  guint64 sets[MAX_OPERANDS];

  for (guint i = 0; i < sum->n_operands; i++)
    sets[i] = label_set (sum->operands[i].labels, sum->operands[i].n);
  return gtorch_einsum_dup_path (sets, sum->n_operands, label_set (sum->output, sum->n_output),
                                 sum->sizes);
}

/* --- everything --- */

static GTorchImpl *
finish (Sum *sum, Operand *last, GError **error)
{
  gint64 order[GTORCH_MAX_DIMS];

  if (!sum_own (sum, last, NULL, error))
    return NULL;
  add_dims (last, sum->output, sum->n_output, order, 0);
  return gtorch_op_permute (last->impl, order, sum->n_output, error);
}

GTorchImpl *
gtorch_op_einsum (GTorchImpl *const *tensors, gsize n_tensors, const gint64 *terms, gsize n_terms,
                  GError **error)
{
  g_auto (Sum) sum = { 0 };
  g_autofree GTorchEinsumStep *steps = NULL;
  guint last = 0;

  if (!sum_init (&sum, tensors, n_tensors, terms, n_terms, error))
    return NULL;
  for (guint i = 0; i < sum.n_operands; i++)
    if (!simplify (&sum, &sum.operands[i], error))
      return NULL;
  if (sum.n_operands > 2)
    steps = dup_path (&sum);
  for (guint i = 0; i + 1 < sum.n_operands; i++)
    {
      const GTorchEinsumStep step = steps != NULL ? steps[i] : (GTorchEinsumStep){ 0, 1 };

      if (!contract (&sum, &sum.operands[step.first], &sum.operands[step.second], error))
        return NULL;
      last = step.first;
    }
  return finish (&sum, &sum.operands[last], error);
}
