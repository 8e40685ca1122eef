/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Each call of the driver fails once while a state is loaded onto a GPU. The result is all or nothing:
 * memory is allocated and values are copied to the device before the first tensor changes. The only
 * exception is a device that fails to copy within its own memory, and then each tensor is still old or
 * new as a whole. */

#include "config.h"

#include "cuda-test.h"

#define N_MODULES 4
#define SIZE      3

static GTorchModule *
make_net (gdouble value)
{
  GTorchSequential *net = gtorch_sequential_new ();
  g_autoptr (GListModel) parameters = NULL;
  guint i;

  for (i = 0; i < N_MODULES; i++)
    {
      g_autoptr (GTorchModule) linear = GTORCH_MODULE (gtorch_linear_new (SIZE, SIZE, NULL));

      g_assert_true (gtorch_sequential_append (net, linear, NULL));
    }
  parameters = gtorch_module_get_parameters (GTORCH_MODULE (net), TRUE);
  for (i = 0; i < g_list_model_get_n_items (parameters); i++)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);

      g_assert_true (gtorch_init_constant (parameter, value, NULL));
    }
  return GTORCH_MODULE (net);
}

/* Counts the elements of the tensor that equal the value, reading behind the driver's back. */
static guint
count_numbers (GTorchTensor *tensor, gfloat value)
{
  gint64 n = gtorch_tensor_get_numel (tensor), i;
  g_autofree gfloat *numbers = g_new0 (gfloat, n);
  guint found = 0;

  g_assert_true (fake_cuda_peek ((gconstpointer) gtorch_tensor_get_data_ptr (tensor), numbers,
                                 n * sizeof (gfloat)));
  for (i = 0; i < n; i++)
    found += numbers[i] == value;
  return found;
}

static guint
count_net (GTorchModule *net, gfloat value, guint *total)
{
  g_autoptr (GListModel) parameters = gtorch_module_get_parameters (net, TRUE);
  guint found = 0, i;

  *total = 0;
  for (i = 0; i < g_list_model_get_n_items (parameters); i++)
    {
      g_autoptr (GTorchTensor) parameter = g_list_model_get_item (parameters, i);

      found += count_numbers (parameter, value);
      *total += gtorch_tensor_get_numel (parameter);
    }
  return found;
}

static void
heal (void)
{
  gtorch_device_forget_failure (gpu (0));
  gtorch_device_forget_failure (gpu (1));
}

/* The state has another dtype: it is converted on the host, or on the device itself. */
static void
a_call_that_fails_loads_all_or_nothing (gconstpointer data)
{
  gboolean on_device = GPOINTER_TO_INT (data);
  const gchar *const *functions = fake_cuda_get_functions ();
  g_autoptr (GTorchModule) source = make_net (2);
  g_autoptr (GHashTable) state = NULL;
  guint i, nth, n_failed = 0, n_torn = 0;

  g_assert_true (gtorch_module_to (source, on_device ? gpu (0) : NULL, GTORCH_DTYPE_FLOAT64, NULL));
  state = gtorch_module_state_dict (source);
  for (i = 0; functions[i] != NULL; i++)
    for (nth = 1; nth < 100; nth++)
      {
        g_autoptr (GTorchModule) net = make_net (1);
        g_autoptr (GError) error = NULL;
        gboolean has_failed, loaded;
        guint n_former, n_new, total;

        g_assert_true (gtorch_module_to (net, gpu (0), GTORCH_DTYPE_NONE, NULL));
        g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
        gtorch_device_empty_cache (gpu (0));
        fake_cuda_fail (functions[i], nth, CUDA_ERROR_OUT_OF_MEMORY);
        loaded = gtorch_module_load_state_dict (net, state, TRUE, &error);
        has_failed = fake_cuda_clear_faults ();
        heal ();
        g_assert_true (gtorch_device_synchronize (gpu (0), NULL, NULL));
        n_former = count_net (net, 1, &total);
        n_new = count_net (net, 2, &total);
        g_assert_true (loaded == (error == NULL));
        g_assert_cmpuint (n_former + n_new, ==, total);
        if (loaded ? n_new != total : n_former != total)
          {
            g_test_message ("call %u of %s: %s, and %u of %u are new", nth, functions[i],
                            loaded ? "loaded" : error->message, n_new, total);
            g_assert_cmpstr (functions[i], ==, "cuMemcpyDtoDAsync");
            g_assert_false (loaded);
            n_torn++;
          }
        n_failed += !loaded;
        if (!has_failed)
          break;
      }
  g_test_message ("%u failed, %u were torn", n_failed, n_torn);
  g_assert_cmpuint (n_failed - n_torn, >, 5);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_data_func ("/GTorch/state/from_the_host_all_or_nothing_is_loaded",
                        GINT_TO_POINTER (FALSE), a_call_that_fails_loads_all_or_nothing);
  g_test_add_data_func ("/GTorch/state/from_the_device_all_or_nothing_is_loaded",
                        GINT_TO_POINTER (TRUE), a_call_that_fails_loads_all_or_nothing);
  return g_test_run ();
}
