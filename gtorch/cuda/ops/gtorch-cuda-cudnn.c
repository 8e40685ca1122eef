/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* cuDNN's graph interface. A plan is an engine of cuDNN that is configured for a graph of operations. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-cudnn-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-hash-private.h"

#define SONAME       "libcudnn.so.9"
#define N_CANDIDATES 128
#define MAX_PLANS    4096 /* the maximum number of plans per device */

/* --- the part of cuDNN's binary interface that is used --- */
enum
{
  ENGINE_CONFIG = 3,
  HEURISTIC = 4,
  PLAN = 5,
  GRAPH = 15,
  VARIANT_PACK = 16,
};

enum
{
  TYPE_HANDLE = 0,
  TYPE_INT64 = 3,
  TYPE_POINTER = 6,
  TYPE_HEURISTIC_MODE = 8,
  TYPE_DESCRIPTOR = 15,
};

enum
{
  HEURISTIC_MODE = 200,
  HEURISTIC_GRAPH = 201,
  HEURISTIC_RESULTS = 202,
  PLAN_HANDLE = 400,
  PLAN_CONFIG = 401,
  PLAN_WORKSPACE = 402,
  GRAPH_HANDLE = 800,
  GRAPH_OPS = 801,
  PACK_IDS = 1000,
  PACK_POINTERS = 1001,
  PACK_WORKSPACE = 1003,
};

enum
{
  MODE_FALLBACK = 2,
  MODE_A = 3,
};

static struct
{
  gint (*create) (gpointer *handle);
  gsize (*version) (void);
  gint (*set_stream) (gpointer handle, CUstream stream);
  gint (*descriptor_create) (gint type, gpointer *descriptor);
  gint (*descriptor_destroy) (gpointer descriptor);
  gint (*finalize) (gpointer descriptor);
  gint (*set) (gpointer descriptor, gint attribute, gint type, gint64 n, const void *elements);
  gint (*get) (gpointer descriptor, gint attribute, gint type, gint64 n, gint64 *n_got,
               void *elements);
  gint (*execute) (gpointer handle, gpointer plan, gpointer pack);
} dnn;

static const GTorchCudnnSymbol symbols[] = {
  { "cudnnCreate", (gpointer *) &dnn.create },
  { "cudnnGetVersion", (gpointer *) &dnn.version },
  { "cudnnSetStream", (gpointer *) &dnn.set_stream },
  { "cudnnBackendCreateDescriptor", (gpointer *) &dnn.descriptor_create },
  { "cudnnBackendDestroyDescriptor", (gpointer *) &dnn.descriptor_destroy },
  { "cudnnBackendFinalize", (gpointer *) &dnn.finalize },
  { "cudnnBackendSetAttribute", (gpointer *) &dnn.set },
  { "cudnnBackendGetAttribute", (gpointer *) &dnn.get },
  { "cudnnBackendExecute", (gpointer *) &dnn.execute },
};

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static gint state; /* 0: not loaded yet; 1: loaded; -1: missing */
static gpointer library;
static gpointer handles[GTORCH_CUDA_MAX_DEVICES];
static GHashTable *plans[GTORCH_CUDA_MAX_DEVICES];

static gboolean
load (void)
{
  g_autoptr (GError) error = NULL;

  if (state != 0)
    return state > 0;
  state = -1;
  library = gtorch_cuda_library_open (SONAME, &error);
  if (library != NULL && gtorch_cudnn_load (symbols, G_N_ELEMENTS (symbols), &error))
    state = 1;
  else
    g_info ("Convolutions on GPUs use slow kernels: %s", error->message);
  return state > 0;
}

gboolean
gtorch_cudnn_load (const GTorchCudnnSymbol *wanted, guint n, GError **error)
{
  for (guint i = 0; i < n; i++)
    if ((*wanted[i].slot = gtorch_cuda_library_symbol (library, SONAME, wanted[i].name, error))
        == NULL)
      return FALSE;
  return TRUE;
}

/* --- descriptors --- */

gpointer
gtorch_cudnn_descriptor_new (gint type)
{
  gpointer descriptor = NULL;

  return dnn.descriptor_create (type, &descriptor) == 0 ? descriptor : NULL;
}

void
gtorch_cudnn_descriptor_free (gpointer descriptor)
{
  if (descriptor != NULL)
    dnn.descriptor_destroy (descriptor);
}

gboolean
gtorch_cudnn_set (gpointer descriptor, gint attribute, gint type, gint64 n, const void *elements)
{
  return dnn.set (descriptor, attribute, type, n, elements) == 0;
}

gboolean
gtorch_cudnn_finalize (gpointer descriptor)
{
  return dnn.finalize (descriptor) == 0;
}

gboolean
gtorch_cudnn_get (gpointer descriptor, gint attribute, gint type, gint64 n, gint64 *n_got,
                  void *elements)
{
  return dnn.get (descriptor, attribute, type, n, n_got, elements) == 0;
}

gint
gtorch_cudnn_data_type (guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      return 1;
    case GTORCH_DTYPE_FLOAT16:
      return 2;
    case GTORCH_DTYPE_BFLOAT16:
      return 9;
    default:
      return 0;
    }
}

static gpointer
try_config (gpointer handle, gpointer config, gint64 most, gint64 *workspace)
{
  gpointer plan = gtorch_cudnn_descriptor_new (PLAN);
  gint64 n = 0;

  if (plan != NULL && gtorch_cudnn_set (plan, PLAN_HANDLE, TYPE_HANDLE, 1, &handle)
      && gtorch_cudnn_set (plan, PLAN_CONFIG, TYPE_DESCRIPTOR, 1, &config)
      && gtorch_cudnn_finalize (plan)
      && gtorch_cudnn_get (plan, PLAN_WORKSPACE, TYPE_INT64, 1, &n, workspace)
      && *workspace <= most)
    return plan;
  gtorch_cudnn_descriptor_free (plan);
  return NULL;
}

/* Lists up to n plans that a heuristic proposes, in the heuristic's order. */
static guint
list_plans (gpointer handle, gpointer graph, gint mode, GTorchCudnnAccept accept,
            gconstpointer data, gint64 most, GTorchCudnnPlan *found, guint n)
{
  gpointer heuristic = gtorch_cudnn_descriptor_new (HEURISTIC), configs[N_CANDIDATES];
  gint64 n_configs = 0;
  guint n_found = 0, i;

  for (i = 0; i < N_CANDIDATES; i++)
    configs[i] = gtorch_cudnn_descriptor_new (ENGINE_CONFIG);
  if (heuristic != NULL && gtorch_cudnn_set (heuristic, HEURISTIC_GRAPH, TYPE_DESCRIPTOR, 1, &graph)
      && gtorch_cudnn_set (heuristic, HEURISTIC_MODE, TYPE_HEURISTIC_MODE, 1, &mode)
      && gtorch_cudnn_finalize (heuristic)
      && gtorch_cudnn_get (heuristic, HEURISTIC_RESULTS, TYPE_DESCRIPTOR, N_CANDIDATES, &n_configs,
                           configs))
    for (i = 0; n_found < n && i < n_configs; i++)
      if (accept == NULL || accept (configs[i], data))
        {
          GTorchCudnnPlan *next = &found[n_found];

          next->plan = try_config (handle, configs[i], most, &next->workspace);
          n_found += next->plan != NULL;
        }
  for (i = 0; i < N_CANDIDATES; i++)
    gtorch_cudnn_descriptor_free (configs[i]);
  gtorch_cudnn_descriptor_free (heuristic);
  return n_found;
}

/* Finds plans with the fast heuristic or, if that proposes none, among the fallback engines. */
guint
gtorch_cudnn_find (gpointer handle, gpointer *operations, guint n_operations,
                   GTorchCudnnAccept accept, gconstpointer data, gint64 most,
                   GTorchCudnnPlan *found, guint n)
{
  gpointer graph = gtorch_cudnn_descriptor_new (GRAPH);
  guint n_found = 0;

  if (graph != NULL && gtorch_cudnn_set (graph, GRAPH_HANDLE, TYPE_HANDLE, 1, &handle)
      && gtorch_cudnn_set (graph, GRAPH_OPS, TYPE_DESCRIPTOR, n_operations, operations)
      && gtorch_cudnn_finalize (graph))
    {
      n_found = list_plans (handle, graph, MODE_A, accept, data, most, found, n);
      if (n_found == 0)
        n_found = list_plans (handle, graph, MODE_FALLBACK, accept, data, most, found, n);
    }
  gtorch_cudnn_descriptor_free (graph);
  return n_found;
}

/* --- cached plans --- */

typedef struct
{
  gsize n_bytes;
  gconstpointer form;
} Key;

typedef struct _Plan Plan;

struct _Plan
{
  GTorchCudnnPlan found;
  gint ref_count; /* references held by the table and by graphs that replay the plan */
  Plan *next;     /* the next plan in the list of garbage */
  Key key;
  guint64 form[];
};

/* The plans whose last reference was a graph's. They are freed later, as a graph can drop a reference at
 * any time, also while the lock is held. */
static Plan *garbage;

static guint
key_hash (gconstpointer data)
{
  const Key *key = data;

  return gtorch_hash_words (key->form, key->n_bytes);
}

static gboolean
key_equal (gconstpointer a, gconstpointer b)
{
  const Key *one = a, *other = b;

  return one->n_bytes == other->n_bytes && memcmp (one->form, other->form, one->n_bytes) == 0;
}

static void
plan_free (Plan *plan)
{
  gtorch_cudnn_descriptor_free (plan->found.plan);
  g_free (plan);
}

/* Drops the table's reference. */
static void
plan_unref (gpointer data)
{
  Plan *plan = data;

  if (g_atomic_int_dec_and_test (&plan->ref_count))
    plan_free (plan);
}

/* Drops a graph's reference. */
static void
plan_leave (gpointer data)
{
  Plan *plan = data;

  if (!g_atomic_int_dec_and_test (&plan->ref_count))
    return;
  do
    plan->next = g_atomic_pointer_get (&garbage);
  while (!g_atomic_pointer_compare_and_exchange (&garbage, plan->next, plan));
}

static void
clear_garbage (void)
{
  Plan *plan = g_atomic_pointer_exchange (&garbage, NULL), *next;

  for (; plan != NULL; plan = next)
    {
      next = plan->next;
      plan_free (plan);
    }
}

void
gtorch_cudnn_use (const GTorchCudnnPlan *found, GTorchCudaLane *lane)
{
  Plan *plan = (Plan *) found;

  if (G_LIKELY (gtorch_cuda_lane_capture (lane) == NULL))
    return;
  g_atomic_int_inc (&plan->ref_count);
  gtorch_cuda_lane_keep (lane, plan, plan_leave);
}

const GTorchCudnnPlan *
gtorch_cudnn_lookup (guint device, gconstpointer form, gsize n_bytes)
{
  const Key key = { n_bytes, form };
  Plan *plan = plans[device] != NULL ? g_hash_table_lookup (plans[device], &key) : NULL;

  return plan != NULL ? &plan->found : NULL;
}

const GTorchCudnnPlan *
gtorch_cudnn_keep (guint device, gconstpointer form, gsize n_bytes, const GTorchCudnnPlan *found)
{
  const GTorchCudnnPlan *former = gtorch_cudnn_lookup (device, form, n_bytes);
  Plan *plan;

  if (former != NULL)
    { /* another thread has cached a plan meanwhile, and may be using it */
      gtorch_cudnn_descriptor_free (found->plan);
      return former;
    }
  plan = g_malloc (sizeof *plan + n_bytes);
  plan->ref_count = 1;
  if (plans[device] == NULL)
    plans[device] = g_hash_table_new_full (key_hash, key_equal, NULL, plan_unref);
  /* The memory of plans must not be freed while the device may use it. */
  if (g_hash_table_size (plans[device]) >= MAX_PLANS
      && gtorch_cuda_device_try_settle (gtorch_cuda_device_peek (device)))
    g_hash_table_remove_all (plans[device]);
  plan->key = (Key){ n_bytes, plan->form };
  plan->found = *found;
  memcpy (plan->form, form, n_bytes);
  g_hash_table_insert (plans[device], &plan->key, plan);
  return &plan->found;
}

/* --- use --- */

gpointer
gtorch_cudnn_begin (guint device)
{
  g_mutex_lock (&lock);
  clear_garbage ();
  if (load () && (handles[device] != NULL || dnn.create (&handles[device]) == 0))
    return handles[device];
  g_mutex_unlock (&lock);
  return NULL;
}

void
gtorch_cudnn_end (void)
{
  g_mutex_unlock (&lock);
}

gint
gtorch_cudnn_set_stream (gpointer handle, GTorchCudaLane *lane)
{
  return dnn.set_stream (handle, lane->handle);
}

gsize
gtorch_cudnn_version (void)
{
  return dnn.version ();
}

gboolean
gtorch_cudnn_execute (gpointer handle, gpointer plan, GTorchCudaLane *lane, guint n,
                      const gint64 *ids, const gpointer *pointers, gpointer workspace,
                      GError **error)
{
  gpointer pack = gtorch_cudnn_descriptor_new (VARIANT_PACK);
  gint status = -1;

  if (pack != NULL && gtorch_cudnn_set (pack, PACK_POINTERS, TYPE_POINTER, n, pointers)
      && gtorch_cudnn_set (pack, PACK_IDS, TYPE_INT64, n, ids)
      && gtorch_cudnn_set (pack, PACK_WORKSPACE, TYPE_POINTER, 1, &workspace)
      && gtorch_cudnn_finalize (pack) && dnn.set_stream (handle, lane->handle) == 0)
    status = dnn.execute (handle, plan, pack);
  gtorch_cudnn_descriptor_free (pack);
  if (status == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA,
               _ ("cudnnBackendExecute failed with status %d"), status);
  return FALSE;
}
