/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every operation on views whose elements overlap or have gaps, compared with contiguous copies of them.
 * Element-wise results must be bitwise equal. Others may be computed in another order, and differ by the
 * rounding of as many terms as there are elements. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "op-calls.h"
#include "sanitizer.h"

#define LONG 37 /* longer than the vectors of any dtype, and not a multiple of them */
/* the maximum of elements of a tensor: operations that need more have their own tests */
#define LARGE 4096

typedef enum
{
  VIEW_EXPANDED, /* stride 0 in one dimension */
  VIEW_WINDOWS,  /* stride 1 in one dimension: windows that overlap */
  VIEW_APART,    /* three times the stride, behind an offset */
  VIEW_ONE,      /* stride 0 in all dimensions */
  N_VIEWS,
} View;

static const gchar *const view_names[N_VIEWS] = { "expanded", "windows", "apart", "one" };

static void
view_strides (View view, gint dim, const gint64 *shape, gint n_dims, gint64 *strides)
{
  gint64 stride = view == VIEW_APART ? 3 : 1;
  gint k;

  for (k = n_dims; k-- > 0;)
    {
      strides[k] = view == VIEW_ONE || (view == VIEW_EXPANDED && k == dim) ? 0
                   : view == VIEW_WINDOWS && k == dim                      ? 1
                                                                           : stride;
      if (strides[k] == stride)
        stride *= MAX (shape[k], 1);
    }
}

static GTorchImpl *
input_new_view (const GTorchSampleTensor *spec, guint dtype, View view, gint dim,
                const GTorchOpSample *sample, GRand *rand)
{
  const gint64 offset = view == VIEW_APART ? 1 : 0;
  GTorchSampleTensor row = { .n_dims = 1, .dtype = spec->dtype };
  g_autoptr (GTorchImpl) base = NULL;
  gint64 strides[8];
  gint k;

  if (spec->n_dims < 0)
    return NULL;
  view_strides (view, dim, spec->shape, spec->n_dims, strides);
  row.shape[0] = 1 + offset;
  for (k = 0; k < spec->n_dims; k++)
    row.shape[0] += MAX (spec->shape[k] - 1, 0) * strides[k];
  base = input_new (&row, dtype, LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);
  return gtorch_impl_new_view (base, offset, spec->shape, strides, spec->n_dims);
}

/* Creates inputs one of which, or all if it is -1, are views, and copies of them. */
static void
make_views (Inputs *views, Inputs *copies, const GTorchOpSample *sample, guint dtype, View view,
            gint which, gint dim)
{
  g_autoptr (GRand) rand = g_rand_new_with_seed (sample->op * 31 + sample->index);
  guint i;

  for (i = 0; i < sample->n_tensors; i++)
    {
      const GTorchSampleTensor *spec = &sample->tensors[i];
      const guint own = spec->dtype != GTORCH_DTYPE_NONE ? spec->dtype : dtype;

      views->tensors[i] =
          which < 0 || (guint) which == i
              ? input_new_view (spec, own, view, dim, sample, rand)
              : input_new (spec, own, LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);
      if (spec->is_positive)
        input_make_positive (views->tensors[i]);
      copies->tensors[i] = input_copy (views->tensors[i], own);
    }
  views->n = copies->n = sample->n_tensors;
  inputs_move (views);
  inputs_move (copies);
}

/* Returns the tolerance relative to the size: as many rounding errors as there are terms. */
static gdouble
tolerance_of (const GTorchOpClass *op, guint dtype, gint64 most)
{
  const gdouble each = dtype_tolerance (gtorch_dtype_infos[dtype].compute);
  gdouble tolerance = MAX (dtype_tolerance (dtype), each * (gdouble) (1 + most / 16));

  /* the deviation of expanded rows is only a rounding error, which is divided by the root of eps, 1e-5 */
  if (op->id == GTORCH_OP_NORMALIZE_DIMS || op->id == GTORCH_OP_NORMALIZE_DIMS_GRAD)
    tolerance /= sqrt (1e-5);
  return tolerance;
}

/* Only one of the two loops uses fused multiply-add for products of complex numbers. */
static gboolean
is_exact (const GTorchOpClass *op, guint dtype)
{
  return (op->shape == gtorch_shape_pointwise && gtorch_dtype_kind (dtype) != GTORCH_KIND_COMPLEX)
         || (op->flags & GTORCH_OP_FLAG_RANDOM) != 0;
}

static gchar *
bit_difference (const GTorchImpl *impl, const GTorchImpl *expected)
{
  gint64 i;

  if (!gtorch_impl_same_shape (impl, expected))
    return g_strdup_printf ("shape %s, expected %s", gtorch_impl_shape_str (impl),
                            gtorch_impl_shape_str (expected));
  for (i = 0; i < impl->numel; i++)
    {
      const Number a = element_get (impl, i), b = element_get (expected, i);

      if (memcmp (&a, &b, sizeof a) != 0)
        return g_strdup_printf ("element %" G_GINT64_FORMAT ": %.17g%+.17gi, expected %.17g%+.17gi",
                                i, creal (a), cimag (a), creal (b), cimag (b));
    }
  return NULL;
}

/* Returns whether there is such a call. */
static gboolean
check_view (const GTorchOpSample *sample, gint64 most, guint dtype, View view, gint which, gint dim)
{
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  g_auto (Inputs) views = { { NULL }, 0 };
  g_auto (Inputs) copies = { { NULL }, 0 };
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GPtrArray) expected = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) other = NULL;
  g_autofree gchar *text = NULL;
  guint i;

  make_views (&views, &copies, sample, dtype, view, which, dim);
  gtorch_manual_seed (7);
  results = invoke (sample, &views, &error);
  if (error != NULL && is_lacking (error))
    return FALSE;
  gtorch_manual_seed (7);
  expected = invoke (sample, &copies, &other);
  if (results == NULL && expected == NULL)
    return FALSE; /* the attributes need other sizes */
  if (results == NULL || expected == NULL)
    text = g_strdup ((error != NULL ? error : other)->message);
  for (i = 0; text == NULL && i < results->len; i++)
    {
      g_autoptr (GTorchImpl) result = impl_to_host (results->pdata[i]);
      g_autoptr (GTorchImpl) wanted = impl_to_host (expected->pdata[i]);

      text = is_exact (op, dtype) ? bit_difference (result, wanted)
                                  : difference (result, wanted, tolerance_of (op, dtype, most));
    }
  if (text != NULL)
    {
      g_test_message ("%s, sample %u, %s, input %d %s in dim %d, %" G_GINT64_FORMAT " elements: %s",
                      op->name, sample->index, gtorch_dtype_get_name (dtype), which,
                      view_names[view], dim, most, text);
      g_test_fail ();
    }
  return TRUE;
}

/* Tells whether matrices of the view that must be positive-definite can be: not if their elements share
 * memory. */
static gboolean
keeps_matrices (const GTorchOpSample *sample, View view, gint which, gint dim)
{
  guint i;

  for (i = 0; i < sample->n_tensors; i++)
    if (sample->tensors[i].is_positive && (which < 0 || (guint) which == i)
        && (view == VIEW_EXPANDED || view == VIEW_WINDOWS) && dim >= sample->tensors[i].n_dims - 2)
      return FALSE;
  return TRUE;
}

static guint
check_views (const GTorchOpSample *sample, gint64 most, guint dtype)
{
  guint n_checked = 0, view;
  gint which, dim, n_dims = 0;

  for (which = 0; which < (gint) sample->n_tensors; which++)
    n_dims = MAX (n_dims, sample->tensors[which].n_dims);
  for (view = 0; view < N_VIEWS; view++)
    for (which = sample->n_tensors > 1 ? -1 : 0; which < (gint) sample->n_tensors; which++)
      for (dim = 0; dim < (view <= VIEW_WINDOWS ? n_dims : 1); dim++)
        if ((which < 0 || dim < sample->tensors[which].n_dims)
            && keeps_matrices (sample, view, which, dim))
          n_checked += check_view (sample, most, dtype, view, which, dim);
  return n_checked;
}

/* Returns how many terms a sum along one dimension of the sample's tensors has at most. */
static gint64
terms_of (const GTorchOpSample *sample)
{
  gint64 most = 1;
  guint i;
  gint k;

  for (i = 0; i < sample->n_tensors; i++)
    for (k = 0; k < sample->tensors[i].n_dims; k++)
      most = MAX (most, sample->tensors[i].shape[k]);
  return most;
}

static guint
check_sample (const GTorchOpSample *sample, guint dtype)
{
  g_autoptr (GHashTable) done = g_hash_table_new (NULL, NULL);
  guint n_checked = check_views (sample, terms_of (sample), dtype);
  Resized resized;
  guint i;
  gint k;

  for (i = 0; i < sample->n_tensors; i++)
    for (k = 0; k < sample->tensors[i].n_dims; k++)
      if (g_hash_table_add (done, GINT_TO_POINTER (sample->tensors[i].shape[k])))
        {
          sample_resize (&resized, sample, sample->tensors[i].shape[k], LONG);
          if (resized.most <= LARGE)
            n_checked += check_views (&resized.sample, resized.most, dtype);
        }
  return n_checked;
}

static void
views_give_what_copies_give (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint i, dtype, n_checked = 0, n_dims = 0, n = 0;

  for (i = 0; i < gtorch_n_op_samples; i++)
    for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
      if (gtorch_op_samples[i].op == op->id && is_for (&gtorch_op_samples[i], dtype))
        {
          if (is_instrumented () && n++ % 3 > 0) /* each takes twenty times as long */
            continue;
          n_checked += check_sample (&gtorch_op_samples[i], dtype);
          n_dims += gtorch_op_samples[i].tensors[0].n_dims > 0;
        }
  g_test_message ("%u calls", n_checked);
  if (!g_test_failed () && test_device () == gtorch_device_cpu ())
    g_assert_true (n_checked > 0 || n_dims == 0);
}

/* --- empty tensors on another device --- */

/* Returns whether there is such a call. */
static gboolean
check_empty (const Resized *resized, guint dtype, gint64 old)
{
  const GTorchOpSample *sample = &resized->sample;
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  g_auto (Inputs) there = { { NULL }, 0 };
  g_auto (Inputs) here = { { NULL }, 0 };
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GPtrArray) expected = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GError) other = NULL;
  g_autofree gchar *text = NULL;
  guint i;

  inputs_make (&here, sample, dtype, LAYOUT_CONTIGUOUS);
  inputs_make (&there, sample, dtype, LAYOUT_CONTIGUOUS);
  inputs_move (&there);
  results = invoke (sample, &there, &error);
  if (error != NULL && is_lacking (error))
    return FALSE;
  /* kernels report invalid indices asynchronously */
  if (results != NULL && !gtorch_device_synchronize (test_device (), NULL, &error))
    g_clear_pointer (&results, g_ptr_array_unref);
  expected = invoke (sample, &here, &other);
  if (results == NULL && expected == NULL)
    return FALSE; /* the attributes need other sizes */
  if (results == NULL || expected == NULL)
    text = g_strdup ((error != NULL ? error : other)->message);
  for (i = 0; text == NULL && i < results->len; i++)
    {
      g_autoptr (GTorchImpl) result = impl_to_host (results->pdata[i]);

      text = difference (result, expected->pdata[i], tolerance_of (op, dtype, resized->most));
    }
  if (text != NULL)
    {
      g_test_message ("%s, sample %u, %s, 0 for size %" G_GINT64_FORMAT ": %s", op->name,
                      sample->index, gtorch_dtype_get_name (dtype), old, text);
      g_test_fail ();
    }
  return TRUE;
}

static void
empty_tensors_give_what_the_cpu_gives (gconstpointer data)
{
  const GTorchOpClass *op = data;
  Resized resized;
  guint i, k, dtype, n_checked = 0;
  gint dim;

  for (i = 0; i < gtorch_n_op_samples; i++)
    for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
      {
        const GTorchOpSample *sample = &gtorch_op_samples[i];

        if (sample->op != op->id || !is_for (sample, dtype))
          continue;
        for (k = 0; k < sample->n_tensors; k++)
          for (dim = 0; dim < sample->tensors[k].n_dims; dim++)
            {
              sample_resize (&resized, sample, sample->tensors[k].shape[dim], 0);
              n_checked += check_empty (&resized, dtype, sample->tensors[k].shape[dim]);
            }
      }
  g_test_message ("%u calls", n_checked);
}

/* view and the like fail for some layouts by definition, as_strided shows the layout. corrcoef of equal
 * observations, as in an expanded tensor, is what rounding makes of 0 / 0. */
static gboolean
is_about_layout (const GTorchOpClass *op)
{
  static const gchar *const names[] = {
    "view",       "view_as",         "unflatten",          "view_as_complex",
    "as_strided", "as_strided_copy", "as_strided_scatter", "corrcoef",
    NULL
  };

  return g_strv_contains (names, op->name) || (op->flags & GTORCH_OP_FLAG_UNSET) != 0;
}

int
main (int argc, char *argv[])
{
  guint i, j;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[i];
      g_autofree gchar *views =
          g_strdup_printf ("/GTorch/layouts/%s/views_give_what_copies_give", op->name);
      g_autofree gchar *empty =
          g_strdup_printf ("/GTorch/layouts/%s/empty_tensors_give_what_the_cpu_gives", op->name);

      for (j = 0; j < gtorch_n_op_samples && gtorch_op_samples[j].op != i;)
        j++;
      if (j == gtorch_n_op_samples || gtorch_op_samples[j].n_tensors == 0)
        continue;
      if (!is_about_layout (op))
        g_test_add_data_func (views, op, views_give_what_copies_give);
      if (test_device () != gtorch_device_cpu () && has_values (op))
        g_test_add_data_func (empty, op, empty_tensors_give_what_the_cpu_gives);
    }
  return g_test_run ();
}
