/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Recordings of library calls. A call of cuBLASLt takes two to four times as long as the launches in it:
 * the library evaluates its descriptors each time and encodes them for the device. All of that depends on
 * the shapes only; just the addresses of the matrices vary. The call is therefore captured a few times,
 * with different addresses each time. Where the parameters of its kernels differ by exactly the difference
 * of an address, later launches write that address. Where they differ in any other way, or could refer to
 * memory of the library, no recording is made. */

#include "config.h"

#include <string.h>

#include "cuda/graph/gtorch-cuda-capture-private.h"
#include "cuda/ops/gtorch-cuda-recording-private.h"
#include "base/gtorch-environment-private.h"
#include "base/gtorch-fork-private.h"

#define N_SAMPLES  3
#define MAX_NODES  4
#define MAX_BYTES  4096 /* the maximum size of a kernel's parameters */
#define MAX_PLACES 64

/* The attributes that a launch must repeat. The other attributes of a node are only hints, or belong to the
 * stream. */
static const CUlaunchAttributeID attributes[] = {
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
};

typedef struct
{
  guint offset;  /* the address's offset in the parameters */
  guint which;   /* index of the caller's address */
  guint64 ahead; /* distance in bytes from the caller's address */
} Place;

/* A launch without its parameters. It is compared byte by byte. */
typedef struct
{
  CUfunction function;
  CUlaunchConfig config; /* without stream and attributes, but with the number of attributes */
  CUlaunchAttribute attributes[G_N_ELEMENTS (attributes)];
  gsize n_bytes; /* size of the parameters */
} Kernel;

typedef struct
{
  Kernel kernel;
  guint8 parameters[MAX_BYTES];
} Node;

typedef struct
{
  guint n;
  Node nodes[MAX_NODES];
} Sample;

typedef struct
{
  Kernel kernel;
  guint8 *parameters;
  guint n_places;
  Place *places;
} Launch;

struct _GTorchCudaRecording
{
  guint n;
  Launch launches[MAX_NODES];
};

/* --- reading captured nodes --- */

static gboolean
read_attributes (CUgraphNode node, Kernel *result)
{
  static const CUlaunchAttributeValue none;
  CUlaunchAttributeValue value = none;
  guint i;

  /* A node with this attribute is not recorded, as the attribute contains an address. */
  if (gtorch_cuda.cuGraphKernelNodeGetAttribute (node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW,
                                                 &value)
          != CUDA_SUCCESS
      || memcmp (&value, &none, sizeof value) != 0)
    return FALSE;
  for (i = 0; i < G_N_ELEMENTS (attributes); i++)
    {
      CUlaunchAttribute *next = &result->attributes[result->config.numAttrs];

      value = none;
      if (gtorch_cuda.cuGraphKernelNodeGetAttribute (node, attributes[i], &value) != CUDA_SUCCESS)
        return FALSE;
      if (memcmp (&value, &none, sizeof value) == 0)
        continue;
      next->id = attributes[i];
      next->value = value;
      result->config.numAttrs++;
    }
  return TRUE;
}

static void
keep_piece (gsize offset, gconstpointer bytes, gsize n_bytes, gpointer data)
{
  Node *node = data;

  if (offset + n_bytes <= MAX_BYTES)
    memcpy (node->parameters + offset, bytes, n_bytes);
  node->kernel.n_bytes = MAX (node->kernel.n_bytes, offset + n_bytes);
}

static gboolean
read_node (CUgraphNode node, Node *result)
{
  CUlaunchConfig *config = &result->kernel.config;
  gsize *n_bytes = &result->kernel.n_bytes;
  CUDA_KERNEL_NODE_PARAMS kernel;
  CUgraphNodeType type;

  if (gtorch_cuda.cuGraphNodeGetType (node, &type) != CUDA_SUCCESS
      || type != CU_GRAPH_NODE_TYPE_KERNEL
      || !gtorch_cuda_kernel_node_read (node, &kernel, &result->kernel.function, keep_piece, result)
      || *n_bytes == 0 || *n_bytes > MAX_BYTES)
    return FALSE;
  config->gridDimX = kernel.gridDimX;
  config->gridDimY = kernel.gridDimY;
  config->gridDimZ = kernel.gridDimZ;
  config->blockDimX = kernel.blockDimX;
  config->blockDimY = kernel.blockDimY;
  config->blockDimZ = kernel.blockDimZ;
  config->sharedMemBytes = kernel.sharedMemBytes;
  return read_attributes (node, &result->kernel);
}

/* Reads a graph; returns FALSE unless it is a chain of kernels. */
static gboolean
read_graph (CUgraph graph, Sample *sample)
{
  CUgraphNode nodes[MAX_NODES];
  gsize n = 0, n_before, i;

  if (gtorch_cuda.cuGraphGetNodes (graph, NULL, &n) != CUDA_SUCCESS || n == 0 || n > MAX_NODES
      || gtorch_cuda.cuGraphGetNodes (graph, nodes, &n) != CUDA_SUCCESS)
    return FALSE;
  for (i = 0; i < n; i++)
    {
      CUgraphNode before[2] = { NULL };
      /* ignored: a programmatic dependency (early start) may be dropped */
      CUgraphEdgeData edges[2];

      n_before = G_N_ELEMENTS (before);
      if (gtorch_cuda.cuGraphNodeGetDependencies (nodes[i], before, edges, &n_before)
              != CUDA_SUCCESS
          || n_before != (i > 0) || before[0] != (i > 0 ? nodes[i - 1] : NULL)
          || !read_node (nodes[i], &sample->nodes[i]))
        return FALSE;
    }
  sample->n = n;
  return TRUE;
}

static gboolean
take_sample (CUstream stream, const guint64 *addresses, GTorchCudaEnqueue enqueue, gpointer data,
             Sample *sample, gboolean *is_over)
{
  CUgraph graph;
  gboolean result;

  if (gtorch_cuda.cuStreamBeginCapture (stream, CU_STREAM_CAPTURE_MODE_RELAXED) != CUDA_SUCCESS)
    return FALSE;
  result = enqueue (stream, addresses, data);
  gtorch_cuda_stream_end_capture (stream, &graph, is_over);
  if (graph == NULL)
    return FALSE;
  result = result && read_graph (graph, sample);
  gtorch_cuda.cuGraphDestroy (graph);
  return result;
}

/* --- parameters that depend on the memory --- */

static guint64
word_at (const Node *node, gsize offset)
{
  guint64 word;

  memcpy (&word, node->parameters + offset, sizeof word);
  return word;
}

/* Returns whether a word could be an address. Memory other than the caller's is the library's, which may
 * reuse it at any time. */
static gboolean
may_be_memory (guint64 word)
{
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  unsigned int type = 0;
  void *data = &type;

  return word > G_MAXUINT32
         && (gtorch_cuda.cuPointerGetAttributes (1, &attribute, &data, word) != CUDA_SUCCESS
             || type != 0);
}

static gboolean
find_place (Sample *const *samples, guint node, guint offset,
            const guint64 (*addresses)[GTORCH_CUDA_RECORDING_MAX], guint n, Place *place)
{
  const guint64 first = word_at (&samples[0]->nodes[node], offset);
  guint i, k;

  for (i = 0; i < n; i++)
    {
      const guint64 ahead = first - addresses[0][i];

      for (k = 1; k < N_SAMPLES; k++)
        if (word_at (&samples[k]->nodes[node], offset) - addresses[k][i] != ahead)
          break;
      if (addresses[0][i] != 0 && k == N_SAMPLES)
        {
          *place = (Place){ offset, i, ahead };
          return TRUE;
        }
    }
  return FALSE;
}

/* Finds the addresses in the parameters of a node by comparing all samples. Returns FALSE if the parameters
 * differ in any other way or may contain other addresses. */
static gboolean
find_places (Sample *const *samples, guint node,
             const guint64 (*addresses)[GTORCH_CUDA_RECORDING_MAX], guint n, Place *places,
             guint *n_places)
{
  const Node *first = &samples[0]->nodes[node];
  gsize offset, size;
  guint k;

  *n_places = 0;
  for (offset = 0; offset < first->kernel.n_bytes; offset += size)
    {
      gboolean is_same = TRUE;

      size = MIN (sizeof (guint64), first->kernel.n_bytes - offset);
      for (k = 1; k < N_SAMPLES; k++)
        is_same &=
            memcmp (first->parameters + offset, samples[k]->nodes[node].parameters + offset, size)
            == 0;
      if (is_same ? size == sizeof (guint64) && may_be_memory (word_at (first, offset))
                  : size < sizeof (guint64) || *n_places == MAX_PLACES
                        || !find_place (samples, node, offset, addresses, n, &places[*n_places]))
        return FALSE;
      *n_places += !is_same;
    }
  return TRUE;
}

static GTorchCudaRecording *
compare (Sample *const *samples, const guint64 (*addresses)[GTORCH_CUDA_RECORDING_MAX], guint n)
{
  GTorchCudaRecording *self = g_new0 (GTorchCudaRecording, 1);
  Place places[MAX_PLACES];
  guint i, k;

  for (i = 0; i < samples[0]->n; i++)
    {
      const Node *node = &samples[0]->nodes[i];
      Launch *launch = &self->launches[i];
      gboolean fits = TRUE;

      for (k = 1; k < N_SAMPLES; k++)
        fits = fits && samples[k]->n == samples[0]->n
               && memcmp (&node->kernel, &samples[k]->nodes[i].kernel, sizeof node->kernel) == 0;
      if (!fits || !find_places (samples, i, addresses, n, places, &launch->n_places))
        {
          gtorch_cuda_recording_free (self);
          return NULL;
        }
      launch->kernel = node->kernel;
      launch->parameters = g_memdup2 (node->parameters, node->kernel.n_bytes);
      launch->places = g_memdup2 (places, launch->n_places * sizeof *places);
      self->n++;
    }
  return self;
}

/* Chooses the addresses for the other samples, near the caller's and far from them, each at a different
 * distance. */
static void
vary (guint64 (*addresses)[GTORCH_CUDA_RECORDING_MAX], guint n)
{
  const guint64 step = GTORCH_CUDA_RECORDING_ALIGNMENT;
  guint i;

  G_STATIC_ASSERT (N_SAMPLES == 3);
  for (i = 0; i < n; i++)
    if (addresses[0][i] != 0)
      {
        addresses[1][i] = addresses[0][i] + step * (1000003 + 70001 * i);
        addresses[2][i] =
            (addresses[0][i] + step * (2000003 + 90001 * i) + ((guint64) (i + 1) << 33))
            ^ ((guint64) (0x11 + 2 * i) << 40);
      }
    else
      addresses[1][i] = addresses[2][i] = 0;
}

/* --- exclusion of recordings and context waits --- */

/* A thread must not wait for a context in which anything is being captured: the wait fails and invalidates
 * the capture. Other captures are known to the threads that wait, but not those of recordings. */
static GMutex turn_lock;
GTORCH_FORK_LOCK (turn_lock);
static GCond turn;
static guint n_recording, n_waiting;

/* Begins a recording, or returns FALSE at once if a thread waits for the context: recordings do not block,
 * as their callers hold locks. */
static gboolean
begin_recording (void)
{
  gboolean result;

  g_mutex_lock (&turn_lock);
  result = n_waiting == 0;
  n_recording += result;
  g_mutex_unlock (&turn_lock);
  return result;
}

static void
end_recording (void)
{
  g_mutex_lock (&turn_lock);
  if (--n_recording == 0)
    g_cond_broadcast (&turn);
  g_mutex_unlock (&turn_lock);
}

CUresult
gtorch_cuda_context_wait (void)
{
  CUresult result;

  g_mutex_lock (&turn_lock);
  n_waiting++;
  while (n_recording > 0)
    g_cond_wait (&turn, &turn_lock);
  g_mutex_unlock (&turn_lock);
  result = gtorch_cuda.cuCtxSynchronize ();
  g_mutex_lock (&turn_lock);
  n_waiting--;
  g_mutex_unlock (&turn_lock);
  return result;
}

/* --- recordings --- */

static GTorchCudaRecording *
record (const guint64 *addresses, guint n, GTorchCudaEnqueue enqueue, gpointer data)
{
  guint64 all[N_SAMPLES][GTORCH_CUDA_RECORDING_MAX];
  Sample *samples[N_SAMPLES] = { NULL };
  GTorchCudaRecording *self = NULL;
  CUstream stream = NULL;
  gboolean result = TRUE, is_over = TRUE;
  guint k;

  memcpy (all[0], addresses, n * sizeof *addresses);
  vary (all, n);
  if (gtorch_cuda.cuStreamCreateWithPriority (&stream, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS)
    return NULL;
  for (k = 0; k < N_SAMPLES && result; k++)
    {
      samples[k] = g_new0 (Sample, 1);
      result = take_sample (stream, all[k], enqueue, data, samples[k], &is_over);
    }
  if (result)
    self = compare (samples, all, n);
  if (is_over)
    gtorch_cuda.cuStreamDestroy (stream);
  for (k = 0; k < N_SAMPLES; k++)
    g_free (samples[k]);
  return self;
}

GTorchCudaRecording *
gtorch_cuda_recording_new (const guint64 *addresses, guint n, GTorchCudaEnqueue enqueue,
                           gpointer data, gboolean *is_busy)
{
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  GTorchCudaRecording *self;

  g_assert (n <= GTORCH_CUDA_RECORDING_MAX);
  *is_busy = FALSE;
  if (!gtorch_env_flag ("GTORCH_CUDA_RECORDINGS", TRUE))
    return NULL;
  *is_busy = !begin_recording ();
  if (*is_busy)
    return NULL;
  /* The program may be in a capture elsewhere, which would forbid some calls. */
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  self = record (addresses, n, enqueue, data);
  gtorch_cuda.cuThreadExchangeStreamCaptureMode (&mode);
  end_recording ();
  return self;
}

void
gtorch_cuda_recording_free (GTorchCudaRecording *self)
{
  guint i;

  if (self == NULL)
    return;
  for (i = 0; i < MAX_NODES; i++)
    {
      g_free (self->launches[i].parameters);
      g_free (self->launches[i].places);
    }
  g_free (self);
}

/* --- launches --- */

gboolean
gtorch_cuda_recording_launch (const GTorchCudaRecording *self, GTorchCudaLane *lane,
                              const guint64 *addresses, guint *n_launched, GError **error)
{
  guint i, k;

  for (i = 0; i < self->n; i++)
    {
      const Launch *launch = &self->launches[i];
      guint8 parameters[MAX_BYTES] __attribute__ ((aligned (64)));
      CUlaunchConfig config = launch->kernel.config;
      gsize n_bytes = launch->kernel.n_bytes;
      void *packed[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE,
                         &n_bytes, CU_LAUNCH_PARAM_END };

      memcpy (parameters, launch->parameters, n_bytes);
      for (k = 0; k < launch->n_places; k++)
        {
          const Place *place = &launch->places[k];
          const guint64 address = addresses[place->which] + place->ahead;

          memcpy (parameters + place->offset, &address, sizeof address);
        }
      config.hStream = lane->handle;
      config.attrs = (CUlaunchAttribute *) launch->kernel.attributes;
      *n_launched = i;
      if (!gtorch_cuda_check (gtorch_cuda.cuLaunchKernelEx (&config, launch->kernel.function, NULL,
                                                            packed),
                              "cuLaunchKernelEx", error))
        return FALSE;
    }
  *n_launched = i;
  return TRUE;
}
