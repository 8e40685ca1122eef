/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Invalid numbers as arguments: each argument of kind double or number of each row gets NaN, infinite,
 * negative and too large values. Such a call is refused with a message that names the argument or the
 * number, or NaN gives NaN. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "op-calls.h"

static const gdouble values[] = { NAN, INFINITY, -INFINITY, -1, 0, 2, 1e300 };

/* NaN in these has no effect, as in PyTorch: no element is above it, or the sample does not use it. */
static const struct
{
  const gchar *op, *arg;
} ignored[] = {
  { "softplus", "threshold" },
  { "linspace", "end" }, /* a single step */
  { "logspace", "end" },
  { "logspace", "base" },
  /* internal rows */
  { "native_dropout", "p" },
  { "recurrence", "start" },
};

static guint n_calls, n_refused;

/* Sums of empty inputs multiply nothing with the number. */
static gboolean
has_empty (const Inputs *inputs)
{
  guint i;

  for (i = 0; i < inputs->n; i++)
    if (inputs->tensors[i] != NULL && inputs->tensors[i]->numel == 0)
      return TRUE;
  return FALSE;
}

static gboolean
has_nan (GTorchImpl *result)
{
  g_autoptr (GTorchImpl) impl = impl_to_host (result);
  gint64 i;

  for (i = 0; i < impl->numel; i++)
    {
      const Number value = element_get (impl, i);

      if (isnan (creal (value)) || isnan (cimag (value)))
        return TRUE;
    }
  return FALSE;
}

static gboolean
is_ignored (const gchar *op, const gchar *arg)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (ignored); i++)
    if (g_str_equal (ignored[i].op, op) && g_str_equal (ignored[i].arg, arg))
      return TRUE;
  return FALSE;
}

static void
try_value (const GTorchSample *sample, const Inputs *inputs, guint attr, const GTorchArgSpec *arg,
           guint dtype, gdouble value)
{
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  GTorchSample changed = *sample;
  GTorchAttr attrs[MAX_ATTRS];
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GError) error = NULL;
  gboolean found = FALSE;
  gchar shown[32];
  guint i;

  for (i = 0, memset (attrs, 0, sizeof attrs); i < op->n_attrs; i++)
    attrs[i] = sample->attrs[i];
  if (arg->kind == GTORCH_ARG_NUMBER)
    attrs[attr] = gtorch_attr_number (value);
  else
    attrs[attr].d = value;
  changed.attrs = attrs;
  results = invoke (&changed, inputs, &error);
  if (error != NULL && is_lacking (error))
    return;
  n_calls++;
  n_refused += error != NULL;
  if (error != NULL)
    {
      g_assert_true (error->domain == GTORCH_ERROR);
      g_snprintf (shown, sizeof shown, "%g", value);
      if (strstr (error->message, arg->name) == NULL && strstr (error->message, shown) == NULL)
        {
          g_test_message ("%s, %s %g: %s", op->name, arg->name, value, error->message);
          g_test_fail ();
        }
      return;
    }
  for (i = 0; i < results->len; i++)
    found |= has_nan (results->pdata[i]);
  if (isnan (value) && !found && !has_empty (inputs) && !is_ignored (op->name, arg->name))
    {
      g_test_message ("%s, %s: NaN is taken for %s and lost", op->name,
                      gtorch_dtype_get_name (dtype), arg->name);
      g_test_fail ();
    }
}

static void
invalid_numbers_are_refused_or_give_nan (gconstpointer data)
{
  const GTorchSample *sample = data;
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  static const GTorchDType dtypes[] = { GTORCH_DTYPE_FLOAT32, GTORCH_DTYPE_FLOAT64,
                                        GTORCH_DTYPE_FLOAT16, GTORCH_DTYPE_INT32 };
  guint d, i, v;

  for (d = 0; d < G_N_ELEMENTS (dtypes); d++)
    {
      g_auto (Inputs) inputs = { { NULL } };
      guint attr = 0;

      if (!is_for (sample, dtypes[d]))
        continue;
      inputs_make (&inputs, sample, dtypes[d], LAYOUT_CONTIGUOUS);
      inputs_move (&inputs);
      for (i = 0; i < op->n_args; i++)
        if (op->args[i].kind > GTORCH_ARG_TENSORS)
          {
            const guint place = attr++;

            if (op->args[i].kind == GTORCH_ARG_DOUBLE || op->args[i].kind == GTORCH_ARG_NUMBER)
              for (v = 0; v < G_N_ELEMENTS (values); v++)
                try_value (sample, &inputs, place, &op->args[i], dtypes[d], values[v]);
          }
    }
}

static void
enough_calls_ran (void)
{
  g_test_message ("%u calls, %u refused", n_calls, n_refused);
  g_assert_cmpuint (n_calls, >, 1000);
  g_assert_cmpuint (n_refused, >, 300);
}

int
main (int argc, char *argv[])
{
  guint i, k;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_op_samples; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[gtorch_op_samples[i].op];
      gboolean wanted = FALSE;

      for (k = 0; k < op->n_args; k++)
        wanted |= op->args[k].kind == GTORCH_ARG_DOUBLE || op->args[k].kind == GTORCH_ARG_NUMBER;
      if (wanted)
        {
          g_autofree gchar *path =
              g_strdup_printf ("/GTorch/settings/%s_%u", op->name, gtorch_op_samples[i].index);

          g_test_add_data_func (path, &gtorch_op_samples[i],
                                invalid_numbers_are_refused_or_give_nan);
        }
    }
  g_test_add_func ("/GTorch/settings/enough_calls_ran", enough_calls_ran);
  return g_test_run ();
}
