/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares results and gradients with PyTorch's, which reference.py has written to data/. */

#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "gtorch/autograd/gtorch-autograd-private.h"
#include "op-calls.h"
#include "op-values.h"

#define MAX_TENSORS 16

static GHashTable *reference; /* maps the name to a GTorchImpl */

/* Parses the file that reference.py writes: one line of JSON without blanks, and only tensors. */
static void
load_reference (const gchar *path)
{
  g_autofree gchar *text = NULL;
  g_autofree gchar *header = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (GRegex) regex = NULL;
  g_autoptr (GMatchInfo) match = NULL;
  guint64 length;
  gsize size;

  g_file_get_contents (path, &text, &size, &error);
  g_assert_no_error (error);
  memcpy (&length, text, 8);
  header = g_strndup (text + 8, length);
  reference =
      g_hash_table_new_full (g_str_hash, g_str_equal, g_free, (GDestroyNotify) gtorch_impl_unref);
  regex = g_regex_new ("\"([^\"]+)\":\\{\"dtype\":\"(\\w+)\",\"shape\":\\[([\\d,]*)\\],\"data_"
                       "offsets\":\\[(\\d+),(\\d+)\\]\\}",
                       0, 0, NULL);
  g_regex_match (regex, header, 0, &match);
  for (; g_match_info_matches (match); g_match_info_next (match, NULL))
    {
      g_autofree gchar *dtype_name = g_match_info_fetch (match, 2);
      g_autofree gchar *shape_text = g_match_info_fetch (match, 3);
      g_autofree gchar *begin = g_match_info_fetch (match, 4);
      g_autofree gchar *end = g_match_info_fetch (match, 5);
      g_auto (GStrv) sizes = g_strsplit (shape_text, ",", -1);
      gint64 shape[8];
      guint n = g_strv_length (sizes), i, dtype;
      GTorchImpl *impl;

      for (i = 0; i < n; i++)
        shape[i] = g_ascii_strtoll (sizes[i], NULL, 10);
      for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
        if (g_strcmp0 (gtorch_dtype_infos[dtype].safetensors, dtype_name) == 0)
          break;
      impl = gtorch_impl_new (gtorch_device_cpu (), dtype, shape, n, NULL);
      g_assert_cmpuint (gtorch_impl_n_bytes (impl), ==, atoll (end) - atoll (begin));
      memcpy (gtorch_impl_data (impl), text + 8 + length + atoll (begin),
              gtorch_impl_n_bytes (impl));
      g_hash_table_insert (reference, g_match_info_fetch (match, 1), impl);
    }
  g_assert_cmpuint (g_hash_table_size (reference), >, 100);
}

/* Returns the stored tensor; a complex one was stored as pairs. */
static GTorchImpl *
find (const GTorchOpSample *sample, guint dtype, const gchar *kind, guint index)
{
  g_autofree gchar *name =
      g_strdup_printf ("%s/%u/%s/%s%u", gtorch_ops[sample->op].name, sample->index,
                       gtorch_dtype_get_name (dtype), kind, index);

  return g_hash_table_lookup (reference, name);
}

/* Functions of which PyTorch has six or nine digits in float64, or whose factor it rounds to float32; and
 * exponentials of matrices, whose small elements have the rounding of the large ones. */
static gdouble
tolerance_of (const GTorchOpSample *sample)
{
  static const gchar *const names[] = {
    "celu", "digamma", "igamma", "igammac", "linalg_matrix_exp", "matrix_exp", "polygamma", NULL
  };
  const gchar *name = gtorch_ops[sample->op].name;

  if (g_str_has_prefix (name, "special_bessel_"))
    return 1e-6;
  return g_strv_contains (names, name) ? 3e-9 : 1e-11;
}

static gchar *
differ (GTorchImpl *ours, GTorchImpl *theirs, gdouble least_tolerance)
{
  gboolean is_pairs = gtorch_dtype_kind (ours->dtype) == GTORCH_KIND_COMPLEX;
  gint64 i;

  if (theirs->n_dims != ours->n_dims + is_pairs
      || memcmp (ours->shape, theirs->shape, ours->n_dims * sizeof (gint64)) != 0)
    return g_strdup_printf ("shape %s, PyTorch has %s", gtorch_impl_shape_str (ours),
                            gtorch_impl_shape_str (theirs));
  if (!is_pairs && ours->dtype != theirs->dtype)
    return g_strdup_printf ("dtype %s, PyTorch has %s", gtorch_dtype_get_name (ours->dtype),
                            gtorch_dtype_get_name (theirs->dtype));
  for (i = 0; i < theirs->numel; i++)
    {
      Number value = element_get (ours, is_pairs ? i / 2 : i);
      gdouble a = is_pairs && i % 2 ? cimag (value) : creal (value);
      gdouble b = creal (element_get (theirs, i));
      gdouble tolerance =
          gtorch_dtype_infos[ours->dtype].real == GTORCH_DTYPE_FLOAT32 ? 1e-6 : least_tolerance;

      if (gtorch_dtype_kind (ours->dtype) < GTORCH_KIND_FLOAT)
        tolerance = 0;
      if (!(fabs (a - b) <= tolerance * (1 + fabs (b)) || a == b || (isnan (a) && isnan (b))))
        return g_strdup_printf ("element %" G_GINT64_FORMAT " is %.17g, PyTorch has %.17g", i, a,
                                b);
    }
  return NULL;
}

static void
complain (const GTorchOpSample *sample, guint dtype, const gchar *what, guint index,
          const gchar *text)
{
  if (text == NULL)
    return;
  g_test_message ("%s, sample %u, %s, %s %u: %s", gtorch_ops[sample->op].name, sample->index,
                  gtorch_dtype_get_name (dtype), what, index, text);
  g_test_fail ();
}

static void
check (const GTorchOpSample *sample, guint dtype)
{
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) owned = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  g_autoptr (GPtrArray) roots = g_ptr_array_new ();
  GTorchBackward backward = { 0 };
  g_autoptr (GPtrArray) seeds = g_ptr_array_new ();
  g_autoptr (GError) error = NULL;
  GTorchImpl *inputs[MAX_TENSORS] = { NULL }, *grads[MAX_TENSORS] = { NULL };
  gboolean has_grads = FALSE;
  guint i;

  if (find (sample, dtype, "out", 0) == NULL)
    return;
  for (i = 0; i < sample->n_tensors; i++)
    {
      GTorchImpl *stored = find (sample, dtype, "in", i);
      g_autoptr (GTorchImpl) host = NULL;
      gint64 j;

      if (stored == NULL)
        continue;
      if (gtorch_dtype_kind (dtype) == GTORCH_KIND_COMPLEX
          && sample->tensors[i].dtype == GTORCH_DTYPE_NONE)
        {
          host = gtorch_impl_new (gtorch_device_cpu (), dtype, stored->shape, stored->n_dims - 1,
                                  NULL);
          for (j = 0; j < host->numel; j++)
            element_set (host, j,
                         creal (element_get (stored, 2 * j))
                             + creal (element_get (stored, 2 * j + 1)) * I);
        }
      else
        host = input_copy (stored, stored->dtype);
      inputs[i] = impl_to_test_device (host);
      g_ptr_array_add (owned, inputs[i]);
      if (find (sample, dtype, "grad", i) != NULL)
        {
          gtorch_autograd_ensure (inputs[i])->requires_grad = TRUE;
          has_grads = TRUE;
        }
    }
  gtorch_op_invokers[sample->op](inputs, sample->n_tensors, sample->attrs, results, &error);
  if (error != NULL && is_lacking (error))
    return;
  /* PyTorch truncates a factor of integers */
  if (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_INVALID) && !is_for (sample, dtype))
    return;
  complain (sample, dtype, "call", 0, error != NULL ? error->message : NULL);
  for (i = 0; i < results->len; i++)
    {
      GTorchImpl *theirs = find (sample, dtype, "out", i), *result = results->pdata[i];
      g_autofree gchar *text =
          theirs != NULL ? differ (result, theirs, tolerance_of (sample)) : NULL;

      complain (sample, dtype, "result", i, text);
      if (has_grads && gtorch_impl_requires_grad (result))
        {
          g_autoptr (GTorchImpl) host = gtorch_impl_new (gtorch_device_cpu (), result->dtype,
                                                         result->shape, result->n_dims, NULL);
          GTorchImpl *seed;
          gint64 j;

          for (j = 0; j < host->numel; j++)
            element_set (host, j, cos ((gdouble) (i + j)));
          seed = impl_to_test_device (host);
          g_ptr_array_add (owned, seed);
          g_ptr_array_add (roots, result);
          g_ptr_array_add (seeds, seed);
        }
    }
  if (roots->len == 0 || error != NULL)
    return;
  backward.roots = (GTorchImpl **) roots->pdata;
  backward.grads = (GTorchImpl **) seeds->pdata;
  backward.n_roots = roots->len;
  gtorch_engine_run (&backward, &error);
  complain (sample, dtype, "backward", 0, error != NULL ? error->message : NULL);
  for (i = 0; i < sample->n_tensors && error == NULL; i++)
    {
      GTorchImpl *theirs = find (sample, dtype, "grad", i);
      g_autoptr (GTorchImpl) zeros = NULL;
      g_autofree gchar *text = NULL;

      if (theirs == NULL)
        continue;
      grads[i] = inputs[i]->autograd->grad;
      if (grads[i] == NULL)
        grads[i] = zeros = gtorch_op_zeros_like (inputs[i], GTORCH_DTYPE_NONE, NULL);
      text = differ (grads[i], theirs, tolerance_of (sample));
      complain (sample, dtype, "gradient", i, text);
    }
}

static void
agrees_with_pytorch (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint s, dtype;

  for (s = 0; s < gtorch_n_op_samples; s++)
    for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
      if (gtorch_op_samples[s].op == op->id)
        check (&gtorch_op_samples[s], dtype);
}

int
main (int argc, char *argv[])
{
  guint i, s, dtype;

  g_test_init (&argc, &argv, NULL);
  g_assert_cmpint (argc, ==, 2);
  load_reference (argv[1]);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      gboolean found = FALSE;

      for (s = 0; s < gtorch_n_op_samples; s++)
        for (dtype = 1; dtype < GTORCH_N_DTYPES && gtorch_op_samples[s].op == i; dtype++)
          found |= find (&gtorch_op_samples[s], dtype, "out", 0) != NULL;
      if (found)
        {
          g_autofree gchar *path =
              g_strdup_printf ("/GTorch/reference/%s/agrees_with_pytorch", gtorch_ops[i].name);

          g_test_add_data_func (path, &gtorch_ops[i], agrees_with_pytorch);
        }
    }
  i = g_test_run ();
  g_hash_table_unref (reference);
  return i;
}
