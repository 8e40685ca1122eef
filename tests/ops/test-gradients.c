/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Compares the gradient of every operation with differences of its values, on the samples of its row, for
 * real and complex numbers, in all layouts of inputs and of incoming gradients, in place and out of
 * place; and the gradient of that gradient with differences of it. An argument, or
 * GTORCH_GRADIENT_ROUNDS, sets the number of rounds, each with other numbers and other pairs of layouts. */

#include "config.h"

#include <stdlib.h>

#include "gtorch-ops-private.h"
#include "op-derivatives.h"

static guint n_rounds, n_checked;

/* The pairs of layouts change with the round, so that all occur in the end. */
static Layout
upper_layout (const Derivative *form)
{
  return (2 * form->layout + 1 + form->sample->index + 2 * form->parts + form->round + form->order)
         % N_LAYOUTS;
}

/* Returns FALSE to stop. */
static gboolean
check (Derivative *form)
{
  g_autofree gchar *message = NULL;
  g_autoptr (GError) error = NULL;

  form->upper_layout = upper_layout (form);
  switch (derivative_check (form, &message, &error))
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
  {
    g_autofree gchar *where = derivative_str (form);

    g_test_message ("%s: %s", where, message != NULL ? message : error->message);
    g_test_fail ();
  }
  return FALSE;
}

static guint
n_parts (const GTorchOpClass *op, const GTorchOpSample *sample)
{
  return sample_count_floats (sample) > 1 && (op->dtypes & GTORCH_DTYPES (COMPLEX128))
             ? N_PARTS
             : PARTS_REAL_FIRST;
}

static void
check_all (const GTorchOpClass *op, guint order, gboolean in_place)
{
  guint s, layout, parts, round;

  for (round = 0; round < n_rounds; round++)
    for (s = 0; s < gtorch_n_op_samples; s++)
      {
        const GTorchOpSample *sample = &gtorch_op_samples[s];

        if (sample->op != op->id || !sample->grad)
          continue;
        for (parts = 0; parts < n_parts (op, sample); parts++)
          for (layout = 0; layout < N_LAYOUTS; layout++)
            {
              Derivative form = {
                .sample = sample,
                .order = order,
                .in_place = in_place,
                .parts = parts,
                .layout = layout,
                .round = round,
              };

              /* mixed kinds add nothing to the test of layouts */
              if ((parts >= PARTS_REAL_FIRST || is_under_sanitizer ())
                  && layout != (sample->index + round) % N_LAYOUTS)
                continue;
              if (!check (&form))
                return;
            }
      }
}

static void
gradients_agree_with_differences (gconstpointer data)
{
  check_all (data, 1, FALSE);
}

static void
second_gradients_agree_with_differences (gconstpointer data)
{
  check_all (data, 2, FALSE);
}

static void
gradients_in_place_agree_with_differences (gconstpointer data)
{
  check_all (data, 1, TRUE);
  check_all (data, 2, TRUE);
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
  g_autofree gchar *path = g_strdup_printf ("/GTorch/gradients/%s/%s", op->name, fact);

  g_test_add_data_func (path, op, func);
}

int
main (int argc, char *argv[])
{
  const gchar *rounds = g_getenv ("GTORCH_GRADIENT_ROUNDS");
  guint i, s;
  int result;

  g_test_init (&argc, &argv, NULL);
  n_rounds = test_device () == gtorch_device_cpu () ? 3 : 1;
  if (argc > 1 || rounds != NULL)
    n_rounds = MAX (atoi (argc > 1 ? argv[1] : rounds), 1);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[i];

      for (s = 0; s < gtorch_n_op_samples; s++)
        if (gtorch_op_samples[s].op == i && gtorch_op_samples[s].grad
            && has_floats (&gtorch_op_samples[s]))
          break;
      if (s == gtorch_n_op_samples || (op->grad == NULL && op_computes (op)))
        continue;
      add (op, "agree_with_differences", gradients_agree_with_differences);
      add (op, "second_agree", second_gradients_agree_with_differences);
      if (gtorch_op_in_place_invokers[i] != NULL)
        add (op, "in_place_agree", gradients_in_place_agree_with_differences);
    }
  result = g_test_run ();
  g_test_message ("%u forms were checked", n_checked);
  return result;
}
