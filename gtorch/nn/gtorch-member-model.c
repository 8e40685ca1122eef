/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Members of modules may be changed in any thread, and a list that widgets show may be changed in one: a
 * change in any module has all lists compare what they have with what there is, in their main contexts, once
 * for many changes. While there are no lists a change costs one comparison. */

#include "config.h"

#include "nn/gtorch-member-model.h"

#include "base/gtorch-field-private.h"
#include "base/gtorch-fork-private.h"
#include "base/gtorch-references-private.h"
#include "nn/gtorch-module-private.h"

/**
 * GTorchMemberModel:
 *
 * A list of the members of a module that follows the module, for a list of widgets.
 *
 * [method@Module.get_parameters] and its like return lists of what there is when they are called. This one
 * emits [signal@Gio.ListModel::items-changed] when members have come, gone or been replaced, also those of
 * modules further inside if [property@MemberModel:recurse] is set. It does so in the main context that was
 * the thread-default one where it was created, some time after the change; [method@MemberModel.update] does
 * not wait. It is read in the thread of that context.
 *
 * ```c
 * g_autoptr (GTorchMemberModel) model = gtorch_member_model_new (net, GTORCH_MEMBER_KIND_PARAMETER, TRUE);
 *
 * g_signal_connect (model, "items-changed", G_CALLBACK (on_parameters_changed), NULL);
 * ```
 *
 * Since: 0.1
 */

struct _GTorchMemberModel
{
  GObject parent_instance;
  GTorchModule *module;
  gint kind; /* of GTorchMemberKind */
  gboolean recurse;
  GPtrArray *items;
  GMainContext *context;
  gint is_waiting; /* for its main context; accessed atomically */
};

static void gtorch_member_model_list_init (GListModelInterface *iface);

G_DEFINE_TYPE_WITH_CODE (GTorchMemberModel, gtorch_member_model, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (G_TYPE_LIST_MODEL, gtorch_member_model_list_init))

/* All lists, and how many there are. */
static GMutex models_lock;
GTORCH_FORK_LOCK (models_lock);
static GPtrArray *models;
static gint n_models; /* accessed atomically */

static void
weak_ref_free (gpointer data)
{
  g_weak_ref_clear (data);
  g_free (data);
}

static gboolean
update_later (gpointer data)
{
  g_autoptr (GTorchMemberModel) self = g_weak_ref_get (data);

  if (self != NULL)
    gtorch_member_model_update (self);
  return G_SOURCE_REMOVE;
}

void
gtorch_member_models_look (void)
{
  if (G_LIKELY (g_atomic_int_get (&n_models) == 0))
    return;
  g_mutex_lock (&models_lock);
  for (guint i = 0; i < models->len; i++)
    {
      GTorchMemberModel *self = models->pdata[i];
      GWeakRef *weak;
      GSource *source;

      if (!g_atomic_int_compare_and_exchange (&self->is_waiting, FALSE, TRUE))
        continue;
      weak = g_new (GWeakRef, 1);
      g_weak_ref_init (weak, self);
      source = g_idle_source_new ();
      g_source_set_priority (source, G_PRIORITY_DEFAULT);
      g_source_set_callback (source, update_later, weak, weak_ref_free);
      g_source_attach (source, self->context);
      g_source_unref (source);
    }
  g_mutex_unlock (&models_lock);
}

static GPtrArray *
find_items (GTorchMemberModel *self)
{
  GPtrArray *items = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (GListModel) found = NULL;
  gpointer item;

  if (self->kind == GTORCH_MEMBER_KIND_PARAMETER)
    found = gtorch_module_get_parameters (self->module, self->recurse);
  else if (self->kind == GTORCH_MEMBER_KIND_BUFFER)
    found = gtorch_module_get_buffers (self->module, self->recurse);
  else if (self->kind == GTORCH_MEMBER_KIND_MODULE && self->recurse)
    found = gtorch_module_get_modules (self->module);
  else if (self->kind == GTORCH_MEMBER_KIND_MODULE)
    found = g_object_ref (gtorch_module_get_children (self->module));
  for (guint i = 0; found != NULL && (item = g_list_model_get_item (found, i)) != NULL; i++)
    if (item == self->module)
      g_object_unref (item);
    else
      g_ptr_array_add (items, item);
  return items;
}

static GType
gtorch_member_model_get_item_type (GListModel *model)
{
  GTorchMemberModel *self = GTORCH_MEMBER_MODEL (model);

  return self->kind == GTORCH_MEMBER_KIND_MODULE      ? GTORCH_TYPE_MODULE
         : self->kind == GTORCH_MEMBER_KIND_PARAMETER ? GTORCH_TYPE_PARAMETER
                                                      : GTORCH_TYPE_TENSOR;
}

static guint
gtorch_member_model_get_n_items (GListModel *model)
{
  return GTORCH_MEMBER_MODEL (model)->items->len;
}

static gpointer
gtorch_member_model_get_item (GListModel *model, guint position)
{
  GPtrArray *items = GTORCH_MEMBER_MODEL (model)->items;

  return position < items->len ? g_object_ref (items->pdata[position]) : NULL;
}

static void
gtorch_member_model_list_init (GListModelInterface *iface)
{
  iface->get_item_type = gtorch_member_model_get_item_type;
  iface->get_n_items = gtorch_member_model_get_n_items;
  iface->get_item = gtorch_member_model_get_item;
}

typedef GTorchMemberModel Self;

static const GTorchField fields[] = {
  /**
   * GTorchMemberModel:module: (getter get_module)
   *
   * The module whose members are listed.
   *
   * Since: 0.1
   */
  { "module", GTORCH_FIELD_OBJECT, GTORCH_FIELD (GTorchMemberModel, module),
    .type = gtorch_module_get_type, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchMemberModel:kind: (getter get_kind)
   *
   * The kind of the members.
   *
   * Since: 0.1
   */
  { "kind", GTORCH_FIELD_ENUM, GTORCH_FIELD (GTorchMemberModel, kind),
    .type = gtorch_member_kind_get_type, .flags = GTORCH_FIELD_FIXED },
  /**
   * GTorchMemberModel:recurse: (getter get_recurse)
   *
   * Whether those of all modules inside are listed, too.
   *
   * Since: 0.1
   */
  { "recurse", GTORCH_FIELD_BOOL, GTORCH_FIELD (GTorchMemberModel, recurse),
    .flags = GTORCH_FIELD_FIXED },
};

static void
gtorch_member_model_constructed (GObject *object)
{
  GTorchMemberModel *self = GTORCH_MEMBER_MODEL (object);

  G_OBJECT_CLASS (gtorch_member_model_parent_class)->constructed (object);
  g_mutex_lock (&models_lock);
  if (models == NULL)
    models = g_ptr_array_new ();
  g_ptr_array_add (models, self);
  g_atomic_int_inc (&n_models);
  g_mutex_unlock (&models_lock);
  gtorch_member_model_update (self);
}

/* The lock keeps a change in another thread from taking a weak reference to what is being finalized. */
static void
gtorch_member_model_dispose (GObject *object)
{
  g_mutex_lock (&models_lock);
  if (g_ptr_array_remove (models, object))
    g_atomic_int_add (&n_models, -1);
  g_mutex_unlock (&models_lock);
  G_OBJECT_CLASS (gtorch_member_model_parent_class)->dispose (object);
}

static void
gtorch_member_model_finalize (GObject *object)
{
  GTorchMemberModel *self = GTORCH_MEMBER_MODEL (object);

  g_ptr_array_unref (self->items);
  g_main_context_unref (self->context);
  gtorch_fields_clear (self, fields, G_N_ELEMENTS (fields));
  G_OBJECT_CLASS (gtorch_member_model_parent_class)->finalize (object);
}

static void
add_references (gpointer object, GTorchReferences *references)
{
  gtorch_references_add_object (references, GTORCH_MEMBER_MODEL (object)->module);
}

static GTorchReferencesType references_type = { .look = add_references };

static void
gtorch_member_model_class_init (GTorchMemberModelClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);

  object_class->constructed = gtorch_member_model_constructed;
  object_class->dispose = gtorch_member_model_dispose;
  object_class->finalize = gtorch_member_model_finalize;
  GTORCH_FIELDS (klass, fields);
  references_type.type = GTORCH_TYPE_MEMBER_MODEL;
  gtorch_references_add_type (&references_type);
}

static void
gtorch_member_model_init (GTorchMemberModel *self)
{
  self->items = g_ptr_array_new_with_free_func (g_object_unref);
  self->context = g_main_context_ref_thread_default ();
}

/**
 * gtorch_member_model_new:
 * @module: a module
 * @kind: the kind of the members
 * @recurse: whether to list those of all modules inside, too
 *
 * Creates a list that follows the members of a module. Of modules it does not list @module itself; of
 * %GTORCH_MEMBER_KIND_NONE there are none.
 *
 * Returns: (transfer full): a new list
 *
 * Since: 0.1
 */
GTorchMemberModel *
gtorch_member_model_new (GTorchModule *module, GTorchMemberKind kind, gboolean recurse)
{
  g_return_val_if_fail (GTORCH_IS_MODULE (module), NULL);
  if (kind < GTORCH_MEMBER_KIND_NONE || kind > GTORCH_MEMBER_KIND_MODULE)
    kind = GTORCH_MEMBER_KIND_NONE; /* a number that is no kind */
  return g_object_new (GTORCH_TYPE_MEMBER_MODEL, "module", module, "kind", kind, "recurse", recurse,
                       NULL);
}

/**
 * gtorch_member_model_get_module: (get-property module)
 * @self: a list of members
 *
 * Gets the module whose members are listed.
 *
 * Returns: (transfer none) (nullable): the module
 *
 * Since: 0.1
 */
GTorchModule *
gtorch_member_model_get_module (GTorchMemberModel *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMBER_MODEL (self), NULL);
  return self->module;
}

/**
 * gtorch_member_model_get_kind: (get-property kind)
 * @self: a list of members
 *
 * Gets the kind of the members.
 *
 * Returns: the kind
 *
 * Since: 0.1
 */
GTorchMemberKind
gtorch_member_model_get_kind (GTorchMemberModel *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMBER_MODEL (self), GTORCH_MEMBER_KIND_NONE);
  return (GTorchMemberKind) self->kind;
}

/**
 * gtorch_member_model_get_recurse: (get-property recurse)
 * @self: a list of members
 *
 * Tells whether those of all modules inside are listed, too.
 *
 * Returns: %TRUE if they are
 *
 * Since: 0.1
 */
gboolean
gtorch_member_model_get_recurse (GTorchMemberModel *self)
{
  g_return_val_if_fail (GTORCH_IS_MEMBER_MODEL (self), FALSE);
  return self->recurse;
}

/**
 * gtorch_member_model_update:
 * @self: a list of members
 *
 * Compares the list with the members that there are now, and emits
 * [signal@Gio.ListModel::items-changed] if they differ, without waiting for the main
 * context. Called in the thread of that context.
 *
 * Since: 0.1
 */
void
gtorch_member_model_update (GTorchMemberModel *self)
{
  g_autoptr (GPtrArray) former = NULL;
  guint first = 0, n_same = 0, n;

  g_return_if_fail (GTORCH_IS_MEMBER_MODEL (self));
  g_atomic_int_set (&self->is_waiting, FALSE); /* a change from here on is another one */
  if (self->module == NULL)
    return;
  former = g_steal_pointer (&self->items);
  self->items = find_items (self);
  n = MIN (former->len, self->items->len);
  while (first < n && former->pdata[first] == self->items->pdata[first])
    first++;
  while (n_same < n - first
         && former->pdata[former->len - 1 - n_same]
                == self->items->pdata[self->items->len - 1 - n_same])
    n_same++;
  if (former->len > first + n_same || self->items->len > first + n_same)
    g_list_model_items_changed (G_LIST_MODEL (self), first, former->len - first - n_same,
                                self->items->len - first - n_same);
}
