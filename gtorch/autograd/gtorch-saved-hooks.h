/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/tensor/gtorch-tensor.h>

G_BEGIN_DECLS

/**
 * GTorchSavedTensorsGuard:
 *
 * Keeps hooks for the tensors that operations of this thread save for their backward pass, for its lifetime.
 *
 * In C, `g_autoptr` ends it at the end of the block. Languages with a garbage collector call
 * [method@SavedTensorsGuard.end]. Guards nest, may end in any order, and each belongs to the thread that
 * created it; the hooks of the youngest are called.
 *
 * Since: 0.1
 */
typedef struct _GTorchSavedTensorsGuard GTorchSavedTensorsGuard;

/**
 * GTorchPackFunc:
 * @tensor: what is saved, without its history
 * @user_data: the data that was passed with the function
 * @error: return location for an error, with which the operation fails
 *
 * Gives what is kept in place of a saved tensor: a tensor, or any other object.
 *
 * Nothing is recorded meanwhile. @tensor must not be changed in place.
 *
 * Returns: (transfer full): the object, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GObject *(*GTorchPackFunc) (GTorchTensor *tensor, gpointer user_data, GError **error);

/**
 * GTorchUnpackFunc:
 * @packed: what the other function gave
 * @user_data: the data that was passed with the function
 * @error: return location for an error, with which the backward pass fails
 *
 * Gives back a saved tensor: with the elements, the shape and the dtype that it had, on its device.
 *
 * Returns: (transfer full): the tensor, or %NULL with @error set
 *
 * Since: 0.1
 */
typedef GTorchTensor *(*GTorchUnpackFunc) (GObject *packed, gpointer user_data, GError **error);

#define GTORCH_TYPE_SAVED_TENSORS_GUARD (gtorch_saved_tensors_guard_get_type ())

GTORCH_AVAILABLE_IN_0_1
GType gtorch_saved_tensors_guard_get_type (void) G_GNUC_CONST;
GTORCH_AVAILABLE_IN_0_1
GTorchSavedTensorsGuard *gtorch_saved_tensors_hooks (GTorchPackFunc pack, gpointer pack_data,
                                                     GDestroyNotify pack_destroy,
                                                     GTorchUnpackFunc unpack, gpointer unpack_data,
                                                     GDestroyNotify unpack_destroy,
                                                     GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSavedTensorsGuard *gtorch_save_on_cpu (gboolean pin_memory,
                                             GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
GTorchSavedTensorsGuard *
gtorch_disable_saved_tensors_hooks (const gchar *message, GError **error) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_saved_tensors_guard_end (GTorchSavedTensorsGuard *guard);
GTORCH_AVAILABLE_IN_0_1
GTorchSavedTensorsGuard *gtorch_saved_tensors_guard_ref (GTorchSavedTensorsGuard *guard);
GTORCH_AVAILABLE_IN_0_1
void gtorch_saved_tensors_guard_unref (GTorchSavedTensorsGuard *guard);

_GTORCH_DEFINE_GUARD_AUTOPTR (GTorchSavedTensorsGuard, gtorch_saved_tensors_guard_unref)

G_END_DECLS
