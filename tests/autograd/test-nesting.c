/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Functions of the program that the library calls call what calls them, without end. */

#include "config.h"

#include <pthread.h>
#include <string.h>

#include <gtorch/gtorch.h>

#include "test-device.h"

static guint n_calls;

static void
assert_is_low (GError *error, const gchar *op)
{
  g_autofree gchar *start = g_strdup_printf ("%s: only ", op);

  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_nonnull (strstr (error->message, start));
  g_assert_nonnull (strstr (error->message, "bytes of the thread's stack are left: "));
  g_assert_cmpuint (strlen (error->message), <, 1000);
  g_assert_cmpuint (n_calls, >, 10);
}

/* --- hooks of tensors --- */

static GTorchTensor *
go_backward (GTorchTensor *grad, gpointer tensor, GError **error)
{
  n_calls++;
  gtorch_tensor_backward (tensor, NULL, TRUE, FALSE, error);
  return NULL;
}

static gboolean
go_backward_again (GTorchTensor *leaf, gpointer tensor, GError **error)
{
  n_calls++;
  return gtorch_tensor_backward (*(gpointer *) tensor, NULL, TRUE, FALSE, error);
}

static gpointer
hooks_of_tensors (gpointer data)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;
  guint64 id;

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  y = gtorch_tensor_mul (x, x, NULL);
  id = gtorch_tensor_register_hook (y, go_backward, y, NULL, NULL);
  n_calls = 0;
  g_assert_false (gtorch_tensor_backward (y, NULL, TRUE, FALSE, &error));
  assert_is_low (error, "backward");
  g_assert_true (gtorch_tensor_remove_hook (y, id));

  /* the thread goes on as if nothing had been */
  gtorch_tensor_set_grad (x, NULL, NULL);
  g_clear_error (&error);
  g_assert_true (gtorch_tensor_backward (y, NULL, TRUE, FALSE, &error));
  g_assert_no_error (error);
  return NULL;
}

static gpointer
hooks_of_leaves (gpointer data)
{
  g_autoptr (GTorchTensor) x = gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (gtorch_tensor_set_requires_grad (x, TRUE, NULL));
  y = gtorch_tensor_mul (x, x, NULL);
  gtorch_tensor_register_post_accumulate_grad_hook (x, go_backward_again, &y, NULL, NULL);
  n_calls = 0;
  g_assert_false (gtorch_tensor_backward (y, NULL, TRUE, FALSE, &error));
  assert_is_low (error, "backward");
  return NULL;
}

/* --- modules --- */

static GTorchTensor *
go_forward (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
            gpointer data, GError **error)
{
  n_calls++;
  return gtorch_module_forward (module, inputs[0], error);
}

static gpointer
hooks_of_modules (gpointer data)
{
  g_autoptr (GTorchModule) module = GTORCH_MODULE (gtorch_relu_new ());
  g_autoptr (GTorchTensor) x = gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GError) error = NULL;

  gtorch_module_register_forward_hook (module, go_forward, NULL, NULL);
  n_calls = 0;
  g_assert_null (gtorch_module_forward (module, x, &error));
  assert_is_low (error, "ReLU");
  return NULL;
}

/* --- functions --- */

#define TEST_TYPE_ENDLESS (test_endless_get_type ())
G_DECLARE_FINAL_TYPE (TestEndless, test_endless, TEST, ENDLESS, GTorchFunction)

struct _TestEndless
{
  GTorchFunction parent_instance;
};

G_DEFINE_TYPE (TestEndless, test_endless, GTORCH_TYPE_FUNCTION)

static GPtrArray *
test_endless_forward (GTorchFunction *function, GTorchFunctionContext *context,
                      GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  n_calls++;
  return gtorch_function_apply (function, inputs, n_inputs, error);
}

static void
test_endless_class_init (TestEndlessClass *klass)
{
  GTORCH_FUNCTION_CLASS (klass)->forward = test_endless_forward;
}

static void
test_endless_init (TestEndless *self)
{
}

static gpointer
functions (gpointer data)
{
  g_autoptr (GTorchFunction) function = g_object_new (TEST_TYPE_ENDLESS, NULL);
  g_autoptr (GTorchTensor) x = gtorch_ones (NULL, 0, GTORCH_DTYPE_FLOAT64, NULL, NULL);
  g_autoptr (GError) error = NULL;

  n_calls = 0;
  g_assert_null (gtorch_function_apply (function, &x, 1, &error));
  assert_is_low (error, "TestEndless");
  return NULL;
}

/* --- */

/* ThreadSanitizer keeps 770 kB of its own on each thread's stack. */
#ifdef __SANITIZE_THREAD__
#define SMALL_STACK (2 << 20)
#else
#define SMALL_STACK (1 << 20)
#endif

static void
in_this_thread (gconstpointer func)
{
  ((GThreadFunc) func) (NULL);
}

static void
on_a_small_stack (gconstpointer func)
{
  pthread_attr_t attr;
  pthread_t thread;

  g_assert_cmpint (pthread_attr_init (&attr), ==, 0);
  g_assert_cmpint (pthread_attr_setstacksize (&attr, SMALL_STACK), ==, 0);
  g_assert_cmpint (pthread_create (&thread, &attr, (GThreadFunc) func, NULL), ==, 0);
  pthread_join (thread, NULL);
  pthread_attr_destroy (&attr);
}

int
main (int argc, char *argv[])
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name)                                                                          \
  g_test_add_data_func ("/GTorch/nesting/" #name "/in_this_thread", name, in_this_thread); \
  g_test_add_data_func ("/GTorch/nesting/" #name "/on_a_small_stack", name, on_a_small_stack)
  ADD (hooks_of_tensors);
  ADD (hooks_of_leaves);
  ADD (hooks_of_modules);
  ADD (functions);
  return g_test_run ();
}
