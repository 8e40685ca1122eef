/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors of modules that are computed: by parametrizations, norms and masks. */

#include "config.h"

#include <string.h>

#include <gtorch/gtorch.h>

#include "test-device.h"

/* --- a parametrization --- */

typedef struct
{
  GTorchModule parent_instance;
} Square;
typedef GTorchModuleClass SquareClass;

static gboolean square_fails;

GType square_get_type (void);
G_DEFINE_TYPE (Square, square, GTORCH_TYPE_MODULE)

static GTorchTensor *
square_forward (GTorchModule *self, GTorchTensor *input, GError **error)
{
  if (!square_fails)
    return gtorch_tensor_mul (input, input, error);
  g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_FAILED, "the square fails");
  return NULL;
}

static GPtrArray *
square_right_inverse (GTorchModule *self, GTorchTensor *value, GError **error)
{
  GTorchTensor *root = gtorch_tensor_sqrt (value, error);
  GPtrArray *found;

  if (root == NULL)
    return NULL;
  found = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (found, root);
  return found;
}

static void
square_class_init (SquareClass *klass)
{
  klass->forward = square_forward;
  klass->right_inverse = square_right_inverse;
}

static void
square_init (Square *self)
{
}

static GTorchLinear *
new_layer (void)
{
  g_autoptr (GError) error = NULL;
  GTorchLinear *layer =
      gtorch_module_new (GTORCH_TYPE_LINEAR, &error, "in-features", (gint64) 2, "out-features",
                         (gint64) 2, "has-bias", FALSE, "device", test_device (), NULL);
  g_autoptr (GTorchTensor) weight = NULL;

  g_assert_no_error (error);
  g_object_get (layer, "weight", &weight, NULL);
  gtorch_init_constant (weight, 4, &error);
  g_assert_no_error (error);
  return layer;
}

static gdouble
first (GTorchTensor *tensor)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) flat = gtorch_tensor_flatten (tensor, 0, -1, &error);
  g_autoptr (GTorchTensor) one = gtorch_tensor_select (flat, 0, 0, &error);
  gdouble value = gtorch_tensor_item_double (one, &error);

  g_assert_no_error (error);
  return value;
}

static gchar *
names_of (gpointer module)
{
  g_auto (GStrv) names = gtorch_module_get_state_names (module);

  return g_strjoinv (" ", names);
}

static gdouble
output_of (gpointer layer)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (1, 2), GTORCH_DTYPE_FLOAT32, test_device (), &error);
  g_autoptr (GTorchTensor) y = gtorch_module_forward (layer, x, &error);

  g_assert_no_error (error);
  return first (y);
}

static void
layers_use_what_is_computed (void)
{
  g_autoptr (GTorchLinear) layer = new_layer ();
  g_autoptr (GTorchModule) square = g_object_new (square_get_type (), NULL);
  g_autoptr (GTorchParameter) before = NULL;
  g_autoptr (GTorchParameter) original = NULL;
  g_autoptr (GTorchParameter) after = NULL;
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GTorchTensor) sum = NULL;
  g_autoptr (GTorchTensor) grad = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree gchar *names = NULL;
  g_autofree gchar *later = NULL;
  GTorchModule *module = GTORCH_MODULE (layer);

  before = gtorch_module_get_parameter (module, "weight", &error);
  g_assert_true (gtorch_module_register_parametrization (module, "weight", square, FALSE, &error));
  g_assert_no_error (error);
  names = names_of (layer);
  g_assert_cmpstr (names, ==, "parametrizations.weight.original");
  g_assert_cmpfloat (output_of (layer), ==, 8);
  original = gtorch_module_get_parameter (module, "parametrizations.weight.original", &error);
  g_assert_true (original == before);
  g_assert_cmpfloat (first (GTORCH_TENSOR (original)), ==, 2);
  g_object_get (layer, "weight", &weight, NULL);
  g_assert_cmpfloat (first (weight), ==, 4);
  g_assert_true (gtorch_module_is_computed (module, "weight"));
  g_assert_true (gtorch_module_is_parametrized (module, NULL));

  sum = gtorch_tensor_sum (weight, NULL, 0, FALSE, GTORCH_DTYPE_NONE, &error);
  g_assert_true (gtorch_tensor_backward (sum, NULL, FALSE, FALSE, &error));
  grad = gtorch_tensor_get_grad (GTORCH_TENSOR (original));
  g_assert_cmpfloat (first (grad), ==, 4);

  g_assert_true (gtorch_module_set_tensor (module, "weight", grad, &error));
  g_assert_cmpfloat (output_of (layer), ==, 8);
  g_assert_true (gtorch_module_remove_parametrizations (module, "weight", TRUE, &error));
  g_assert_no_error (error);
  after = gtorch_module_get_parameter (module, "weight", &error);
  g_assert_true (after == before);
  later = names_of (layer);
  g_assert_cmpstr (later, ==, "weight");
  g_assert_cmpfloat (output_of (layer), ==, 8);
}

static void
a_failure_ends_the_call (void)
{
  g_autoptr (GTorchLinear) layer = new_layer ();
  g_autoptr (GTorchModule) square = g_object_new (square_get_type (), NULL);
  g_autoptr (GTorchTensor) x =
      gtorch_ones (GTORCH_SHAPE (1, 2), GTORCH_DTYPE_FLOAT32, test_device (), NULL);
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GError) error = NULL;
  GTorchModule *module = GTORCH_MODULE (layer);

  g_assert_true (gtorch_module_register_parametrization (module, "weight", square, FALSE, &error));
  square_fails = TRUE;
  y = gtorch_module_forward (module, x, &error);
  g_assert_null (y);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_assert_cmpstr (error->message, ==, "the square fails");
  g_clear_error (&error);
  weight = gtorch_module_get_tensor (module, "weight", &error);
  g_assert_null (weight);
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_clear_error (&error);
  g_object_get (layer, "weight", &weight, NULL);
  g_assert_null (weight);
  g_assert_false (gtorch_module_remove_parametrizations (module, "weight", TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_FAILED);
  g_clear_error (&error);
  square_fails = FALSE;
  g_assert_cmpfloat (output_of (layer), ==, 8);
}

static void
what_is_computed_cannot_be_replaced (void)
{
  g_autoptr (GTorchLinear) layer = new_layer ();
  g_autoptr (GTorchModule) square = g_object_new (square_get_type (), NULL);
  g_autoptr (GError) error = NULL;
  GTorchModule *module = GTORCH_MODULE (layer);

  g_assert_false (gtorch_module_register_parametrization (module, "bias", square, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==, "Linear: no parameter or buffer 'bias'");
  g_clear_error (&error);
  g_assert_true (gtorch_module_apply_weight_norm (module, "weight", 0, &error));
  g_assert_false (gtorch_module_register_parameter (module, "weight", NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_module_unregister (module, "weight", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  g_assert_false (gtorch_module_register_parametrization (module, "weight", square, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
  /* a source that is gone is an error, and no other weight */
  g_assert_true (gtorch_module_unregister (module, "weight_g", &error));
  g_assert_false (gtorch_module_remove_weight_norm (module, "weight", &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND);
  g_assert_cmpstr (error->message, ==,
                   "Linear: 'weight_g', which 'weight' is computed from, is missing");
}

static void
the_cache_computes_once (void)
{
  g_autoptr (GTorchLinear) layer = new_layer ();
  g_autoptr (GTorchModule) square = g_object_new (square_get_type (), NULL);
  g_autoptr (GTorchTensor) one = NULL;
  g_autoptr (GTorchTensor) other = NULL;
  g_autoptr (GTorchTensor) later = NULL;
  g_autoptr (GError) error = NULL;
  GTorchModule *module = GTORCH_MODULE (layer);

  g_assert_true (gtorch_module_register_parametrization (module, "weight", square, FALSE, &error));
  gtorch_parametrize_end_cache (); /* nothing */
  gtorch_parametrize_begin_cache ();
  gtorch_parametrize_begin_cache ();
  one = gtorch_module_get_tensor (module, "weight", &error);
  gtorch_parametrize_end_cache ();
  other = gtorch_module_get_tensor (module, "weight", &error);
  gtorch_parametrize_end_cache ();
  later = gtorch_module_get_tensor (module, "weight", &error);
  g_assert_true (one == other && later != one);
}

static void
layers_of_a_stack_are_copies (void)
{
  g_autoptr (GTorchTransformerEncoderLayer) layer =
      gtorch_module_new (GTORCH_TYPE_TRANSFORMER_ENCODER_LAYER, NULL, "d-model", (gint64) 2,
                         "nhead", (gint64) 1, "dim-feedforward", (gint64) 2, "device",
                         test_device (), NULL);
  g_autoptr (GTorchModule) linear = NULL;
  g_autoptr (GTorchTransformerEncoder) stack = NULL;
  g_autoptr (GTorchModule) copied = NULL;
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GTorchTensor) other = NULL;
  g_autoptr (GError) error = NULL;

  linear = gtorch_module_get_module (GTORCH_MODULE (layer), "linear1", &error);
  g_assert_true (gtorch_module_parametrize_orthogonal (linear, "weight",
                                                       GTORCH_ORTHOGONAL_MAP_CAYLEY, TRUE, &error));
  g_assert_no_error (error);
  stack = gtorch_transformer_encoder_new (GTORCH_ENCODER (layer), 2, NULL, &error);
  g_assert_no_error (error);
  copied = gtorch_module_get_module (GTORCH_MODULE (stack), "layers.1.linear1", &error);
  g_assert_true (copied != linear && gtorch_module_is_parametrized (copied, "weight"));
  weight = gtorch_module_get_tensor (linear, "weight", &error);
  other = gtorch_module_get_tensor (copied, "weight", &error);
  g_assert_no_error (error);
  g_assert_cmpfloat (first (weight), ==, first (other));
}

static void
pruning_multiplies_by_a_mask (void)
{
  g_autoptr (GTorchLinear) layer = new_layer ();
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) mask = NULL;
  g_autofree gchar *names = NULL;
  GTorchModule *module = GTORCH_MODULE (layer);

  g_assert_true (gtorch_module_prune_l1_unstructured (module, "weight", 3, TRUE, NULL, &error));
  g_assert_no_error (error);
  names = names_of (layer);
  g_assert_cmpstr (names, ==, "weight_orig weight_mask");
  mask = gtorch_module_get_buffer (module, "weight_mask", &error);
  g_assert_true (gtorch_module_is_pruned (module));
  g_assert_false (gtorch_module_prune_l1_unstructured (module, "weight", 2, TRUE, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "prune: amount is 2, and only 1 can be pruned");
  g_clear_error (&error);
  g_assert_true (gtorch_module_remove_pruning (module, "weight", &error));
  g_assert_false (gtorch_module_is_pruned (module));
}

#define ADD(name) g_test_add_func ("/GTorch/Computed/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (layers_use_what_is_computed);
  ADD (a_failure_ends_the_call);
  ADD (what_is_computed_cannot_be_replaced);
  ADD (the_cache_computes_once);
  ADD (layers_of_a_stack_are_copies);
  ADD (pruning_multiplies_by_a_mask);
  return g_test_run ();
}
