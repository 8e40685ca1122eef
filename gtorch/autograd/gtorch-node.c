/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Nodes of the backward graph, and the autograd state of impls. */

#include "config.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "autograd/gtorch-autograd-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-references-private.h"
#include "stream/gtorch-stream-private.h"

static __thread guint64 last_sequence;

guint64
gtorch_node_get_last_sequence (void)
{
  return last_sequence;
}

GTorchNode *
gtorch_node_init (GTorchNode *node, const GTorchNodeClass *klass, const gchar *name, guint n_edges,
                  guint n_outputs)
{
  node->ref_count = 1;
  node->klass = klass;
  node->name = name;
  node->n_edges = n_edges;
  node->n_outputs = n_outputs;
  node->sequence = ++last_sequence;
  if (G_UNLIKELY (g_atomic_int_get (&gtorch_anomaly) > 0))
    gtorch_anomaly_note_site (node);
  return node;
}

GTorchNode *
gtorch_node_ref (GTorchNode *node)
{
  g_atomic_int_inc (&node->ref_count);
  return node;
}

/* Freeing a node may drop the last reference to further nodes, and so on along a chain of any length. The
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
      node->klass->release (node);
      node->klass->finalize (node);
      for (i = 0; i < node->n_edges; i++)
        {
          if (node->edges[i].node != NULL)
            gtorch_node_unref (node->edges[i].node);
          if (node->edges[i].leaf != NULL)
            gtorch_impl_unref (node->edges[i].leaf);
        }
      g_clear_object (&node->stream);
      if (node->extra != NULL)
        {
          for (i = 0; i < node->extra->n_places; i++)
            g_clear_object (&node->extra->places[i].stream);
          g_free (node->extra->places);
          g_clear_pointer (&node->extra->hooks, gtorch_hooks_free);
          g_free (node->extra->retained);
          g_free (node->extra->site);
          g_free (node->extra->place);
          g_free (node->extra);
        }
      g_free (node);
    }
  is_freeing = FALSE;
}

void
gtorch_node_error_released (GTorchNode *node, GError **error)
{
  g_set_error (error, GTORCH_ERROR, GTORCH_ERROR_AUTOGRAD,
               _ ("what %s had saved was freed by an earlier backward: pass retain_graph "
                  "to the first backward to call it twice"),
               node->name);
}

void
gtorch_meta_borrow (GTorchMeta *meta, const GTorchImpl *impl)
{
  meta->device = gtorch_impl_device (impl);
  meta->dtype = impl->dtype;
  meta->n_dims = impl->n_dims;
  meta->numel = impl->numel;
  meta->shape = impl->shape;
}

void
gtorch_meta_init (GTorchMeta *meta, const GTorchImpl *impl, gint64 *shape)
{
  guint i;

  gtorch_meta_borrow (meta, impl);
  meta->shape = shape;
  for (i = 0; i < impl->n_dims; i++)
    shape[i] = impl->shape[i];
}

/* Makes the sequence of node greater than that of another one. Threads count independently; where their
 * graphs meet, the later node still gets the higher number. */
static void
come_after (GTorchNode *node, const GTorchNode *other)
{
  if (G_LIKELY (node->sequence > other->sequence))
    return;
  node->sequence = other->sequence + 1;
  last_sequence = MAX (last_sequence, node->sequence);
}

void
gtorch_node_set_edge (GTorchNode *node, guint i, GTorchImpl *input)
{
  GTorchEdge *edge = &node->edges[i];

  if (input == NULL || input->autograd == NULL || !gtorch_impl_requires_grad (input))
    return;
  if (input->autograd->grad_fn != NULL)
    {
      edge->node = gtorch_node_ref (input->autograd->grad_fn);
      edge->index = input->autograd->index;
      come_after (node, edge->node);
    }
  else
    edge->leaf = gtorch_impl_ref (input);
}

void
gtorch_node_copy_edge (GTorchNode *node, guint i, const GTorchEdge *edge)
{
  node->edges[i] = *edge;
  if (edge->node != NULL)
    {
      gtorch_node_ref (edge->node);
      come_after (node, edge->node);
    }
  if (edge->leaf != NULL)
    gtorch_impl_ref (edge->leaf);
}

GTorchNodeExtra *
gtorch_node_ensure_extra (GTorchNode *node)
{
  gtorch_node_lock (node);
  if (node->extra == NULL)
    node->extra = g_new0 (GTorchNodeExtra, 1);
  gtorch_node_unlock (node);
  return node->extra;
}

void
gtorch_node_add_place (GTorchNode *node, GTorchDevice *device)
{
  GTorchNodeExtra *extra = gtorch_node_ensure_extra (node);
  GTorchStream *stream = gtorch_current_stream (device);
  guint i;

  for (i = 0; i < extra->n_places; i++)
    if (extra->places[i].device == device)
      return;
  extra->places = g_renew (GTorchPlace, extra->places, extra->n_places + 1);
  extra->places[extra->n_places++] =
      (GTorchPlace){ device, stream != NULL ? g_object_ref (stream) : NULL };
}

/* Protects the pointers to retaining impls. A node does not own such an impl: when the impl is freed, it
 * removes itself from the node, under this lock. */
static GMutex retained_lock;
GTORCH_FORK_LOCK (retained_lock);

void
gtorch_node_set_retained (GTorchNode *node, guint index, GTorchImpl *impl)
{
  GTorchNodeExtra *extra = gtorch_node_ensure_extra (node);

  g_mutex_lock (&retained_lock);
  if (extra->retained == NULL)
    extra->retained = g_new0 (GTorchImpl *, node->n_outputs);
  extra->retained[index] = impl;
  g_mutex_unlock (&retained_lock);
}

GTorchImpl *
gtorch_node_get_retained (GTorchNode *node, guint index)
{
  GTorchImpl *impl = NULL;
  gint count;

  if (G_LIKELY (node->extra == NULL))
    return NULL;
  g_mutex_lock (&retained_lock);
  if (node->extra->retained != NULL)
    impl = node->extra->retained[index];
  if (impl != NULL)
    {
      count = g_atomic_int_get (&impl->ref_count);
      while (count > 0
             && !__atomic_compare_exchange_n (&impl->ref_count, &count, count + 1, FALSE,
                                              __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
      if (count == 0)
        impl = NULL; /* being freed: it is about to remove itself */
    }
  g_mutex_unlock (&retained_lock);
  return impl;
}

void
gtorch_node_set_output (GTorchNode *node, guint index, GTorchImpl *output)
{
  GTorchAutograd *autograd = gtorch_autograd_ensure (output);
  GTorchNode *former = autograd->grad_fn;

  if (G_LIKELY (former == NULL))
    __atomic_store_n (&autograd->grad_fn, gtorch_node_ref (node), __ATOMIC_RELEASE);
  else
    {
      gtorch_references_lock ();
      autograd->grad_fn = gtorch_node_ref (node);
      gtorch_references_unlock ();
    }
  if (G_UNLIKELY (autograd->retains_grad))
    {
      if (former != NULL)
        gtorch_node_set_retained (former, autograd->index, NULL);
      gtorch_node_set_retained (node, index, output);
    }
  autograd->index = index;
  if (former != NULL)
    gtorch_node_unref (former);
}

void
gtorch_node_unset_output (GTorchImpl *output)
{
  GTorchAutograd *autograd = output->autograd;
  GTorchNode *former = autograd->grad_fn;

  if (former == NULL)
    return;
  gtorch_references_lock ();
  autograd->grad_fn = NULL;
  gtorch_references_unlock ();
  if (autograd->retains_grad)
    gtorch_node_set_retained (former, autograd->index, NULL);
  gtorch_node_unref (former);
}

/* --- impls --- */

/* A pool of autograd states. Every recorded result and every view has one, so each thread keeps some freed
 * ones. */
#define POOL_SIZE 64

static __thread GTorchAutograd *pool; /* linked by grad_fn */
static __thread guint pool_length;
static __thread gboolean pool_registered;

static void
pool_drain (gpointer data)
{
  while (pool != NULL)
    {
      GTorchAutograd *autograd = pool;

      pool = (GTorchAutograd *) autograd->grad_fn;
      g_free (autograd);
    }
  pool_length = POOL_SIZE; /* states freed later in this thread are not pooled */
}

static GPrivate pool_cleanup = G_PRIVATE_INIT (pool_drain);

GTorchAutograd *
gtorch_autograd_ensure (GTorchImpl *impl)
{
  GTorchAutograd *autograd;

  if (impl->autograd != NULL)
    return impl->autograd;
  if (G_LIKELY (pool != NULL))
    {
      autograd = pool;
      pool = (GTorchAutograd *) pool->grad_fn;
      pool_length--;
      memset (autograd, 0, sizeof (GTorchAutograd));
    }
  else
    autograd = g_new0 (GTorchAutograd, 1);
  g_mutex_init (&autograd->lock);
  __atomic_store_n (&impl->autograd, autograd, __ATOMIC_RELEASE); /* read by gtorch-references.c */
  return autograd;
}

void
gtorch_autograd_destroy (GTorchAutograd *autograd)
{
  if (autograd->retains_grad && autograd->grad_fn != NULL)
    gtorch_node_set_retained (autograd->grad_fn, autograd->index, NULL);
  g_clear_pointer (&autograd->grad, gtorch_impl_unref);
  g_clear_object (&autograd->grad_stream);
  g_clear_pointer (&autograd->base, gtorch_impl_unref);
  g_clear_pointer (&autograd->tangent, gtorch_tangent_unref);
  g_clear_pointer (&autograd->hooks, gtorch_hooks_free);
  g_clear_pointer (&autograd->grad_fn, gtorch_node_unref);
  g_mutex_clear (&autograd->lock);
#ifndef __SANITIZE_ADDRESS__
  if (G_LIKELY (pool_length < POOL_SIZE))
    {
      if (G_UNLIKELY (!pool_registered))
        {
          pool_registered = TRUE;
          g_private_set (&pool_cleanup, &pool);
        }
      autograd->grad_fn = (GTorchNode *) pool;
      pool = autograd;
      pool_length++;
      return;
    }
#endif
  g_free (autograd);
}

/* --- saved tensors --- */

/* The node of a saved leaf that is not the same tensor any more: it has other memory, or has become a
 * non-leaf. The node passes the gradient on to the leaf. */
typedef struct
{
  GTorchNode node;
  GTorchEdge edge;
  GTorchMeta meta;
  gint64 shape[GTORCH_MAX_DIMS];
} FormerNode;

static gboolean
former_apply (GTorchNode *node, GTorchImpl *const *grads, const gboolean *needs,
              GTorchImpl **results, GError **error)
{
  if (needs[0] && grads[0] != NULL)
    results[0] = gtorch_impl_ref (grads[0]);
  return TRUE;
}

static void
former_nothing (GTorchNode *node)
{
}

static const GTorchNodeClass former_class = { former_apply, former_nothing, former_nothing };

static GTorchNode *
former_node_new (GTorchImpl *leaf, const GTorchImpl *former)
{
  FormerNode *self = g_new0 (FormerNode, 1);

  gtorch_node_init (&self->node, &former_class, "former_leaf", 1, 1);
  self->node.edges = &self->edge;
  self->edge.leaf = gtorch_impl_ref (leaf);
  gtorch_meta_init (&self->meta, former, self->shape);
  self->node.output_metas = &self->meta;
  self->node.stream = gtorch_current_stream (self->meta.device);
  if (self->node.stream != NULL)
    g_object_ref (self->node.stream);
  return &self->node;
}

GTorchImpl *
gtorch_edge_attach (const GTorchEdge *edge, GTorchImpl *unpacked)
{
  g_autoptr (GTorchNode) former = NULL;

  if (edge->leaf != NULL && gtorch_impl_is_leaf (edge->leaf)
      && gtorch_impl_is_same_place (edge->leaf, unpacked))
    {
      gtorch_impl_unref (unpacked);
      return gtorch_impl_ref (edge->leaf);
    }
  if (edge->leaf != NULL)
    {
      former = former_node_new (edge->leaf, unpacked);
      gtorch_node_set_output (former, 0, unpacked);
    }
  else if (edge->node != NULL)
    {
      gtorch_node_set_output (edge->node, edge->index, unpacked);
    }
  return unpacked;
}

/* --- references --- */

static gint
node_references (gconstpointer node)
{
  return g_atomic_int_get (&((GTorchNode *) node)->ref_count);
}

static gpointer
node_ref (gpointer node)
{
  return gtorch_node_ref (node);
}

static void
node_unref (gpointer node)
{
  gtorch_node_unref (node);
}

static void node_look (gpointer node, GTorchReferences *references);

static const GTorchReferencesKind node_kind = { node_references, node_ref, node_unref, node_look };

/* Adds the references of the history and the hooks. The grad is omitted: it has references of its own only
 * with create_graph. */
void
gtorch_autograd_add_references (GTorchAutograd *autograd, GTorchReferences *references)
{
  GPtrArray *hooks = g_atomic_pointer_get (&autograd->hooks);

  gtorch_references_add (references, &node_kind,
                         __atomic_load_n (&autograd->grad_fn, __ATOMIC_ACQUIRE));
  gtorch_references_add_impl (references, autograd->base);
  if (hooks != NULL)
    gtorch_hooks_add_references (hooks, references);
}

static void
node_look (gpointer thing, GTorchReferences *references)
{
  GTorchNode *node = thing;
  GTorchNodeExtra *extra = g_atomic_pointer_get (&node->extra);
  GPtrArray *hooks = extra != NULL ? g_atomic_pointer_get (&extra->hooks) : NULL;
  guint i;

  for (i = 0; i < node->n_edges; i++)
    {
      gtorch_references_add (references, &node_kind, node->edges[i].node);
      gtorch_references_add_impl (references, node->edges[i].leaf);
    }
  if (hooks != NULL)
    gtorch_hooks_add_references (hooks, references);
  gtorch_function_node_add_references (node, references);
}
