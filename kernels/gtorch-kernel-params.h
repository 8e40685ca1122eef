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
#define GT_MAX_OPERANDS 4 /* the output is the first */
#define GT_MAX_ATTRS    4

#define GT_THREADS 128
#define GT_VECTORS 2 /* vectors of 16 bytes per thread, for contiguous operands */
#define GT_STEPS   4 /* elements per thread for other layouts */

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

/* Scalar arguments, in the compute dtype. */
typedef struct
{
  uint64_t words[2];
} GtNumber;
GT_SIZE (GtNumber, 16);

/* Operands that are contiguous, with one shape and one dtype (the output may be bool or real). */
typedef struct
{
  void *data[GT_MAX_OPERANDS];
  uint64_t n;
  uint32_t numbers; /* bit k: operand k is a vector of copies of numbers_[k - 1] */
  uint32_t unused;
  GtNumber number[GT_MAX_OPERANDS - 1];
  GtAttr attrs[GT_MAX_ATTRS];
} GtContiguous;
GT_SIZE (GtContiguous, 128);

/* A contiguous output; inputs that are contiguous, constant along rows or constant along columns. */
typedef struct
{
  GtContiguous base;                        /* n: number of vectors */
  GtDivider inner;                          /* number of vectors in a row */
  uint32_t row_strides[GT_MAX_OPERANDS];    /* in vectors (in elements if the column stride is 0) */
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
  GtDivider tiles, tiles_across; /* the tiles of a matrix; of one of its rows */
  uint32_t n_dims;               /* dimensions of the batch */
  GtDivider shape[GT_MAX_DIMS];
  int64_t strides[GT_MAX_DIMS][2]; /* in bytes */
} GtTranspose;
GT_SIZE (GtTranspose, 520);

/* A reduction of [outer, n, inner] to [outer, inner], with contiguous input. */
typedef struct
{
  const void *src;
  void *dst;
  void *partial; /* accumulators [n_splits, outer * inner], if n is split */
  uint64_t outer, n, inner;
  uint64_t n_total;  /* the divisor of the mean */
  uint32_t n_splits; /* parts of n, each reduced by its own block */
  uint32_t width;    /* combining parts: results per block, a power of 2 */
} GtReduce;
GT_SIZE (GtReduce, 64);

/* c = alpha a b + beta c, [m, k] by [k, n]; the columns of c are contiguous; strides are in elements. */
typedef struct
{
  const void *a, *b;
  void *c;
  const void *bias; /* m elements that are added to each column; or NULL */
  void *sums;       /* n sums of b's columns; or NULL, as in a batch */
  int64_t m, n, k, batch;
  int64_t a_row, a_column, b_row, b_column, c_column;
  int64_t a_batch, b_batch, c_batch;
  uint64_t tiles_down, tiles_across;
  GtNumber alpha, beta;
  uint32_t adds; /* whether beta is not 0 */
} GtMultiply;
GT_SIZE (GtMultiply, 192);

/* One parameter of an optimizer, or one gradient to unscale; all tensors are contiguous. */
#define GT_STEP_KINDS 5

typedef struct
{
  /* the parameter, its states in the order of the row (NULL if absent), the gradient */
  void *data[GT_STEP_KINDS];
  double *count; /* the step count, or NULL */
  uint64_t n;
  uint32_t block;      /* the first of its blocks */
  uint32_t is_aligned; /* whether all of them are aligned to 16 bytes */
} GtStep;
GT_SIZE (GtStep, 64);

#define GT_STEP_TENSORS 60    /* keeps a parameter struct below 4096 bytes */
#define GT_STEP_BYTES   16384 /* bytes of a parameter per block */
#define GT_STEP_THREADS 256
#define GT_STEP_NUMBERS 12

typedef struct
{
  GtStep steps[GT_STEP_TENSORS];
  const void *cell; /* the learning rate, float64, in place of d[0], or NULL; the scale, float32 */
  float *found;     /* if it is not 0, a step changes nothing; or NULL. Unscaling sets it */
  double d[GT_STEP_NUMBERS];
  uint32_t n, blocks;
  uint32_t first; /* whether this is the first step, for parameters without a count */
} GtSteps;
GT_SIZE (GtSteps, 3968);

/* Random numbers. `start` and `keys` are the inputs of Philox beside the block number; mask: that of
 * dropout, aligned to 16 bytes. */
typedef struct
{
  void *out, *mask;
  const void *in;
  uint64_t n;
  uint32_t start[2], keys[9][2];
  int64_t low; /* integers: the lowest one, and their number */
  uint64_t range;
  double wide_scale, wide_shift, wide_least, wide_end, p; /* for float64 */
  /* uniform numbers are below the end, exponential ones may reach it */
  float scale, shift, least, end;
  uint32_t affine;         /* whether scale and shift are not 1 and 0 */
  uint32_t limit;          /* p in units of the last bit of a uniform number */
  uint32_t rows, all_rows; /* normal numbers from the table: rows per block, and in total */
  uint32_t vectors;        /* whether all tensors are aligned to a thread's loads */
  uint32_t op;
  void *report; /* GtReport, or NULL */
} GtRandom;
GT_SIZE (GtRandom, 216);

/* handle: that of the node that gets the predicate, one bool. */
typedef struct
{
  uint64_t handle;
  const void *predicate;
} GtBranch;
GT_SIZE (GtBranch, 16);

/* An error that a kernel found, in memory that the host can read; the first one is kept. Most are
 * indices; others have one of these codes in place of the size. */
/* value is the position of an element that is not a probability */
#define GT_REPORT_PROBABILITY (-1)
#define GT_REPORT_WEIGHTS     (-2) /* value is a row whose weights are all zero or invalid */

typedef struct
{
  uint32_t state; /* 0: empty; 1: being written; 2: complete */
  uint32_t op;    /* GTorchOpClass.id; the dimension plus 1 in the upper half, or 0 */
  int64_t value, size;
} GtReport;
GT_SIZE (GtReport, 24);

/* Blocks of a tensor that are addressed by index: dense is [pre, n_index, inner]; strides and offsets are
 * in bytes. */
typedef struct
{
  void *indexed, *dense;
  int64_t step;           /* of dense: 1, or 0 if it is one element for all */
  const int64_t *offsets; /* those of the n_index blocks; INT64_MIN: skipped */
  int64_t total, n_index, inner;
  uint32_t n_pre_dims, n_inner_dims;
  int64_t pre_shape[GT_MAX_DIMS], pre_strides[GT_MAX_DIMS];
  int64_t inner_shape[GT_MAX_DIMS], inner_strides[GT_MAX_DIMS];
} GtBlocks;
GT_SIZE (GtBlocks, 576);

/* Floats added to blocks, those of one block in the order of their indices. Indices are sorted by block,
 * and cut into tiles: the thread of the first tile of a sum combines its parts. */
typedef struct
{
  GtBlocks b;
  const void *keys;  /* sorted numbers of the blocks, int32 or int64; negative: skipped */
  const int64_t *at; /* the former positions of the keys */
  /* partial sums of a tile for the last block of the previous tile; for the first block of the next one */
  void *first, *last;
  int64_t n_pre, tiles, tile;
  uint32_t wide; /* whether keys are int64 */
} GtSegments;
GT_SIZE (GtSegments, 640);

/* Whole blocks of `inner` words: dst [pre, n_index, inner] from src [pre, size, inner], both contiguous,
 * of fewer than 2^31 words. */
typedef struct
{
  void *dst;
  const void *src;
  const int64_t *index;
  uint32_t n;
  uint32_t each; /* every element has its own index (inner in elements) */
  GtDivider inner, n_index;
  int64_t size;
  uint32_t wrap; /* whether negative indices count from the end */
  uint32_t op;
  void *report;
} GtPick;
GT_SIZE (GtPick, 80);

/* Concatenated tensors, in words of one size: each has rows of `width` words. */
#define GT_MAX_JOINED 64
typedef struct
{
  const void *src;
  uint64_t start; /* offset in a row of dst */
  GtDivider width;
  uint32_t n;
  uint32_t first_block;
} GtJoined;
GT_SIZE (GtJoined, 40);

typedef struct
{
  void *dst;
  uint64_t pitch; /* words in a row of dst */
  uint32_t n_inputs;
  GtJoined inputs[GT_MAX_JOINED];
} GtJoin;
GT_SIZE (GtJoin, 2584);

/* gather and scatter: elements addressed by index along one dimension; plain and index have the shape.
 * Strides are in bytes. */
typedef struct
{
  void *indexed, *plain;
  void *owner; /* for each element of indexed, contiguous: the last write to it; int32 or int64 */
  int64_t *slots;          /* the element of indexed for each index */
  uint32_t wide, element;  /* whether owner is int64; size of an element */
  const void *index;       /* int64 */
  int64_t n, size, stride; /* of indexed along the dimension */
  uint32_t n_dims, op;
  int64_t shape[GT_MAX_DIMS];
  int64_t strides[GT_MAX_DIMS][3]; /* indexed (0 along the dimension), index, plain */
  void *report;
} GtGather;
GT_SIZE (GtGather, 600);

/* The extremes of [outer, n, inner] along n, with contiguous input, and their positions. */
typedef struct
{
  const void *src;
  void *values; /* or NULL */
  int64_t *indices;
  void *partial;        /* compared values, [n_splits, outer * inner], if n is split */
  uint32_t *partial_at; /* their positions in the split */
  uint64_t outer, n, inner;
  uint64_t part;     /* elements of n per split */
  uint32_t n_splits; /* 0: `width` threads of a warp have a row */
  uint32_t width;    /* adjacent threads, a power of 2 */
  uint32_t vectors;  /* columns: whether rows are aligned to 16 bytes */
  uint32_t flip[2];  /* bit masks that reverse the order of elements, of two neighbouring words */
} GtExtreme;
GT_SIZE (GtExtreme, 96);

/* Running sums and other scans along n of [outer, n, inner], contiguous. */
typedef struct
{
  const void *src;
  const void *also, *with; /* a second input, and an input of the results */
  void *dst;
  int64_t *positions; /* for extremes: positions along n */
  uint64_t
      /* of tiles, then of groups: [outer, tiles, inner] and [outer, groups, inner]; each 4 bytes are
       * stored with a flag, which is zero initially */
      *totals;
  uint32_t *counter; /* counts the tiles that were begun; NULL: a block has a whole line */
  uint64_t outer, n, inner;
  uint32_t tiles; /* along n */
  uint32_t group; /* tiles per group */
  uint32_t groups;
  uint32_t width;   /* adjacent threads, a power of 2 */
  uint32_t reverse; /* scans from the end */
  uint32_t vectors; /* whether lines are aligned to 16 bytes */
} GtScan;
GT_SIZE (GtScan, 104);

/* Vectors of 16 bytes of a tile per thread, and of prefetched tiles; with the copy engine. */
#define GT_SCAN_UNROLL(v)      ((v) >= 8 ? 4 : 8)
#define GT_SCAN_RING           24
#define GT_SCAN_COLUMN_THREADS 512
#define GT_SCAN_BULK_UNROLL    9
#define GT_SCAN_BULK_STAGES    6

/* Contiguous lines of n elements. */
typedef struct
{
  const void *x, *g;
  void *y;
  uint64_t n;
} GtLines;
GT_SIZE (GtLines, 32);

/* Sorting of lines of n elements. Keys are unsigned integers of the elements' size in the elements'
 * order. */
typedef struct
{
  const void *x;
  const void *keys_in; /* NULL: made from x */
  const uint32_t *at_in;
  void *keys_out;
  uint32_t *at_out;
  void *values; /* [lines, k - skip]; set in the last pass only */
  int64_t *indices;
  uint32_t *histograms; /* [lines, passes, 256] */
  uint64_t *states;     /* [lines * tiles, 256] */
  uint32_t *counter;    /* counts the tiles that were begun */
  /* [lines, 2]: the key of the k-th element, and how many equal ones are needed */
  uint64_t *chosen;
  uint32_t *counts; /* [lines, tiles, 2]: numbers of smaller and of equal keys */
  uint64_t lines, n,
      k; /* x has n per line; the first k in order, without the first `skip`, are the result */
  uint64_t skip;
  uint64_t row;      /* distance of the lines of x */
  uint64_t infinity; /* the bits of infinity; larger numbers are NaN */
  uint32_t kind;     /* 0: unsigned, 1: signed, 2: float */
  uint32_t descending;
  uint32_t tiles, passes, pass;
  uint32_t width; /* threads per line, a power of 2 */
} GtOrder;
GT_SIZE (GtOrder, 168);

/* Unique elements of sorted keys. */
typedef struct
{
  const void *x, *keys;
  const uint32_t *at;
  void *values;
  int64_t *inverse, *counts, *starts;
  uint64_t *sums; /* before each tile, then the total */
  uint64_t n, tiles, n_values;
  uint32_t nan; /* whether keys with all bits set are NaN */
} GtUnique;
GT_SIZE (GtUnique, 96);

/* Positions in sorted sequences of n elements. */
typedef struct
{
  const void *sequence, *values;
  int64_t *out;
  uint64_t n, per_line, numel;
  uint32_t right;
} GtSearch;
GT_SIZE (GtSearch, 56);
