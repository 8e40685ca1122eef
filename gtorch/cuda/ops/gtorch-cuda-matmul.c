/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Matrix products by cuBLASLt, unless one of GTorch's own kernels computes them (gtorch-cuda-multiply.c).
 * The descriptors and the algorithm of each kind of product are cached, as querying them takes longer than
 * a product. cuBLASLt's matrices are column-major: the row-major c = a b is c' = b' a' there. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "cuda/ops/gtorch-cuda-benchmark-private.h"
#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-plain-private.h"
#include "cuda/ops/gtorch-cuda-recording-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-hash-private.h"
#include "cuda/ops/gtorch-cuda-matmul-private.h"

#define SONAME        "libcublasLt.so.13"
#define WORKSPACE     (G_GUINT64_CONSTANT (32) << 20)
#define N_TIMED       16 /* how many of the most promising algorithms are timed */
#define MAX_ALIGNMENT GTORCH_CUDA_RECORDING_ALIGNMENT /* larger alignments do not help */
/* The number of calls of a plan after which a recording is worthwhile. It is multiplied by MORE_CALLS for
 * each further attempt. */
#define N_CALLS     8
#define MORE_CALLS  8
#define N_RECORDING 3 /* the maximum number of attempts to record a plan */

/* --- the part of cuBLASLt's binary interface that is used --- */

typedef struct
{
  guint64 data[8];
} LtAlgo;

typedef struct
{
  LtAlgo algo;
  gsize workspace;
  gint state;
  gfloat waves;
  gint reserved[4];
} LtHeuristic;

enum
{
  LT_NOT_SUPPORTED = 15,
  LT_REAL_32F = 0,
  LT_REAL_64F = 1,
  LT_REAL_16F = 2,
  LT_COMPLEX_32F = 4,
  LT_COMPLEX_64F = 5,
  LT_REAL_16BF = 14,
  LT_COMPUTE_32F = 68,
  LT_COMPUTE_64F = 70,
  LT_COMPUTE_32F_FAST_16BF = 75,
  LT_COMPUTE_32F_FAST_TF32 = 77,
  LT_LAYOUT_BATCH_COUNT = 5,
  LT_LAYOUT_BATCH_OFFSET = 6,
  LT_DESC_TRANSA = 3,
  LT_DESC_TRANSB = 4,
  LT_DESC_EPILOGUE = 7,
  LT_DESC_BIAS_POINTER = 8,
  LT_EPILOGUE_BIAS = 4,
  LT_EPILOGUE_GRADIENT_B = 512, /* also computes the sums of b's columns */
  LT_PREFERENCE_WORKSPACE = 1,
  LT_PREFERENCE_REDUCTIONS = 3,
  LT_PREFERENCE_ALIGNMENT_A = 5,
  LT_REDUCTION_COMPUTE_TYPE = 2,
};

static struct
{
  gint (*create) (gpointer *handle);
  gint (*matmul) (gpointer handle, gpointer desc, const void *alpha, const void *a,
                  gpointer a_layout, const void *b, gpointer b_layout, const void *beta,
                  const void *c, gpointer c_layout, void *d, gpointer d_layout, const LtAlgo *algo,
                  void *workspace, gsize n_workspace, CUstream stream);
  gint (*layout_create) (gpointer *layout, gint type, guint64 rows, guint64 columns, gint64 stride);
  gint (*layout_set) (gpointer layout, gint attribute, const void *value, gsize size);
  gint (*layout_destroy) (gpointer layout);
  gint (*desc_create) (gpointer *desc, gint compute, gint scale);
  gint (*desc_set) (gpointer desc, gint attribute, const void *value, gsize size);
  gint (*desc_destroy) (gpointer desc);
  gint (*preference_create) (gpointer *preference);
  gint (*preference_set) (gpointer preference, gint attribute, const void *value, gsize size);
  gint (*preference_destroy) (gpointer preference);
  gint (*heuristic) (gpointer handle, gpointer desc, gpointer a, gpointer b, gpointer c, gpointer d,
                     gpointer preference, gint n_wanted, LtHeuristic *results, gint *n_results);
} lt;

static const struct
{
  const gchar *name;
  gpointer *slot;
} symbols[] = {
  { "cublasLtCreate", (gpointer *) &lt.create },
  { "cublasLtMatmul", (gpointer *) &lt.matmul },
  { "cublasLtMatrixLayoutCreate", (gpointer *) &lt.layout_create },
  { "cublasLtMatrixLayoutSetAttribute", (gpointer *) &lt.layout_set },
  { "cublasLtMatrixLayoutDestroy", (gpointer *) &lt.layout_destroy },
  { "cublasLtMatmulDescCreate", (gpointer *) &lt.desc_create },
  { "cublasLtMatmulDescSetAttribute", (gpointer *) &lt.desc_set },
  { "cublasLtMatmulDescDestroy", (gpointer *) &lt.desc_destroy },
  { "cublasLtMatmulPreferenceCreate", (gpointer *) &lt.preference_create },
  { "cublasLtMatmulPreferenceSetAttribute", (gpointer *) &lt.preference_set },
  { "cublasLtMatmulPreferenceDestroy", (gpointer *) &lt.preference_destroy },
  { "cublasLtMatmulAlgoGetHeuristic", (gpointer *) &lt.heuristic },
};

static GMutex lock;
GTORCH_FORK_LOCK (lock);
static gpointer library;
static gpointer handles[GTORCH_CUDA_MAX_DEVICES];
static GHashTable *plans;

static gboolean
lt_check (gint status, const gchar *what, GError **error)
{
  if (G_LIKELY (status == 0))
    return TRUE;
  g_set_error (error, GTORCH_ERROR,
               status == LT_NOT_SUPPORTED ? GTORCH_ERROR_NOT_SUPPORTED : GTORCH_ERROR_CUDA,
               _ ("%s failed with status %d"), what, status);
  return FALSE;
}

/* Returns the device's cuBLASLt handle. The lock must be held, and the device's context must be current. */
static gpointer
get_handle (GTorchDevice *device, GError **error)
{
  guint i;

  if (library == NULL)
    {
      gpointer opened = gtorch_cuda_library_open (SONAME, error);

      if (opened == NULL)
        return NULL;
      for (i = 0; i < G_N_ELEMENTS (symbols); i++)
        if ((*symbols[i].slot = gtorch_cuda_library_symbol (opened, SONAME, symbols[i].name, error))
            == NULL)
          return NULL;
      library = opened;
      plans = g_hash_table_new (NULL, NULL);
    }
  if (handles[device->index] == NULL
      && !lt_check (lt.create (&handles[device->index]), "cublasLtCreate", error))
    return NULL;
  return handles[device->index];
}

/* --- plans --- */

typedef struct
{
  gint64 m, n, k; /* sizes in cuBLASLt's order */
  gint64 lda, ldb, ldc;
  gint64 batch, a_batch, b_batch, c_batch;
  gint64 compute;
  gint64 timed; /* whether to use the fastest of several algorithms, else cuBLASLt's first choice */
  gint32 device, dtype;
  gint32 transpose_a, transpose_b, epilogue, alignment;
} Key;

/* The recording of a plan's calls with one value of beta. */
typedef struct
{
  GTorchCudaRecording *recording; /* NULL if cuBLASLt is called */
  guint n_calls;                  /* number of calls of cuBLASLt */
  guint n_tried;                  /* number of attempts to record */
} Replay;

typedef struct
{
  Key key;
  gpointer desc, a, b, c; /* NULL if cuBLASLt does not support the product */
  LtAlgo algo;
  gsize workspace;
  Replay replays[2]; /* of products with beta 0, and of products with beta 1 */
} Plan;

static gint
lt_type (guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
      return LT_REAL_64F;
    case GTORCH_DTYPE_FLOAT16:
      return LT_REAL_16F;
    case GTORCH_DTYPE_BFLOAT16:
      return LT_REAL_16BF;
    case GTORCH_DTYPE_COMPLEX64:
      return LT_COMPLEX_32F;
    case GTORCH_DTYPE_COMPLEX128:
      return LT_COMPLEX_64F;
    default:
      return LT_REAL_32F;
    }
}

/* Returns the dtype of alpha and beta. */
static guint
scale_dtype (guint dtype)
{
  return gtorch_dtype_size (dtype) == 2 ? GTORCH_DTYPE_FLOAT32 : dtype;
}

static gint
compute_type (GTorchDevice *device, guint dtype)
{
  switch (dtype)
    {
    case GTORCH_DTYPE_FLOAT64:
    case GTORCH_DTYPE_COMPLEX128:
      return LT_COMPUTE_64F;
    case GTORCH_DTYPE_FLOAT32:
    case GTORCH_DTYPE_COMPLEX64:
      switch (g_atomic_int_get (&device->matmul_precision))
        {
        case GTORCH_PRECISION_TF32:
          return LT_COMPUTE_32F_FAST_TF32;
        case GTORCH_PRECISION_BF16:
          return LT_COMPUTE_32F_FAST_16BF;
        default:
          return LT_COMPUTE_32F;
        }
    default:
      return LT_COMPUTE_32F;
    }
}

static gpointer
make_layout (guint dtype, gint64 rows, gint64 columns, gint64 stride, gint64 batch, gint64 offset,
             GError **error)
{
  const gint32 count = batch;
  gpointer layout = NULL;

  if (!lt_check (lt.layout_create (&layout, lt_type (dtype), rows, columns, stride),
                 "cublasLtMatrixLayoutCreate", error))
    return NULL;
  if (batch > 1)
    {
      lt.layout_set (layout, LT_LAYOUT_BATCH_COUNT, &count, sizeof count);
      lt.layout_set (layout, LT_LAYOUT_BATCH_OFFSET, &offset, sizeof offset);
    }
  return layout;
}

static void
plan_free (Plan *plan)
{
  guint i;

  for (i = 0; i < G_N_ELEMENTS (plan->replays); i++)
    gtorch_cuda_recording_free (plan->replays[i].recording);
  if (plan->desc != NULL)
    lt.desc_destroy (plan->desc);
  if (plan->a != NULL)
    lt.layout_destroy (plan->a);
  if (plan->b != NULL)
    lt.layout_destroy (plan->b);
  if (plan->c != NULL)
    lt.layout_destroy (plan->c);
  g_free (plan);
}

/* Makes a plan. Finds up to n_wanted algorithms, which are stored in `found`; the plan uses the first
 * one. */
static Plan *
plan_new (const Key *key, gpointer handle, gconstpointer bias, gint n_wanted, LtHeuristic *found,
          gint *n_found, GError **error)
{
  const gsize most = WORKSPACE;
  const guint32 alignment = key->alignment, reductions = LT_REDUCTION_COMPUTE_TYPE;
  gpointer preference = NULL;
  Plan *plan = g_new0 (Plan, 1);
  gboolean result;
  gint i;

  *n_found = 0;
  plan->key = *key;
  result = lt_check (lt.desc_create (&plan->desc, key->compute, lt_type (scale_dtype (key->dtype))),
                     "cublasLtMatmulDescCreate", error);
  if (result)
    {
      lt.desc_set (plan->desc, LT_DESC_TRANSA, &key->transpose_a, sizeof (gint32));
      lt.desc_set (plan->desc, LT_DESC_TRANSB, &key->transpose_b, sizeof (gint32));
      if (key->epilogue != 0)
        {
          lt.desc_set (plan->desc, LT_DESC_EPILOGUE, &key->epilogue, sizeof key->epilogue);
          lt.desc_set (plan->desc, LT_DESC_BIAS_POINTER, &bias, sizeof bias);
        }
      plan->a = make_layout (key->dtype, key->transpose_a ? key->k : key->m,
                             key->transpose_a ? key->m : key->k, key->lda, key->batch, key->a_batch,
                             error);
      plan->b = plan->a == NULL ? NULL
                                : make_layout (key->dtype, key->transpose_b ? key->n : key->k,
                                               key->transpose_b ? key->k : key->n, key->ldb,
                                               key->batch, key->b_batch, error);
      plan->c = plan->b == NULL ? NULL
                                : make_layout (key->dtype, key->m, key->n, key->ldc, key->batch,
                                               key->c_batch, error);
      result =
          plan->c != NULL
          && lt_check (lt.preference_create (&preference), "cublasLtMatmulPreferenceCreate", error);
    }
  if (result)
    {
      lt.preference_set (preference, LT_PREFERENCE_WORKSPACE, &most, sizeof most);
      /* Let partial sums be added in float32: cuBLASLt splits even a small k, and adding them as 16-bit
       * floats has twenty times the error of one rounding, for no gain in time. */
      if (gtorch_dtype_size (key->dtype) == 2)
        lt.preference_set (preference, LT_PREFERENCE_REDUCTIONS, &reductions, sizeof reductions);
      for (i = 0; i < 4; i++)
        lt.preference_set (preference, LT_PREFERENCE_ALIGNMENT_A + i, &alignment, sizeof alignment);
      result = lt_check (lt.heuristic (handle, plan->desc, plan->a, plan->b, plan->c, plan->c,
                                       preference, n_wanted, found, n_found),
                         "cublasLtMatmulAlgoGetHeuristic", error)
               && lt_check (*n_found > 0 ? found[0].state : LT_NOT_SUPPORTED,
                            "cublasLtMatmulAlgoGetHeuristic", error);
      lt.preference_destroy (preference);
    }
  if (!result)
    {
      plan_free (plan);
      return NULL;
    }
  plan->algo = found[0].algo;
  plan->workspace = found[0].workspace;
  return plan;
}

/* --- one product, or a batch with constant strides --- */

/* Returns whether the matrix is row-major (*by_column is FALSE) or column-major (TRUE). *stride becomes its
 * leading dimension. */
static gboolean
fits (const GTorchImpl *x, gboolean *by_column, gint64 *stride)
{
  guint n = x->n_dims;
  gint64 rows = x->shape[n - 2], columns = x->shape[n - 1];
  gint64 down = x->strides[n - 2], across = x->strides[n - 1];

  if ((across == 1 || columns == 1) && (down >= MAX (columns, 1) || rows == 1))
    {
      *by_column = FALSE;
      *stride = rows == 1 ? MAX (columns, 1) : down;
      return TRUE;
    }
  if ((down == 1 || rows == 1) && (across >= MAX (rows, 1) || columns == 1))
    {
      *by_column = TRUE;
      *stride = columns == 1 ? MAX (rows, 1) : across;
      return TRUE;
    }
  return FALSE;
}

typedef struct
{
  GTorchOpCall *call;
  GTorchCudaLane *lane;
  GTorchDevice *device;
  guint dtype;
  GTorchImpl *bias;
  gdouble alpha, beta;
  char *a, *b, *c;
  Key key;
  GTorchStorage *workspace; /* workspace of a captured product; made on first use */
  gboolean has_recorded;
} Product;

/* Returns the parameters of the product for GTorch's own kernels. */
static GtMultiply
describe (const Product *p)
{
  const Key *key = &p->key;
  gpointer epilogue = p->bias != NULL ? gtorch_impl_data (p->bias) : NULL;

  return (GtMultiply){
    .a = p->a,
    .b = p->b,
    .c = p->c,
    .bias = key->epilogue == LT_EPILOGUE_BIAS ? epilogue : NULL,
    .sums = key->epilogue == LT_EPILOGUE_GRADIENT_B ? epilogue : NULL,
    .m = key->m,
    .n = key->n,
    .k = key->k,
    .batch = key->batch,
    .a_row = key->transpose_a ? key->lda : 1,
    .a_column = key->transpose_a ? 1 : key->lda,
    .b_row = key->transpose_b ? key->ldb : 1,
    .b_column = key->transpose_b ? 1 : key->ldb,
    .c_column = key->ldc,
    .a_batch = key->a_batch,
    .b_batch = key->b_batch,
    .c_batch = key->c_batch,
  };
}

static gpointer
hash_of (const Key *key)
{
  return GUINT_TO_POINTER (gtorch_hash_words (key, sizeof *key));
}

/* Adds the plan to the cache; the lock must be held. */
static void
keep_plan (Plan *plan)
{
  gpointer hash = hash_of (&plan->key);
  Plan *former = g_hash_table_lookup (plans, hash);

  g_hash_table_insert (plans, hash, plan);
  g_clear_pointer (&former, plan_free);
}

/* Makes an empty plan if the epilogue is one that the caller can do without, so that it is not tried again;
 * otherwise returns NULL. */
static Plan *
plan_new_impossible (const Key *key)
{
  Plan *plan;

  if (key->epilogue != LT_EPILOGUE_GRADIENT_B)
    return NULL;
  plan = g_new0 (Plan, 1);
  plan->key = *key;
  return plan;
}

/* Finds or makes a plan. The lock must be held. Returns NULL, without an error, if algorithms have to be
 * timed first. */
static Plan *
find_plan (const Product *p, gpointer handle, gconstpointer bias, GError **error)
{
  Plan *plan = g_hash_table_lookup (plans, hash_of (&p->key));
  LtHeuristic found;
  gint n_found;

  if (plan != NULL && memcmp (&plan->key, &p->key, sizeof (Key)) == 0)
    return plan;
  if (p->key.timed)
    return NULL;
  plan = plan_new (&p->key, handle, bias, 1, &found, &n_found, error);
  if (plan == NULL && (plan = plan_new_impossible (&p->key)) != NULL)
    g_clear_error (error);
  if (plan != NULL)
    keep_plan (plan);
  return plan;
}

/* The value of alpha or beta, in any dtype that it can have. */
typedef union
{
  gfloat f[2];
  gdouble d[2];
} Number;

static Number
number (const Product *p, gdouble value)
{
  gboolean is_double = gtorch_dtype_infos[scale_dtype (p->dtype)].real == GTORCH_DTYPE_FLOAT64;

  return is_double ? (Number){ .d = { value } } : (Number){ .f = { value } };
}

/* Returns the lane's workspace, or in a capture the product's own, which no other work of the lane uses. */
static GTorchStorage *
get_workspace (const Product *p)
{
  return gtorch_cuda_lane_capture (p->lane) != NULL ? p->workspace
                                                    : g_atomic_pointer_get (&p->lane->workspace);
}

/* The addresses of the memory that a product uses; 0 means none. */
enum
{
  A,
  B,
  C,
  BIAS,
  WORK,
  N_ADDRESSES
};

static void
find_addresses (const Product *p, const Plan *plan, guint64 *addresses)
{
  const GTorchStorage *workspace = plan->workspace > 0 ? get_workspace (p) : NULL;

  addresses[A] = (guintptr) p->a;
  addresses[B] = (guintptr) p->b;
  addresses[C] = (guintptr) p->c;
  addresses[BIAS] = p->bias != NULL ? (guintptr) gtorch_impl_data (p->bias) : 0;
  addresses[WORK] = workspace != NULL ? (guintptr) workspace->data : 0;
}

static gint
call_library (const Product *p, Plan *plan, gpointer handle, CUstream stream,
              const guint64 *addresses)
{
  const Number alpha = number (p, p->alpha), beta = number (p, p->beta);
  gpointer at[N_ADDRESSES];
  guint i;

  for (i = 0; i < N_ADDRESSES; i++)
    at[i] = (gpointer) (guintptr) addresses[i];
  if (at[BIAS] != NULL)
    lt.desc_set (plan->desc, LT_DESC_BIAS_POINTER, &at[BIAS], sizeof at[BIAS]);
  return lt.matmul (handle, plan->desc, &alpha, at[A], plan->a, at[B], plan->b, &beta, at[C],
                    plan->c, at[C], plan->c, &plan->algo, at[WORK], plan->workspace, stream);
}

typedef struct
{
  const Product *product;
  Plan *plan;
  gpointer handle;
} Call;

static gboolean
call_again (CUstream stream, const guint64 *addresses, gpointer data)
{
  const Call *self = data;

  return call_library (self->product, self->plan, self->handle, stream, addresses) == 0;
}

static Replay *
find_replay (const Product *p, Plan *plan)
{
  const gboolean is_plain = p->alpha == 1 && (p->beta == 0 || p->beta == 1);

  /* products in captures are not replayed, as the library audits their nodes and changes their parameters */
  if (!is_plain || p->key.alignment != GTORCH_CUDA_RECORDING_ALIGNMENT
      || gtorch_cuda_lane_capture (p->lane) != NULL)
    return NULL;
  return &plan->replays[p->beta != 0];
}

/* Records the call that was just made. The lock must be held. */
static void
record (Product *p, Plan *plan, Replay *replay, gpointer handle)
{
  Call data = { p, plan, handle };
  guint64 addresses[N_ADDRESSES];
  gboolean is_busy;

  find_addresses (p, plan, addresses);
  replay->recording =
      gtorch_cuda_recording_new (addresses, N_ADDRESSES, call_again, &data, &is_busy);
  if (is_busy)
    return; /* retry after the next call */
  replay->n_tried++;
  replay->n_calls = 0;
  p->has_recorded = replay->recording != NULL;
}

static gboolean
is_worth_recording (const Product *p, Replay *replay)
{
  guint needed = N_CALLS, i;

  for (i = 0; i < replay->n_tried; i++)
    needed *= MORE_CALLS;
  return replay->n_tried < N_RECORDING && ++replay->n_calls >= needed
         && !gtorch_cuda_lane_may_capture (p->lane);
}

/* Enqueues the product; the lock must be held. */
static gboolean
multiply (Product *p, Plan *plan, gpointer handle, GError **error)
{
  Replay *replay = find_replay (p, plan);
  guint64 addresses[N_ADDRESSES];
  g_autoptr (GError) local = NULL;
  guint n_launched;

  find_addresses (p, plan, addresses);
  if (replay != NULL && replay->recording != NULL)
    {
      if (gtorch_cuda_recording_launch (replay->recording, p->lane, addresses, &n_launched, &local))
        return TRUE;
      if (n_launched > 0 || !gtorch_device_works (p->device, NULL))
        {
          g_propagate_error (error, g_steal_pointer (&local));
          return FALSE;
        }
      /* The launch failed, perhaps as cuBLASLt has configured its kernel differently meanwhile. */
      g_clear_pointer (&replay->recording, gtorch_cuda_recording_free);
    }
  if (!lt_check (call_library (p, plan, handle, p->lane->handle, addresses), "cublasLtMatmul",
                 error))
    return FALSE;
  if (replay != NULL && is_worth_recording (p, replay))
    record (p, plan, replay, handle);
  return TRUE;
}

/* Logs that the product was recorded. The lock must not be held, as a log handler may multiply. */
static void
tell_of_recording (Product *p)
{
  if (p->has_recorded)
    g_debug ("cublasLt: %" G_GINT64_FORMAT " x %" G_GINT64_FORMAT " x %" G_GINT64_FORMAT
             ", dtype %s, is launched without it from now on",
             p->key.n, p->key.k, p->key.m, gtorch_dtype_get_name (p->dtype));
  p->has_recorded = FALSE;
}

/* Allocates the workspace. The lock must not be held, as this may call the application, which may
 * multiply. */
static gboolean
need_workspace (Product *p, GError **error)
{
  GTorchStorage *workspace;

  if (get_workspace (p) != NULL)
    return TRUE;
  workspace = gtorch_cuda_alloc (p->device, WORKSPACE, error);
  if (workspace == NULL)
    return FALSE;
  if (gtorch_cuda_lane_capture (p->lane) != NULL)
    p->workspace = workspace;
  else if (!g_atomic_pointer_compare_and_exchange (&p->lane->workspace, NULL, workspace))
    gtorch_storage_unref (workspace);
  return TRUE;
}

/* Frees the workspaces of all lanes. The lock must not be held. Products that are enqueued later allocate
 * new ones. */
void
gtorch_cuda_drop_workspaces (GTorchDevice *device)
{
  GTorchCudaLane *lane;

  for (lane = g_atomic_pointer_get (&GTORCH_CUDA_DEVICE (device)->newest); lane != NULL;
       lane = lane->next)
    {
      GTorchStorage *workspace;

      g_mutex_lock (&lock);
      workspace = g_atomic_pointer_get (&lane->workspace);
      g_atomic_pointer_set (&lane->workspace, NULL);
      g_mutex_unlock (&lock);
      g_clear_pointer (&workspace, gtorch_storage_unref);
    }
}

/* --- the fastest algorithm --- */

typedef struct
{
  Product *product;
  gpointer handle;
  Plan *plan; /* plan that is not shared with other threads yet */
  LtHeuristic found[N_TIMED];
  Replay replays[N_TIMED];
} Trial;

static void
take (Trial *trial, guint which)
{
  trial->plan->algo = trial->found[which].algo;
  trial->plan->workspace = trial->found[which].workspace;
  trial->plan->replays[0] = trial->replays[which];
  trial->replays[which] = (Replay){ NULL };
}

static gboolean
attempt (guint which, gpointer data)
{
  Trial *trial = data;
  gboolean result;

  if (trial->found[which].state != 0)
    return FALSE;
  g_mutex_lock (&lock);
  while (trial->found[which].workspace > 0 && get_workspace (trial->product) == NULL)
    { /* another thread has freed the workspace */
      g_mutex_unlock (&lock);
      if (!need_workspace (trial->product, NULL))
        return FALSE;
      g_mutex_lock (&lock);
    }
  take (trial, which);
  /* have the first call recorded */
  trial->plan->replays[0].n_calls = trial->plan->replays[0].n_tried == 0 ? N_CALLS : 0;
  result = multiply (trial->product, trial->plan, trial->handle, NULL);
  g_mutex_unlock (&lock);
  trial->replays[which] = trial->plan->replays[0];
  trial->plan->replays[0] = (Replay){ NULL };
  return result;
}

/* Times the algorithms and caches the fastest one. The lock must not be held. Returns FALSE, without an
 * error, if nothing can be timed or there is no memory for it. */
static gboolean
choose (Product *p, gpointer handle, gconstpointer bias)
{
  Trial trial = { p, handle };
  gint n_found = 0, best = -1;
  guint i;

  if (gtorch_cuda_lane_may_capture (p->lane) || !need_workspace (p, NULL))
    return FALSE;
  g_mutex_lock (&lock);
  trial.plan = plan_new (&p->key, handle, bias, N_TIMED, trial.found, &n_found, NULL);
  if (trial.plan == NULL && (trial.plan = plan_new_impossible (&p->key)) != NULL)
    {
      keep_plan (trial.plan);
      g_mutex_unlock (&lock);
      return TRUE;
    }
  g_mutex_unlock (&lock);
  if (trial.plan == NULL)
    return FALSE;
  best = gtorch_cuda_benchmark (p->lane, n_found, attempt, &trial);
  g_mutex_lock (&lock);
  if (best >= 0)
    {
      take (&trial, best);
      p->has_recorded = trial.plan->replays[0].recording != NULL;
      keep_plan (trial.plan);
    }
  else
    {
      p->has_recorded = FALSE;
      plan_free (trial.plan);
    }
  g_mutex_unlock (&lock);
  if (best >= 0)
    g_debug ("cublasLt: of %d algorithms number %d is the quickest for %" G_GINT64_FORMAT
             " x %" G_GINT64_FORMAT " x %" G_GINT64_FORMAT ", dtype %s",
             n_found, best, p->key.n, p->key.k, p->key.m, gtorch_dtype_get_name (p->dtype));
  for (i = 0; i < N_TIMED; i++)
    gtorch_cuda_recording_free (trial.replays[i].recording);
  return best >= 0;
}

static gboolean
run_product (Product *p, GError **error)
{
  gconstpointer bias = p->bias != NULL ? gtorch_impl_data (p->bias) : NULL;
  guintptr addresses = (guintptr) p->a | (guintptr) p->b | (guintptr) p->c | (guintptr) bias;
  gpointer handle;
  Plan *plan;
  gboolean result;

  if (gtorch_dtype_kind (p->dtype) < GTORCH_KIND_COMPLEX)
    {
      GtMultiply product = describe (p);
      gboolean done;

      if (!gtorch_cuda_multiply_by_kernel (p->lane, p->dtype, &product, p->alpha, p->beta,
                                           p->key.compute == LT_COMPUTE_32F, &done, error))
        return FALSE;
      if (done)
        return TRUE;
    }
  addresses |= MAX_ALIGNMENT;
  p->key.alignment = addresses & -addresses;
  /* Do not time algorithms if the result is added to c, as it would be added several times. */
  p->key.timed = p->beta == 0 && g_atomic_int_get (&p->device->benchmark);

  for (;;)
    {
      g_mutex_lock (&lock);
      handle = get_handle (p->device, error);
      plan = handle != NULL ? find_plan (p, handle, bias, error) : NULL;
      if (plan != NULL && (plan->workspace == 0 || get_workspace (p) != NULL))
        break;
      g_mutex_unlock (&lock);
      if (handle == NULL || (plan == NULL && !p->key.timed)
          || (plan != NULL && !need_workspace (p, error)))
        return FALSE;
      if (plan == NULL)
        p->key.timed = choose (p, handle, bias);
    }
  result = plan->desc != NULL ? multiply (p, plan, handle, error)
                              : lt_check (LT_NOT_SUPPORTED, "cublasLtMatmul", error);
  g_mutex_unlock (&lock);
  tell_of_recording (p);
  return result;
}

/* Runs a product over the batch dimensions from `dim` on: one call for the last of them, a loop over the
 * others. */
static gboolean
run_batches (Product *p, const GTorchImpl *x, const GTorchImpl *y, const GTorchImpl *z, guint dim,
             GError **error)
{
  gint lead_x = (gint) x->n_dims - (gint) z->n_dims, lead_y = (gint) y->n_dims - (gint) z->n_dims;
  gint64 size = gtorch_dtype_size (p->dtype);
  guint n_batch = z->n_dims - 2;
  gint64 step_x, step_y, step_z, i;
  char *a = p->a, *b = p->b, *c = p->c;

  if (dim == n_batch)
    return run_product (p, error);
  /* cuBLASLt's a is y */
  step_x = (gint) dim + lead_x >= 0 && x->shape[dim + lead_x] > 1 ? x->strides[dim + lead_x] : 0;
  step_y = (gint) dim + lead_y >= 0 && y->shape[dim + lead_y] > 1 ? y->strides[dim + lead_y] : 0;
  step_z = z->strides[dim];
  if (dim + 1 == n_batch)
    {
      p->key.batch = z->shape[dim];
      p->key.a_batch = step_y;
      p->key.b_batch = step_x;
      p->key.c_batch = step_z;
      return run_product (p, error);
    }
  for (i = 0; i < z->shape[dim]; i++)
    {
      p->a = a + i * step_y * size;
      p->b = b + i * step_x * size;
      p->c = c + i * step_z * size;
      if (!run_batches (p, x, y, z, dim + 1, error))
        return FALSE;
    }
  p->a = a;
  p->b = b;
  p->c = c;
  return TRUE;
}

static GTorchImpl *
prepare (GTorchImpl *x, guint dtype, gboolean *by_column, gint64 *stride, GTorchCudaLane *lane,
         GError **error)
{
  g_autoptr (GTorchImpl) copy = NULL;

  if (x->dtype == dtype && fits (x, by_column, stride))
    return gtorch_impl_ref (x);
  copy = gtorch_impl_new (x->storage->device, dtype, x->shape, x->n_dims, error);
  if (copy == NULL || !gtorch_cuda_copy_here (copy, x, lane, error))
    return NULL;
  fits (copy, by_column, stride);
  return g_steal_pointer (&copy);
}

/* Multiplies batches of matrices. `bias` is the tensor that the epilogue reads or writes. */
static gboolean
multiply_batches (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *a, GTorchImpl *b,
                  GTorchImpl *c, gint epilogue, GTorchImpl *bias, gdouble alpha, gdouble beta,
                  GError **error)
{
  GTorchDevice *device = c->storage->device;
  guint dtype = call->compute;
  gboolean a_by_column, b_by_column, c_by_column;
  gint64 a_stride, b_stride, c_stride;
  g_autoptr (GTorchImpl) x = NULL;
  g_autoptr (GTorchImpl) y = NULL;
  g_autoptr (GTorchImpl) z = NULL;
  Product p = { call, lane, device, dtype, bias, alpha, beta };
  gboolean done;

  if (c->numel == 0)
    return TRUE;
  if (a->shape[a->n_dims - 1] == 0 || alpha == 0)
    return beta == 0 ? gtorch_cuda_clear (c, lane, error)
                     : gtorch_cuda_scale (c, beta, lane, error);
  if (!gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), error))
    return FALSE;
  x = prepare (a, dtype, &a_by_column, &a_stride, lane, error);
  y = x != NULL ? prepare (b, dtype, &b_by_column, &b_stride, lane, error) : NULL;
  if (y == NULL)
    return FALSE;
  if (c->dtype == dtype && fits (c, &c_by_column, &c_stride) && !c_by_column)
    z = gtorch_impl_ref (c);
  else
    {
      z = gtorch_impl_new (device, dtype, c->shape, c->n_dims, error);
      if (z == NULL || (beta != 0 && !gtorch_cuda_copy_here (z, c, lane, error)))
        return FALSE;
      fits (z, &c_by_column, &c_stride);
    }
  p.a = gtorch_impl_data (y);
  p.b = gtorch_impl_data (x);
  p.c = gtorch_impl_data (z);
  p.key = (Key){
    .m = z->shape[z->n_dims - 1],
    .n = z->shape[z->n_dims - 2],
    .k = x->shape[x->n_dims - 1],
    .lda = b_stride,
    .ldb = a_stride,
    .ldc = c_stride,
    .batch = 1,
    .compute = compute_type (device, dtype),
    .device = device->index,
    .dtype = dtype,
    .transpose_a = b_by_column,
    .transpose_b = a_by_column,
    .epilogue = epilogue,
  };
  done = run_batches (&p, x, y, z, 0, error);
  g_clear_pointer (&p.workspace, gtorch_storage_unref);
  return done && (z == c || gtorch_cuda_copy_here (c, z, lane, error));
}

gboolean
gtorch_cuda_multiply (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *a, GTorchImpl *b,
                      GTorchImpl *c, GTorchImpl *bias, gdouble alpha, gdouble beta, GError **error)
{
  return multiply_batches (call, lane, a, b, c, bias != NULL ? LT_EPILOGUE_BIAS : 0, bias, alpha,
                           beta, error);
}

gboolean
gtorch_cuda_multiply_and_sum (GTorchOpCall *call, GTorchCudaLane *lane, GTorchImpl *a,
                              GTorchImpl *b, GTorchImpl *c, GTorchImpl *sums, gboolean *done,
                              GError **error)
{
  g_autoptr (GError) local = NULL;

  *done = multiply_batches (call, lane, a, b, c, LT_EPILOGUE_GRADIENT_B, sums, 1, 0, &local);
  if (*done || g_error_matches (local, GTORCH_ERROR, GTORCH_ERROR_NOT_SUPPORTED))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}
