/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* A row says whether its operation reads the values of tensors: each operation runs with one seed on two
 * sets of values, the second of which contains a special value, too. Rows that say too little are found
 * as well as rows that say too much. */

#include "config.h"

#include "op-calls.h"

/* Samples that are empty sequences, since random ones would not be sorted, or real. */
static const gchar *const by_nature[] = { "bucketize", "isreal", "search_places", "searchsorted",
                                          NULL };

/* Values for the first element of each input. */
static const gdouble specials[] = { 0, NAN, -INFINITY, INFINITY };

static void
make (Inputs *inputs, const GTorchOpSample *sample, guint seed, const gdouble *special)
{
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  guint dtype = op->dtypes & GTORCH_DTYPES (FLOAT32) ? GTORCH_DTYPE_FLOAT32
                                                     : (guint) g_bit_nth_lsf (op->dtypes, -1);
  g_autoptr (GRand) rand = g_rand_new_with_seed (seed);

  for (inputs->n = 0; inputs->n < sample->n_tensors; inputs->n++)
    {
      const GTorchSampleTensor *spec = &sample->tensors[inputs->n];
      GTorchImpl *input;

      inputs->tensors[inputs->n] =
          input_new (spec, spec->dtype != GTORCH_DTYPE_NONE ? spec->dtype : dtype,
                     LAYOUT_CONTIGUOUS, sample->low, sample->high, rand);
      input = inputs->tensors[inputs->n];
      if (special != NULL && input != NULL && spec->dtype == GTORCH_DTYPE_NONE && input->numel > 0
          && (*special == 0 || gtorch_dtype_kind (input->dtype) >= GTORCH_KIND_FLOAT))
        element_set (input, 0, *special);
    }
  inputs_move (inputs);
}

/* Returns TRUE if all results are bitwise equal. */
static gboolean
are_same (GPtrArray *results, GPtrArray *others)
{
  guint i;

  g_assert_cmpuint (results->len, ==, others->len);
  for (i = 0; i < results->len; i++)
    {
      g_autoptr (GTorchImpl) result = impl_to_host (results->pdata[i]);
      g_autoptr (GTorchImpl) other = impl_to_host (others->pdata[i]);
      g_autofree gchar *text = difference (result, other, 0);

      if (text != NULL)
        return FALSE;
    }
  return TRUE;
}

/* Returns TRUE if the sample gives the same results for other values. An error would depend on the
 * values. */
static gboolean
ignores_values (const GTorchOpSample *sample, const gdouble *special, gboolean *lacks)
{
  g_auto (Inputs) first = { { NULL } }, second = { { NULL } };
  g_autoptr (GPtrArray) results = NULL, others = NULL;
  g_autoptr (GError) error = NULL;

  make (&first, sample, 1, NULL);
  make (&second, sample, 2, special);
  gtorch_manual_seed (1);
  results = invoke (sample, &first, &error);
  if (results == NULL && is_lacking (error))
    {
      *lacks = TRUE; /* the device does not support the operation */
      return TRUE;
    }
  g_assert_no_error (error);
  gtorch_manual_seed (1);
  others = invoke (sample, &second, NULL);
  return others != NULL && are_same (results, others);
}

static void
row_says_whether_values_are_read (gconstpointer data)
{
  const GTorchOpClass *op = data;
  gboolean ignores_all = TRUE, ignores, lacks = FALSE;
  guint i, j, n = 0;

  for (i = 0; i < gtorch_n_op_samples; i++)
    {
      const GTorchOpSample *sample = &gtorch_op_samples[i];

      if (sample->op != op->id || sample->n_tensors == 0)
        continue;
      for (j = 0, ignores = TRUE; j < G_N_ELEMENTS (specials) && ignores; j++)
        ignores = ignores_values (sample, &specials[j], &lacks);
      if (lacks)
        return;
      if (!ignores && (op->flags & GTORCH_OP_FLAG_UNREAD) != 0)
        g_test_fail_printf ("%s: sample %u depends on values, which its row leaves unread",
                            op->name, sample->index);
      ignores_all &= ignores;
      n++;
    }
  if (n > 0 && ignores_all && (op->flags & GTORCH_OP_FLAG_UNREAD) == 0
      && !g_strv_contains (by_nature, op->name))
    g_test_fail_printf ("%s: values have no part in its %u samples, though its row reads them",
                        op->name, n);
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/ops/%s/row_says_whether_values_are_read", gtorch_ops[i].name);

      if ((gtorch_ops[i].flags & GTORCH_OP_FLAG_UNSET) == 0)
        g_test_add_data_func (path, &gtorch_ops[i], row_says_whether_values_are_read);
    }
  return g_test_run ();
}
