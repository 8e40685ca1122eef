/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include "nn/gtorch-rnn-base.h"

#include <glib/gi18n-lib.h>

#include "base/gtorch-stack-private.h"
#include "nn/gtorch-rnn-private.h"

/**
 * GTorchRNNBase:
 *
 * A recurrent network, or one step of it: a module with states, which it takes beside the input and gives
 * beside the output.
 *
 * [method@RNNBase.run] has all of them. [method@Module.forward] starts with states that are zero and
 * gives the output alone, so that a network can be a part of a [class@Sequential];
 * [method@Module.forward_many] takes the first states behind the input.
 *
 * Since: 0.1
 */

G_DEFINE_ABSTRACT_TYPE (GTorchRNNBase, gtorch_rnn_base, GTORCH_TYPE_MODULE)

static GPtrArray *
run_class (GTorchRNNBase *self, GTorchTensor *input, const gint64 *batch_sizes, gsize n_batch_sizes,
           GTorchTensor **states, gsize n_states, GError **error)
{
  GTorchRNNBaseRun run = GTORCH_RNN_BASE_GET_CLASS (self)->run;

  if (run != NULL)
    return run (self, input, batch_sizes, n_batch_sizes, states, n_states, error);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
               _ ("%s: it is no network of the library, which alone can compute here"),
               gtorch_module_type_name (self));
  return NULL;
}

static GTorchTensor *
gtorch_rnn_base_forward_many (GTorchModule *module, GTorchTensor **inputs, gsize n_inputs,
                              GError **error)
{
  g_autoptr (GPtrArray) results = NULL;

  if (n_inputs == 0)
    return GTORCH_MODULE_CLASS (gtorch_rnn_base_parent_class)
        ->forward_many (module, inputs, n_inputs, error);
  results =
      run_class (GTORCH_RNN_BASE (module), inputs[0], NULL, 0, inputs + 1, n_inputs - 1, error);
  return results != NULL ? g_object_ref (results->pdata[0]) : NULL;
}

static GTorchTensor *
gtorch_rnn_base_forward (GTorchModule *module, GTorchTensor *input, GError **error)
{
  return gtorch_rnn_base_forward_many (module, &input, 1, error);
}

static void
gtorch_rnn_base_class_init (GTorchRNNBaseClass *klass)
{
  GTORCH_MODULE_CLASS (klass)->forward = gtorch_rnn_base_forward;
  GTORCH_MODULE_CLASS (klass)->forward_many = gtorch_rnn_base_forward_many;
}

static void
gtorch_rnn_base_init (GTorchRNNBase *self)
{
}

static gboolean
can_run (GTorchRNNBase *self, GTorchTensor **states, gsize n_states, GError **error)
{
  for (gsize i = 0; i < n_states; i++)
    if (!GTORCH_IS_TENSOR (states[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("%s: run: state %zu is no tensor"), gtorch_module_type_name (self), i);
        return FALSE;
      }
  return gtorch_module_is_usable (GTORCH_MODULE (self), error)
         && (G_LIKELY (!gtorch_stack_is_low ())
             || gtorch_stack_check (gtorch_module_type_name (self), error));
}

/**
 * gtorch_rnn_base_run:
 * @self: a recurrent network
 * @input: the input
 * @batch_sizes: (array length=n_batch_sizes) (nullable): for packed sequences, the number of elements of each
 *   step
 * @n_batch_sizes: the length of @batch_sizes, 0 if @input is not packed
 * @states: (array length=n_states) (nullable): the first states: none for zeros; else the hidden state, and
 *   the cell of an LSTM
 * @n_states: the length of @states
 * @error: return location for an error
 *
 * Computes the output and the last states.
 *
 * The results of [class@RNN] and [class@GRU] are the output and the hidden state, those of [class@LSTM] the
 * output, the hidden state and the cell, those of [class@RNNCell] and [class@GRUCell] the hidden state, and
 * those of [class@LSTMCell] the hidden state and the cell. Forward hooks of the module get, and may replace,
 * the first of them.
 *
 * With @batch_sizes, the rows of @input are the elements of all steps, one step after the other: of sequences
 * in descending order of their lengths. So are the rows of the output.
 *
 * ```c
 * g_autoptr (GTorchLSTM) lstm = gtorch_lstm_layer_new (3, 4, &error);
 * g_autoptr (GPtrArray) results =
 *     gtorch_rnn_base_run (GTORCH_RNN_BASE (lstm), x, NULL, 0, NULL, 0, &error);
 * ```
 *
 * Returns: (transfer container) (element-type GTorchTensor): the output and the states, or %NULL with
 *   %GTORCH_ERROR_SHAPE or the error of the module
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_rnn_base_run (GTorchRNNBase *self, GTorchTensor *input, const gint64 *batch_sizes,
                     gsize n_batch_sizes, GTorchTensor **states, gsize n_states, GError **error)
{
  GTorchModule *module = (GTorchModule *) self;
  g_autoptr (GPtrArray) hooks = NULL;
  g_autoptr (GPtrArray) inputs = NULL;
  g_autoptr (GPtrArray) seen = NULL;
  g_autoptr (GTorchFunction) of_inputs = NULL;
  g_autoptr (GTorchFunction) of_outputs = NULL;
  GPtrArray *results = NULL;
  GTorchTensor *output;

  g_return_val_if_fail (GTORCH_IS_RNN_BASE (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);
  g_return_val_if_fail (batch_sizes != NULL || n_batch_sizes == 0, NULL);
  g_return_val_if_fail (states != NULL || n_states == 0, NULL);
  if (!can_run (self, states, n_states, error))
    return NULL;
  hooks = gtorch_module_dup_hooks (module);
  if (G_LIKELY (hooks == NULL))
    return run_class (self, input, batch_sizes, n_batch_sizes, states, n_states, error);
  inputs = g_ptr_array_new ();
  g_ptr_array_add (inputs, input);
  for (gsize i = 0; i < n_states; i++)
    g_ptr_array_add (inputs, states[i]);
  seen = gtorch_module_run_pre_hooks (module, hooks, (GTorchTensor **) inputs->pdata, inputs->len,
                                      error);
  if (seen == NULL)
    return NULL;
  if (seen->len == 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID, _ ("%s: a hook left no input"),
                   gtorch_module_type_name (self));
      return NULL;
    }
  of_inputs = gtorch_module_make_backward_hooks (module, hooks, &of_outputs);
  if (of_inputs == NULL || gtorch_module_apply_hooks (of_inputs, seen, error))
    results = run_class (self, seen->pdata[0], batch_sizes, n_batch_sizes,
                         (GTorchTensor **) seen->pdata + 1, seen->len - 1, error);
  if (results == NULL)
    {
      gtorch_module_run_always (module, hooks, 0, (GTorchTensor **) seen->pdata, seen->len, NULL);
      return NULL;
    }
  output = gtorch_module_run_hooks (module, hooks, seen, g_object_ref (results->pdata[0]), error);
  if (output == NULL)
    {
      g_ptr_array_unref (results);
      return NULL;
    }
  g_object_unref (results->pdata[0]);
  results->pdata[0] = output;
  if (of_inputs != NULL && !gtorch_module_apply_hooks (of_outputs, results, error))
    g_clear_pointer (&results, g_ptr_array_unref);
  return results;
}

/**
 * gtorch_rnn_base_compute:
 * @self: a recurrent network
 * @input: the input
 * @batch_sizes: (array length=n_batch_sizes) (nullable): for packed sequences, the number of elements of each
 *   step
 * @n_batch_sizes: the length of @batch_sizes, 0 if @input is not packed
 * @states: (array length=n_states) (nullable): the first states
 * @n_states: the length of @states
 * @error: return location for an error
 *
 * Does what [method@RNNBase.run] does without the hooks of the module, for a class that computes something
 * else of it in `forward`, around which hooks run.
 *
 * Returns: (transfer container) (element-type GTorchTensor): the output and the states, or %NULL with
 *   %GTORCH_ERROR_SHAPE or the error of the module
 *
 * Since: 0.1
 */
GPtrArray *
gtorch_rnn_base_compute (GTorchRNNBase *self, GTorchTensor *input, const gint64 *batch_sizes,
                         gsize n_batch_sizes, GTorchTensor **states, gsize n_states, GError **error)
{
  g_return_val_if_fail (GTORCH_IS_RNN_BASE (self), NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);
  g_return_val_if_fail (batch_sizes != NULL || n_batch_sizes == 0, NULL);
  g_return_val_if_fail (states != NULL || n_states == 0, NULL);
  if (!can_run (self, states, n_states, error))
    return NULL;
  return run_class (self, input, batch_sizes, n_batch_sizes, states, n_states, error);
}

/**
 * gtorch_rnn_base_flatten_parameters:
 * @self: a recurrent network
 *
 * Does nothing, since parameters may lie anywhere: cuDNN, which needs them in one piece, gets a copy of them
 * in each forward pass. It is there for programs that call PyTorch's function of this name.
 *
 * Since: 0.1
 */
void
gtorch_rnn_base_flatten_parameters (GTorchRNNBase *self)
{
  g_return_if_fail (GTORCH_IS_RNN_BASE (self));
}
