/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Tells a collector of another language which of its values are kept alive by which objects of the
 * library.
 *
 * A cycle collector such as Python's works in two steps. It subtracts from the reference count of each of
 * its values the references that other values hold; a value with references left is in use. Then it
 * traverses the references of values in use. For values that the library keeps, the collector must be
 * told in the first step of exactly those references whose holders it can see, and in the second step of
 * at least those.
 *
 * This file handles what is between two values of the language: objects, and things of other kinds with
 * reference counts of their own, such as inner tensors and nodes of graphs. It knows none of their types:
 * classes and kinds tell what their instances own (gtorch-references-private.h).
 *
 * In the first step, gtorch_references_count () is called for each object to which a value holds a
 * reference. Each call counts one; when all references of an object, tensor or node have been counted,
 * only those holders can reach it, and the references that it owns are counted in turn. A value of the
 * language is reported when its holder is complete. An object with another reference (from a thread that
 * runs a backward pass, or a C program) never becomes complete, so that nothing that it leads to is
 * reported: it stays in use.
 *
 * The second step replays what was recorded in the first and reads no object, so that the two cannot
 * differ: other threads may run meanwhile. They change the objects that are read here under a lock, and
 * each object that was found is kept alive until the end.
 *
 * A proxy is a value of the language that lives exactly as long as its object, which holds one reference
 * to it while the object has references from outside the language. The proxy itself reports what its
 * object owns. */

#include "config.h"

#include "base/gtorch-references.h"

#include "base/gtorch-fork-private.h"
#include "base/gtorch-references-private.h"

/* A range of indices in a shared array. */
typedef struct
{
  guint start, n;
} Range;

typedef struct
{
  gpointer pointer;
  gpointer proxy;
  const GTorchReferencesKind *kind;
  guint8 is_kept; /* has a reference of the collection */
  guint8 is_complete, is_followed;
  guint pass; /* the pass to which the following members belong */
  gint n_found;
  Range things; /* the things that it references */
  Range values;
} Thing;

#define BLOCK 512

/**
 * GTorchReferences: (skip)
 *
 * Counts references for the garbage collector of another language, which cannot tell values in use from
 * garbage by itself if they are referenced through objects of the library.
 *
 * For bindings. The collector begins with [method@References.begin]; calls [method@References.count] for
 * each object to which one of its values has a reference; and then calls [method@References.follow] for
 * those whose values are in use.
 *
 * Since: 0.1
 */
struct _GTorchReferences
{
  GTorchReferencesProxyFunc proxy;
  GTorchReferencesExtraFunc extra;
  GDestroyNotify destroy;
  GHashTable *table; /* maps a pointer to its Thing */
  GPtrArray *blocks; /* arrays of BLOCK Things */
  guint n_in_block;
  guint pass;
  gboolean has_graph;         /* whether graphs are traversed */
  GPtrArray *things, *values; /* those of all things, in ranges */
  GPtrArray *todo;
  Thing *current;
};

static GMutex structure_lock;
GTORCH_FORK_LOCK (structure_lock);

void
gtorch_references_lock (void)
{
  g_mutex_lock (&structure_lock);
}

void
gtorch_references_unlock (void)
{
  g_mutex_unlock (&structure_lock);
}

/* --- what objects own --- */

static GTorchReferencesType *types; /* atomic; only added to */

void
gtorch_references_add_type (GTorchReferencesType *type)
{
  GTorchReferencesType **end = &types;

  while (!g_atomic_pointer_compare_and_exchange (end, NULL, type))
    end = &(*end)->next;
}

/* Returns the next class that the object is of, the first one after NULL. */
static GTorchReferencesType *
next_type (gpointer object, GTorchReferencesType *type)
{
  do
    type = g_atomic_pointer_get (type != NULL ? &type->next : &types);
  while (type != NULL && !G_TYPE_CHECK_INSTANCE_TYPE (object, type->type));
  return type;
}

static gint n_data; /* hooks and nodes of functions; atomic */

void
gtorch_references_count_data (gint n)
{
  g_atomic_int_add (&n_data, n);
}

gboolean
gtorch_references_has_graph (GTorchReferences *self)
{
  return self->has_graph;
}

/* --- things --- */

static gint
object_references (gconstpointer object)
{
  return g_atomic_int_get ((gint *) &((GObject *) object)->ref_count);
}

static void
look_into_object (gpointer object, GTorchReferences *self)
{
  GTorchReferencesType *type = NULL;

  while ((type = next_type (object, type)) != NULL)
    type->look (object, self);
  if (self->extra != NULL)
    self->extra (self, object);
}

static const GTorchReferencesKind object_kind = { object_references, g_object_ref, g_object_unref,
                                                  look_into_object };

/* Returns the Thing of the pointer, reset if it is new in this pass. */
static Thing *
get_thing (GTorchReferences *self, const GTorchReferencesKind *kind, gpointer pointer)
{
  Thing *thing = g_hash_table_lookup (self->table, pointer);

  if (thing == NULL)
    {
      if (self->n_in_block == BLOCK)
        {
          g_ptr_array_add (self->blocks, g_new0 (Thing, BLOCK));
          self->n_in_block = 0;
        }
      thing = (Thing *) self->blocks->pdata[self->blocks->len - 1] + self->n_in_block++;
      thing->pointer = pointer;
      g_hash_table_insert (self->table, pointer, thing);
    }
  else if (thing->pass == self->pass)
    return thing;
  thing->pass = self->pass;
  thing->kind = kind;
  thing->proxy = kind == &object_kind ? self->proxy (pointer) : NULL;
  thing->is_complete = thing->is_followed = FALSE;
  thing->n_found = 0;
  thing->things.n = thing->values.n = 0;
  return thing;
}

/* Returns the number of foreign references: without that of keep (), and without that of the proxy's
 * holder. */
static gint
n_references (const Thing *thing)
{
  return thing->kind->count (thing->pointer) - thing->is_kept - (thing->proxy != NULL);
}

static void
keep (Thing *thing)
{
  if (thing->is_kept)
    return;
  thing->is_kept = TRUE;
  thing->kind->ref (thing->pointer);
}

static void
found (GTorchReferences *self, Thing *thing)
{
  thing->n_found++;
  if (thing->is_complete || thing->n_found != n_references (thing))
    return;
  thing->is_complete = TRUE;
  g_ptr_array_add (self->todo, thing);
}

void
gtorch_references_add (GTorchReferences *self, const GTorchReferencesKind *kind, gpointer pointer)
{
  Thing *thing;

  if (pointer == NULL)
    return;
  thing = get_thing (self, kind, pointer);
  keep (thing);
  g_ptr_array_add (self->things, thing);
  found (self, thing);
}

void
gtorch_references_add_object (GTorchReferences *self, gpointer object)
{
  gtorch_references_add (self, &object_kind, object);
}

/**
 * gtorch_references_add_value: (skip)
 * @self: the count
 * @value: (nullable): a value of the language
 *
 * Reports a value to which the examined object holds a reference. For [callback@ReferencesExtraFunc].
 *
 * Since: 0.1
 */
void
gtorch_references_add_value (GTorchReferences *self, gpointer value)
{
  g_return_if_fail (self != NULL);
  if (value == NULL || self->current == NULL)
    return;
  g_ptr_array_add (self->values, value);
}

void
gtorch_references_add_data (GTorchReferences *self, gpointer user_data, GDestroyNotify destroy)
{
  if (destroy == self->destroy)
    gtorch_references_add_value (self, user_data);
}

/* True for most tensors. */
static gboolean
leads_nowhere (GTorchReferences *self, GObject *object)
{
  GTorchReferencesType *type;

  if (object_references (object) != 1)
    return FALSE;
  type = next_type (object, NULL);
  return type != NULL && type->leads_nowhere != NULL && type->leads_nowhere (object, self);
}

static void
look_into (GTorchReferences *self, Thing *thing)
{
  self->current = thing;
  thing->things.start = self->things->len;
  thing->values.start = self->values->len;
  thing->kind->look (thing->pointer, self);
  thing->things.n = self->things->len - thing->things.start;
  thing->values.n = self->values->len - thing->values.start;
  self->current = NULL;
}

/**
 * gtorch_references_new: (skip)
 * @proxy: finds the proxy of an object
 * @extra: (nullable): reports further values that the language has attached to an object
 * @destroy: the function that frees the data of hooks of the language: such data is a value of it
 *
 * Creates an empty count.
 *
 * Returns: (transfer full): a new count, for gtorch_references_free()
 *
 * Since: 0.1
 */
GTorchReferences *
gtorch_references_new (GTorchReferencesProxyFunc proxy, GTorchReferencesExtraFunc extra,
                       GDestroyNotify destroy)
{
  GTorchReferences *self;

  g_return_val_if_fail (proxy != NULL, NULL);
  self = g_new0 (GTorchReferences, 1);
  self->proxy = proxy;
  self->extra = extra;
  self->destroy = destroy;
  self->table = g_hash_table_new (NULL, NULL);
  self->blocks = g_ptr_array_new_with_free_func (g_free);
  self->n_in_block = BLOCK;
  self->things = g_ptr_array_new ();
  self->values = g_ptr_array_new ();
  self->todo = g_ptr_array_new ();
  gtorch_references_begin (self);
  return self;
}

/**
 * gtorch_references_free: (skip)
 * @self: (transfer full): a count
 *
 * Frees the count and releases the objects that were found, which may call the program: the collector
 * must have finished.
 *
 * Since: 0.1
 */
void
gtorch_references_free (GTorchReferences *self)
{
  guint i, k;

  g_return_if_fail (self != NULL);
  for (i = 0; i < self->blocks->len; i++)
    for (k = 0; k < (i + 1 < self->blocks->len ? BLOCK : self->n_in_block); k++)
      {
        Thing *thing = (Thing *) self->blocks->pdata[i] + k;

        if (thing->is_kept)
          thing->kind->unref (thing->pointer);
      }
  g_hash_table_unref (self->table);
  g_ptr_array_unref (self->blocks);
  g_ptr_array_unref (self->things);
  g_ptr_array_unref (self->values);
  g_ptr_array_unref (self->todo);
  g_free (self);
}

/**
 * gtorch_references_begin: (skip)
 * @self: a count
 *
 * Starts a new pass, like a collector that examines supposed garbage again. Objects that were found
 * before are kept alive nevertheless.
 *
 * Since: 0.1
 */
void
gtorch_references_begin (GTorchReferences *self)
{
  g_return_if_fail (self != NULL);
  self->pass++;
  self->has_graph = g_atomic_int_get (&n_data) > 0;
  g_ptr_array_set_size (self->things, 0);
  g_ptr_array_set_size (self->values, 0);
}

/**
 * gtorch_references_count: (skip)
 * @self: a count
 * @object: an object
 * @func: (scope call): called for each value whose references are complete with this one
 * @user_data: data for @func
 *
 * Counts the one reference that a value of the language holds to an object, or, if the value is its
 * proxy, the references that the object owns. Call it once for each value.
 *
 * Since: 0.1
 */
void
gtorch_references_count (GTorchReferences *self, GObject *object, GTorchReferencesFunc func,
                         gpointer user_data)
{
  guint i, told;
  Thing *thing;

  g_return_if_fail (self != NULL);
  g_return_if_fail (G_IS_OBJECT (object));
  g_return_if_fail (func != NULL);
  if (leads_nowhere (self, object))
    return;
  told = self->values->len;
  gtorch_references_lock ();
  thing = get_thing (self, &object_kind, object);
  if (thing->proxy != NULL)
    look_into (self, thing);
  else
    {
      /* if only the value has a reference, the count does not change, so that a binding may read the
       * number of references: PyGObject traverses the handlers of signals if it is one */
      if (object_references (object) > 1)
        keep (thing);
      found (self, thing);
    }
  while (self->todo->len > 0)
    {
      thing = g_ptr_array_steal_index_fast (self->todo, self->todo->len - 1);
      if (thing->proxy != NULL)
        func (thing->proxy, user_data);
      else
        look_into (self, thing);
    }
  gtorch_references_unlock ();
  for (i = told; i < self->values->len; i++)
    func (self->values->pdata[i], user_data);
}

/**
 * gtorch_references_follow: (skip)
 * @self: a count
 * @object: an object, whose value is in use
 * @func: (scope call): called for each value that it leads to
 * @user_data: data for @func
 *
 * Repeats the traversal of [method@References.count]. A part that was followed once is not followed
 * again.
 *
 * Since: 0.1
 */
void
gtorch_references_follow (GTorchReferences *self, GObject *object, GTorchReferencesFunc func,
                          gpointer user_data)
{
  Thing *thing;
  guint i;

  g_return_if_fail (self != NULL);
  g_return_if_fail (G_IS_OBJECT (object));
  g_return_if_fail (func != NULL);
  thing = g_hash_table_lookup (self->table, object);
  while (thing != NULL)
    {
      if (thing->pass == self->pass && !thing->is_followed)
        {
          thing->is_followed = TRUE;
          for (i = 0; i < thing->values.n; i++)
            func (self->values->pdata[thing->values.start + i], user_data);
          for (i = 0; i < thing->things.n; i++)
            {
              Thing *next = self->things->pdata[thing->things.start + i];

              if (next->proxy == NULL)
                g_ptr_array_add (self->todo, next);
              else if (next->is_complete)
                func (next->proxy, user_data);
            }
        }
      thing = self->todo->len > 0 ? g_ptr_array_steal_index_fast (self->todo, self->todo->len - 1)
                                  : NULL;
    }
}
