/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures and graphs. Work on a capturing stream becomes a node that depends on the previous work of the
 * stream; another stream joins by waiting for an event that was recorded in the capture, and must be
 * waited for before the end. A launch enqueues the nodes in a random order that their dependencies allow,
 * so that a missing dependency shows. A forbidden call invalidates the capture: it can then only be
 * ended. Streams of several devices may take part in one capture: each node is executed by the device of the
 * stream that made it, in the order of the stream on which the graph is launched. */

#include "config.h"

#include <stdio.h>
#include <string.h>

#include "fake-cuda-private.h"

struct CUgraph_st
{
  GPtrArray *nodes;
  GPtrArray *conditions; /* the conditions of its handles; or NULL */
  gboolean has_exec;
};

struct CUgraphExec_st
{
  CUgraph graph;
  CUgraph made_from;
  GHashTable *copies; /* maps the nodes of the original to copies */
};

struct _FakeCapture
{
  gint refs;
  guint64 id;
  CUstreamCaptureMode mode;
  GThread *thread;
  gboolean is_spoiled, is_over;
  CUgraph graph;
  gboolean is_in_body; /* the graph belongs to a branch */
  GPtrArray *streams;  /* the first is the one on which it began */
};

static GPtrArray *captures; /* the active captures */
static guint64 last_id;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* Handles that the program may have forgotten to destroy, or could not destroy. */
static GHashTable *alive;

static void
set_alive (gpointer thing, gboolean is_alive)
{
  if (alive == NULL)
    alive = g_hash_table_new (NULL, NULL);
  if (is_alive)
    g_hash_table_add (alive, thing);
  else
    g_hash_table_remove (alive, thing);
}

/* --- graphs --- */

/* Host functions are counted when they are enqueued. */
static void
clear_node_op (FakeOp *op)
{
  if (op->kind != FAKE_CALL)
    fake_op_clear (op);
}

static void
condition_unref (gpointer data)
{
  FakeCondition *condition = data;

  if (--condition->refs > 0)
    return;
  set_alive (condition, FALSE);
  g_free (condition);
}

static CUgraph
graph_new (void)
{
  CUgraph graph = g_new0 (struct CUgraph_st, 1);

  graph->nodes = g_ptr_array_new ();
  set_alive (graph, TRUE);
  fake_accounts.graphs++;
  return graph;
}

static void
graph_free (CUgraph graph)
{
  guint i;

  for (i = 0; i < graph->nodes->len; i++)
    {
      CUgraphNode node = graph->nodes->pdata[i];

      if (node->child != NULL)
        graph_free (node->child);
      else
        clear_node_op (&node->op);
      g_ptr_array_unref (node->before);
      g_free (node);
    }
  g_ptr_array_unref (graph->nodes);
  g_clear_pointer (&graph->conditions, g_ptr_array_unref);
  set_alive (graph, FALSE);
  g_free (graph);
  fake_accounts.graphs--;
}

/* Takes ownership of the op (or the child). */
static CUgraphNode
graph_add (CUgraph graph, const FakeOp *op, CUgraph child, GPtrArray *before)
{
  CUgraphNode node = g_new0 (struct CUgraphNode_st, 1);
  guint i;

  if (op != NULL)
    node->op = *op;
  node->child = child;
  node->before = g_ptr_array_new ();
  for (i = 0; before != NULL && i < before->len; i++)
    g_ptr_array_add (node->before, before->pdata[i]);
  g_ptr_array_add (graph->nodes, node);
  return node;
}

static guint
graph_index (CUgraph graph, gconstpointer node)
{
  guint index = 0;

  g_ptr_array_find (graph->nodes, node, &index);
  return index;
}

static gboolean
is_branch (CUgraphNode node)
{
  return node->child == NULL && node->op.kind == FAKE_BRANCH;
}

/* copies: receives the copy of each node, including those in branches; or NULL. */
static CUgraph
graph_copy (CUgraph graph, GHashTable *copies)
{
  CUgraph copy = graph_new ();
  guint i, j;

  for (i = 0; i < graph->nodes->len; i++)
    {
      CUgraphNode node = graph->nodes->pdata[i], same;
      FakeOp op;

      if (is_branch (node))
        {
          op = node->op;
          op.branch.condition->refs++;
          op.branch.body = graph_copy (node->op.branch.body, copies);
        }
      else if (node->child == NULL)
        fake_op_copy (&op, &node->op);
      same = graph_add (copy, node->child == NULL ? &op : NULL,
                        node->child != NULL ? graph_copy (node->child, NULL) : NULL, NULL);
      if (copies != NULL)
        g_hash_table_insert (copies, node, same);
      for (j = 0; j < node->before->len; j++)
        g_ptr_array_add (same->before,
                         copy->nodes->pdata[graph_index (graph, node->before->pdata[j])]);
    }
  return copy;
}

/* Returns a random node among those that are ready. */
static CUgraphNode
choose_node (CUgraph graph)
{
  CUgraphNode best = NULL;
  guint i, j, n = 0;

  for (i = 0; i < graph->nodes->len; i++)
    {
      CUgraphNode node = graph->nodes->pdata[i];

      if (node->mark)
        continue;
      for (j = 0; j < node->before->len && ((CUgraphNode) node->before->pdata[j])->mark; j++)
        continue;
      if (j == node->before->len && fake_draw (++n) == 0)
        best = node;
    }
  return best;
}

static void
clear_marks (CUgraph graph)
{
  guint i;

  for (i = 0; i < graph->nodes->len; i++)
    ((CUgraphNode) graph->nodes->pdata[i])->mark = FALSE;
}

static CUresult
graph_enqueue (CUgraph graph, CUstream stream)
{
  CUresult result = CUDA_SUCCESS;
  CUgraphNode node;

  clear_marks (graph);
  while (result == CUDA_SUCCESS && (node = choose_node (graph)) != NULL)
    {
      FakeOp op;

      node->mark = TRUE;
      if (node->child != NULL)
        {
          result = graph_enqueue (node->child, stream);
          continue;
        }
      fake_op_copy (&op, &node->op);
      result = fake_stream_push (stream, &op);
    }
  return result;
}

static void
mark_before (CUgraphNode node)
{
  guint i;

  if (node->mark)
    return;
  node->mark = TRUE;
  for (i = 0; i < node->before->len; i++)
    mark_before (node->before->pdata[i]);
}

/* --- branches --- */

CUresult
fake_condition_set (guint64 handle, guint value)
{
  FakeCondition *condition = (FakeCondition *) (guintptr) handle;

  if (alive == NULL || !g_hash_table_contains (alive, condition))
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  condition->value = value;
  return CUDA_SUCCESS;
}

void
fake_branch_clear (FakeOp *op)
{
  graph_free (op->branch.body);
  condition_unref (op->branch.condition);
}

void
fake_branch_copy (FakeOp *to, const FakeOp *from)
{
  to->branch.condition->refs++;
  to->branch.body = graph_copy (from->branch.body, NULL);
}

CUresult
fake_branch_run (FakeOp *op, FakeDevice *device)
{
  FakeCondition *condition = op->branch.condition;
  const gboolean is_true = condition->value != 0;
  CUresult result = CUDA_SUCCESS;
  CUgraphNode node;

  condition->value = condition->first;
  clear_marks (op->branch.body);
  while (is_true && result == CUDA_SUCCESS && (node = choose_node (op->branch.body)) != NULL)
    {
      node->mark = TRUE;
      result = fake_op_run (&node->op, device);
    }
  return result;
}

/* Like the driver, allows no host functions, no memory nodes, no child graphs, and one device only. */
static gboolean
can_be_body (CUgraph graph)
{
  FakeDevice *device = NULL;
  guint i;

  for (i = 0; i < graph->nodes->len; i++)
    {
      CUgraphNode node = graph->nodes->pdata[i];

      if (device == NULL)
        device = node->op.device;
      if (node->child != NULL || (node->op.device != NULL && node->op.device != device)
          || (node->op.kind != FAKE_KERNEL && node->op.kind != FAKE_COPY
              && node->op.kind != FAKE_SET
              && !(is_branch (node) && can_be_body (node->op.branch.body))))
        return FALSE;
    }
  return TRUE;
}

/* Checks a graph before instantiation: are the bodies of its branches valid, and is each handle used
 * correctly? */
static gboolean
have_branches (CUgraph graph, gboolean *are_right)
{
  gboolean result = FALSE;
  guint i;

  for (i = 0; graph->conditions != NULL && i < graph->conditions->len; i++)
    if (!((FakeCondition *) graph->conditions->pdata[i])->has_node)
      {
        *are_right = FALSE;
        result = TRUE;
      }
  for (i = 0; i < graph->nodes->len; i++)
    {
      CUgraphNode node = graph->nodes->pdata[i];

      if (!is_branch (node))
        continue;
      result = TRUE;
      if (!can_be_body (node->op.branch.body))
        *are_right = FALSE;
      have_branches (node->op.branch.body, are_right);
    }
  return result;
}

/* --- captures --- */

FakeCapture *
fake_capture_ref (FakeCapture *capture)
{
  capture->refs++;
  return capture;
}

void
fake_capture_unref (FakeCapture *capture)
{
  if (capture == NULL || --capture->refs > 0)
    return;
  g_ptr_array_unref (capture->streams);
  if (capture->graph != NULL && !capture->is_in_body)
    graph_free (capture->graph);
  g_free (capture);
}

gboolean
fake_capture_is_over (FakeCapture *capture)
{
  return capture->is_over;
}

CUresult
fake_capture_spoil (FakeCapture *capture, CUresult result)
{
  capture->is_spoiled = TRUE;
  return result;
}

/* Returns TRUE if captures forbid a call that could wait for captured work. */
gboolean
fake_capture_forbids (void)
{
  gboolean result = FALSE;
  guint i;

  for (i = 0; captures != NULL && i < captures->len; i++)
    {
      FakeCapture *capture = captures->pdata[i];
      gboolean own = capture->thread == g_thread_self ();

      if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED
          || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED
          || (!own
              && (thread_mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                  || capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)))
        continue;
      fake_capture_spoil (capture, CUDA_SUCCESS);
      result = TRUE;
    }
  return result;
}

/* Returns TRUE, and invalidates the captures, if a stream of the device captures, or one that waits for the
 * default stream. */
static gboolean
spoil_on_device (const FakeDevice *device, gboolean if_blocking)
{
  gboolean result = FALSE;
  guint i, j;

  for (i = 0; captures != NULL && i < captures->len; i++)
    {
      FakeCapture *capture = captures->pdata[i];

      for (j = 0; j < capture->streams->len; j++)
        {
          const CUstream stream = capture->streams->pdata[j];

          if (stream->device != device || (if_blocking && !stream->is_blocking))
            continue;
          fake_capture_spoil (capture, CUDA_SUCCESS);
          result = TRUE;
        }
    }
  return result;
}

gboolean
fake_capture_on_device (const FakeDevice *device)
{
  return spoil_on_device (device, FALSE);
}

gboolean
fake_capture_blocks (const FakeDevice *device)
{
  return spoil_on_device (device, TRUE);
}

static void
set_before (CUstream stream, gpointer node)
{
  g_ptr_array_set_size (stream->before, 0);
  if (node != NULL)
    g_ptr_array_add (stream->before, node);
}

static void
take_part (FakeCapture *capture, CUstream stream)
{
  stream->capture = fake_capture_ref (capture);
  if (stream->before == NULL)
    stream->before = g_ptr_array_new ();
  set_before (stream, NULL);
  g_ptr_array_add (capture->streams, stream);
}

CUresult
fake_capture_push (CUstream stream, const FakeOp *op)
{
  FakeCapture *capture = stream->capture;
  FakeOp own = *op;

  if (capture->is_spoiled)
    {
      clear_node_op (&own);
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
  own.device = stream->device;
  set_before (stream, graph_add (capture->graph, &own, NULL, stream->before));
  return CUDA_SUCCESS;
}

CUresult
fake_capture_record (CUstream stream, CUevent event)
{
  guint i;

  if (stream->capture->is_spoiled)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event->capture = fake_capture_ref (stream->capture);
  event->before = g_ptr_array_new ();
  for (i = 0; i < stream->before->len; i++)
    g_ptr_array_add (event->before, stream->before->pdata[i]);
  return CUDA_SUCCESS;
}

/* One of the stream and the event is in a capture. */
CUresult
fake_capture_wait (CUstream stream, CUevent event)
{
  guint i;

  if (event->capture != NULL && event->capture->is_over)
    return stream->capture == NULL
               ? CUDA_ERROR_CAPTURED_EVENT
               : fake_capture_spoil (stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (event->capture == NULL)
    return fake_capture_spoil (stream->capture, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (event->capture->is_spoiled)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream->capture != NULL && stream->capture != event->capture)
    {
      fake_capture_spoil (stream->capture, CUDA_SUCCESS);
      return fake_capture_spoil (event->capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
    }
  if (stream->is_default)
    return fake_capture_spoil (event->capture, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  if (stream->capture == NULL)
    take_part (event->capture, stream);
  for (i = 0; i < event->before->len; i++)
    if (!g_ptr_array_find (stream->before, event->before->pdata[i], NULL))
      g_ptr_array_add (stream->before, event->before->pdata[i]);
  return CUDA_SUCCESS;
}

#define FIND(stream)                       \
  do                                       \
    {                                      \
      stream = fake_stream_find (stream);  \
      if (stream == NULL)                  \
        LEAVE (CUDA_ERROR_INVALID_HANDLE); \
    }                                      \
  while (0)

CUresult
cuThreadExchangeStreamCaptureMode (CUstreamCaptureMode *mode)
{
  CUstreamCaptureMode former = thread_mode;

  ENTER (cuThreadExchangeStreamCaptureMode);
  if ((guint) *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  thread_mode = *mode;
  *mode = former;
  LEAVE (CUDA_SUCCESS);
}

static FakeCapture *
capture_new (CUstream stream, CUgraph graph, CUstreamCaptureMode mode)
{
  FakeCapture *capture = g_new0 (FakeCapture, 1);

  capture->refs = 1;
  capture->id = ++last_id;
  capture->mode = mode;
  capture->thread = g_thread_self ();
  capture->graph = graph;
  capture->streams = g_ptr_array_new ();
  if (captures == NULL)
    captures = g_ptr_array_new ();
  g_ptr_array_add (captures, capture);
  take_part (capture, stream);
  return capture;
}

CUresult
cuStreamBeginCapture (CUstream stream, CUstreamCaptureMode mode)
{
  ENTER (cuStreamBeginCapture);
  FIND (stream);
  if ((guint) mode > CU_STREAM_CAPTURE_MODE_RELAXED)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (stream->is_default)
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (stream->capture != NULL)
    LEAVE (CUDA_ERROR_ILLEGAL_STATE);
  if (stream->device->failure != CUDA_SUCCESS)
    LEAVE (stream->device->failure);
  capture_new (stream, graph_new (), mode);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuStreamBeginCaptureToGraph (CUstream stream, CUgraph graph, const CUgraphNode *before,
                             const CUgraphEdgeData *edges, size_t n_before,
                             CUstreamCaptureMode mode)
{
  FakeCapture *capture;
  size_t i;

  ENTER (cuStreamBeginCaptureToGraph);
  FIND (stream);
  if ((guint) mode > CU_STREAM_CAPTURE_MODE_RELAXED || edges != NULL
      || !g_hash_table_contains (alive, graph))
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (stream->is_default)
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (stream->capture != NULL)
    LEAVE (CUDA_ERROR_ILLEGAL_STATE);
  capture = capture_new (stream, graph, mode);
  capture->is_in_body = TRUE;
  for (i = 0; i < n_before; i++)
    g_ptr_array_add (stream->before, before[i]);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuStreamUpdateCaptureDependencies (CUstream stream, CUgraphNode *before, size_t n_before,
                                   unsigned int flags)
{
  size_t i;

  ENTER (cuStreamUpdateCaptureDependencies);
  FIND (stream);
  if (stream->capture == NULL)
    LEAVE (CUDA_ERROR_ILLEGAL_STATE);
  if (stream->capture->is_spoiled)
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  for (i = 0; i < n_before; i++)
    if (!g_ptr_array_find (stream->capture->graph->nodes, before[i], NULL))
      LEAVE (CUDA_ERROR_INVALID_VALUE);
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    set_before (stream, NULL);
  for (i = 0; i < n_before; i++)
    g_ptr_array_add (stream->before, before[i]);
  LEAVE (CUDA_SUCCESS);
}

static gboolean
have_joined (FakeCapture *capture)
{
  CUstream first = capture->streams->pdata[0];
  guint i, j;

  clear_marks (capture->graph);
  for (i = 0; i < first->before->len; i++)
    mark_before (first->before->pdata[i]);
  for (i = 1; i < capture->streams->len; i++)
    {
      CUstream stream = capture->streams->pdata[i];

      for (j = 0; j < stream->before->len; j++)
        if (!((CUgraphNode) stream->before->pdata[j])->mark)
          return FALSE;
    }
  return TRUE;
}

CUresult
cuStreamEndCapture (CUstream stream, CUgraph *graph)
{
  FakeCapture *capture;
  CUresult result = CUDA_SUCCESS;
  guint i;

  ENTER (cuStreamEndCapture);
  FIND (stream);
  *graph = NULL;
  capture = stream->capture;
  if (capture == NULL)
    LEAVE (CUDA_ERROR_ILLEGAL_STATE);
  if (capture->streams->pdata[0] != stream)
    LEAVE (fake_capture_spoil (capture, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != g_thread_self ())
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  if (capture->is_spoiled)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (!have_joined (capture))
    result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  else
    *graph = g_steal_pointer (&capture->graph);
  capture->is_over = TRUE;
  g_ptr_array_remove (captures, capture);
  for (i = 0; i < capture->streams->len; i++)
    {
      ((CUstream) capture->streams->pdata[i])->capture = NULL;
      capture->refs--;
    }
  g_ptr_array_set_size (capture->streams, 0);
  fake_capture_unref (capture);
  LEAVE (result);
}

static CUstreamCaptureStatus
capture_status (CUstream stream)
{
  if (stream->capture == NULL)
    return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->capture->is_spoiled ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                     : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult
cuStreamIsCapturing (CUstream stream, CUstreamCaptureStatus *status)
{
  CUstream found;

  ENTER (cuStreamIsCapturing);
  found = fake_stream_find (stream);
  if (found == NULL) /* the real driver reads the current value */
    LEAVE (fake_misuse (CUDA_ERROR_INVALID_HANDLE, "cuStreamIsCapturing of %p", (void *) stream));
  *status = capture_status (found);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuStreamGetCaptureInfo (CUstream stream, CUstreamCaptureStatus *status, uint64_t *id,
                        CUgraph *graph, const CUgraphNode **before, size_t *n_before)
{
  gboolean is_active;

  ENTER (cuStreamGetCaptureInfo);
  FIND (stream);
  *status = capture_status (stream);
  is_active = *status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (id != NULL)
    *id = is_active ? stream->capture->id : 0;
  if (graph != NULL)
    *graph = is_active ? stream->capture->graph : NULL;
  if (before != NULL)
    *before = is_active ? (const CUgraphNode *) stream->before->pdata : NULL;
  if (n_before != NULL)
    *n_before = is_active ? stream->before->len : 0;
  LEAVE (CUDA_SUCCESS);
}

/* --- graph functions --- */

CUresult
cuGraphCreate (CUgraph *graph, unsigned int flags)
{
  ENTER (cuGraphCreate);
  if (flags != 0)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  *graph = graph_new ();
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphDestroy (CUgraph graph)
{
  ENTER (cuGraphDestroy);
  graph_free (graph);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphGetNodes (CUgraph graph, CUgraphNode *nodes, size_t *n)
{
  size_t i;

  ENTER (cuGraphGetNodes);
  for (i = 0; nodes != NULL && i < *n; i++)
    nodes[i] = i < graph->nodes->len ? graph->nodes->pdata[i] : NULL;
  *n = graph->nodes->len;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphConditionalHandleCreate (CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context,
                                unsigned int value, unsigned int flags)
{
  FakeCondition *condition;

  ENTER (cuGraphConditionalHandleCreate);
  if (context == NULL || flags > CU_GRAPH_COND_ASSIGN_DEFAULT
      || !g_hash_table_contains (alive, graph))
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  condition = g_new0 (FakeCondition, 1);
  condition->refs = 1;
  /* Without a default, the condition keeps the value of the last run: any value is possible. */
  condition->value = condition->first = flags != 0 ? value : fake_draw (2);
  set_alive (condition, TRUE);
  if (graph->conditions == NULL)
    graph->conditions = g_ptr_array_new_with_free_func (condition_unref);
  g_ptr_array_add (graph->conditions, condition);
  *handle = (guintptr) condition;
  LEAVE (CUDA_SUCCESS);
}

/* Supports only conditional nodes with one body. The node takes the handle. */
CUresult
cuGraphAddNode (CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                const CUgraphEdgeData *edges, size_t n_before, CUgraphNodeParams *parameters)
{
  FakeOp op = { .kind = FAKE_BRANCH };
  size_t i;

  ENTER (cuGraphAddNode);
  op.branch.condition = (FakeCondition *) (guintptr) parameters->conditional.handle;
  if (parameters->type != CU_GRAPH_NODE_TYPE_CONDITIONAL || edges != NULL
      || parameters->conditional.type != CU_GRAPH_COND_TYPE_IF || parameters->conditional.size != 1
      || parameters->conditional.ctx == NULL || !g_hash_table_contains (alive, graph)
      || graph->conditions == NULL
      || !g_ptr_array_find (graph->conditions, op.branch.condition, NULL)
      || op.branch.condition->has_node)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  for (i = 0; i < n_before; i++)
    if (!g_ptr_array_find (graph->nodes, before[i], NULL))
      LEAVE (CUDA_ERROR_INVALID_VALUE);
  op.branch.condition->has_node = TRUE;
  op.branch.condition->refs++;
  op.branch.body = graph_new ();
  op.device = parameters->conditional.ctx;
  *node = graph_add (graph, &op, NULL, NULL);
  for (i = 0; i < n_before; i++)
    g_ptr_array_add ((*node)->before, before[i]);
  parameters->conditional.phGraph_out = &(*node)->op.branch.body;
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphExecKernelNodeSetParams (CUgraphExec exec, CUgraphNode node,
                                const CUDA_KERNEL_NODE_PARAMS *parameters)
{
  const FakeKernel *kernel;
  CUgraphNode own;

  ENTER (cuGraphExecKernelNodeSetParams);
  own = g_hash_table_lookup (exec->copies, node);
  if (own == NULL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  kernel = own->op.launch.kernel;
  if (own->child != NULL || own->op.kind != FAKE_KERNEL
      || (const FakeKernel *) parameters->func != kernel)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  memcpy (own->op.launch.parameter, parameters->kernelParams[0], kernel->n_bytes);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphInstantiateWithFlags (CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
  FakeDevice *device;
  gboolean are_right = TRUE;

  ENTER_CURRENT (cuGraphInstantiateWithFlags, device);
  if (have_branches (graph, &are_right) && (!are_right || graph->has_exec))
    LEAVE (are_right ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE);
  *exec = g_new0 (struct CUgraphExec_st, 1);
  (*exec)->copies = g_hash_table_new (NULL, NULL);
  (*exec)->graph = graph_copy (graph, (*exec)->copies);
  (*exec)->made_from = graph;
  graph->has_exec = TRUE;
  set_alive (*exec, TRUE);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphExecDestroy (CUgraphExec exec)
{
  ENTER (cuGraphExecDestroy);
  graph_free (exec->graph);
  g_hash_table_unref (exec->copies);
  if (g_hash_table_contains (alive, exec->made_from))
    exec->made_from->has_exec = FALSE;
  set_alive (exec, FALSE);
  g_free (exec);
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphUpload (CUgraphExec exec, CUstream stream)
{
  ENTER (cuGraphUpload);
  FIND (stream);
  if (stream->capture != NULL)
    LEAVE (fake_capture_spoil (stream->capture, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  LEAVE (stream->device->failure);
}

CUresult
cuGraphLaunch (CUgraphExec exec, CUstream stream)
{
  gboolean are_right = TRUE;

  ENTER (cuGraphLaunch);
  FIND (stream);
  if (stream->capture == NULL)
    LEAVE (graph_enqueue (exec->graph, stream));
  if (stream->capture->is_spoiled)
    LEAVE (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  if (have_branches (exec->graph, &are_right))
    LEAVE (fake_capture_spoil (stream->capture, CUDA_ERROR_NOT_SUPPORTED));
  set_before (stream, graph_add (stream->capture->graph, NULL, graph_copy (exec->graph, NULL),
                                 stream->before));
  LEAVE (CUDA_SUCCESS);
}

CUresult
cuGraphDebugDotPrint (CUgraph graph, const char *path, unsigned int flags)
{
  FILE *file;
  guint i, j;

  ENTER (cuGraphDebugDotPrint);
  file = fopen (path, "w");
  if (file == NULL)
    LEAVE (CUDA_ERROR_INVALID_VALUE);
  fputs ("digraph dot {\n", file);
  for (i = 0; i < graph->nodes->len; i++)
    {
      CUgraphNode node = graph->nodes->pdata[i];

      fprintf (file, "  \"%u\" [label=\"%s\"];\n", i,
               node->child != NULL            ? "graph"
               : node->op.kind == FAKE_KERNEL ? node->op.launch.kernel->name
               : node->op.kind == FAKE_BRANCH ? "branch"
                                              : "memory");
      for (j = 0; j < node->before->len; j++)
        fprintf (file, "  \"%u\" -> \"%u\";\n", graph_index (graph, node->before->pdata[j]), i);
    }
  fputs ("}\n", file);
  fclose (file);
  LEAVE (CUDA_SUCCESS);
}
