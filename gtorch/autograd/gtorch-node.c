/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#include "config.h"

#include <string.h>

#include "gtorch-autograd-private.h"

static __thread guint64 next_sequence;

GTorchNode *
gtorch_node_init (GTorchNode *node, const GTorchNodeClass *klass, const gchar *name, guint n_edges,
                  guint n_outputs)
{
  node->ref_count = 1;
  node->klass = klass;
  node->name = name;
  node->n_edges = n_edges;
  node->n_outputs = n_outputs;
  node->sequence = ++next_sequence;
  return node;
}

GTorchNode *
gtorch_node_ref (GTorchNode *node)
{
  g_atomic_int_inc (&node->ref_count);
  return node;
}

static void
hooks_free (GArray *hooks)
{
  guint i;

  for (i = 0; i < hooks->len; i++)
    {
      GTorchHook *hook = &g_array_index (hooks, GTorchHook, i);

      if (hook->destroy != NULL)
        hook->destroy (hook->user_data);
    }
  g_array_unref (hooks);
}

/* What a node owns may own the last reference of further nodes, and so on along a chain of any length. The
 * outermost call in a thread collects them in a list and frees one after the other. */
static __thread GTorchNode *dying;
static __thread gboolean is_freeing;

void
gtorch_node_unref (GTorchNode *node)
{
  if (!g_atomic_int_dec_and_test (&node->ref_count))
    return;
  node->next_to_free = dying;
  dying = node;
  if (is_freeing)
    return;

  is_freeing = TRUE;
  while ((node = dying) != NULL)
    {
      guint i;

      dying = node->next_to_free;
      if (!node->is_released)
        node->klass->release (node);
      for (i = 0; i < node->n_edges; i++)
        {
          if (node->edges[i].node != NULL)
            gtorch_node_unref (node->edges[i].node);
          if (node->edges[i].leaf != NULL)
            gtorch_impl_unref (node->edges[i].leaf);
        }
      g_clear_pointer (&node->hooks, hooks_free);
      g_clear_pointer (&node->retained, g_ptr_array_unref);
      g_free (node);
    }
  is_freeing = FALSE;
}

void
gtorch_meta_init (GTorchMeta *meta, const GTorchImpl *impl, gint64 *shape)
{
  meta->device = gtorch_impl_device (impl);
  meta->dtype = impl->dtype;
  meta->n_dims = impl->n_dims;
  meta->numel = impl->numel;
  meta->shape = shape;
  memcpy (shape, impl->shape, impl->n_dims * sizeof (gint64));
}

void
gtorch_node_set_edge (GTorchNode *node, guint i, GTorchImpl *input)
{
  GTorchEdge *edge = &node->edges[i];

  if (input == NULL || !gtorch_impl_requires_grad (input))
    return;
  if (input->autograd->grad_fn != NULL)
    {
      edge->node = gtorch_node_ref (input->autograd->grad_fn);
      edge->index = input->autograd->index;
    }
  else
    edge->leaf = gtorch_impl_ref (input);
}

void
gtorch_node_set_output (GTorchNode *node, guint index, GTorchImpl *output)
{
  GTorchAutograd *autograd = gtorch_autograd_ensure (output);

  g_clear_pointer (&autograd->grad_fn, gtorch_node_unref);
  autograd->grad_fn = gtorch_node_ref (node);
  autograd->index = index;
}

GTorchAutograd *
gtorch_autograd_ensure (GTorchImpl *impl)
{
  if (impl->autograd == NULL)
    impl->autograd = g_new0 (GTorchAutograd, 1);
  return impl->autograd;
}

void
gtorch_autograd_free (GTorchImpl *impl)
{
  GTorchAutograd *autograd = g_steal_pointer (&impl->autograd);

  if (autograd == NULL)
    return;
  if (autograd->retains_grad && autograd->grad_fn != NULL && autograd->grad_fn->retained != NULL)
    autograd->grad_fn->retained->pdata[autograd->index] = NULL;
  g_clear_pointer (&autograd->grad, gtorch_impl_unref);
  g_clear_pointer (&autograd->base, gtorch_impl_unref);
  g_clear_pointer (&autograd->hooks, hooks_free);
  g_clear_pointer (&autograd->accumulated_hooks, hooks_free);
  g_clear_pointer (&autograd->grad_fn, gtorch_node_unref);
  g_free (autograd);
}

gboolean
gtorch_impl_requires_grad (GTorchImpl *impl)
{
  GTorchAutograd *autograd = impl->autograd;

  if (autograd == NULL)
    return FALSE;
  if (autograd->base != NULL && impl->storage != NULL
      && autograd->base_version != impl->storage->version)
    gtorch_autograd_regenerate (impl);
  return autograd->grad_fn != NULL || autograd->requires_grad;
}

gboolean
gtorch_impl_is_leaf (GTorchImpl *impl)
{
  return !gtorch_impl_requires_grad (impl) || impl->autograd->grad_fn == NULL;
}
