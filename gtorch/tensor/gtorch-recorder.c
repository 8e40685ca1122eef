/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* What a tensor knows about its gradient without the code that records and computes gradients. */

#include "config.h"

#include "tensor/gtorch-recorder-private.h"

#include "base/gtorch-references-private.h"

const GTorchRecorder *gtorch_recorder;

gboolean
gtorch_impl_requires_grad (GTorchImpl *impl)
{
  GTorchAutograd *autograd = impl->autograd;

  if (autograd == NULL)
    return FALSE;
  if (autograd->base != NULL && G_UNLIKELY (gtorch_autograd_is_outdated (autograd)))
    gtorch_recorder->regenerate (impl);
  return autograd->grad_fn != NULL || autograd->requires_grad;
}

static gboolean
has_own_tangent (const GTorchImpl *impl)
{
  const GTorchAutograd *autograd = impl->autograd;

  return autograd != NULL && autograd->tangent != NULL
         && __atomic_load_n (&autograd->tangent->value, __ATOMIC_ACQUIRE) != NULL;
}

gboolean
gtorch_impl_has_tangent (const GTorchImpl *impl)
{
  return has_own_tangent (impl)
         || (impl->autograd != NULL && impl->autograd->base != NULL && !impl->autograd->is_primal
             && has_own_tangent (impl->autograd->base));
}

gboolean
gtorch_impl_is_leaf (GTorchImpl *impl)
{
  return !gtorch_impl_requires_grad (impl) || impl->autograd->grad_fn == NULL;
}

/* --- references --- */

static gint
impl_references (gconstpointer impl)
{
  return g_atomic_int_get (&((GTorchImpl *) impl)->ref_count);
}

static gpointer
impl_ref (gpointer impl)
{
  return gtorch_impl_ref (impl);
}

static void
impl_unref (gpointer impl)
{
  gtorch_impl_unref (impl);
}

static void
impl_look (gpointer impl, GTorchReferences *references)
{
  GTorchAutograd *autograd = __atomic_load_n (&((GTorchImpl *) impl)->autograd, __ATOMIC_ACQUIRE);

  if (autograd != NULL)
    gtorch_recorder->add_references (autograd, references);
}

static const GTorchReferencesKind impl_kind = { impl_references, impl_ref, impl_unref, impl_look };

void
gtorch_references_add_impl (GTorchReferences *references, GTorchImpl *impl)
{
  if (gtorch_references_has_graph (references))
    gtorch_references_add (references, &impl_kind, impl);
}
