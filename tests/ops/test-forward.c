/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares the tangents of the results of every differentiable operation with differences of its values, on
 * the samples of its row, for real and complex numbers, in all layouts of inputs, in place and out of
 * place, with and without recording; and the tangents of gradients with differences of those. An
 * input by which an operation has no derivative may have no tangent. */

#include "config.h"

#include <string.h>

#include "gtorch-ops-private.h"
#include "op-derivatives.h"

static guint n_checked;

/* Returns FALSE to stop. */
static gboolean
check (Derivative *form)
{
  g_autofree gchar *message = NULL;
  g_autofree gchar *where = NULL;
  g_autoptr (GError) error = NULL;

  switch (derivative_check_forward (form, &message, &error))
    {
    case DERIVATIVE_AGREES:
      n_checked++;
      return TRUE;
    case DERIVATIVE_NO_FORM:
      return TRUE;
    case DERIVATIVE_FAILS:
      if (is_lacking (error))
        return FALSE;
      break;
    case DERIVATIVE_DIFFERS:
    default:
      break;
    }
  where = derivative_str (form);
  g_test_message ("%s: %s", where, message != NULL ? message : error->message);
  g_test_fail ();
  return FALSE;
}

static void
check_all (const GTorchOpClass *op, guint order, gboolean in_place)
{
  guint s, layout, parts;

  for (s = 0; s < gtorch_n_op_samples; s++)
    {
      const GTorchOpSample *sample = &gtorch_op_samples[s];
      const guint n_parts =
          sample_count_floats (sample) > 1 && (op->dtypes & GTORCH_DTYPES (COMPLEX128))
              ? N_PARTS
              : PARTS_REAL_FIRST;

      if (sample->op != op->id || !sample->grad)
        continue;
      for (parts = 0; parts < n_parts; parts++)
        for (layout = 0; layout < N_LAYOUTS; layout++)
          {
            Derivative form = {
              .sample = sample,
              .order = order,
              .in_place = in_place,
              .parts = parts,
              .layout = layout,
              .upper_layout = (layout + 1) % N_LAYOUTS,
              .round = layout + parts,
            };

            if (parts >= PARTS_REAL_FIRST && layout != sample->index % N_LAYOUTS)
              continue;
            if (!check (&form))
              return;
          }
    }
}

static void
tangents_agree_with_differences (gconstpointer data)
{
  check_all (data, 1, FALSE);
}

static void
tangents_of_gradients_agree_with_differences (gconstpointer data)
{
  check_all (data, 2, FALSE);
}

static void
tangents_in_place_agree_with_differences (gconstpointer data)
{
  check_all (data, 1, TRUE);
  check_all (data, 2, TRUE);
}

/* Those of the list in op-derivatives.c. */
static void
undefined_tangents_are_refused (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint s, i;

  for (s = 0; s < gtorch_n_op_samples; s++)
    for (i = 0; i < gtorch_op_samples[s].n_tensors; i++)
      {
        const GTorchOpSample *sample = &gtorch_op_samples[s];
        const GTorchSampleTensor *tensor = &sample->tensors[i];
        g_autoptr (GError) error = NULL;

        if (sample->op != op->id || tensor->n_dims < 0 || tensor->dtype != GTORCH_DTYPE_NONE
            || !derivative_is_undefined (sample, i))
          continue;
        g_assert_false (derivative_run_dual (sample, i, &error));
        if (is_lacking (error))
          return;
        g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
        g_assert_nonnull (strstr (error->message, "the tangent cannot be computed"));
      }
}

static gboolean
is_undefined (const GTorchOpClass *op)
{
  guint s, i;

  for (s = 0; s < gtorch_n_op_samples; s++)
    for (i = 0; i < gtorch_op_samples[s].n_tensors; i++)
      if (gtorch_op_samples[s].op == op->id && gtorch_op_samples[s].tensors[i].n_dims >= 0
          && gtorch_op_samples[s].tensors[i].dtype == GTORCH_DTYPE_NONE
          && derivative_is_undefined (&gtorch_op_samples[s], i))
        return TRUE;
  return FALSE;
}

static gboolean
has_floats (const GTorchOpSample *sample)
{
  guint i;

  for (i = 0; i < sample->n_tensors; i++)
    if (sample->tensors[i].dtype == GTORCH_DTYPE_NONE
        || gtorch_dtype_kind (sample->tensors[i].dtype) >= GTORCH_KIND_FLOAT)
      return TRUE;
  return FALSE;
}

static void
add (const GTorchOpClass *op, const gchar *fact, GTestDataFunc func)
{
  g_autofree gchar *path = g_strdup_printf ("/GTorch/forward/%s/%s", op->name, fact);

  g_test_add_data_func (path, op, func);
}

int
main (int argc, char *argv[])
{
  guint i, s;
  int result;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[i];

      if (is_undefined (op))
        add (op, "undefined_is_refused", undefined_tangents_are_refused);
      for (s = 0; s < gtorch_n_op_samples; s++)
        if (gtorch_op_samples[s].op == i && gtorch_op_samples[s].grad
            && has_floats (&gtorch_op_samples[s]))
          break;
      if (s == gtorch_n_op_samples || (op->grad == NULL && op_computes (op)))
        continue;
      add (op, "agree_with_differences", tangents_agree_with_differences);
      add (op, "of_gradients_agree", tangents_of_gradients_agree_with_differences);
      if (gtorch_op_in_place_invokers[i] != NULL)
        add (op, "in_place_agree", tangents_in_place_agree_with_differences);
    }
  result = g_test_run ();
  g_test_message ("%u forms were checked", n_checked);
  return result;
}
