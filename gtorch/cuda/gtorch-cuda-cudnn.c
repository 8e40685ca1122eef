/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* cuDNN's graph interface, and convolutions by it. A plan, an engine of cuDNN's with all it needs to know, is
 * made once for each form of convolution and kept. Engines that round float32 to fewer bits unasked, add in
 * no fixed order or let one NaN spread over an image are passed over. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/gtorch-cuda-cudnn-private.h"
#include "cuda/gtorch-cuda-plain-private.h"
#include "cuda/gtorch-cuda-private.h"

#define SONAME       "libcudnn.so.9"
#define N_CANDIDATES 128
#define MAX_PLANS    4096
#define WORKSPACE \
  (G_GINT64_CONSTANT (64) << 20) /* what a plan may want beside copies of the tensors */

/* --- cuDNN's binary interface, as far as it is used --- */
enum
{
  CONVOLUTION = 1,
  ENGINE = 2,
  ENGINE_CONFIG = 3,
  HEURISTIC = 4,
  PLAN = 5,
  FORWARD = 10,
  BACKWARD_WEIGHT = 11,
  BACKWARD_INPUT = 12,
  GRAPH = 15,
  VARIANT_PACK = 16,
  TENSOR = 17,
};

enum
{
  TYPE_HANDLE = 0,
  TYPE_DATA_TYPE = 1,
  TYPE_INT64 = 3,
  TYPE_FLOAT = 4,
  TYPE_DOUBLE = 5,
  TYPE_POINTER = 6,
  TYPE_CONVOLUTION_MODE = 7,
  TYPE_HEURISTIC_MODE = 8,
  TYPE_NUMERICAL_NOTE = 11,
  TYPE_DESCRIPTOR = 15,
};

enum
{
  CONVOLUTION_COMPUTE = 100,
  CONVOLUTION_MODE = 101,
  CONVOLUTION_DILATIONS = 102,
  CONVOLUTION_STRIDES = 103,
  CONVOLUTION_POST_PADDINGS = 104,
  CONVOLUTION_PRE_PADDINGS = 105,
  CONVOLUTION_N_DIMS = 106,
  HEURISTIC_MODE = 200,
  HEURISTIC_GRAPH = 201,
  HEURISTIC_RESULTS = 202,
  CONFIG_ENGINE = 300,
  PLAN_HANDLE = 400,
  PLAN_CONFIG = 401,
  PLAN_WORKSPACE = 402,
  GRAPH_HANDLE = 800,
  GRAPH_OPS = 801,
  TENSOR_ALIGNMENT = 900,
  TENSOR_DATA_TYPE = 901,
  TENSOR_DIMENSIONS = 902,
  TENSOR_STRIDES = 903,
  TENSOR_UNIQUE_ID = 906,
  PACK_IDS = 1000,
  PACK_POINTERS = 1001,
  PACK_WORKSPACE = 1003,
  ENGINE_NOTES = 1303,
};

enum
{
  NOTE_TENSOR_CORE = 0,
  NOTE_DOWN_CONVERT = 1,
  NOTE_REDUCED_REDUCTION = 2,
  NOTE_FFT = 3,
  NOTE_NONDETERMINISTIC = 4,
  NOTE_WINOGRAD = 5,
  NOTE_WINOGRAD_6X6 = 7,
  NOTE_WINOGRAD_13X13 = 8,
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

static const struct
{
  const gchar *name;
  gpointer *slot;
} symbols[] = {
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
static gint state; /* 0: not looked for; 1: there; -1: missing */
static gpointer handles[GTORCH_CUDA_MAX_DEVICES];
static GHashTable *plans;

static gboolean
load (void)
{
  g_autoptr (GError) error = NULL;
  gpointer library;
  guint i;

  if (state != 0)
    return state > 0;
  state = -1;
  library = gtorch_cuda_library_open (SONAME, &error);
  for (i = 0; library != NULL && i < G_N_ELEMENTS (symbols); i++)
    if ((*symbols[i].slot = gtorch_cuda_library_symbol (library, SONAME, symbols[i].name, &error))
        == NULL)
      library = NULL;
  if (library != NULL)
    state = 1;
  else
    g_info ("Convolutions on GPUs use slow kernels: %s", error->message);
  return state > 0;
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
tensor_new (gint64 id, const GTorchCudnnConv *conv, const gint64 *shape)
{
  const gint64 alignment = 16, image = shape[1] * shape[2] * shape[3];
  const gint64 first[] = { image, shape[2] * shape[3], shape[3], 1 };
  const gint64 last[] = { image, 1, shape[3] * shape[1], shape[1] };
  const gint64 *strides = conv->channels_last ? last : first;
  gint type = gtorch_cudnn_data_type (conv->dtype);
  gpointer tensor = gtorch_cudnn_descriptor_new (TENSOR);

  if (tensor != NULL && gtorch_cudnn_set (tensor, TENSOR_DATA_TYPE, TYPE_DATA_TYPE, 1, &type)
      && gtorch_cudnn_set (tensor, TENSOR_DIMENSIONS, TYPE_INT64, 4, shape)
      && gtorch_cudnn_set (tensor, TENSOR_STRIDES, TYPE_INT64, 4, strides)
      && gtorch_cudnn_set (tensor, TENSOR_UNIQUE_ID, TYPE_INT64, 1, &id)
      && gtorch_cudnn_set (tensor, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment)
      && dnn.finalize (tensor) == 0)
    return tensor;
  gtorch_cudnn_descriptor_free (tensor);
  return NULL;
}

static gpointer
convolution_new (const GTorchCudnnConv *conv)
{
  const gint64 two = 2;
  gint compute = conv->dtype == GTORCH_DTYPE_FLOAT64 ? 1 : 0, mode = 1; /* cross-correlation */
  gpointer descriptor = gtorch_cudnn_descriptor_new (CONVOLUTION);

  if (descriptor != NULL
      && gtorch_cudnn_set (descriptor, CONVOLUTION_COMPUTE, TYPE_DATA_TYPE, 1, &compute)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_MODE, TYPE_CONVOLUTION_MODE, 1, &mode)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_N_DIMS, TYPE_INT64, 1, &two)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_PRE_PADDINGS, TYPE_INT64, 2, conv->padding)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_POST_PADDINGS, TYPE_INT64, 2, conv->padding)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_DILATIONS, TYPE_INT64, 2, conv->dilation)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_STRIDES, TYPE_INT64, 2, conv->stride)
      && dnn.finalize (descriptor) == 0)
    return descriptor;
  gtorch_cudnn_descriptor_free (descriptor);
  return NULL;
}

/* Attributes of the three operations, from `first`: alpha, beta, convolution, and the tensors of which the
 * order differs. */
static gpointer
operation_new (const GTorchCudnnConv *conv, gpointer convolution, gpointer x, gpointer w,
               gpointer y)
{
  static const struct
  {
    gint type, first, x, w, y;
  } kinds[] = {
    [GTORCH_CUDNN_FORWARD] = { FORWARD, 700, 704, 703, 705 },
    [GTORCH_CUDNN_INPUT] = { BACKWARD_INPUT, 706, 710, 709, 711 },
    [GTORCH_CUDNN_WEIGHT] = { BACKWARD_WEIGHT, 712, 716, 715, 717 },
  };
  const gdouble numbers[] = { 1, conv->accumulate ? 1 : 0 };
  const gfloat singles[] = { 1, numbers[1] };
  gboolean wide = conv->dtype == GTORCH_DTYPE_FLOAT64;
  gint number = wide ? TYPE_DOUBLE : TYPE_FLOAT, first = kinds[conv->kind].first;
  gpointer op = gtorch_cudnn_descriptor_new (kinds[conv->kind].type);

  if (op != NULL
      && gtorch_cudnn_set (op, first, number, 1, wide ? (const void *) &numbers[0] : &singles[0])
      && gtorch_cudnn_set (op, first + 1, number, 1,
                           wide ? (const void *) &numbers[1] : &singles[1])
      && gtorch_cudnn_set (op, first + 2, TYPE_DESCRIPTOR, 1, &convolution)
      && gtorch_cudnn_set (op, kinds[conv->kind].x, TYPE_DESCRIPTOR, 1, &x)
      && gtorch_cudnn_set (op, kinds[conv->kind].w, TYPE_DESCRIPTOR, 1, &w)
      && gtorch_cudnn_set (op, kinds[conv->kind].y, TYPE_DESCRIPTOR, 1, &y)
      && dnn.finalize (op) == 0)
    return op;
  gtorch_cudnn_descriptor_free (op);
  return NULL;
}

/* --- plans --- */

typedef struct
{
  GTorchCudnnConv conv;
  gpointer plan; /* NULL: cuDNN has none */
  gint64 workspace;
} Plan;

static guint
conv_hash (gconstpointer data)
{
  const guint64 *words = data;
  guint64 hash = 0;
  gsize i;

  for (i = 0; i < sizeof (GTorchCudnnConv) / 8; i++)
    hash = (hash ^ words[i]) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  return (guint) (hash >> 32);
}

static gboolean
conv_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (GTorchCudnnConv)) == 0;
}

static gboolean
is_exact (gpointer config, gconstpointer data)
{
  const GTorchCudnnConv *conv = data;
  gpointer engine = gtorch_cudnn_descriptor_new (ENGINE);
  gint notes[32];
  gint64 n = 0, i;
  gboolean good =
      engine != NULL && dnn.get (config, CONFIG_ENGINE, TYPE_DESCRIPTOR, 1, &n, &engine) == 0
      && dnn.get (engine, ENGINE_NOTES, TYPE_NUMERICAL_NOTE, G_N_ELEMENTS (notes), &n, notes) == 0;

  for (i = 0; good && i < n; i++)
    switch (notes[i])
      {
      case NOTE_NONDETERMINISTIC:
      case NOTE_REDUCED_REDUCTION:
      case NOTE_FFT:
        good = FALSE;
        break;
      case NOTE_DOWN_CONVERT:
        good = conv->tf32;
        break;
      case NOTE_TENSOR_CORE: /* they take float32 for TF32; float64 they leave as it is */
        good = conv->dtype != GTORCH_DTYPE_FLOAT32 || conv->tf32;
        break;
      case NOTE_WINOGRAD:
        good = conv->dtype == GTORCH_DTYPE_FLOAT32;
        break;
      case NOTE_WINOGRAD_6X6:
      case NOTE_WINOGRAD_13X13:
        good = conv->dtype != GTORCH_DTYPE_FLOAT32;
        break;
      }
  gtorch_cudnn_descriptor_free (engine);
  return good;
}

/* Engines that want another layout make copies of all three. */
static gint64
most_workspace (const GTorchCudnnConv *conv)
{
  const gint64 *shapes[] = { conv->x, conv->w, conv->y };
  gint64 n = 0;
  guint i;

  if (conv->frugal)
    return 0;
  for (i = 0; i < G_N_ELEMENTS (shapes); i++)
    n += shapes[i][0] * shapes[i][1] * shapes[i][2] * shapes[i][3];
  return 2 * n * (gint64) gtorch_dtype_size (conv->dtype) + WORKSPACE;
}

static gpointer
try_config (gpointer handle, gpointer config, gint64 most, gint64 *workspace)
{
  gpointer plan = gtorch_cudnn_descriptor_new (PLAN);
  gint64 n = 0;

  if (plan != NULL && gtorch_cudnn_set (plan, PLAN_HANDLE, TYPE_HANDLE, 1, &handle)
      && gtorch_cudnn_set (plan, PLAN_CONFIG, TYPE_DESCRIPTOR, 1, &config)
      && dnn.finalize (plan) == 0
      && dnn.get (plan, PLAN_WORKSPACE, TYPE_INT64, 1, &n, workspace) == 0 && *workspace <= most)
    return plan;
  gtorch_cudnn_descriptor_free (plan);
  return NULL;
}

/* Asks in what cuDNN thinks the best order, first its quick heuristic, then what runs everywhere. */
gpointer
gtorch_cudnn_choose (gpointer handle, gpointer *operations, guint n_operations,
                     GTorchCudnnAccept accept, gconstpointer data, gint64 most, gint64 *workspace)
{
  static const gint modes[] = { 3, 2 };
  gpointer plan = NULL, graph = gtorch_cudnn_descriptor_new (GRAPH);
  guint m, i;
  gboolean good = graph != NULL && gtorch_cudnn_set (graph, GRAPH_HANDLE, TYPE_HANDLE, 1, &handle)
                  && gtorch_cudnn_set (graph, GRAPH_OPS, TYPE_DESCRIPTOR, n_operations, operations)
                  && dnn.finalize (graph) == 0;

  for (m = 0; good && plan == NULL && m < G_N_ELEMENTS (modes); m++)
    {
      gpointer heuristic = gtorch_cudnn_descriptor_new (HEURISTIC), configs[N_CANDIDATES];
      gint64 n = 0;

      for (i = 0; i < N_CANDIDATES; i++)
        configs[i] = gtorch_cudnn_descriptor_new (ENGINE_CONFIG);
      if (heuristic != NULL
          && gtorch_cudnn_set (heuristic, HEURISTIC_GRAPH, TYPE_DESCRIPTOR, 1, &graph)
          && gtorch_cudnn_set (heuristic, HEURISTIC_MODE, TYPE_HEURISTIC_MODE, 1, &modes[m])
          && dnn.finalize (heuristic) == 0
          && dnn.get (heuristic, HEURISTIC_RESULTS, TYPE_DESCRIPTOR, N_CANDIDATES, &n, configs)
                 == 0)
        for (i = 0; plan == NULL && i < n; i++)
          if (accept == NULL || accept (configs[i], data))
            plan = try_config (handle, configs[i], most, workspace);
      for (i = 0; i < N_CANDIDATES; i++)
        gtorch_cudnn_descriptor_free (configs[i]);
      gtorch_cudnn_descriptor_free (heuristic);
    }
  gtorch_cudnn_descriptor_free (graph);
  return plan;
}

static Plan *
plan_new (const GTorchCudnnConv *conv, gpointer handle)
{
  Plan *plan = g_new0 (Plan, 1);
  gpointer x = tensor_new ('x', conv, conv->x);
  gpointer w = tensor_new ('w', conv, conv->w);
  gpointer y = tensor_new ('y', conv, conv->y);
  gpointer convolution = convolution_new (conv), operation = NULL;

  plan->conv = *conv;
  if (x != NULL && w != NULL && y != NULL && convolution != NULL)
    operation = operation_new (conv, convolution, x, w, y);
  if (operation != NULL)
    plan->plan = gtorch_cudnn_choose (handle, &operation, 1, is_exact, conv, most_workspace (conv),
                                      &plan->workspace);
  gtorch_cudnn_descriptor_free (operation);
  gtorch_cudnn_descriptor_free (convolution);
  gtorch_cudnn_descriptor_free (y);
  gtorch_cudnn_descriptor_free (w);
  gtorch_cudnn_descriptor_free (x);
  return plan;
}

static void
plan_free (gpointer data)
{
  Plan *plan = data;

  gtorch_cudnn_descriptor_free (plan->plan);
  g_free (plan);
}

gpointer
gtorch_cudnn_begin (guint device)
{
  g_mutex_lock (&lock);
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
      && dnn.finalize (pack) == 0 && dnn.set_stream (handle, lane->handle) == 0)
    status = dnn.execute (handle, plan, pack);
  gtorch_cudnn_descriptor_free (pack);
  if (status == 0)
    return TRUE;
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA,
               _ ("cudnnBackendExecute failed with status %d"), status);
  return FALSE;
}

static gboolean
is_of_device (gpointer key, gpointer value, gpointer device)
{
  return ((Plan *) value)->conv.device == GPOINTER_TO_INT (device);
}

/* Under the lock, until the plan has been used: another thread may empty the table. */
static Plan *
find_plan (const GTorchCudnnConv *conv, gpointer handle)
{
  Plan *plan;

  if (plans == NULL)
    plans = g_hash_table_new_full (conv_hash, conv_equal, NULL, plan_free);
  plan = g_hash_table_lookup (plans, conv);
  if (plan == NULL)
    {
      /* What plans hold must stay as long as it may be at work. */
      if (g_hash_table_size (plans) >= MAX_PLANS && gtorch_cuda.cuCtxSynchronize () == 0)
        g_hash_table_foreach_remove (plans, is_of_device, GINT_TO_POINTER (conv->device));
      plan = plan_new (conv, handle);
      g_hash_table_insert (plans, &plan->conv, plan);
      if (plan->plan == NULL)
        g_debug ("cuDNN has no engine for %s by %s, dtype %s%s", gtorch_shape_str (conv->x, 4),
                 gtorch_shape_str (conv->w, 4), gtorch_dtype_get_name (conv->dtype),
                 conv->channels_last ? ", channels last" : "");
    }
  return plan->plan != NULL ? plan : NULL;
}

gboolean
gtorch_cuda_cudnn_has (const GTorchCudnnConv *conv, GTorchCudaLane *lane)
{
  guint device = lane->device->parent_instance.index;
  GTorchCudnnConv key = *conv;
  gpointer handle = gtorch_cudnn_begin (device);
  gboolean result;

  if (handle == NULL)
    return FALSE;
  key.device = device;
  result = find_plan (&key, handle) != NULL;
  gtorch_cudnn_end ();
  return result;
}

gboolean
gtorch_cuda_cudnn_convolve (const GTorchCudnnConv *conv, GTorchCudaLane *lane, gpointer x,
                            gpointer w, gpointer y, gboolean *done, GError **error)
{
  const gint64 ids[] = { 'x', 'w', 'y' };
  const gpointer pointers[] = { x, w, y };
  guint device = lane->device->parent_instance.index;
  g_autoptr (GTorchImpl) workspace = NULL;
  GTorchCudnnConv key = *conv;
  gint64 space = 0;
  gpointer handle;
  Plan *plan;

  *done = FALSE;
  key.device = device;
  if ((((guintptr) x | (guintptr) w | (guintptr) y) & 15) != 0)
    return TRUE;
  if (!gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  handle = gtorch_cudnn_begin (device);
  if (handle == NULL)
    return TRUE;
  /* Allocating may call the application, which may convolve: not under the lock. */
  while ((plan = find_plan (&key, handle)) != NULL && plan->workspace > space)
    {
      space = plan->workspace;
      gtorch_cudnn_end ();
      g_clear_pointer (&workspace, gtorch_impl_unref);
      workspace = gtorch_cuda_scratch (lane, space, error);
      if (workspace == NULL)
        return FALSE;
      gtorch_cudnn_begin (device);
    }
  if (plan != NULL)
    *done = gtorch_cudnn_execute (handle, plan->plan, lane, 3, ids, pointers,
                                  workspace != NULL ? gtorch_impl_data (workspace) : NULL, error);
  gtorch_cudnn_end ();
  return plan == NULL || *done;
}
