/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* What the host gives to kernels. Included from C and from CUDA C++: plain structs of fixed layout, each the
 * only parameter of its kernels. What one file of kernels takes is in gtorch-<file>-params.h. */

#include <stdint.h>

/* Holds the compilers of the host and of the kernels to one layout. */
#ifdef __cplusplus
#define GT_SIZE(type, bytes) static_assert (sizeof (type) == (bytes), #type)
#else
#define GT_SIZE(type, bytes) _Static_assert(sizeof (type) == (bytes), #type)
#endif

#define GT_MAX_DIMS     16
#define GT_MAX_OPERANDS 4 /* the output first */
#define GT_MAX_ATTRS    4

#define GT_THREADS 128
#define GT_VECTORS 2 /* of 16 bytes, a thread's, where operands are contiguous */
#define GT_STEPS   4 /* elements of a thread where they are not */

/* Division by a number known on the host: q = (n * multiplier >> 32 + n) >> shift, for n < 2^31. */
typedef struct
{
  uint32_t divisor, multiplier, shift;
} GtDivider;
GT_SIZE (GtDivider, 12);

static inline GtDivider
gt_divider (uint32_t divisor)
{
  GtDivider d = { divisor, 0, 0 };

  while (d.shift < 32 && (UINT64_C (1) << d.shift) < divisor)
    d.shift++;
  d.multiplier =
      (uint32_t) (((UINT64_C (1) << 32) * ((UINT64_C (1) << d.shift) - divisor)) / divisor + 1);
  return d;
}

typedef union
{
  double d;
  int64_t i;
} GtAttr;
GT_SIZE (GtAttr, 8);

/* Scalar arguments, in the dtype that is computed in. */
typedef struct
{
  uint64_t words[2];
} GtNumber;
GT_SIZE (GtNumber, 16);

/* All operands contiguous, of one shape and one dtype (the output may be bool or real). */
typedef struct
{
  void *data[GT_MAX_OPERANDS];
  uint64_t n;
  uint32_t numbers; /* bit k: operand k is numbers_[k - 1] */
  uint32_t unused;
  GtNumber number[GT_MAX_OPERANDS - 1];
  GtAttr attrs[GT_MAX_ATTRS];
} GtContiguous;
GT_SIZE (GtContiguous, 128);

/* The output contiguous; inputs contiguous, constant along rows or constant along columns. */
typedef struct
{
  GtContiguous base;                     /* n: vectors */
  GtDivider inner;                       /* vectors in a row */
  uint32_t row_strides[GT_MAX_OPERANDS]; /* in vectors (or elements where the column stride is 0) */
  uint32_t column_strides[GT_MAX_OPERANDS]; /* 1 or 0 */
} GtRows;
GT_SIZE (GtRows, 176);

/* Any layout, any dtypes; fewer than 2^31 elements. */
typedef struct
{
  GtContiguous base;
  uint32_t n_dims;
  uint8_t dtypes[GT_MAX_OPERANDS];               /* GTorchDType */
  GtDivider shape[GT_MAX_DIMS];                  /* the inner dimension first */
  int64_t strides[GT_MAX_DIMS][GT_MAX_OPERANDS]; /* in bytes */
} GtStrided;
GT_SIZE (GtStrided, 840);

/* A batch of matrices whose other dimension is the contiguous one. */
typedef struct
{
  void *dst;
  const void *src;
  uint32_t rows, columns;
  int64_t dst_row, src_column;   /* strides in elements */
  GtDivider tiles, tiles_across; /* in a matrix; in its rows */
  uint32_t n_dims;               /* of the batch */
  GtDivider shape[GT_MAX_DIMS];
  int64_t strides[GT_MAX_DIMS][2]; /* in bytes */
} GtTranspose;
GT_SIZE (GtTranspose, 520);

/* [outer, n, inner] to [outer, inner], the input contiguous. */
typedef struct
{
  const void *src;
  void *dst;
  void *partial; /* of accumulators, [n_splits, outer * inner], when n is split */
  uint64_t outer, n, inner;
  uint64_t n_total;  /* what the mean divides by */
  uint32_t n_splits; /* parts of n, each by a block of its own */
  uint32_t width;    /* parts: results of a block, a power of 2 */
} GtReduce;
GT_SIZE (GtReduce, 64);

/* c = alpha a b + beta c, [m, k] by [k, n]; c's columns are contiguous; strides in elements. */
typedef struct
{
  const void *a, *b;
  void *c;
  const void *bias; /* m elements, added to each column; or NULL */
  void *sums;       /* n elements, of b's columns; or NULL, as in a batch */
  int64_t m, n, k, batch;
  int64_t a_row, a_column, b_row, b_column, c_column;
  int64_t a_batch, b_batch, c_batch;
  uint64_t tiles_down, tiles_across;
  GtNumber alpha, beta;
  uint32_t adds; /* is beta other than 0? */
} GtMultiply;
GT_SIZE (GtMultiply, 192);

/* One parameter of an optimizer, or one gradient that is unscaled; all tensors are contiguous. */
#define GT_STEP_KINDS 5

typedef struct
{
  void *data
      [GT_STEP_KINDS]; /* the parameter, its states in the order of the row (NULL: not there), the
                                gradient */
  double *count;       /* of steps, or NULL */
  uint64_t n;
  uint32_t block;      /* the first of its blocks */
  uint32_t is_aligned; /* to 16 bytes, all of them */
} GtStep;
GT_SIZE (GtStep, 64);

#define GT_STEP_TENSORS 60    /* so that a launch has less than 4096 bytes */
#define GT_STEP_BYTES   16384 /* of a parameter, for a block */
#define GT_STEP_THREADS 256
#define GT_STEP_NUMBERS 12

typedef struct
{
  GtStep steps[GT_STEP_TENSORS];
  const void *cell; /* the learning rate, float64, in place of d[0], or NULL; the scale, float32 */
  float *found;     /* where it is not 0 a step changes nothing; or NULL. Unscaling sets it */
  double d[GT_STEP_NUMBERS];
  uint32_t n, blocks;
  uint32_t first; /* is this the first step, for those without a count? */
} GtSteps;
GT_SIZE (GtSteps, 3968);

/* Random numbers. `start` and `keys` are what the rounds of Philox take beside the number of a block; mask:
 * of dropout, aligned to 16 bytes. */
typedef struct
{
  void *out, *mask;
  const void *in;
  uint64_t n;
  uint32_t start[2], keys[9][2];
  int64_t low; /* integers: the first, and how many */
  uint64_t range;
  double wide_scale, wide_shift, wide_least, wide_end, p; /* for float64 */
  float scale, shift, least, end; /* uniform numbers do not reach the end, exponential ones may */
  uint32_t affine;                /* are scale and shift other than 1 and 0? */
  uint32_t limit;                 /* p in units of a uniform number's last bit */
  uint32_t rows, all_rows;        /* normal numbers by the table: of a block, and all */
  uint32_t vectors;               /* all begin at multiples of what a thread takes at once */
  uint32_t op;
  void *report; /* GtReport, or NULL */
} GtRandom;
GT_SIZE (GtRandom, 216);

/* handle: of the node that is to know the predicate, one bool. */
typedef struct
{
  uint64_t handle;
  const void *predicate;
} GtBranch;
GT_SIZE (GtBranch, 16);

/* What a kernel found wrong, in memory that the host sees; the first one stays. Most are indices; in the
 * place of their size the others say what they are. */
#define GT_REPORT_PROBABILITY (-1) /* value is the position of an element that is none */
#define GT_REPORT_WEIGHTS     (-2) /* value is a row from which nothing can be drawn */

typedef struct
{
  uint32_t state; /* 0: nothing; 1: being written; 2: there */
  uint32_t op;    /* GTorchOpClass.id; the dimension plus 1 in the upper half, or 0 */
  int64_t value, size;
} GtReport;
GT_SIZE (GtReport, 24);

/* Blocks of a tensor found by index: dense is [pre, n_index, inner]; strides and offsets in bytes. */
typedef struct
{
  void *indexed, *dense;
  int64_t step;           /* of dense: 1, or 0 where it is one element for all */
  const int64_t *offsets; /* of the n_index blocks; INT64_MIN: none */
  int64_t total, n_index, inner;
  uint32_t n_pre_dims, n_inner_dims;
  int64_t pre_shape[GT_MAX_DIMS], pre_strides[GT_MAX_DIMS];
  int64_t inner_shape[GT_MAX_DIMS], inner_strides[GT_MAX_DIMS];
} GtBlocks;
GT_SIZE (GtBlocks, 576);

/* Floats added to blocks, those of one block in the order of their index. Indices are in the order of blocks,
 * and cut into tiles: a sum that goes on in the next tile is put together by the thread of its first. */
typedef struct
{
  GtBlocks b;
  const void *keys;   /* numbers of the blocks, sorted, int32 or int64; negative: none */
  const int64_t *at;  /* where the keys were */
  void *first, *last; /* sums of a tile for the block of the tile before; for that of the next */
  int64_t n_pre, tiles, tile;
  uint32_t wide; /* are keys int64? */
} GtSegments;
GT_SIZE (GtSegments, 640);

/* Whole blocks of `inner` pieces: dst [pre, n_index, inner] from src [pre, size, inner], both contiguous, of
 * fewer than 2^31 pieces. */
typedef struct
{
  void *dst;
  const void *src;
  const int64_t *index;
  uint32_t n;
  uint32_t each; /* every element has an index of its own (inner in elements) */
  GtDivider inner, n_index;
  int64_t size;
  uint32_t wrap; /* do negative indices count from the end? */
  uint32_t op;
  void *report;
} GtPick;
GT_SIZE (GtPick, 80);

/* Tensors beside each other, in pieces of one size: each has rows of `width` pieces. */
#define GT_MAX_JOINED 64
typedef struct
{
  const void *src;
  uint64_t start; /* in a row of dst */
  GtDivider width;
  uint32_t n;
  uint32_t first_block;
} GtJoined;
GT_SIZE (GtJoined, 40);

typedef struct
{
  void *dst;
  uint64_t pitch; /* pieces in a row of dst */
  uint32_t n_inputs;
  GtJoined inputs[GT_MAX_JOINED];
} GtJoin;
GT_SIZE (GtJoin, 2584);

/* gather and scatter: elements at index along one dimension; plain and index have the shape. Strides are in
 * bytes. */
typedef struct
{
  void *indexed, *plain;
  void *
      owner; /* of each element of indexed, contiguous: the last that writes there; int32 or int64 */
  int64_t *slots;          /* which element of indexed is meant */
  uint32_t wide, element;  /* is owner int64? bytes */
  const void *index;       /* int64 */
  int64_t n, size, stride; /* along the dimension, of indexed */
  uint32_t n_dims, op;
  int64_t shape[GT_MAX_DIMS];
  int64_t strides[GT_MAX_DIMS][3]; /* indexed (0 along the dimension), index, plain */
  void *report;
} GtGather;
GT_SIZE (GtGather, 600);

/* The extremes of [outer, n, inner] along n, the input contiguous, and where they are. */
typedef struct
{
  const void *src;
  void *values; /* or NULL */
  int64_t *indices;
  void *partial;        /* of what is compared, [n_splits, outer * inner], when n is split */
  uint32_t *partial_at; /* and where that is in the split */
  uint64_t outer, n, inner;
  uint64_t part;     /* of n, which one split has */
  uint32_t n_splits; /* 0: `width` threads of a warp have a row */
  uint32_t width;    /* threads beside each other, a power of 2 */
  uint32_t vectors;  /* columns: rows begin at multiples of 16 bytes */
  uint32_t flip[2];  /* turns the order of two neighbouring words round */
} GtExtreme;
GT_SIZE (GtExtreme, 96);

/* Running sums and their like along n of [outer, n, inner], contiguous. */
typedef struct
{
  const void *src;
  const void *also, *with; /* what else is taken in, and what results are made with */
  void *dst;
  int64_t *positions; /* of extremes, along n */
  uint64_t
      *totals; /* of tiles, then of groups: [outer, tiles, inner] and [outer, groups, inner]; each 4
                       bytes with a flag beside them, which is zero at first */
  uint32_t *counter; /* of the tiles that were begun; NULL: a block has a line */
  uint64_t outer, n, inner;
  uint32_t tiles; /* along n */
  uint32_t group; /* tiles */
  uint32_t groups;
  uint32_t width;   /* threads beside each other, a power of 2 */
  uint32_t reverse; /* from the end */
  uint32_t vectors; /* lines begin at multiples of 16 bytes */
} GtScan;
GT_SIZE (GtScan, 104);

/* Vectors of 16 bytes that a thread has in a tile, and on their way beside them; with the copy engine. */
#define GT_SCAN_UNROLL(v)      ((v) >= 8 ? 4 : 8)
#define GT_SCAN_RING           24
#define GT_SCAN_COLUMN_THREADS 512
#define GT_SCAN_BULK_UNROLL    9
#define GT_SCAN_BULK_STAGES    6

/* Lines of n elements, contiguous. */
typedef struct
{
  const void *x, *g;
  void *y;
  uint64_t n;
} GtLines;
GT_SIZE (GtLines, 32);

/* Lines of n elements in order. Keys are unsigned numbers of the elements' size in the elements' order. */
typedef struct
{
  const void *x;
  const void *keys_in; /* NULL: made of x */
  const uint32_t *at_in;
  void *keys_out;
  uint32_t *at_out;
  void *values; /* [lines, k - skip]; not NULL: the last pass */
  int64_t *indices;
  uint32_t *histograms; /* [lines, passes, 256] */
  uint64_t *states;     /* [lines * tiles, 256] */
  uint32_t *counter;    /* of the tiles that were begun */
  uint64_t *chosen;     /* [lines, 2]: the key of the k-th, how many such are wanted */
  uint32_t *counts;     /* [lines, tiles, 2]: smaller keys, equal ones */
  uint64_t lines, n,
      k; /* x has n to a line, the first k in order are wanted but not the first skip */
  uint64_t skip;
  uint64_t row;      /* from one line of x to the next */
  uint64_t infinity; /* bits of a float; larger ones are NaN */
  uint32_t kind;     /* 0: unsigned, 1: signed, 2: float */
  uint32_t descending;
  uint32_t tiles, passes, pass;
  uint32_t width; /* threads for a line, a power of 2 */
} GtOrder;
GT_SIZE (GtOrder, 168);

/* Different elements, of keys in order. */
typedef struct
{
  const void *x, *keys;
  const uint32_t *at;
  void *values;
  int64_t *inverse, *counts, *starts;
  uint64_t *sums; /* before each tile, then of all */
  uint64_t n, tiles, n_values;
  uint32_t nan; /* keys of all ones are NaN */
} GtUnique;
GT_SIZE (GtUnique, 96);

/* Positions in sorted sequences of n. */
typedef struct
{
  const void *sequence, *values;
  int64_t *out;
  uint64_t n, per_line, numel;
  uint32_t right;
} GtSearch;
GT_SIZE (GtSearch, 56);
