/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <glib-object.h>

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/**
 * GTorchReferencesProxyFunc: (skip)
 * @object: an object of the library
 *
 * Finds the proxy of an object in the other language, which lives as long as the object.
 *
 * Returns: (nullable): the proxy, or %NULL if there is none
 *
 * Since: 0.1
 */
typedef gpointer (*GTorchReferencesProxyFunc) (GObject *object);

/**
 * GTorchReferencesExtraFunc: (skip)
 * @references: the count
 * @object: an object whose references are being counted
 *
 * Calls [method@References.add_value] for values that the other language has attached to an object in its
 * own ways.
 *
 * Since: 0.1
 */
typedef void (*GTorchReferencesExtraFunc) (GTorchReferences *references, GObject *object);

/**
 * GTorchReferencesFunc: (skip)
 * @value: a proxy, or the data of a hook
 * @user_data: the data that was passed with the function
 *
 * A function that is called for each value of the other language that an object leads to.
 *
 * Since: 0.1
 */
typedef void (*GTorchReferencesFunc) (gpointer value, gpointer user_data);

GTORCH_AVAILABLE_IN_0_1
GTorchReferences *gtorch_references_new (GTorchReferencesProxyFunc proxy,
                                         GTorchReferencesExtraFunc extra,
                                         GDestroyNotify destroy) G_GNUC_WARN_UNUSED_RESULT;
GTORCH_AVAILABLE_IN_0_1
void gtorch_references_free (GTorchReferences *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_references_begin (GTorchReferences *self);
GTORCH_AVAILABLE_IN_0_1
void gtorch_references_count (GTorchReferences *self, GObject *object, GTorchReferencesFunc func,
                              gpointer user_data);
GTORCH_AVAILABLE_IN_0_1
void gtorch_references_add_value (GTorchReferences *self, gpointer value);
GTORCH_AVAILABLE_IN_0_1
void gtorch_references_follow (GTorchReferences *self, GObject *object, GTorchReferencesFunc func,
                               gpointer user_data);

G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchReferences, gtorch_references_free)

G_END_DECLS
