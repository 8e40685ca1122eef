/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The backward pass. First the part of the graph below the roots is walked, counting for each node how many
 * gradients will arrive. Then nodes run as soon as all theirs have, those that were made last
 * first: that
 * order never waits and is the same each time. A leaf is treated as a node without edges, so that
 * all its
 * gradients are summed before they are added to its grad and hooks run once. Nothing here
 * recurses. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "gtorch-autograd-private.h"
#include "gtorch-grad-mode.h"
#include "gtorch-ops-private.h"

typedef struct
{
  GTorchNode *node; /* or */
  GTorchImpl *leaf;
  guint waiting;      /* gradients that are still to arrive */
  gboolean is_needed; /* it leads to one of the wanted inputs */
  gboolean *owned;    /* whether buffers[i] is ours alone and may be added to */
  GTorchImpl **buffers;
} Task;

typedef struct
{
  GHashTable *tasks; /* node or leaf -> Task */
  GPtrArray *order;  /* nodes, by sequence, while counting */
  GPtrArray *ready;  /* a heap of nodes */
  GTorchImpl *const *inputs;
  GTorchImpl **results;
  guint n_inputs;
  gboolean create_graph;
} Run;

static guint
task_outputs (const Task *task)
{
  return task->node != NULL ? task->node->n_outputs : 1;
}

static void
task_free (gpointer data)
{
  Task *task = data;

  gtorch_impl_clear (task->buffers, task_outputs (task));
  g_free (task->buffers);
  g_free (task->owned);
  if (task->node != NULL)
    gtorch_node_unref (task->node);
  if (task->leaf != NULL)
    gtorch_impl_unref (task->leaf);
  g_free (task);
}

static Task *
find_task (Run *run, const GTorchEdge *edge)
{
  return g_hash_table_lookup (run->tasks, edge->node != NULL ? (gpointer) edge->node : edge->leaf);
}

/* Finds the task of an edge or makes it; TRUE if it is new. */
static gboolean
add_task (Run *run, const GTorchEdge *edge, Task **result)
{
  Task *task = find_task (run, edge);
  gboolean is_new = task == NULL;
  guint n;

  if (is_new)
    {
      task = g_new0 (Task, 1);
      task->node = edge->node != NULL ? gtorch_node_ref (edge->node) : NULL;
      task->leaf = edge->node == NULL ? gtorch_impl_ref (edge->leaf) : NULL;
      n = task_outputs (task);
      task->buffers = g_new0 (GTorchImpl *, n);
      task->owned = g_new0 (gboolean, n);
      g_hash_table_insert (run->tasks, edge->node != NULL ? (gpointer) edge->node : edge->leaf,
                           task);
      if (task->node != NULL)
        g_ptr_array_add (run->order, task);
    }
  *result = task;
  return is_new;
}

static gint
by_sequence (gconstpointer a, gconstpointer b)
{
  const Task *x = *(const Task *const *) a, *y = *(const Task *const *) b;

  return x->node->sequence < y->node->sequence ? -1 : x->node->sequence > y->node->sequence;
}

static gboolean
is_wanted (Run *run, const GTorchEdge *edge)
{
  guint i;

  for (i = 0; i < run->n_inputs; i++)
    {
      const GTorchImpl *input = run->inputs[i];

      if (edge->node != NULL ? input->autograd != NULL && input->autograd->grad_fn == edge->node
                                   && input->autograd->index == edge->index
                             : input == edge->leaf)
        return TRUE;
    }
  return FALSE;
}

static void
walk (Run *run, const GTorchEdge *roots, guint n_roots)
{
  guint i, j;
  Task *task;

  for (i = 0; i < n_roots; i++)
    add_task (run, &roots[i], &task);
  for (i = 0; i < run->order->len; i++)
    {
      GTorchNode *node = ((Task *) run->order->pdata[i])->node;

      for (j = 0; j < node->n_edges; j++)
        if (node->edges[j].node != NULL || node->edges[j].leaf != NULL)
          {
            add_task (run, &node->edges[j], &task);
            task->waiting++;
          }
    }
  g_ptr_array_sort (run->order, by_sequence);
  /* Edges lead to older nodes, which have been decided when a node is looked at. */
  for (i = 0; i < run->order->len; i++)
    {
      Task *current = run->order->pdata[i];

      current->is_needed = run->n_inputs == 0;
      for (j = 0; j < current->node->n_edges && !current->is_needed; j++)
        {
          const GTorchEdge *edge = &current->node->edges[j];

          if (edge->node == NULL && edge->leaf == NULL)
            continue;
          current->is_needed =
              is_wanted (run, edge) || (edge->node != NULL && find_task (run, edge)->is_needed);
        }
    }
}

static void
push_ready (Run *run, Task *task)
{
  GPtrArray *heap = run->ready;
  guint i = heap->len;

  g_ptr_array_add (heap, task);
  while (i > 0 && ((Task *) heap->pdata[(i - 1) / 2])->node->sequence < task->node->sequence)
    {
      heap->pdata[i] = heap->pdata[(i - 1) / 2];
      i = (i - 1) / 2;
    }
  heap->pdata[i] = task;
}

static Task *
pop_ready (Run *run)
{
  GPtrArray *heap = run->ready;
  Task *top = heap->pdata[0];
  Task *last = heap->pdata[heap->len - 1];
  guint i = 0, n = heap->len - 1;

  g_ptr_array_set_size (heap, n);
  while (2 * i + 1 < n)
    {
      guint child = 2 * i + 1;

      if (child + 1 < n
          && ((Task *) heap->pdata[child + 1])->node->sequence
                 > ((Task *) heap->pdata[child])->node->sequence)
        child++;
      if (((Task *) heap->pdata[child])->node->sequence < last->node->sequence)
        break;
      heap->pdata[i] = heap->pdata[child];
      i = child;
    }
  if (n > 0)
    heap->pdata[i] = last;
  return top;
}

/* Adds grad, whose reference is taken, to what has arrived. */
static gboolean
receive (Run *run, Task *task, guint index, GTorchImpl *grad, GError **error)
{
  GTorchImpl *sum;

  if (task->buffers[index] == NULL)
    {
      task->buffers[index] = grad;
      return TRUE;
    }
  if (task->owned[index] && !run->create_graph)
    {
      gboolean success = gtorch_op_add_inplace (task->buffers[index], grad, 1.0, error);

      gtorch_impl_unref (grad);
      return success;
    }
  sum = gtorch_op_add (task->buffers[index], grad, 1.0, error);
  gtorch_impl_unref (grad);
  if (sum == NULL)
    return FALSE;
  gtorch_impl_unref (task->buffers[index]);
  task->buffers[index] = sum;
  task->owned[index] = TRUE;
  return TRUE;
}

static gboolean
run_hooks (GArray *hooks, guint index, GTorchImpl **grad, GError **error)
{
  guint i;

  for (i = 0; hooks != NULL && i < hooks->len; i++)
    {
      GTorchHook *hook = &g_array_index (hooks, GTorchHook, i);
      GTorchImpl *changed;

      if (hook->index != index || hook->func == NULL || *grad == NULL)
        continue;
      changed = ((GTorchHookFunc) hook->func) (*grad, hook->user_data);
      if (changed == NULL)
        continue;
      if (!gtorch_impl_same_shape (changed, *grad))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("backward: a hook changed a gradient of shape %s into one of shape %s"),
                       gtorch_impl_shape_str (*grad), gtorch_impl_shape_str (changed));
          gtorch_impl_unref (changed);
          return FALSE;
        }
      gtorch_impl_unref (*grad);
      *grad = changed;
    }
  return TRUE;
}

/* Several threads may go backward through graphs that share leaves. */
static GMutex accumulate_lock;

static gboolean
accumulate (Run *run, GTorchImpl *leaf, GTorchImpl *grad, GError **error)
{
  GTorchAutograd *autograd = gtorch_autograd_ensure (leaf);
  gboolean success = TRUE;
  GTorchImpl *sum;

  g_mutex_lock (&accumulate_lock);
  if (autograd->grad == NULL)
    {
      /* The buffer may be seen by others (a saved value, the caller's gradient): a leaf gets its own. */
      if (run->create_graph)
        autograd->grad = gtorch_impl_ref (grad);
      else
        autograd->grad = gtorch_op_clone (grad, error);
      success = autograd->grad != NULL;
    }
  else if (run->create_graph)
    {
      sum = gtorch_op_add (autograd->grad, grad, 1.0, error);
      success = sum != NULL;
      if (success)
        {
          gtorch_impl_unref (autograd->grad);
          autograd->grad = sum;
        }
    }
  else
    success = gtorch_op_add_inplace (autograd->grad, grad, 1.0, error);
  g_mutex_unlock (&accumulate_lock);
  return success;
}

static gboolean
capture (Run *run, const GTorchEdge *edge, GTorchImpl *grad, GError **error)
{
  guint i;

  for (i = 0; i < run->n_inputs; i++)
    {
      const GTorchImpl *input = run->inputs[i];
      gboolean matches = edge->node != NULL
                             ? input->autograd != NULL && input->autograd->grad_fn == edge->node
                                   && input->autograd->index == edge->index
                             : input == edge->leaf;

      if (!matches || grad == NULL)
        continue;
      g_clear_pointer (&run->results[i], gtorch_impl_unref);
      run->results[i] = run->create_graph ? gtorch_impl_ref (grad) : gtorch_op_clone (grad, error);
      if (run->results[i] == NULL)
        return FALSE;
    }
  return TRUE;
}

static gboolean
finish_leaf (Run *run, Task *task, GError **error)
{
  const GTorchEdge edge = { NULL, task->leaf, 0 };
  GTorchAutograd *autograd = task->leaf->autograd;
  guint i;

  if (task->buffers[0] == NULL)
    return TRUE;
  if (autograd != NULL && !run_hooks (autograd->hooks, 0, &task->buffers[0], error))
    return FALSE;
  if (run->n_inputs > 0)
    return capture (run, &edge, task->buffers[0], error);
  if (!accumulate (run, task->leaf, task->buffers[0], error))
    return FALSE;
  autograd = task->leaf->autograd;
  for (i = 0; autograd->accumulated_hooks != NULL && i < autograd->accumulated_hooks->len; i++)
    {
      GTorchHook *hook = &g_array_index (autograd->accumulated_hooks, GTorchHook, i);

      ((void (*) (GTorchImpl *, gpointer)) hook->func) (task->leaf, hook->user_data);
    }
  g_clear_pointer (&task->buffers[0], gtorch_impl_unref);
  return TRUE;
}

static gboolean
finish_node (Run *run, Task *task, GTorchImpl **results, gboolean retain_graph, GError **error)
{
  GTorchNode *node = task->node;
  gboolean arrived = FALSE;
  guint i;

  for (i = 0; i < node->n_outputs; i++)
    {
      const GTorchEdge edge = { node, NULL, i };

      if (!run_hooks (node->hooks, i, &task->buffers[i], error)
          || !capture (run, &edge, task->buffers[i], error))
        return FALSE;
      if (run->n_inputs == 0 && node->retained != NULL && task->buffers[i] != NULL
          && node->retained->pdata[i] != NULL
          && !accumulate (run, node->retained->pdata[i], task->buffers[i], error))
        return FALSE;
      arrived |= task->buffers[i] != NULL;
    }
  if (!arrived || !task->is_needed)
    return TRUE;
  if (node->is_released)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                   _ ("backward: what %s had saved was freed by an earlier backward: pass "
                      "retain_graph to the first "
                      "to go backward twice"),
                   node->name);
      return FALSE;
    }
  if (!node->klass->apply (node, task->buffers, results, error))
    return FALSE;
  if (!retain_graph)
    node->klass->release (node);
  return TRUE;
}

static gboolean
execute (Run *run, gboolean retain_graph, GError **error)
{
  gboolean success = TRUE;
  GHashTableIter iter;
  gpointer value;
  guint i;

  while (success && run->ready->len > 0)
    {
      Task *task = pop_ready (run);
      GTorchNode *node = task->node;
      GTorchImpl *few[8] = { NULL };
      GTorchImpl **results =
          node->n_edges <= G_N_ELEMENTS (few) ? few : g_new0 (GTorchImpl *, node->n_edges);

      success = finish_node (run, task, results, retain_graph, error);
      gtorch_impl_clear (task->buffers, node->n_outputs);
      for (i = 0; success && i < node->n_edges; i++)
        {
          const GTorchEdge *edge = &node->edges[i];
          Task *next;

          if (edge->node == NULL && edge->leaf == NULL)
            continue;
          next = find_task (run, edge);
          if (results[i] != NULL)
            success = receive (run, next, edge->index, g_steal_pointer (&results[i]), error);
          if (--next->waiting > 0)
            continue;
          if (next->node != NULL)
            push_ready (run, next);
          else if (success)
            success = finish_leaf (run, next, error);
        }
      gtorch_impl_clear (results, node->n_edges);
      if (results != few)
        g_free (results);
    }
  /* a leaf that is a root itself */
  g_hash_table_iter_init (&iter, run->tasks);
  while (success && g_hash_table_iter_next (&iter, NULL, &value))
    {
      Task *task = value;

      if (task->leaf != NULL && task->waiting == 0 && task->buffers[0] != NULL)
        success = finish_leaf (run, task, error);
    }
  return success;
}

static GTorchImpl *
root_grad (GTorchImpl *root, GTorchImpl *grad, GError **error)
{
  if (grad == NULL)
    {
      if (root->numel != 1)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("backward: a gradient must be given for a tensor of shape %s: only one "
                          "with a single "
                          "element has an implicit one"),
                       gtorch_impl_shape_str (root));
          return NULL;
        }
      return gtorch_op_ones_like (root, GTORCH_DTYPE_NONE, error);
    }
  if (!gtorch_impl_same_shape (root, grad))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_SHAPE,
                   _ ("backward: the gradient has shape %s, the tensor %s"),
                   gtorch_impl_shape_str (grad), gtorch_impl_shape_str (root));
      return NULL;
    }
  return grad->dtype == root->dtype ? gtorch_impl_ref (grad)
                                    : gtorch_op_to_dtype (grad, root->dtype, error);
}

gboolean
gtorch_engine_run (GTorchImpl *const *roots, GTorchImpl *const *grads, guint n_roots,
                   GTorchImpl *const *inputs, guint n_inputs, GTorchImpl **results,
                   gboolean retain_graph, gboolean create_graph, GError **error)
{
  gboolean before = gtorch_set_grad_enabled (create_graph);
  g_autofree GTorchEdge *edges = g_new0 (GTorchEdge, MAX (n_roots, 1));
  Run run = {
    .tasks = g_hash_table_new_full (NULL, NULL, NULL, task_free),
    .order = g_ptr_array_new (),
    .ready = g_ptr_array_new (),
    .inputs = inputs,
    .n_inputs = n_inputs,
    .results = results,
    .create_graph = create_graph,
  };
  gboolean success = FALSE;
  guint i;

  for (i = 0; i < n_roots; i++)
    {
      if (!gtorch_impl_requires_grad (roots[i]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("backward: tensor %u, of shape %s, does not require grad and was not "
                          "computed from one "
                          "that does"),
                       i, gtorch_impl_shape_str (roots[i]));
          goto out;
        }
      edges[i].node = roots[i]->autograd->grad_fn;
      edges[i].leaf = edges[i].node == NULL ? roots[i] : NULL;
      edges[i].index = roots[i]->autograd->index;
    }
  for (i = 0; i < n_inputs; i++)
    if (!gtorch_impl_requires_grad (inputs[i]))
      {
        g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                     _ ("grad: input %u, of shape %s, does not require grad"), i,
                     gtorch_impl_shape_str (inputs[i]));
        goto out;
      }

  walk (&run, edges, n_roots);
  for (i = 0; i < n_roots; i++)
    {
      Task *task = find_task (&run, &edges[i]);
      GTorchImpl *grad = root_grad (roots[i], grads != NULL ? grads[i] : NULL, error);

      if (grad == NULL || !receive (&run, task, edges[i].index, grad, error))
        goto out;
    }
  for (i = 0; i < run.order->len; i++)
    if (((Task *) run.order->pdata[i])->waiting == 0)
      push_ready (&run, run.order->pdata[i]);
  success = execute (&run, retain_graph || create_graph, error);

out:
  gtorch_set_grad_enabled (before);
  g_ptr_array_unref (run.ready);
  g_ptr_array_unref (run.order);
  g_hash_table_unref (run.tasks);
  return success;
}

GTorchImpl *
gtorch_grad_fit (GTorchImpl *grad, const GTorchMeta *meta, const gchar *name, GError **error)
{
  g_autoptr (GTorchImpl) current = grad;
  gint64 dims[GTORCH_MAX_DIMS];
  gsize n = 0;
  guint lead, i;

  if (current->n_dims < meta->n_dims)
    goto wrong;
  lead = current->n_dims - meta->n_dims;
  for (i = 0; i < current->n_dims; i++)
    if (i < lead || (meta->shape[i - lead] == 1 && current->shape[i] != 1))
      dims[n++] = i;
  if (n > 0)
    {
      GTorchImpl *sum = gtorch_op_sum (current, dims, n, TRUE, GTORCH_DTYPE_NONE, error);

      if (sum == NULL)
        return NULL;
      gtorch_impl_unref (current);
      current = sum;
      if (lead > 0)
        {
          GTorchImpl *view = gtorch_op_reshape (current, meta->shape, meta->n_dims, error);

          if (view == NULL)
            return NULL;
          gtorch_impl_unref (current);
          current = view;
        }
    }
  if (current->n_dims != meta->n_dims
      || memcmp (current->shape, meta->shape, meta->n_dims * sizeof (gint64)) != 0)
    goto wrong;
  if (current->dtype != meta->dtype)
    {
      GTorchImpl *cast = gtorch_op_to_dtype (current, meta->dtype, error);

      if (cast == NULL)
        return NULL;
      gtorch_impl_unref (current);
      current = cast;
    }
  return g_steal_pointer (&current);

wrong:
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               _ ("backward: %s gave a gradient of shape %s for an input of shape %s"), name,
               gtorch_impl_shape_str (current), gtorch_shape_str (meta->shape, meta->n_dims));
  return NULL;
}
