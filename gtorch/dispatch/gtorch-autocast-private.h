/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/dispatch/gtorch-autocast.h>
#include <gtorch/stream/gtorch-stream-private.h>
#include <gtorch/dispatch/gtorch-op-private.h>

G_BEGIN_DECLS

/* Returns whether mixed precision is on in this thread. gtorch_op_run () and the generated functions of
 * composite operations call this; the operation's row says what is cast (GTORCH_AUTOCAST_POLICY). In-place
 * operations ignore mixed precision. */
static inline gboolean
gtorch_autocast_is_on (void)
{
  return gtorch_thread.autocast.any != 0;
}

/* The settings of a region of mixed precision. */
typedef struct
{
  GTorchAutocastDTypes dtypes;
  gboolean is_lean;
} GTorchAutocastRegion;

/* The state of a call between gtorch_autocast_begin () and gtorch_autocast_end (). */
typedef struct
{
  GTorchImpl *const *inputs; /* inputs for the call, cast where necessary */
  gboolean wants_float32;    /* an omitted argument called dtype is float32 */
  gboolean is_active;
  guint n_inputs;
  GTorchChange off;
  GTorchImpl **owned; /* the casts; NULL where the input is used unchanged */
  GTorchImpl *room[2 * 6];
} GTorchAutocastCall;

/* Casts inputs as the row says, and turns mixed precision off until gtorch_autocast_end (), which must be
 * called if and only if this succeeds. */
gboolean gtorch_autocast_begin (GTorchAutocastCall *call, const GTorchOpClass *op,
                                GTorchImpl *const *inputs, guint n_inputs, GError **error);
void gtorch_autocast_end (GTorchAutocastCall *call);

/* Get the present settings; change to settings, later or in another thread; change to no mixed
 * precision. */
void gtorch_autocast_get (GTorchAutocastRegion *region);
void gtorch_autocast_change_to (GTorchChange *change, const GTorchAutocastRegion *region);
void gtorch_autocast_change_to_off (GTorchChange *change);
/* Decrements gtorch_thread.n_regions; the end of the last region drops the cached casts of parameters. */
void gtorch_autocast_region_ended (void);

/* Returns whether a region of this device type would cast the tensor. */
gboolean gtorch_autocast_takes (const GTorchImpl *impl, guint device_type);

G_END_DECLS
