/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/nn/gtorch-parametrization-list.h>
#include <gtorch/nn/gtorch-parametrize.h>

G_BEGIN_DECLS

/* Returns the list that computes a tensor of the module. A new reference. */
GTorchParametrizationList *gtorch_parametrizations_get (GTorchModule *module, const gchar *name,
                                                        GError **error);

/* While gtorch_parametrize_begin_cache () is in effect: a computed tensor, a new reference; else NULL. */
GTorchTensor *gtorch_parametrize_cache_look_up (GTorchModule *module, const gchar *name);
void gtorch_parametrize_cache_insert (GTorchModule *module, const gchar *name,
                                      GTorchTensor *tensor);

/* Creates the list for a tensor, which stays as it is, with its first parametrization. What the list computes
 * the tensor from becomes parameters if `original` is one. */
GTorchParametrizationList *gtorch_parametrization_list_make (GTorchTensor *original,
                                                             GTorchModule *parametrization,
                                                             gboolean unsafe, GError **error);
/* Lets `original`, the tensor that the list was made for, be the only one that it computes from, if there is
 * one only. */
gboolean gtorch_parametrization_list_adopt (GTorchParametrizationList *self, GTorchTensor *original,
                                            GError **error);
/* Adds a further parametrization of `value`, what the list computes at present. */
gboolean gtorch_parametrization_list_add (GTorchParametrizationList *self,
                                          GTorchModule *parametrization, GTorchTensor *value,
                                          gboolean unsafe, GError **error);
/* Returns the only tensor that the list computes from, or NULL. A new reference. */
GTorchTensor *gtorch_parametrization_list_dup_original (GTorchParametrizationList *self);
/* Gives a tensor, which stays the same object, the elements of another one; the shape may change. */
gboolean gtorch_tensor_put_value (const gchar *who, GTorchTensor *tensor, GTorchTensor *value,
                                  GError **error);

G_END_DECLS
