/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Finds the nodes of a capture that the library has not launched: the program's own kernels, and those of
 * other libraries that got the stream.
 *
 * Around each operation the stream's capture dependencies are queried. The nodes between the two sets were
 * launched by the operation, through whatever library; all other nodes of the graph are foreign. Nothing
 * keeps the memory that foreign nodes use alive. The driver tells which memory that is: words in the
 * parameters of kernels, and the addresses of copies and fills, that lie in memory of the allocators. */

#include "config.h"

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/memory/gtorch-cuda-pool-private.h"

struct _GTorchCudaOwnNodes
{
  GHashTable *nodes;
  GArray *bodies;     /* CUgraph: the bodies of the capture's conditional nodes */
  GHashTable *before; /* the stream's dependencies when the operation began */
  gboolean is_blind;  /* the driver has failed to report dependencies, so the result is unknown */
};

GTorchCudaOwnNodes *
gtorch_cuda_own_nodes_new (void)
{
  GTorchCudaOwnNodes *self = g_new0 (GTorchCudaOwnNodes, 1);

  self->nodes = g_hash_table_new (NULL, NULL);
  self->bodies = g_array_new (FALSE, FALSE, sizeof (CUgraph));
  self->before = g_hash_table_new (NULL, NULL);
  return self;
}

void
gtorch_cuda_own_nodes_free (GTorchCudaOwnNodes *self)
{
  g_hash_table_unref (self->nodes);
  g_array_unref (self->bodies);
  g_hash_table_unref (self->before);
  g_free (self);
}

static gboolean
get_place (CUstream stream, const CUgraphNode **nodes, size_t *n)
{
  CUstreamCaptureStatus status;

  return gtorch_cuda.cuStreamGetCaptureInfo (stream, &status, NULL, NULL, nodes, n) == CUDA_SUCCESS
         && status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void
gtorch_cuda_own_nodes_add_body (GTorchCudaOwnNodes *self, CUgraph body)
{
  g_array_append_val (self->bodies, body);
}

void
gtorch_cuda_own_nodes_enter (GTorchCudaOwnNodes *self, CUstream stream)
{
  const CUgraphNode *nodes;
  size_t n, i;

  g_hash_table_remove_all (self->before);
  if (!get_place (stream, &nodes, &n))
    self->is_blind = TRUE;
  for (i = 0; !self->is_blind && i < n; i++)
    g_hash_table_add (self->before, nodes[i]);
}

/* Adds the nodes on which this one depends. Edges between kernels that overlap carry edge data, and the
 * driver returns such edges only if the caller asks for the data. */
static gboolean
add_nodes_before (CUgraphNode node, GArray *nodes)
{
  g_autofree CUgraphEdgeData *data = NULL;
  const guint start = nodes->len;
  size_t n = 0;

  if (gtorch_cuda.cuGraphNodeGetDependencies (node, NULL, NULL, &n) != CUDA_SUCCESS)
    return FALSE;
  if (n == 0)
    return TRUE;
  data = g_new0 (CUgraphEdgeData, n);
  g_array_set_size (nodes, start + n);
  return gtorch_cuda.cuGraphNodeGetDependencies (node, &g_array_index (nodes, CUgraphNode, start),
                                                 data, &n)
         == CUDA_SUCCESS;
}

void
gtorch_cuda_own_nodes_leave (GTorchCudaOwnNodes *self, CUstream stream)
{
  g_autoptr (GArray) open = NULL;
  const CUgraphNode *nodes;
  size_t n;

  if (self->is_blind || !get_place (stream, &nodes, &n))
    {
      self->is_blind = TRUE;
      return;
    }
  open = g_array_new (FALSE, FALSE, sizeof (CUgraphNode));
  g_array_append_vals (open, nodes, n);
  while (open->len > 0)
    {
      CUgraphNode node = g_array_index (open, CUgraphNode, open->len - 1);

      g_array_set_size (open, open->len - 1);
      if (!g_hash_table_contains (self->before, node) && g_hash_table_add (self->nodes, node)
          && !add_nodes_before (node, open))
        {
          self->is_blind = TRUE;
          return;
        }
    }
}

/* --- the memory that nodes use --- */

static void
add_word (GArray *words, guint64 word)
{
  if (word != 0)
    g_array_append_val (words, word);
}

static void
add_words (gsize offset, gconstpointer bytes, gsize n_bytes, gpointer words)
{
  gsize at;

  for (at = 0; at + sizeof (guint64) <= n_bytes; at += sizeof (guint64))
    {
      guint64 word;

      memcpy (&word, (const gchar *) bytes + at, sizeof word);
      add_word (words, word);
    }
}

/* Collects all words of the kernel's parameters that could be addresses. The driver owns *name. */
static void
look_at_kernel (CUgraphNode node, const gchar **name, GArray *words)
{
  CUDA_KERNEL_NODE_PARAMS kernel;
  CUfunction function;

  *name = "?";
  gtorch_cuda_kernel_node_read (node, &kernel, &function, add_words, words);
  if (function != NULL)
    gtorch_cuda.cuFuncGetName (name, function);
}

typedef struct
{
  guint64 address;
  GTorchPool *own; /* memory of this pool, and of its others, belongs to the graph */
  GTorchCudaAt at;
} Search;

static void
search_arena (GTorchCudaArena *arena, gpointer data)
{
  Search *search = data;
  const GTorchPool *owner;

  if (search->at != GTORCH_CUDA_AT_NOTHING)
    return;
  search->at = gtorch_cuda_arena_look (arena, search->address);
  owner = gtorch_cuda_arena_get_owner (arena);
  if (search->at != GTORCH_CUDA_AT_NOTHING && search->own != NULL && owner != NULL
      && gtorch_pool_find_on (search->own, owner->device) == owner)
    search->at = GTORCH_CUDA_AT_OWN;
}

static void
judge (GTorchForeignNodes *found, const gchar *name, guint64 address, GTorchPool *pool,
       GTorchGraphKeeps keeps, gpointer data)
{
  Search search = { .address = address, .own = pool };
  guint i;

  for (i = 0; i < GTORCH_CUDA_MAX_DEVICES && search.at == GTORCH_CUDA_AT_NOTHING; i++)
    {
      GTorchCudaDevice *device = gtorch_cuda_device_peek (i);

      if (device != NULL)
        gtorch_cuda_foreach_arena (device, search_arena, &search);
    }
  if (search.at == GTORCH_CUDA_AT_NOTHING || search.at == GTORCH_CUDA_AT_OWN
      || keeps (address, data))
    return;
  if (found->user != NULL && (found->is_lost || search.at == GTORCH_CUDA_AT_BLOCK))
    /* the finding so far is at least as bad: only lost memory is worse than memory in use */
    return;
  g_free (found->user);
  found->user = g_strdup (name);
  found->address = address;
  found->is_lost = search.at == GTORCH_CUDA_AT_FREE;
}

static void
audit_node (CUgraphNode node, CUgraphNodeType type, GTorchPool *pool, GTorchGraphKeeps keeps,
            gpointer data, GTorchForeignNodes *found)
{
  g_autoptr (GArray) words = g_array_new (FALSE, FALSE, sizeof (guint64));
  const gchar *name = type == CU_GRAPH_NODE_TYPE_HOST ? "a host function" : "other work";
  CUDA_MEMCPY3D copy;
  CUDA_MEMSET_NODE_PARAMS fill;
  guint i;

  if (type == CU_GRAPH_NODE_TYPE_KERNEL)
    look_at_kernel (node, &name, words);
  else if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
    {
      name = "a copy";
      if (gtorch_cuda.cuGraphMemcpyNodeGetParams (node, &copy) == CUDA_SUCCESS)
        {
          add_word (words, copy.srcMemoryType == CU_MEMORYTYPE_HOST ? 0 : copy.srcDevice);
          add_word (words, copy.dstMemoryType == CU_MEMORYTYPE_HOST ? 0 : copy.dstDevice);
        }
    }
  else if (type == CU_GRAPH_NODE_TYPE_MEMSET)
    {
      name = "a fill";
      if (gtorch_cuda.cuGraphMemsetNodeGetParams (node, &fill) == CUDA_SUCCESS)
        add_word (words, fill.dst);
    }
  found->n++;
  g_string_append_printf (found->names, "%s%s", found->n > 1 ? ", " : "", name);
  for (i = 0; i < words->len; i++)
    judge (found, name, g_array_index (words, guint64, i), pool, keeps, data);
}

static gboolean
audit_graph (CUgraph graph, GTorchCudaOwnNodes *own, GTorchPool *pool, GTorchGraphKeeps keeps,
             gpointer data, GTorchForeignNodes *found, GError **error)
{
  g_autofree CUgraphNode *nodes = NULL;
  size_t n = 0, i;

  if (!gtorch_cuda_check (gtorch_cuda.cuGraphGetNodes (graph, NULL, &n), "graph: cuGraphGetNodes",
                          error))
    return FALSE;
  if (own != NULL && own->bodies->len == 0 && n == g_hash_table_size (own->nodes))
    return TRUE;
  nodes = g_new0 (CUgraphNode, n);
  if (!gtorch_cuda_check (gtorch_cuda.cuGraphGetNodes (graph, nodes, &n), "graph: cuGraphGetNodes",
                          error))
    return FALSE;
  for (i = 0; i < n; i++)
    {
      CUgraphNodeType type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
      CUgraph child;

      if (own != NULL && g_hash_table_contains (own->nodes, nodes[i]))
        continue;
      gtorch_cuda.cuGraphNodeGetType (nodes[i], &type);
      if (type == CU_GRAPH_NODE_TYPE_GRAPH
          && gtorch_cuda.cuGraphChildGraphNodeGetGraph (nodes[i], &child) == CUDA_SUCCESS)
        {
          if (!audit_graph (child, NULL, pool, keeps, data, found, error))
            return FALSE;
        }
      else if (type != CU_GRAPH_NODE_TYPE_EMPTY) /* an empty node does nothing */
        audit_node (nodes[i], type, pool, keeps, data, found);
    }
  return TRUE;
}

gboolean
gtorch_cuda_own_nodes_audit (GTorchCudaOwnNodes *self, CUgraph graph, GTorchPool *pool,
                             GTorchGraphKeeps keeps, gpointer data, GTorchForeignNodes *found,
                             GError **error)
{
  gboolean result = self->is_blind || audit_graph (graph, self, pool, keeps, data, found, error);
  guint i;

  for (i = 0; result && !self->is_blind && i < self->bodies->len; i++)
    result = audit_graph (g_array_index (self->bodies, CUgraph, i), self, pool, keeps, data, found,
                          error);
  return result;
}
