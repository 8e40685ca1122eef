/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* Samples of the op rows, for the tests: gtorch-op-samples.c is generated, and only the tests link it. */
typedef struct
{
  const gchar *name;
  gint n_dims; /* -1: the argument is not given (NULL) */
  gint64 shape[8];
  guint dtype; /* GTORCH_DTYPE_NONE: the dtype under test */
  /* its matrices are Hermitian and positive-definite; its indices begin at 1 */
  gboolean is_positive;
} GTorchSampleTensor;

typedef struct
{
  guint op;
  guint index; /* among the samples of the op */
  guint n_tensors;
  const GTorchSampleTensor *tensors; /* in the order of the call's inputs */
  const GTorchAttr *attrs;
  gdouble low, high; /* the range of random inputs */
  gboolean grad;
  gboolean magnitudes; /* other signs and phases of the results are as right */
} GTorchOpSample;

/* Calls any operation, also a composite one; appends new references to results. */
typedef gboolean (*GTorchInvoker) (GTorchImpl *const *inputs, guint n_inputs,
                                   const GTorchAttr *attrs, GPtrArray *results, GError **error);

extern const GTorchInvoker gtorch_op_invokers[];
/* The invokers of the in-place forms, whose result is input 0; NULL where there is none. */
extern const GTorchInvoker gtorch_op_in_place_invokers[];
extern const GTorchOpSample gtorch_op_samples[];
extern const guint gtorch_n_op_samples;

G_END_DECLS
