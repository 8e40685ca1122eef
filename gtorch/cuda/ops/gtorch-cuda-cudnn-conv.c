/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Convolutions by cuDNN. A plan is made once for each form of convolution, and cached. Engines are skipped
 * if they implicitly round float32 to fewer bits, add in no fixed order, or let one NaN spread over an
 * image. */

#include "config.h"

#include <string.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-cudnn-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/ops/gtorch-cuda-benchmark-private.h"
#include "cuda/driver/gtorch-cuda-private.h"

#define N_TIMED 16 /* how many of the most promising engines are timed */
#define WORKSPACE \
  (G_GINT64_CONSTANT (64) << 20) /* the maximum workspace beside copies of the tensors */

/* --- the part of cuDNN's binary interface that is used --- */
enum
{
  CONVOLUTION = 1,
  ENGINE = 2,
  FORWARD = 10,
  BACKWARD_WEIGHT = 11,
  BACKWARD_INPUT = 12,
  TENSOR = 17,
};

enum
{
  TYPE_DATA_TYPE = 1,
  TYPE_INT64 = 3,
  TYPE_FLOAT = 4,
  TYPE_DOUBLE = 5,
  TYPE_CONVOLUTION_MODE = 7,
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
  CONFIG_ENGINE = 300,
  TENSOR_ALIGNMENT = 900,
  TENSOR_DATA_TYPE = 901,
  TENSOR_DIMENSIONS = 902,
  TENSOR_STRIDES = 903,
  TENSOR_UNIQUE_ID = 906,
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

/* --- operations --- */

static gpointer
tensor_new (gint64 id, const GTorchCudnnConv *conv, const gint64 *shape)
{
  const gint64 alignment = 16, n = conv->n_dims;
  gint64 strides[5];
  gint type = gtorch_cudnn_data_type (conv->dtype);
  gpointer tensor = gtorch_cudnn_descriptor_new (TENSOR);

  gtorch_cuda_image_strides (shape, n, conv->channels_last, strides);
  if (tensor != NULL && gtorch_cudnn_set (tensor, TENSOR_DATA_TYPE, TYPE_DATA_TYPE, 1, &type)
      && gtorch_cudnn_set (tensor, TENSOR_DIMENSIONS, TYPE_INT64, n, shape)
      && gtorch_cudnn_set (tensor, TENSOR_STRIDES, TYPE_INT64, n, strides)
      && gtorch_cudnn_set (tensor, TENSOR_UNIQUE_ID, TYPE_INT64, 1, &id)
      && gtorch_cudnn_set (tensor, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment)
      && gtorch_cudnn_finalize (tensor))
    return tensor;
  gtorch_cudnn_descriptor_free (tensor);
  return NULL;
}

static gpointer
convolution_new (const GTorchCudnnConv *conv)
{
  const gint64 n = conv->n_dims - 2;
  gint compute = conv->dtype == GTORCH_DTYPE_FLOAT64 ? 1 : 0, mode = 1; /* cross-correlation */
  gpointer descriptor = gtorch_cudnn_descriptor_new (CONVOLUTION);

  if (descriptor != NULL
      && gtorch_cudnn_set (descriptor, CONVOLUTION_COMPUTE, TYPE_DATA_TYPE, 1, &compute)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_MODE, TYPE_CONVOLUTION_MODE, 1, &mode)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_N_DIMS, TYPE_INT64, 1, &n)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_PRE_PADDINGS, TYPE_INT64, n, conv->padding)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_POST_PADDINGS, TYPE_INT64, n, conv->padding)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_DILATIONS, TYPE_INT64, n, conv->dilation)
      && gtorch_cudnn_set (descriptor, CONVOLUTION_STRIDES, TYPE_INT64, n, conv->stride)
      && gtorch_cudnn_finalize (descriptor))
    return descriptor;
  gtorch_cudnn_descriptor_free (descriptor);
  return NULL;
}

/* Makes an operation. The attributes of each kind start at `first`: alpha, beta, the convolution, and the
 * tensors, whose order differs. */
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
      && gtorch_cudnn_finalize (op))
    return op;
  gtorch_cudnn_descriptor_free (op);
  return NULL;
}

/* --- plans --- */

static gboolean
is_exact (gpointer config, gconstpointer data)
{
  const GTorchCudnnConv *conv = data;
  gpointer engine = gtorch_cudnn_descriptor_new (ENGINE);
  gint notes[32];
  gint64 n = 0, i;
  gboolean good = engine != NULL
                  && gtorch_cudnn_get (config, CONFIG_ENGINE, TYPE_DESCRIPTOR, 1, &n, &engine)
                  && gtorch_cudnn_get (engine, ENGINE_NOTES, TYPE_NUMERICAL_NOTE,
                                       G_N_ELEMENTS (notes), &n, notes);

  for (i = 0; good && i < n; i++)
    switch (notes[i])
      {
      case NOTE_NONDETERMINISTIC:
        good = conv->unordered;
        break;
      case NOTE_REDUCED_REDUCTION:
      case NOTE_FFT:
        good = FALSE;
        break;
      case NOTE_DOWN_CONVERT:
        good = conv->tf32;
        break;
      case NOTE_TENSOR_CORE: /* these engines round float32 to TF32; float64 is not rounded */
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

/* Returns the maximum workspace of an engine. Engines that need another layout copy all three tensors. */
static gint64
most_workspace (const GTorchCudnnConv *conv)
{
  const gint64 *shapes[] = { conv->x, conv->w, conv->y };
  gint64 n = 0;
  guint i, j;

  if (conv->frugal)
    return 0;
  for (i = 0; i < G_N_ELEMENTS (shapes); i++)
    {
      gint64 numel = 1;

      for (j = 0; j < conv->n_dims; j++)
        numel *= shapes[i][j];
      n += numel;
    }
  return 2 * n * (gint64) gtorch_dtype_size (conv->dtype) + WORKSPACE;
}

static guint
find_engines (const GTorchCudnnConv *conv, gpointer handle, GTorchCudnnPlan *found, guint n)
{
  gpointer x = tensor_new ('x', conv, conv->x);
  gpointer w = tensor_new ('w', conv, conv->w);
  gpointer y = tensor_new ('y', conv, conv->y);
  gpointer convolution = convolution_new (conv), operation = NULL;
  guint n_found = 0;

  if (x != NULL && w != NULL && y != NULL && convolution != NULL)
    operation = operation_new (conv, convolution, x, w, y);
  if (operation != NULL)
    n_found =
        gtorch_cudnn_find (handle, &operation, 1, is_exact, conv, most_workspace (conv), found, n);
  gtorch_cudnn_descriptor_free (operation);
  gtorch_cudnn_descriptor_free (convolution);
  gtorch_cudnn_descriptor_free (y);
  gtorch_cudnn_descriptor_free (w);
  gtorch_cudnn_descriptor_free (x);
  return n_found;
}

/* Finds or makes a plan. cuDNN must stay locked until the plan has been executed, as other threads may free
 * it. */
static const GTorchCudnnPlan *
find_plan (const GTorchCudnnConv *conv, gpointer handle)
{
  const GTorchCudnnPlan *plan = gtorch_cudnn_lookup (conv->device, conv, sizeof *conv);
  GTorchCudnnPlan found = { NULL };

  if (plan == NULL && !conv->timed)
    {
      find_engines (conv, handle, &found, 1);
      plan = gtorch_cudnn_keep (conv->device, conv, sizeof *conv, &found);
      if (found.plan == NULL)
        g_debug ("cuDNN has no engine for %s by %s, dtype %s%s",
                 gtorch_shape_str (conv->x, conv->n_dims), gtorch_shape_str (conv->w, conv->n_dims),
                 gtorch_dtype_get_name (conv->dtype), conv->channels_last ? ", channels last" : "");
    }
  return plan != NULL && plan->plan != NULL ? plan : NULL;
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
  key.timed = key.unordered = FALSE;
  result = find_plan (&key, handle) != NULL;
  gtorch_cudnn_end ();
  return result;
}

/* --- the fastest engine --- */

typedef struct
{
  GTorchCudaLane *lane;
  guint device, n;
  gconstpointer *pointers;
  GTorchImpl *workspace;
  GTorchCudnnPlan found[N_TIMED]; /* plans that are not shared with other threads yet */
} Trial;

static const gint64 ids[] = { 'x', 'w', 'y' };

static gboolean
execute (gpointer handle, const GTorchCudnnPlan *plan, GTorchCudaLane *lane,
         gconstpointer *pointers, GTorchImpl *workspace, GError **error)
{
  return gtorch_cudnn_execute (handle, plan->plan, lane, G_N_ELEMENTS (ids), ids,
                               (const gpointer *) pointers,
                               workspace != NULL ? gtorch_impl_data (workspace) : NULL, error);
}

static gboolean
attempt (guint which, gpointer data)
{
  Trial *trial = data;
  gpointer handle = gtorch_cudnn_begin (trial->device);
  gboolean result =
      execute (handle, &trial->found[which], trial->lane, trial->pointers, trial->workspace, NULL);

  gtorch_cudnn_end ();
  return result;
}

static void
drop_engine (Trial *trial, guint i)
{
  gtorch_cudnn_descriptor_free (trial->found[i].plan);
  trial->n--;
  memmove (&trial->found[i], &trial->found[i + 1], (trial->n - i) * sizeof *trial->found);
}

/* Allocates a workspace for all engines, after dropping those that need more than is available. */
static void
find_room (Trial *trial)
{
  for (;;)
    {
      gint64 most = 0;
      guint i;

      for (i = 0; i < trial->n; i++)
        most = MAX (most, trial->found[i].workspace);
      if (most > 0)
        trial->workspace = gtorch_cuda_scratch (trial->lane, most, NULL);
      if (most == 0 || trial->workspace != NULL)
        return;
      for (i = trial->n; i > 0; i--)
        if (trial->found[i - 1].workspace == most)
          drop_engine (trial, i - 1);
    }
}

/* Times the engines and caches the fastest one. cuDNN must not be locked. Returns FALSE if timing is
 * impossible or no engine can be used. */
static gboolean
choose (const GTorchCudnnConv *conv, GTorchCudaLane *lane, gconstpointer *pointers)
{
  Trial trial = { lane, conv->device, 0, pointers };
  gpointer handle;
  gint best = -1;
  guint i;

  if (gtorch_cuda_lane_may_capture (lane))
    return FALSE;
  handle = gtorch_cudnn_begin (conv->device);
  trial.n = find_engines (conv, handle, trial.found, N_TIMED);
  gtorch_cudnn_end ();
  find_room (&trial);
  if (trial.n > 0)
    best = gtorch_cuda_benchmark (lane, trial.n, attempt, &trial);
  gtorch_cudnn_begin (conv->device);
  if (best >= 0 && find_plan (conv, handle) == NULL)
    {
      gtorch_cudnn_keep (conv->device, conv, sizeof *conv, &trial.found[best]);
      trial.found[best].plan = NULL;
      g_debug ("cuDNN: of %u engines number %d is the quickest for %s by %s", trial.n, best,
               gtorch_shape_str (conv->x, conv->n_dims), gtorch_shape_str (conv->w, conv->n_dims));
    }
  for (i = 0; i < trial.n; i++)
    gtorch_cudnn_descriptor_free (trial.found[i].plan);
  gtorch_cudnn_end ();
  g_clear_pointer (&trial.workspace, gtorch_impl_unref);
  return best >= 0;
}

/* --- running --- */

gboolean
gtorch_cuda_cudnn_convolve (const GTorchCudnnConv *conv, GTorchCudaLane *lane, gpointer x,
                            gpointer w, gpointer y, gboolean *done, GError **error)
{
  gconstpointer pointers[] = { x, w, y };
  guint device = lane->device->parent_instance.index;
  g_autoptr (GTorchImpl) workspace = NULL;
  GTorchCudnnConv key = *conv;
  gint64 space = 0;
  gpointer handle;
  const GTorchCudnnPlan *plan;

  *done = FALSE;
  key.device = device;
  if ((((guintptr) x | (guintptr) w | (guintptr) y) & 15) != 0)
    return TRUE;
  if (!gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  handle = gtorch_cudnn_begin (device);
  if (handle == NULL)
    return TRUE;
  if (key.timed && find_plan (&key, handle) == NULL)
    {
      gtorch_cudnn_end ();
      key.timed = choose (&key, lane, pointers);
      key.unordered = key.timed && key.unordered;
      gtorch_cudnn_begin (device);
    }
  /* The lock is released while memory is allocated, as that may call the application, which may convolve. */
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
    {
      *done = execute (handle, plan, lane, pointers, workspace, error);
      gtorch_cudnn_use (plan, lane);
    }
  gtorch_cudnn_end ();
  return plan == NULL || *done;
}
