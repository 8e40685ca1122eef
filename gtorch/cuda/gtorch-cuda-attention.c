/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Attention of 16-bit dtypes by cuDNN: it knows the graph of products, softmax and products, forward and
 * backward, and does it in one kernel, without the matrix of weights. Tensors have the dimensions batch,
 * head, row, element; what is in between is virtual. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <string.h>

#include "cuda/gtorch-cuda-cudnn-private.h"
#include "cuda/gtorch-cuda-plain-private.h"
#include "cuda/gtorch-cuda-private.h"
#include "gtorch-attention-private.h"
#include "gtorch-ops-private.h"

#define MAX_PLANS    1024
#define MAX_OPS      32
#define MIN_VERSION  90600
#define ANY_COLUMNS  91600 /* before that, the backward direction wants multiples of 128 */
#define ALIGNMENT    16
#define MAX_ELEMENTS G_MAXINT32

/* --- cuDNN's binary interface, as far as it is used --- */
enum
{
  POINTWISE = 0,
  POINTWISE_OP = 13,
  TENSOR = 17,
  MATMUL = 18,
  MATMUL_OP = 19,
  REDUCTION = 21,
  REDUCTION_OP = 22,
  RNG = 32,
  RNG_OP = 33,
  RESHAPE_OP = 31,
};

enum
{
  TYPE_DATA_TYPE = 1,
  TYPE_BOOLEAN = 2,
  TYPE_INT64 = 3,
  TYPE_DOUBLE = 5,
  TYPE_POINTWISE_MODE = 14,
  TYPE_DESCRIPTOR = 15,
  TYPE_REDUCTION_OPERATOR = 18,
  TYPE_RNG_DISTRIBUTION = 29,
};

enum
{
  POINTWISE_MODE = 0,
  POINTWISE_PRECISION = 1,
  POINTWISE_AXIS = 9,
  POINTWISE_OP_DESCRIPTOR = 750,
  POINTWISE_OP_X = 751,
  POINTWISE_OP_B = 752,
  POINTWISE_OP_Y = 753,
  POINTWISE_OP_T = 758,
  TENSOR_ALIGNMENT = 900,
  TENSOR_DATA_TYPE = 901,
  TENSOR_DIMENSIONS = 902,
  TENSOR_STRIDES = 903,
  TENSOR_UNIQUE_ID = 906,
  TENSOR_IS_VIRTUAL = 907,
  TENSOR_IS_BY_VALUE = 908,
  MATMUL_COMPUTE = 1500,
  MATMUL_OP_A = 1520,
  MATMUL_OP_B = 1521,
  MATMUL_OP_C = 1522,
  MATMUL_OP_DESCRIPTOR = 1523,
  REDUCTION_OPERATOR = 1600,
  REDUCTION_COMPUTE = 1601,
  REDUCTION_OP_X = 1610,
  REDUCTION_OP_Y = 1611,
  REDUCTION_OP_DESCRIPTOR = 1612,
  RESHAPE_OP_X = 2200,
  RESHAPE_OP_Y = 2201,
  RNG_DISTRIBUTION = 2300,
  RNG_PROBABILITY = 2305,
  RNG_OP_Y = 2310,
  RNG_OP_SEED = 2311,
  RNG_OP_DESCRIPTOR = 2312,
  RNG_OP_OFFSET = 2313,
};

enum
{
  ADD = 0,
  MUL = 1,
  DIV = 6,
  SUB = 9,
  EXP = 13,
  LOG = 15,
  IDENTITY = 21,
  GREATER_EQUAL = 303,
  INDEX = 501,
  SELECT = 601,
};

enum
{
  REDUCE_ADD = 0,
  REDUCE_MAX = 3,
};

enum
{
  BERNOULLI = 0,
};

enum
{
  FLOAT = 0,
  INT32 = 4,
  INT64 = 10,
  BOOLEAN = 11,
};

/* What is real; virtual tensors come behind. */
enum
{
  ID_Q = 1,
  ID_K,
  ID_V,
  ID_OUTPUT,
  ID_STATS,
  ID_SCALE,
  ID_NOTHING, /* -infinity */
  ID_UPPER,
  ID_GRAD_Q,
  ID_GRAD_K,
  ID_GRAD_V,
  ID_ONE,
  ID_DOTS, /* sums of upper * output */
  ID_WIDE, /* the query's gradient, float32 */
  ID_MASK,
  ID_SEED,
  ID_OFFSET,
  ID_KEPT, /* 1 / (1 - dropout) */
  N_IDS,
  ID_VIRTUAL = 100,
};

/* Compared as bytes: without gaps. */
typedef struct
{
  gint64 backward, dtype, device, is_causal, deterministic;
  gint64 batch, heads, key_heads, rows, columns, depth, width;
  gint64 q[4], k[4], v[4]; /* strides */
  gint64 mask[2];          /* its batch and heads, 0 without a mask */
  gint64 mask_type;
  gdouble dropout;
} Form;

/* --- the graph --- */

typedef struct
{
  const Form *form;
  GPtrArray *descriptors;
  gpointer ops[MAX_OPS];
  guint n_ops;
  gint64 next_id;
  gboolean failed;
} Graph;

static gpointer
keep (Graph *graph, gpointer descriptor, gboolean good)
{
  if (descriptor != NULL)
    g_ptr_array_add (graph->descriptors, descriptor);
  if (descriptor != NULL && good && gtorch_cudnn_finalize (descriptor))
    return descriptor;
  graph->failed = TRUE;
  return NULL;
}

static gboolean
set_descriptor (gpointer op, gint attribute, gpointer value)
{
  return value != NULL && gtorch_cudnn_set (op, attribute, TYPE_DESCRIPTOR, 1, &value);
}

static gboolean
set_int (gpointer descriptor, gint attribute, gint type, gint value)
{
  return gtorch_cudnn_set (descriptor, attribute, type, 1, &value);
}

static gpointer
tensor (Graph *graph, gint64 id, const gint64 *shape, const gint64 *strides, gint type)
{
  const gint64 alignment = ALIGNMENT;
  const gboolean by_value = id == ID_SCALE || id == ID_NOTHING || id == ID_ONE || id == ID_KEPT
                            || id == ID_SEED || id == ID_OFFSET;
  const guint8 yes = TRUE;
  gpointer self = gtorch_cudnn_descriptor_new (TENSOR);
  gboolean good = self != NULL && set_int (self, TENSOR_DATA_TYPE, TYPE_DATA_TYPE, type)
                  && gtorch_cudnn_set (self, TENSOR_DIMENSIONS, TYPE_INT64, 4, shape)
                  && gtorch_cudnn_set (self, TENSOR_STRIDES, TYPE_INT64, 4, strides)
                  && gtorch_cudnn_set (self, TENSOR_UNIQUE_ID, TYPE_INT64, 1, &id)
                  && gtorch_cudnn_set (self, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment);

  if (good && id >= ID_VIRTUAL)
    good = gtorch_cudnn_set (self, TENSOR_IS_VIRTUAL, TYPE_BOOLEAN, 1, &yes);
  if (good && by_value)
    good = gtorch_cudnn_set (self, TENSOR_IS_BY_VALUE, TYPE_BOOLEAN, 1, &yes);
  return keep (graph, self, good);
}

/* [batch, heads, rows, columns] without gaps. */
static gpointer
plain (Graph *graph, gint64 id, gint64 rows, gint64 columns, gint type)
{
  const gint64 shape[] = { graph->form->batch, graph->form->heads, rows, columns };
  gint64 strides[4];

  gtorch_contiguous_strides (shape, 4, strides);
  return tensor (graph, id, shape, strides, type);
}

static gpointer
between (Graph *graph, gint64 columns, gint type)
{
  return plain (graph, graph->next_id++, graph->form->rows, columns, type);
}

static gpointer
number (Graph *graph, gint64 id)
{
  const gint64 ones[] = { 1, 1, 1, 1 };

  return tensor (graph, id, ones, ones, FLOAT);
}

/* The last two dimensions in the other order, if turned. */
static gpointer
operand (Graph *graph, gint64 id, gint64 heads, gint64 rows, gint64 columns, const gint64 *strides,
         gboolean turned)
{
  const Form *form = graph->form;
  const gint64 shape[] = { form->batch, heads, turned ? columns : rows, turned ? rows : columns };
  const gint64 own[] = { strides[0], strides[1], strides[turned ? 3 : 2], strides[turned ? 2 : 3] };

  return tensor (graph, id, shape, own, gtorch_cudnn_data_type (form->dtype));
}

static void
add_op (Graph *graph, gpointer op, gboolean good)
{
  op = keep (graph, op, good && graph->n_ops < MAX_OPS);
  if (op != NULL)
    graph->ops[graph->n_ops++] = op;
}

/* y = mode (x, b), or x where t and b elsewhere. */
static gpointer
pointwise (Graph *graph, gint mode, gpointer y, gpointer x, gpointer b, gpointer t, gint precision,
           gint64 axis)
{
  gpointer how = gtorch_cudnn_descriptor_new (POINTWISE);
  gpointer op = gtorch_cudnn_descriptor_new (POINTWISE_OP);

  how =
      keep (graph, how,
            how != NULL && set_int (how, POINTWISE_MODE, TYPE_POINTWISE_MODE, mode)
                && set_int (how, POINTWISE_PRECISION, TYPE_DATA_TYPE, precision)
                && (mode != INDEX || gtorch_cudnn_set (how, POINTWISE_AXIS, TYPE_INT64, 1, &axis)));
  add_op (graph, op,
          op != NULL && set_descriptor (op, POINTWISE_OP_DESCRIPTOR, how)
              && set_descriptor (op, POINTWISE_OP_X, x) && set_descriptor (op, POINTWISE_OP_Y, y)
              && (b == NULL || set_descriptor (op, POINTWISE_OP_B, b))
              && (t == NULL || set_descriptor (op, POINTWISE_OP_T, t)));
  return y;
}

static gpointer
combine (Graph *graph, gint mode, gpointer y, gpointer x, gpointer b)
{
  return pointwise (graph, mode, y, x, b, NULL, FLOAT, 0);
}

static gpointer
matmul (Graph *graph, gpointer a, gpointer b, gpointer c)
{
  gpointer how = gtorch_cudnn_descriptor_new (MATMUL);
  gpointer op = gtorch_cudnn_descriptor_new (MATMUL_OP);

  how = keep (graph, how, how != NULL && set_int (how, MATMUL_COMPUTE, TYPE_DATA_TYPE, FLOAT));
  add_op (graph, op,
          op != NULL && set_descriptor (op, MATMUL_OP_DESCRIPTOR, how)
              && set_descriptor (op, MATMUL_OP_A, a) && set_descriptor (op, MATMUL_OP_B, b)
              && set_descriptor (op, MATMUL_OP_C, c));
  return c;
}

static gpointer
reduce (Graph *graph, gint kind, gpointer x, gpointer y)
{
  gpointer how = gtorch_cudnn_descriptor_new (REDUCTION);
  gpointer op = gtorch_cudnn_descriptor_new (REDUCTION_OP);

  how = keep (graph, how,
              how != NULL && set_int (how, REDUCTION_OPERATOR, TYPE_REDUCTION_OPERATOR, kind)
                  && set_int (how, REDUCTION_COMPUTE, TYPE_DATA_TYPE, FLOAT));
  add_op (graph, op,
          op != NULL && set_descriptor (op, REDUCTION_OP_DESCRIPTOR, how)
              && set_descriptor (op, REDUCTION_OP_X, x) && set_descriptor (op, REDUCTION_OP_Y, y));
  return y;
}

static gpointer
reshape (Graph *graph, gpointer x, gpointer y)
{
  gpointer op = gtorch_cudnn_descriptor_new (RESHAPE_OP);

  add_op (graph, op,
          op != NULL && set_descriptor (op, RESHAPE_OP_X, x)
              && set_descriptor (op, RESHAPE_OP_Y, y));
  return y;
}

/* The virtual matrix x of weights in the other order and the dtype of the operands. */
static gpointer
turn (Graph *graph, gpointer x)
{
  const Form *f = graph->form;
  const gint64 shape[] = { f->batch, f->heads, f->columns, f->rows };
  const gint64 strides[] = { f->heads * f->rows * f->columns, f->rows * f->columns, 1, f->columns };

  return reshape (graph, x,
                  tensor (graph, graph->next_id++, shape, strides,
                          gtorch_cudnn_data_type (f->dtype)));
}

/* The lower left of x, -infinity elsewhere. */
static gpointer
mask (Graph *graph, gpointer x)
{
  gint64 columns = graph->form->columns;
  gpointer row = between (graph, columns, INT32), column = between (graph, columns, INT32);
  gpointer below = between (graph, columns, BOOLEAN);

  pointwise (graph, INDEX, row, x, NULL, NULL, INT32, 2);
  pointwise (graph, INDEX, column, x, NULL, NULL, INT32, 3);
  pointwise (graph, GREATER_EQUAL, below, row, column, NULL, BOOLEAN, 0);
  return pointwise (graph, SELECT, between (graph, columns, FLOAT), x, number (graph, ID_NOTHING),
                    below, FLOAT, 0);
}

/* 1 with the probability to be kept, else 0: the same each time for one seed. */
static gpointer
draw (Graph *graph)
{
  const gint64 ones[] = { 1, 1, 1, 1 };
  const gdouble probability = 1 - graph->form->dropout;
  gpointer seed = tensor (graph, ID_SEED, ones, ones, INT64);
  gpointer offset = tensor (graph, ID_OFFSET, ones, ones, INT64);
  gpointer y = between (graph, graph->form->columns, FLOAT);
  gpointer how = gtorch_cudnn_descriptor_new (RNG);
  gpointer op = gtorch_cudnn_descriptor_new (RNG_OP);

  how = keep (graph, how,
              how != NULL && set_int (how, RNG_DISTRIBUTION, TYPE_RNG_DISTRIBUTION, BERNOULLI)
                  && gtorch_cudnn_set (how, RNG_PROBABILITY, TYPE_DOUBLE, 1, &probability));
  add_op (graph, op,
          op != NULL && set_descriptor (op, RNG_OP_DESCRIPTOR, how)
              && set_descriptor (op, RNG_OP_SEED, seed)
              && set_descriptor (op, RNG_OP_OFFSET, offset) && set_descriptor (op, RNG_OP_Y, y));
  return y;
}

/* x plus the mask */
static gpointer
add_mask (Graph *graph, gpointer x)
{
  const Form *f = graph->form;
  const gint64 shape[] = { f->mask[0], f->mask[1], f->rows, f->columns };
  gint64 strides[4];

  gtorch_contiguous_strides (shape, 4, strides);
  return combine (graph, ADD, between (graph, f->columns, FLOAT), x,
                  tensor (graph, ID_MASK, shape, strides, f->mask_type));
}

/* [batch, key heads, columns, n] of x, [batch, heads, columns, n] */
static void
gather_heads (Graph *graph, gpointer turned, gpointer other, gint64 id, gint64 n)
{
  const Form *f = graph->form;
  gint type = gtorch_cudnn_data_type (f->dtype);
  const gint64 shape[] = { f->batch, f->key_heads, f->columns, n };
  gint64 strides[4];
  gpointer result;

  gtorch_contiguous_strides (shape, 4, strides);
  result = tensor (graph, id, shape, strides, type);
  if (f->heads == f->key_heads)
    matmul (graph, turned, other, result);
  else
    reduce (graph, REDUCE_ADD,
            matmul (graph, turned, other, plain (graph, graph->next_id++, f->columns, n, type)),
            result);
}

static void
build_forward (Graph *graph)
{
  const Form *f = graph->form;
  gint type = gtorch_cudnn_data_type (f->dtype);
  gpointer q = operand (graph, ID_Q, f->heads, f->rows, f->depth, f->q, FALSE);
  gpointer k = operand (graph, ID_K, f->key_heads, f->columns, f->depth, f->k, TRUE);
  gpointer v = operand (graph, ID_V, f->key_heads, f->columns, f->width, f->v, FALSE);
  gpointer x, max, sum, log_sum;

  x = matmul (graph, q, k, between (graph, f->columns, FLOAT));
  x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, number (graph, ID_SCALE));
  if (f->mask[0] > 0)
    x = add_mask (graph, x);
  if (f->is_causal)
    x = mask (graph, x);
  max = reduce (graph, REDUCE_MAX, x, between (graph, 1, FLOAT));
  x = combine (graph, SUB, between (graph, f->columns, FLOAT), x, max);
  x = combine (graph, EXP, between (graph, f->columns, FLOAT), x, NULL);
  sum = reduce (graph, REDUCE_ADD, x, between (graph, 1, FLOAT));
  log_sum = combine (graph, LOG, between (graph, 1, FLOAT), sum, NULL);
  combine (graph, ADD, plain (graph, ID_STATS, f->rows, 1, FLOAT), max, log_sum);
  x = combine (graph, DIV, between (graph, f->columns, f->dropout > 0 ? FLOAT : type), x, sum);
  if (f->dropout > 0)
    {
      x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, draw (graph));
      x = combine (graph, MUL, between (graph, f->columns, type), x, number (graph, ID_KEPT));
    }
  matmul (graph, x, v, plain (graph, ID_OUTPUT, f->rows, f->width, type));
}

static void
build_backward (Graph *graph)
{
  const Form *f = graph->form;
  gint type = gtorch_cudnn_data_type (f->dtype);
  const gint64 upright[] = { f->batch, f->key_heads, f->columns, f->depth };
  gpointer q = operand (graph, ID_Q, f->heads, f->rows, f->depth, f->q, FALSE);
  gpointer k = operand (graph, ID_K, f->key_heads, f->columns, f->depth, f->k, TRUE);
  gpointer v = operand (graph, ID_V, f->key_heads, f->columns, f->width, f->v, TRUE);
  gpointer output = plain (graph, ID_OUTPUT, f->rows, f->width, type);
  gpointer upper = plain (graph, ID_UPPER, f->rows, f->width, type);
  gpointer scale = number (graph, ID_SCALE), x, p, dots, drawn = NULL, kept = NULL;

  x = combine (graph, MUL, between (graph, f->width, FLOAT), upper, output);
  x = reduce (graph, REDUCE_ADD, x, between (graph, 1, FLOAT));
  dots = combine (graph, MUL, plain (graph, ID_DOTS, f->rows, 1, FLOAT), x, number (graph, ID_ONE));

  /* the weights again */
  x = matmul (graph, q, k, between (graph, f->columns, FLOAT));
  x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, scale);
  if (f->mask[0] > 0)
    x = add_mask (graph, x);
  x = combine (graph, SUB, between (graph, f->columns, FLOAT), x,
               plain (graph, ID_STATS, f->rows, 1, FLOAT));
  if (f->is_causal)
    x = mask (graph, x);
  x = p = combine (graph, EXP, between (graph, f->columns, FLOAT), x, NULL);
  if (f->dropout > 0)
    {
      drawn = draw (graph);
      kept = number (graph, ID_KEPT);
      x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, drawn);
      x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, kept);
    }
  gather_heads (graph, turn (graph, x), upper, ID_GRAD_V, f->width);

  /* the gradient of the products */
  x = matmul (graph, upper, v, between (graph, f->columns, FLOAT));
  if (f->dropout > 0)
    x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, drawn);
  x = combine (graph, SUB, between (graph, f->columns, FLOAT), x, dots);
  x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, p);
  if (f->dropout > 0)
    x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, kept);
  x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, scale);
  gather_heads (graph, turn (graph, x), q, ID_GRAD_K, f->depth);
  k = reshape (graph, k, tensor (graph, graph->next_id++, upright, f->k, type));
  if (f->deterministic)
    matmul (graph, x, k, plain (graph, ID_GRAD_Q, f->rows, f->depth, type));
  else
    {
      x = matmul (graph, x, k, plain (graph, ID_WIDE, f->rows, f->depth, FLOAT));
      combine (graph, IDENTITY, plain (graph, ID_GRAD_Q, f->rows, f->depth, type), x, NULL);
    }
}

/* --- plans --- */

typedef struct
{
  Form form;
  GTorchCudnnPlan own; /* without a plan: cuDNN has none */
} Plan;

static GHashTable *plans; /* under cuDNN's lock */

static guint
form_hash (gconstpointer data)
{
  const guint64 *words = data;
  guint64 hash = 0;
  gsize i;

  for (i = 0; i < sizeof (Form) / 8; i++)
    hash = (hash ^ words[i]) * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15);
  return (guint) (hash >> 32);
}

static gboolean
form_equal (gconstpointer a, gconstpointer b)
{
  return memcmp (a, b, sizeof (Form)) == 0;
}

static void
plan_free (gpointer data)
{
  Plan *plan = data;

  gtorch_cudnn_descriptor_free (plan->own.plan);
  g_free (plan);
}

static Plan *
plan_new (const Form *form, gpointer handle)
{
  Plan *plan = g_new0 (Plan, 1);
  Graph graph = { .form = form, .next_id = ID_VIRTUAL };

  plan->form = *form;
  if (gtorch_cudnn_version () < MIN_VERSION
      || (form->backward && form->columns % 128 != 0 && gtorch_cudnn_version () < ANY_COLUMNS))
    return plan;
  graph.descriptors = g_ptr_array_new_with_free_func (gtorch_cudnn_descriptor_free);
  if (form->backward)
    build_backward (&graph);
  else
    build_forward (&graph);
  if (!graph.failed)
    gtorch_cudnn_find (handle, graph.ops, graph.n_ops, NULL, NULL, G_MAXINT64, &plan->own, 1);
  if (plan->own.plan == NULL)
    g_debug ("cuDNN has no engine for attention of %" G_GINT64_FORMAT " by %" G_GINT64_FORMAT
             ", %" G_GINT64_FORMAT " and %" G_GINT64_FORMAT " elements%s",
             form->rows, form->columns, form->depth, form->width,
             form->backward ? ", backward" : "");
  g_ptr_array_unref (graph.descriptors);
  return plan;
}

static gboolean
is_of_device (gpointer key, gpointer value, gpointer device)
{
  return ((Plan *) value)->form.device == GPOINTER_TO_INT (device);
}

/* Between gtorch_cudnn_begin () and gtorch_cudnn_end (). */
static Plan *
find_plan (const Form *form, gpointer handle)
{
  Plan *plan;

  if (plans == NULL)
    plans = g_hash_table_new_full (form_hash, form_equal, NULL, plan_free);
  plan = g_hash_table_lookup (plans, form);
  if (plan == NULL)
    {
      /* What plans hold must stay as long as it may be at work. */
      if (g_hash_table_size (plans) >= MAX_PLANS && gtorch_cuda.cuCtxSynchronize () == 0)
        g_hash_table_foreach_remove (plans, is_of_device, GINT_TO_POINTER (form->device));
      plan = plan_new (form, handle);
      g_hash_table_insert (plans, &plan->form, plan);
    }
  return plan->own.plan != NULL ? plan : NULL;
}

/* --- operands --- */

/* Can cuDNN take it as it is? Batch and heads are the two dimensions before the last two; more of them
 * must be without gaps. */
static gboolean
is_laid_out (const GTorchImpl *impl)
{
  guint n = impl->n_dims, i;

  if ((guintptr) gtorch_impl_data (impl) % ALIGNMENT != 0)
    return FALSE;
  if (impl->is_contiguous)
    return TRUE;
  if (n > 4 || (impl->shape[n - 1] > 1 && impl->strides[n - 1] != 1))
    return FALSE;
  for (i = 0; i + 1 < n; i++)
    if (impl->shape[i] > 1 && (impl->strides[i] <= 0 || impl->strides[i] * 2 % ALIGNMENT != 0))
      return FALSE;
  return TRUE;
}

static void
layout_of (const GTorchImpl *impl, gint64 *strides)
{
  gint64 shape[] = { 1, 1, 1, 1 };
  guint n = impl->n_dims, i;

  for (i = 0; i < MIN (n, 4); i++)
    shape[3 - i] = impl->shape[n - 1 - i];
  gtorch_contiguous_strides (shape, 4, strides);
  if (is_laid_out (impl) && !impl->is_contiguous)
    for (i = 0; i < n; i++)
      if (impl->shape[n - 1 - i] > 1)
        strides[3 - i] = impl->strides[n - 1 - i];
}

guint
gtorch_cuda_attention_mask_dtype (const GTorchImpl *mask, const GTorchImpl *q)
{
  return q->dtype == GTORCH_DTYPE_BFLOAT16 && mask->dtype != GTORCH_DTYPE_FLOAT32
             ? GTORCH_DTYPE_BFLOAT16
             : GTORCH_DTYPE_FLOAT32;
}

static gint64
mask_batch (const Form *form, const GTorchImpl *mask)
{
  guint i;

  for (i = 0; i + 3 < mask->n_dims; i++)
    if (mask->shape[i] != 1)
      return form->batch;
  return 1;
}

/* FALSE if it is nothing for cuDNN. */
static gboolean
form_init (Form *form, const GTorchImpl *q, const GTorchImpl *k, const GTorchImpl *v,
           const GTorchImpl *mask, gboolean is_causal, gdouble dropout_p, GTorchDevice *device)
{
  guint n = q->n_dims, i;

  memset (form, 0, sizeof *form);
  if ((q->dtype != GTORCH_DTYPE_FLOAT16 && q->dtype != GTORCH_DTYPE_BFLOAT16) || q->numel == 0
      || k->numel == 0 || v->numel == 0 || dropout_p >= 1)
    return FALSE;
  form->dtype = q->dtype;
  form->device = device->index;
  form->is_causal = is_causal;
  form->dropout = dropout_p;
  form->batch = 1;
  for (i = 0; i + 3 < n; i++)
    form->batch *= q->shape[i];
  form->heads = n > 2 ? q->shape[n - 3] : 1;
  form->key_heads = n > 2 ? k->shape[n - 3] : 1;
  form->rows = q->shape[n - 2];
  form->depth = q->shape[n - 1];
  form->columns = k->shape[n - 2];
  form->width = v->shape[n - 1];
  layout_of (q, form->q);
  layout_of (k, form->k);
  layout_of (v, form->v);
  if (mask != NULL)
    {
      form->mask[0] = mask_batch (form, mask);
      form->mask[1] = mask->n_dims > 2 ? mask->shape[mask->n_dims - 3] : 1;
      form->mask_type = gtorch_cudnn_data_type (gtorch_cuda_attention_mask_dtype (mask, q));
    }
  return form->depth % 8 == 0 && form->width % 8 == 0 && q->numel <= MAX_ELEMENTS
         && k->numel <= MAX_ELEMENTS && v->numel <= MAX_ELEMENTS && form->rows <= G_MAXINT32 / 8
         && form->columns <= G_MAXINT32 / 8
         && (mask == NULL
             || form->rows * form->columns <= MAX_ELEMENTS / (form->mask[0] * form->mask[1]));
}

static void
turn_back (Form *form, GTorchDevice *device)
{
  form->backward = TRUE;
  form->deterministic = g_atomic_int_get (&device->deterministic);
}

static gboolean
has_plan (const Form *form)
{
  gpointer handle = gtorch_cudnn_begin (form->device);
  gboolean result;

  if (handle == NULL)
    return FALSE;
  result = find_plan (form, handle) != NULL;
  gtorch_cudnn_end ();
  return result;
}

gboolean
gtorch_cuda_attention_has (GTorchImpl *q, GTorchImpl *k, GTorchImpl *v, GTorchImpl *mask,
                           gboolean is_causal, gdouble dropout_p, gboolean with_gradient)
{
  GTorchDevice *device = gtorch_impl_device (q);
  GTorchCudaLane *lane;
  Form form;

  if (gtorch_impl_device (k) != device || gtorch_impl_device (v) != device
      || !form_init (&form, q, k, v, mask, is_causal, dropout_p, device)
      || !gtorch_cuda_device_activate (GTORCH_CUDA_DEVICE (device), NULL) || !has_plan (&form))
    return FALSE;
  /* A graph would drop the same each time. */
  if (dropout_p > 0
      && ((lane = gtorch_cuda_current_lane (device, NULL)) == NULL
          || gtorch_cuda_lane_may_capture (lane)))
    return FALSE;
  turn_back (&form, device);
  return !with_gradient || has_plan (&form);
}

/* --- running --- */

static GTorchImpl *
lay_out (GTorchImpl *impl, gboolean without_gaps, GTorchCudaLane *lane, GError **error)
{
  g_autoptr (GTorchImpl) copy = NULL;

  if (is_laid_out (impl) && (impl->is_contiguous || !without_gaps))
    return gtorch_impl_ref (impl);
  copy = gtorch_impl_new (gtorch_cuda_lane_device (lane), impl->dtype, impl->shape, impl->n_dims,
                          error);
  return copy != NULL && gtorch_cuda_copy_here (copy, impl, lane, error) ? g_steal_pointer (&copy)
                                                                         : NULL;
}

static gint64
round_up (gint64 n_bytes)
{
  return (n_bytes + 255) / 256 * 256;
}

/* pointers: by id, NULL where the graph has none. */
static gboolean
run (GTorchOpCall *call, const Form *form, GTorchCudaLane *lane, gpointer *pointers, GError **error)
{
  const gdouble rest = 1 - form->dropout;
  gfloat scale = call->attrs[1].d, one = rest, kept = 1 / rest, nothing = -INFINITY;
  const gint64 numbers[] = { call->attrs[3].i, 0 }; /* seed and offset */
  gint64 drawing = form->dropout > 0 ? round_up (sizeof numbers) : 0;
  gint64 dots = form->backward ? round_up (form->batch * form->heads * form->rows * 4) : 0;
  gint64 wide = form->backward && !form->deterministic
                    ? round_up (form->batch * form->heads * form->rows * form->depth * 4)
                    : 0;
  gint64 space = -1, ids[N_IDS];
  g_autoptr (GTorchImpl) workspace = NULL;
  gpointer given[N_IDS], handle;
  gboolean ok = TRUE;
  char *end = NULL;
  guint n = 0, i;
  Plan *plan;

  handle = gtorch_cudnn_begin (form->device);
  plan = handle != NULL ? find_plan (form, handle) : NULL;
  /* Allocating may call the application: not under the lock. */
  while (plan != NULL && dots + wide + drawing + plan->own.workspace > MAX (space, 0))
    {
      space = dots + wide + drawing + plan->own.workspace;
      gtorch_cudnn_end ();
      g_clear_pointer (&workspace, gtorch_impl_unref);
      workspace = gtorch_cuda_scratch (lane, space, error);
      if (workspace == NULL)
        return FALSE;
      gtorch_cudnn_begin (form->device);
      plan = find_plan (form, handle);
    }
  if (plan == NULL)
    {
      if (handle != NULL)
        gtorch_cudnn_end ();
      gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                         _ ("cuDNN cannot do this on query %s and key %s of dtype %s"),
                         gtorch_impl_shape_str (call->inputs[form->backward ? 1 : 0]),
                         gtorch_impl_shape_str (call->inputs[form->backward ? 2 : 1]),
                         gtorch_dtype_get_name (call->compute));
      return FALSE;
    }
  pointers[ID_SCALE] = &scale;
  if (form->is_causal)
    pointers[ID_NOTHING] = &nothing;
  if (workspace != NULL)
    {
      char *start = gtorch_impl_data (workspace);

      if (form->backward)
        {
          pointers[ID_ONE] = &one;
          pointers[ID_DOTS] = start;
          if (wide > 0)
            pointers[ID_WIDE] = start + dots;
        }
      end = start + dots + wide;
      if (drawing > 0)
        {
          pointers[ID_SEED] = end;
          pointers[ID_OFFSET] = end + sizeof (gint64);
          pointers[ID_KEPT] = &kept;
          ok = gtorch_cuda_check (gtorch_cuda.cuMemcpyHtoDAsync ((CUdeviceptr) (guintptr) end,
                                                                 numbers, sizeof numbers,
                                                                 lane->handle),
                                  "cuMemcpyHtoDAsync", error);
          end += drawing;
        }
    }
  for (i = 0; i < N_IDS; i++)
    if (pointers[i] != NULL)
      {
        ids[n] = i;
        given[n++] = pointers[i];
      }
  ok = ok && gtorch_cudnn_execute (handle, plan->own.plan, lane, n, ids, given, end, error);
  gtorch_cudnn_end ();
  return ok;
}

/* As it comes from make_bias (). */
static gboolean
is_usable_mask (const GTorchImpl *mask, const GTorchImpl *q, const GTorchImpl *k)
{
  guint n = q->n_dims, i;
  gboolean all = TRUE, none = TRUE;

  if (mask->n_dims != n || mask->dtype != gtorch_cuda_attention_mask_dtype (mask, q)
      || mask->shape[n - 2] != q->shape[n - 2] || mask->shape[n - 1] != k->shape[n - 2])
    return FALSE;
  for (i = 0; i + 3 < n; i++)
    {
      all = all && mask->shape[i] == q->shape[i];
      none = none && mask->shape[i] == 1;
    }
  return all || none;
}

static gboolean
call_form (Form *form, GTorchOpCall *call, guint first, guint mask_at, GTorchCudaLane *lane,
           GError **error)
{
  GTorchImpl *const *inputs = call->inputs + first, *mask = call->inputs[mask_at];

  if ((mask == NULL || is_usable_mask (mask, inputs[0], inputs[1]))
      && form_init (form, inputs[0], inputs[1], inputs[2], mask, call->attrs[0].i, call->attrs[2].d,
                    &lane->device->parent_instance))
    return TRUE;
  gtorch_call_error (call, error, GTORCH_ERROR_NOT_SUPPORTED,
                     _ ("there is no kernel for this dtype, these sizes or this mask"));
  return FALSE;
}

gboolean
gtorch_cuda_attention (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  static const guint ids[] = { ID_Q, ID_K, ID_V, ID_MASK };
  gpointer pointers[N_IDS] = { NULL };
  GTorchImpl *operands[G_N_ELEMENTS (ids)] = { NULL };
  gboolean ok = TRUE;
  Form form;
  guint i;

  if (call->outputs[0]->numel == 0 && call->outputs[1]->numel == 0)
    return TRUE;
  if (!call_form (&form, call, 0, 3, lane, error)
      || !gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (ids) && ok; i++)
    if (call->inputs[i] != NULL)
      {
        operands[i] = lay_out (call->inputs[i], i == 3, lane, error);
        ok = operands[i] != NULL;
        pointers[ids[i]] = ok ? gtorch_impl_data (operands[i]) : NULL;
      }
  pointers[ID_OUTPUT] = gtorch_impl_data (call->outputs[0]);
  pointers[ID_STATS] = gtorch_impl_data (call->outputs[1]);
  ok = ok && run (call, &form, lane, pointers, error);
  gtorch_impl_clear (operands, G_N_ELEMENTS (ids));
  return ok;
}

gboolean
gtorch_cuda_attention_backward (GTorchOpCall *call, GTorchCudaLane *lane, GError **error)
{
  static const guint ids[] = { ID_UPPER, ID_Q, ID_K, ID_V, ID_OUTPUT, ID_STATS, ID_MASK };
  gpointer pointers[N_IDS] = { NULL };
  GTorchImpl *operands[G_N_ELEMENTS (ids)] = { NULL };
  gboolean ok = TRUE;
  Form form;
  guint i;

  if (!call_form (&form, call, 1, 6, lane, error)
      || !gtorch_cuda_device_activate (lane->device, error))
    return FALSE;
  turn_back (&form, &lane->device->parent_instance);
  for (i = 0; i < G_N_ELEMENTS (ids) && ok; i++)
    if (call->inputs[i] != NULL)
      {
        operands[i] = lay_out (call->inputs[i], i < 1 || i > 3, lane, error);
        ok = operands[i] != NULL;
        pointers[ids[i]] = ok ? gtorch_impl_data (operands[i]) : NULL;
      }
  for (i = 0; i < 3; i++)
    pointers[ID_GRAD_Q + i] = gtorch_impl_data (call->outputs[i]);
  ok = ok && run (call, &form, lane, pointers, error);
  gtorch_impl_clear (operands, G_N_ELEMENTS (ids));
  return ok;
}
