/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Convolutions by cuDNN's graph interface. A plan, an engine of cuDNN's with all it needs to know, is made
 * once for each form of convolution and kept. Engines that round float32 to fewer bits unasked, add in no
 * fixed order or let one NaN spread over an image are passed over. */

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

static gpointer
descriptor_new (gint type)
{
  gpointer descriptor = NULL;

  return dnn.descriptor_create (type, &descriptor) == 0 ? descriptor : NULL;
}

static void
descriptor_free (gpointer descriptor)
{
  if (descriptor != NULL)
    dnn.descriptor_destroy (descriptor);
}

static gboolean
set (gpointer descriptor, gint attribute, gint type, gint64 n, const void *elements)
{
  return dnn.set (descriptor, attribute, type, n, elements) == 0;
}

static gint
data_type (guint dtype)
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
  gint type = data_type (conv->dtype);
  gpointer tensor = descriptor_new (TENSOR);

  if (tensor != NULL && set (tensor, TENSOR_DATA_TYPE, TYPE_DATA_TYPE, 1, &type)
      && set (tensor, TENSOR_DIMENSIONS, TYPE_INT64, 4, shape)
      && set (tensor, TENSOR_STRIDES, TYPE_INT64, 4, strides)
      && set (tensor, TENSOR_UNIQUE_ID, TYPE_INT64, 1, &id)
      && set (tensor, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment) && dnn.finalize (tensor) == 0)
    return tensor;
  descriptor_free (tensor);
  return NULL;
}

static gpointer
convolution_new (const GTorchCudnnConv *conv)
{
  const gint64 two = 2;
  gint compute = conv->dtype == GTORCH_DTYPE_FLOAT64 ? 1 : 0, mode = 1; /* cross-correlation */
  gpointer descriptor = descriptor_new (CONVOLUTION);

  if (descriptor != NULL && set (descriptor, CONVOLUTION_COMPUTE, TYPE_DATA_TYPE, 1, &compute)
      && set (descriptor, CONVOLUTION_MODE, TYPE_CONVOLUTION_MODE, 1, &mode)
      && set (descriptor, CONVOLUTION_N_DIMS, TYPE_INT64, 1, &two)
      && set (descriptor, CONVOLUTION_PRE_PADDINGS, TYPE_INT64, 2, conv->padding)
      && set (descriptor, CONVOLUTION_POST_PADDINGS, TYPE_INT64, 2, conv->padding)
      && set (descriptor, CONVOLUTION_DILATIONS, TYPE_INT64, 2, conv->dilation)
      && set (descriptor, CONVOLUTION_STRIDES, TYPE_INT64, 2, conv->stride)
      && dnn.finalize (descriptor) == 0)
    return descriptor;
  descriptor_free (descriptor);
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
  gpointer op = descriptor_new (kinds[conv->kind].type);

  if (op != NULL && set (op, first, number, 1, wide ? (const void *) &numbers[0] : &singles[0])
      && set (op, first + 1, number, 1, wide ? (const void *) &numbers[1] : &singles[1])
      && set (op, first + 2, TYPE_DESCRIPTOR, 1, &convolution)
      && set (op, kinds[conv->kind].x, TYPE_DESCRIPTOR, 1, &x)
      && set (op, kinds[conv->kind].w, TYPE_DESCRIPTOR, 1, &w)
      && set (op, kinds[conv->kind].y, TYPE_DESCRIPTOR, 1, &y) && dnn.finalize (op) == 0)
    return op;
  descriptor_free (op);
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
is_exact (const GTorchCudnnConv *conv, gpointer config)
{
  gpointer engine = descriptor_new (ENGINE);
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
  descriptor_free (engine);
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
  gpointer plan = descriptor_new (PLAN);
  gint64 n = 0;

  if (plan != NULL && set (plan, PLAN_HANDLE, TYPE_HANDLE, 1, &handle)
      && set (plan, PLAN_CONFIG, TYPE_DESCRIPTOR, 1, &config) && dnn.finalize (plan) == 0
      && dnn.get (plan, PLAN_WORKSPACE, TYPE_INT64, 1, &n, workspace) == 0 && *workspace <= most)
    return plan;
  descriptor_free (plan);
  return NULL;
}

/* Asks in what cuDNN thinks the best order, first its quick heuristic, then what runs everywhere. */
static gpointer
choose (gpointer handle, gpointer graph, const GTorchCudnnConv *conv, gint64 *workspace)
{
  static const gint modes[] = { 3, 2 };
  gpointer plan = NULL;
  guint m, i;

  for (m = 0; plan == NULL && m < G_N_ELEMENTS (modes); m++)
    {
      gpointer heuristic = descriptor_new (HEURISTIC), configs[N_CANDIDATES];
      gint64 n = 0;

      for (i = 0; i < N_CANDIDATES; i++)
        configs[i] = descriptor_new (ENGINE_CONFIG);
      if (heuristic != NULL && set (heuristic, HEURISTIC_GRAPH, TYPE_DESCRIPTOR, 1, &graph)
          && set (heuristic, HEURISTIC_MODE, TYPE_HEURISTIC_MODE, 1, &modes[m])
          && dnn.finalize (heuristic) == 0
          && dnn.get (heuristic, HEURISTIC_RESULTS, TYPE_DESCRIPTOR, N_CANDIDATES, &n, configs)
                 == 0)
        for (i = 0; plan == NULL && i < n; i++)
          if (is_exact (conv, configs[i]))
            plan = try_config (handle, configs[i], most_workspace (conv), workspace);
      for (i = 0; i < N_CANDIDATES; i++)
        descriptor_free (configs[i]);
      descriptor_free (heuristic);
    }
  return plan;
}

static Plan *
plan_new (const GTorchCudnnConv *conv, gpointer handle)
{
  Plan *plan = g_new0 (Plan, 1);
  gpointer x = tensor_new ('x', conv, conv->x);
  gpointer w = tensor_new ('w', conv, conv->w);
  gpointer y = tensor_new ('y', conv, conv->y);
  gpointer convolution = convolution_new (conv), operation = NULL, graph = NULL;

  plan->conv = *conv;
  if (x != NULL && w != NULL && y != NULL && convolution != NULL)
    operation = operation_new (conv, convolution, x, w, y);
  if (operation != NULL)
    graph = descriptor_new (GRAPH);
  if (graph != NULL && set (graph, GRAPH_HANDLE, TYPE_HANDLE, 1, &handle)
      && set (graph, GRAPH_OPS, TYPE_DESCRIPTOR, 1, &operation) && dnn.finalize (graph) == 0)
    plan->plan = choose (handle, graph, conv, &plan->workspace);
  descriptor_free (graph);
  descriptor_free (operation);
  descriptor_free (convolution);
  descriptor_free (y);
  descriptor_free (w);
  descriptor_free (x);
  return plan;
}

static void
plan_free (gpointer data)
{
  Plan *plan = data;

  descriptor_free (plan->plan);
  g_free (plan);
}

static gboolean
is_of_device (gpointer key, gpointer value, gpointer device)
{
  return ((Plan *) value)->conv.device == GPOINTER_TO_INT (device);
}

/* Under the lock, until the plan has been used: another thread may empty the table. */
static Plan *
find_plan (const GTorchCudnnConv *conv, guint device)
{
  Plan *plan;

  if (!load ())
    return NULL;
  if (handles[device] == NULL && dnn.create (&handles[device]) != 0)
    return NULL;
  if (plans == NULL)
    plans = g_hash_table_new_full (conv_hash, conv_equal, NULL, plan_free);
  plan = g_hash_table_lookup (plans, conv);
  if (plan == NULL)
    {
      /* What plans hold must stay as long as it may be at work. */
      if (g_hash_table_size (plans) >= MAX_PLANS && gtorch_cuda.cuCtxSynchronize () == 0)
        g_hash_table_foreach_remove (plans, is_of_device, GUINT_TO_POINTER (device));
      plan = plan_new (conv, handles[device]);
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
  gboolean result;

  key.device = device;
  g_mutex_lock (&lock);
  result = find_plan (&key, device) != NULL;
  g_mutex_unlock (&lock);
  return result;
}

gboolean
gtorch_cuda_cudnn_convolve (const GTorchCudnnConv *conv, GTorchCudaLane *lane, gpointer x,
                            gpointer w, gpointer y, gboolean *done, GError **error)
{
  const gint64 ids[] = { 'x', 'w', 'y' };
  gpointer pointers[] = { x, w, y }, space, pack;
  guint device = lane->device->parent_instance.index;
  g_autoptr (GTorchImpl) workspace = NULL;
  GTorchCudnnConv key = *conv;
  gint64 space_size = 0;
  gint status = -1;
  Plan *plan;

  *done = FALSE;
  key.device = device;
  if ((((guintptr) x | (guintptr) w | (guintptr) y) & 15) != 0)
    return TRUE;
  if (!gtorch_cuda_device_activate (lane->device, error))
    return FALSE;

  /* Allocating may call the application, which may convolve: not under the lock. */
  g_mutex_lock (&lock);
  while ((plan = find_plan (&key, device)) != NULL && plan->workspace > space_size)
    {
      space_size = plan->workspace;
      g_mutex_unlock (&lock);
      g_clear_pointer (&workspace, gtorch_impl_unref);
      workspace = gtorch_cuda_scratch (lane, space_size, error);
      if (workspace == NULL)
        return FALSE;
      g_mutex_lock (&lock);
    }
  if (plan == NULL)
    {
      g_mutex_unlock (&lock);
      return TRUE;
    }
  space = workspace != NULL ? gtorch_impl_data (workspace) : NULL;
  pack = descriptor_new (VARIANT_PACK);
  if (pack != NULL && set (pack, PACK_POINTERS, TYPE_POINTER, 3, pointers)
      && set (pack, PACK_IDS, TYPE_INT64, 3, ids)
      && set (pack, PACK_WORKSPACE, TYPE_POINTER, 1, &space) && dnn.finalize (pack) == 0
      && dnn.set_stream (handles[device], lane->handle) == 0)
    status = dnn.execute (handles[device], plan->plan, pack);
  descriptor_free (pack);
  g_mutex_unlock (&lock);
  if (status != 0)
    {
      g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_CUDA,
                   _ ("cudnnBackendExecute failed with status %d"), status);
      return FALSE;
    }
  *done = TRUE;
  return TRUE;
}
