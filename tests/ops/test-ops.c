/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every operation on the samples of its row, in every dtype and layout. The results are compared with
 * those for contiguous float64 (integers: int64, complex: complex128), which test-reference in turn
 * compares with PyTorch's. */

#include "config.h"

#include <math.h>
#include <string.h>

#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "gtorch/cpu/gtorch-cpu-isa.h"
#include "op-calls.h"

static gboolean
is_factory (const GTorchOpSample *sample)
{
  return sample->n_tensors == 0;
}

/* The absolute values, if the sample compares only these. */
static GTorchImpl *
comparable (const GTorchOpSample *sample, GTorchImpl *result)
{
  return sample->magnitudes ? gtorch_op_abs (result, NULL) : gtorch_impl_ref (result);
}

static void
check_results (const GTorchOpSample *sample, guint dtype, Layout layout)
{
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  g_auto (Inputs) inputs = { { NULL }, 0 };
  g_auto (Inputs) wide = { { NULL }, 0 };
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GPtrArray) expected = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  inputs_make (&inputs, sample, dtype, layout);
  inputs_widen (&wide, &inputs, sample, LAYOUT_CONTIGUOUS);
  inputs_move (&inputs);
  results = invoke (sample, &inputs, &error);
  if (error != NULL && is_lacking (error))
    return;
  if (error != NULL)
    {
      g_test_message ("%s, sample %u, %s, %s: %s", op->name, sample->index,
                      gtorch_dtype_get_name (dtype), layout_names[layout], error->message);
      g_test_fail ();
      return;
    }
  expected = invoke (sample, &wide, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (results->len, ==, expected->len);
  for (i = 0; i < results->len; i++)
    {
      g_autoptr (GTorchImpl) found = impl_to_host (results->pdata[i]);
      g_autoptr (GTorchImpl) result = comparable (sample, found);
      g_autoptr (GTorchImpl) right = comparable (sample, expected->pdata[i]);
      g_autofree gchar *text =
          difference (result, right, MAX (dtype_tolerance (dtype), device_error (op)));

      if (text == NULL)
        continue;
      g_test_message ("%s, sample %u, %s, %s, result %u: %s", op->name, sample->index,
                      gtorch_dtype_get_name (dtype), layout_names[layout], i, text);
      g_test_fail ();
    }
}

static void
values_agree_in_every_dtype (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint i, dtype;

  for (i = 0; i < gtorch_n_op_samples; i++)
    for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
      if (gtorch_op_samples[i].op == op->id && is_for (&gtorch_op_samples[i], dtype))
        check_results (&gtorch_op_samples[i], dtype, LAYOUT_CONTIGUOUS);
}

static void
values_agree_in_every_layout (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint i, layout, dtype;

  for (i = 0; i < gtorch_n_op_samples; i++)
    for (layout = LAYOUT_TRANSPOSED; layout < N_LAYOUTS; layout++)
      for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
        if (gtorch_op_samples[i].op == op->id && is_for (&gtorch_op_samples[i], dtype))
          check_results (&gtorch_op_samples[i], dtype, layout);
}

/* --- lengths around those of vectors --- */

/* the maximum of elements of a tensor: operations that need more for their lengths have their own tests */
#define LARGE 4096

/* Reads the elements before and behind a tensor of LAYOUT_OFFSET. */
static void
read_guards (const GTorchImpl *impl, gchar guards[2][16])
{
  const gsize size = gtorch_dtype_size (impl->dtype);
  const gchar *bytes = impl->storage->data;

  memcpy (guards[0], bytes, size);
  memcpy (guards[1], bytes + impl->storage->n_bytes - size, size);
}

static gchar *
in_place_difference (const GTorchOpSample *sample, Inputs *inputs, const GTorchImpl *expected)
{
  GTorchImpl *self = inputs->tensors[0];
  gchar before[2][16] = { { 0 } }, after[2][16] = { { 0 } };
  GError *error = NULL;

  read_guards (self, before);
  gtorch_op_run_in_place (&gtorch_ops[sample->op], inputs->tensors, inputs->n, sample->attrs,
                          &error);
  g_assert_no_error (error);
  read_guards (self, after);
  if (memcmp (before, after, sizeof before) != 0)
    return g_strdup ("in place writes beside the tensor");
  return difference (self, expected, 0);
}

/* Returns whether there is such a call. */
static gboolean
check_length (const Resized *resized, guint dtype, Layout layout, gint64 length)
{
  const GTorchOpSample *sample = &resized->sample;
  const GTorchOpClass *op = &gtorch_ops[sample->op];
  g_auto (Inputs) inputs = { { NULL }, 0 };
  g_auto (Inputs) wide = { { NULL }, 0 };
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GPtrArray) expected = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *text = NULL;
  gdouble tolerance = dtype_tolerance (dtype);
  guint i;

  /* no sum has more terms */
  if (op->shape != gtorch_shape_pointwise)
    tolerance = MAX (tolerance, dtype_tolerance (gtorch_dtype_infos[dtype].compute)
                                    * (gdouble) (1 + resized->most / 16));
  inputs_make (&inputs, sample, dtype, layout);
  /* loops on strided elements and those of the baseline have no vectors, or shorter ones */
  inputs_widen (&wide, &inputs, sample, LAYOUT_STRIDED);
  results = invoke (sample, &inputs, NULL);
  gtorch_cpu_isa_choose ("baseline");
  expected = invoke (sample, &wide, &error);
  gtorch_cpu_isa_choose (g_getenv ("GTORCH_CPU_ISA"));
  if (results == NULL && expected == NULL)
    return FALSE; /* the attributes need other sizes */
  g_assert_true (results != NULL && expected != NULL);
  for (i = 0; i < results->len && text == NULL; i++)
    text = difference (results->pdata[i], expected->pdata[i], tolerance);
  if (text == NULL && layout == LAYOUT_OFFSET && (op->flags & GTORCH_OP_FLAG_INPLACE_OK)
      && gtorch_impl_same_shape (results->pdata[0], inputs.tensors[0])
      && ((GTorchImpl *) results->pdata[0])->dtype == inputs.tensors[0]->dtype)
    text = in_place_difference (sample, &inputs, results->pdata[0]);
  if (text != NULL)
    {
      g_test_message ("%s, sample %u, %s, %s, length %" G_GINT64_FORMAT ": %s", op->name,
                      sample->index, gtorch_dtype_get_name (dtype), layout_names[layout], length,
                      text);
      g_test_fail ();
    }
  return TRUE;
}

/* Returns the number of possible calls. */
static guint
check_lengths (const GTorchOpSample *sample, guint dtype)
{
  const gint64 vector = (16 << gtorch_cpu_isa ()) / gtorch_dtype_size (dtype);
  const gint64 lengths[] = { 0, 1, vector - 1, vector, vector + 1, 2 * vector + 3, 131 };
  g_autoptr (GHashTable) done = g_hash_table_new (NULL, NULL);
  Resized resized;
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
            sample_resize (&resized, sample, old, lengths[l]);
            if (resized.most > LARGE)
              continue;
            n_checked += check_length (&resized, dtype, LAYOUT_CONTIGUOUS, lengths[l]);
            n_checked += check_length (&resized, dtype, LAYOUT_OFFSET, lengths[l]);
          }
      }
  return n_checked;
}

static void
values_agree_at_every_length (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint i, dtype, n_checked = 0;

  for (i = 0; i < gtorch_n_op_samples; i++)
    for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
      if (gtorch_op_samples[i].op == op->id && is_for (&gtorch_op_samples[i], dtype))
        n_checked += check_lengths (&gtorch_op_samples[i], dtype);
  if (n_checked == 0 && op->loop < 0)
    g_test_skip ("other lengths do not fit its attributes");
  else
    g_assert_cmpuint (n_checked, >, 0);
}

/* The in-place result equals the out-of-place one, whenever that has the shape and a compatible dtype. */
static void
in_place_agrees (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint i, layout, n_checked = 0;

  for (i = 0; i < gtorch_n_op_samples; i++)
    for (layout = LAYOUT_CONTIGUOUS; layout < LAYOUT_EXPANDED; layout++)
      {
        const GTorchOpSample *sample = &gtorch_op_samples[i];
        guint dtype = op->dtypes & GTORCH_DTYPES (FLOAT32) ? GTORCH_DTYPE_FLOAT32
                      : op->dtypes & GTORCH_DTYPES (INT64) ? GTORCH_DTYPE_INT64
                                                           : GTORCH_DTYPE_BOOL;
        g_auto (Inputs) inputs = { { NULL }, 0 };
        g_autoptr (GPtrArray) expected = NULL;
        g_autoptr (GError) error = NULL;
        g_autofree gchar *text = NULL;
        g_autoptr (GTorchImpl) result = NULL;
        g_autoptr (GTorchImpl) wanted = NULL;

        if (sample->op != op->id)
          continue;
        inputs_make (&inputs, sample, dtype, layout);
        inputs_move (&inputs);
        expected = invoke (sample, &inputs, &error);
        if (error != NULL && is_lacking (error))
          return;
        g_assert_no_error (error);
        if (!gtorch_impl_same_shape (expected->pdata[0], inputs.tensors[0]))
          {
            g_assert_false (
                gtorch_op_run_in_place (op, inputs.tensors, inputs.n, sample->attrs, &error));
            g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
            continue;
          }
        g_assert_true (
            gtorch_op_run_in_place (op, inputs.tensors, inputs.n, sample->attrs, &error));
        g_assert_no_error (error);
        result = impl_to_host (inputs.tensors[0]);
        wanted = impl_to_host (expected->pdata[0]);
        text = difference (result, wanted, 0);
        if (text != NULL)
          {
            g_test_message ("%s, sample %u, %s: %s", op->name, sample->index, layout_names[layout],
                            text);
            g_test_fail ();
          }
        g_assert_cmpuint (inputs.tensors[0]->storage->version, ==, 1);
        n_checked++;
      }
  g_assert_cmpuint (n_checked, >, 0);
}

static void
other_dtypes_are_errors (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint i, dtype;

  for (i = 0; i < gtorch_n_op_samples; i++)
    for (dtype = 1; dtype < GTORCH_N_DTYPES; dtype++)
      {
        const GTorchOpSample *sample = &gtorch_op_samples[i];
        g_auto (Inputs) inputs = { { NULL }, 0 };
        g_autoptr (GPtrArray) results = NULL;
        g_autoptr (GError) error = NULL;

        if (sample->op != op->id || (op->dtypes & (1u << dtype)))
          continue;
        if ((op->promote == GTORCH_PROMOTE_FLOAT || op->promote == GTORCH_PROMOTE_SUM)
            && gtorch_dtype_kind (dtype) < GTORCH_KIND_FLOAT)
          continue;
        if ((op->promote == GTORCH_PROMOTE_INT || op->promote == GTORCH_PROMOTE_BOUNDS)
            && dtype == GTORCH_DTYPE_BOOL)
          continue;
        inputs_make (&inputs, sample, dtype, LAYOUT_CONTIGUOUS);
        inputs_move (&inputs);
        results = invoke (sample, &inputs, &error);
        if (error != NULL && is_lacking (error))
          return;
        if (results == NULL && g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE)
            && g_str_has_prefix (error->message, op->name)
            && strstr (error->message, gtorch_dtype_get_name (dtype)) != NULL)
          continue;
        g_test_message ("%s, sample %u, %s: %s", op->name, sample->index,
                        gtorch_dtype_get_name (dtype),
                        error != NULL ? error->message : "is no error");
        g_test_fail ();
      }
}

static void
released_tensors_are_errors (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint i, k;

  for (i = 0; i < gtorch_n_op_samples; i++)
    {
      const GTorchOpSample *sample = &gtorch_op_samples[i];

      for (k = 0; sample->op == op->id && k < sample->n_tensors; k++)
        {
          g_auto (Inputs) inputs = { { NULL }, 0 };
          g_autoptr (GPtrArray) results = NULL;
          g_autoptr (GError) error = NULL;
          guint dtype = g_bit_nth_lsf (op->dtypes, -1);

          inputs_make (&inputs, sample, dtype, LAYOUT_CONTIGUOUS);
          inputs_move (&inputs);
          if (inputs.tensors[k] == NULL)
            continue;
          gtorch_impl_release (inputs.tensors[k]);
          results = invoke (sample, &inputs, &error);
          g_assert_null (results);
          if (is_lacking (error))
            return;
          g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED);
        }
    }
}

int
main (int argc, char *argv[])
{
  guint i, j;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < gtorch_n_ops; i++)
    {
      const GTorchOpClass *op = &gtorch_ops[i];
      const GTorchOpSample *sample = NULL;
      struct
      {
        const gchar *name;
        GTestDataFunc func;
        gboolean wanted;
      } aspects[] = {
        { "values_agree_in_every_dtype", values_agree_in_every_dtype, has_values (op) },
        /* view and view_as_complex fail for some layouts by definition, as_strided shows the layout */
        { "values_agree_in_every_layout", values_agree_in_every_layout,
          has_values (op) && op->id != GTORCH_OP_VIEW && op->id != GTORCH_OP_VIEW_AS
              && op->id != GTORCH_OP_UNFLATTEN && op->id != GTORCH_OP_AS_STRIDED
              && op->id != GTORCH_OP_AS_STRIDED_COPY && op->id != GTORCH_OP_AS_STRIDED_SCATTER
              && op->id != GTORCH_OP_VIEW_AS_COMPLEX },
        { "values_agree_at_every_length", values_agree_at_every_length,
          has_values (op) && op_computes (op) && !(op->flags & GTORCH_OP_FLAG_VIEW)
              && test_device () == gtorch_device_cpu () },
        { "in_place_agrees", in_place_agrees,
          (op->flags & GTORCH_OP_FLAG_INPLACE_OK) && has_values (op)
              && op->promote != GTORCH_PROMOTE_BOOL },
        { "other_dtypes_are_errors", other_dtypes_are_errors,
          op->dtypes != GTORCH_DTYPES_ALL && op_computes (op) },
        { "released_tensors_are_errors", released_tensors_are_errors, TRUE },
      };

      for (j = 0; j < gtorch_n_op_samples && sample == NULL; j++)
        if (gtorch_op_samples[j].op == i)
          sample = &gtorch_op_samples[j];
      if (sample == NULL || is_factory (sample))
        continue;
      for (j = 0; j < G_N_ELEMENTS (aspects); j++)
        {
          g_autofree gchar *path = g_strdup_printf ("/GTorch/ops/%s/%s", op->name, aspects[j].name);

          if (aspects[j].wanted)
            g_test_add_data_func (path, op, aspects[j].func);
        }
    }
  return g_test_run ();
}
