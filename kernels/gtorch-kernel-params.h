/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

/* The parameters of kernels, included from C and from CUDA C++: plain structs of fixed layout, each the
 * only parameter of its kernels. gtorch-<file>-params.h has the structs that only one file of kernels
 * uses. */

#include <stdint.h>

/* Checks that the compilers of the host and of the kernels lay out a struct in the same way. */
#ifdef __cplusplus
#define GT_SIZE(type, bytes) static_assert (sizeof (type) == (bytes), #type)
#else
#define GT_SIZE(type, bytes) _Static_assert(sizeof (type) == (bytes), #type)
#endif

#define GT_MAX_DIMS     16
#define GT_MAX_OPERANDS 4 /* including the output, which is the first */
#define GT_MAX_ATTRS    4

#define GT_THREADS 128
#define GT_VECTORS 2 /* 16-byte vectors per thread, for contiguous operands */
#define GT_STEPS   4 /* elements per thread for other layouts */

/* Division by a divisor that the host knows: q = (n * multiplier >> 32 + n) >> shift, for n < 2^31. */
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

/* A scalar operand, in the compute dtype. */
typedef struct
{
  uint64_t words[2];
} GtNumber;
GT_SIZE (GtNumber, 16);

/* Contiguous operands of one shape and one dtype (the output may be bool or real instead). */
typedef struct
{
  void *data[GT_MAX_OPERANDS];
  uint64_t n;
  uint32_t numbers; /* bit k: operand k is the scalar number[k - 1] */
  uint32_t unused;
  GtNumber number[GT_MAX_OPERANDS - 1];
  GtAttr attrs[GT_MAX_ATTRS];
} GtContiguous;
GT_SIZE (GtContiguous, 128);

/* A contiguous output, and inputs that are contiguous, constant along rows or constant along columns. */
typedef struct
{
  GtContiguous base;                        /* base.n is the number of vectors */
  GtDivider inner;                          /* number of vectors in a row */
  uint32_t row_strides[GT_MAX_OPERANDS];    /* in vectors; in elements if the column stride is 0 */
  uint32_t column_strides[GT_MAX_OPERANDS]; /* 1 or 0 */
} GtRows;
GT_SIZE (GtRows, 176);

/* Operands of any layouts and dtypes, with fewer than 2^31 elements, whose offsets are below 2^31 bytes.
 * There is at least one dimension. */
typedef struct
{
  GtContiguous base;
  uint32_t n_dims;
  uint8_t dtypes[GT_MAX_OPERANDS];               /* GTorchDType */
  GtDivider shape[GT_MAX_DIMS];                  /* sizes, the innermost dimension first */
  int32_t strides[GT_MAX_DIMS][GT_MAX_OPERANDS]; /* in bytes */
} GtStrided;
GT_SIZE (GtStrided, 584);

/* A batch of matrices to transpose: the source is contiguous along its columns, the destination along
 * rows. */
typedef struct
{
  void *dst;
  const void *src;
  uint32_t rows, columns;
  int64_t dst_row, src_column;   /* strides in elements */
  GtDivider tiles, tiles_across; /* number of tiles of a matrix; along its columns */
  uint32_t n_dims;               /* number of dimensions of the batch */
  GtDivider shape[GT_MAX_DIMS];
  int64_t strides[GT_MAX_DIMS][2]; /* in bytes */
} GtTranspose;
GT_SIZE (GtTranspose, 520);

/* A reduction of [outer, n, inner] to [outer, inner]; each [n, inner] of the input is contiguous. */
typedef struct
{
  const void *src;
  void *dst;
  void *partial; /* accumulators [n_splits, outer * inner] if n is split */
  uint64_t outer, n, inner;
  uint64_t pitch;    /* elements of the input from one [n, inner] to the next */
  uint64_t n_total;  /* the divisor of the mean */
  uint32_t n_splits; /* number of parts of n, each reduced by a block; 0: a warp reduces a row */
  uint32_t width;    /* results per block when parts are combined, a power of 2 */
} GtReduce;
GT_SIZE (GtReduce, 72);

/* c = alpha a b + beta c, [m, k] by [k, n]; the columns of c are contiguous; strides are in elements. */
typedef struct
{
  const void *a, *b;
  void *c;
  const void *bias; /* m elements that are added to each column, or NULL */
  void *sums;       /* receives the n sums of b's columns; NULL in a batch */
  int64_t m, n, k, batch;
  int64_t a_row, a_column, b_row, b_column, c_column;
  int64_t a_batch, b_batch, c_batch;
  uint64_t tiles_down, tiles_across;
  GtNumber alpha, beta;
  uint32_t adds; /* whether beta is not 0 */
} GtMultiply;
GT_SIZE (GtMultiply, 192);

#define GT_STEP_KINDS 5

/* One parameter of an optimizer, or one tensor of another operation of many; all tensors are contiguous. */
typedef struct
{
  /* the parameter, its states in the order of the optimizer's row (NULL if absent), the gradient, the numbers
   * that the row keeps for each parameter (float64) */
  void *data[GT_STEP_KINDS];
  double *count; /* the step count, or NULL; where a norm is written */
  uint64_t n;
  uint32_t block;      /* index of its first block */
  uint32_t is_aligned; /* whether all tensors of data are aligned to 16 bytes */
} GtStep;
GT_SIZE (GtStep, 64);

#define GT_STEP_TENSORS      60    /* few enough for a parameter struct below 4096 bytes */
#define GT_STEP_MANY_TENSORS 500   /* and below 32764, which drivers from CUDA 12.1 on allow */
#define GT_STEP_BYTES        16384 /* bytes of a parameter per block */
#define GT_STEP_THREADS      256
#define GT_STEP_NUMBERS      12

/* The steps of as many parameters as one launch takes. GtSteps is the beginning of GtManySteps.
 * cell: the learning rate (float64), which replaces d[0], or NULL; for unscaling, the scale (float32); the
 *   factor; the partial results of norms (float64)
 * d[0]: also the limit, or the degree of norms
 * found: set by unscaling; unless it is 0 or NULL, a step changes nothing
 * first: whether this is the first step, for parameters without a count; whether the factor is float64
 * row: the position of the optimizer among the rows */
#define GT_STEP_STRUCT(Name, n_tensors) \
  typedef struct                        \
  {                                     \
    const void *cell;                   \
    float *found;                       \
    double d[GT_STEP_NUMBERS];          \
    uint32_t n, blocks, first, row;     \
    GtStep steps[n_tensors];            \
  } Name
GT_STEP_STRUCT (GtSteps, GT_STEP_TENSORS);
GT_STEP_STRUCT (GtManySteps, GT_STEP_MANY_TENSORS);
GT_SIZE (GtSteps, 3968);
GT_SIZE (GtManySteps, 32128);

/* Random numbers. `start` and `keys` are the inputs of Philox beside the block number. `mask` is the mask
 * of dropout, aligned to 16 bytes. */
typedef struct
{
  void *out, *mask;
  const void *in;
  uint64_t n;
  uint32_t start[2], keys[9][2];
  int64_t low; /* for integers: the lowest one; range is how many there are */
  uint64_t range;
  double wide_scale, wide_shift, wide_least, wide_end, p; /* for float64 */
  /* for float32; uniform numbers are below `end`, exponential ones may reach it */
  float scale, shift, least, end;
  uint32_t affine;         /* whether scale and shift are not 1 and 0 */
  uint32_t limit;          /* p in units of a uniform number's last bit */
  uint32_t rows, all_rows; /* for normal numbers from the table: rows per block, and in total */
  uint32_t vectors;        /* whether all tensors are aligned for a thread's vector loads */
  uint32_t op;
  void *report; /* GtReport, or NULL */
} GtRandom;
GT_SIZE (GtRandom, 216);

/* The handle of a graph's conditional node, and the address of its predicate, one bool. */
typedef struct
{
  uint64_t handle;
  const void *predicate;
} GtBranch;
GT_SIZE (GtBranch, 16);

/* The codes that replace the size in reports of other errors than an index out of range. */
#define GT_REPORT_PROBABILITY (-1) /* value: position of an element that is not a probability */
#define GT_REPORT_WEIGHTS     (-2) /* value: a row whose weights are all zero or invalid */

/* The first error that kernels have found, in memory that the host can read. */
typedef struct
{
  uint32_t state; /* 0: empty; 1: being written; 2: complete */
  uint32_t op;    /* GTorchOpClass.id; in the upper half the dimension plus 1, or 0 */
  int64_t value, size;
} GtReport;
GT_SIZE (GtReport, 24);

/* Blocks of a tensor that are addressed by index: dense is [pre, n_index, inner]; strides and offsets are
 * in bytes. */
typedef struct
{
  void *indexed, *dense;
  int64_t step;           /* step along dense: 1, or 0 if it has one element for all */
  const int64_t *offsets; /* offsets of the n_index blocks; INT64_MIN if skipped */
  int64_t total, n_index, inner;
  uint32_t n_pre_dims, n_inner_dims;
  int64_t pre_shape[GT_MAX_DIMS], pre_strides[GT_MAX_DIMS];
  int64_t inner_shape[GT_MAX_DIMS], inner_strides[GT_MAX_DIMS];
} GtBlocks;
GT_SIZE (GtBlocks, 576);

/* Floats that are added to blocks, those of one block in the order of their indices. The indices are sorted
 * by block and cut into tiles; if the sum of a block spans several tiles, the thread of the first one
 * combines the partial sums. */
typedef struct
{
  GtBlocks b;
  const void *keys;  /* sorted numbers of the blocks, int32 or int64; negative ones are skipped */
  const int64_t *at; /* positions of the keys before sorting */
  /* partial sums of each tile: for the last block of the previous tile, for the first block of the next */
  void *first, *last;
  int64_t n_pre, tiles, tile;
  uint32_t wide; /* whether keys are int64 */
} GtSegments;
GT_SIZE (GtSegments, 640);

/* Indexing of whole blocks of `inner` words: dst [pre, n_index, inner] from src [pre, size, inner], both
 * contiguous and of fewer than 2^31 words. */
typedef struct
{
  void *dst;
  const void *src;
  const int64_t *index;
  uint32_t n;
  uint32_t each; /* whether every element has its own index (then a word is an element) */
  GtDivider inner, n_index;
  int64_t size;
  uint32_t wrap; /* whether negative indices count from the end */
  uint32_t op;
  void *report;
} GtPick;
GT_SIZE (GtPick, 80);

#define GT_MAX_JOINED 64

/* One of several tensors to concatenate, in words of one size: it has rows of `width` words. */
typedef struct
{
  const void *src;
  uint64_t start; /* offset of its first word in a row of dst */
  GtDivider width;
  uint32_t n;
  uint32_t first_block;
} GtJoined;
GT_SIZE (GtJoined, 40);

typedef struct
{
  void *dst;
  uint64_t pitch; /* number of words in a row of dst */
  uint32_t n_inputs;
  GtJoined inputs[GT_MAX_JOINED];
} GtJoin;
GT_SIZE (GtJoin, 2584);

/* gather and scatter: elements that are addressed by index along one dimension. `shape` is that of plain
 * and index; strides are in bytes. */
typedef struct
{
  void *indexed, *plain;
  void *owner;    /* the last write to each element of indexed, contiguous, int32 or int64 */
  int64_t *slots; /* number of the element of indexed for each index */
  uint32_t wide, element; /* whether owner is int64; size of an element in bytes */
  const void *index;      /* int64 */
  /* n: number of indices; size and stride of indexed along the dimension */
  int64_t n, size, stride;
  uint32_t n_dims, op;
  int64_t shape[GT_MAX_DIMS];
  int64_t strides[GT_MAX_DIMS][3]; /* of indexed (0 along the dimension), index, plain */
  void *report;
} GtGather;
GT_SIZE (GtGather, 600);

/* The extremes of [outer, n, inner] along n, with contiguous input, and their positions. */
typedef struct
{
  const void *src;
  void *values; /* or NULL */
  int64_t *indices;
  void *partial;        /* extremes of the splits, [n_splits, outer * inner], if n is split */
  uint32_t *partial_at; /* positions of the extremes in their splits */
  uint64_t outer, n, inner;
  uint64_t part;     /* elements of n per split */
  uint32_t n_splits; /* number of splits; 0: `width` threads of a warp reduce a row */
  uint32_t width;    /* number of adjacent threads, a power of 2 */
  uint32_t vectors;  /* for columns: whether rows are aligned to 16 bytes */
  uint32_t flip[2];  /* bit masks for two adjacent words that reverse the order of elements */
} GtExtreme;
GT_SIZE (GtExtreme, 96);

/* Running sums and other scans along n of contiguous tensors [outer, n, inner]. */
typedef struct
{
  const void *src;
  /* a second input of values, and an input for the conversion of results */
  const void *also, *with;
  void *dst;
  int64_t *positions; /* for extremes: their positions along n */
  /* totals of tiles, [outer, tiles, inner], then of groups, [outer, groups, inner]; each 4 bytes are stored
   * together with a flag, which is 0 initially */
  uint64_t *totals;
  uint32_t *counter; /* counts the tiles that blocks have begun; NULL: a block has a whole line */
  uint64_t outer, n, inner;
  uint32_t tiles; /* number of tiles along n */
  uint32_t group; /* number of tiles per group */
  uint32_t groups;
  uint32_t width;   /* number of adjacent threads, a power of 2 */
  uint32_t reverse; /* whether to scan from the end */
  uint32_t vectors; /* whether lines are aligned to 16 bytes */
} GtScan;
GT_SIZE (GtScan, 104);

/* 16-byte vectors per thread in a tile, and in all prefetched tiles; threads per block for columns; with
 * the copy engine, vectors per thread in a tile, and number of tiles in flight. */
#define GT_SCAN_UNROLL(v)      ((v) >= 8 ? 4 : 8)
#define GT_SCAN_RING           24
#define GT_SCAN_COLUMN_THREADS 512
#define GT_SCAN_BULK_UNROLL    9
#define GT_SCAN_BULK_STAGES    6

/* Contiguous lines of n elements: the input x, the gradient g of its running products or NULL, the result
 * y. */
typedef struct
{
  const void *x, *g;
  void *y;
  uint64_t n;
} GtLines;
GT_SIZE (GtLines, 32);

/* Sorting of lines of n elements. Keys are unsigned integers of the elements' size, which have the order of
 * the elements. */
typedef struct
{
  const void *x;
  const void *keys_in; /* NULL if keys are computed from x */
  const uint32_t *at_in;
  void *keys_out;
  uint32_t *at_out;
  void *values; /* [lines, k - skip]; NULL except in the last pass */
  int64_t *indices;
  uint32_t *histograms; /* [lines, passes, 256] */
  uint64_t *states;     /* [lines * tiles, 256] */
  uint32_t *counter;    /* counts the tiles that blocks have begun */
  uint64_t *chosen;     /* [lines, 2]: key of the k-th element; how many equal ones are needed */
  uint32_t *counts;     /* [lines, tiles, 2]: numbers of smaller and of equal keys */
  /* x has `lines` lines of n elements; the results are the first k in order, without the first `skip` */
  uint64_t lines, n, k;
  uint64_t skip;
  uint64_t row;      /* stride of the lines of x */
  uint64_t infinity; /* the bits of infinity; larger values are NaN */
  uint32_t kind;     /* 0: unsigned, 1: signed, 2: float */
  uint32_t descending;
  uint32_t tiles, passes, pass;
  uint32_t width; /* number of threads per line, a power of 2 */
} GtOrder;
GT_SIZE (GtOrder, 168);

/* Unique elements of sorted keys. */
typedef struct
{
  const void *x, *keys;
  const uint32_t *at;
  void *values;
  int64_t *inverse, *counts, *starts;
  uint64_t *sums; /* number of unique elements before each tile, then in total */
  uint64_t n, tiles, n_values;
  uint32_t nan; /* whether keys with all bits set are NaN */
} GtUnique;
GT_SIZE (GtUnique, 96);

/* Positions of values in sorted sequences of n elements. */
typedef struct
{
  const void *sequence, *values;
  int64_t *out;
  uint64_t n, per_line, numel;
  uint32_t right;
} GtSearch;
GT_SIZE (GtSearch, 56);
