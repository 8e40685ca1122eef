/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/gtorch-autocast.h>
#include <gtorch/gtorch-op-private.h>
#include <gtorch/gtorch-stream-private.h>

G_BEGIN_DECLS

/* A region of mixed precision. gtorch_op_run () and the generated functions of composite operations ask
 * gtorch_thread.autocast, which is NULL while nothing is to be cast; what an operation then does is in its
 * row (GTORCH_AUTOCAST_POLICY). In-place operations never ask. */
struct _GTorchAutocastRegion
{
  guint8 dtypes[GTORCH_N_DEVICE_TYPES]; /* GTORCH_DTYPE_NONE: off */
  gboolean caches;
  GTorchAutocastRegion *below;
};

/* A call on its way to the operation. */
typedef struct
{
  GTorchImpl *const *inputs; /* to call it with */
  gboolean wants_float32;    /* an argument called dtype that was not given is float32 */
  gboolean is_active;
  guint n_inputs;
  GTorchAutocastRegion off;
  GTorchImpl **owned; /* NULL where the input was left as it is */
  GTorchImpl *room[2 * 6];
} GTorchAutocastCall;

/* Casts inputs as the row says, and turns autocast off until gtorch_autocast_end (), which comes only after
 * success. */
gboolean gtorch_autocast_begin (GTorchAutocastCall *call, const GTorchOpClass *op,
                                GTorchImpl *const *inputs, guint n_inputs, GError **error);
void gtorch_autocast_end (GTorchAutocastCall *call);

/* The innermost region from now on; it is the caller's memory. Regions may be popped in any order. */
void gtorch_autocast_push (GTorchAutocastRegion *region);
void gtorch_autocast_pop (GTorchAutocastRegion *region);
/* A region in which nothing is cast. */
void gtorch_autocast_push_off (GTorchAutocastRegion *region);
/* What is on now, for a region that begins later or in another thread. */
void gtorch_autocast_get (GTorchAutocastRegion *region);

/* Whether a region of this device's type would cast the tensor. */
gboolean gtorch_autocast_takes (const GTorchImpl *impl, guint device_type);

/* At the end of a thread. */
void gtorch_autocast_clear (void);

G_END_DECLS
