/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/cpu/ops/gtorch-cpu-fft.h>
#include <gtorch/device/gtorch-fft-plan-cache-private.h>

G_BEGIN_DECLS

/* --- the kernel under cpu/isa/ --- */

/* A group of lines is worked on at once, one line in each lane of a vector. Element i of the group is a row:
 * the real parts of all lanes, then the imaginary ones, 64 bytes each. */
#define GTORCH_FFT_LANES(size) (64 / (gint64) (size))
#define GTORCH_FFT_MAX_LANES   16
#define GTORCH_FFT_ROW         128
#define GTORCH_FFT_MAX_ROWS    4096 /* what is longer is cut into two factors */
#define GTORCH_FFT_MAX_STAGES  16
#define GTORCH_FFT_MAX_RADIX   31

/* The distance to the imaginary part where there is none. No distance of memory is that: pairs of real
 * elements of an expanded line are 0 apart. */
#define GTORCH_FFT_REAL G_MININT64

/* A transform in rows: butterflies in place, after the rows were put into mixed-radix reversed order. */
typedef struct
{
  gint64 n;
  guint n_stages;
  guint8 radix[GTORCH_FFT_MAX_STAGES];
  gpointer
      twiddles[GTORCH_FFT_MAX_STAGES];   /* radix - 1 complex numbers for each of the rows before */
  gpointer roots[GTORCH_FFT_MAX_STAGES]; /* of an odd radix: its roots of unity */
  gint32 *place;                         /* where element i goes */
} GTorchFFTRows;

typedef enum
{
  GTORCH_FFT_PARTS,     /* the real and the imaginary part, or only the former */
  GTORCH_FFT_HALF_EVEN, /* n + 1 elements of a line of 2 n real ones, which are n pairs */
  GTORCH_FFT_HALF_ODD,  /* n / 2 + 1 elements of a line of n real ones */
} GTorchFFTLayout;

typedef struct
{
  const GTorchFFTRows *rows;
  gint64 n;            /* complex elements of a line; rows->n unless there is a chirp */
  gconstpointer chirp; /* n; and rows->n, the transformed one: makes it a convolution */
  gconstpointer response;
  gconstpointer half; /* the roots exp (-i pi k / n), of the layout HALF_EVEN */
  gboolean inverse;
  gdouble scale;
  GTorchFFTLayout in_layout, out_layout;
  gint64 in_step, in_delta; /* to the next element, to the imaginary part, or REAL */
  gint64 out_step, out_delta;
  gint64 n_out;               /* how many are wanted */
  gconstpointer lane_factors; /* results are multiplied by factors of their lane and of the group */
  gconstpointer group_factors;
  gint64 n_groups;
} GTorchFFTJob;

/* n_lines, at most the number of lanes, from in + in_offsets[i] to out + out_offsets[i]. The workspace has
 * 2 * (rows->n + 1) rows. */
#define GTORCH_FFT_ARGS                                                     \
  (const GTorchFFTJob *job, gint64 group, gint64 n_lines, gconstpointer in, \
   const gint64 *in_offsets, gpointer out, const gint64 *out_offsets, void *workspace)
GTORCH_ISA_DECLARE (void, gtorch_fft_lines_f32, GTORCH_FFT_ARGS);
GTORCH_ISA_DECLARE (void, gtorch_fft_lines_f64, GTORCH_FFT_ARGS);

/* What is done to the elements [begin, end) of one long line beside transforms. */
typedef enum
{
  GTORCH_FFT_PASS_UNFOLD, /* as for HALF_EVEN, from the pairs' transform */
  GTORCH_FFT_PASS_FOLD,
  GTORCH_FFT_PASS_MIRROR,
  GTORCH_FFT_PASS_COPY,
  GTORCH_FFT_PASS_CHIRP,  /* factors go in; the inverse exchanges the parts */
  GTORCH_FFT_PASS_RESULT, /* factors go out; the inverse exchanges the parts */
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
  GTORCH_FFT_PLAN_SPLIT, /* one line, as a matrix: its columns, then its rows */
  GTORCH_FFT_PLAN_CHIRP, /* as a convolution of a length that has only small factors */
  GTORCH_FFT_PLAN_HALF,  /* no transform: the roots for real lines of twice the length */
} GTorchFFTPlanKind;

/* What can be known of a transform of n complex numbers before there are any. Does not change once made. */
typedef struct _GTorchFFTPlan GTorchFFTPlan;

struct _GTorchFFTPlan
{
  GTorchFFTCached cached;
  GTorchFFTPlanKind kind;
  guint dtype;
  gboolean few; /* made for one line, or a few */
  gint64 n;
  GTorchFFTRows rows;            /* ROWS */
  GTorchFFTPlan *first, *second; /* SPLIT: columns and rows; CHIRP: the convolution's, in first */
  gint64 n_groups;               /* SPLIT: of columns */
  gpointer lane_factors, group_factors;
  gpointer chirp, response; /* CHIRP */
  gpointer half;            /* HALF: n + 1 roots */
};

/* few: there are not enough lines to fill the lanes. NULL if there is no memory. */
GTorchFFTPlan *gtorch_fft_plan_get (gint64 n, guint dtype, gboolean few, GError **error);
GTorchFFTPlan *gtorch_fft_plan_get_half (gint64 n, guint dtype, GError **error);
void gtorch_fft_plan_unref (GTorchFFTPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchFFTPlan, gtorch_fft_plan_unref)

/* The work of one line with a plan for few: n elements. */
gboolean gtorch_fft_run_line (const GTorchFFTPlan *plan, gboolean inverse, gdouble scale,
                              gconstpointer in, gint64 in_step, gint64 in_delta, gpointer out,
                              gint64 out_step, gint64 out_delta, gpointer scratch);
/* How many complex numbers the scratch memory of that has. */
gint64 gtorch_fft_plan_scratch (const GTorchFFTPlan *plan);

G_END_DECLS
