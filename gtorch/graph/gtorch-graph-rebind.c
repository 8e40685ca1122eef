/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Replaces operands of a graph. */

#include "config.h"

#include <glib/gi18n-lib.h>

#include "stream/gtorch-stream-private.h"
#include "graph/gtorch-graph-exec-private.h"
#include "dispatch/gtorch-saved-call-private.h"

typedef struct
{
  GTorchImpl *from, *to;
  const gchar *outside; /* an operation that uses memory outside `from`, or NULL */
  guint n_patched;
} Rebinding;

static const GTorchImpl *
nth_operand (const GTorchOpCall *call, guint i)
{
  return i < call->n_inputs ? call->inputs[i] : call->outputs[i - call->n_inputs];
}

static gboolean
node_uses (const GTorchGraphNode *node, const GTorchStorage *storage)
{
  const GTorchOpCall *call = &node->call->call;
  guint i;

  for (i = 0; i < call->n_inputs + call->n_outputs; i++)
    if (nth_operand (call, i) != NULL && nth_operand (call, i)->storage == storage)
      return TRUE;
  return FALSE;
}

/* Returns the byte offset of the operand within `from`, or a negative number if it is not entirely
 * inside. */
static gint64
place_in (const GTorchImpl *from, const GTorchImpl *operand)
{
  gint64 size = gtorch_dtype_size (operand->dtype), from_size = gtorch_dtype_size (from->dtype);
  gint64 start = from->offset * from_size;
  gint64 end = gtorch_strides_extent (from->offset, from->shape, from->strides, from->n_dims);
  gint64 operand_end =
      gtorch_strides_extent (operand->offset, operand->shape, operand->strides, operand->n_dims);

  if (operand->offset * size < start || operand_end * size > end * from_size)
    return -1;
  return operand->offset * size - start;
}

static GTorchImpl *
rebind_operand (GTorchImpl *operand, gpointer data)
{
  Rebinding *rebinding = data;
  gint64 size = gtorch_dtype_size (operand->dtype), place;

  if (operand->storage != rebinding->from->storage)
    return gtorch_impl_alias (operand);
  place = place_in (rebinding->from, operand)
          + rebinding->to->offset * (gint64) gtorch_dtype_size (rebinding->to->dtype);
  return gtorch_impl_new_strided (rebinding->to->storage, operand->dtype, place / size,
                                  operand->shape, operand->strides, operand->n_dims);
}

static gboolean
can_rebind (const GTorchGraphNode *node, Rebinding *rebinding)
{
  const GTorchOpCall *call = &node->call->call;
  guint i;

  for (i = 0; i < call->n_inputs + call->n_outputs; i++)
    {
      const GTorchImpl *operand = nth_operand (call, i);

      if (operand != NULL && operand->storage == rebinding->from->storage
          && place_in (rebinding->from, operand) < 0)
        {
          rebinding->outside = call->op->name;
          return FALSE;
        }
    }
  return TRUE;
}

static GTorchImpl *
rebind_predicate (GTorchImpl *predicate, Rebinding *rebinding)
{
  if (predicate->storage == rebinding->from->storage)
    {
      if (place_in (rebinding->from, predicate) < 0)
        {
          rebinding->outside = _ ("the predicate of a branch");
          return NULL;
        }
      rebinding->n_patched++;
    }
  return rebind_operand (predicate, rebinding);
}

/* Copies the graph with replaced operands. Nodes that do not use `from` are shared; replays in progress use
 * the former graph. */
static GTorchGraphExec *
exec_rebind (GTorchGraphExec *exec, Rebinding *rebinding)
{
  GTorchGraphExec *result = gtorch_graph_exec_new (exec->device, exec->pool);
  guint i;

  result->number = exec->number;
  result->capture = exec->capture;
  result->n_random = exec->n_random;
  result->has_children = exec->has_children;
  result->backend = exec->backend;

  for (i = 0; i < exec->nodes->len && rebinding->outside == NULL; i++)
    {
      GTorchGraphNode *node = exec->nodes->pdata[i];
      GTorchGraphNode *other = node;

      if (node->child != NULL)
        {
          other = gtorch_graph_node_new ();
          other->child = exec_rebind (node->child, rebinding);
          if (node->predicate != NULL)
            other->predicate = rebind_predicate (node->predicate, rebinding);
        }
      else if (node_uses (node, rebinding->from->storage) && can_rebind (node, rebinding))
        {
          other = gtorch_graph_node_new ();
          other->call = gtorch_saved_call_new (&node->call->call, rebind_operand, rebinding);
          rebinding->n_patched++;
        }
      else
        g_atomic_int_inc (&node->ref_count);
      other->random = node->random;
      g_ptr_array_add (result->nodes, other);
    }
  return result;
}

/* Captures the graph once more, one operation after the other, since only the device's libraries know where
 * a captured graph contains addresses. Workspaces of operations cannot come from the graph's pool this
 * time, which may reuse their memory for intermediate results; they come from `scratch`. */
static gboolean
capture_again (GTorchGraphExec *exec, GError **error)
{
  g_autoptr (GTorchStream) stream = gtorch_stream_new (exec->device, 0, error);
  gboolean result = FALSE;
  gpointer capture;

  if (stream == NULL)
    return FALSE;
  exec->scratch = gtorch_pool_new (exec->device);
  gtorch_pool_set_graph (exec->scratch, TRUE);
  g_atomic_int_inc (&gtorch_n_captures);
  gtorch_pool_set_capturing (exec->scratch, TRUE);
  capture = exec->backend->begin (stream, exec->scratch, GTORCH_CAPTURE_MODE_RELAXED, error);
  if (capture != NULL)
    {
      GTorchChange change;

      gtorch_change_to_stream (&change, exec->device, stream);
      result = gtorch_graph_exec_launch (exec, capture, stream, 0, error);
      gtorch_change_end (&change);
      exec->native = exec->backend->end (capture, result ? error : NULL);
    }
  gtorch_pool_set_capturing (exec->scratch, FALSE);
  g_atomic_int_add (&gtorch_n_captures, -1);
  return result && exec->native != NULL;
}

GTorchGraphExec *
gtorch_graph_exec_rebind (GTorchGraphExec *exec, GTorchImpl *from, GTorchImpl *to, GError **error)
{
  Rebinding rebinding = { .from = from, .to = to };
  GTorchGraphExec *result;

  if (gtorch_pool_of (from->storage) != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                   _ ("graph: the tensor of shape %s is computed by a graph: only those from "
                      "outside "
                      "can be replaced"),
                   gtorch_impl_shape_str (from));
      return NULL;
    }
  if (gtorch_graph_exec_get_n_foreign (exec) > 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("graph: it has %u nodes that the library did not launch, whose inputs cannot "
                      "be replaced"),
                   gtorch_graph_exec_get_n_foreign (exec));
      return NULL;
    }
  if (!gtorch_graph_exec_check_whole (exec, _ ("its inputs cannot be replaced"), error))
    return NULL;
  result = exec_rebind (exec, &rebinding);
  if (rebinding.outside != NULL)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                 _ ("graph: %s uses more of the memory than the tensor of shape %s: rebind "
                    "a tensor that covers all of it"),
                 rebinding.outside, gtorch_impl_shape_str (from));
  else if (rebinding.n_patched == 0)
    g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_FOUND,
                 _ ("graph: it does not use the tensor of shape %s"), gtorch_impl_shape_str (from));
  else if (exec->native == NULL || capture_again (result, error))
    return result;
  gtorch_graph_exec_unref (result);
  return NULL;
}
