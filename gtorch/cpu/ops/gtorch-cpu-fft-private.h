/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/ops/gtorch-cpu-fft.h>
#include <gtorch/device/gtorch-fft-plan-cache-private.h>

G_BEGIN_DECLS

/* --- kernels under cpu/isa/ --- */

/* A group of lines is processed at once, one line per vector lane. Element i of the group is a row: the
 * real parts of all lanes, then the imaginary parts, 64 bytes each. */
#define GTORCH_FFT_LANES(size) (64 / (gint64) (size))
#define GTORCH_FFT_MAX_LANES   16
#define GTORCH_FFT_ROW         128
#define GTORCH_FFT_MAX_ROWS    4096 /* longer lines are split into two factors */
#define GTORCH_FFT_MAX_STAGES  16
#define GTORCH_FFT_MAX_RADIX   131

/* Value of in_delta and out_delta for real elements, which have no imaginary part. It cannot be a distance
 * in memory; 0 can, since pairs of real elements of an expanded line are 0 apart. */
#define GTORCH_FFT_REAL G_MININT64

/* A transform of rows: in-place butterflies, after the rows have been put into mixed-radix reversed order. */
typedef struct
{
  gint64 n;
  guint n_stages;
  guint8 radix[GTORCH_FFT_MAX_STAGES];
  gpointer
      /* per stage: radix - 1 complex numbers for each row of the previous stage */
      twiddles[GTORCH_FFT_MAX_STAGES];
  gpointer roots[GTORCH_FFT_MAX_STAGES]; /* roots of unity of an odd radix */
  gint32 *place;                         /* destination row of element i */
} GTorchFFTRows;

typedef enum
{
  GTORCH_FFT_PARTS,     /* separate real and imaginary part, or only real ones */
  GTORCH_FFT_HALF_EVEN, /* n + 1 elements of a line of 2 n real numbers, which are n pairs */
  GTORCH_FFT_HALF_ODD,  /* n / 2 + 1 elements of a line of n real numbers */
} GTorchFFTLayout;

typedef struct
{
  const GTorchFFTRows *rows;
  gint64 n;            /* complex elements of a line; rows->n unless there is a chirp */
  gconstpointer chirp; /* n elements; if not NULL, the line is convolved with `response` */
  gconstpointer response;
  gconstpointer half; /* roots exp (-i pi k / n) for HALF_EVEN */
  gboolean inverse;
  gdouble scale;
  GTorchFFTLayout in_layout, out_layout;
  gint64 in_step, in_delta; /* to the next element; to the imaginary part, or REAL */
  gint64 out_step, out_delta;
  gint64 n_out;               /* number of results to write */
  gconstpointer lane_factors; /* results are multiplied by factors of their lane and of the group */
  gconstpointer group_factors;
  gint64 n_groups;
} GTorchFFTJob;

/* Transforms n_lines lines, at most the number of lanes, from in + in_offsets[i] to out + out_offsets[i].
 * The workspace has 2 (rows->n + 1) rows. */
#define GTORCH_FFT_ARGS                                                     \
  (const GTorchFFTJob *job, gint64 group, gint64 n_lines, gconstpointer in, \
   const gint64 *in_offsets, gpointer out, const gint64 *out_offsets, void *workspace)
GTORCH_ISA_DECLARE (void, gtorch_fft_lines_f32, GTORCH_FFT_ARGS);
GTORCH_ISA_DECLARE (void, gtorch_fft_lines_f64, GTORCH_FFT_ARGS);

/* A pass over the elements [begin, end) of one long line, besides transforms. */
typedef enum
{
  GTORCH_FFT_PASS_UNFOLD, /* as HALF_EVEN, from the pairs' transform */
  GTORCH_FFT_PASS_FOLD,
  GTORCH_FFT_PASS_MIRROR,
  GTORCH_FFT_PASS_COPY,
  GTORCH_FFT_PASS_CHIRP,  /* multiplies the input by the chirp; the inverse swaps the parts */
  GTORCH_FFT_PASS_RESULT, /* multiplies the output by the chirp; the inverse swaps the parts */
} GTorchFFTPassKind;

typedef struct
{
  GTorchFFTPassKind kind;
  gboolean inverse;
  gdouble scale;
  gint64 n;
  gconstpointer in;
  gpointer out;
  gint64 in_step, in_delta, out_step, out_delta;
  gconstpointer factors;
} GTorchFFTPass;

#define GTORCH_FFT_PASS_ARGS (const GTorchFFTPass *pass, gint64 begin, gint64 end)
GTORCH_ISA_DECLARE (void, gtorch_fft_pass_f32, GTORCH_FFT_PASS_ARGS);
GTORCH_ISA_DECLARE (void, gtorch_fft_pass_f64, GTORCH_FFT_PASS_ARGS);

/* --- plans --- */

typedef enum
{
  GTORCH_FFT_PLAN_ROWS,  /* many lines at once */
  GTORCH_FFT_PLAN_SPLIT, /* one line as a matrix: transforms its columns, then its rows */
  GTORCH_FFT_PLAN_CHIRP, /* convolution of a length that has only small factors */
  GTORCH_FFT_PLAN_HALF,  /* no transform: the roots for real lines of twice the length */
} GTorchFFTPlanKind;

/* Everything about a transform of n complex numbers that does not depend on the data. Immutable once made. */
typedef struct _GTorchFFTPlan GTorchFFTPlan;

struct _GTorchFFTPlan
{
  GTorchFFTCached cached;
  GTorchFFTPlanKind kind;
  guint dtype;
  gboolean few; /* made for one or a few lines */
  gint64 n;
  GTorchFFTRows rows; /* for ROWS */
  /* for SPLIT: columns and rows; for CHIRP: first is the convolution's plan */
  GTorchFFTPlan *first, *second;
  gint64 n_groups; /* for SPLIT: groups of columns */
  gpointer lane_factors, group_factors;
  gpointer chirp, response; /* for CHIRP */
  gpointer half;            /* for HALF: n + 1 roots */
};

/* Return a plan, or NULL if an allocation fails. few: there are too few lines to fill the lanes. */
GTorchFFTPlan *gtorch_fft_plan_get (gint64 n, guint dtype, gboolean few, GError **error);
GTorchFFTPlan *gtorch_fft_plan_get_half (gint64 n, guint dtype, GError **error);
void gtorch_fft_plan_unref (GTorchFFTPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchFFTPlan, gtorch_fft_plan_unref)

/* Transforms one line of n elements with a plan made for few lines. */
gboolean gtorch_fft_run_line (const GTorchFFTPlan *plan, gboolean inverse, gdouble scale,
                              gconstpointer in, gint64 in_step, gint64 in_delta, gpointer out,
                              gint64 out_step, gint64 out_delta, gpointer scratch);
/* Returns the size of gtorch_fft_run_line ()'s scratch memory, in complex numbers. */
gint64 gtorch_fft_plan_scratch (const GTorchFFTPlan *plan);

G_END_DECLS
