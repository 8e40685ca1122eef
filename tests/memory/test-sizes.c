/* SPDX-License-Identifier: LGPL-2.1-or-later
 * SPDX-FileCopyrightText: The GTorch authors */

/* Every operation on the samples of its row, with dimensions up to the largest number of elements. They
 * have stride 0, so that they take no memory; their results would. A call gives an error, or a result
 * that fits, before it has processed too many elements.
 *
 * A sum of 2^40 elements is correct, but takes too long. No list names these calls: a call that reaches
 * its loops (gtorch_launch ()) with so many elements continues in a child process, and must not crash
 * there for a moment. A GPU cannot be interrupted: there such a call runs up to its first kernel, which
 * must have a valid number of blocks, and whose launch is refused.
 *
 * Each case uses one of the dtypes in turn; the argument is a number of rounds, each with further dtypes:
 * 15 rounds cover all of them. */

#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtorch/cuda/ops/gtorch-cuda-plain-private.h>
#include <gtorch/cuda/driver/gtorch-cuda-private.h>

#include "fail-memory.h"
#include "op-values.h"

#define MAX_TENSORS 16
#define MOST        ((gsize) 1 << 28) /* bytes that can be allocated at once */
#define MANY        (1 << 26)         /* so many elements take longer than a moment */
#ifdef __SANITIZE_ADDRESS__
#define MOMENT 100000 /* in microseconds */
#else
#define MOMENT 20000
#endif
#define PATIENCE 60 /* time limit in seconds for a call that should have failed at once */

typedef struct
{
  const GTorchOpClass *op;
  const GTorchOpSample *sample;
  guint dtype;
  gint64 from, to; /* dimensions of size `from` get the size `to` */
  gint tensor;     /* in one tensor, or (-1) in all and in the attributes */
} Case;

static gchar current[512]; /* the current call, for a debugger */
static gboolean is_child;
static guint n_rounds = 1, n_tests_done, n_cases, n_errors, n_long;

/* --- calls that continue in a child process --- */

static gboolean
is_large (const GTorchOpCall *call)
{
  guint i;

  for (i = 0; i < call->n_inputs; i++)
    if (call->inputs[i] != NULL && call->inputs[i]->numel > MANY)
      return TRUE;
  for (i = 0; i < call->n_outputs; i++)
    if (call->outputs[i] != NULL && call->outputs[i]->numel > MANY)
      return TRUE;
  return FALSE;
}

#ifdef __SANITIZE_ADDRESS__
/* AddressSanitizer calls this at its report, which ends the child before the moment is over. */
void __asan_on_error (void);

void
__asan_on_error (void)
{
  signal (SIGALRM, SIG_IGN);
}
#endif

/* Forks. Returns TRUE in the child. */
static gboolean
goes_on (GError **error)
{
  const struct itimerval moment = { .it_value = { .tv_usec = MOMENT } };
  gint status = 0;
  pid_t child;

  if (is_child)
    return TRUE;
  child = fork ();
  if (child == 0)
    {
      is_child = TRUE;
      signal (SIGALRM, SIG_DFL);
      setitimer (ITIMER_REAL, &moment, NULL);
      return TRUE;
    }
  g_assert_cmpint (child, >, 0);
  while (waitpid (child, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFSIGNALED (status) ? WTERMSIG (status) != SIGALRM : WEXITSTATUS (status) != 0)
    {
      g_test_message ("%s ends with status %x", current, status);
      g_test_fail ();
    }
  n_long++;
  g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "goes on elsewhere");
  return FALSE;
}

/* --- launches that a GPU does not execute --- */

static __thread gboolean is_refusing; /* set while launches of this thread are refused */
static __thread guint n_refused;

static gboolean
can_launch (const guint *grid, const guint *block, guint shared)
{
  return grid[0] <= G_MAXINT && grid[1] <= G_MAXUINT16 && grid[2] <= G_MAXUINT16
         && (guint64) block[0] * block[1] * block[2] <= 1024
         && (guint64) grid[0] * grid[1] * grid[2] > 0 && shared <= 227 << 10;
}

static CUresult (*launch_kernel) (CUfunction, guint, guint, guint, guint, guint, guint, guint,
                                  CUstream, void **, void **);

static CUresult
refuse_kernel (CUfunction function, guint grid_x, guint grid_y, guint grid_z, guint block_x,
               guint block_y, guint block_z, guint shared, CUstream stream, void **parameters,
               void **extra)
{
  if (!is_refusing)
    return launch_kernel (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared,
                          stream, parameters, extra);
  n_refused++;
  if (!can_launch ((guint[]){ grid_x, grid_y, grid_z }, (guint[]){ block_x, block_y, block_z },
                   shared))
    {
      g_test_message ("%s: blocks of %u, %u, %u threads, %u, %u, %u of them", current, block_x,
                      block_y, block_z, grid_x, grid_y, grid_z);
      g_test_fail ();
    }
  return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

gboolean __real_gtorch_cuda_driver_stand_in (GTorchOpCall *call, CUstream queue, GTorchDevice *host,
                                             gpointer report, gconstpointer random);
gboolean __wrap_gtorch_cuda_driver_stand_in (GTorchOpCall *call, CUstream queue, GTorchDevice *host,
                                             gpointer report, gconstpointer random);

gboolean
__wrap_gtorch_cuda_driver_stand_in (GTorchOpCall *call, CUstream queue, GTorchDevice *host,
                                    gpointer report, gconstpointer random)
{
  n_refused += is_refusing;
  return !is_refusing && __real_gtorch_cuda_driver_stand_in (call, queue, host, report, random);
}

/* The call has no result, whether or not it reaches a kernel. */
static gboolean
check_refused (const GTorchOpCall *call, gboolean ok, GError **error)
{
  is_refusing = FALSE;
  n_long += n_refused > 0;
  if (ok && n_refused > 0)
    {
      g_test_message ("%s goes on after a launch that failed", current);
      g_test_fail ();
    }
  else if (ok)
    g_set_error (error, G_IO_ERROR, G_IO_ERROR_BUSY, "goes to no kernel");
  return FALSE;
}

static gboolean
is_elsewhere (const GTorchOpCall *call)
{
  return !call->device->in_caller;
}

static void
refuse_launches (void)
{
  is_refusing = TRUE;
  n_refused = 0;
}

gboolean __real_gtorch_cuda_run_early (GTorchOpCall *call, GTorchCudaEarlyFunc func, gpointer data,
                                       GError **error);
gboolean __wrap_gtorch_cuda_run_early (GTorchOpCall *call, GTorchCudaEarlyFunc func, gpointer data,
                                       GError **error);

gboolean
__wrap_gtorch_cuda_run_early (GTorchOpCall *call, GTorchCudaEarlyFunc func, gpointer data,
                              GError **error)
{
  if (!is_large (call))
    return __real_gtorch_cuda_run_early (call, func, data, error);
  refuse_launches ();
  return check_refused (call, __real_gtorch_cuda_run_early (call, func, data, error), error);
}

/* --- all devices --- */

gboolean __real_gtorch_launch (GTorchOpCall *call, GError **error);
gboolean __wrap_gtorch_launch (GTorchOpCall *call, GError **error);
gboolean __real_gtorch_launch_sync_inputs (GTorchOpCall *call, GError **error);
gboolean __wrap_gtorch_launch_sync_inputs (GTorchOpCall *call, GError **error);

gboolean
__wrap_gtorch_launch (GTorchOpCall *call, GError **error)
{
  if (is_large (call) && is_elsewhere (call))
    {
      refuse_launches ();
      return check_refused (call, __real_gtorch_launch (call, error), error);
    }
  return (!is_large (call) || goes_on (error)) && __real_gtorch_launch (call, error);
}

/* Operations whose result sizes are among the values read those before they launch anything. */
gboolean
__wrap_gtorch_launch_sync_inputs (GTorchOpCall *call, GError **error)
{
  return (!is_large (call) || is_elsewhere (call) || goes_on (error))
         && __real_gtorch_launch_sync_inputs (call, error);
}

static void
on_alarm (int number)
{
  static const gchar text[] = "# takes too long: ";

  if (write (STDOUT_FILENO, text, sizeof (text) - 1) < 0
      || write (STDOUT_FILENO, current, strlen (current)) < 0)
    _exit (2);
  _exit (1);
}

/* --- cases --- */

static guint
sample_dtype (const Case *self, const GTorchSampleTensor *spec)
{
  return spec->dtype != GTORCH_DTYPE_NONE ? spec->dtype : self->dtype;
}

/* Returns the tensor of the sample with the dimensions that the case enlarges, or NULL if none can be
 * that large. */
static GTorchImpl *
input_large (const Case *self, guint index)
{
  const GTorchSampleTensor *spec = &self->sample->tensors[index];
  g_autoptr (GRand) rand = g_rand_new_with_seed (index);
  g_autoptr (GTorchImpl) made = NULL;
  g_autoptr (GTorchImpl) base = NULL;
  GTorchSampleTensor small = *spec;
  gint64 shape[GTORCH_MAX_DIMS], strides[GTORCH_MAX_DIMS];
  guint dtype = sample_dtype (self, spec), i;

  for (i = 0; i < spec->n_dims; i++)
    {
      shape[i] = spec->shape[i];
      if ((self->tensor < 0 || self->tensor == (gint) index) && spec->shape[i] == self->from)
        {
          shape[i] = self->to;
          small.shape[i] = 1;
        }
    }
  if (!gtorch_shape_check ("input", shape, spec->n_dims, dtype, NULL))
    return NULL;
  made = input_new (&small, dtype, LAYOUT_CONTIGUOUS, self->sample->low, self->sample->high, rand);
  base = impl_to_test_device (made);
  for (i = 0; i < spec->n_dims; i++)
    strides[i] = shape[i] != spec->shape[i] ? 0 : base->strides[i];
  return gtorch_impl_new_view (base, 0, shape, strides, spec->n_dims);
}

/* Returns the attributes with the sizes of the tensors; free the lists. */
static GTorchAttr *
attrs_large (const Case *self)
{
  const GTorchOpClass *op = self->op;
  GTorchAttr *attrs = g_memdup2 (self->sample->attrs, op->n_attrs * sizeof (GTorchAttr));
  guint i, attr = 0;
  gsize k;

  for (i = 0; i < op->n_args; i++)
    {
      if (op->args[i].kind <= GTORCH_ARG_TENSORS)
        continue;
      if (op->args[i].kind == GTORCH_ARG_INTS)
        {
          gint64 *list = g_memdup2 (attrs[attr].list.data, attrs[attr].list.n * sizeof (gint64));

          for (k = 0; k < attrs[attr].list.n; k++)
            if (self->tensor < 0 && list[k] == self->from)
              list[k] = self->to;
          attrs[attr].list.data = list;
        }
      attr++;
    }
  return attrs;
}

static void
attrs_free (const GTorchOpClass *op, GTorchAttr *attrs)
{
  guint i, attr = 0;

  for (i = 0; i < op->n_args; i++)
    if (op->args[i].kind > GTORCH_ARG_TENSORS)
      {
        if (op->args[i].kind == GTORCH_ARG_INTS)
          g_free ((gpointer) attrs[attr].list.data);
        attr++;
      }
  g_free (attrs);
}

static void
check_results (GPtrArray *results)
{
  guint i;

  for (i = 0; i < results->len; i++)
    {
      const GTorchImpl *result = results->pdata[i];
      gint64 strides[GTORCH_MAX_DIMS], numel;

      g_assert_true (
          gtorch_shape_measure (result->shape, result->n_dims, result->dtype, strides, &numel));
      g_assert_cmpint (result->numel, ==, numel);
      g_assert_nonnull (result->storage);
      if (result->is_contiguous)
        g_assert_cmpuint (gtorch_impl_n_bytes (result), <=, result->storage->n_bytes);
    }
}

static void
run_case (const Case *self)
{
  g_autoptr (GPtrArray) results =
      g_ptr_array_new_with_free_func ((GDestroyNotify) gtorch_impl_unref);
  GTorchImpl *inputs[MAX_TENSORS] = { NULL };
  GTorchAttr *attrs = attrs_large (self);
  g_autoptr (GError) error = NULL;
  const GTorchOpClass *former;
  gboolean is_possible = TRUE, ok;
  guint i;

  g_snprintf (current, sizeof (current),
              "%s, sample %u, %s, size %" G_GINT64_FORMAT " becomes %" G_GINT64_FORMAT
              " in tensor %d",
              self->op->name, self->sample->index, gtorch_dtype_get_name (self->dtype), self->from,
              self->to, self->tensor);
  for (i = 0; i < self->sample->n_tensors; i++)
    if (self->sample->tensors[i].n_dims >= 0)
      {
        inputs[i] = input_large (self, i);
        is_possible &= inputs[i] != NULL;
      }
  if (is_possible)
    {
      n_cases++;
      alarm (PATIENCE);
      fail_memory_above (MOST);
      former = gtorch_composite_begin (self->op->id, NULL, 0);
      if (self->op->shape != NULL)
        gtorch_composite_end (former, TRUE, NULL); /* none failed */
      ok =
          gtorch_op_invokers[self->op->id](inputs, self->sample->n_tensors, attrs, results, &error);
      if (self->op->shape == NULL)
        gtorch_composite_end (former, ok, &error);
      fail_memory_above (0);
      if (is_child)
        _exit (ok == (error == NULL) ? 0 : 3);
      alarm (0);
      if (ok != (error == NULL))
        {
          g_test_message ("%s gives %s", current, ok ? "a result and an error" : "nothing");
          g_test_fail ();
        }
      else if (ok)
        check_results (results);
      else
        {
          n_errors += error->domain == GTORCH_ERROR;
          if (!g_error_matches (error, G_IO_ERROR, G_IO_ERROR_BUSY)
              && (error->domain != GTORCH_ERROR
                  || !g_str_has_prefix (error->message, self->op->name)))
            {
              g_test_message ("%s gives “%s”", current, error->message);
              g_test_fail ();
            }
        }
    }
  gtorch_impl_clear (inputs, MAX_TENSORS);
  attrs_free (self->op, attrs);
}

static guint
nth_dtype (guint32 dtypes, guint n)
{
  guint dtype;

  n %= (guint) __builtin_popcount (dtypes);
  for (dtype = 0; !(dtypes & (1u << dtype)) || n-- > 0; dtype++)
    ;
  return dtype;
}

/* Returns the nth of the sizes: the largest dimension that a tensor of the case can have, and smaller
 * ones. */
static gint64
nth_size (guint n, gint64 others)
{
  switch (n % 4)
    {
    case 0:
      return (G_GINT64_CONSTANT (1) << 62) / MAX (others, 1);
    case 1:
      return G_GINT64_CONSTANT (1) << 40;
    case 2:
      return (G_GINT64_CONSTANT (1) << 31) + 1;
    default:
      return G_MAXINT64 / MAX (others, 1);
    }
}

static void
run_sizes (Case *self, gint tensor, gint64 from, gint64 others, guint *counter)
{
  guint round, size;

  self->tensor = tensor;
  self->from = from;
  for (round = 0; round < n_rounds; round++)
    for (size = 0; size < 4; size++)
      {
        const guint32 dtypes =
            self->op->dtypes != 0 ? self->op->dtypes : 1u << GTORCH_DTYPE_FLOAT32;

        self->dtype = nth_dtype (dtypes, (*counter)++);
        self->to = nth_size (size, others * (gint64) gtorch_dtype_size (self->dtype));
        run_case (self);
      }
}

static void
huge_sizes_are_errors_or_fit (gconstpointer data)
{
  const GTorchOpClass *op = data;
  guint counter = op->id, s, t, d, e;

  n_tests_done++;
  for (s = 0; s < gtorch_n_op_samples; s++)
    {
      const GTorchOpSample *sample = &gtorch_op_samples[s];
      Case self = { .op = op, .sample = sample };

      for (t = 0; sample->op == op->id && t < sample->n_tensors; t++)
        for (d = 0; d < MAX (sample->tensors[t].n_dims, 0); d++)
          {
            const gint64 *shape = sample->tensors[t].shape;
            gint64 others = 1;

            for (e = 0; e < d && shape[e] != shape[d]; e++)
              ;
            if (e < d)
              continue; /* tested with the same size before */
            for (e = 0; e < sample->tensors[t].n_dims; e++)
              others *= shape[e] != shape[d] ? MAX (shape[e], 1) : 1;
            run_sizes (&self, t, shape[d], others, &counter);
            run_sizes (&self, -1, shape[d], others, &counter);
          }
    }
}

static void
enough_cases_ran (void)
{
  if (n_tests_done < gtorch_n_ops)
    {
      g_test_skip ("not all were run");
      return;
    }
  g_test_message ("%u cases, %u errors, %u went on elsewhere", n_cases, n_errors, n_long);
  g_assert_cmpuint (n_cases, >, 5000);
  g_assert_cmpuint (n_errors, >, n_cases / 4);
}

int
main (int argc, char *argv[])
{
  guint i;

  g_test_init (&argc, &argv, NULL);
  if (argc > 1)
    n_rounds = atoi (argv[1]);
  signal (SIGALRM, on_alarm);
  if (test_device () != gtorch_device_cpu ())
    {
      launch_kernel = gtorch_cuda.cuLaunchKernel;
      gtorch_cuda.cuLaunchKernel = refuse_kernel;
    }
  for (i = 0; i < gtorch_n_ops; i++)
    {
      g_autofree gchar *path = g_strdup_printf ("/GTorch/sizes/%s", gtorch_ops[i].name);

      g_test_add_data_func (path, &gtorch_ops[i], huge_sizes_are_errors_or_fit);
    }
  g_test_add_func ("/GTorch/sizes/enough_cases_ran", enough_cases_ran);
  return g_test_run ();
}
