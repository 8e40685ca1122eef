/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The backward pass. First the part of the graph below the roots is traversed, counting for each node how
 * many gradients will arrive. Then each node runs as soon as all its gradients have arrived, those with
 * the highest sequence first: with that order no node ever waits, and it is deterministic. A leaf is
 * treated as a node without edges, so that all its gradients are summed before they are added to its grad,
 * and its hooks run once. Nothing here recurses.
 *
 * The pass runs in the calling thread. Each node runs on the stream on which its operation ran forward.
 * Where a gradient goes from one stream to another, the second stream waits for the first; at the end the
 * caller's stream waits for all streams used, so that the pass as a whole behaves like one operation on
 * the caller's stream. A leaf has no stream of its own: its gradients are summed on the stream of the
 * first that arrives. If each device had a thread of its own, it would need its own `ready` heap; nothing
 * else in a Run is accessed between a node's start and its end.
 *
 * A gradient may be written to (to add another one) or given away (to become the grad of a leaf) only
 * while nothing else uses its memory: see gtorch_grad_is_ours (). */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "dispatch/gtorch-autocast-private.h"
#include "base/gtorch-observer-private.h"
#include "base/gtorch-stack-private.h"
#include "autograd/gtorch-autograd-private.h"
#include "graph/gtorch-capture-private.h"
#include "stream/gtorch-stream-private.h"
#include "dispatch/gtorch-grad-mode.h"
#include "tensor/gtorch-hold-private.h"
#include "gtorch-ops-private.h"

typedef struct _Task Task;

struct _Task
{
  GTorchNode *node; /* NULL for a leaf */
  GTorchImpl *leaf;
  guint waiting; /* the number of gradients still to arrive */
  guint wanted;  /* 0, or 1 + the index of the first wanted input that is an output of the node */
  gboolean is_needed;   /* tells whether it leads to a wanted input */
  GTorchStream *stream; /* for a leaf, the stream of its first gradient; NULL: the default one */
  GTorchImpl *buffers[];
};

#define BLOCK_SIZE 8192

typedef struct _Block Block;

struct _Block
{
  Block *next;
  gsize used;
  gsize size;
  guint64 data[];
};

typedef struct
{
  const GTorchBackward *backward;
  Block *blocks; /* the memory of the tasks */
  Task **table;  /* hash table by the address of the node or leaf; open addressing */
  guint table_size, n_tasks;
  GPtrArray *order; /* tasks of nodes, in the order in which they were found */
  GPtrArray *leaves;
  GPtrArray *ready;          /* a heap of tasks */
  guint *next_wanted;        /* links the wanted inputs of one task; 1 + an index each */
  gboolean has_streams;      /* some node, or the caller, is not on the default stream */
  GTorchPassStreams streams; /* only used with has_streams */
} Run;

/* --- the pass of a thread --- */

typedef struct
{
  GDestroyNotify func;
  gpointer data;
} AtEnd;

struct _GTorchPass
{
  gboolean has_inputs;
  GArray *at_end; /* of AtEnd; NULL before the first one */
};

/* No __thread variable: libraries that are loaded late have little room for these. */
static GPrivate current_pass;

GTorchPass *
gtorch_engine_get_pass (void)
{
  return g_private_get (&current_pass);
}

gboolean
gtorch_pass_has_inputs (const GTorchPass *pass)
{
  return pass->has_inputs;
}

void
gtorch_pass_at_end (GTorchPass *pass, GDestroyNotify func, gpointer data)
{
  const AtEnd one = { func, data };

  if (pass->at_end == NULL)
    pass->at_end = g_array_new (FALSE, FALSE, sizeof (AtEnd));
  g_array_append_val (pass->at_end, one);
}

static void
pass_clear (GTorchPass *pass)
{
  guint i;

  for (i = 0; pass->at_end != NULL && i < pass->at_end->len; i++)
    {
      const AtEnd one = g_array_index (pass->at_end, AtEnd, i);

      one.func (one.data);
    }
  g_clear_pointer (&pass->at_end, g_array_unref);
}

/* --- tasks --- */

static gpointer
run_alloc (Run *run, gsize size)
{
  gpointer result;

  size = (size + 7) & ~(gsize) 7;
  if (run->blocks == NULL || run->blocks->size - run->blocks->used < size)
    {
      gsize room = MAX (size, BLOCK_SIZE);
      Block *block = g_malloc0 (sizeof (Block) + room);

      block->size = room;
      block->next = run->blocks;
      run->blocks = block;
    }
  result = (char *) run->blocks->data + run->blocks->used;
  run->blocks->used += size;
  return result;
}

static guint
task_outputs (const Task *task)
{
  return task->node != NULL ? task->node->n_outputs : 1;
}

static Task **
find_slot (Run *run, gconstpointer key)
{
  guint i = (guint) (((guintptr) key >> 4) * 0x9e3779b1u);

  for (;; i++)
    {
      Task **slot = &run->table[i & (run->table_size - 1)];

      if (*slot == NULL || (gconstpointer) (*slot)->node == key
          || (gconstpointer) (*slot)->leaf == key)
        return slot;
    }
}

static gpointer
edge_key (const GTorchEdge *edge)
{
  return edge->node != NULL ? (gpointer) edge->node : edge->leaf;
}

static Task *
find_task (Run *run, const GTorchEdge *edge)
{
  return *find_slot (run, edge_key (edge));
}

static void
grow (Run *run)
{
  Task **former = run->table;
  guint i, n = run->table_size;

  run->table_size *= 4;
  run->table = g_new0 (Task *, run->table_size);
  for (i = 0; i < n; i++)
    if (former[i] != NULL)
      *find_slot (run, former[i]->node != NULL ? (gpointer) former[i]->node : former[i]->leaf) =
          former[i];
  g_free (former);
}

/* Returns the task of an edge, creating it if necessary. */
static Task *
ensure_task (Run *run, const GTorchEdge *edge)
{
  Task **slot = find_slot (run, edge_key (edge));
  guint n = edge->node != NULL ? edge->node->n_outputs : 1;
  Task *task;

  if (*slot != NULL)
    return *slot;
  task = run_alloc (run, sizeof (Task) + n * sizeof (GTorchImpl *));
  task->node = edge->node;
  task->leaf = edge->node == NULL ? edge->leaf : NULL;
  *slot = task;
  g_ptr_array_add (task->node != NULL ? run->order : run->leaves, task);
  if (++run->n_tasks * 2 > run->table_size)
    grow (run);
  return task;
}

static gint
by_sequence (gconstpointer a, gconstpointer b)
{
  const Task *x = *(const Task *const *) a, *y = *(const Task *const *) b;

  return x->node->sequence < y->node->sequence ? -1 : x->node->sequence > y->node->sequence;
}

static gboolean
is_wanted (Run *run, const Task *task, guint index)
{
  guint i;

  for (i = task->wanted; i != 0; i = run->next_wanted[i - 1])
    if (task->node == NULL || run->backward->inputs[i - 1]->autograd->index == index)
      return TRUE;
  return FALSE;
}

static gboolean
is_edge (const GTorchEdge *edge)
{
  return edge->node != NULL || edge->leaf != NULL;
}

static gboolean
is_edge_needed (Run *run, const GTorchEdge *edge)
{
  const Task *task;

  if (!is_edge (edge))
    return FALSE;
  if (run->backward->n_inputs == 0)
    return TRUE;
  task = find_task (run, edge);
  return task->is_needed || is_wanted (run, task, edge->index);
}

static void
walk (Run *run, const GTorchEdge *roots)
{
  const GTorchBackward *backward = run->backward;
  guint i, j;

  for (i = 0; i < backward->n_roots; i++)
    ensure_task (run, &roots[i]);
  for (i = 0; i < run->order->len; i++)
    {
      GTorchNode *node = ((Task *) run->order->pdata[i])->node;

      run->has_streams |=
          node->stream != NULL || G_UNLIKELY (node->extra != NULL && node->extra->n_places > 0);
      for (j = 0; j < node->n_edges; j++)
        if (is_edge (&node->edges[j]))
          ensure_task (run, &node->edges[j])->waiting++;
    }
  if (backward->n_inputs == 0)
    {
      for (i = 0; i < run->order->len; i++)
        ((Task *) run->order->pdata[i])->is_needed = TRUE;
      return;
    }
  for (i = 0; i < backward->n_inputs; i++)
    {
      const GTorchAutograd *autograd = backward->inputs[i]->autograd;
      const GTorchEdge edge = { autograd->grad_fn, backward->inputs[i], autograd->index };
      Task *task = find_task (run, &edge);

      if (task == NULL)
        continue;
      run->next_wanted[i] = task->wanted;
      task->wanted = i + 1;
    }
  /* Edges lead to nodes of lower sequence, which are decided before the node itself. */
  g_ptr_array_sort (run->order, by_sequence);
  for (i = 0; i < run->order->len; i++)
    {
      Task *current = run->order->pdata[i];

      for (j = 0; j < current->node->n_edges && !current->is_needed; j++)
        current->is_needed = is_edge_needed (run, &current->node->edges[j]);
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

/* --- streams --- */

/* Makes the stream (NULL: the default one) current; returns FALSE if it already is. */
static gboolean
enter (GTorchChange *change, GTorchDevice *device, GTorchStream *stream)
{
  if (gtorch_current_stream (device) == stream)
    return FALSE;
  gtorch_change_to_stream (change, device, stream);
  return TRUE;
}

/* Checks the captures of all nodes before any of them runs. */
static gboolean
check_captures (Run *run, GError **error)
{
  guint i;

  for (i = 0; i < run->order->len; i++)
    {
      const Task *task = run->order->pdata[i];

      if ((task->is_needed || task->wanted != 0)
          && !gtorch_pass_streams_check_capture (&run->streams, task->node, error))
        return FALSE;
    }
  return TRUE;
}

/* --- gradients in transit --- */

/* Adds grad to the gradients that have arrived at an input of the task. Takes the reference. */
static gboolean
receive (Run *run, Task *task, guint index, GTorchImpl *grad, GError **error)
{
  GTorchDevice *device = gtorch_impl_device (grad);
  GTorchImpl **buffer = &task->buffers[index];
  GTorchChange change;
  gboolean success = TRUE, entered = FALSE;
  GTorchImpl *sum;

  if (G_UNLIKELY (run->has_streams))
    {
      GTorchStream *stream = task->node != NULL ? task->node->stream : task->stream;

      if (task->leaf != NULL && *buffer == NULL)
        stream = task->stream = gtorch_current_stream (device);
      if (!gtorch_pass_streams_order (&run->streams, grad, stream, error))
        {
          gtorch_impl_unref (grad);
          return FALSE;
        }
      if (*buffer != NULL)
        {
          entered = enter (&change, device, stream);
          if (!entered)
            gtorch_pass_streams_forget_fence (&run->streams);
        }
    }
  if (*buffer == NULL)
    *buffer = grad;
  else
    {
      if (!gtorch_is_grad_enabled () && gtorch_grad_is_ours (*buffer))
        success = gtorch_op_add_inplace (*buffer, grad, 1.0, error);
      else
        {
          sum = gtorch_op_add (*buffer, grad, 1.0, error);
          success = sum != NULL;
          if (success)
            {
              gtorch_impl_unref (*buffer);
              *buffer = sum;
            }
        }
      gtorch_impl_unref (grad);
    }
  if (entered)
    gtorch_change_end (&change);
  return success;
}

/* Stores a gradient in the results of the inputs that want it. */
static gboolean
deliver (Run *run, Task *task, guint index, gboolean may_take, GError **error)
{
  const GTorchBackward *backward = run->backward;
  guint i;

  for (i = task->wanted; i != 0; i = run->next_wanted[i - 1])
    {
      if (task->buffers[index] == NULL
          || (task->node != NULL && backward->inputs[i - 1]->autograd->index != index))
        continue;
      g_clear_pointer (&backward->results[i - 1], gtorch_impl_unref);
      backward->results[i - 1] = gtorch_grad_show (task->buffers[index], may_take, error);
      if (backward->results[i - 1] == NULL)
        return FALSE;
    }
  return TRUE;
}

static gboolean
finish_leaf (Run *run, Task *task, GError **error)
{
  GTorchImpl *leaf = task->leaf;
  GTorchAutograd *autograd = leaf->autograd;
  GTorchImpl **buffer = &task->buffers[0];
  GTorchDevice *device = gtorch_impl_device (leaf);
  GTorchChange change;
  gboolean success, entered = FALSE;

  if (*buffer == NULL)
    return TRUE;
  if (G_UNLIKELY (run->has_streams))
    {
      entered = enter (&change, device, task->stream);
      gtorch_pass_streams_forget_fence (&run->streams);
    }
  success = autograd == NULL || gtorch_hooks_run (&autograd->hooks, 0, buffer, error);
  if (success && run->backward->n_inputs > 0)
    success = deliver (run, task, 0, TRUE, error);
  else if (success)
    {
      gtorch_observe_backward_begin ("AccumulateGrad", 0, buffer, 1);
      success = gtorch_grad_accumulate (leaf, *buffer, TRUE, error)
                && gtorch_hooks_run_accumulated (&leaf->autograd->hooks, leaf, error);
      gtorch_observe_backward_end ("AccumulateGrad", 0);
    }
  g_clear_pointer (buffer, gtorch_impl_unref);
  if (entered)
    gtorch_change_end (&change);
  return success;
}

/* Runs the hooks of the node before its backward. Returns whether there is still a gradient for it in
 * `arrived`. */
static G_GNUC_NO_INLINE gboolean
run_node_prehooks (GTorchNode *node, Task *task, gboolean *arrived, GError **error)
{
  guint i;

  if (!gtorch_hooks_run_of_node (&node->extra->hooks, FALSE, node, task->buffers, node->n_outputs,
                                 NULL, 0, error))
    return FALSE;
  *arrived = FALSE;
  for (i = 0; i < node->n_outputs; i++)
    if (task->buffers[i] != NULL)
      *arrived = TRUE;
  return TRUE;
}

/* Runs the hooks on the gradients of the outputs, handles retained and wanted gradients, then runs the
 * node. */
static gboolean
run_node (Run *run, Task *task, GTorchImpl **results, GError **error)
{
  const GTorchBackward *backward = run->backward;
  GTorchNode *node = task->node;
  gboolean few[8], *needs = few;
  gboolean arrived = FALSE, success;
  guint i;

  for (i = 0; i < node->n_outputs; i++)
    {
      if (task->buffers[i] == NULL)
        continue;
      if (G_UNLIKELY (node->extra != NULL))
        {
          g_autoptr (GTorchImpl) retained = NULL;

          if (!gtorch_hooks_run (&node->extra->hooks, i, &task->buffers[i], error))
            return FALSE;
          retained = backward->n_inputs == 0 ? gtorch_node_get_retained (node, i) : NULL;
          if (retained != NULL
              && !gtorch_grad_accumulate (retained, task->buffers[i], FALSE, error))
            return FALSE;
        }
      if (!deliver (run, task, i, !task->is_needed, error))
        return FALSE;
      arrived = TRUE;
    }
  if (!arrived || !task->is_needed)
    return TRUE;
  if (G_UNLIKELY (node->extra != NULL)
      && (!run_node_prehooks (node, task, &arrived, error) || !arrived))
    return !arrived;

  if (node->n_edges > G_N_ELEMENTS (few))
    needs = g_new (gboolean, node->n_edges);
  for (i = 0; i < node->n_edges; i++)
    needs[i] = is_edge_needed (run, &node->edges[i]);
  gtorch_observe_backward_begin (node->name, node->sequence, task->buffers, node->n_outputs);
  success = node->klass->apply (node, task->buffers, needs, results, error);
  gtorch_observe_backward_end (node->name, node->sequence);
  for (i = 0; i < node->n_edges; i++)
    if (!needs[i])
      g_clear_pointer (&results[i], gtorch_impl_unref);
  if (needs != few)
    g_free (needs);
  if (G_UNLIKELY (g_atomic_int_get (&gtorch_anomaly) == 2) && success)
    success = gtorch_anomaly_check (node, results, error);
  if (G_UNLIKELY (!success))
    {
      g_prefix_error (error, _ ("backward of %s: "), node->name);
      gtorch_anomaly_add_site (node, error);
      return FALSE;
    }
  if (G_UNLIKELY (node->extra != NULL)
      && !gtorch_hooks_run_of_node (&node->extra->hooks, TRUE, node, results, node->n_edges,
                                    task->buffers, node->n_outputs, error))
    return FALSE;
  if (!backward->retain_graph && !backward->create_graph)
    node->klass->release (node);
  return TRUE;
}

static gboolean
run_and_send (Run *run, Task *task, GError **error)
{
  GTorchNode *node = task->node;
  GTorchImpl *few[8] = { NULL };
  GTorchImpl **results = few;
  gboolean success;
  guint i;

  if (node->n_edges > G_N_ELEMENTS (few))
    results = g_new0 (GTorchImpl *, node->n_edges);
  success = run_node (run, task, results, error);
  gtorch_impl_clear (task->buffers, node->n_outputs);
  for (i = 0; success && i < node->n_edges; i++)
    {
      const GTorchEdge *edge = &node->edges[i];
      Task *next;

      if (!is_edge (edge))
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
  return success;
}

/* Runs a node with operands on several devices. */
static G_GNUC_NO_INLINE gboolean
run_in_places (Run *run, Task *task, GError **error)
{
  const GTorchNodeExtra *extra = task->node->extra;
  GTorchChange change;
  gboolean success = TRUE;
  guint i;

  gtorch_change_begin (&change);
  for (i = 0; success && i < extra->n_places; i++)
    success = gtorch_pass_streams_enter (&run->streams, &change, extra->places[i].device,
                                         extra->places[i].stream, error);
  success = success && run_and_send (run, task, error);
  gtorch_change_end (&change);
  return success;
}

/* Runs a node on the streams of its forward operation, and sends on the gradients that it computes. */
static gboolean
run_task (Run *run, Task *task, GError **error)
{
  GTorchNode *node = task->node;
  GTorchDevice *device;
  GTorchChange change;
  gboolean success, entered;

  if (G_LIKELY (!run->has_streams))
    return run_and_send (run, task, error);
  device = node->stream != NULL ? node->stream->device : node->output_metas[0].device;
  entered = enter (&change, device, node->stream);
  gtorch_pass_streams_forget_fence (&run->streams);
  success = node->extra != NULL && node->extra->n_places > 0 ? run_in_places (run, task, error)
                                                             : run_and_send (run, task, error);
  gtorch_pass_streams_forget_fence (&run->streams);
  if (entered)
    gtorch_change_end (&change);
  return success;
}

static gboolean
execute (Run *run, GError **error)
{
  guint i;

  for (i = 0; i < run->order->len; i++)
    if (((Task *) run->order->pdata[i])->waiting == 0)
      push_ready (run, run->order->pdata[i]);
  while (run->ready->len > 0)
    if (g_cancellable_set_error_if_cancelled (run->backward->cancellable, error)
        || !run_task (run, pop_ready (run), error))
      return FALSE;
  /* Leaves that are roots themselves are finished last. */
  for (i = 0; i < run->leaves->len; i++)
    if (!finish_leaf (run, run->leaves->pdata[i], error))
      return FALSE;
  return TRUE;
}

/* --- the start --- */

static GTorchImpl *
root_grad (GTorchImpl *root, GTorchImpl *grad, GError **error)
{
  if (grad == NULL)
    {
      if (root->numel != 1 || gtorch_dtype_kind (root->dtype) == GTORCH_KIND_COMPLEX)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("backward: a gradient must be given for a tensor of dtype %s and shape "
                          "%s: only a single real element has an implicit one"),
                       gtorch_dtype_get_name (root->dtype), gtorch_impl_shape_str (root));
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
  if (gtorch_impl_device (grad) != gtorch_impl_device (root))
    {
      g_set_error_literal (error, GTORCH_ERROR, GTORCH_ERROR_DEVICE_MISMATCH,
                           _ ("backward: the gradient must be on the device of the tensor"));
      return NULL;
    }
  if (gtorch_dtype_kind (grad->dtype) > gtorch_dtype_kind (root->dtype))
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_DTYPE,
                   _ ("backward: the gradient has dtype %s, the tensor %s"),
                   gtorch_dtype_get_name (grad->dtype), gtorch_dtype_get_name (root->dtype));
      return NULL;
    }
  return grad->dtype == root->dtype ? gtorch_impl_ref (grad)
                                    : gtorch_op_to_dtype (grad, root->dtype, error);
}

/* Checks that all impls are tensors, have memory and require grad. */
static gboolean
check_tensors (GTorchImpl *const *impls, guint n, const gchar *what, GError **error)
{
  guint i;

  for (i = 0; i < n; i++)
    {
      if (impls[i] == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_INVALID,
                       _ ("backward: %s %u is not a tensor"), what, i);
          return FALSE;
        }
      if (impls[i]->storage == NULL)
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_RELEASED,
                       _ ("backward: %s %u, of shape %s, was released"), what, i,
                       gtorch_impl_shape_str (impls[i]));
          return FALSE;
        }
      if (!gtorch_impl_requires_grad (impls[i]))
        {
          g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
                       _ ("backward: %s %u, of shape %s, does not require grad and was not "
                          "computed from a tensor that does"),
                       what, i, gtorch_impl_shape_str (impls[i]));
          return FALSE;
        }
    }
  return TRUE;
}

/* Takes references to the nodes of the roots, which keep all other nodes alive: a hook may change, drop or
 * release the roots. */
static gboolean
take_roots (const GTorchBackward *backward, GTorchEdge *edges, GError **error)
{
  guint i;
  GTORCH_HOLD_MANY (backward->roots, backward->n_roots);
  GTORCH_HOLD_MANY (backward->inputs, backward->n_inputs);

  if (!check_tensors (backward->roots, backward->n_roots, _ ("tensor"), error)
      || !check_tensors (backward->inputs, backward->n_inputs, _ ("input"), error))
    return FALSE;
  for (i = 0; i < backward->n_roots; i++)
    {
      GTorchAutograd *autograd = backward->roots[i]->autograd;

      edges[i].node = autograd->grad_fn != NULL ? gtorch_node_ref (autograd->grad_fn) : NULL;
      edges[i].leaf = autograd->grad_fn == NULL ? gtorch_impl_ref (backward->roots[i]) : NULL;
      edges[i].index = autograd->index;
    }
  return TRUE;
}

/* Sends the gradients of the roots. All of them are created before other streams wait for the stream that
 * fills them. */
static gboolean
send_root_grads (Run *run, const GTorchEdge *edges, GError **error)
{
  const GTorchBackward *backward = run->backward;
  g_autofree GTorchImpl **grads = g_new0 (GTorchImpl *, MAX (backward->n_roots, 1));
  gboolean success = TRUE;
  guint i;

  for (i = 0; success && i < backward->n_roots; i++)
    {
      grads[i] = root_grad (backward->roots[i], backward->grads != NULL ? backward->grads[i] : NULL,
                            error);
      success = grads[i] != NULL;
    }
  for (i = 0; success && i < backward->n_roots; i++)
    success = receive (run, find_task (run, &edges[i]), edges[i].index, g_steal_pointer (&grads[i]),
                       error);
  gtorch_impl_clear (grads, backward->n_roots);
  return success;
}

gboolean
gtorch_engine_run (const GTorchBackward *backward, GError **error)
{
  g_autofree GTorchEdge *edges = NULL;
  g_autofree guint *next_wanted = NULL;
  gboolean success = FALSE;
  Run run = { .backward = backward, .table_size = 32 };
  GTorchPass pass = { .has_inputs = backward->n_inputs > 0 };
  GTorchPass *outer = g_private_get (&current_pass);
  GTorchChange mode, off;
  guint i, j;

  if (!gtorch_stack_check ("backward", error))
    return FALSE;
  edges = g_new0 (GTorchEdge, MAX (backward->n_roots, 1));
  if (!take_roots (backward, edges, error))
    return FALSE;

  g_private_set (&current_pass, &pass);
  /* Autocast is off: the forward pass has recorded its casts, so the backward pass needs none. */
  gtorch_autocast_change_to_off (&off);
  gtorch_change_to_grad (&mode, backward->create_graph);
  run.next_wanted = next_wanted = g_new0 (guint, MAX (backward->n_inputs, 1));
  run.table = g_new0 (Task *, run.table_size);
  run.order = g_ptr_array_new ();
  run.leaves = g_ptr_array_new ();
  run.ready = g_ptr_array_new ();
  run.has_streams = gtorch_thread_has_streams ();
  walk (&run, edges);
  if (G_UNLIKELY (run.has_streams))
    gtorch_pass_streams_init (&run.streams, backward->roots, backward->n_roots);
  success = (!run.has_streams || !gtorch_captures_exist () || check_captures (&run, error))
            && send_root_grads (&run, edges, error) && execute (&run, error);
  if (G_UNLIKELY (run.has_streams))
    success = gtorch_pass_streams_join (&run.streams, success ? error : NULL) && success;

  gtorch_change_end (&mode);
  gtorch_change_end (&off);
  for (i = 0; i < 2; i++)
    {
      GPtrArray *tasks = i == 0 ? run.order : run.leaves;

      for (j = 0; !success && j < tasks->len; j++)
        gtorch_impl_clear (((Task *) tasks->pdata[j])->buffers, task_outputs (tasks->pdata[j]));
      g_ptr_array_unref (tasks);
    }
  g_ptr_array_unref (run.ready);
  if (G_UNLIKELY (run.has_streams))
    gtorch_pass_streams_clear (&run.streams);
  g_free (run.table);
  while (run.blocks != NULL)
    {
      Block *block = run.blocks;

      run.blocks = block->next;
      g_free (block);
    }
  for (i = 0; i < backward->n_roots; i++)
    {
      g_clear_pointer (&edges[i].node, gtorch_node_unref);
      g_clear_pointer (&edges[i].leaf, gtorch_impl_unref);
    }
  pass_clear (&pass);
  g_private_set (&current_pass, outer);
  return success;
}

/* --- calling user functions --- */

static __thread GMainContext *owner;

typedef struct
{
  void (*func) (gpointer data);
  gpointer data;
  gboolean grad_enabled;
  GTorchPass *pass;
  GTorchThreadStreams streams;
  GMutex lock;
  GCond cond;
  gboolean done;
} UserCall;

static gboolean
run_user_call (gpointer data)
{
  UserCall *call = data;
  GTorchPass *outer = g_private_get (&current_pass);
  GTorchChange mode, off, streams;

  g_private_set (&current_pass, call->pass);
  gtorch_change_to_grad (&mode, call->grad_enabled);
  gtorch_autocast_change_to_off (&off);
  gtorch_thread_streams_change_to (&call->streams, &streams);
  call->func (call->data);
  gtorch_change_end (&streams);
  gtorch_change_end (&off);
  gtorch_change_end (&mode);
  g_private_set (&current_pass, outer);
  g_mutex_lock (&call->lock);
  call->done = TRUE;
  g_cond_signal (&call->cond);
  g_mutex_unlock (&call->lock);
  return G_SOURCE_REMOVE;
}

void
gtorch_engine_call_user (void (*func) (gpointer data), gpointer data)
{
  UserCall call = {
    .func = func,
    .data = data,
    .grad_enabled = gtorch_is_grad_enabled (),
    .pass = g_private_get (&current_pass),
  };
  GSource *source;

  gtorch_thread_streams_take (&call.streams);
  if (G_LIKELY (owner == NULL))
    {
      func (data);
      gtorch_thread_streams_apply (&call.streams); /* undoes changes of streams by func */
      gtorch_thread_streams_clear (&call.streams);
      return;
    }
  g_mutex_init (&call.lock);
  g_cond_init (&call.cond);
  /* g_main_context_invoke () would run it in this thread if no thread iterates that context */
  source = g_idle_source_new ();
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, run_user_call, &call, NULL);
  g_source_attach (source, owner);
  g_source_unref (source);
  g_mutex_lock (&call.lock);
  while (!call.done)
    g_cond_wait (&call.cond, &call.lock);
  g_mutex_unlock (&call.lock);
  g_cond_clear (&call.cond);
  g_mutex_clear (&call.lock);
  gtorch_thread_streams_clear (&call.streams);
}

GMainContext *
gtorch_engine_set_context (GMainContext *context)
{
  GMainContext *former = owner;

  owner = context;
  return former;
}
