/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Checkpoints of modules. */

#include "config.h"

#include "nn/gtorch-module-checkpoint.h"

#include <glib/gi18n-lib.h>

#include "autograd/gtorch-checkpoint.h"
#include "nn/gtorch-module-private.h"

/* Calls modules one after the other, the first of them with all inputs. */
static GTorchTensor *
call_modules (GPtrArray *modules, GTorchTensor **inputs, gsize n_inputs, GError **error)
{
  g_autoptr (GTorchTensor) value = n_inputs == 1 ? g_object_ref (inputs[0]) : NULL;
  guint i;

  for (i = 0; i < modules->len; i++)
    {
      GTorchTensor *output = i == 0
                                 ? gtorch_module_call (modules->pdata[i], inputs, n_inputs, error)
                                 : gtorch_module_forward (modules->pdata[i], value, error);

      if (output == NULL)
        return NULL;
      g_clear_object (&value);
      value = output;
    }
  return g_steal_pointer (&value);
}

static GPtrArray *
call_segment (GTorchTensor **inputs, gsize n_inputs, gpointer modules, GError **error)
{
  GTorchTensor *output = call_modules (modules, inputs, n_inputs, error);
  GPtrArray *outputs;

  if (output == NULL)
    return NULL;
  outputs = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (outputs, output);
  return outputs;
}

/* Takes ownership of the list of modules. */
static GTorchTensor *
checkpoint (GPtrArray *modules, GTorchTensor **inputs, gsize n_inputs, gboolean use_reentrant,
            gboolean preserve_rng_state, gboolean determinism_check, gboolean early_stop,
            GError **error)
{
  g_autoptr (GPtrArray) outputs =
      gtorch_checkpoint (call_segment, modules, (GDestroyNotify) g_ptr_array_unref, inputs,
                         n_inputs, use_reentrant, preserve_rng_state, determinism_check, early_stop,
                         error);

  return outputs != NULL ? g_object_ref (outputs->pdata[0]) : NULL;
}

/**
 * gtorch_module_checkpoint:
 * @self: a module
 * @inputs: (array length=n_inputs): its inputs
 * @n_inputs: the length of @inputs
 * @use_reentrant: which kind of checkpoint; %FALSE has fewer limits
 * @preserve_rng_state: draw the same random numbers again
 * @determinism_check: compare operations, dtypes, shapes and devices of what is saved both times
 * @early_stop: end the second call as soon as it has computed all that is needed
 * @error: return location for an error
 *
 * Calls the module, and calls it again in the backward pass instead of keeping what its operations save:
 * [func@checkpoint] says what the arguments mean.
 *
 * What the module counts in its buffers, such as [class@BatchNorm1d], it counts both times. The second call
 * computes with the tensors that the first one has used: in a replica ([func@replicate],
 * [class@DataParallel]) with those of the replica, and within a call of a module with [class@ModuleShards]
 * with whole parameters, which are gathered for it.
 *
 * ```c
 * y = gtorch_module_checkpoint (block, &x, 1, FALSE, TRUE, TRUE, TRUE, &error);
 * ```
 *
 * Returns: (transfer full): the output, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_module_checkpoint (GTorchModule *self, GTorchTensor **inputs, gsize n_inputs,
                          gboolean use_reentrant, gboolean preserve_rng_state,
                          gboolean determinism_check, gboolean early_stop, GError **error)
{
  GPtrArray *modules;

  g_return_val_if_fail (GTORCH_IS_MODULE (self), NULL);
  g_return_val_if_fail (inputs != NULL || n_inputs == 0, NULL);
  modules = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (modules, g_object_ref (self));
  return checkpoint (modules, inputs, n_inputs, use_reentrant, preserve_rng_state,
                     determinism_check, early_stop, error);
}

/**
 * gtorch_checkpoint_sequential:
 * @modules: (array length=n_modules): modules, each of which gets the output of the one before it
 * @n_modules: the length of @modules
 * @segments: into how many parts to divide them, at least 1 and at most @n_modules
 * @input: the input of the first one
 * @use_reentrant: which kind of checkpoint; %FALSE has fewer limits
 * @preserve_rng_state: draw the same random numbers again
 * @error: return location for an error
 *
 * Calls modules one after the other, with a checkpoint for each part but the last: [func@checkpoint].
 *
 * The parts have as many modules each; the last one has the rest, too.
 *
 * Returns: (transfer full): the output of the last module, or %NULL with @error set
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_checkpoint_sequential (GTorchModule **modules, gsize n_modules, guint segments,
                              GTorchTensor *input, gboolean use_reentrant,
                              gboolean preserve_rng_state, GError **error)
{
  g_autoptr (GTorchTensor) value = NULL;
  g_autoptr (GPtrArray) rest = NULL;
  gsize i, each, start = 0;

  g_return_val_if_fail (modules != NULL || n_modules == 0, NULL);
  g_return_val_if_fail (GTORCH_IS_TENSOR (input), NULL);
  for (i = 0; i < n_modules; i++)
    if (!GTORCH_IS_MODULE (modules[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                     _ ("checkpoint_sequential: %zu is not a module"), i);
        return NULL;
      }
  if (segments < 1 || segments > n_modules)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("checkpoint_sequential: %u segments of %zu modules: there must be 1 at "
                      "least, and a module for each"),
                   segments, n_modules);
      return NULL;
    }
  each = n_modules / segments;
  value = g_object_ref (input);
  for (; start < each * (segments - 1); start += each)
    {
      GPtrArray *part = g_ptr_array_new_with_free_func (g_object_unref);
      GTorchTensor *output;

      for (i = start; i < start + each; i++)
        g_ptr_array_add (part, g_object_ref (modules[i]));
      output = checkpoint (part, &value, 1, use_reentrant, preserve_rng_state, TRUE, TRUE, error);
      if (output == NULL)
        return NULL;
      g_object_unref (value);
      value = output;
    }
  rest = g_ptr_array_new_with_free_func (g_object_unref);
  for (i = start; i < n_modules; i++)
    g_ptr_array_add (rest, g_object_ref (modules[i]));
  return call_modules (rest, &value, 1, error);
}
