/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Leaves that are a part of a tensor, of which other processes have the others. What is computed from one by
 * operations would be of this process alone, so that these are not recorded. */

#pragma once

#include <gtorch/autograd/gtorch-autograd-private.h>
#include <gtorch/base/gtorch-internal-private.h>

G_BEGIN_DECLS

/* The value of retains_grad, which a leaf has no other use for. */
#define GTORCH_LEAF_IS_PART 2

/* How many leaves were parts so far: operations look for them only where there are some. Atomic. */
extern gint gtorch_n_leaf_parts GTORCH_INTERNAL;

static inline void
gtorch_leaf_set_part (GTorchImpl *leaf, gboolean is_part)
{
  if (is_part)
    g_atomic_int_inc (&gtorch_n_leaf_parts);
  gtorch_autograd_ensure (leaf)->retains_grad = is_part ? GTORCH_LEAF_IS_PART : 0;
}

static inline gboolean
gtorch_leaf_is_part (const GTorchImpl *impl)
{
  return impl->autograd != NULL && impl->autograd->retains_grad == GTORCH_LEAF_IS_PART;
}

G_END_DECLS
