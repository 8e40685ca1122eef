/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <complex.h>

#include <gtorch/dispatch/gtorch-op-samples-private.h>
#include <gtorch/gtorch.h>

#include "gtorch-ops-private.h"
#include "test-device.h"

/* Inputs for operations in every dtype and layout, and access to results. */

typedef enum
{
  LAYOUT_CONTIGUOUS,
  LAYOUT_TRANSPOSED, /* the storage has the dimensions in reverse order */
  LAYOUT_STRIDED,    /* every second element of a larger storage, behind an offset */
  LAYOUT_EXPANDED,   /* the first dimension has stride 0 */
  LAYOUT_OFFSET,     /* contiguous, with one more element before and behind */
  LAYOUT_LAST,       /* the second dimension is the innermost one; contiguous with less than 3 */
  N_LAYOUTS,
} Layout;

extern const gchar *const layout_names[N_LAYOUTS];

typedef double _Complex Number;

/* Returns whether devices compute something: they do not for views and for composites. */
static inline gboolean
op_computes (const GTorchOpClass *op)
{
  return gtorch_cpu_runs[op->id] != NULL;
}

/* On any device, though slowly where each element is set on another than the CPU. */
Number element_get (const GTorchImpl *impl, gint64 index);
void element_set (const GTorchImpl *impl, gint64 index, Number value);
/* Random values in [low, high]; integers are whole numbers, bool 0 or 1. */
GTorchImpl *input_new (const GTorchSampleTensor *spec, guint dtype, Layout layout, gdouble low,
                       gdouble high, GRand *rand);
/* Replaces each matrix M by M M^H / n + I, which is Hermitian and positive-definite, and integers
 * below 1 by 1. Elements that share memory with those of another matrix are computed from the latter's
 * result. */
void input_make_positive (GTorchImpl *impl);
/* Returns a copy of the values in another dtype, contiguous or not. */
GTorchImpl *input_copy (const GTorchImpl *impl, guint dtype);
GTorchImpl *input_copy_laid (const GTorchImpl *impl, guint dtype, Layout layout);
/* Returns TRUE if the device does not support the operation, and then skips the test. */
gboolean is_lacking (const GError *error);
gdouble dtype_tolerance (guint dtype);
/* The absolute error that a function of CUDA's is known to have on GPUs, where it is more than rounding. */
gdouble device_error (const GTorchOpClass *op);
/* Returns NULL, or a description of the difference. Integers and bool must be equal. */
gchar *difference (const GTorchImpl *impl, const GTorchImpl *expected, gdouble tolerance);
