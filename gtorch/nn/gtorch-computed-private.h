/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Members of modules that are computed from other ones whenever they are used. */

#pragma once

#include <gtorch/nn/gtorch-module.h>
#include <gtorch/tensor/gtorch-impl-private.h>

G_BEGIN_DECLS

/* What a member is computed from. `name` stands for its own name. */
typedef enum
{
  GTORCH_COMPUTED_PARAMETRIZATION, /* by the child parametrizations.name */
  GTORCH_COMPUTED_WEIGHT_NORM,     /* from name_g and name_v */
  GTORCH_COMPUTED_SPECTRAL_NORM,   /* from name_orig and the buffers name_u and name_v */
  GTORCH_COMPUTED_MASK,            /* from name_orig and the buffer name_mask */
} GTorchComputedKind;

/* How a member is computed. It does not change, and has a reference count. */
typedef struct _GTorchComputed
{
  gint ref_count;
  GTorchComputedKind kind;
  gint64 dim; /* of both norms; that of a weight norm may be GTORCH_NONE */
  gint64 n_power_iterations;
  gdouble eps;
} GTorchComputed;

GTorchComputed *gtorch_computed_new (GTorchComputedKind kind, gint64 dim, gint64 n_power_iterations,
                                     gdouble eps);
GTorchComputed *gtorch_computed_ref (GTorchComputed *self);
void gtorch_computed_unref (GTorchComputed *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchComputed, gtorch_computed_unref)

/* Computes the member of this name. */
GTorchTensor *gtorch_computed_run (const GTorchComputed *self, GTorchModule *module,
                                   const gchar *name, GError **error);

/* Returns how the member is computed; NULL if it is not, or if there is none. A new reference. */
GTorchComputed *gtorch_module_dup_computed (GTorchModule *self, const gchar *name);
/* Lets a parameter or buffer be computed, or be a tensor again. */
void gtorch_module_put_computed (GTorchModule *self, const gchar *name, GTorchComputed *computed);
void gtorch_module_end_computed (GTorchModule *self, const gchar *name, GTorchTensor *tensor);
/* Returns the parameter, or with `buffers` perhaps the buffer, of this module that is to be computed from now
 * on. A new reference; NULL with an error if there is none, or if it cannot be computed. */
GTorchTensor *gtorch_module_dup_computable (GTorchModule *self, const gchar *name, gboolean buffers,
                                            GError **error);
/* Returns the tensor `name` + suffix of a member that is computed. A new reference. */
GTorchTensor *gtorch_module_dup_source (GTorchModule *self, const gchar *name, const gchar *suffix,
                                        GError **error);

/* Makes the member a parameter again, with its value, instead of what it is computed from: the members whose
 * names end so. It stays the one of `name_orig`. `what` is how the error calls the kind. */
gboolean gtorch_module_settle_computed (GTorchModule *self, const gchar *name,
                                        GTorchComputedKind kind, const gchar *what,
                                        const gchar *const *suffixes, GError **error);

/* --- norms --- */

/* Returns the norms of the slices along dim, in the shape of x with 1 for the other dimensions; with
 * GTORCH_NONE that of all of x. */
GTorchImpl *gtorch_norm_except_dim (GTorchImpl *x, gint64 dim, GError **error);
/* Returns x g / norm. */
GTorchImpl *gtorch_weight_norm_compute (GTorchImpl *g, GTorchImpl *v, gint64 dim, GError **error);
/* Returns the weight as a matrix with a row for each index of dim. */
GTorchImpl *gtorch_spectral_matrix (GTorchImpl *weight, gint64 dim, GError **error);
/* Returns a vector with norm 1 of random direction, for a matrix. */
GTorchImpl *gtorch_spectral_draw (GTorchImpl *matrix, gint64 n, gdouble eps, GError **error);
/* Makes so many steps in place, in each of which u or v is computed first. */
gboolean gtorch_spectral_iterate (GTorchImpl *matrix, GTorchImpl *u, GTorchImpl *v, gint64 n,
                                  gboolean u_first, gdouble eps, GError **error);
/* Returns weight / (u · matrix v). */
GTorchImpl *gtorch_spectral_divide (GTorchImpl *weight, GTorchImpl *matrix, GTorchImpl *u,
                                    GTorchImpl *v, GError **error);
/* Normalizes a dimension, which may be negative. Fails with INDEX. */
gboolean gtorch_computed_check_dim (const gchar *who, gint64 *dim, guint n_dims, GError **error);
/* Returns the dimension of a weight whose slices belong to one output each. */
gint64 gtorch_computed_output_dim (GTorchModule *module);

G_END_DECLS
