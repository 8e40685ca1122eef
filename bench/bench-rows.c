/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Times the samples of the operation rows at other sizes. Reads lines “operation, index of the sample,
 * device, dtype, sizes”, separated by tabs, where the sizes are a list such as “2:1448,3:2172”: each size
 * 2 of the sample becomes 1448, and so on. Prints “operation, median seconds of one call” for each, or
 * “operation, none, message”. */

#include "config.h"

#include <gtorch/dispatch/gtorch-op-samples-private.h>
#include <gtorch/gtorch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"

#define MAX_TENSORS 16
#define MAX_ATTRS   16
#define MAX_SIZES   16
#define MOST_TIMES  30
#define FEWEST      3
#define LONG_ENOUGH 0.1 /* in seconds: no more calls after them */

typedef struct
{
  const GTorchOpSample *sample;
  GTorchDevice *device;
  GTorchTensor *tensors[MAX_TENSORS];
  GTorchAttr attrs[MAX_ATTRS];
  gint64 lists[MAX_ATTRS][8];
  struct
  {
    gint64 from, to;
  } sizes[MAX_SIZES];
  guint n_sizes;
} Run;

static void
run_clear (Run *run)
{
  guint i;

  for (i = 0; i < MAX_TENSORS; i++)
    g_clear_object (&run->tensors[i]);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Run, run_clear)

static gint64
resize (const Run *run, gint64 size)
{
  guint i;

  for (i = 0; i < run->n_sizes; i++)
    if (run->sizes[i].from == size)
      return run->sizes[i].to;
  return size;
}

static gboolean
parse_sizes (Run *run, const gchar *text)
{
  while (*text != '\0' && run->n_sizes < MAX_SIZES)
    {
      gchar *end = NULL;

      run->sizes[run->n_sizes].from = g_ascii_strtoll (text, &end, 10);
      if (*end != ':')
        return FALSE;
      run->sizes[run->n_sizes++].to = g_ascii_strtoll (end + 1, &end, 10);
      text = *end == ',' ? end + 1 : end;
    }
  return *text == '\0';
}

static const GTorchOpSample *
find_sample (const gchar *name, const gchar *index)
{
  guint i;

  for (i = 0; i < gtorch_n_op_samples; i++)
    if (gtorch_op_samples[i].index == g_ascii_strtoull (index, NULL, 10)
        && g_str_equal (gtorch_ops[gtorch_op_samples[i].op].name, name))
      return &gtorch_op_samples[i];
  return NULL;
}

static gboolean
parse_dtype (const gchar *name, GTorchDType *dtype)
{
  g_autoptr (GEnumClass) dtypes = g_type_class_ref (GTORCH_TYPE_DTYPE);
  const GEnumValue *value = g_enum_get_value_by_nick (dtypes, name);

  if (value != NULL)
    *dtype = value->value;
  return value != NULL;
}

/* Returns the smallest size above 1 of the other inputs: an index below it is valid for each of them. */
static gint64
index_limit (const Run *run, guint self)
{
  gint64 least = G_MAXINT64;
  guint i;
  gint k;

  for (i = 0; i < run->sample->n_tensors; i++)
    for (k = 0; i != self && k < run->sample->tensors[i].n_dims; k++)
      if (run->sample->tensors[i].shape[k] > 1)
        least = MIN (least, resize (run, run->sample->tensors[i].shape[k]));
  return least == G_MAXINT64 ? 2 : least;
}

/* M M^H / n + I of each matrix M. */
static GTorchTensor *
make_positive (GTorchTensor *x, GError **error)
{
  const gint64 n = gtorch_tensor_get_size (x, -1, NULL);
  g_autoptr (GTorchTensor) adjoint = gtorch_tensor_adjoint (x, error);
  g_autoptr (GTorchTensor) product = NULL;
  g_autoptr (GTorchTensor) scaled = NULL;
  g_autoptr (GTorchTensor) unit = NULL;

  if (adjoint == NULL || (product = gtorch_tensor_matmul (x, adjoint, error)) == NULL
      || (scaled = gtorch_tensor_div_scalar (product, n, error)) == NULL
      || (unit =
              gtorch_eye (n, n, gtorch_tensor_get_dtype (x), gtorch_tensor_get_device (x), error))
             == NULL)
    return NULL;
  return gtorch_tensor_add (scaled, unit, 1, error);
}

static GTorchTensor *
make_input (const Run *run, guint i, GTorchDType dtype, GError **error)
{
  const GTorchSampleTensor *spec = &run->sample->tensors[i];
  const gboolean has_own = spec->dtype != GTORCH_DTYPE_NONE;
  g_autoptr (GTorchTensor) drawn = NULL;
  gint64 shape[8];
  gdouble low = run->sample->low, high = run->sample->high;
  gint k;

  if (has_own)
    dtype = spec->dtype;
  for (k = 0; k < spec->n_dims; k++)
    shape[k] = resize (run, spec->shape[k]);
  if (dtype == GTORCH_DTYPE_BOOL || gtorch_dtype_kind (dtype) == GTORCH_KIND_INT)
    {
      if (dtype == GTORCH_DTYPE_BOOL)
        low = 0, high = 2;
      else if (has_own)
        low = spec->is_positive ? 1 : 0, high = index_limit (run, i);
      else
        low = gtorch_dtype_is_signed (dtype) ? low : MAX (low, 0), high += 1;
      drawn = gtorch_randint ((gint64) low, (gint64) high, shape, spec->n_dims, GTORCH_DTYPE_INT64,
                              run->device, NULL, error);
      return drawn != NULL ? gtorch_tensor_to_dtype (drawn, dtype, error) : NULL;
    }
  drawn = gtorch_empty (shape, spec->n_dims, dtype, run->device, error);
  if (drawn == NULL)
    return NULL;
  if (gtorch_dtype_kind (dtype) == GTORCH_KIND_COMPLEX)
    {
      g_autoptr (GTorchTensor) parts = gtorch_tensor_view_as_real (drawn, error);

      if (parts == NULL || !gtorch_tensor_uniform_inplace (parts, low, high, NULL, error))
        return NULL;
    }
  else if (!gtorch_tensor_uniform_inplace (drawn, low, high, NULL, error))
    return NULL;
  return spec->is_positive && spec->n_dims >= 2 ? make_positive (drawn, error)
                                                : g_steal_pointer (&drawn);
}

static gboolean
make_inputs (Run *run, GTorchDType dtype, GError **error)
{
  const GTorchOpClass *op = &gtorch_ops[run->sample->op];
  guint i, n = 0;
  gsize k;

  for (i = 0; i < run->sample->n_tensors; i++)
    if (run->sample->tensors[i].n_dims >= 0
        && (run->tensors[i] = make_input (run, i, dtype, error)) == NULL)
      return FALSE;
  for (i = 0; i < op->n_args; i++)
    {
      const gchar *name = op->args[i].name;
      GTorchAttr *attr = &run->attrs[n];

      if (op->args[i].kind <= GTORCH_ARG_TENSORS)
        continue;
      *attr = run->sample->attrs[n];
      if (op->args[i].kind == GTORCH_ARG_INTS && attr->list.n <= 8
          && (g_str_equal (name, "size") || g_str_equal (name, "shape")))
        {
          for (k = 0; k < attr->list.n; k++)
            run->lists[n][k] = resize (run, attr->list.data[k]);
          attr->list.data = run->lists[n];
        }
      n++;
    }
  return TRUE;
}

static gboolean
call (Run *run, GError **error)
{
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  GTorchImpl *inputs[MAX_TENSORS];
  guint i;

  for (i = 0; i < run->sample->n_tensors; i++)
    inputs[i] = run->tensors[i] != NULL ? gtorch_tensor_unwrap (run->tensors[i]) : NULL;
  return gtorch_op_invokers[run->sample->op](inputs, run->sample->n_tensors, run->attrs, results,
                                             error);
}

static int
by_value (const void *a, const void *b)
{
  const gdouble x = *(const gdouble *) a, y = *(const gdouble *) b;

  return x < y ? -1 : x > y;
}

static gboolean
time_calls (Run *run, gdouble *seconds, GError **error)
{
  gdouble times[MOST_TIMES], total = 0;
  guint n;

  if (!call (run, error) || !gtorch_device_synchronize (run->device, NULL, error))
    return FALSE;
  for (n = 0; n < MOST_TIMES && (n < FEWEST || total < LONG_ENOUGH); n++)
    {
      gint64 start = g_get_monotonic_time ();

      if (!call (run, error) || !gtorch_device_synchronize (run->device, NULL, error))
        return FALSE;
      times[n] = (g_get_monotonic_time () - start) / 1e6;
      total += times[n];
    }
  qsort (times, n, sizeof *times, by_value);
  *seconds = times[n / 2];
  return TRUE;
}

static gboolean
answer (gchar *const *fields, gdouble *seconds, GError **error)
{
  g_auto (Run) run = { NULL };
  GTorchDType dtype;

  if (g_strv_length ((gchar **) fields) != 5
      || (run.sample = find_sample (fields[0], fields[1])) == NULL
      || !parse_dtype (fields[3], &dtype) || !parse_sizes (&run, fields[4]))
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, "no such sample");
      return FALSE;
    }
  run.device = gtorch_device_new_from_string (fields[2], error);
  return run.device != NULL && make_inputs (&run, dtype, error)
         && time_calls (&run, seconds, error);
}

int
main (void)
{
  g_autoptr (GTorchGradGuard) guard = gtorch_no_grad ();
  char line[1024];

  while (fgets (line, sizeof line, stdin) != NULL)
    {
      g_autoptr (GError) error = NULL;
      g_auto (GStrv) fields = NULL;
      gdouble seconds;

      line[strcspn (line, "\n")] = '\0';
      fields = g_strsplit (line, "\t", -1);
      if (answer (fields, &seconds, &error))
        printf ("%s\t%.4g\n", fields[0], seconds);
      else
        printf ("%s\tnone\t%s\n", fields[0], g_strdelimit (error->message, "\t\n", ' '));
      fflush (stdout);
    }
  return 0;
}
