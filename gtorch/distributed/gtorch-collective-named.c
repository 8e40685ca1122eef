/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Operations of groups as observers are told of them: that of the program, with PyTorch's name for it, and
 * what the library that moves the data does. */

#include "config.h"

#include "distributed/gtorch-engine-private.h"

static const gchar *
name_of (const gchar *name, GTorchCollectiveKind kind)
{
  /* clang-format off */
  static const struct
  {
    const gchar *name, *shown;
  } names[] = {
    { "all_gather_coalesced",     "c10d::allgather_into_tensor_coalesced_" },
    { "all_gather_into_tensor",   "c10d::_allgather_base_" },
    { "all_reduce_coalesced",     "c10d::allreduce_coalesced_" },
    { "all_to_all_single",        "c10d::alltoall_base_" },
    { "broadcast_coalesced",      "c10d::broadcast_coalesced_" },
    { "reduce_scatter_coalesced", "c10d::reduce_scatter_tensor_coalesced_" },
    { "reduce_scatter_tensor",    "c10d::_reduce_scatter_base_" },
  };
  static const gchar *const kinds[] = {
    [GTORCH_COLLECTIVE_BROADCAST] =      "c10d::broadcast_",
    [GTORCH_COLLECTIVE_ALL_REDUCE] =     "c10d::allreduce_",
    [GTORCH_COLLECTIVE_REDUCE] =         "c10d::reduce_",
    [GTORCH_COLLECTIVE_ALL_GATHER] =     "c10d::allgather_",
    [GTORCH_COLLECTIVE_GATHER] =         "c10d::gather_",
    [GTORCH_COLLECTIVE_SCATTER] =        "c10d::scatter_",
    [GTORCH_COLLECTIVE_REDUCE_SCATTER] = "c10d::reduce_scatter_",
    [GTORCH_COLLECTIVE_ALL_TO_ALL] =     "c10d::alltoall_",
    [GTORCH_COLLECTIVE_SEND] =           "c10d::send",
    [GTORCH_COLLECTIVE_RECEIVE] =        "c10d::recv_",
    [GTORCH_COLLECTIVE_BARRIER] =        "c10d::barrier",
  };
  /* clang-format on */
  gsize i;

  for (i = 0; i < G_N_ELEMENTS (names); i++)
    if (g_str_equal (name, names[i].name))
      return names[i].shown;
  return kinds[kind];
}

static const gchar *
transfer_of (GTorchCollectiveKind kind)
{
  static const gchar *const kinds[] = {
    [GTORCH_COLLECTIVE_BROADCAST] = "broadcast",
    [GTORCH_COLLECTIVE_ALL_REDUCE] = "all_reduce",
    [GTORCH_COLLECTIVE_REDUCE] = "reduce",
    [GTORCH_COLLECTIVE_ALL_GATHER] = "all_gather",
    [GTORCH_COLLECTIVE_GATHER] = "gather",
    [GTORCH_COLLECTIVE_SCATTER] = "scatter",
    [GTORCH_COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
    [GTORCH_COLLECTIVE_ALL_TO_ALL] = "all_to_all",
    [GTORCH_COLLECTIVE_SEND] = "send",
    [GTORCH_COLLECTIVE_RECEIVE] = "recv",
    [GTORCH_COLLECTIVE_BARRIER] = "barrier",
  };

  return kinds[kind];
}

static void
add (GPtrArray *all, GPtrArray *impls)
{
  guint i;

  for (i = 0; i < impls->len; i++)
    g_ptr_array_add (all, gtorch_impl_ref (impls->pdata[i]));
}

static void
begin (GTorchNamedCollective *self)
{
  GTorchImpl *first = self->tensors->len > 0 ? self->tensors->pdata[0] : NULL;

  self->named.inputs = (GTorchImpl *const *) self->tensors->pdata;
  self->named.n_inputs = self->tensors->len;
  self->named.device = first != NULL ? gtorch_impl_device (first) : NULL;
  gtorch_observe_named_begin (&self->named);
}

static GPtrArray *
tensors_new (void)
{
  return g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
}

void
gtorch_collective_named_begin (GTorchNamedCollective *self, const gchar *name,
                               GTorchCollective *const *collectives, guint n)
{
  guint i;

  if (G_LIKELY (!gtorch_is_observed ()) || n == 0)
    return;
  self->named.kind = GTORCH_NAMED_COLLECTIVE;
  self->named.name = name_of (name, collectives[0]->kind);
  self->tensors = tensors_new ();
  for (i = 0; i < n; i++)
    add (self->tensors, collectives[i]->outputs);
  for (i = 0; i < n; i++)
    add (self->tensors, collectives[i]->inputs);
  begin (self);
}

void
gtorch_transfer_named_begin (GTorchNamedCollective *self, const GTorchEngineClass *klass,
                             const GTorchCollective *collective)
{
  g_autofree gchar *name = NULL;

  if (G_LIKELY (!gtorch_is_observed ()))
    return;
  name = g_strconcat (klass->name, ":", transfer_of (collective->kind), NULL);
  self->named.kind = GTORCH_NAMED_TRANSFER;
  self->named.name = g_intern_string (name);
  self->tensors = tensors_new ();
  add (self->tensors, collective->inputs->len > 0 ? collective->inputs : collective->outputs);
  begin (self);
}

void
gtorch_named_collective_end (GTorchNamedCollective *self)
{
  if (G_LIKELY (self->tensors == NULL))
    return;
  gtorch_observe_named_end (&self->named);
  g_ptr_array_unref (self->tensors);
}
