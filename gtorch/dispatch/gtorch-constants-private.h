/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/device/gtorch-choice-private.h>

G_BEGIN_DECLS

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (GTorchChange, gtorch_change_end)

/* A change until gtorch_change_end (): results are constants, neither recorded nor with tangents. For values
 * whose derivatives another operation has, and for statistics. */
static inline void
gtorch_change_to_constants (GTorchChange *self)
{
  gtorch_change_begin (self);
  gtorch_change_byte (self, &gtorch_thread.no_grad, TRUE);
  gtorch_change_byte (self, &gtorch_thread.no_forward, TRUE);
}

G_END_DECLS
