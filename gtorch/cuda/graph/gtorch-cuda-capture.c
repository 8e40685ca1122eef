/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Captures and graphs of a GPU. Operations are launched as usual, on queues that are capturing; their
 * outputs are allocated from the graph's pool. The driver's graph contains addresses and numbers, of which
 * those of random calls are replaced before each replay.
 *
 * Queues of other GPUs take part as well: an event of the capture makes them join, and what they launch
 * becomes nodes that the driver executes on their GPU. One launch, on the GPU on which the capture began,
 * replays all, and is done when all are: what waits for it waits for nothing else.
 *
 * Other threads continue meanwhile. Code that needs an event after a capturing queue's earlier work (to
 * free memory, for example) uses one that was recorded when the capture began. */

#include "config.h"

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"
#include "cuda/ops/gtorch-cuda-recording-private.h"
#include "base/gtorch-check-private.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#define USE_NODE_PRIORITY 8

/* A kernel that uses random numbers. */
typedef struct
{
  GTorchCudaDevice *device;
  CUgraphNode node;
  guint64 number; /* the call's index among the random calls */
  gsize offset;   /* offset of the GtRandom in the parameters */
  gpointer values;
  CUDA_KERNEL_NODE_PARAMS parameters;
} Draw;

/* An object that nodes need beside memory, such as the plan of a Fourier transform. */
typedef struct
{
  gpointer object;
  GDestroyNotify drop;
} Kept;

/* An event that was recorded in the capture. */
typedef struct
{
  GTorchCudaDevice *device;
  CUevent event;
} Recorded;

struct _GTorchCudaCapture
{
  GTorchCudaDevice *device; /* on which it began */
  /* By index of the device: the pool of lanes that take part, borrowed from the caller. Written under the
   * lock of that device, before any lane of it takes part. */
  GTorchPool *pools[GTORCH_CUDA_MAX_DEVICES];
  GPtrArray *lanes; /* lanes in the capture; it began on the first */
  CUstreamCaptureMode mode;
  GArray *branches; /* GTorchCudaBranch: the open branches */
  GArray *events;   /* Recorded */
  GArray *draws;
  GArray *kept;     /* Kept */
  GPtrArray *hosts; /* GTorchImpl: in pinned memory that is copied from or to, each storage once */
  guint peers;      /* bit i: something is copied from or to CUDA device i */
  GTorchCudaOwnNodes *own;
  GString *loaded; /* names of kernels loaded during the capture, with GTORCH_CHECK=graph */
  gboolean has_priorities, has_others;
};

typedef struct
{
  GTorchCudaDevice *device;
  CUgraph graph;
  CUgraphExec exec;
  GArray *draws;
  GArray *kept;
  GPtrArray *hosts;
  gboolean has_priorities; /* whether a stream has a priority other than the default */
  gboolean has_others;     /* whether lanes of other devices took part */
  GTorchCudaLane *last;    /* the lane on which the graph was last replayed */
  GTorchCudaOwnNodes *own; /* freed by the audit */
} Graph;

/* A freed graph whose last replay the device may still be executing. */
typedef struct
{
  CUevent event;
  GArray *kept;
  GDestroyNotify func;
  gpointer data;
} Dead;

static GTorchCudaLane *
lane_of (GTorchStream *stream)
{
  return GTORCH_CUDA_STREAM (stream)->lane;
}

/* --- lanes that capture --- */

/* Makes the device's signal queue on first use; the device's lock must be held. */
static gboolean
have_signal (GTorchCudaDevice *device, GError **error)
{
  return device->signal != NULL
         || gtorch_cuda_check (gtorch_cuda.cuStreamCreateWithPriority (&device->signal,
                                                                       CU_STREAM_NON_BLOCKING, 0),
                               "cuStreamCreate", error);
}

/* Lets the lane, whose context is current, take part; its allocations come from the pool. */
static gboolean
add_lane (GTorchCudaCapture *self, GTorchCudaLane *lane, GTorchPool *pool, GError **error)
{
  GTorchCudaDevice *device = lane->device;
  CUevent event;
  gboolean result;

  event = gtorch_cuda_event_get (device, FALSE, error);
  if (event == NULL)
    return FALSE;
  g_mutex_lock (&device->lock);
  /* Wait for threads that are waiting for the context, which they could not do during a capture. */
  while (device->n_settling > 0)
    g_cond_wait (&device->settled, &device->lock);
  result = have_signal (device, error)
           && gtorch_cuda_check (gtorch_cuda.cuEventRecord (event, lane->handle), "cuEventRecord",
                                 error);
  if (result)
    {
      lane->before = event;
      self->pools[device->parent_instance.index] = pool;
      __atomic_store_n (&lane->capture, self, __ATOMIC_RELEASE);
      g_ptr_array_add (self->lanes, lane);
      self->has_priorities |= lane->priority != 0;
      self->has_others |= device != self->device;
    }
  g_mutex_unlock (&device->lock);
  if (!result)
    gtorch_cuda_event_put (device, event, FALSE);
  return result;
}

static void
drop_lane (GTorchCudaCapture *self, GTorchCudaLane *lane)
{
  CUevent event;

  g_mutex_lock (&lane->device->lock);
  event = lane->before;
  lane->before = NULL;
  __atomic_store_n (&lane->capture, NULL, __ATOMIC_RELEASE);
  g_ptr_array_remove (self->lanes, lane);
  g_mutex_unlock (&lane->device->lock);
  gtorch_cuda_event_put (lane->device, event, FALSE);
}

GTorchPool *
gtorch_cuda_lane_dup_pool (GTorchCudaLane *lane)
{
  GTorchPool *result = NULL;

  if (G_LIKELY (gtorch_cuda_lane_capture (lane) == NULL))
    return NULL;
  g_mutex_lock (&lane->device->lock); /* another thread may be ending the capture */
  if (lane->capture != NULL)
    result = gtorch_pool_ref (lane->capture->pools[lane->device->parent_instance.index]);
  g_mutex_unlock (&lane->device->lock);
  return result;
}

gboolean
gtorch_cuda_allow_wait (GTorchCudaLane *lane, const gchar *what, GError **error)
{
  if (G_LIKELY (gtorch_cuda_lane_capture (lane) == NULL))
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
               _ ("%s: the host would have to wait for the stream, which captures a "
                  "graph: nothing is computed before the graph is replayed"),
               what);
  return FALSE;
}

CUevent
gtorch_cuda_lane_mark (GTorchCudaLane *lane, GError **error)
{
  CUevent event = gtorch_cuda_event_get (lane->device, FALSE, error);
  CUstream stream = lane->handle;
  CUresult result = CUDA_SUCCESS;

  if (event == NULL)
    return NULL;
  if (G_UNLIKELY (lane->before != NULL))
    {
      stream = lane->device->signal;
      result = gtorch_cuda.cuStreamWaitEvent (stream, lane->before, 0);
    }
  else if (G_UNLIKELY (gtorch_cuda_lane_is_closed (lane)))
    { /* its queue may not exist: everything is over before the event is recorded */
      stream = lane->device->signal;
      result = gtorch_cuda_context_wait ();
    }
  if (result == CUDA_SUCCESS)
    result = gtorch_cuda.cuEventRecord (event, stream);
  if (gtorch_cuda_check (result, "cuEventRecord", error))
    return event;
  gtorch_cuda_event_put (lane->device, event, FALSE);
  return NULL;
}

CUresult
gtorch_cuda_lane_settle (GTorchCudaLane *lane)
{
  if (lane->before != NULL)
    return gtorch_cuda_event_wait (lane->device, lane->before, FALSE);
  return gtorch_cuda_lane_is_closed (lane) ? gtorch_cuda_context_wait ()
                                           : gtorch_cuda.cuStreamSynchronize (lane->handle);
}

gboolean
gtorch_cuda_device_is_capturing (GTorchCudaDevice *device)
{
  gboolean captures = FALSE;
  GTorchCudaLane *lane;

  if (gtorch_captures_exist ())
    for (lane = device->newest; lane != NULL; lane = lane->next)
      captures |= gtorch_cuda_lane_capture (lane) != NULL;
  return captures;
}

/* Waits for the context. The device's lock must be held; it is released meanwhile, but no lane begins to
 * capture. */
static CUresult
wait_for_context (GTorchCudaDevice *device)
{
  CUresult result;

  device->n_settling++;
  g_mutex_unlock (&device->lock);
  result = gtorch_cuda_device_wait (device);
  g_mutex_lock (&device->lock);
  if (--device->n_settling == 0)
    g_cond_broadcast (&device->settled);
  return result;
}

CUresult
gtorch_cuda_device_settle (GTorchCudaDevice *device)
{
  CUresult result = CUDA_SUCCESS;
  GTorchCudaLane *lane;

  g_mutex_lock (&device->lock); /* keeps other lanes from starting a capture */
  if (!gtorch_cuda_device_is_capturing (device))
    result = wait_for_context (device);
  else
    for (lane = device->newest; result == CUDA_SUCCESS && lane != NULL; lane = lane->next)
      if (!gtorch_cuda_lane_is_closed (lane))
        result = gtorch_cuda_lane_settle (lane);
  g_mutex_unlock (&device->lock);
  return result;
}

gboolean
gtorch_cuda_device_try_settle (GTorchCudaDevice *device)
{
  gboolean result;

  g_mutex_lock (&device->lock);
  result = !gtorch_cuda_device_is_capturing (device) && wait_for_context (device) == CUDA_SUCCESS;
  g_mutex_unlock (&device->lock);
  return result;
}

/* --- memory --- */

void
gtorch_cuda_hold_block (GTorchCudaDevice *device, GTorchCudaBlock *block)
{
  g_mutex_lock (&device->lock);
  block->list_next = device->held;
  device->held = block;
  g_mutex_unlock (&device->lock);
}

static void
release_held (const GTorchPool *pool)
{
  GTorchCudaDevice *device = GTORCH_CUDA_DEVICE (pool->device);
  GTorchCudaBlock **place, *block, *released = NULL;

  g_mutex_lock (&device->lock);
  for (place = &device->held; (block = *place) != NULL;)
    {
      if (gtorch_cuda_get_pool (&block->storage) != pool)
        {
          place = &block->list_next;
          continue;
        }
      *place = block->list_next;
      block->list_next = released;
      released = block;
    }
  g_mutex_unlock (&device->lock);
  while ((block = released) != NULL)
    {
      released = block->list_next;
      block->list_next = NULL;
      gtorch_cuda_send_to_limbo (device, block);
    }
}

/* --- captures --- */

static void
clear_draw (gpointer data)
{
  g_free (((Draw *) data)->values);
}

static void
clear_kept (gpointer data)
{
  const Kept *kept = data;

  kept->drop (kept->object);
}

static GTorchCudaCapture *
capture_new (GTorchCudaDevice *device)
{
  GTorchCudaCapture *self = g_new0 (GTorchCudaCapture, 1);

  self->device = device;
  self->lanes = g_ptr_array_new ();
  self->own = gtorch_cuda_own_nodes_new ();
  self->branches = g_array_new (FALSE, FALSE, sizeof (GTorchCudaBranch));
  self->events = g_array_new (FALSE, FALSE, sizeof (Recorded));
  self->draws = g_array_new (FALSE, FALSE, sizeof (Draw));
  g_array_set_clear_func (self->draws, clear_draw);
  self->kept = g_array_new (FALSE, FALSE, sizeof (Kept));
  g_array_set_clear_func (self->kept, clear_kept);
  self->hosts = g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  return self;
}

static void
capture_free (GTorchCudaCapture *self)
{
  guint i;

  while (self->lanes->len > 0)
    drop_lane (self, self->lanes->pdata[self->lanes->len - 1]);
  for (i = 0; i < self->events->len; i++)
    {
      const Recorded *recorded = &g_array_index (self->events, Recorded, i);

      gtorch_cuda_event_put (recorded->device, recorded->event, FALSE);
    }
  g_ptr_array_unref (self->lanes);
  g_array_unref (self->branches);
  g_array_unref (self->events);
  g_clear_pointer (&self->draws, g_array_unref);
  g_clear_pointer (&self->kept, g_array_unref);
  g_clear_pointer (&self->hosts, g_ptr_array_unref);
  g_clear_pointer (&self->own, gtorch_cuda_own_nodes_free);
  if (self->loaded != NULL)
    g_string_free (self->loaded, TRUE);
  g_free (self);
}

void
gtorch_cuda_lane_keep (GTorchCudaLane *lane, gpointer object, GDestroyNotify drop)
{
  GTorchCudaCapture *capture = gtorch_cuda_lane_capture (lane);
  Kept kept = { object, drop };
  guint i;

  for (i = 0; capture != NULL && i < capture->kept->len; i++)
    if (g_array_index (capture->kept, Kept, i).object == object)
      capture = NULL; /* the capture keeps the object already */
  if (capture != NULL)
    g_array_append_val (capture->kept, kept);
  else
    drop (object);
}

void
gtorch_cuda_lane_keep_host (GTorchCudaLane *lane, GTorchImpl *impl)
{
  GTorchCudaCapture *capture = gtorch_cuda_lane_capture (lane);
  guint i;

  for (i = 0; i < capture->hosts->len; i++)
    if (((GTorchImpl *) capture->hosts->pdata[i])->storage == impl->storage)
      return;
  g_ptr_array_add (capture->hosts, gtorch_impl_alias (impl));
}

static gpointer
begin_capture (GTorchStream *stream, GTorchPool *pool, GTorchCaptureMode mode, GError **error)
{
  static const CUstreamCaptureMode modes[] = {
    [GTORCH_CAPTURE_MODE_THREAD_LOCAL] = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    [GTORCH_CAPTURE_MODE_GLOBAL] = CU_STREAM_CAPTURE_MODE_GLOBAL,
    [GTORCH_CAPTURE_MODE_RELAXED] = CU_STREAM_CAPTURE_MODE_RELAXED,
  };
  GTorchCudaLane *lane = lane_of (stream);
  GTorchCudaCapture *self;
  GTORCH_CUDA_APART;

  if (!gtorch_device_works (stream->device, error) || !gtorch_cuda_stream_prepare (stream, error))
    return NULL;
  if (gtorch_cuda_lane_capture (lane) != NULL)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: another graph captures the queue of stream %p"), stream);
      return NULL;
    }
  gtorch_cuda_collect_graphs (lane->device);
  self = capture_new (lane->device);
  self->mode = modes[mode];
  if (add_lane (self, lane, pool, error)
      && gtorch_cuda_check (gtorch_cuda.cuStreamBeginCapture (lane->handle, self->mode),
                            "graph: cuStreamBeginCapture", error))
    return self;
  capture_free (self);
  return NULL;
}

static gboolean
record (gpointer capture, GTorchStream *stream, GTorchFence *fence, GError **error)
{
  GTorchCudaCapture *self = capture;
  Recorded recorded = { lane_of (stream)->device, NULL };

  if (!gtorch_cuda_stream_prepare (stream, error))
    return FALSE;
  recorded.event = gtorch_cuda_event_get (recorded.device, FALSE, error);
  if (recorded.event == NULL)
    return FALSE;
  g_array_append_val (self->events, recorded);
  fence->handle = recorded.event;
  return gtorch_cuda_check (gtorch_cuda.cuEventRecord (recorded.event, lane_of (stream)->handle),
                            "graph: cuEventRecord", error);
}

static gboolean
join (gpointer capture, GTorchStream *stream, GTorchPool *pool, GTorchFence *fence, GError **error)
{
  GTorchCudaCapture *self = capture;
  GTorchCudaLane *lane = lane_of (stream);
  gboolean is_new;
  GTORCH_CUDA_APART;

  if (!gtorch_cuda_stream_prepare (stream, error))
    return FALSE;
  is_new = gtorch_cuda_lane_capture (lane) == NULL;
  if (!is_new && gtorch_cuda_lane_capture (lane) != self)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CAPTURE,
                   _ ("graph: stream %p cannot take part: another graph captures its queue"),
                   stream);
      return FALSE;
    }
  if (is_new && !add_lane (self, lane, pool, error))
    return FALSE;
  if (gtorch_cuda_check (gtorch_cuda.cuStreamWaitEvent (lane->handle, fence->handle, 0),
                         "graph: cuStreamWaitEvent", error))
    return TRUE;
  if (is_new)
    drop_lane (self, lane);
  return FALSE;
}

static void
enter (gpointer capture, GTorchStream *stream)
{
  gtorch_cuda_own_nodes_enter (((GTorchCudaCapture *) capture)->own, lane_of (stream)->handle);
}

static void
leave (gpointer capture, GTorchStream *stream)
{
  gtorch_cuda_own_nodes_leave (((GTorchCudaCapture *) capture)->own, lane_of (stream)->handle);
}

static gboolean
begin_branch (gpointer capture, GTorchStream *stream, GTorchImpl *predicate, GError **error)
{
  GTorchCudaCapture *self = capture;
  GTorchCudaLane *lane = lane_of (stream);
  GTorchCudaBranch branch = { .n_lanes = self->lanes->len };
  GTORCH_CUDA_APART;

  if (lane->device != self->device)
    { /* in a graph that is replayed in the capture */
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED,
                   _ ("graph: a branch on %s is not supported in a capture that began on %s"),
                   gtorch_device_name (stream->device),
                   gtorch_device_name (&self->device->parent_instance));
      return FALSE;
    }
  if (!gtorch_cuda_branch_begin (&branch, lane, gtorch_impl_data (predicate), self->mode, error))
    return FALSE;
  gtorch_cuda_use_storage (predicate->storage, lane);
  gtorch_cuda_own_nodes_leave (self->own, branch.outer);
  gtorch_cuda_own_nodes_add_body (self->own, branch.body);
  gtorch_cuda_own_nodes_enter (self->own, lane->handle);
  g_array_append_val (self->branches, branch);
  return TRUE;
}

/* Makes the branch wait for lanes that have joined the capture since the branch began. The driver would end
 * the body without them and crash when the graph is freed; the end of the capture reports the missing
 * wait. */
static void
join_others (GTorchCudaCapture *self, const GTorchCudaBranch *branch)
{
  guint i;

  for (i = branch->n_lanes; i < self->lanes->len; i++)
    {
      GTorchCudaLane *other = self->lanes->pdata[i];
      CUevent event = gtorch_cuda_event_get (self->device, FALSE, NULL);

      if (event == NULL)
        continue;
      if (gtorch_cuda.cuEventRecord (event, other->handle) == CUDA_SUCCESS)
        gtorch_cuda.cuStreamWaitEvent (branch->lane->handle, event, 0);
      gtorch_cuda_event_put (self->device, event, FALSE);
    }
}

static gboolean
close_branch (GTorchCudaCapture *self, GError **error)
{
  GTorchCudaBranch branch =
      g_array_index (self->branches, GTorchCudaBranch, self->branches->len - 1);
  gboolean result;

  g_array_set_size (self->branches, self->branches->len - 1);
  gtorch_cuda_device_activate (self->device, NULL); /* all its lanes are on this one */
  gtorch_cuda_own_nodes_leave (self->own, branch.lane->handle);
  join_others (self, &branch);
  result = gtorch_cuda_branch_end (&branch, error);
  while (self->lanes->len > branch.n_lanes)
    drop_lane (self, self->lanes->pdata[self->lanes->len - 1]);
  gtorch_cuda_own_nodes_enter (self->own, branch.lane->handle);
  return result;
}

static gboolean
end_branch (gpointer capture, GTorchStream *stream, GError **error)
{
  GTORCH_CUDA_APART;

  return close_branch (capture, error);
}

gboolean
gtorch_cuda_capture_load (GTorchCudaCapture *capture, CUfunction function, GError **error)
{
  CUfunctionLoadingState state = CU_FUNCTION_LOADING_STATE_LOADED;
  const gchar *name = "?";

  /* If the state is unknown, the launch reports what is wrong. */
  if (gtorch_cuda.cuFuncIsLoaded (&state, function) != CUDA_SUCCESS
      || state != CU_FUNCTION_LOADING_STATE_UNLOADED)
    return TRUE;
  if (!gtorch_cuda_check (gtorch_cuda.cuFuncLoad (function), "graph: cuFuncLoad", error))
    return FALSE;
  if (!gtorch_is_checking (GTORCH_CHECK_GRAPH))
    return TRUE;
  gtorch_cuda.cuFuncGetName (&name, function);
  if (capture->loaded == NULL)
    capture->loaded = g_string_new (NULL);
  g_string_append_printf (capture->loaded, "%s%s", capture->loaded->len > 0 ? ", " : "", name);
  return TRUE;
}

CUresult
gtorch_cuda_stream_end_capture (CUstream stream, CUgraph *graph, gboolean *is_over)
{
  CUresult result, again;
  guint i;

  *graph = NULL;
  again = result = gtorch_cuda.cuStreamEndCapture (stream, graph);
  for (i = 0; i < 3 && again != CUDA_SUCCESS && again != CUDA_ERROR_ILLEGAL_STATE; i++)
    again = gtorch_cuda.cuStreamEndCapture (stream, graph);
  *is_over = again == CUDA_SUCCESS || again == CUDA_ERROR_ILLEGAL_STATE;
  return result;
}

static gpointer
end_capture (gpointer capture, GError **error)
{
  GTorchCudaCapture *self = capture;
  GTorchCudaDevice *device = self->device;
  GTorchCudaLane *first = self->lanes->pdata[0];
  GTorchPool *pools[GTORCH_CUDA_MAX_DEVICES];
  Graph *graph = NULL;
  CUgraph captured;
  gboolean is_over;
  CUresult result;
  guint i;
  GTORCH_CUDA_APART;

  memcpy (pools, self->pools, sizeof pools);
  gtorch_cuda_device_activate (device, NULL);
  while (self->branches->len > 0)
    close_branch (self, NULL);
  result = gtorch_cuda_stream_end_capture (first->handle, &captured, &is_over);
  if (result != CUDA_SUCCESS && captured != NULL)
    gtorch_cuda.cuGraphDestroy (captured);
  if (!is_over && gtorch_cuda_lane_is_capturing (first))
    { /* another thread may have begun the capture; its lanes are left as they are, unused */
      g_warning ("a capture was given up where it cannot be ended, perhaps in another thread than "
                 "the one in which it began: its streams are lost");
      gtorch_cuda_check (result, "graph: cuStreamEndCapture", error);
      g_atomic_int_inc (&gtorch_n_captures); /* the capture never ends */
      for (i = 0; i < GTORCH_CUDA_MAX_DEVICES; i++)
        if (pools[i] != NULL)
          gtorch_pool_ref (pools[i]); /* streams may still refer to it */
      return NULL;
    }
  if (gtorch_cuda_check (result, "graph: cuStreamEndCapture", error))
    {
      graph = g_new0 (Graph, 1);
      graph->device = device;
      graph->graph = captured;
      graph->draws = g_steal_pointer (&self->draws);
      graph->kept = g_steal_pointer (&self->kept);
      graph->hosts = g_steal_pointer (&self->hosts);
      graph->own = g_steal_pointer (&self->own);
      graph->has_priorities = self->has_priorities;
      graph->has_others = self->has_others;
    }
  if (self->loaded != NULL)
    g_message ("graph: these kernels were loaded while it was captured, which may have taken long: "
               "%s; a warm-up loads them before",
               self->loaded->str);
  capture_free (self);
  for (i = 0; i < GTORCH_CUDA_MAX_DEVICES; i++)
    if (pools[i] != NULL)
      release_held (pools[i]);
  return graph;
}

/* --- graphs --- */

static gboolean
audit (gpointer data, GTorchPool *pool, GTorchGraphKeeps keeps, gpointer keeps_data,
       GTorchForeignNodes *found, GError **error)
{
  Graph *self = data;
  g_autoptr (GTorchCudaOwnNodes) own = g_steal_pointer (&self->own);
  GTORCH_CUDA_APART;

  return gtorch_cuda_device_activate (self->device, error)
         && gtorch_cuda_own_nodes_audit (own, self->graph, pool, keeps, keeps_data, found, error);
}

static gboolean
prepare (gpointer data, GError **error)
{
  Graph *self = data;
  GTorchCudaDevice *device = self->device;
  gboolean result;
  GTORCH_CUDA_APART;

  if (!gtorch_cuda_device_activate (device, error))
    return FALSE;
  if (self->exec == NULL
      && !gtorch_cuda_check (gtorch_cuda.cuGraphInstantiateWithFlags (&self->exec, self->graph,
                                                                      self->has_priorities
                                                                          ? USE_NODE_PRIORITY
                                                                          : 0),
                             "graph: cuGraphInstantiate", error))
    return FALSE;
  g_mutex_lock (&device->lock);
  result = have_signal (device, error)
           && gtorch_cuda_check (gtorch_cuda.cuGraphUpload (self->exec, device->signal),
                                 "graph: cuGraphUpload", error);
  g_mutex_unlock (&device->lock);
  return result;
}

static gboolean
follow (GTorchPool *pool, GTorchStream *stream, GError **error)
{
  GTorchCudaLane *lane = lane_of (stream), *last = g_atomic_pointer_get (&pool->queue);
  gboolean result = TRUE;
  GTORCH_CUDA_APART;

  if (G_LIKELY (last == lane))
    return TRUE;
  if (last != NULL)
    {
      if (!gtorch_cuda_stream_prepare (stream, error))
        return FALSE;
      g_mutex_lock (&lane->device->lock);
      result = gtorch_cuda_lane_join (lane, last, error);
      g_mutex_unlock (&lane->device->lock);
    }
  if (result)
    g_atomic_pointer_set (&pool->queue, lane);
  return result;
}

static gboolean
set_numbers (Graph *self, const guint64 *numbers, GError **error)
{
  guint i;

  for (i = 0; i < self->draws->len; i++)
    {
      Draw *draw = &g_array_index (self->draws, Draw, i);
      const guint64 *own = numbers + 2 * draw->number;

      gtorch_cuda_random_keys ((GtRandom *) ((gchar *) draw->values + draw->offset), own[0],
                               own[1]);
      draw->parameters.kernelParams = &draw->values;
      if (self->has_others && !gtorch_cuda_device_activate (draw->device, error))
        return FALSE;
      if (!gtorch_cuda_check (gtorch_cuda.cuGraphExecKernelNodeSetParams (self->exec, draw->node,
                                                                          &draw->parameters),
                              "graph: cuGraphExecKernelNodeSetParams", error))
        return FALSE;
    }
  return !self->has_others || gtorch_cuda_device_activate (self->device, error);
}

static gboolean
replay (gpointer data, GTorchStream *stream, const guint64 *numbers, GError **error)
{
  Graph *self = data;
  GTorchCudaLane *lane = lane_of (stream);
  gboolean result;
  guint i;
  GTORCH_CUDA_APART;

  if (!gtorch_device_works (stream->device, error) || !gtorch_cuda_stream_prepare (stream, error)
      || (self->draws->len > 0 && !set_numbers (self, numbers, error)))
    return FALSE;
  for (i = 0; i < self->hosts->len; i++)
    if (!gtorch_cuda_come_after_host (self->hosts->pdata[i], lane, error))
      return FALSE;
  self->last = lane;
  gtorch_cuda_note_begin (lane, "graph");
  result = gtorch_cuda_check (gtorch_cuda.cuGraphLaunch (self->exec, lane->handle),
                              "graph: cuGraphLaunch", error);
  if (!gtorch_cuda_note_end (lane, result))
    return FALSE;
  for (i = 0; i < self->hosts->len; i++)
    if (!gtorch_host_note_copy (((GTorchImpl *) self->hosts->pdata[i])->storage, stream, error))
      return FALSE;
  return !gtorch_get_launch_blocking () || gtorch_cuda_lane_synchronize (lane, "graph", error);
}

/* Work of the current stream of another device comes after the replay. */
static void
note_write (GTorchStorage *storage, GTorchStream *stream)
{
  if (gtorch_device_is_host (storage->device))
    return;
  if (storage->device != stream->device)
    stream = gtorch_stream_get_current (storage->device);
  if (lane_of (stream) != NULL)
    gtorch_cuda_use_storage (storage, lane_of (stream));
}

void
gtorch_cuda_collect_graphs (GTorchCudaDevice *device)
{
  g_autoptr (GArray) ready = NULL;
  guint i = 0;
  GTORCH_CUDA_APART;

  if (__atomic_load_n (&device->dead_graphs->len, __ATOMIC_RELAXED) == 0)
    return;
  ready = g_array_new (FALSE, FALSE, sizeof (Dead));
  g_mutex_lock (&device->lock);
  while (i < device->dead_graphs->len)
    {
      Dead dead = g_array_index (device->dead_graphs, Dead, i);

      if (gtorch_cuda.cuEventQuery (dead.event) == CUDA_ERROR_NOT_READY)
        {
          i++;
          continue;
        }
      g_array_append_val (ready, dead);
      g_array_remove_index_fast (device->dead_graphs, i);
    }
  g_mutex_unlock (&device->lock);
  for (i = 0; i < ready->len; i++)
    {
      const Dead dead = g_array_index (ready, Dead, i);

      gtorch_cuda_event_put (device, dead.event, FALSE);
      g_array_unref (dead.kept);
      dead.func (dead.data);
    }
}

static void
free_graph (gpointer data, GDestroyNotify func, gpointer func_data)
{
  Graph *self = data;
  GTorchCudaDevice *device = self->device;
  Dead dead = { NULL, self->kept, func, func_data };
  GTORCH_CUDA_APART;

  gtorch_cuda_device_activate (device, NULL);
  if (self->last != NULL)
    {
      g_mutex_lock (&device->lock);
      dead.event = gtorch_cuda_lane_mark (self->last, NULL);
      g_mutex_unlock (&device->lock);
    }
  if (self->exec != NULL)
    gtorch_cuda.cuGraphExecDestroy (self->exec);
  gtorch_cuda.cuGraphDestroy (self->graph);
  g_array_unref (self->draws);
  g_ptr_array_unref (self->hosts); /* the memory is not used anew before the last copy is done */
  g_clear_pointer (&self->own, gtorch_cuda_own_nodes_free);
  g_free (self);
  if (dead.event == NULL)
    {
      g_array_unref (dead.kept);
      func (func_data);
    }
  else
    {
      g_mutex_lock (&device->lock);
      g_array_append_val (device->dead_graphs, dead);
      g_mutex_unlock (&device->lock);
    }
  gtorch_cuda_collect_graphs (device);
}

void
gtorch_cuda_init_graphs (GTorchCudaDevice *device)
{
  device->dead_graphs = g_array_new (FALSE, FALSE, sizeof (Dead));
}

gboolean
gtorch_cuda_note_random (GTorchCudaLane *lane, guint64 number, gsize n_bytes, gsize offset,
                         GError **error)
{
  GTorchCudaCapture *capture = gtorch_cuda_lane_capture (lane);
  CUstreamCaptureStatus status;
  const CUgraphNode *before = NULL;
  size_t n_before = 0;
  Draw draw = { .device = lane->device, .number = number, .offset = offset };

  if (G_LIKELY (capture == NULL))
    return TRUE;
  if (!gtorch_cuda_check (gtorch_cuda.cuStreamGetCaptureInfo (lane->handle, &status, NULL, NULL,
                                                              &before, &n_before),
                          "graph: cuStreamGetCaptureInfo", error))
    return FALSE;
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE || n_before != 1)
    return gtorch_cuda_check (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "graph", error);
  draw.node = before[0];
  if (!gtorch_cuda_check (gtorch_cuda.cuGraphKernelNodeGetParams (draw.node, &draw.parameters),
                          "graph: cuGraphKernelNodeGetParams", error))
    return FALSE;
  draw.values = g_memdup2 (draw.parameters.kernelParams[0], n_bytes);
  draw.parameters.extra = NULL;
  g_array_append_val (capture->draws, draw);
  return TRUE;
}

const GTorchGraphBackend gtorch_cuda_graphs = {
  .begin = begin_capture,
  .record = record,
  .join = join,
  .enter = enter,
  .leave = leave,
  .begin_branch = begin_branch,
  .end_branch = end_branch,
  .end = end_capture,
  .audit = audit,
  .prepare = prepare,
  .follow = follow,
  .replay = replay,
  .note_write = note_write,
  .free = free_graph,
};
