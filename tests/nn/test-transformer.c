/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <math.h>

#include <gtorch/gtorch.h>

#include "members.h"

static GTorchTensor *
waves (const gint64 *shape, gsize n_dims)
{
  gint64 n = 1;
  g_autofree gdouble *values = NULL;

  for (gsize i = 0; i < n_dims; i++)
    n *= shape[i];
  values = g_new (gdouble, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = sin ((gdouble) i + 1);
  return gtorch_tensor_new_from_doubles (values, n, shape, n_dims, GTORCH_DTYPE_FLOAT32, NULL,
                                         NULL);
}

static void
assert_close (GTorchTensor *a, GTorchTensor *b, gdouble tolerance)
{
  g_autofree gdouble *x = NULL;
  g_autofree gdouble *y = NULL;
  gsize n, m;

  x = gtorch_tensor_to_doubles (a, &n, NULL);
  y = gtorch_tensor_to_doubles (b, &m, NULL);
  g_assert_cmpuint (n, ==, m);
  for (gsize i = 0; i < n; i++)
    g_assert_cmpfloat (fabs (x[i] - y[i]), <=, tolerance);
}

static void
assert_shape (GTorchTensor *tensor, const gint64 *shape, gsize n_dims)
{
  gsize n;
  const gint64 *found = gtorch_tensor_get_shape (tensor, &n);

  g_assert_cmpmem (found, n * sizeof *found, shape, n_dims * sizeof *shape);
}

static void
weights_are_computed_if_needed (void)
{
  g_autoptr (GTorchMultiheadAttention) layer = gtorch_multihead_attention_new (4, 2, NULL);
  GTorchAttention *attention = GTORCH_ATTENTION (layer);
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (3, 2, 4));
  g_autoptr (GTorchTensor) fast = NULL;
  g_autoptr (GTorchTensor) slow = NULL;
  g_autoptr (GTorchTensor) weights = NULL;
  g_autoptr (GTorchTensor) each = NULL;
  g_autoptr (GTorchTensor) again = NULL;
  GError *error = NULL;

  g_assert_true (gtorch_attention_forward (attention, x, x, x, NULL, FALSE, NULL, TRUE, FALSE,
                                           &fast, &weights, &error));
  g_assert_no_error (error);
  g_assert_null (weights);
  g_assert_true (gtorch_attention_forward (attention, x, x, x, NULL, TRUE, NULL, TRUE, FALSE, &slow,
                                           &weights, &error));
  g_assert_no_error (error);
  assert_close (fast, slow, 1e-6);
  assert_shape (weights, GTORCH_SHAPE (2, 3, 3));
  g_assert_true (gtorch_attention_forward (attention, x, x, x, NULL, TRUE, NULL, FALSE, FALSE,
                                           &again, &each, &error));
  assert_shape (each, GTORCH_SHAPE (2, 2, 3, 3));
}

static void
the_first_values_are_those_of_pytorch (void)
{
  g_autoptr (GTorchMultiheadAttention) layer =
      gtorch_module_new (GTORCH_TYPE_MULTIHEAD_ATTENTION, NULL, "embed-dim", (gint64) 4,
                         "num-heads", (gint64) 2, "add-bias-kv", TRUE, NULL);
  g_autoptr (GTorchTensor) weight = NULL;
  g_autoptr (GTorchTensor) bias = NULL;
  g_autoptr (GTorchTensor) of_key = NULL;
  g_autofree gdouble *values = NULL;
  gsize n;

  g_object_get (layer, "in-proj-weight", &weight, "in-proj-bias", &bias, "bias-k", &of_key, NULL);
  assert_shape (weight, GTORCH_SHAPE (12, 4));
  assert_shape (of_key, GTORCH_SHAPE (1, 1, 4));
  values = gtorch_tensor_to_doubles (weight, &n, NULL);
  for (gsize i = 0; i < n; i++)
    g_assert_cmpfloat (fabs (values[i]), <=, sqrt (6.0 / 16) + 1e-6);
  g_free (values);
  values = gtorch_tensor_to_doubles (bias, &n, NULL);
  for (gsize i = 0; i < n; i++)
    g_assert_cmpfloat (values[i], ==, 0);
}

static void
a_stack_has_copies (void)
{
  g_autoptr (GTorchEncoder) layer =
      gtorch_module_new (GTORCH_TYPE_TRANSFORMER_ENCODER_LAYER, NULL, "d-model", (gint64) 4,
                         "nhead", (gint64) 2, "dim-feedforward", (gint64) 3, "dropout-p", 0.25,
                         "norm-first", TRUE, NULL);
  g_autoptr (GTorchTransformerEncoder) encoder = NULL;
  g_autoptr (GTorchModule) first = NULL;
  g_autoptr (GTorchTensor) drawn = NULL;
  g_autoptr (GTorchTensor) expected = NULL;
  g_autoptr (GTorchTensor) one = NULL;
  g_autoptr (GTorchTensor) other = NULL;
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (3, 2, 4));
  g_autoptr (GTorchTensor) y = NULL;
  gboolean norm_first = FALSE;
  GError *error = NULL;

  gtorch_module_set_training (GTORCH_MODULE (layer), FALSE);
  gtorch_manual_seed (5);
  expected = gtorch_rand (GTORCH_SHAPE (2), GTORCH_DTYPE_NONE, NULL, NULL, NULL);
  gtorch_manual_seed (5);
  encoder = gtorch_transformer_encoder_new (layer, 2, NULL, &error);
  g_assert_no_error (error);
  drawn = gtorch_rand (GTORCH_SHAPE (2), GTORCH_DTYPE_NONE, NULL, NULL, NULL);
  assert_close (drawn, expected, 0); /* copies draw no numbers */
  g_assert_cmpint (gtorch_transformer_encoder_get_num_layers (encoder), ==, 2);
  first = gtorch_module_get_module (GTORCH_MODULE (encoder), "layers.0", &error);
  g_object_get (first, "norm-first", &norm_first, NULL);
  g_assert_true (norm_first);
  g_assert_true (first != GTORCH_MODULE (layer));
  one = gtorch_encoder_forward (layer, x, NULL, NULL, FALSE, &error);
  other = gtorch_module_forward (first, x, &error); /* in evaluation mode, as the layer is */
  g_assert_no_error (error);
  assert_close (one, other, 0);
  y = gtorch_module_forward (GTORCH_MODULE (encoder), x, &error);
  g_assert_no_error (error);
  assert_shape (y, GTORCH_SHAPE (3, 2, 4));
}

static void
copies_learn_what_the_layer_does (void)
{
  g_autoptr (GTorchDecoder) layer =
      GTORCH_DECODER (gtorch_transformer_decoder_layer_new (4, 2, NULL));
  g_autoptr (GTorchTransformerDecoder) decoder = NULL;
  GError *error = NULL;

  g_assert_true (gtorch_module_set_requires_grad (GTORCH_MODULE (layer), FALSE, &error));
  decoder = gtorch_transformer_decoder_new (layer, 2, NULL, &error);
  g_assert_no_error (error);
  g_assert_cmpint (gtorch_module_count_parameters (GTORCH_MODULE (decoder), TRUE), ==, 0);
  g_assert_cmpint (gtorch_module_count_parameters (GTORCH_MODULE (decoder), FALSE), >, 0);
}

static GTorchTensor *
count_call (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs, GTorchTensor *output,
            gpointer user_data, GError **error)
{
  gsize *seen = user_data;

  *seen = *seen * 10 + n_inputs;
  return NULL;
}

static void
hooks_run_once (void)
{
  g_autoptr (GTorchTransformer) transformer =
      gtorch_module_new (GTORCH_TYPE_TRANSFORMER, NULL, "d-model", (gint64) 4, "nhead", (gint64) 2,
                         "num-encoder-layers", (gint64) 1, "num-decoder-layers", (gint64) 1,
                         "dim-feedforward", (gint64) 3, NULL);
  g_autoptr (GTorchModule) attention =
      gtorch_module_get_module (GTORCH_MODULE (transformer), "decoder.layers.0.multihead_attn",
                                NULL);
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (3, 2, 4));
  g_autoptr (GTorchTensor) mask =
      gtorch_transformer_generate_square_subsequent_mask (3, NULL, GTORCH_DTYPE_NONE, NULL);
  g_autoptr (GTorchTensor) y = NULL;
  GTorchTensor *both[] = { x, x };
  g_autoptr (GTorchTensor) z = NULL;
  gsize seen = 0, inner = 0;
  GError *error = NULL;

  gtorch_module_register_forward_hook (GTORCH_MODULE (transformer), count_call, &seen, NULL);
  gtorch_module_register_forward_hook (attention, count_call, &inner, NULL);
  y = gtorch_transformer_forward (transformer, x, x, NULL, mask, NULL, NULL, NULL, NULL, FALSE,
                                  TRUE, FALSE, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (seen, ==, 2);
  g_assert_cmpuint (inner, ==, 3);
  z = gtorch_module_forward_many (GTORCH_MODULE (transformer), both, 2, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (seen, ==, 22);
}

static void
causal_masks_admit_what_came_before (void)
{
  g_autoptr (GTorchTensor) mask =
      gtorch_transformer_generate_square_subsequent_mask (3, NULL, GTORCH_DTYPE_FLOAT64, NULL);
  g_autofree gdouble *values = NULL;
  gsize n;

  g_assert_cmpint (gtorch_tensor_get_dtype (mask), ==, GTORCH_DTYPE_FLOAT64);
  values = gtorch_tensor_to_doubles (mask, &n, NULL);
  for (gsize i = 0; i < 9; i++)
    g_assert_cmpfloat (values[i], ==, i % 3 > i / 3 ? -INFINITY : 0);
}

static void
mistakes_are_named (void)
{
  g_autoptr (GTorchModule) layer = GTORCH_MODULE (gtorch_multihead_attention_new (4, 2, NULL));
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (3, 2, 4));
  g_autoptr (GTorchTensor) wide = waves (GTORCH_SHAPE (3, 2, 5));
  g_autoptr (GTorchTensor) output = NULL;
  g_autoptr (GTorchEncoder) encoder_layer =
      GTORCH_ENCODER (gtorch_transformer_encoder_layer_new (4, 2, NULL));
  GError *error = NULL;

  g_assert_null (gtorch_multihead_attention_new (4, 3, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "MultiheadAttention: embed_dim must be divisible by num_heads, 4 is not by 3");
  g_clear_error (&error);
  g_assert_false (gtorch_attention_forward (GTORCH_ATTENTION (layer), x, x, x, NULL, FALSE, NULL,
                                            TRUE, TRUE, &output, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_null (output);
  g_clear_error (&error);
  g_assert_false (gtorch_attention_forward (GTORCH_ATTENTION (layer), x, wide, wide, NULL, FALSE,
                                            NULL, TRUE, FALSE, &output, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_clear_error (&error);
  g_assert_null (gtorch_module_forward (layer, x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED);
  g_clear_error (&error);
  g_assert_null (gtorch_transformer_encoder_new (encoder_layer, 0, NULL, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "TransformerEncoder: num_layers must be from 1 to 65536, it is 0");
  g_clear_error (&error);
}

static void
layers_of_another_class_are_refused (void)
{
  g_autoptr (GTorchEncoder) layer =
      GTORCH_ENCODER (gtorch_transformer_encoder_layer_new (4, 2, NULL));
  g_autoptr (GTorchTransformerEncoder) encoder =
      gtorch_transformer_encoder_new_from_layers (&layer, 1, NULL, NULL);
  g_autoptr (GTorchModule) layers =
      gtorch_module_get_module (GTORCH_MODULE (encoder), "layers", NULL);
  g_autoptr (GTorchModule) relu = GTORCH_MODULE (gtorch_relu_new ());
  g_autoptr (GTorchTensor) x = waves (GTORCH_SHAPE (3, 2, 4));
  GError *error = NULL;

  gtorch_sequential_append (GTORCH_SEQUENTIAL (layers), relu, &error);
  g_assert_no_error (error);
  g_assert_null (gtorch_module_forward (GTORCH_MODULE (encoder), x, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "TransformerEncoder: a layer is of the class ReLU, not of Encoder");
  g_clear_error (&error);
  g_assert_true (gtorch_module_register_module (GTORCH_MODULE (layer), "self_attn", relu, &error));
  g_assert_null (gtorch_encoder_forward (layer, x, NULL, NULL, FALSE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_clear_error (&error);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/GTorch/Transformer/weights_are_computed_if_needed",
                   weights_are_computed_if_needed);
  g_test_add_func ("/GTorch/Transformer/the_first_values_are_those_of_pytorch",
                   the_first_values_are_those_of_pytorch);
  g_test_add_func ("/GTorch/Transformer/a_stack_has_copies", a_stack_has_copies);
  g_test_add_func ("/GTorch/Transformer/copies_learn_what_the_layer_does",
                   copies_learn_what_the_layer_does);
  g_test_add_func ("/GTorch/Transformer/hooks_run_once", hooks_run_once);
  g_test_add_func ("/GTorch/Transformer/causal_masks_admit_what_came_before",
                   causal_masks_admit_what_came_before);
  g_test_add_func ("/GTorch/Transformer/mistakes_are_named", mistakes_are_named);
  g_test_add_func ("/GTorch/Transformer/layers_of_another_class_are_refused",
                   layers_of_another_class_are_refused);
  return g_test_run ();
}
