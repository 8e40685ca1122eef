/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/dispatch/gtorch-autocast.h>
#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* Mixed precision. gtorch_op_run () and the generated functions of composite operations ask whether
 * anything is to be cast in this thread; what an operation then does is in its row
 * (GTORCH_AUTOCAST_POLICY). In-place operations never ask. */
static inline gboolean
gtorch_autocast_is_on (void)
{
  return gtorch_thread.autocast.any != 0;
}

/* What a region of mixed precision sets. */
typedef struct
{
  GTorchAutocastDTypes dtypes;
  gboolean is_lean;
} GTorchAutocastRegion;

/* A call on its way to the operation. */
typedef struct
{
  GTorchImpl *const *inputs; /* to call it with */
  gboolean wants_float32;    /* an argument called dtype that was not given is float32 */
  gboolean is_active;
  guint n_inputs;
  GTorchChange off;
  GTorchImpl **owned; /* NULL where the input was left as it is */
  GTorchImpl *room[2 * 6];
} GTorchAutocastCall;

/* Casts inputs as the row says, and turns autocast off until gtorch_autocast_end (), which comes only after
 * success. */
gboolean gtorch_autocast_begin (GTorchAutocastCall *call, const GTorchOpClass *op,
                                GTorchImpl *const *inputs, guint n_inputs, GError **error);
void gtorch_autocast_end (GTorchAutocastCall *call);

/* What is on now, and a change to that, later or in another thread; one to nothing that is cast. */
void gtorch_autocast_get (GTorchAutocastRegion *region);
void gtorch_autocast_change_to (GTorchChange *change, const GTorchAutocastRegion *region);
void gtorch_autocast_change_to_off (GTorchChange *change);
/* One of gtorch_thread.n_regions; the casts of parameters go with the last one. */
void gtorch_autocast_region_ended (void);

/* Whether a region of this device's type would cast the tensor. */
gboolean gtorch_autocast_takes (const GTorchImpl *impl, guint device_type);

G_END_DECLS
