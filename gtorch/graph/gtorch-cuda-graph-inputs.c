/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The inputs of graphs: named tensors, and replacing one tensor by another. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "graph/gtorch-cuda-graph-inputs.h"

#include "graph/gtorch-capture-private.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"
#include "tensor/gtorch-tensor-private.h"

static GTorchTensor *
find_input (GTorchCUDAGraph *self, const gchar *name, GError **error)
{
  GTorchTensor *placeholder = g_hash_table_lookup (gtorch_cuda_graph_get_table (self), name);
  g_auto (GStrv) names = NULL;
  g_autofree gchar *list = NULL;

  if (placeholder != NULL)
    return placeholder;
  names = gtorch_cuda_graph_get_input_names (self);
  list = g_strjoinv (", ", names);
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
               _ ("graph: it has no input “%s”; its inputs are [%s]"), gtorch_name_str (name),
               list);
  return NULL;
}

/* Checks that a tensor can replace the placeholder. */
static gboolean
check_like (const gchar *name, GTorchImpl *placeholder, GTorchImpl *value, gboolean strides,
            GError **error)
{
  guint i;

  if (value->storage == NULL || placeholder->storage == NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                 _ ("graph: a tensor of shape %s for input “%s” was released"),
                 gtorch_impl_shape_str (value->storage == NULL ? value : placeholder),
                 gtorch_name_str (name));
  else if (value->dtype != placeholder->dtype)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                 _ ("graph: input “%s” has dtype %s, the tensor for it %s"), gtorch_name_str (name),
                 gtorch_dtype_get_name (placeholder->dtype), gtorch_dtype_get_name (value->dtype));
  else if (!gtorch_impl_same_shape (value, placeholder))
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                 _ ("graph: input “%s” has shape %s, the tensor for it %s"), gtorch_name_str (name),
                 gtorch_impl_shape_str (placeholder), gtorch_impl_shape_str (value));
  else
    {
      for (i = 0; strides && i < value->n_dims; i++)
        if (value->shape[i] != 1 && value->strides[i] != placeholder->strides[i])
          {
            g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                         _ ("graph: input “%s” has strides %s, the tensor for it %s"),
                         gtorch_name_str (name),
                         gtorch_shape_str (placeholder->strides, placeholder->n_dims),
                         gtorch_shape_str (value->strides, value->n_dims));
            return FALSE;
          }
      return TRUE;
    }
  return FALSE;
}

/**
 * gtorch_cuda_graph_add_input:
 * @self: a graph
 * @name: a name
 * @placeholder: the tensor that captured operations read
 * @error: return location for an error
 *
 * Names a tensor that the graph reads, for [method@CUDAGraph.set_input]. The graph keeps a reference to it.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_INVALID if another one has the name or it is not
 *   UTF-8, or with %GTORCH_ERROR_RELEASED
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_add_input (GTorchCUDAGraph *self, const gchar *name, GTorchTensor *placeholder,
                             GError **error)
{
  GTORCH_HOLD_TENSOR (placeholder);
  GHashTable *table;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (placeholder), FALSE);
  if (gtorch_tensor_unwrap (placeholder)->storage == NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                   _ ("graph: the tensor of shape %s for input “%s” was released"),
                   gtorch_impl_shape_str (gtorch_tensor_unwrap (placeholder)),
                   gtorch_name_str (name));
      return FALSE;
    }
  if (!gtorch_name_check ("graph", name, error))
    return FALSE;
  table = gtorch_cuda_graph_get_table (self);
  if (g_hash_table_contains (table, name))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("graph: it has an input “%s” already"), gtorch_name_str (name));
      return FALSE;
    }
  g_hash_table_insert (table, g_strdup (name), g_object_ref (placeholder));
  return TRUE;
}

/**
 * gtorch_cuda_graph_get_input:
 * @self: a graph
 * @name: a name
 *
 * Gets the tensor that has the name.
 *
 * Returns: (transfer none) (nullable): the tensor, or %NULL
 *
 * Since: 0.1
 */
GTorchTensor *
gtorch_cuda_graph_get_input (GTorchCUDAGraph *self, const gchar *name)
{
  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), NULL);
  g_return_val_if_fail (name != NULL, NULL);
  return g_hash_table_lookup (gtorch_cuda_graph_get_table (self), name);
}

static gint
by_name (gconstpointer a, gconstpointer b)
{
  return g_strcmp0 (*(const gchar *const *) a, *(const gchar *const *) b);
}

/**
 * gtorch_cuda_graph_get_input_names:
 * @self: a graph
 *
 * Gets the names that were given to inputs.
 *
 * Returns: (transfer full): the names, sorted
 *
 * Since: 0.1
 */
gchar **
gtorch_cuda_graph_get_input_names (GTorchCUDAGraph *self)
{
  GPtrArray *names;
  GHashTableIter iter;
  gpointer name;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), NULL);
  names = g_ptr_array_new ();
  g_hash_table_iter_init (&iter, gtorch_cuda_graph_get_table (self));
  while (g_hash_table_iter_next (&iter, &name, NULL))
    g_ptr_array_add (names, g_strdup (name));
  g_ptr_array_sort (names, by_name);
  g_ptr_array_add (names, NULL);
  return (gchar **) g_ptr_array_free (names, FALSE);
}

/**
 * gtorch_cuda_graph_set_input:
 * @self: a graph
 * @name: the name of an input
 * @value: the value for the following replays
 * @error: return location for an error
 *
 * Copies a tensor into the input's placeholder, in order of the current stream. @value may be on
 * another device. For large inputs that stay where they are, [method@CUDAGraph.rebind_input] saves the copy.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_NOT_FOUND if there is no such input, with
 *   %GTORCH_ERROR_SHAPE or %GTORCH_ERROR_DTYPE if @value differs from the placeholder, or with
 *   %GTORCH_ERROR_RELEASED
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_set_input (GTorchCUDAGraph *self, const gchar *name, GTorchTensor *value,
                             GError **error)
{
  GTORCH_HOLD_TENSOR (value);
  GTorchTensor *placeholder;
  g_autoptr (GTorchImpl) plain = NULL;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (value), FALSE);
  placeholder = find_input (self, name, error);
  if (placeholder == NULL
      || !check_like (name, gtorch_tensor_unwrap (placeholder), gtorch_tensor_unwrap (value), FALSE,
                      error))
    return FALSE;
  plain = gtorch_impl_alias (gtorch_tensor_unwrap (placeholder)); /* it may require grad */
  if (gtorch_op_copy_inplace (plain, gtorch_tensor_unwrap (value), TRUE, error))
    return TRUE;
  g_prefix_error (error, _ ("graph: input “%s”: "), gtorch_name_str (name));
  return FALSE;
}

static gboolean
rebind (GTorchCUDAGraph *self, const gchar *name, GTorchImpl *from, GTorchImpl *to, GError **error)
{
  GTorchGraphExec *exec, *patched;
  gboolean result;

  if (!check_like (name, from, to, TRUE, error))
    return FALSE;
  if (gtorch_impl_device (from) != gtorch_impl_device (to))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                   _ ("graph: input “%s” is on %s, the tensor for it on %s"),
                   gtorch_name_str (name), gtorch_device_name (gtorch_impl_device (from)),
                   gtorch_device_name (gtorch_impl_device (to)));
      return FALSE;
    }
  exec = gtorch_cuda_graph_ref_exec (self, error);
  if (exec == NULL)
    return FALSE;
  patched = gtorch_graph_exec_rebind (exec, from, to, error);
  result = patched != NULL && gtorch_cuda_graph_take_exec (self, exec, patched, error);
  gtorch_graph_exec_unref (exec);
  return result;
}

/**
 * gtorch_cuda_graph_rebind:
 * @self: a graph with a capture
 * @from: a tensor that the graph reads or writes and does not compute
 * @to: another one of the same dtype, shape, strides and device
 * @error: return location for an error
 *
 * Makes the graph use @to instead of @from: the recorded operations get its address, nothing is copied.
 * Replays that are in progress still use @from.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_NOT_FOUND if the graph does not use @from, with
 *   %GTORCH_ERROR_INVALID if it uses other parts of the same memory, too, or computes @from itself,
 *   with %GTORCH_ERROR_NOT_SUPPORTED if streams of several devices took part in its capture, or with
 *   %GTORCH_ERROR_SHAPE, %GTORCH_ERROR_DTYPE or %GTORCH_ERROR_DEVICE_MISMATCH if @to differs from @from
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_rebind (GTorchCUDAGraph *self, GTorchTensor *from, GTorchTensor *to,
                          GError **error)
{
  GTORCH_HOLD_TENSOR (from);
  GTORCH_HOLD_TENSOR (to);

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (from), FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (to), FALSE);
  return rebind (self, "(unnamed)", gtorch_tensor_unwrap (from), gtorch_tensor_unwrap (to), error);
}

/**
 * gtorch_cuda_graph_rebind_input:
 * @self: a graph with a capture
 * @name: the name of an input
 * @to: a tensor like the input's placeholder
 * @error: return location for an error
 *
 * Calls [method@CUDAGraph.rebind] for a named input. The name refers to @to from then on.
 *
 * Returns: %TRUE on success; %FALSE with %GTORCH_ERROR_NOT_FOUND if there is no such input, or as
 *   [method@CUDAGraph.rebind]
 *
 * Since: 0.1
 */
gboolean
gtorch_cuda_graph_rebind_input (GTorchCUDAGraph *self, const gchar *name, GTorchTensor *to,
                                GError **error)
{
  GTORCH_HOLD_TENSOR (to);
  GTorchTensor *placeholder;

  g_return_val_if_fail (GTORCH_IS_CUDA_GRAPH (self), FALSE);
  g_return_val_if_fail (name != NULL, FALSE);
  g_return_val_if_fail (GTORCH_IS_TENSOR (to), FALSE);
  placeholder = find_input (self, name, error);
  if (placeholder == NULL
      || !rebind (self, name, gtorch_tensor_unwrap (placeholder), gtorch_tensor_unwrap (to), error))
    return FALSE;
  g_hash_table_insert (gtorch_cuda_graph_get_table (self), g_strdup (name), g_object_ref (to));
  return TRUE;
}
