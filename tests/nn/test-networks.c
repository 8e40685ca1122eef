/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Recurrent networks and packed sequences in C. */

#include "config.h"

#include <gtorch/gtorch.h>

#include "../test-device.h"

static GTorchTensor *
numbers (const gint64 *shape, gsize n_dims)
{
  gint64 n = 1;
  g_autoptr (GTorchTensor) line = NULL;
  g_autoptr (GTorchTensor) waves = NULL;

  for (gsize i = 0; i < n_dims; i++)
    n *= shape[i];
  line = gtorch_arange (0, (gdouble) n, 1, GTORCH_DTYPE_FLOAT32, test_device (), NULL);
  waves = gtorch_tensor_sin (line, NULL);
  return gtorch_tensor_reshape (waves, shape, n_dims, NULL);
}

static GTorchModule *
on_device (gpointer network)
{
  g_assert_true (gtorch_module_to (network, test_device (), GTORCH_DTYPE_NONE, NULL));
  return network;
}

static void
assert_shape (GTorchTensor *tensor, gint64 a, gint64 b, gint64 c)
{
  gsize n_dims;
  const gint64 *shape = gtorch_tensor_get_shape (tensor, &n_dims);

  g_assert_cmpuint (n_dims, ==, 3);
  g_assert_cmpint (shape[0], ==, a);
  g_assert_cmpint (shape[1], ==, b);
  g_assert_cmpint (shape[2], ==, c);
}

static gboolean
are_close (GTorchTensor *a, GTorchTensor *b)
{
  gboolean close = FALSE;
  g_autoptr (GTorchTensor) difference = gtorch_tensor_sub (a, b, 1, NULL);
  g_autoptr (GTorchTensor) size = gtorch_tensor_abs (difference, NULL);
  g_autoptr (GTorchTensor) most = gtorch_tensor_max (size, NULL);

  close = gtorch_tensor_item_double (most, NULL) < 1e-5;
  return close;
}

static void
run_gives_the_output_and_the_states (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchLSTM) lstm = gtorch_lstm_layer_new (3, 4, &error);
  g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (5, 2, 3));
  g_autoptr (GPtrArray) results = NULL;
  g_autoptr (GPtrArray) again = NULL;
  g_autoptr (GTorchTensor) alone = NULL;
  g_autoptr (GTorchTensor) given = NULL;
  GTorchTensor *inputs[3];

  g_assert_no_error (error);
  on_device (lstm);
  results = gtorch_rnn_base_run (GTORCH_RNN_BASE (lstm), x, NULL, 0, NULL, 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (results->len, ==, 3);
  assert_shape (results->pdata[0], 5, 2, 4);
  assert_shape (results->pdata[1], 1, 2, 4);
  assert_shape (results->pdata[2], 1, 2, 4);
  alone = gtorch_module_forward (GTORCH_MODULE (lstm), x, &error);
  g_assert_no_error (error);
  g_assert_true (are_close (alone, results->pdata[0]));
  again = gtorch_rnn_base_compute (GTORCH_RNN_BASE (lstm), x, NULL, 0,
                                   (GTorchTensor **) results->pdata + 1, 2, &error);
  g_assert_no_error (error);
  inputs[0] = x;
  inputs[1] = results->pdata[1];
  inputs[2] = results->pdata[2];
  given = gtorch_module_forward_many (GTORCH_MODULE (lstm), inputs, 3, &error);
  g_assert_no_error (error);
  g_assert_true (are_close (given, again->pdata[0]));
  g_assert_false (are_close (given, alone));
}

static void
wrong_states_are_named (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchGRU) gru = gtorch_gru_layer_new (3, 4, NULL);
  g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (5, 2, 3));
  g_autoptr (GTorchTensor) h = numbers (GTORCH_SHAPE (1, 3, 4));
  GTorchTensor *states[] = { h, h };
  const gint64 sizes[] = { 2, 3 };

  on_device (gru);
  g_assert_null (gtorch_rnn_base_run (GTORCH_RNN_BASE (gru), x, NULL, 0, states, 1, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==, "GRU: the hidden state is [1, 3, 4]: it must be [1, 2, 4]");
  g_clear_error (&error);
  g_assert_null (gtorch_rnn_base_run (GTORCH_RNN_BASE (gru), x, NULL, 0, states, 2, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==, "GRU: 2 states were given: there must be none, or 1");
  g_clear_error (&error);
  g_assert_null (gtorch_rnn_base_run (GTORCH_RNN_BASE (gru), x, sizes, 2, NULL, 0, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==, "GRU: packed sequences [5, 2, 3] must have 2 dimensions");
}

static void
packed_sequences_are_computed_without_padding (void)
{
  const gint64 lengths[] = { 2, 5 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchLSTM) lstm = gtorch_lstm_layer_new (3, 4, NULL);
  g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (5, 2, 3));
  g_autoptr (GTorchTensor) one = gtorch_tensor_narrow (x, 1, 0, 1, NULL);
  g_autoptr (GTorchTensor) first = gtorch_tensor_narrow (one, 0, 0, 2, NULL);
  g_autoptr (GTorchPackedSequence) packed = NULL;
  g_autoptr (GTorchPackedSequence) output = NULL;
  g_autoptr (GPtrArray) last = NULL;
  g_autoptr (GTorchTensor) y = NULL;
  g_autoptr (GTorchTensor) their_lengths = NULL;
  g_autoptr (GTorchTensor) column = NULL;
  g_autoptr (GTorchTensor) rows = NULL;
  g_autoptr (GTorchTensor) alone = NULL;

  on_device (lstm);
  packed = gtorch_pack_padded_sequence (x, lengths, 2, FALSE, FALSE, &error);
  g_assert_no_error (error);
  output = gtorch_packed_sequence_run (packed, GTORCH_RNN_BASE (lstm), NULL, 0, &last, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (last->len, ==, 2);
  assert_shape (last->pdata[0], 1, 2, 4);
  y = gtorch_pad_packed_sequence (output, FALSE, 0, GTORCH_NONE, &their_lengths, &error);
  g_assert_no_error (error);
  assert_shape (y, 5, 2, 4);
  column = gtorch_tensor_narrow (y, 1, 0, 1, NULL);
  rows = gtorch_tensor_narrow (column, 0, 0, 2, NULL);
  alone = gtorch_module_forward (GTORCH_MODULE (lstm), first, &error);
  g_assert_no_error (error);
  g_assert_true (are_close (rows, alone));
}

static void
wrong_lengths_are_named (void)
{
  const gint64 ascending[] = { 2, 5 }, empty[] = { 5, 0 };
  g_autoptr (GError) error = NULL;
  g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (5, 2, 3));

  g_assert_null (gtorch_pack_padded_sequence (x, ascending, 2, FALSE, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "pack_padded_sequence: length 5 of sequence 1 is greater than the one before: "
                   "with enforce_sorted, lengths must be in descending order");
  g_clear_error (&error);
  g_assert_null (gtorch_pack_padded_sequence (x, empty, 2, FALSE, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID);
  g_assert_cmpstr (error->message, ==,
                   "pack_padded_sequence: length 0 of sequence 1 must be from 1 to 5");
  g_clear_error (&error);
  g_assert_null (gtorch_pack_padded_sequence (x, empty, 1, FALSE, TRUE, &error));
  g_assert_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE);
  g_assert_cmpstr (error->message, ==,
                   "pack_padded_sequence: there are 1 lengths for a batch of 2");
}

/* A processor computes blocks of a batch by themselves. */
static void
elements_of_a_batch_are_independent (void)
{
  const GType types[] = { GTORCH_TYPE_RNN_LAYER, GTORCH_TYPE_LSTM_LAYER, GTORCH_TYPE_GRU_LAYER };

  for (guint i = 0; i < G_N_ELEMENTS (types); i++)
    {
      g_autoptr (GError) error = NULL;
      g_autoptr (GTorchModule) network =
          gtorch_module_new (types[i], &error, "input-size", (gint64) 3, "hidden-size", (gint64) 4,
                             "num-layers", (gint64) 2, "bidirectional", TRUE, NULL);
      g_autoptr (GTorchTensor) x = numbers (GTORCH_SHAPE (5, 37, 3));
      g_autoptr (GTorchTensor) whole = NULL;

      g_assert_no_error (error);
      on_device (network);
      whole = gtorch_module_forward (network, x, &error);
      g_assert_no_error (error);
      for (gint64 first = 0; first < 36; first += 5)
        {
          g_autoptr (GTorchTensor) two = gtorch_tensor_narrow (x, 1, first, 2, NULL);
          g_autoptr (GTorchTensor) expected = gtorch_tensor_narrow (whole, 1, first, 2, NULL);
          g_autoptr (GTorchTensor) y = gtorch_module_forward (network, two, &error);

          g_assert_no_error (error);
          g_assert_true (are_close (y, expected));
        }
    }
}

#define ADD(name) g_test_add_func ("/GTorch/Networks/" #name, name)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD (run_gives_the_output_and_the_states);
  ADD (wrong_states_are_named);
  ADD (packed_sequences_are_computed_without_padding);
  ADD (wrong_lengths_are_named);
  ADD (elements_of_a_batch_are_independent);
  return g_test_run ();
}
