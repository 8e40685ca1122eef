/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tensors of which other processes have other parts. What computes one number from many tensors asks here
 * whether the other processes have a share in it. */

#pragma once

#include <gtorch/tensor/gtorch-impl-private.h>
#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

typedef enum
{
  GTORCH_SPREAD_SUM,
  GTORCH_SPREAD_MIN,
  GTORCH_SPREAD_MAX,
} GTorchSpreadOp;

typedef struct
{
  /* Returns what stands for the processes, one pointer for the same ones; NULL if the tensor is whole. */
  gpointer (*find) (GTorchTensor *tensor);
  /* The same for a tensor that may also be the gradient of a parameter, which takes longer. */
  gpointer (*find_value) (GTorchTensor *tensor);
  /* A tensor of the shape of a parameter, such as its moments, is spread as that is. */
  void (*share) (GTorchTensor *tensor, GTorchTensor *param);
  /* Returns one number from those of all processes, which call this in the same order, on its device. */
  GTorchImpl *(*reduce) (gpointer processes, GTorchImpl *number, GTorchSpreadOp op, GError **error);
} GTorchSpread;

/* Set by a folder below; NULL until then. */
extern const GTorchSpread *gtorch_spread;

static inline gpointer
gtorch_spread_find (GTorchTensor *tensor)
{
  return gtorch_spread == NULL ? NULL : gtorch_spread->find (tensor);
}

/* For optimizers that need the whole of each parameter: fails if one is spread over processes. */
gboolean gtorch_spread_check_whole (const gchar *who, GPtrArray *params, GError **error);

G_END_DECLS
