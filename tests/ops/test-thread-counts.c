/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every operation, on enough elements for several threads, gives the same bits whatever the number of
 * threads. The threads divide the work differently each time. */

#include "config.h"

#include <string.h>
#include <sys/resource.h>

#include "op-calls.h"

#define LEAST 70000 /* elements: more than one thread processes alone */
#define MOST  200000
/* bytes: what takes more, such as a matrix with so many elements on its diagonal, is an error */
#define MEMORY ((rlim_t) 2 << 30)

static void
set_threads (guint n)
{
  g_autoptr (GError) error = NULL;

  gtorch_set_num_threads (n, &error);
  g_assert_no_error (error);
}

static gboolean
are_equal (const GTorchImpl *a, const GTorchImpl *b)
{
  g_autoptr (GTorchTensor) x = gtorch_tensor_wrap (gtorch_impl_ref ((GTorchImpl *) a));
  g_autoptr (GTorchTensor) y = gtorch_tensor_wrap (gtorch_impl_ref ((GTorchImpl *) b));
  g_autoptr (GBytes) of_a = gtorch_tensor_get_bytes (x, NULL);
  g_autoptr (GBytes) of_b = gtorch_tensor_get_bytes (y, NULL);

  return of_a != NULL && of_b != NULL && g_bytes_equal (of_a, of_b);
}

/* Returns FALSE if the sizes are incompatible, or the results are too large to check. */
static gboolean
check (const GTorchOpSample *sample, guint dtype)
{
  static const guint threads[] = { 5, 2, 8 };
  const guint n_counts = is_instrumented () ? 1 : G_N_ELEMENTS (threads);
  g_auto (Inputs) inputs = { { NULL }, 0 };
  g_autoptr (GPtrArray) expected = NULL;
  guint i, k;

  inputs_make (&inputs, sample, dtype, LAYOUT_CONTIGUOUS);
  set_threads (1);
  expected = invoke (sample, &inputs, NULL);
  if (expected == NULL)
    return FALSE;
  for (i = 0; i < expected->len; i++)
    if (expected->pdata[i] != NULL && ((GTorchImpl *) expected->pdata[i])->numel > 4 * MOST)
      return FALSE;
  for (k = 0; k < n_counts; k++)
    {
      g_autoptr (GPtrArray) results = NULL;
      g_autoptr (GError) error = NULL;

      set_threads (threads[k]);
      results = invoke (sample, &inputs, &error);
      g_assert_no_error (error);
      for (i = 0; i < results->len; i++)
        if (results->pdata[i] != NULL && !are_equal (results->pdata[i], expected->pdata[i]))
          {
            g_test_message ("sample %u, %s, %u threads: result %u differs", sample->index,
                            gtorch_dtype_get_name (dtype), threads[k], i);
            g_test_fail ();
          }
    }
  return TRUE;
}

/* Enlarges one size of the sample until the tensors are large enough. */
static guint
check_sizes (const GTorchOpSample *sample, guint dtype)
{
  static const gint64 lengths[] = { 100003, 30011, 9001, 3001, 1009, 331 };
  g_autoptr (GHashTable) done = g_hash_table_new (NULL, NULL);
  guint i, l, n_checked = 0;
  gint k;

  for (i = 0; i < sample->n_tensors; i++)
    for (k = 0; k < sample->tensors[i].n_dims; k++)
      {
        gint64 old = sample->tensors[i].shape[k];

        if (!g_hash_table_add (done, GINT_TO_POINTER (old)))
          continue;
        for (l = 0; l < G_N_ELEMENTS (lengths); l++)
          {
            Resized resized;

            sample_resize (&resized, sample, old, lengths[l]);
            if (resized.most < LEAST || resized.most > MOST)
              continue;
            n_checked += check (&resized.sample, dtype);
            break;
          }
      }
  return n_checked;
}

static void
results_are_the_same (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint before = gtorch_get_num_threads (), i, n_checked = 0;
  static const guint dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_COMPLEX64,
                                  GTORCH_DTYPE_INT64 };
  guint k;

  for (i = 0; i < gtorch_n_op_samples; i++)
    for (k = 0; k < G_N_ELEMENTS (dtypes); k++)
      if (gtorch_op_samples[i].op == op->id && is_for (&gtorch_op_samples[i], dtypes[k]))
        {
          n_checked += check_sizes (&gtorch_op_samples[i], dtypes[k]);
          if (op->shape == gtorch_shape_pointwise)
            break;
        }
  set_threads (before);
  if (n_checked == 0)
    g_test_skip ("no sample can be made large enough");
}

static gboolean
has_sample (guint op)
{
  guint i;

  for (i = 0; i < gtorch_n_op_samples; i++)
    if (gtorch_op_samples[i].op == op && gtorch_op_samples[i].n_tensors > 0)
      return TRUE;
  return FALSE;
}

int
main (int argc, char *argv[])
{
  struct rlimit limit;
  guint i;

  /* The test is about values, which sanitizers do not change; the loops run under them in test-ops. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  g_print ("1..0 # SKIP results are compared without sanitizers\n");
  return 0;
#endif
  g_test_init (&argc, &argv, NULL);
  g_assert_cmpint (getrlimit (RLIMIT_DATA, &limit), ==, 0);
  limit.rlim_cur = MIN (limit.rlim_max, MEMORY);
  g_assert_cmpint (setrlimit (RLIMIT_DATA, &limit), ==, 0);
  for (i = 0; i < gtorch_n_ops; i++)
    if (has_values (&gtorch_ops[i]) && has_sample (i))
      {
        g_autofree gchar *path =
            g_strdup_printf ("/GTorch/thread-counts/%s/results_are_the_same", gtorch_ops[i].name);

        g_test_add_data_func (path, &gtorch_ops[i], results_are_the_same);
      }
  return g_test_run ();
}
