/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include "gtorch-ops-private.h"

G_BEGIN_DECLS

/* A formula of several operations. It owns the intermediate results, and after the first error it computes
 * nothing more: each further step returns NULL. */
#define GTORCH_FORMULA_MAX 96

typedef struct
{
  GTorchImpl *kept[GTORCH_FORMULA_MAX];
  guint n;
  gboolean failed;
  GError **error;
} GTorchFormula;

#define GTORCH_FORMULA_INIT(location)            \
  {                                              \
    .n = 0, .failed = FALSE, .error = (location) \
  }

/* Takes the reference, and returns the tensor as one that the formula owns. */
static inline GTorchImpl *
gtorch_formula_keep (GTorchFormula *self, GTorchImpl *impl)
{
  if (impl == NULL)
    {
      self->failed = TRUE;
      return NULL;
    }
  g_assert (self->n < GTORCH_FORMULA_MAX);
  return self->kept[self->n++] = impl;
}

/* Returns a new reference to the result, NULL after an error. */
static inline GTorchImpl *
gtorch_formula_take (GTorchFormula *self, GTorchImpl *impl)
{
  return self->failed ? NULL : gtorch_impl_ref (impl);
}

static inline void
gtorch_formula_clear (GTorchFormula *self)
{
  while (self->n > 0)
    gtorch_impl_unref (self->kept[--self->n]);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchFormula, gtorch_formula_clear)

/* Evaluates the operation with the arguments, which the error location follows. An argument must not be
 * such a call. */
#define GTORCH_FORMULA_OP(self, name, ...) \
  gtorch_formula_keep (self, (self)->failed ? NULL : gtorch_op_##name (__VA_ARGS__, (self)->error))

/* Returns the conjugate transposes of the matrices. */
static inline GTorchImpl *
gtorch_formula_adjoint (GTorchFormula *self, GTorchImpl *x)
{
  GTorchImpl *swapped = GTORCH_FORMULA_OP (self, swap_matrix, x);

  return GTORCH_FORMULA_OP (self, conj, swapped);
}

static inline GTorchImpl *
gtorch_formula_number (GTorchFormula *self, gdouble value)
{
  return gtorch_formula_keep (self, gtorch_impl_new_number (value));
}

G_END_DECLS
