/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Modules that are converted or moved between the parts of a step. */

#include "config.h"

#include "test-device.h"

#include "step-samples.h"

typedef struct
{
  GTorchModule *net;
  GTorchTensor *weight; /* unowned */
  GTorchOptimizer *optimizer;
} Subject;

static void
subject_clear (Subject *subject)
{
  g_clear_object (&subject->optimizer);
  g_clear_object (&subject->net);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Subject, subject_clear)

static void
subject_init (Subject *subject, guint sample)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GListModel) parameters = NULL;
  g_autoptr (GTorchTensor) weight = NULL;

  subject->net = GTORCH_MODULE (gtorch_linear_new (3, 1, &error));
  g_assert_no_error (error);
  g_assert_true (gtorch_module_to (subject->net, gtorch_device_cpu (), GTORCH_DTYPE_NONE, &error));
  parameters = gtorch_module_get_parameters (subject->net, TRUE);
  weight = g_list_model_get_item (parameters, 0);
  subject->weight = weight;
  subject->optimizer = step_sample_new (sample, parameters, 0.125);
}

static GTorchTensor *
forward (Subject *subject)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (2, 3), gtorch_tensor_get_dtype (subject->weight),
                   gtorch_tensor_get_device (subject->weight), &error);
  g_autoptr (GTorchTensor) y = gtorch_module_forward (subject->net, x, &error);
  GTorchTensor *loss = gtorch_tensor_sum (y, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);

  g_assert_no_error (error);
  return loss;
}

static void
backward (Subject *subject)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) loss = forward (subject);

  gtorch_optimizer_zero_grad (subject->optimizer, TRUE, &error);
  gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error);
  g_assert_no_error (error);
}

static gboolean
has_state (Subject *subject)
{
  g_autoptr (GHashTable) state = gtorch_optimizer_state_dict (subject->optimizer);
  GHashTableIter iter;
  gpointer key, value;

  g_hash_table_iter_init (&iter, state);
  while (g_hash_table_iter_next (&iter, &key, &value))
    if (g_str_has_prefix (key, "state.0.") && gtorch_tensor_get_n_dims (value) > 0)
      return TRUE;
  return FALSE;
}

static void
convert (Subject *subject)
{
  g_autoptr (GError) error = NULL;

  gtorch_module_to (subject->net, test_device (), GTORCH_DTYPE_FLOAT64, &error);
  g_assert_no_error (error);
}

static guint n_with_state;

static void
steps_after_a_move_name_the_remedy (gconstpointer data)
{
  g_auto (Subject) subject = { NULL };
  g_autoptr (GHashTable) state = NULL;
  g_autoptr (GError) error = NULL;
  gdouble before;

  subject_init (&subject, GPOINTER_TO_UINT (data));
  backward (&subject);
  g_assert_true (gtorch_optimizer_step (subject.optimizer, &error));
  g_assert_no_error (error);
  convert (&subject);
  backward (&subject);
  before = test_element (subject.weight, 0);
  if (has_state (&subject))
    {
      n_with_state++;
      g_assert_false (gtorch_optimizer_step (subject.optimizer, &error));
      g_assert_true (g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE)
                     || g_error_matches (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH));
      g_assert_nonnull (strstr (error->message, "the state “"));
      g_assert_nonnull (strstr (error->message, "load its own state dict"));
      g_clear_error (&error);
      g_assert_cmpfloat (test_element (subject.weight, 0), ==, before);
      state = gtorch_optimizer_state_dict (subject.optimizer);
      g_assert_true (gtorch_optimizer_load_state_dict (subject.optimizer, state, &error));
    }
  g_assert_true (gtorch_optimizer_step (subject.optimizer, &error));
  g_assert_no_error (error);
  g_assert_cmpfloat (test_element (subject.weight, 0), !=, before);
}

static void
most_optimizers_have_a_state (void)
{
  g_assert_cmpuint (n_with_state, >, N_STEP_SAMPLES / 2);
}

static void
backward_after_a_conversion_is_an_error (void)
{
  g_auto (Subject) subject = { NULL };
  g_autoptr (GTorchTensor) loss = NULL;
  g_autoptr (GError) error = NULL;

  subject_init (&subject, 0);
  loss = forward (&subject);
  convert (&subject);
  g_assert_false (gtorch_tensor_backward (loss, NULL, FALSE, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD);
  g_assert_nonnull (strstr (error->message, "it was moved or converted after the forward pass"));
  g_assert_null (gtorch_tensor_get_grad (subject.weight));
}

static void
grads_go_with_their_parameters (void)
{
  g_auto (Subject) subject = { NULL };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) grad = NULL;

  subject_init (&subject, 0);
  backward (&subject);
  convert (&subject);
  grad = gtorch_tensor_get_grad (subject.weight);
  g_assert_nonnull (grad);
  g_assert_cmpint (gtorch_tensor_get_dtype (grad), ==, GTORCH_DTYPE_FLOAT64);
  g_assert_true (gtorch_tensor_get_device (grad) == test_device ());
  g_assert_true (gtorch_optimizer_step (subject.optimizer, &error));
  g_assert_no_error (error);
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  for (i = 0; i < N_STEP_SAMPLES; i++)
    {
      g_autofree gchar *path =
          g_strdup_printf ("/GTorch/moved/steps_after_a_move_name_the_remedy/%u", i);

      g_test_add_data_func (path, GUINT_TO_POINTER (i), steps_after_a_move_name_the_remedy);
    }
  g_test_add_func ("/GTorch/moved/steps_after_a_move_name_the_remedy/most",
                   most_optimizers_have_a_state);
  g_test_add_func ("/GTorch/moved/backward_after_a_conversion_is_an_error",
                   backward_after_a_conversion_is_an_error);
  g_test_add_func ("/GTorch/moved/grads_go_with_their_parameters", grads_go_with_their_parameters);
  return g_test_run ();
}
