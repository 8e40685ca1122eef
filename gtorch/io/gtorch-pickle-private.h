/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

#pragma once

#include <gtorch/io/gtorch-checkpoint-node.h>
#include <gtorch/io/gtorch-zip-private.h>

G_BEGIN_DECLS

/* A value of a pickle. Values refer to one another by number, so that cycles need no care. */
typedef struct
{
  guint8 kind; /* GTorchCheckpointKind; while the pickle is read, also one of those below */
  gboolean flag;
  guint32 attributes; /* of an OrderedDict: the number of a dictionary; 0 for none */
  guint32 storage;    /* of a tensor */
  gint64 whole;       /* a bool, an integer, a dtype, a storage, a function */
  gdouble parts[2];   /* a decimal or a complex number */
  gchar *text;        /* a text, bytes, a long integer, a device */
  gsize length;
  GArray *children;     /* of guint32; of a dictionary: keys and values in turn */
  GTorchTensor *tensor; /* of a tensor or a parameter */
} GTorchPickleNode;

typedef struct
{
  GTorchTensor *tensor; /* all elements */
  gchar *location;
} GTorchPickleStorage;

/* What a pickle has in it: the nodes in the order in which they were made, so that those that a tuple or a
 * set that cannot be changed consists of come before it. */
typedef struct
{
  GPtrArray *nodes;    /* of GTorchPickleNode */
  GPtrArray *storages; /* of GTorchPickleStorage */
  guint32 root;
} GTorchPickle;

void gtorch_pickle_free (GTorchPickle *pickle);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (GTorchPickle, gtorch_pickle_free)
/* Reads the pickle data.pkl and the storages of an archive of torch.save(). */
GTorchPickle *gtorch_pickle_read (GTorchSource *source, GCancellable *cancellable, GError **error);

/* --- inside --- */

enum
{
  GTORCH_PICKLE_STORAGE = 100, /* whole: its number */
  GTORCH_PICKLE_TYPE,          /* the class of a storage; whole: its dtype */
  GTORCH_PICKLE_FUNCTION,      /* whole: a GTorchPickleFunction */
};

typedef enum
{
  GTORCH_PICKLE_TENSOR,
  GTORCH_PICKLE_PARAMETER,
  GTORCH_PICKLE_SIZE,
  GTORCH_PICKLE_DEVICE,
  GTORCH_PICKLE_UNKNOWN_TENSOR,
  GTORCH_PICKLE_ORDERED_DICT,
  GTORCH_PICKLE_COUNTER,
  GTORCH_PICKLE_ENCODE,
  GTORCH_PICKLE_BYTES,
  GTORCH_PICKLE_SET,
  GTORCH_PICKLE_FROZENSET,
  GTORCH_PICKLE_COMPLEX,
} GTorchPickleFunction;

typedef struct
{
  GTorchSource *source;
  GTorchZip *zip;
  const gchar *stem; /* what names of members begin with */
  const guint8 *data;
  gsize n, at, begin; /* of the pickle; begin: of the present instruction */
  GTorchPickle *pickle;
  GArray *stack, *marks;
  GHashTable *memo, *keys; /* by number; storages by key */
  GCancellable *cancellable;
  GError **error;
} GTorchPickleMachine;

void gtorch_pickle_set_error (GTorchPickleMachine *self, gint code, const gchar *format, ...)
    G_GNUC_PRINTF (3, 4);
/* FALSE with an error that tells the place in the pickle. */
#define gtorch_pickle_fail(...) (gtorch_pickle_set_error (__VA_ARGS__), FALSE)
GTorchPickleNode *gtorch_pickle_node (GTorchPickleMachine *self, guint32 id);
/* NULL beyond the limit of memory. */
GTorchPickleNode *gtorch_pickle_add (GTorchPickleMachine *self, guint kind, guint32 *id);
const gchar *gtorch_pickle_kind_name (const GTorchPickleNode *node);
/* The name of a module and of what it has: a node, or an error. */
gboolean gtorch_pickle_find (GTorchPickleMachine *self, const gchar *module, const gchar *name,
                             guint32 *id);
gboolean gtorch_pickle_call (GTorchPickleMachine *self, guint32 func, guint32 args,
                             guint32 *result);
gboolean gtorch_pickle_load_storage (GTorchPickleMachine *self, guint32 description,
                                     guint32 *result);

G_END_DECLS
