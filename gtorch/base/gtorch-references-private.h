/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/base/gtorch-types.h>

G_BEGIN_DECLS

/* Around a change of what gtorch-references.c reads: members of modules, items of lists, the node of a tensor
 * that had another one. Nothing that a program may know is unreferenced inside, or referenced unless what
 * is looked at owns a reference already: a binding may wait there for the collector, which waits for the
 * lock. */
void gtorch_references_lock (void);
void gtorch_references_unlock (void);

/* A kind of things with a reference count that are no objects. */
typedef struct
{
  gint (*count) (gconstpointer thing); /* returns the number of references */
  gpointer (*ref) (gpointer thing);
  void (*unref) (gpointer thing);
  void (*look) (gpointer thing, GTorchReferences *references); /* adds what it owns */
} GTorchReferencesKind;

/* A class whose objects own others. What a derived class owns beside that, it adds itself. */
typedef struct _GTorchReferencesType GTorchReferencesType;

struct _GTorchReferencesType
{
  GType type;
  void (*look) (gpointer object, GTorchReferences *references); /* adds what it owns */
  /* Whether nothing but its holder can be reached from an object with one reference (optional). */
  gboolean (*leads_nowhere) (gpointer object, GTorchReferences *references);
  GTorchReferencesType *next; /* of gtorch-references.c */
};

/* Called in class_init with a static struct. */
void gtorch_references_add_type (GTorchReferencesType *type);

/* One reference that the object or thing being looked at owns. NULL is nothing. */
void gtorch_references_add (GTorchReferences *self, const GTorchReferencesKind *kind,
                            gpointer thing);
void gtorch_references_add_object (GTorchReferences *self, gpointer object);
/* The data of a hook, if it is the language's. */
void gtorch_references_add_data (GTorchReferences *self, gpointer user_data,
                                 GDestroyNotify destroy);

/* Is there a hook or a function of the program in any graph? Without one nothing is looked for there. */
gboolean gtorch_references_has_graph (GTorchReferences *self);
/* Counts hooks and functions in graphs. */
void gtorch_references_count_data (gint n);

G_END_DECLS
