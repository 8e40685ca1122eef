/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* How many launches a step of many parameters takes, and the clipping of their gradients, and that both do
 * what the CPU's do.
 * GTORCH_TEST_TENSORS says how many parameters one launch of this driver takes. */

#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "cuda-test.h"
#include "optim/gtorch-optimizer-private.h"

typedef struct
{
  const gchar *name;
  GType (*get_type) (void);
  const gchar *setting; /* a number that is set to 0.5, or NULL */
  guint launches;       /* for as many parameters as one launch takes */
} Kind;

static const Kind kinds[] = {
  { "SGD", gtorch_sgd_get_type, NULL, 1 },
  { "SGD_with_momentum", gtorch_sgd_get_type, "momentum", 1 },
  { "Adam", gtorch_adam_get_type, NULL, 2 },
  { "NAdam", gtorch_nadam_get_type, NULL, 2 },
  { "ASGD", gtorch_asgd_get_type, "lambd", 2 },
};

static GTorchOptimizer *
optimizer_new (const Kind *kind, guint n, GTorchDevice *device)
{
  g_autoptr (GListStore) params = g_list_store_new (GTORCH_TYPE_TENSOR);
  GTorchOptimizer *self = g_object_new (kind->get_type (), NULL);
  g_autoptr (GTorchParamGroup) group = NULL;
  g_autoptr (GError) error = NULL;
  guint i;

  for (i = 0; i < n; i++)
    {
      const gint64 shape[] = { 1 + i % 5 };
      g_autoptr (GTorchTensor) param =
          gtorch_full (shape, 1, 1 + 0.25 * i, GTORCH_DTYPE_FLOAT32, device, &error);
      g_autoptr (GTorchTensor) grad =
          gtorch_full (shape, 1, 0.5 + 0.125 * (i % 7), GTORCH_DTYPE_FLOAT32, device, &error);

      g_assert_no_error (error);
      g_assert_true (gtorch_tensor_set_requires_grad (param, TRUE, NULL));
      g_assert_true (gtorch_tensor_set_grad (param, grad, NULL));
      g_list_store_append (params, param);
    }
  group = gtorch_param_group_new (G_LIST_MODEL (params), 0.25, 0, &error);
  g_assert_no_error (error);
  if (kind->setting != NULL)
    g_object_set (self, kind->setting, 0.5, NULL);
  g_assert_true (gtorch_optimizer_add_param_group (self, group, &error));
  return self;
}

static void
step (GTorchOptimizer *self)
{
  g_autoptr (GError) error = NULL;

  gtorch_optimizer_step (self, &error);
  g_assert_no_error (error);
}

static void
assert_same (GTorchOptimizer *here, GTorchOptimizer *there)
{
  g_autoptr (GPtrArray) some = gtorch_optimizer_dup_params (here);
  g_autoptr (GPtrArray) others = gtorch_optimizer_dup_params (there);
  guint i;

  g_assert_cmpuint (some->len, ==, others->len);
  for (i = 0; i < some->len; i++)
    {
      gsize n, m, k;
      g_autofree gdouble *a = gtorch_tensor_to_doubles (some->pdata[i], &n, NULL);
      g_autofree gdouble *b = gtorch_tensor_to_doubles (others->pdata[i], &m, NULL);

      g_assert_cmpuint (n, ==, m);
      for (k = 0; k < n; k++)
        g_assert_cmpfloat (a[k], ==, b[k]);
    }
}

static void
many_parameters_take_few_launches (gconstpointer data)
{
  const gchar *text = g_getenv ("GTORCH_TEST_TENSORS");
  const guint most = text != NULL ? (guint) atoi (text) : 500;
  const guint sizes[] = { 1, 60, 61, 200, 500, 501, 1100 };
  const Kind *kind = data;
  guint i, k;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      const guint n = sizes[i], expected = (n + most - 1) / most * kind->launches;
      g_autoptr (GTorchOptimizer) there = optimizer_new (kind, n, gpu (0));
      g_autoptr (GTorchOptimizer) here = optimizer_new (kind, n, gtorch_device_cpu ());

      for (k = 0; k < 2; k++)
        step (there); /* the first one creates the states */
      fake_cuda_reset_calls ();
      step (there);
      g_assert_cmpuint (fake_cuda_get_calls ("cuLaunchKernel"), ==, expected);
      for (k = 0; k < 3; k++)
        step (here);
      assert_same (here, there);
    }
}

/* A node of a graph has as many parameters. */
static void
many_parameters_are_captured (gconstpointer data)
{
  const guint sizes[] = { 60, 200, 501 };
  const Kind *kind = data;
  guint i, k;

  for (i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      g_autoptr (GTorchOptimizer) there = optimizer_new (kind, sizes[i], gpu (0));
      g_autoptr (GTorchOptimizer) here = optimizer_new (kind, sizes[i], gtorch_device_cpu ());
      g_autoptr (GTorchCUDAGraph) graph = gtorch_cuda_graph_new ();
      g_autoptr (GError) error = NULL;
      GTorchGraphCapture *capture;

      gtorch_optimizer_set_capturable (there, TRUE);
      step (there);
      gtorch_set_default_device (gpu (0)); /* which the capture is of */
      capture =
          gtorch_graph_capture_new (graph, NULL, NULL, GTORCH_CAPTURE_MODE_THREAD_LOCAL, &error);
      g_assert_no_error (error);
      step (there);
      gtorch_graph_capture_end (capture, &error);
      g_assert_no_error (error);
      gtorch_graph_capture_unref (capture);
      gtorch_set_default_device (NULL);
      for (k = 0; k < 3; k++)
        {
          gtorch_cuda_graph_replay (graph, &error);
          g_assert_no_error (error);
        }
      for (k = 0; k < 4; k++)
        step (here);
      assert_same (here, there);
    }
}

/* The gradients of as many parameters; all numbers are in few launches. */
static void
many_gradients_take_few_launches (void)
{
  const gchar *text = g_getenv ("GTORCH_TEST_TENSORS");
  const guint most = text != NULL ? (guint) atoi (text) : 500;
  const guint sizes[] = { 1, 60, 61, 200, 500, 501, 1100 };

  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++)
    {
      const guint n = sizes[i], parts = (n + most - 1) / most;
      g_autoptr (GTorchOptimizer) there = optimizer_new (&kinds[0], n, gpu (0));
      g_autoptr (GTorchOptimizer) here = optimizer_new (&kinds[0], n, gtorch_device_cpu ());
      g_autoptr (GPtrArray) params = gtorch_optimizer_dup_params (there);
      g_autoptr (GPtrArray) others = gtorch_optimizer_dup_params (here);
      g_autoptr (GTorchTensor) norm = NULL;
      g_autoptr (GTorchTensor) expected = NULL;
      g_autoptr (GError) error = NULL;
      gdouble wanted;

      fake_cuda_reset_calls ();
      norm = gtorch_clip_grad_norm ((GTorchTensor **) params->pdata, n, 0.5, 2, FALSE, &error);
      g_assert_no_error (error);
      /* two for the norms and one for the products, and five for one number */
      g_assert_cmpuint (fake_cuda_get_calls ("cuLaunchKernel"), ==, 3 * parts + 5);
      expected = gtorch_clip_grad_norm ((GTorchTensor **) others->pdata, n, 0.5, 2, FALSE, &error);
      g_assert_no_error (error);
      wanted = gtorch_tensor_item_double (expected, NULL);
      g_assert_cmpfloat_with_epsilon (gtorch_tensor_item_double (norm, NULL), wanted,
                                      1e-6 * wanted);
      fake_cuda_reset_calls ();
      g_assert_true (gtorch_clip_grad_value ((GTorchTensor **) params->pdata, n, 0.001, &error));
      g_assert_cmpuint (fake_cuda_get_calls ("cuLaunchKernel"), ==, parts);
      g_assert_true (gtorch_clip_grad_value ((GTorchTensor **) others->pdata, n, 0.001, &error));
      for (guint k = 0; k < 2; k++)
        {
          step (there);
          step (here);
        }
      assert_same (here, there);
    }
}

int
main (int argc, char **argv)
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < G_N_ELEMENTS (kinds); i++)
    {
      g_autofree gchar *path = g_strdup_printf ("/GTorch/cuda/steps/%s/launches", kinds[i].name);

      g_test_add_data_func (path, &kinds[i], many_parameters_take_few_launches);
      g_free (path);
      path = g_strdup_printf ("/GTorch/cuda/steps/%s/captured", kinds[i].name);
      g_test_add_data_func (path, &kinds[i], many_parameters_are_captured);
    }
  g_test_add_func ("/GTorch/cuda/steps/gradients/launches", many_gradients_take_few_launches);
  return g_test_run ();
}
