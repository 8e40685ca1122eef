/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* The operation graphs (matrix product, softmax, matrix product) that cuDNN recognises as attention by the
 * order of the operations, forward and backward. Tensors have the dimensions batch, head, row, element;
 * intermediate ones are virtual. */

#include "config.h"

#include "cuda/ops/gtorch-cuda-attention-private.h"

#define FIRST_VIRTUAL 100 /* the ID of the first virtual tensor */

/* --- the part of cuDNN's binary interface that is used --- */
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

/* --- the graph --- */

typedef struct
{
  const GTorchAttentionForm *form;
  GPtrArray *descriptors;
  gpointer *ops; /* array of GTORCH_ATTENTION_MAX_OPS */
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
  const gint64 alignment = GTORCH_ATTENTION_ALIGNMENT;
  const gboolean by_value = id == GTORCH_ATTENTION_SCALE || id == GTORCH_ATTENTION_NOTHING
                            || id == GTORCH_ATTENTION_ONE || id == GTORCH_ATTENTION_KEPT;
  const guint8 yes = TRUE;
  gpointer self = gtorch_cudnn_descriptor_new (TENSOR);
  gboolean good = self != NULL && set_int (self, TENSOR_DATA_TYPE, TYPE_DATA_TYPE, type)
                  && gtorch_cudnn_set (self, TENSOR_DIMENSIONS, TYPE_INT64, 4, shape)
                  && gtorch_cudnn_set (self, TENSOR_STRIDES, TYPE_INT64, 4, strides)
                  && gtorch_cudnn_set (self, TENSOR_UNIQUE_ID, TYPE_INT64, 1, &id)
                  && gtorch_cudnn_set (self, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment);

  if (good && id >= FIRST_VIRTUAL)
    good = gtorch_cudnn_set (self, TENSOR_IS_VIRTUAL, TYPE_BOOLEAN, 1, &yes);
  if (good && by_value)
    good = gtorch_cudnn_set (self, TENSOR_IS_BY_VALUE, TYPE_BOOLEAN, 1, &yes);
  return keep (graph, self, good);
}

/* Makes a contiguous tensor [batch, heads, rows, columns]. */
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

/* Makes an operand. With `turned`, its last two dimensions are transposed. */
static gpointer
operand (Graph *graph, gint64 id, gint64 heads, gint64 rows, gint64 columns, const gint64 *strides,
         gboolean turned)
{
  const GTorchAttentionForm *form = graph->form;
  const gint64 shape[] = { form->batch, heads, turned ? columns : rows, turned ? rows : columns };
  const gint64 own[] = { strides[0], strides[1], strides[turned ? 3 : 2], strides[turned ? 2 : 3] };

  return tensor (graph, id, shape, own, gtorch_cudnn_data_type (form->dtype));
}

static void
add_op (Graph *graph, gpointer op, gboolean good)
{
  op = keep (graph, op, good && graph->n_ops < GTORCH_ATTENTION_MAX_OPS);
  if (op != NULL)
    graph->ops[graph->n_ops++] = op;
}

/* Adds the operation y = mode (x, b), or if t is a mask: y = x where t is true, b elsewhere. */
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

/* Transposes x, a virtual matrix of weights, and converts it to the dtype of the operands. */
static gpointer
turn (Graph *graph, gpointer x)
{
  const GTorchAttentionForm *f = graph->form;
  const gint64 shape[] = { f->batch, f->heads, f->columns, f->rows };
  const gint64 strides[] = { f->heads * f->rows * f->columns, f->rows * f->columns, 1, f->columns };

  return reshape (graph, x,
                  tensor (graph, graph->next_id++, shape, strides,
                          gtorch_cudnn_data_type (f->dtype)));
}

/* Keeps the lower left triangle of x, and sets the rest to -infinity. */
static gpointer
mask (Graph *graph, gpointer x)
{
  gint64 columns = graph->form->columns;
  gpointer row = between (graph, columns, INT32), column = between (graph, columns, INT32);
  gpointer below = between (graph, columns, BOOLEAN);

  pointwise (graph, INDEX, row, x, NULL, NULL, INT32, 2);
  pointwise (graph, INDEX, column, x, NULL, NULL, INT32, 3);
  pointwise (graph, GREATER_EQUAL, below, row, column, NULL, BOOLEAN, 0);
  return pointwise (graph, SELECT, between (graph, columns, FLOAT), x,
                    number (graph, GTORCH_ATTENTION_NOTHING), below, FLOAT, 0);
}

/* Draws the dropout mask: 1 for weights that are kept, else 0. The same seed gives the same mask. */
static gpointer
draw (Graph *graph)
{
  const gint64 ones[] = { 1, 1, 1, 1 };
  const gdouble probability = 1 - graph->form->dropout;
  gpointer seed = tensor (graph, GTORCH_ATTENTION_SEED, ones, ones, INT64);
  gpointer offset = tensor (graph, GTORCH_ATTENTION_OFFSET, ones, ones, INT64);
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

/* Adds the attention mask to x. */
static gpointer
add_mask (Graph *graph, gpointer x)
{
  const GTorchAttentionForm *f = graph->form;
  const gint64 shape[] = { f->mask[0], f->mask[1], f->mask_rows, f->columns };
  gint64 strides[4];

  gtorch_contiguous_strides (shape, 4, strides);
  return combine (graph, ADD, between (graph, f->columns, FLOAT), x,
                  tensor (graph, GTORCH_ATTENTION_MASK, shape, strides, f->mask_type));
}

/* Multiplies two matrices to [batch, heads, columns, n], and adds up the heads of each key head to [batch,
 * key heads, columns, n]. */
static void
gather_heads (Graph *graph, gpointer turned, gpointer other, gint64 id, gint64 n)
{
  const GTorchAttentionForm *f = graph->form;
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
  const GTorchAttentionForm *f = graph->form;
  gint type = gtorch_cudnn_data_type (f->dtype);
  gpointer q = operand (graph, GTORCH_ATTENTION_Q, f->heads, f->rows, f->depth, f->q, FALSE);
  gpointer k = operand (graph, GTORCH_ATTENTION_K, f->key_heads, f->columns, f->depth, f->k, TRUE);
  gpointer v = operand (graph, GTORCH_ATTENTION_V, f->key_heads, f->columns, f->width, f->v, FALSE);
  gpointer x, max, sum, log_sum;

  x = matmul (graph, q, k, between (graph, f->columns, FLOAT));
  x = combine (graph, MUL, between (graph, f->columns, FLOAT), x,
               number (graph, GTORCH_ATTENTION_SCALE));
  if (f->mask[0] > 0)
    x = add_mask (graph, x);
  if (f->is_causal)
    x = mask (graph, x);
  max = reduce (graph, REDUCE_MAX, x, between (graph, 1, FLOAT));
  x = combine (graph, SUB, between (graph, f->columns, FLOAT), x, max);
  x = combine (graph, EXP, between (graph, f->columns, FLOAT), x, NULL);
  sum = reduce (graph, REDUCE_ADD, x, between (graph, 1, FLOAT));
  log_sum = combine (graph, LOG, between (graph, 1, FLOAT), sum, NULL);
  combine (graph, ADD, plain (graph, GTORCH_ATTENTION_STATS, f->rows, 1, FLOAT), max, log_sum);
  x = combine (graph, DIV, between (graph, f->columns, f->dropout > 0 ? FLOAT : type), x, sum);
  if (f->dropout > 0)
    {
      x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, draw (graph));
      x = combine (graph, MUL, between (graph, f->columns, type), x,
                   number (graph, GTORCH_ATTENTION_KEPT));
    }
  matmul (graph, x, v, plain (graph, GTORCH_ATTENTION_OUTPUT, f->rows, f->width, type));
}

static void
build_backward (Graph *graph)
{
  const GTorchAttentionForm *f = graph->form;
  gint type = gtorch_cudnn_data_type (f->dtype);
  const gint64 upright[] = { f->batch, f->key_heads, f->columns, f->depth };
  gpointer q = operand (graph, GTORCH_ATTENTION_Q, f->heads, f->rows, f->depth, f->q, FALSE);
  gpointer k = operand (graph, GTORCH_ATTENTION_K, f->key_heads, f->columns, f->depth, f->k, TRUE);
  gpointer v = operand (graph, GTORCH_ATTENTION_V, f->key_heads, f->columns, f->width, f->v, TRUE);
  gpointer output = plain (graph, GTORCH_ATTENTION_OUTPUT, f->rows, f->width, type);
  gpointer upper = plain (graph, GTORCH_ATTENTION_UPPER, f->rows, f->width, type);
  gpointer scale = number (graph, GTORCH_ATTENTION_SCALE), x, p, dots, drawn = NULL, kept = NULL;

  x = combine (graph, MUL, between (graph, f->width, FLOAT), upper, output);
  x = reduce (graph, REDUCE_ADD, x, between (graph, 1, FLOAT));
  dots = combine (graph, MUL, plain (graph, GTORCH_ATTENTION_DOTS, f->rows, 1, FLOAT), x,
                  number (graph, GTORCH_ATTENTION_ONE));

  /* recompute the weights */
  x = matmul (graph, q, k, between (graph, f->columns, FLOAT));
  x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, scale);
  if (f->mask[0] > 0)
    x = add_mask (graph, x);
  x = combine (graph, SUB, between (graph, f->columns, FLOAT), x,
               plain (graph, GTORCH_ATTENTION_STATS, f->rows, 1, FLOAT));
  if (f->is_causal)
    x = mask (graph, x);
  x = p = combine (graph, EXP, between (graph, f->columns, FLOAT), x, NULL);
  if (f->dropout > 0)
    {
      drawn = draw (graph);
      kept = number (graph, GTORCH_ATTENTION_KEPT);
      x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, drawn);
      x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, kept);
    }
  gather_heads (graph, turn (graph, x), upper, GTORCH_ATTENTION_GRAD_V, f->width);

  /* compute the gradient of the products of queries and keys */
  x = matmul (graph, upper, v, between (graph, f->columns, FLOAT));
  if (f->dropout > 0)
    x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, drawn);
  x = combine (graph, SUB, between (graph, f->columns, FLOAT), x, dots);
  x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, p);
  if (f->dropout > 0)
    x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, kept);
  x = combine (graph, MUL, between (graph, f->columns, FLOAT), x, scale);
  gather_heads (graph, turn (graph, x), q, GTORCH_ATTENTION_GRAD_K, f->depth);
  k = reshape (graph, k, tensor (graph, graph->next_id++, upright, f->k, type));
  if (f->deterministic)
    matmul (graph, x, k, plain (graph, GTORCH_ATTENTION_GRAD_Q, f->rows, f->depth, type));
  else
    {
      x = matmul (graph, x, k, plain (graph, GTORCH_ATTENTION_WIDE, f->rows, f->depth, FLOAT));
      combine (graph, IDENTITY, plain (graph, GTORCH_ATTENTION_GRAD_Q, f->rows, f->depth, type), x,
               NULL);
    }
}

GPtrArray *
gtorch_cuda_attention_describe (const GTorchAttentionForm *form, gpointer *ops, guint *n_ops)
{
  Graph graph = { .form = form, .ops = ops, .next_id = FIRST_VIRTUAL };

  graph.descriptors = g_ptr_array_new_with_free_func (gtorch_cudnn_descriptor_free);
  if (form->backward)
    build_backward (&graph);
  else
    build_forward (&graph);
  *n_ops = graph.n_ops;
  if (graph.failed)
    g_clear_pointer (&graph.descriptors, g_ptr_array_unref);
  return graph.descriptors;
}
